"""What the tests of conversations share: catalogs, providers, and a driven session."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from tool_search import (
    CallResult,
    Message,
    RequestPlan,
    RunCall,
    Tool,
    ToolCall,
    ToolCatalog,
    ToolSearchConfig,
    ToolSearchSession,
    profile_for,
)
from tool_search.core.profiles import ProviderProfile

CLAUDE = profile_for("anthropic", "claude-sonnet-4-6")
COMPATIBLE = profile_for("anthropic", "glm-5", base_url="https://llm.example.com/anthropic")
OPENAI = profile_for("openai_chat", "gpt-5.4", strategy="generic")
BOUND = profile_for("anthropic", "claude-opus-5-5")
BOUND_GENERIC = BOUND.generic()
UNLIMITED = replace(OPENAI, max_tools=None)
PROFILES: Mapping[str, ProviderProfile] = {
    "claude": CLAUDE,
    "compatible": COMPATIBLE,
    "openai": OPENAI,
    "bound": BOUND,
    "bound_generic": BOUND_GENERIC,
}


def tool(name: str, **fields: Any) -> Tool:
    """A tool that wants a count."""
    schema = {"type": "object", "properties": {"count": {"type": "integer"}}, "required": ["count"]}
    return Tool(**{"name": name, "description": f"Common {name}.", "parameters": schema, **fields})


def toolbox(count: int, *, core: int = 0, server: str | None = None) -> list[Tool]:
    """Deferred tools `tool_000`..., and core tools `core_000`... ."""
    kind = "mcp" if server else "plugin"
    deferred = [tool(f"tool_{n:03}", kind=kind, server=server) for n in range(count)]
    return [*deferred, *(tool(f"core_{n:03}", always_load=True) for n in range(core))]


class Chat:
    """A conversation with a model that does what a test says.

    Args:
        tools: The catalog.
        config: Fields of `ToolSearchConfig`; the mode is `tool_search` unless given.
        session: More arguments of the session.
    """

    def __init__(
        self, tools: Iterable[Tool], config: Mapping[str, Any] | None = None, **session: Any
    ) -> None:
        settings = {"tool_schema_mode": "tool_search", **(config or {})}
        self.config = ToolSearchConfig.model_validate(settings)
        self.session = ToolSearchSession(ToolCatalog(tools), config=self.config, **session)
        self._calls = 0

    def begin(
        self,
        profile: ProviderProfile = OPENAI,
        text: str = "hello",
        *,
        tools: Iterable[Tool] | None = None,
        roles: Sequence[str] = (),
    ) -> RequestPlan:
        """A user turn; gives its first request."""
        catalog = None if tools is None else ToolCatalog(tools)
        self.session.begin_turn(text, profile=profile, catalog=catalog, roles=roles)
        return self.session.plan(profile)

    def turn(
        self, profile: ProviderProfile = OPENAI, text: str = "hello", **how: Any
    ) -> RequestPlan:
        """The same, answered at once."""
        plan = self.begin(profile, text, **how)
        self.answer()
        return plan

    def answer(self, text: str = "Done.") -> None:
        """The model's last reply of a turn."""
        self.session.accept(Message(role="assistant", content=text))

    def call(self, name: str, arguments: Any = None, *, result: str = "ok") -> Message:
        """A reply that calls one tool, run to its result; gives the result's message."""
        return self.calls((name, arguments), result=result)[0]

    def calls(self, *wanted: tuple[str, Any], result: str = "ok") -> list[Message]:
        """A reply that calls several tools; gives the messages of their results."""
        made = []
        for name, arguments in wanted:
            self._calls += 1
            written = arguments if isinstance(arguments, str) else json.dumps(arguments or {})
            made.append(ToolCall(id=f"c{self._calls}", name=name, arguments=written))
        calls = self.session.accept(Message(role="assistant", tool_calls=tuple(made)))
        for call in calls:
            decision = self.session.decide(call)
            if isinstance(decision, RunCall):
                self.session.commit([CallResult(decision=decision, content=result)])
            else:
                outcome = CallResult(
                    decision=decision, content=decision.content, is_error=decision.is_error
                )
                self.session.commit([outcome])
        return list(self.session.history[-len(calls) :])

    def search(self, query: Any, **arguments: Any) -> dict[str, Any]:
        """A search by the model; gives the result it reads."""
        message = self.call(self.config.search_tool_name, {"query": query, **arguments})
        content: dict[str, Any] = json.loads(message.text)
        return content

    def find(self, *names: str) -> None:
        """Searches for tools by their exact names, one search each."""
        for name in names:
            self.search(name, limit=1)

    def decide(self, name: str, arguments: str = "{}") -> Any:
        """What becomes of a call, without making it."""
        return self.session.decide(ToolCall(id="d", name=name, arguments=arguments))

    def restarted(self, tools: Iterable[Tool] | None = None, **session: Any) -> Chat:
        """The conversation after the bot's process ended and began again, through JSON."""
        record = type(self.session.record()).from_dict(
            json.loads(json.dumps(self.session.record().to_dict()))
        )
        again = Chat(())
        again.config, again._calls = self.config, self._calls
        catalog = self.session.catalog if tools is None else ToolCatalog(tools)
        again.session = ToolSearchSession(catalog, config=self.config, record=record, **session)
        return again

    @property
    def codes(self) -> list[str]:
        """The codes of the notices since the last look."""
        return [notice.code for notice in self.session.take_notices()]


def deferred(plan: RequestPlan) -> list[str]:
    """The names that a request declares deferred."""
    return [entry.tool.name for entry in plan.tools if entry.deferred]
