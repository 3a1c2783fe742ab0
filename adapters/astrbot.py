"""Tool search for AstrBot: everything its plugin does. AstrBot is loaded when it is used.

A plugin makes one `AstrBotToolSearch`, calls `install` when it starts and `remove` when it
ends, and gives it every request before AstrBot's agent has it (`prepare`). Whatever goes
wrong in here, the request stays as AstrBot made it, and the log says why.
"""

from __future__ import annotations

import json
import logging
from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tool_search.adapters.astrbot_claude import ClaudeHook
from tool_search.adapters.astrbot_reset import ResetHook
from tool_search.adapters.astrbot_run import LIMITED, UNLIMITED, AstrBotConversation, AstrBotRun
from tool_search.adapters.astrbot_settings import AstrBotSettings, read_settings
from tool_search.adapters.astrbot_tools import TranslatedTools, neutral_history
from tool_search.adapters.astrbot_toolset import run_of, searching_tool_set
from tool_search.calls import allowed_to_all
from tool_search.catalog import Tool, ToolCatalog
from tool_search.learning import Learning
from tool_search.messages import Message
from tool_search.profiles import ProviderProfile
from tool_search.record import message_to_dict
from tool_search.session import ToolSearchSession
from tool_search.stores import MemoryStore, SQLiteStore
from tool_search.strategies import ToolsAssembler

__all__ = ["AstrBotToolSearch", "ConversationId"]

ConversationId = tuple[str, str]
"""AstrBot's `unified_msg_origin`, and the id of the conversation in it."""

_MOST_CONVERSATIONS = 500
_SEEN = "_tool_search_seen"
_RUN = "tool_search_run"
_RESTORED = "restored_"  # what the ids of synthetic searches begin with
_SCHEDULED = "CronMessageEvent"
_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class _Turn:
    """What one request brings."""

    catalog: ToolCatalog
    executors: Mapping[str, Any]
    history: tuple[Message, ...]
    refusal: Callable[[Tool], str | None]


class AstrBotToolSearch:
    """Tool search in one AstrBot.

    Args:
        context: AstrBot's context for plugins.
        settings: The plugin's settings, as AstrBot has them.
        evidence: The file that keeps what searches taught; None: memory does.
    """

    def __init__(
        self,
        context: Any,
        settings: Mapping[str, Any] | None = None,
        *,
        evidence: str | Path | None = None,
    ) -> None:
        self._context = context
        self.settings: AstrBotSettings = read_settings(settings)
        self._tools = TranslatedTools()
        self._assembler = ToolsAssembler()
        self._conversations: OrderedDict[ConversationId, AstrBotConversation] = OrderedDict()
        self._forgotten: dict[ConversationId, frozenset[str]] = {}
        self._store = MemoryStore() if evidence is None else SQLiteStore(evidence)
        self._learning = Learning(self._store)
        self._hooks: list[ClaudeHook | ResetHook] = []
        self._said: set[str] = set()

    def install(self) -> None:
        """Hooks Claude's provider and, where agents of agents are covered, the runner.

        Safe to call again. Without a hook, Claude is told of tools as every provider is.
        """
        self.remove()
        makers: list[Callable[[], ClaudeHook | ResetHook]] = [self._claude_hook]
        if self.settings.cover_subagents or self.settings.cover_scheduled_tasks:
            makers.append(self._reset_hook)
        for make in makers:
            try:
                hook = make()
                hook.install()
            except (ImportError, AttributeError) as exc:
                _log.warning("this AstrBot is not as expected: %s; tools are filtered", exc)
            else:
                self._hooks.append(hook)

    def remove(self) -> None:
        """Leaves AstrBot as it was."""
        while self._hooks:
            self._hooks.pop().remove()

    async def close(self) -> None:
        """Removes all hooks, and lets go of what was learned."""
        self.remove()
        if isinstance(self._store, SQLiteStore):
            await self._store.aclose()

    async def prepare(self, event: Any, request: Any) -> None:
        """Gives a request a tool set that is searched; never raises.

        Args:
            event: AstrBot's event.
            request: Its `ProviderRequest`, complete but for what comes after plugins.
        """
        try:
            setattr(request, _SEEN, True)
            await self._prepare(event, request, self.key_of(event, request))
        except Exception:  # noqa: BLE001  # a bot's turn must not end by a mistake of ours
            _log.exception("tool search cannot start: the bot has its full tool set")
        else:
            event.set_extra(_RUN, run_of(request.func_tool))

    async def prepare_agent(self, event: Any, request: Any) -> None:
        """The same for a request that no plugin saw: of a subagent or a scheduled task."""
        if getattr(request, _SEEN, False):
            return
        scheduled = any(cls.__name__ == _SCHEDULED for cls in type(event).__mro__)
        settings = self.settings
        wanted = settings.cover_scheduled_tasks if scheduled else settings.cover_subagents
        if not wanted:
            return
        try:
            own = self.key_of(event, request) if request.conversation is not None else None
            await self._prepare(event, request, own)
        except Exception:  # noqa: BLE001  # a bot's turn must not end by a mistake of ours
            _log.exception("tool search cannot start: this agent has its full tool set")

    def observe(self, event: Any, tool: Any, arguments: Mapping[str, Any] | None) -> None:
        """Lets searches learn from a call that AstrBot has run; never raises."""
        try:
            run = event.get_extra(_RUN)
            name = str(tool.name)
            if isinstance(run, AstrBotRun) and run.executors.get(name) is tool:
                run.learn(name, arguments or {})
        except Exception:  # noqa: BLE001  # a bot's turn must not end by a mistake of ours
            _log.exception("nothing is learned from a call of %r", tool)

    async def _prepare(self, event: Any, request: Any, key: ConversationId | None) -> None:
        tools = request.func_tool
        if not tools or run_of(tools) is not None or not self._calls_tools(event):
            return
        turn = await self._turn(event, request, list(tools.tools))
        conversation = self._conversation(request, key, turn)
        session = conversation.session
        await self._exchange_lessons(session)
        known = len(turn.history)
        if session.has_begun or turn.history:
            session.adopt_history(turn.history)
            known = len(session.history)
        session.begin_turn(
            request.prompt or "…",
            profile=self.profile(event),
            catalog=turn.catalog,
            refusal=turn.refusal,
        )
        for notice in session.take_notices():
            _log.warning("%s: %s", notice.code, notice.message)
        if key is not None:
            self._keep(key, conversation)
        if session.decision.mode != "tool_search":
            return
        self._replace(event, request, conversation, turn, known)

    def _replace(
        self,
        event: Any,
        request: Any,
        conversation: AstrBotConversation,
        turn: _Turn,
        known: int,
    ) -> None:
        """The one change of a request; its tool set comes last, once all else has worked."""
        session = conversation.session
        run = AstrBotRun(
            conversation,
            turn.executors,
            search_tool_name=self.settings.config.search_tool_name,
        )
        made = searching_tool_set(run)
        made.names()
        instructions = run.plan(UNLIMITED).system
        written = [
            _as_context(message) for message in _unsaved(session.history, known, turn.history)
        ]
        self._warn_of_skills_like(event)
        if written:
            request.contexts = [*(request.contexts or ()), *written]
        if instructions not in (request.system_prompt or ""):
            request.system_prompt = f"{request.system_prompt or ''}\n\n{instructions}".lstrip()
        request.func_tool = made

    async def _turn(self, event: Any, request: Any, tools: list[Any]) -> _Turn:
        active = [tool for tool in tools if getattr(tool, "active", True)]
        manager = self._context.get_llm_tool_manager()
        definitions = self._definitions(active)
        restricted = await _restricted(manager, definitions)
        allowed = not restricted or _is_admin(event)

        def refusal(tool: Tool) -> str | None:
            # An empty reason: the session says it in the conversation's language.
            return None if allowed or tool.name not in restricted else ""

        return _Turn(
            catalog=ToolCatalog(definitions.values(), restricted=restricted),
            executors={tool.name: tool for tool in active},
            history=self._history(event, request),
            refusal=refusal if restricted else allowed_to_all,
        )

    def catalog_of(self, tools: Iterable[Any]) -> ToolCatalog:
        """The catalog of AstrBot's tools, core and deferred told apart as a conversation does."""
        active = [tool for tool in tools if getattr(tool, "active", True)]
        catalog = ToolCatalog(self._definitions(active).values())
        return ToolSearchSession(catalog, config=self.settings.config).catalog

    def _definitions(self, tools: Iterable[Any]) -> dict[str, Tool]:
        manager = self._context.get_llm_tool_manager()
        return self._tools.definitions(tools, getattr(manager, "is_builtin_tool", None) or _never)

    def _history(self, event: Any, request: Any) -> tuple[Message, ...]:
        """The saved history, searches that an operator had forgotten left out."""
        history = neutral_history(request.contexts)
        forgotten = self._forgotten.get(self.key_of(event, request), frozenset())
        return tuple(said for said in history if said.tool_call_id not in forgotten)

    def _conversation(
        self, request: Any, key: ConversationId | None, turn: _Turn
    ) -> AstrBotConversation:
        """The conversation that goes on, or a new one."""
        known = self._conversations.get(key) if key is not None else None
        if known is not None and not is_new(request):
            return known
        if key is not None and is_new(request):
            self._forgotten.pop(key, None)
        return AstrBotConversation(
            ToolSearchSession(turn.catalog, config=self.settings.config, assembler=self._assembler)
        )

    def _keep(self, key: ConversationId, conversation: AstrBotConversation) -> None:
        self._conversations[key] = conversation
        self._conversations.move_to_end(key)
        if len(self._conversations) > _MOST_CONVERSATIONS:
            self._conversations.popitem(last=False)

    async def _exchange_lessons(self, session: ToolSearchSession) -> None:
        if self.settings.config.learning.enabled:
            await self._learning.learn(session.take_lessons())
            session.inform(await self._learning.votes())

    def profile(self, event: Any) -> ProviderProfile:
        """The provider that is asked first, as far as AstrBot says."""
        try:
            provider = self._context.get_using_provider(umo=event.unified_msg_origin)
            for hook in self._hooks:
                if isinstance(hook, ClaudeHook) and hook.is_for(provider):
                    return hook.profile(provider)
        except Exception:  # noqa: BLE001  # what is known of the provider is only a help
            _log.debug("the provider of %s is not known", event, exc_info=True)
        return LIMITED

    def _calls_tools(self, event: Any) -> bool:
        """Whether the provider that is asked first may call tools, as AstrBot has it set."""
        try:
            provider = self._context.get_using_provider(umo=event.unified_msg_origin)
            modalities = provider.provider_config.get("modalities")
        except Exception:  # noqa: BLE001  # a provider that is not known is taken to
            return True
        return not modalities or "tool_use" in modalities

    def _warn_of_skills_like(self, event: Any) -> None:
        config = self._context.get_config(umo=event.unified_msg_origin)
        for path in (
            ("agent_runner", "config", "misc", "tool_schema_mode"),
            ("provider_settings", "tool_schema_mode"),
        ):
            value: Any = config
            for step in path:
                value = value.get(step) if isinstance(value, Mapping) else None
            if value == "skills_like" and "skills_like" not in self._said:
                self._said.add("skills_like")
                _log.warning("tool search takes the place of AstrBot's skills_like mode")

    def _claude_hook(self) -> ClaudeHook:
        from astrbot.core.provider.sources.anthropic_source import (  # noqa: PLC0415 - AstrBot is here
            ProviderAnthropic,
        )

        return ClaudeHook(
            ProviderAnthropic,
            native=self.settings.native_claude,
            boundary=self.settings.config.boundary_text,
        )

    def _reset_hook(self) -> ResetHook:
        from astrbot.core.agent.runners.tool_loop_agent_runner import (  # noqa: PLC0415 - as above
            ToolLoopAgentRunner,
        )

        return ResetHook(ToolLoopAgentRunner, self.prepare_agent)

    @staticmethod
    def key_of(event: Any, request: Any) -> ConversationId:
        """What a conversation is known by."""
        conversation = getattr(request, "conversation", None)
        return event.unified_msg_origin, str(getattr(conversation, "cid", "") or "")

    def conversation(self, key: ConversationId) -> AstrBotConversation | None:
        """What is remembered of a conversation."""
        return self._conversations.get(key)

    def forget(self, key: ConversationId, history: Iterable[Any] = ()) -> int:
        """Lets a conversation start without discoveries; gives how many there were.

        Args:
            key: The conversation.
            history: As AstrBot has saved it, whose searches count no more.
        """
        known = self._conversations.pop(key, None)
        searches = {s.tool_call_id for s in neutral_history(history) if s.tool_call_id}
        self._forgotten[key] = self._forgotten.get(key, frozenset()) | searches
        return len(known.session.discoveries) if known is not None else 0


def is_new(request: Any) -> bool:
    """Whether a request opens its conversation: `/reset` leaves one without a history."""
    conversation = getattr(request, "conversation", None)
    if conversation is None:
        return not neutral_history(request.contexts)
    saved = getattr(conversation, "history", None)
    try:
        return not (json.loads(saved) if isinstance(saved, str) else saved)
    except ValueError:
        return False


def _unsaved(history: Sequence[Message], known: int, saved: Iterable[Message]) -> Iterator[Message]:
    """The searches that show again what a history lost: new ones, and lost ones of earlier."""
    shown = {call.id for said in saved for call in said.tool_calls}
    for said in history[:known]:
        ids = {call.id for call in said.tool_calls} or {said.tool_call_id or ""}
        if any(call_id.startswith(_RESTORED) for call_id in ids - shown):
            yield said
    yield from history[known:-1]


def _as_context(message: Message) -> dict[str, Any]:
    """A message as AstrBot keeps it: no name beside a result."""
    content = message_to_dict(message)
    if message.role == "assistant":
        content["content"] = content["content"] or None
    content.pop("name", None)
    return content


def _never(_name: str) -> bool:
    return False


def _is_admin(event: Any) -> bool:
    is_admin = getattr(event, "is_admin", None)
    return bool(is_admin()) if callable(is_admin) else False


async def _restricted(manager: Any, definitions: Mapping[str, Tool]) -> frozenset[str]:
    """The tools that AstrBot keeps for administrators; its guard checks every call anyway."""
    fallback = getattr(manager, "_default_permission", None)
    if fallback is None:
        return frozenset()
    from astrbot.core import sp  # noqa: PLC0415 - AstrBot is here

    kept = await sp.global_get("tool_permissions", {})
    own = kept.get("_default", {}) if isinstance(kept, Mapping) else {}
    return frozenset(
        name
        for name, tool in definitions.items()
        if tool.kind in ("plugin", "mcp") and (own.get(name) or fallback(name)) == "admin"
    )
