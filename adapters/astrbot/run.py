"""One conversation of AstrBot's, and one run of its agent in it; loads nothing of AstrBot.

AstrBot owns the history and runs the tools. A view of them says which tools a request declares,
and answers searches.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

from tool_search.adapters.astrbot.kept import ConversationId
from tool_search.adapters.astrbot.preferences import name_rule_of, provider_id
from tool_search.adapters.astrbot.reports import Savings
from tool_search.adapters.astrbot.settings import AstrBotSettings, read_settings
from tool_search.adapters.astrbot.tools import without_reminders
from tool_search.adapters.astrbot.webui.activity import Timeline
from tool_search.adapters.hosts.view import ToolView
from tool_search.adapters.wire.requests import result_text
from tool_search.catalog.schema.declared import declared_schema
from tool_search.core.catalog.naming import NAME_RULES, wire_name
from tool_search.core.catalog.tool import Tool
from tool_search.core.conversation.calls import CallDecision
from tool_search.core.discoveries import OWN_TOOLS, tool_tokens
from tool_search.core.messages import Message, RequestPlan, ToolList
from tool_search.core.profiles import ProviderProfile
from tool_search.core.services import SearchResult, Votes
from tool_search.providers.profile_choice import profile_for
from tool_search.runner.session.session import ToolSearchSession
from tool_search.search.discovery.search_tool import CALL_TOOL_NAME

__all__ = [
    "LIMITED",
    "UNLIMITED",
    "AstrBotConversation",
    "AstrBotRun",
    "SentRequest",
    "UserVotes",
    "opening_of",
    "tokens_of",
]

LIMITED = profile_for("openai_chat", "unknown", strategy="generic")
"""The profile of a provider with only a known dialect: OpenAI's or Gemini's."""
UNLIMITED = replace(LIMITED, max_tools=None)
"""The profile of such a provider with Anthropic's dialect, and of AstrBot itself."""


@dataclass(slots=True)
class UserVotes:
    """The user of a conversation's last message, and the votes for that user's searches.

    A view reads them at each search, while other conversations go on with other users.
    """

    user: str | None = None
    votes: Votes | None = None


def opening_of(history: Iterable[Message]) -> str | None:
    """Return the first message of a history, as text; None for an empty one."""
    return next((f"{said.role} {said.text}" for said in history), None)


@dataclass(frozen=True, slots=True, kw_only=True)
class SentRequest:
    """One request with tools.

    Attributes:
        provider: AstrBot's provider; None if it is not known.
        profile: Its profile.
        tools: The declared tools.
    """

    provider: Any
    profile: ProviderProfile
    tools: ToolList


def tokens_of(sent: SentRequest, conversation: AstrBotConversation) -> int:
    """Return the tokens of the definitions that a model is shown in a request."""
    tools = list(sent.tools.loaded)
    if sent.profile.is_native:  # the definitions of discovered tools are sent too
        tools += [entry.tool for entry in conversation.view.discoveries]
    return sum(map(_tokens, tools))


# 0.13 ms a definition, and most requests show those of the request before.
_tokens = lru_cache(maxsize=4_096)(tool_tokens)


class AstrBotConversation:
    """The state of one conversation between its messages.

    Args:
        view: The view of the conversation, or a session that has begun, to go on with.
        settings: Its settings.
        learned: The votes that the view ranks by.
        savings: The tokens that the bot saves; None for a count of its own.
        timeline: The requests, searches and calls so far; None for none.

    Attributes:
        view: The tools of the conversation; its messages are AstrBot's.
        settings: Its settings.
        order: Every name that a filtered list has declared, in the order of appearance.
        learned: The user of the last message, and the votes for that user's searches.
        last_request: The last request that was sent; None if there was none since the start.
        last_search: The result of the model's last search.
        full_tokens: The tokens of all definitions.
        key: The conversation's key in AstrBot; None for a run without one.
        opening: The first message of the history at the last turn; None for none.
        savings: The tokens that the bot has saved.
        timeline: Its requests, searches and calls.
    """

    def __init__(
        self,
        view: ToolView | ToolSearchSession,
        settings: AstrBotSettings | None = None,
        *,
        learned: UserVotes | None = None,
        savings: Savings | None = None,
        timeline: Timeline | None = None,
    ) -> None:
        self.timeline = timeline or Timeline()
        self.settings = settings or read_settings({})
        self.order: list[str] = []
        self.last_request: SentRequest | None = None
        self.last_search: SearchResult | None = None
        self.full_tokens = 0
        self.key: ConversationId | None = None
        self.opening: str | None = None
        self.savings = savings or Savings()
        self.learned = learned or UserVotes()
        if isinstance(view, ToolSearchSession):
            view = ToolView(view.catalog, config=self.settings.config, record=view.record())
        self.view = view

    def should_begin_anew(self, history: Iterable[Message]) -> bool:
        """True if AstrBot has cut the history of a conversation whose list is full.

        The list then begins with what the kept messages use: a provider's cache of the
        messages is lost in any case.
        """
        opening = opening_of(history)
        is_cut = opening is not None and self.opening is not None and opening != self.opening
        return is_cut and len(self.view.discoveries) >= self.settings.max_discovered

    def decide(self, name: str, arguments: Mapping[str, Any]) -> CallDecision:
        """Decide how to handle a call; a tool that it names is discovered."""
        return self.view.check(name, arguments)


def _names_of(name: str) -> set[str]:
    """Return a canonical name with those that providers take for it."""
    return {name, *(wire_name(name, rule) for rule in NAME_RULES)}


class AstrBotRun:
    """The tools of one run of AstrBot's agent.

    Args:
        conversation: The conversation of the run; its turn has begun.
        executors: The tools that AstrBot runs, by name; they are guards if it has these.
        search_tool_name: The search tool's name in the conversation.
        provider: The provider that is asked first, if it is known.

    Attributes:
        runner: Returns AstrBot's runner, once the run has started and until it ends.
    """

    def __init__(
        self,
        conversation: AstrBotConversation,
        executors: Mapping[str, Any],
        *,
        search_tool_name: str,
        provider: Any = None,
    ) -> None:
        self.runner: Callable[[], Any] = lambda: None
        self._first_provider = provider
        self.conversation = conversation
        self.executors = dict(executors)
        self.search_tool_name = search_tool_name
        catalog = conversation.view.catalog
        self.added = [name for name in executors if name not in catalog]
        self._removed: set[str] = set()

    @property
    def session(self) -> ToolView:
        """The view of the conversation."""
        return self.conversation.view

    @property
    def settings(self) -> AstrBotSettings:
        """The settings of the conversation."""
        return self.conversation.settings

    @property
    def provider(self) -> Any:
        """AstrBot's provider of the current request; None if it is not known."""
        return getattr(self.runner(), "provider", None) or self._first_provider

    def record_request(self, profile: ProviderProfile) -> None:
        """Record a request that AstrBot is about to send."""
        conversation = self.conversation
        sent = SentRequest(provider=self.provider, profile=profile, tools=self.plan(profile).tools)
        conversation.last_request = sent
        now = tokens_of(sent, conversation)
        conversation.savings.add(max(0, conversation.full_tokens - now))
        config = getattr(self.provider, "provider_config", None) or {}
        model = config.get("model") or profile.model
        conversation.timeline.request(
            f"{provider_id(self.provider) or profile.dialect} ({model})",
            count=len(sent.tools.names),
            tokens=now,
            full=conversation.full_tokens,
        )

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
        if not profile.is_native:
            # What is found beyond is called through `call_tool`.
            longest = len(self.session.catalog.core) + OWN_TOOLS + self.settings.max_discovered
            profile = replace(profile, max_tools=min(profile.max_tools or longest, longest))
        if profile.max_tools is not None:
            room = max(1, profile.max_tools - len(self.added))
            profile = replace(profile, max_tools=room)
        return self.session.plan((), profile)

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
        gone = (entry.tool for entry in discoveries if name in _names_of(entry.name))
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
        if tool is not None and tool.name in self.executors and declared_schema(tool).changes:
            return tool
        if tool is not None and tool.name in discoveries and tool.name not in self.executors:
            return tool
        if name in discoveries or tool is None or tool.name not in self.executors:
            return None
        is_core = any(core is tool for core in self.session.catalog.core)
        return None if is_core and tool.name == name else tool

    def search(self, arguments: Mapping[str, Any]) -> str:
        """Return the answer to a search, in the form that the history keeps."""
        found = self._with_schemas(self.session.search(without_reminders(arguments)))
        self.conversation.last_search = found
        if found.error is None:
            self.conversation.timeline.search(found.query, found.names)
        # A model calls a tool by its name in the list.
        return result_text(found, replace(UNLIMITED, name_rule=name_rule_of(self.provider)))

    def canonical(self, name: str) -> str:
        """Return the canonical name of a tool that a history names; others stay as they are."""
        definition = self.definition(name)
        return name if definition is None else definition.name

    def _with_schemas(self, result: SearchResult) -> SearchResult:
        """Return the result with the schemas of tools that exceed a list of OpenAI's length."""
        declared = self.plan(LIMITED).tools
        catalog = self.session.catalog
        matches = tuple(
            match
            if declared.declares(match.name)
            else replace(match, parameters=declared_schema(catalog[match.name]).schema)
            for match in result.matches
        )
        return replace(result, matches=matches)

    def learn(self, name: str, *, failed: bool = False) -> None:
        """Record the result of a tool; search learns from those that were discovered."""
        self.conversation.timeline.call(name)
        if name in self.session.discoveries:
            self.session.returned(name, failed=failed)
