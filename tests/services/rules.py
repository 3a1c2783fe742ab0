"""Rules of services, each under the name by which the rows of the tables of refusals have it.

`make truth` runs every row against a server that enforces its rule in the row's words.
"""

from __future__ import annotations

import json
import re
from collections.abc import (
    AsyncIterator,
    Awaitable,
    Callable,
    Collection,
    Iterator,
    Mapping,
    Sequence,
)
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import pairwise
from typing import Any

from tests.services.raw import JSON, RawService, Reasoning, Rule, vendor_error
from tool_search import (
    ExecutableTool,
    ImagePart,
    ProviderConfig,
    Tool,
    ToolSearchConfig,
    ToolSearchRunner,
)
from tool_search.adapters import build_provider
from tool_search.core.catalog.tool import ToolKind
from tool_search.core.messages import ContentPart, TextPart
from tool_search.core.profiles import ProviderProfile
from tool_search.core.settings import Dialect
from tool_search.runner.events import Done, RunnerEvent

TOOLS = ("read_invoice", "water_plants", "book_flight", "tune_piano", "bake_bread")
PICTURE = ImagePart("data:image/png;base64,iVBORw0KGgo=")
LARGE = ImagePart("data:image/png;base64,iVBORw0KGgpMQVJHRQ==")
FORBIDDEN = "the words that a filter does not let pass"


@dataclass(frozen=True, kw_only=True)
class ServiceRule:
    """One rule of a service, and the conversation in which a request would break it.

    Attributes:
        is_broken: True, or what the words say of it in braces, if a request's body breaks the
            rule in a dialect.
        dialects: The dialects in which the service may be asked.
        talk: What the person does; each turn must end with an answer.
        reasoning: What the model's replies carry besides text and calls.
        refusals: The most refused requests of the whole conversation; 0: no request of ours
            breaks the rule.
        runs_tools: True if every tool that was asked for must have run, each once.
        lost: The tools that need not run there.
        once: True if the same messages are refused once only.
        strategies: The strategies of the dialects; others have the generic one.
        facts: Other facts of the service's profile.
        settings: Settings of the runner.
        config: Settings of the search.
        tools: The names of the tools.
        says: The result of the first tool.
        extra: Tools that are declared beside them, and that nobody asks for.
        properties: The properties of a tool besides `text`.
        result: The rest of a tool's result.
        model: The name of the model; no row of the table of facts knows the usual one.
        searches: The searches of a reply, side by side.
        server: The server that the tools are of.
        pictured: True if a tool's result has a picture.
        provider: More of the provider's configuration.
    """

    is_broken: Callable[[Dialect, JSON], bool | Mapping[str, object]]
    dialects: tuple[Dialect, ...] = ("openai_chat",)
    talk: Callable[[Bot], Awaitable[None]]
    reasoning: Reasoning | None = None
    refusals: int = 1
    runs_tools: bool = True
    lost: Collection[str] = ()
    once: bool = False
    strategies: Mapping[Dialect, str] = field(default_factory=dict)
    facts: Mapping[str, Any] = field(default_factory=dict)
    settings: Mapping[str, Any] = field(default_factory=dict)
    config: Mapping[str, Any] = field(default_factory=dict)
    tools: Sequence[str] = TOOLS
    extra: Sequence[Tool] = ()
    says: str = "all is done"
    properties: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    result: str = ""
    model: str = "house-model"
    searches: int = 1
    server: str | None = None
    pictured: bool = False
    provider: Mapping[str, Any] = field(default_factory=dict)

    def refusing(self, dialect: Dialect, words: str) -> Rule:
        """Return the rule of a server that refuses in these words."""
        seen: set[str] = set()

        def refuse(body: JSON) -> str | None:
            broken = self.is_broken(dialect, body)
            sent = json.dumps(body.get("messages", body.get("input")))
            if not broken or (self.once and sent in seen):
                return None
            seen.add(sent)
            said = words
            for name, value in broken.items() if isinstance(broken, Mapping) else ():
                said = said.replace(f"{{{name}}}", str(value))
            return said

        return refuse


@dataclass(kw_only=True)
class Bot:
    """A bot of one service, and what became of its turns.

    Attributes:
        runner: The runner.
        service: The service.
        ran: The tools that ran, in order.
        asked: The tools that were asked for, in order.
        events: The events of each turn.
    """

    runner: ToolSearchRunner
    service: RawService
    ran: list[str]
    asked: list[str] = field(default_factory=list)
    events: list[list[RunnerEvent]] = field(default_factory=list)

    async def ask(self, tool: str, *more: ContentPart) -> None:
        """Ask for a tool, which is the last word of the message."""
        words = f"Please use {tool}"
        message: str | Sequence[ContentPart] = [*more, TextPart(words)] if more else words
        self.asked.append(tool)
        self.events.append([event async for event in self.runner.run(message, conversation="c")])

    def check(self, rule: ServiceRule) -> None:
        """Hold that each turn has an answer, and that each tool that was asked for ran once."""
        for events in self.events:
            done = events[-1]
            assert isinstance(done, Done), events
            assert done.answer.strip()
        assert len(self.service.refused) <= rule.refusals, self.service.refused
        if rule.runs_tools:
            expected = [tool for tool in self.asked if tool not in rule.lost]
            assert [tool for tool in self.ran if tool not in rule.lost] == expected


async def five_turns(bot: Bot) -> None:
    """Ask for five tools, one a turn."""
    for tool in TOOLS:
        await bot.ask(tool)


async def picture_then_text(bot: Bot) -> None:
    """Send a picture, and then texts."""
    await bot.ask(TOOLS[0], PICTURE)
    await bot.ask(TOOLS[1])
    await bot.ask(TOOLS[2])


@asynccontextmanager
async def bot_of(
    rule: ServiceRule,
    dialect: Dialect,
    model: str,
    *,
    words: str,
    status: int = 400,
    profile: ProviderProfile | None = None,
) -> AsyncIterator[Bot]:
    """Yield a bot whose service enforces a rule in these words.

    Args:
        rule: The rule.
        dialect: The dialect of the service.
        model: The name of the model.
        words: The message of a refusal, or its whole body in JSON.
        status: The status of a refusal.
        profile: What is known of the service; None: what the table says of a host on loopback.
    """
    service = RawService(
        rule=rule.refusing(dialect, words),
        reasoning=rule.reasoning,
        searches=rule.searches,
        status=status,
        wrap=refusal,
    )
    with service.running():
        config = ProviderConfig.model_validate(
            {
                "id": "p", "type": dialect, "model": model, "api_key_env": None, "timeout_s": 10,
                "base_url": service.url if dialect == "anthropic" else f"{service.url}/v1",
                **rule.provider,
            }
        )  # fmt: skip
        provider = build_provider(config, api_key="k" * 20, fallbacks=True)
        strategy = rule.strategies.get(dialect, provider.profile.strategy)
        changed = replace(provider.profile, strategy=strategy, **rule.facts)
        provider.profile = profile or changed
        ran: list[str] = []
        runner = ToolSearchRunner(
            providers={"p": provider},
            tools=[
                *(tool_of(name, ran, rule) for name in rule.tools),
                *(ExecutableTool(tool=tool, function=_nothing) for tool in rule.extra),
            ],
            config=ToolSearchConfig(tool_schema_mode="tool_search", **rule.config),
            **rule.settings,
        )
        try:
            yield Bot(runner=runner, service=service, ran=ran)
        finally:
            await runner.aclose()
            await provider.aclose()


def refusal(words: str) -> object:
    """Return the body of a refusal: words that are a body in JSON, or the vendors' around words."""
    try:
        return json.loads(words)
    except ValueError:
        return vendor_error(words)


def tool_of(name: str, ran: list[str], rule: ServiceRule) -> ExecutableTool:
    """Return a tool that notes that it ran."""

    def function(text: str, **_: object) -> str | list[TextPart | ImagePart]:
        ran.append(name)
        said = rule.says if len(ran) == 1 else f"{name} is done by {text}"
        said = f"{said}. {rule.result}"
        return [TextPart(said), PICTURE] if rule.pictured else said

    properties = {"text": {"type": "string"}, **rule.properties.get(name, {})}
    schema = {"type": "object", "properties": properties, "required": ["text"]}
    description = f"Can {name.replace('_', ' ')}."
    kind: ToolKind = "mcp" if rule.server else "plugin"
    tool = Tool(
        name=name, description=description, parameters=schema, server=rule.server, kind=kind
    )
    return ExecutableTool(tool=tool, function=function)


def _nothing(**_: object) -> str:
    return "nothing"


def _declares_a_choice(_: Dialect, body: JSON) -> bool:
    return bool(body.get("tool_choice", "auto") != "auto")


def _leaves_out_names(_: Dialect, body: JSON) -> bool:
    return any(m["role"] == "tool" and not m.get("name") for m in body["messages"])


def _has_tools(_: Dialect, body: JSON) -> bool:
    return bool(body.get("tools")) or _has_calls(body)


def _has_calls(body: JSON) -> bool:
    """True if a request has calls or their results; templates without tools know neither."""
    messages = [*body.get("messages", ()), *body.get("input", ())]
    written = json.dumps(messages)
    kinds = ('"tool_calls"', '"tool"', '"tool_use"', '"tool_result"', '"function_call')
    return any(kind in written for kind in kinds)


def _shows_calls_to_no_avail(_: Dialect, body: JSON) -> bool:
    return (body.get("tool_choice") == "none" or not body.get("tools")) and _has_calls(body)


def _names_in(entries: object) -> Iterator[str]:
    for entry in entries if isinstance(entries, list) else ():
        function = entry.get("function") or entry
        yield str(function.get("name"))
        yield from _names_in(entry.get("tools"))


def keeps(name: str, tools: Sequence[str] = TOOLS) -> ServiceRule:
    """Return the rule that no function has a name, in the list or in what was loaded."""

    def is_broken(_: Dialect, body: JSON) -> bool:
        loaded = (item.get("tools") for item in body.get("input", ()) if isinstance(item, dict))
        lists = [body.get("tools"), *loaded]
        # A history may name no tool that the service does not know.
        called = re.search(rf'"name": "{name}"', json.dumps(body.get("messages", [])))
        return bool(called) or any(name in _names_in(listed) for listed in lists)

    return ServiceRule(
        is_broken=is_broken,
        dialects=("openai_chat", "anthropic", "openai_responses"),
        talk=partial(each_tool, tools),
        tools=tools,
    )


def _definitions(body: JSON) -> Iterator[JSON]:
    """Yield the functions of a request's list."""
    for entry in body.get("tools", ()):
        yield entry.get("function") or entry


def _schema_of(function: JSON) -> dict[str, Any]:
    schema: dict[str, Any] = function.get("parameters") or function.get("input_schema") or {}
    return schema


def shows_picture(body: JSON) -> bool:
    """True if a request has a picture."""
    return _pictures(body) > 0


def _pictures(body: JSON) -> int:
    said = json.dumps(body)
    return sum(said.count(f'"type": "{kind}"') for kind in ("image_url", "input_image", "image"))


def _shows_large_among_many(_: Dialect, body: JSON) -> bool:
    return _pictures(body) > 20 and LARGE.url.partition(",")[2] in json.dumps(body)


async def _many_pictures(bot: Bot) -> None:
    for tool in TOOLS:
        await bot.ask(tool, *[PICTURE] * 40)


async def _large_picture_first(bot: Bot) -> None:
    await bot.ask(TOOLS[0], LARGE)
    for tool in TOOLS[1:]:
        await bot.ask(tool, *[PICTURE] * 9)


def _is_recursive(_: Dialect, body: JSON) -> bool:
    return any(leads_back(schema, schema, ()) for schema in map(_schema_of, _definitions(body)))


def leads_back(node: object, root: JSON, within: tuple[str, ...]) -> bool:
    """True if a reference leads to a definition that it stands in."""
    if isinstance(node, list):
        return any(leads_back(inner, root, within) for inner in node)
    if not isinstance(node, dict):
        return False
    reference = node.get("$ref")
    if isinstance(reference, str):
        if reference in (*within, "#"):
            return True
        target: Any = root
        for step in reference.removeprefix("#/").split("/"):
            target = target[step]
        if leads_back(target, root, (*within, reference)):
            return True
    return any(leads_back(inner, root, within) for inner in node.values())


def levels(node: object) -> int:
    """Return the levels of a schema, as the thread counts them: members, the root included."""
    if not isinstance(node, dict):
        return 0
    named = (node.get(key, {}).values() for key in ("properties", "$defs"))
    listed = (node.get(key, ()) for key in ("anyOf", "oneOf", "allOf"))
    members = [member for group in (*named, *listed) for member in group]
    members += [node.get("items"), node.get("additionalProperties")]
    return 1 + max(map(levels, members))


def _is_deep(_: Dialect, body: JSON) -> bool:
    return any(levels(_schema_of(function)) > 10 for function in _definitions(body))


def _is_wordy(_: Dialect, body: JSON) -> bool:
    return any(len(function.get("description", "")) > 1024 for function in _definitions(body))


def _nested(depth: int) -> dict[str, Any]:
    """Return a schema of so many levels."""
    schema: dict[str, Any] = {"type": "string"}
    for _ in range(depth - 1):
        schema = {"type": "object", "properties": {"in": schema}, "required": ["in"]}
    return schema


TREE = {
    "type": "object",
    "properties": {"tree": {"$ref": "#/$defs/Node"}, "at": {"$ref": "#/$defs/Place"}},
    "$defs": {
        "Node": {
            "type": "object",
            "properties": {
                "name": {"type": "string"},
                "children": {"type": "array", "items": {"$ref": "#/$defs/Node"}},
                "place": {"$ref": "#/$defs/Place"},
            },
        },
        "Place": {"type": "object", "properties": {"town": {"type": "string"}}},
    },
}


def _beside(
    is_broken: Callable[[Dialect, JSON], bool], parameters: JSON, description: str = "Prunes."
) -> ServiceRule:
    """Return a rule that one tool breaks, which stands beside those that are asked for."""
    tool = Tool(
        name="prune", description=description, parameters=dict(parameters), always_load=True
    )
    return ServiceRule(
        is_broken=is_broken,
        dialects=("openai_chat", "anthropic", "openai_responses"),
        talk=five_turns,
        extra=(tool,),
    )


def _reasons_with_tools(_: Dialect, body: JSON) -> bool:
    return bool(body.get("tools")) and body.get("reasoning_effort") != "none"


def _calls_without_thought(_: Dialect, body: JSON) -> bool:
    """True if a call does not follow reasoning of some text, since the last results."""
    thought = False
    for item in body["input"]:
        kind = item.get("type", "message")
        if kind == "reasoning":
            texts = [part["text"] for part in item.get("content") or ()]
            thought = thought or any(text.strip() for text in texts)
        elif kind == "function_call":
            if not thought:
                return True
        elif item.get("role") != "assistant":
            thought = False
    return False


def _has_listed_output(_: Dialect, body: JSON) -> bool:
    outputs = (item.get("output", "") for item in body["input"])
    return any(not isinstance(output, str) for output in outputs)


def _wants_encrypted_content(_: Dialect, body: JSON) -> bool:
    return "reasoning.encrypted_content" in (body.get("include") or ())


def sealed(step: str, _: JSON) -> dict[str, Any]:
    """Return the encrypted reasoning of a reply, with an id as long as Copilot's."""
    thought = {"type": "reasoning", "id": f"rs_{step}" + "x" * 380, "summary": []}
    return {**thought, "encrypted_content": f"sealed-{step}"}


def declared_lists(body: JSON) -> list[JSON]:
    """Return each definition of a request, in its list and in what was loaded."""
    entries = [*body.get("input", ()), *body.get("messages", ())]
    loaded = [tool for entry in entries for tool in entry.get("tools") or ()]
    return [*(body.get("tools") or ()), *loaded]


def _declares_twice(_: Dialect, body: JSON) -> bool:
    names = [(tool.get("function") or tool).get("name") for tool in declared_lists(body)]
    return len(names) != len(set(names))


def _has_web_run(_: Dialect, body: JSON) -> bool:
    spaces = [tool for tool in declared_lists(body) if tool.get("type") == "namespace"]
    return any(s["name"] == "web" and "run" in _names_in(s["tools"]) for s in spaces)


async def each_tool(tools: Sequence[str], bot: Bot) -> None:
    """Ask for each tool, one a turn."""
    for tool in tools:
        await bot.ask(tool)


def _replies(body: JSON) -> list[JSON]:
    return [m for m in body["messages"] if m["role"] == "assistant"]


def _lacks_reasoning(_: Dialect, body: JSON) -> bool:
    return any(not isinstance(m.get("reasoning_content"), str) for m in _replies(body))


def _lacks_content(_: Dialect, body: JSON, *, may_be_empty: bool) -> bool:
    """True if a reply with calls has no content, or an empty one where that will not do."""
    contents = [m["content"] for m in _replies(body) if m.get("tool_calls")]
    return any(c is None or not (c or may_be_empty) for c in contents)


def _repeats_a_role(_: Dialect, body: JSON) -> bool:
    """Do as Ministral's template, in which replies with calls do not count, nor do results."""
    roles = [m["role"] for m in body["messages"] if not m.get("tool_calls")]
    said = [role for role in roles if role in ("user", "assistant")]
    return said != ["user", "assistant"] * (len(said) // 2) + ["user"] * (len(said) % 2)


def _calls_after_a_reply(_: Dialect, body: JSON) -> bool:
    pairs = pairwise(m for m in body["messages"] if m["role"] != "system")
    begins = body["messages"][:2][-1].get("tool_calls")
    return bool(begins) or any(b.get("tool_calls") and a["role"] == "assistant" for a, b in pairs)


def _has_many_calls(most: int, _: Dialect, body: JSON) -> bool:
    return any(len(m.get("tool_calls") or ()) > most for m in _replies(body))


def _has_system(_: Dialect, body: JSON) -> bool:
    return any(m["role"] in ("system", "developer") for m in body["messages"])


def _words_before_calls(_: str, __: JSON) -> dict[str, Any]:
    return {"content": "Let me see."}


RULES: Mapping[str, ServiceRule] = {
    "every reply has reasoning": ServiceRule(is_broken=_lacks_reasoning, talk=five_turns),
    "replies with calls have content that is a string": ServiceRule(
        is_broken=partial(_lacks_content, may_be_empty=True), talk=five_turns
    ),
    "replies with calls have content that is not empty": ServiceRule(
        is_broken=partial(_lacks_content, may_be_empty=False), talk=five_turns, refusals=2
    ),
    # Under Mistral's rules, which these names have, text and calls are two messages.
    "roles alternate": ServiceRule(
        is_broken=_repeats_a_role,
        talk=five_turns,
        reasoning=_words_before_calls,
        model="ministral-3-14b",
    ),
    "a call follows a message of the user's or a result": ServiceRule(
        is_broken=_calls_after_a_reply,
        talk=five_turns,
        reasoning=_words_before_calls,
        model="ministral-3-14b",
    ),
    "a reply has one call": ServiceRule(
        is_broken=partial(_has_many_calls, 1), talk=five_turns, searches=2
    ),
    "a reply has at most 128 calls": ServiceRule(
        is_broken=partial(_has_many_calls, 128), talk=five_turns, searches=131
    ),
    "results name their functions": ServiceRule(is_broken=_leaves_out_names, talk=five_turns),
    "no message of the system's": ServiceRule(is_broken=_has_system, talk=five_turns),
    "no function is named tool_search": keeps("tool_search"),
    **{
        f"no function is named {name}": keeps(name, (*TOOLS[:2], name, *TOOLS[2:]))
        for name in ("python", "search", "web_search", "image_gen")
    },
    "no schema is recursive": _beside(_is_recursive, TREE),
    "no schema has more than 10 levels": _beside(_is_deep, _nested(14)),
    "no description has more than 1024 characters": _beside(
        _is_wordy, {"type": "object", "properties": {}}, "Prunes trees. " * 200
    ),
    "no pictures": ServiceRule(
        is_broken=lambda _, body: shows_picture(body),
        dialects=("openai_chat", "anthropic", "openai_responses"),
        talk=picture_then_text,
    ),
    "at most 100 pictures": ServiceRule(
        is_broken=lambda _, body: _pictures(body) > 100,
        dialects=("anthropic",),
        talk=_many_pictures,
    ),
    "no large picture among more than 20": ServiceRule(
        is_broken=_shows_large_among_many,
        dialects=("anthropic",),
        talk=_large_picture_first,
    ),
    "no result says what is forbidden": ServiceRule(
        is_broken=lambda _, body: FORBIDDEN in json.dumps(body),
        dialects=("openai_chat", "anthropic", "openai_responses"),
        talk=five_turns,
        says=FORBIDDEN,
    ),
    "tool_choice is auto or left out": ServiceRule(
        is_broken=_declares_a_choice,
        dialects=("openai_chat", "openai_responses"),
        talk=five_turns,
        settings={"max_steps": 2},
    ),
    "functions have reasoning_effort none": ServiceRule(
        is_broken=_reasons_with_tools,
        talk=five_turns,
    ),
    "calls follow their reasoning_text": ServiceRule(
        is_broken=_calls_without_thought,
        dialects=("openai_responses",),
        talk=five_turns,
    ),
    "a call's output is a string": ServiceRule(
        is_broken=_has_listed_output,
        dialects=("openai_responses",),
        talk=five_turns,
        pictured=True,
    ),
    "no encrypted reasoning is asked for": ServiceRule(
        is_broken=_wants_encrypted_content,
        dialects=("openai_responses",),
        talk=five_turns,
        model="gpt-5.5",
        provider={"strategy": "openai_responses"},
    ),
    "no id is longer than 64 characters": ServiceRule(
        is_broken=lambda _, body: any(len(item.get("id") or "") > 64 for item in body["input"]),
        dialects=("openai_responses",),
        talk=five_turns,
        reasoning=sealed,
        refusals=0,
    ),
    "no function is declared twice": ServiceRule(
        is_broken=_declares_twice,
        talk=partial(each_tool, (*TOOLS[:2], *TOOLS[:2], TOOLS[0])),
        model="kimi-k3",
        provider={"strategy": "tools_in_messages"},
        refusals=0,
        searches=2,
    ),
    "no function is web.run": ServiceRule(
        is_broken=_has_web_run,
        dialects=("openai_responses",),
        talk=partial(each_tool, ("run", *TOOLS[:2])),
        tools=("run", *TOOLS[:2]),
        server="web",
        model="gpt-5.5",
        provider={"strategy": "openai_responses", "tool_search": "deferred"},
    ),
    "no calls are shown where none may be made": ServiceRule(
        is_broken=_shows_calls_to_no_avail,
        talk=five_turns,
        settings={"max_steps": 2},
    ),
    "no tools": ServiceRule(
        is_broken=_has_tools,
        dialects=("openai_chat", "anthropic", "openai_responses"),
        talk=five_turns,
        runs_tools=False,
    ),
}
"""Every rule, by its name."""


def xai() -> RawService:
    """Return a service that keeps the name of our search tool, and says so as xAI does."""
    words = (
        '{"code": "invalid-argument", "error": "The function name tool_search is reserved for the '
        'tool_search tool"}'
    )
    rule = RULES["no function is named tool_search"]
    return RawService(rule=lambda body: rule.refusing(dialect_of(body), words)(body), wrap=refusal)


def dialect_of(body: JSON) -> Dialect:
    """Return the dialect of a body that is none of Anthropic's."""
    return "openai_responses" if "input" in body else "openai_chat"
