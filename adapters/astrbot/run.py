"""One conversation of AstrBot's, and one run of its agent in it; loads nothing of AstrBot.

AstrBot owns the history and runs the tools. The session decides which tools a request declares,
and answers searches.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from itertools import count
from typing import Any

from tool_search.adapters.astrbot.settings import AstrBotSettings, read_settings
from tool_search.catalog.names import wire_name
from tool_search.catalog.tool import Tool
from tool_search.conversation.calls import CallDecision, CallResult, RunCall
from tool_search.conversation.session import ToolSearchSession
from tool_search.discovery.search_tool import CALL_TOOL_NAME
from tool_search.messages import Message, RequestPlan, ToolCall
from tool_search.providers.profiles import ProviderProfile, profile_for
from tool_search.search.index.protocol import SearchResult
from tool_search.strategies import ToolsAssembler
from tool_search.values.json import compact_json

__all__ = ["LIMITED", "UNLIMITED", "AstrBotConversation", "AstrBotRun"]

LIMITED = profile_for("openai_chat", "unknown", strategy="generic")
"""The profile of a provider with only a known dialect: OpenAI's or Gemini's."""
UNLIMITED = replace(LIMITED, max_tools=None)
"""The profile of such a provider with Anthropic's dialect, and of AstrBot itself."""


class AstrBotConversation:
    """The state of one conversation between its messages.

    Args:
        session: The session of the conversation.
        settings: Its settings.
        assembler: Makes its tool lists.

    Attributes:
        session: The session of the conversation.
        settings: Its settings.
        order: Every name that a filtered list has declared, in the order of appearance.
    """

    def __init__(
        self,
        session: ToolSearchSession,
        settings: AstrBotSettings | None = None,
        *,
        assembler: ToolsAssembler | None = None,
    ) -> None:
        self.session = session
        self.settings = settings or read_settings({})
        self.order: list[str] = []
        self._assembler = assembler or ToolsAssembler()
        self._calls = count()

    def plan_over(self, history: Iterable[Message], profile: ProviderProfile) -> RequestPlan:
        """Return the plan of a request with a history of AstrBot's, not the session's."""
        record = replace(self.session.record(), history=tuple(history))
        shown = ToolSearchSession(
            self.session.catalog,
            config=self.settings.config,
            assembler=self._assembler,
            record=record,
        )
        return shown.plan(profile)

    def decide(self, name: str, arguments: Mapping[str, Any]) -> CallDecision:
        """Decide how to handle a call, and record what it discovers."""
        request = ToolCall(
            id=f"astrbot_{next(self._calls)}", name=name, arguments=compact_json(dict(arguments))
        )
        (call,) = self.session.accept(Message(role="assistant", tool_calls=(request,)))
        decision = self.session.decide(call)
        content = "" if isinstance(decision, RunCall) else decision.content
        failed = not isinstance(decision, RunCall) and decision.is_error
        self.session.commit((CallResult(decision=decision, content=content, is_error=failed),))
        return decision


class AstrBotRun:
    """The tools of one run of AstrBot's agent.

    Args:
        conversation: The conversation of the run; its turn has begun.
        executors: The tools that AstrBot runs, by name; they are guards if it has these.
        search_tool_name: The search tool's name in the conversation.
    """

    def __init__(
        self,
        conversation: AstrBotConversation,
        executors: Mapping[str, Any],
        *,
        search_tool_name: str,
    ) -> None:
        self.conversation = conversation
        self.executors = dict(executors)
        self.search_tool_name = search_tool_name
        catalog = conversation.session.catalog
        self.added = [name for name in executors if name not in catalog]
        self._removed: set[str] = set()

    @property
    def session(self) -> ToolSearchSession:
        """The session of the conversation."""
        return self.conversation.session

    @property
    def settings(self) -> AstrBotSettings:
        """The settings of the conversation."""
        return self.conversation.settings

    def add(self, name: str, executor: Any) -> None:
        """Add a tool of another plugin, as a core tool."""
        if name not in self.executors:
            self.added.append(name)
        self._removed.discard(name)
        self.executors[name] = executor

    def remove(self, name: str) -> None:
        """Remove a tool from this run, for another plugin."""
        self.executors.pop(name, None)
        self._removed.add(name)
        self.added = [each for each in self.added if each != name]

    def plan(self, profile: ProviderProfile) -> RequestPlan:
        """Return the plan for a provider, with room for the tools that plugins added."""
        if profile.max_tools is not None:
            room = max(1, profile.max_tools - len(self.added))
            profile = replace(profile, max_tools=room)
        return self.session.plan(profile)

    def declared(self, profile: ProviderProfile = UNLIMITED) -> tuple[str, ...]:
        """Return the names that a filtered list declares, in the order of appearance."""
        order = self.conversation.order
        names = [n for n in self.plan(profile).tools.names if self.is_here(n)]
        wanted = dict.fromkeys((*names, *self.added))
        order.extend(name for name in wanted if name not in order)
        return tuple(name for name in order if name in wanted)

    def name_of(self, tool: Tool) -> str:
        """Return a tool's name in this conversation, and so in `executors`."""
        known = self.session.catalog.by_source.get(tool.source)
        return tool.name if known is None else known.name

    def definition(self, name: str) -> Tool | None:
        """Return the definition of a tool, removed or not, by its name or its wire name."""
        catalog, discoveries = self.session.catalog, self.session.discoveries
        tool = catalog.get(name) or catalog.by_wire_name.get(name)
        if tool is not None:
            return tool
        gone = (entry.tool for entry in discoveries if name in (entry.name, wire_name(entry.name)))
        return next(gone, None)

    def is_own(self, name: str) -> bool:
        """True if a tool is the library's own."""
        return name in (self.search_tool_name, CALL_TOOL_NAME) and name not in self.executors

    def is_here(self, name: str) -> bool:
        """True if a tool can be declared; a removed one can, if it was discovered."""
        if name in self._removed:
            return False
        return name in self.executors or self.is_own(name) or name in self.session.discoveries

    def definition_to_check(self, name: str) -> Tool | None:
        """Return the definition of a tool whose calls are checked before they run, or None.

        Checked are deferred tools that were not discovered, wire names, discovered tools
        whose server is gone, and tools that are declared with another schema than
        AstrBot's: their arguments may have other keys.
        """
        if name in self._removed or self.is_own(name):
            return None
        tool, discoveries = self.definition(name), self.session.discoveries
        if tool is not None and tool.name in self.executors and tool.declared_schema.changes:
            return tool
        if tool is not None and tool.name in discoveries and tool.name not in self.executors:
            return tool
        if name in discoveries or tool is None or tool.name not in self.executors:
            return None
        is_core = any(core is tool for core in self.session.catalog.core)
        return None if is_core and tool.name == name else tool

    def search(self, arguments: Mapping[str, Any]) -> str:
        """Return the answer to a search, in the form that the history keeps."""
        decision = self.conversation.decide(self.search_tool_name, arguments)
        if isinstance(decision, RunCall):
            return ""
        result = decision.result
        return decision.content if result is None else self._with_schemas(result).to_json()

    def _with_schemas(self, result: SearchResult) -> SearchResult:
        """Return the result with the schemas of tools that exceed a list of OpenAI's length."""
        declared = self.plan(LIMITED).tools
        catalog = self.session.catalog
        matches = tuple(
            match
            if declared.declares(match.name)
            else replace(match, parameters=catalog[match.name].declared_schema.schema)
            for match in result.matches
        )
        return replace(result, matches=matches)

    def learn(self, name: str, arguments: Mapping[str, Any]) -> None:
        """Record a call of a discovered tool, which search learns from."""
        if name in self.session.discoveries:
            self.conversation.decide(name, arguments)
