"""Tool search for AstrBot's plugin. AstrBot is loaded on first use.

A plugin makes one `AstrBotToolSearch`, calls `install` when it starts and `remove` when it
ends, and passes it every request before AstrBot's agent gets it (`prepare`). If anything fails
here, the request stays as AstrBot made it, and the log says why.

Failures are caught by kind. AstrBot itself logs anything else that a plugin's hook raises, and
goes on with the request as it is.
"""

from __future__ import annotations

import asyncio
import logging
import time
import weakref
from collections import OrderedDict
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from tool_search.adapters.astrbot.installation import HookState, InstalledHooks
from tool_search.adapters.astrbot.kept import ConversationId, KeptConversation, KeptConversations
from tool_search.adapters.astrbot.preferences import (
    PlaceSettings,
    calls_tools,
    database_errors,
    demands_of,
    first_provider,
    follow_settings,
    is_switched_off,
    name_rule_of,
    own_mode,
    permitted,
    plugin_of,
    user_of,
)
from tool_search.adapters.astrbot.reports import MISTAKES, Reports, Savings, WarnOnce
from tool_search.adapters.astrbot.run import (
    UNLIMITED,
    AstrBotConversation,
    AstrBotRun,
    UserVotes,
    opening_of,
)
from tool_search.adapters.astrbot.settings import AstrBotSettings, read_settings
from tool_search.adapters.astrbot.surface import has_own_tool_search
from tool_search.adapters.astrbot.tools import (
    TranslatedTools,
    as_context,
    is_new,
    neutral_history,
    unsaved,
    with_canonical_names,
    with_demands,
)
from tool_search.adapters.astrbot.toolset import run_of, searching_tool_set, within_limits
from tool_search.adapters.astrbot.webui.activity import Activity
from tool_search.adapters.hosts.tool_search import ToolSearch
from tool_search.adapters.hosts.view import ToolView
from tool_search.config.conversation import ToolSearchConfig
from tool_search.core.catalog.catalog import ToolCatalog
from tool_search.core.catalog.tool import Tool
from tool_search.core.conversation.view import ViewServices
from tool_search.core.discoveries import tool_tokens
from tool_search.core.messages import Message, Notice, user_message
from tool_search.core.profiles import ProviderProfile
from tool_search.core.services import Votes
from tool_search.core.strategies import ToolsAssembler
from tool_search.runner.learning import Learning
from tool_search.search.discovery.search_services import SearchServices
from tool_search.stores import MemoryStore, SQLiteStore

__all__ = ["AstrBotToolSearch", "ConversationId"]

_MAX_CONVERSATIONS = 500
_SEEN = "_tool_search_seen"
_RUN = "tool_search_run"
_SCHEDULED = "CronMessageEvent"
_OWN_SEARCH = (
    "this AstrBot has a tool_search of its own; to use it, set this plugin's mode to full or "
    "uninstall the plugin; to use the plugin, set AstrBot's own mode to full"
)
_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class _Turn:
    """The contents of one request."""

    catalog: ToolCatalog
    definitions: Mapping[str, Tool]
    tools: Mapping[str, Any]
    history: tuple[Message, ...]
    prompt: str
    refusal: Callable[[Tool], str | None]
    provider: Any

    @property
    def first_message(self) -> str:
        """The user's first message, which decides the language."""
        return next((said.text for said in self.history if said.role == "user"), self.prompt)


class AstrBotToolSearch:
    """Tool search in one AstrBot.

    Args:
        context: AstrBot's context for plugins.
        settings: The plugin's settings, as AstrBot has them.
        plugin: The plugin's name; AstrBot may have it switched off at some places.
        folder: The plugin's data folder, for what was learned, the last good settings, and
            what conversations found; None for memory.
        log: The plugin's logger in AstrBot, for what an operator should read; None: the
            library's own.
    """

    def __init__(
        self,
        context: Any,
        settings: Mapping[str, Any] | None = None,
        *,
        plugin: str = "astrbot_plugin_tool_search",
        folder: Path | None = None,
        log: logging.Logger | None = None,
    ) -> None:
        self.reports = Reports(log)
        self.reports.install()
        self._context = context
        self._plugin = plugin
        self._last_good, self.settings = follow_settings(settings or {}, folder)
        self._tools = TranslatedTools()
        self._warn = WarnOnce(_log)
        self._assembler = ToolsAssembler()
        self._conversations: OrderedDict[ConversationId, AstrBotConversation] = OrderedDict()
        self.places = PlaceSettings(folder and folder / "places.json")
        self._kept = KeptConversations(folder and folder / "conversations.json")
        self._store = MemoryStore() if folder is None else SQLiteStore(folder / "learned.sqlite")
        self._learning = Learning(self._store)
        self._hooks = InstalledHooks(self.prepare_agent)
        self.savings = Savings()
        self.activity = Activity()
        self._full = ("", 0)

    def install(self) -> None:
        """Install the hooks for what AstrBot's API does not offer; it may be called again."""
        self.reports.install()
        self._hooks.install(self.settings)
        manager = self._context.get_llm_tool_manager()
        if has_own_tool_search(getattr(manager, "is_builtin_tool", None)):
            _log.warning("%s", _OWN_SEARCH)

    @property
    def hooks(self) -> tuple[HookState, ...]:
        """Each hook, and each part of AstrBot that was not found."""
        return self._hooks.report

    def remove(self) -> None:
        """Remove the hooks; AstrBot is as it was before."""
        self._hooks.remove()
        self.reports.remove()

    async def close(self) -> None:
        """Keep what conversations found and what was learned; hooks stay until `remove`.

        Messages go on, and what is learned from them is lost.
        """
        await self._learn_all()
        for key in list(self._conversations):
            self._put_away(key)
        await asyncio.to_thread(self._kept.save)
        store, self._store = self._store, MemoryStore()
        self._learning = Learning(self._store)
        if isinstance(store, SQLiteStore):
            await store.aclose()

    async def prepare(self, event: Any, request: Any) -> None:
        """Replace the tool set of a request by one that is searched.

        Args:
            event: AstrBot's event.
            request: Its `ProviderRequest`, after all plugins have changed it.
        """
        setattr(request, _SEEN, True)
        self._hooks.restore()
        await self._prepare_or_limit(event, request, self.key_of(event, request))
        event.set_extra(_RUN, run_of(request.func_tool))

    async def prepare_agent(self, event: Any, request: Any, runner: Any, provider: Any) -> None:
        """Prepare a run that starts; also one that no plugin saw.

        Args:
            event: AstrBot's event.
            request: The request; those of subagents and scheduled tasks are seen here first.
            runner: AstrBot's runner, which knows the provider of each request.
            provider: The provider that it asks first.
        """
        if not getattr(request, _SEEN, False):
            await self._prepare_unseen(event, request, provider)
        run = run_of(request.func_tool)
        if run is not None:
            run.runner = weakref.ref(runner)
            weakref.finalize(runner, _end, event, request)

    async def _prepare_unseen(self, event: Any, request: Any, provider: Any) -> None:
        scheduled = any(cls.__name__ == _SCHEDULED for cls in type(event).__mro__)
        settings = self.settings
        own = self.key_of(event, request) if request.conversation is not None else None
        # A message that has a conversation came while the plugin was being loaded.
        wanted = own is not None or settings.cover_subagents
        if not (settings.cover_scheduled_tasks if scheduled else wanted):
            return
        await self._prepare_or_limit(event, request, own, provider)

    async def _prepare_or_limit(
        self, event: Any, request: Any, key: ConversationId | None, provider: Any = None
    ) -> None:
        """Prepare a request; after a mistake, cut its tools to what a provider takes."""
        try:
            await self._prepare(event, request, key, provider)
        except Exception as exc:
            known = self._conversations.get(key) if key is not None else None
            core = [tool.name for tool in self._tools.last_catalog.core]
            first = frozenset(known.order if known is not None else core)
            if request.func_tool:
                request.func_tool = within_limits(request.func_tool, first, self._definitions)
            if not isinstance(exc, MISTAKES):
                raise
            _log.exception("tool search cannot start: this message has AstrBot's own list")

    async def observe(
        self,
        event: Any,
        tool: Any,
        arguments: Mapping[str, Any] | None,  # noqa: ARG002  # what AstrBot's hook gives
    ) -> None:
        """Let search learn from a call that AstrBot has run."""
        run = event.get_extra(_RUN)
        name = str(tool.name)
        if not isinstance(run, AstrBotRun):
            return
        if run.executors.get(name) is tool:
            run.learn(name)
        if run.settings.config.learning.enabled:
            await self._exchange_lessons(run.conversation, run.conversation.key)

    async def _prepare(
        self, event: Any, request: Any, key: ConversationId | None, provider: Any = None
    ) -> None:
        tools = request.func_tool
        if not tools or run_of(tools) is not None or await self._is_off(event):
            return
        settings = await self.settings_at(event.unified_msg_origin)
        if settings.skills_like:
            return
        provider = provider or await first_provider(self._context, event, request)
        turn = await self._turn(event, request, list(tools.tools), provider)
        conversation = await self._begun(event, request, key, turn, settings)
        conversation.key = key
        conversation.opening = opening_of(turn.history)
        conversation.full_tokens = await self._full_tokens(turn.catalog)
        if key is not None:
            self._keep(key, conversation)
        if conversation.view.mode.mode == "tool_search":
            self._replace(request, conversation, turn)

    async def _full_tokens(self, catalog: ToolCatalog) -> int:
        """Return the tokens of all definitions, which take 0.13 ms each."""
        if self._full[0] != catalog.fingerprint:
            total = await asyncio.to_thread(lambda: sum(map(tool_tokens, catalog.active)))
            self._full = (catalog.fingerprint, total)
        return self._full[1]

    async def view_for(self, event: Any, key: ConversationId, tools: Iterable[Any]) -> ToolView:
        """Return the tools that a message's user may search; nothing is kept.

        Args:
            event: AstrBot's event.
            key: Its conversation.
            tools: All of AstrBot's tools; a known conversation has those of its last message.
        """
        settings = await self.settings_at(event.unified_msg_origin)
        learned = UserVotes(user=user_of(event))
        if settings.config.learning.enabled:
            learned.votes = await self._learning.votes(learned.user)
        active = [tool for tool in tools if getattr(tool, "active", True)]
        catalog, denial = await self._permit(event, active)
        # What it would find, whatever the mode is.
        changes: dict[str, Any] = {"tool_schema_mode": "tool_search"}
        found = self._kept.get(key).found
        known = self._conversations.get(key)
        if known is not None:
            # Its view has the permissions of the last message's user.
            catalog, found = known.view.catalog, known.view.found
            changes["language"] = known.view.language
        config = settings.config.model_copy(update=changes)
        return self._view(catalog, config, learned, found, denial_reason=denial)

    async def learned(self) -> dict[str, tuple[str, ...]]:
        """Return the words that have led to each tool, by name; the strongest tool first."""
        await self._learn_all()
        now = time.time()
        words: dict[str, dict[str, None]] = {}
        entries = (await self._store.load_evidence()).entries
        for entry in sorted(entries, key=lambda each: -each.strength_at(now)):
            words.setdefault(entry.tool, {}).update(dict.fromkeys(entry.words))
        return {tool: tuple(found) for tool, found in words.items()}

    async def _learn_all(self) -> None:
        """Keep the lessons of each conversation's last message."""
        for key, known in list(self._conversations.items()):
            if known.settings.config.learning.enabled:
                await self._exchange_lessons(known, key)

    async def forget_learned(self, tool: str) -> int:
        """Erase what was learned about a tool; return the number of entries."""
        return await self._store.forget_evidence(tool)

    async def _begun(
        self,
        event: Any,
        request: Any,
        key: ConversationId | None,
        turn: _Turn,
        settings: AstrBotSettings,
    ) -> AstrBotConversation:
        """Return the conversation of a request, its turn begun."""
        known = self._known_conversation(request, key, settings)
        if known is not None and known.should_begin_anew(turn.history):
            self._conversations.pop(known.key or ("", ""), None)
            known = None
        learned = UserVotes() if known is None else known.learned
        if self.settings.config.learning.enabled:
            await self._exchange_lessons(known, key)
            learned.user = user_of(event)
            learned.votes = await self._learning.votes(learned.user)
        if known is None:
            kept = self._kept_before(request, key)
            return self._first_turn(key, kept, turn, settings, learned)
        known.view.begin_turn(
            turn.catalog,
            history=turn.history,
            profile=self.profile(turn.provider, settings),
            denial_reason=turn.refusal,
        )
        return known

    def _kept_before(self, request: Any, key: ConversationId | None) -> KeptConversation:
        """Return what is kept of the conversation of a request; nothing of a new one."""
        if key is None:
            return KeptConversation()
        if is_new(request):
            self._kept.remove(key)
        else:
            self._put_away(key)
        return self._kept.get(key)

    def _first_turn(
        self,
        key: ConversationId | None,
        kept: KeptConversation,
        turn: _Turn,
        settings: AstrBotSettings,
        learned: UserVotes,
    ) -> AstrBotConversation:
        """Return a conversation that is not in memory, its turn begun."""
        config = settings.config
        if config.language == "auto" and kept.language is not None:
            config = config.model_copy(update={"language": kept.language})
        view = self._view(
            turn.catalog,
            config,
            learned,
            kept.found,
            history=turn.history,
            first_message=turn.first_message,
            profile=self.profile(turn.provider, settings),
            denial_reason=turn.refusal,
        )
        return AstrBotConversation(
            view,
            settings,
            learned=learned,
            savings=self.savings,
            timeline=self.activity.timeline(key),
        )

    def _view(
        self,
        catalog: ToolCatalog,
        config: ToolSearchConfig,
        learned: UserVotes,
        found: Iterable[str],
        **turn: Any,
    ) -> ToolView:
        # A view holds this object by `notify`, and so a run its plugin's copy of the library.
        services = ViewServices(
            assembler=self._assembler,
            search=SearchServices(config),
            votes=lambda: learned.votes,
            notify=self._log_notice,
        )
        return ToolView(
            catalog, config=config, services=services, found=found, hidden="keep", **turn
        )

    def _replace(self, request: Any, conversation: AstrBotConversation, turn: _Turn) -> None:
        """Change the request; its tool set comes last, after everything else has worked.

        The instructions are left out for a provider that calls no tools. A fallback that calls
        some gets the searched set, whose search tool has a description.
        """
        view = conversation.view
        run = AstrBotRun(
            conversation,
            self._tools.by_name(view.catalog, turn.definitions, turn.tools),
            search_tool_name=conversation.settings.config.search_tool_name,
            provider=turn.provider,
        )
        made = searching_tool_set(run)
        made.declared()
        instructions = view.instructions
        before = view.insertion_points
        view.complete((*turn.history, user_message(turn.prompt)))
        named = replace(UNLIMITED, name_rule=name_rule_of(turn.provider))
        written = [
            as_context(said, named) for said in unsaved(view.insertion_points, before, turn.history)
        ]
        contexts = [*(request.contexts or ()), *written]
        if contexts:
            reasoning, signature = demands_of(turn.provider)
            request.contexts = with_demands(contexts, reasoning=reasoning, signature=signature)
        if calls_tools(turn.provider) and instructions not in (request.system_prompt or ""):
            request.system_prompt = f"{request.system_prompt or ''}\n\n{instructions}".lstrip()
        request.func_tool = made

    async def _turn(self, event: Any, request: Any, tools: list[Any], provider: Any) -> _Turn:
        active = [tool for tool in tools if getattr(tool, "active", True)]
        definitions = self._definitions(active)
        catalog, denial = await self._permit(event, active)
        return _Turn(
            catalog=catalog,
            definitions=definitions,
            tools={tool.name: tool for tool in active},
            history=with_canonical_names(self._history(event, request), catalog),
            prompt=request.prompt or "…",
            refusal=denial,
            provider=provider,
        )

    async def _permit(
        self, event: Any, active: list[Any]
    ) -> tuple[ToolCatalog, Callable[[Tool], str | None]]:
        """Return the catalog of active tools, and why a message's user may not call one."""
        definitions = self._definitions(active)
        manager = self._context.get_llm_tool_manager()
        catalog = self._tools.catalog(definitions)
        return await permitted(manager, event, catalog, definitions, active)

    def catalog_of(self, tools: Iterable[Any], settings: AstrBotSettings) -> ToolCatalog:
        """Return the catalog of AstrBot's tools, divided into core and deferred."""
        active = [tool for tool in tools if getattr(tool, "active", True)]
        catalog = self._tools.catalog(self._definitions(active))
        return ToolSearch(catalog, settings.config).catalog

    async def settings_at(self, umo: str) -> AstrBotSettings:
        """Return the settings at a place: its own replace those of the plugin."""
        try:
            own = await self.places.load(umo)
        except (*MISTAKES, *database_errors()) as exc:
            own = {}
            self._warn(f"AstrBot's preferences cannot be read: {exc!r}")
        settings = self.settings
        if own:
            settings = read_settings({**self._last_good, **own}, self._last_good)
            settings = replace(settings, problems=(*self.settings.problems, *settings.problems))
        return settings.with_own_mode(own_mode(self._context, umo))

    async def _is_off(self, event: Any) -> bool:
        try:
            return await is_switched_off(event, self._plugin)
        except (*MISTAKES, *database_errors()) as exc:
            _log.warning("cannot read if %s is switched off: %r", self._plugin, exc)
            return False

    def _definitions(self, tools: Iterable[Any]) -> dict[str, Tool]:
        manager = self._context.get_llm_tool_manager()
        is_builtin = getattr(manager, "is_builtin_tool", None) or _never
        return self._tools.definitions(tools, is_builtin, plugin_of)

    def _history(self, event: Any, request: Any) -> tuple[Message, ...]:
        """Return the saved history without the searches that `/tool_search reset` dropped."""
        history = neutral_history(request.contexts)
        dropped = frozenset(self._kept.get(self.key_of(event, request)).dropped)
        return tuple(said for said in history if said.tool_call_id not in dropped)

    def _known_conversation(
        self, request: Any, key: ConversationId | None, settings: AstrBotSettings
    ) -> AstrBotConversation | None:
        """Return the conversation if it is known; changed settings make a new view of it."""
        known = self._conversations.get(key) if key is not None else None
        if known is None or is_new(request) or known.settings != settings:
            return None
        return known

    def _log_notice(self, notice: Notice) -> None:
        said = f"{notice.code}: {notice.message}"
        if notice.code == "catalog_changed":  # tools come and go
            _log.info("%s", said)
        else:
            self._warn(said)

    def _keep(self, key: ConversationId, conversation: AstrBotConversation) -> None:
        self._conversations[key] = conversation
        self._conversations.move_to_end(key)
        if len(self._conversations) > _MAX_CONVERSATIONS:
            self._put_away(next(iter(self._conversations)))

    def _put_away(self, key: ConversationId) -> None:
        """Keep what a conversation found and said, without its view."""
        known = self._conversations.pop(key, None)
        if known is not None:
            kept, view = self._kept.get(key), known.view
            language = view.language if known.settings.config.language == "auto" else kept.language
            self._kept.put(key, replace(kept, found=view.found, language=language))

    async def _exchange_lessons(
        self, known: AstrBotConversation | None, key: ConversationId | None
    ) -> None:
        """Keep the lessons so far; the last message may be of another user in a group."""
        if known is not None:
            conversation = "|".join(key) if key is not None else None
            await self._learning.learn(
                known.view.drain_lessons(), user=known.learned.user, conversation=conversation
            )

    async def votes(self) -> Votes | None:
        """Return what was learned, as the votes for the searches of an unknown user."""
        return await self._learning.votes()

    def profile(self, provider: Any, settings: AstrBotSettings | None = None) -> ProviderProfile:
        """Return the profile of a provider, as far as it is known."""
        return self._hooks.profile(provider, settings or self.settings)

    @staticmethod
    def key_of(event: Any, request: Any) -> ConversationId:
        """Return the key of a conversation."""
        conversation = getattr(request, "conversation", None)
        return event.unified_msg_origin, str(getattr(conversation, "cid", "") or "")

    def conversation(self, key: ConversationId) -> AstrBotConversation | None:
        """Return the state of a conversation, if it is known."""
        return self._conversations.get(key)

    def forget(self, key: ConversationId, history: Iterable[Any] = ()) -> int:
        """Drop the discoveries of a conversation; return their number.

        Args:
            key: The conversation.
            history: The history that AstrBot has saved; its searches no longer count.
        """
        known = self._conversations.pop(key, None)
        searches = {s.tool_call_id for s in neutral_history(history) if s.tool_call_id}
        dropped = (*self._kept.get(key).dropped, *searches)
        self._kept.put(key, KeptConversation(dropped=tuple(dict.fromkeys(dropped))))
        self._kept.save()
        return len(known.view.discoveries) if known is not None else 0


def _end(event: Any, request: Any) -> None:
    """Let go of a run that has ended: AstrBot's own tasks keep events of messages for ever."""
    request.func_tool = None
    event.set_extra(_RUN, None)


def _never(_name: str) -> bool:
    return False
