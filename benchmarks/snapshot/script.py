"""Replies and tools of the snapshot's conversations."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any

from tool_search import ExecutableTool, Tool, tool_from_function
from tool_search.sources.toolbox import TOOLBOX
from tool_search.testing import ModelCall, ModelReply, ModelView

Step = ModelReply | Callable[[ModelView], ModelReply]


def say(text: str, *, thinking: str | None = None) -> ModelReply:
    """Return a reply in text."""
    return ModelReply(text=text, thinking=thinking)


def calling(*calls: ModelCall, text: str = "", thinking: str | None = None) -> ModelReply:
    """Return a reply with calls."""
    return ModelReply(text=text, calls=calls, thinking=thinking)


def call(name: str, arguments: Mapping[str, Any] | str | None = None) -> ModelCall:
    """Return a call, also of a tool that the model is not shown."""
    return ModelCall(name=name, arguments=arguments or {}, hidden=True)


def search(*queries: str) -> ModelReply:
    """Return a reply that searches once for each query."""
    return calling(*(call("tool_search", {"query": query}) for query in queries))


def use(name: str, /, **arguments: Any) -> Callable[[ModelView], ModelReply]:
    """Return a step that calls a tool itself or, if it is not declared, through `call_tool`."""

    def step(view: ModelView) -> ModelReply:
        if view.tool(name) is not None or view.tool("call_tool") is None:
            return calling(call(name, arguments))
        return calling(call("call_tool", {"name": name, "arguments": arguments}))

    return step


FORECAST = use("get_forecast", city="Paris")
BASIC: tuple[Step, ...] = (
    calling(*search("weather").calls, thinking="What do I need?"),
    FORECAST,
    say("Sunny.", thinking="That is easy."),
    calling(*search("mail", "zzyzx qwfpg").calls, call("get_time"), text="One moment."),
    use("send_mail", to="Ann", text="Hello"),
    calling(call("get_forecast", {"town": 1}), call("get_forecast", "{"), call("no_such_tool")),
    calling(call("broken", {"to": "x"}), call("convert_money", {"amount": "1"})),
    say("Sent."),
    say("A dot."),
)
AGAIN: tuple[Step, ...] = (FORECAST, say("Still sunny."))


def definition(name: str, description: str, *required: str, **more: Any) -> Tool:
    """Return a definition whose arguments are texts."""
    schema = {
        "type": "object",
        "properties": {key: {"type": "string", "description": f"The {key}."} for key in required},
        "required": list(required),
    }
    return Tool(name=name, description=description, parameters=schema if required else {}, **more)


def runnable(tool: Tool) -> ExecutableTool:
    """Return a tool whose result names its arguments; `broken` fails."""

    async def run(**arguments: Any) -> str:
        if tool.name == "broken":
            raise OSError("no route to the host")
        return f"{tool.name} is done: {json.dumps(arguments, sort_keys=True)}"

    return ExecutableTool(tool=tool, function=run)


def some_tools() -> list[ExecutableTool]:
    """Return a core tool and some to discover."""
    plain = [
        definition("get_time", "The time of day now.", always_load=True),
        definition(
            "get_forecast", "Weather forecast of a city.", "city", kind="mcp", server="weather"
        ),
        definition("send_mail", "Send an e-mail.", "to", "text", kind="mcp", server="mail"),
        definition("convert_money", "Convert money between currencies.", "amount"),
        definition("broken", "A broken thing.", "to"),
        definition("book_train", "查询并预订火车票。", "city", tags=("火车", "出行")),
        definition("найти_рейс", "Найти авиарейс по городу.", "город"),
        definition("delete_user", "Delete a user.", "name", roles=("admin",)),
    ]
    return [runnable(tool) for tool in plain]


def odd_tools() -> list[ExecutableTool]:
    """Return tools with names and schemas that dialects do not take as they are."""
    point = {"type": "object", "properties": {"x": {"type": "number"}, "y": {"type": "number"}}}
    schemas: Mapping[str, Mapping[str, Any]] = {
        "files.read/all": {"type": "object", "properties": {"path": {"type": ["string", "null"]}}},
        "x" * 80: {"type": "object", "properties": {"кто": {"type": "string"}}},
        "查询天气": {"type": "object", "properties": {"城市": {"enum": ["北京", "上海", None]}}},
        "7up": {"type": "object", "properties": {"n": {"type": "integer", "minimum": 1}}},
        "get_forecast": {
            "type": "object", "$defs": {"point": point},
            "properties": {"at": {"$ref": "#/$defs/point"}, "city": {"type": "string"}},
            "additionalProperties": False,
        },
        "pick": {"anyOf": [{"type": "object", "properties": {"a": {"const": 1}}}, point]},
        "nest": {
            "type": "object", "required": ["items"],
            "properties": {"items": {"type": "array", "items": {"oneOf": [point, {"$ref": "#"}]}}},
        },
    }  # fmt: skip
    tools = [
        Tool(name=name, description=f"Weather gadget {name[:9]}.", parameters=schema, kind="mcp",
             server=server)
        for server in ("weather", "спутник") for name, schema in schemas.items()
    ]  # fmt: skip
    return [runnable(tool) for tool in tools]


def toolbox() -> list[ExecutableTool]:
    """Return the tools of the demo."""
    return [tool_from_function(function) for function in TOOLBOX]


def changed_tools() -> list[ExecutableTool]:
    """Return the first tools with one gone, one changed and two new ones, in another order."""
    kept = {item.tool.name: item for item in some_tools()}
    del kept["send_mail"]
    forecast = definition("get_forecast", "Weather forecast, by day.", "city", "day",
                          kind="mcp", server="weather")  # fmt: skip
    kept["get_forecast"] = runnable(forecast)
    new = [definition("get_forecast", "Weather elsewhere.", "city", kind="mcp", server="other"),
           definition("get_news", "News of the weather.", always_load=True)]  # fmt: skip
    return [*map(runnable, new), *reversed(kept.values())]
