"""A client's own search in Responses, for a provider that knows no tool search.

The client declares `{type: tool_search, execution: client}`, answers each `tool_search_call`,
and gives definitions in `tool_search_output`. The provider gets a function in its place.
Source: OpenAI, "Tool search" (client-executed).
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from tool_search.adapters.openai_responses.parts import functions_in, grouped, is_client_search
from tool_search.adapters.wire.values import arguments_text
from tool_search.core.values.json import compact_json, read_object
from tool_search.serving.proxy.dialects.base import JSON, ListedTool, SentEvent, WireTool

__all__ = ["ClientSearch", "grouped_tools", "listed_tools"]

_NAMES = ("tool_search", "tool_search_of_client")
_DESCRIPTION = "Searches for tools and loads those that fit."
_PARAMETERS = {
    "type": "object",
    "properties": {"query": {"type": "string"}},
    "required": ["query"],
}
_ARGUMENTS = "response.function_call_arguments."


class ClientSearch:
    """A client's search as a function of the provider, in one request and its reply.

    Args:
        tools: The client's list of tools.
    """

    def __init__(self, tools: Iterable[JSON]) -> None:
        taken = {entry.get("name") for entry in tools}
        self.name = next((name for name in _NAMES if name not in taken), _NAMES[-1])
        self._places: set[object] = set()
        self._left_out = 0

    def request(self, body: JSON, items: Iterable[JSON]) -> JSON:
        """Return the request with a function in place of the search, and loaded functions.

        Args:
            body: The client's request.
            items: Its history.
        """
        given = [*items]
        loaded = [tool for item in given if _is_output(item) for tool in item.get("tools") or ()]
        listed = [
            self._function(entry) if is_client_search(entry) else entry
            for entry in body.get("tools") or ()
        ]
        changed = {
            **body,
            "tools": _with_loaded(listed, loaded),
            "input": [self._send(item) for item in given],
        }
        choice = body.get("tool_choice")
        if isinstance(choice, dict) and choice.get("type") == "tool_search":
            changed["tool_choice"] = {"type": "function", "name": self.name}
        return changed

    def _function(self, entry: JSON) -> JSON:
        return {
            "type": "function",
            "name": self.name,
            "description": entry.get("description") or _DESCRIPTION,
            "parameters": entry.get("parameters") or _PARAMETERS,
            "strict": False,
        }

    def _send(self, item: JSON) -> JSON:
        """Return an item of the client as the provider takes it."""
        if item.get("type") == "tool_search_call":
            call = {"type": "function_call", "call_id": item.get("call_id")}
            arguments = arguments_text(item.get("arguments"))
            return {**call, "name": self.name, "arguments": arguments}
        if not _is_output(item):
            return item
        output = compact_json([*map(_summary, functions_in(item.get("tools")))])
        called = item.get("call_id")
        return {"type": "function_call_output", "call_id": called, "output": output}

    def reply(self, response: JSON) -> JSON:
        """Return a reply in which calls of the function are searches."""
        output = response.get("output")
        if not isinstance(output, list):
            return response
        return {**response, "output": [*map(self._item, output)]}

    def _item(self, item: JSON) -> JSON:
        if not self._is_call(item):
            return item
        shown: JSON = {key: item[key] for key in ("id", "call_id", "status") if key in item}
        # The service gives an object; text that is not one stays as the model wrote it.
        text = str(item.get("arguments") or "")
        arguments: Any = read_object(text)
        arguments = text if arguments is None else arguments
        return {"type": "tool_search_call", "execution": "client", **shown, "arguments": arguments}

    def _is_call(self, item: JSON) -> bool:
        return item.get("type") == "function_call" and item.get("name") == self.name

    def event(self, event: SentEvent) -> SentEvent | None:
        """Return an event as the client gets it; None for one that a search does not have."""
        data, kind = event.data, str(event.data.get("type"))
        item, response = data.get("item"), data.get("response")
        if isinstance(item, dict) and self._is_call(item):
            self._places.add(data.get("output_index"))
            data = {**data, "item": self._item(item)}
        elif isinstance(response, dict):
            data = {**data, "response": self.reply(response)}
        elif kind.startswith(_ARGUMENTS) and data.get("output_index") in self._places:
            self._left_out += 1
            return None
        number = data.get("sequence_number")
        if isinstance(number, int):
            data = {**data, "sequence_number": number - self._left_out}
        return SentEvent(event.name, data)


def _is_output(item: JSON) -> bool:
    return item.get("type") == "tool_search_output"


def _summary(found: tuple[str | None, JSON]) -> JSON:
    namespace, function = found
    named = {"name": function.get("name"), "description": function.get("description") or ""}
    return named if namespace is None else {**named, "namespace": namespace}


def listed_tools(tools: Iterable[JSON]) -> list[ListedTool]:
    """Return the entries of a list of tools; a namespace of functions gives each of them."""
    listed: list[ListedTool] = []
    for entry in tools:
        functions = [*functions_in([entry])]
        if all(_is_function(function) for _, function in functions):
            group = {key: value for key, value in entry.items() if key != "tools"}
            listed += [
                ListedTool(WireTool(each, each["name"], space, None if space is None else group))
                for space, each in functions
            ]
        else:
            listed.append(ListedTool(None, entry))
    return listed


def _is_function(tool: JSON) -> bool:
    return tool.get("type") == "function" and isinstance(tool.get("name"), str)


def grouped_tools(listed: Iterable[ListedTool]) -> list[JSON]:
    """Return definitions as a list has them, those of a namespace in it."""
    groups = ((None if each.wire is None else each.wire.group, each) for each in listed)
    return grouped((group, each.definition) for group, each in groups)


def _with_loaded(listed: Iterable[JSON], loaded: Iterable[JSON]) -> list[JSON]:
    """Return the list without deferred functions, and with those that a search loaded."""
    declared = [
        entry
        for entry in listed_tools(listed)
        if not (entry.wire.definition if entry.wire else entry.definition).get("defer_loading")
    ]
    known = {(entry.wire.namespace, entry.wire.name) for entry in declared if entry.wire}
    new = {
        place: entry
        for entry in listed_tools(loaded)
        if entry.wire and (place := (entry.wire.namespace, entry.wire.name)) not in known
    }
    return grouped_tools([*declared, *new.values()])
