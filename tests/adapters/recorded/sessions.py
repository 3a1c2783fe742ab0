"""Recorded requests: sessions that lead their conversations, and the allowed differences.

Allowed are other ids (and so a message with its text in place of its parts), the search
tool's name and parameters, descriptions and wording (the instructions, a search's text
besides the names that it found), key order, cache breakpoints, the text after references.
Lists of ordinary functions are compared by name: ours have an order of their own.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import yaml

from tests.adapters.recorded.comparing import COMPARERS, MESSAGES, SEARCH_TOOLS
from tests.adapters.recorded.traffic import DIALECTS, IMPORTERS, READERS, RECORDED, WRITERS
from tool_search.config.conversation import ToolSearchConfig
from tool_search.core.catalog.catalog import ToolCatalog
from tool_search.core.catalog.tool import Tool
from tool_search.core.conversation.calls import AnsweredCall, CallResult
from tool_search.core.messages import Message, RequestPlan, ToolCall
from tool_search.core.profiles import ProviderProfile
from tool_search.core.services import SearchResult
from tool_search.core.settings import Dialect
from tool_search.providers.base import ReplyEnd
from tool_search.providers.profile_choice import profile_for
from tool_search.runner.session.session import ToolSearchSession

Way = Literal["auto", "generic", "deferred", "hosted"]
"""How a session tells of tools: as is known best, by a list, or a form of Responses."""

SEARCH = "search_tools"
"""What the recorded clients call their search tool, and so our sessions theirs."""

# What the caller of a provider settles, and a request says or leaves out as he likes.
_SETTINGS = (
    "include", "max_tokens", "parallel_tool_calls", "reasoning", "store", "stream",
    "stream_options", "tool_choice",
)  # fmt: skip
# Where nothing else is deferred: what a search tool is there for.
_HIDDEN = Tool(name="not_in_the_recording")


@dataclass(frozen=True)
class Exchange:
    """A recorded request and its reply: an object, or a stream's events."""

    dialect: Dialect
    request: dict[str, Any]
    reply: Any

    def read(self, plan: RequestPlan, profile: ProviderProfile) -> ReplyEnd:
        """Return the reply as the adapter reads it."""
        reader = READERS[self.dialect]
        if isinstance(self.reply, dict):
            end: ReplyEnd = reader.from_wire(self.reply, plan, profile)
            return end
        stream = reader.StreamedReply(plan, profile)
        for event in self.reply:
            list(stream.read(event))
        last = stream.end()
        (end,) = [last] if isinstance(last, ReplyEnd) else last
        return end

    @property
    def history(self) -> tuple[Message, ...]:
        """The request's history in the neutral form."""
        messages = self.request[MESSAGES[self.dialect]]
        read = IMPORTERS[self.dialect].history_from_wire
        history: tuple[Message, ...] = read(messages, search_tool_name=SEARCH)
        return history

    @property
    def tools(self) -> Iterator[tuple[Tool, bool]]:
        """The functions that it declares, and whether they are deferred or come late."""
        for entry in self.request.get("tools") or ():
            for tool in entry.get("tools") or [entry]:
                function = tool.get("function", tool)
                if function.get("name") not in (None, *SEARCH_TOOLS):
                    yield _tool(function), bool(tool.get("defer_loading"))
        messages = self.request[MESSAGES[self.dialect]]
        for item in messages if not isinstance(messages, str) else ():
            yield from ((_tool(tool), True) for tool in item.get("tools") or ())

    @property
    def searches(self) -> bool:
        """True if it declares a search tool, or a deferred tool."""
        declared = json.dumps(self.request.get("tools") or [])
        return "defer_loading" in declared or any(name in declared for name in SEARCH_TOOLS)


def _tool(function: Mapping[str, Any]) -> Tool:
    schema = function.get("input_schema", function.get("parameters"))
    description = function.get("description") or ""
    return Tool(name=function["name"], description=description, parameters=schema or {})


def recordings() -> Iterator[tuple[str, dict[int, Exchange]]]:
    """Yield the exchanges of each recording in our dialects, by their number in it."""
    loader: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    for path in sorted(RECORDED.glob("pydantic-ai/**/*.yaml")):
        entries = yaml.load(path.read_text(encoding="utf-8"), Loader=loader)["interactions"]  # noqa: S506 - safe
        found = {}
        for number, entry in enumerate(entries):
            request = entry["request"]
            dialect = DIALECTS.get(request["uri"].partition("?")[0])
            if dialect:
                found[number] = Exchange(dialect, request["parsed_body"], _reply(entry["response"]))
        if found:
            yield path.stem, found


def _reply(response: dict[str, Any]) -> Any:
    if response.get("parsed_body"):
        return response["parsed_body"]
    lines = response["body"]["string"].splitlines()
    return [json.loads(line[5:]) for line in lines if line.startswith("data:")]


@dataclass
class Led:
    """A session that says what was said in a recording."""

    session: ToolSearchSession
    profile: ProviderProfile

    @classmethod
    def over(cls, exchanges: Sequence[Exchange], way: Way) -> Led:
        """Return a session at the beginning of a recorded request, its history imported.

        Args:
            exchanges: That request's, and those that follow it, whose tools may be found.
            way: Its way of declaring tools.
        """
        first = exchanges[0]
        mode: Literal["tool_search", "full"] = "tool_search" if first.searches else "full"
        config = ToolSearchConfig(tool_schema_mode=mode, search_tool_name=SEARCH)
        led = cls(
            ToolSearchSession(_catalog(exchanges), config=config),
            profile_for(
                first.dialect,
                first.request["model"],
                # The recordings have lists that grow at their end.
                strategy="generic"
                if first.dialect == "openai_chat" or way == "generic"
                else "auto",
                search_form=way if way in ("deferred", "hosted") else "client",
            ),
        )
        history = first.history
        last = max(place for place, message in enumerate(history) if message.role == "user")
        led.session.adopt_history(history[:last])
        led.session.begin_turn(history[last].content, profile=led.profile)
        for message in history[last + 1 :]:
            if message.role == "assistant":
                led.answer(led.session.accept(message), history)
        return led

    def answer(self, calls: Iterable[ToolCall], history: Sequence[Message]) -> None:
        """Commits the results that a history has for calls."""
        for call in calls:
            given = [m for m in history if m.role == "tool" and m.tool_call_id == call.id]
            self.session.commit([self._result(call, given[-1])])

    def go_on(self, end: ReplyEnd, history: Sequence[Message]) -> None:
        """Take a reply in, and what the next request's history answers it with."""
        calls = self.session.accept(end.message)
        self.answer(calls, history)
        if not calls:
            self.session.begin_turn(history[-1].content, profile=self.profile)

    def _result(self, call: ToolCall, given: Message) -> CallResult:
        result = SearchResult.from_json(given.text) if given.name == SEARCH else None
        if result is None:
            decision = self.session.decide(call)
            return CallResult(decision=decision, content=given.text, is_error=given.is_error)
        answer = AnsweredCall(call=call, content=result.to_json(), result=result)
        return CallResult(decision=answer, content=answer.content)

    def next_request(self, recorded: Mapping[str, Any]) -> tuple[RequestPlan, dict[str, Any]]:
        """Return the next request, with what the recorded one's caller had settled."""
        plan = self.session.plan(self.profile)
        settings = {key: recorded.get(key) for key in _SETTINGS}
        writer = WRITERS[self.profile.dialect]
        return plan, writer.to_wire(plan, self.profile, extra_body=settings)


def _catalog(exchanges: Sequence[Exchange]) -> ToolCatalog:
    """Core is what the first request shows and no search finds; the rest is deferred."""
    tools: dict[str, Tool] = {}
    late = {name for exchange in exchanges for name in _found(exchange.history)}
    for place, exchange in enumerate(exchanges):
        for tool, deferred in exchange.tools:
            core = not (place or deferred or tool.name in late)
            tools.setdefault(tool.name, replace(tool, always_load=core))
    waiting = any(not tool.always_load for tool in tools.values())
    hidden = [_HIDDEN] if exchanges[0].searches and not waiting else []
    return ToolCatalog([*tools.values(), *hidden])


def _found(history: Iterable[Message]) -> Iterator[str]:
    for message in history:
        result = SearchResult.from_json(message.text) if message.name == SEARCH else None
        yield from result.names if result else ()


def comparable(dialect: Dialect, body: Mapping[str, Any], *, search: bool = True) -> dict[str, Any]:
    """Return a request without what may differ.

    Args:
        dialect: Its format.
        body: The request.
        search: Whether its list says that there is a search tool.
    """
    return COMPARERS[dialect](body, search=search)
