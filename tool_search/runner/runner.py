"""The agent loop: for bots that have none of their own."""

from __future__ import annotations

import asyncio
import logging
import time
from collections import OrderedDict
from collections.abc import (
    AsyncGenerator,
    Collection,
    Iterable,
    Iterator,
    Mapping,
    Sequence,
)
from contextlib import aclosing, asynccontextmanager, nullcontext, suppress
from dataclasses import dataclass, field
from functools import cache, partial
from itertools import islice

from tool_search.catalog.catalog import CorePolicy, ToolCatalog
from tool_search.catalog.naming import NameBook
from tool_search.config.bot import ToolSearchConfig
from tool_search.config.history import HistorySettings
from tool_search.conversation.catalog_notices import catalog_notices
from tool_search.conversation.record import ConversationRecord
from tool_search.conversation.session import ToolSearchSession
from tool_search.errors import (
    ConfigurationError,
    SessionError,
    ToolSearchError,
)
from tool_search.events import Done, ProviderSwitched, RunnerEvent, RunnerWarning
from tool_search.execution import (
    CallOptions,
    CallRunner,
    ExecutableTool,
    FunctionExecutor,
    Permissions,
    ToolContext,
    ToolExecutor,
    ToolFunction,
    TurnCalls,
    executable_tools,
    named_tools,
)
from tool_search.execution.background import LARGE_CATALOG, Background
from tool_search.execution.batch import in_call
from tool_search.i18n import language_of, text
from tool_search.messages import ContentPart, Notice, user_message
from tool_search.providers.base import ChatProvider, Usage
from tool_search.providers.profiles import ProviderProfile
from tool_search.providers.prompt_cache import PrefixMonitor
from tool_search.runner.compaction import Compact, compacted
from tool_search.runner.learning import Learning
from tool_search.runner.turn import ProviderPool, Turn
from tool_search.runner.turn_watch import TurnWatch
from tool_search.search.build import EMBEDDING_ENGINES, build_index
from tool_search.stores import ConversationKey, ConversationStore, MemoryStore
from tool_search.stores.backlog import Backlog
from tool_search.stores.keeping import ConversationKeeper, KeptConversation
from tool_search.strategies import ToolsAssembler

__all__ = ["ToolSearchRunner"]

_MAX_SESSIONS = 1024
_MAX_WARM_SESSIONS = 256  # a conversation's last request is as large as its history
_COOLDOWN_S = 60.0
# A consumer that takes no event for so long is not waited for by `forget`.
_IDLE_S = 1.0
_ASKED_FOR = "asked for"
_IN_ORDER = "first in order"
_log = logging.getLogger(__name__)


@dataclass(slots=True)
class _OpenConversation:
    key: ConversationKey
    lock: asyncio.Lock = field(default_factory=asyncio.Lock)
    session: ToolSearchSession | None = None
    last: str | None = None
    prefixes: PrefixMonitor = field(default_factory=PrefixMonitor)
    kept: KeptConversation | None = None
    users: int = 0
    watch: TurnWatch | None = None
    is_forgotten: bool = False


@dataclass(slots=True)
class _Asked:
    """What `run` was asked, and what has become of it."""

    message: str | Sequence[ContentPart]
    conversation: ConversationKey
    user: str | None
    roles: Collection[str]
    keys: TurnCalls
    watch: TurnWatch
    turn: Turn | None = None


class ToolSearchRunner:
    """Runs any number of conversations of one bot.

    Turns of one conversation wait for each other, others run side by side. A turn
    that its consumer gives up is cancelled with everything under it, and leaves the
    conversation valid.

    Args:
        providers: By `id`, the primary first, the rest in the order of fallback.
        tools: Functions and `ExecutableTool`s.
        catalog: The definitions, where `executor` runs them; instead of `tools`.
        executor: Runs the catalog's tools.
        config: The settings.
        system_prompt: What the bot's owner tells the model.
        max_steps: The most requests of a turn in which tools may be called.
        turn_timeout_s: Seconds for a whole turn; None: no limit. Then it ends with a
            warning, and `Done` says so.
        max_concurrent_turns: The most turns that go on at the same time; more wait, first
            come, first served. A turn that a tool begins does not count. None: no limit.
        cooldown_s: Seconds a failed provider rests; one number, or by `id`, where a
            provider that is not named rests a minute.
        tool_timeout_s: Seconds one call of `tools` may take.
        calls: How calls are run: permissions, hooks, limits, telemetry.
        store: Where conversations live; default: this process's memory.
        history: How much of a conversation requests carry.
        compact: The bot's own compaction, asked before old turns are left out of requests.

    Raises:
        ConfigurationError: There is no provider, or a catalog without an executor.
        DuplicateToolError: Two tools without a server have the same name.
    """

    def __init__(
        self,
        *,
        providers: Mapping[str, ChatProvider],
        tools: Iterable[ExecutableTool | ToolFunction] = (),
        catalog: ToolCatalog | None = None,
        executor: ToolExecutor | None = None,
        config: ToolSearchConfig | None = None,
        system_prompt: str = "",
        max_steps: int = 20,
        turn_timeout_s: float | None = None,
        max_concurrent_turns: int | None = 64,
        cooldown_s: float | Mapping[str, float] = _COOLDOWN_S,
        tool_timeout_s: float = 60.0,
        calls: CallOptions | None = None,
        store: ConversationStore | None = None,
        history: HistorySettings | None = None,
        compact: Compact | None = None,
    ) -> None:
        named = cooldown_s if isinstance(cooldown_s, Mapping) else {}
        usual = _COOLDOWN_S if isinstance(cooldown_s, Mapping) else cooldown_s
        self._pool = ProviderPool(providers, {name: named.get(name, usual) for name in providers})
        self._config = config or ToolSearchConfig()
        self._system_prompt = system_prompt
        self._history = history or HistorySettings()
        self._compact = compact
        self._max_steps = max_steps
        self._turn_timeout_s = turn_timeout_s
        self._tool_timeout_s = tool_timeout_s
        self._places = (
            asyncio.Semaphore(max_concurrent_turns) if max_concurrent_turns else nullcontext()
        )
        self._background = Background()
        self._preparing = asyncio.Lock()
        self._calls = CallRunner(options=calls)
        self._store = MemoryStore() if store is None else store
        self.permissions.keep_in(self._store)
        self._backlog = Backlog()
        self._keeper = ConversationKeeper(self._store, self._backlog)
        self._learning = (
            Learning(self._store, backlog=self._backlog) if self._config.learning.enabled else None
        )
        self._assembler = ToolsAssembler()
        self._conversations: OrderedDict[ConversationKey, _OpenConversation] = OrderedDict()
        self._chosen: dict[ConversationKey | None, str] = {}
        self._prepared: ToolCatalog | None = None
        self._names = NameBook()
        self._noticed: frozenset[Notice] = frozenset()
        if catalog is None:
            self.replace_tools(tools)
        else:
            self.replace_catalog(catalog, executor)

    @property
    def catalog(self) -> ToolCatalog:
        """The tools that the next user turns will have."""
        return self._catalog

    def replace_tools(self, tools: Iterable[ExecutableTool | ToolFunction]) -> None:
        """Gives the bot other tools; conversations take them in at their next user turn."""
        catalog, made = named_tools(
            executable_tools(tools),
            names=self._names,
            reserved=(self._config.search_tool_name,),
        )
        self.replace_catalog(catalog, FunctionExecutor(made, timeout_s=self._tool_timeout_s))

    def replace_catalog(self, catalog: ToolCatalog, executor: ToolExecutor | None) -> None:
        """The same with definitions and what runs them.

        Raises:
            ConfigurationError: Nothing runs the tools.
        """
        if executor is None:
            raise ConfigurationError("a catalog needs an executor that runs its tools")
        # A name stays whose it was, also where a new catalog says otherwise.
        named = catalog.view(policy=catalog.policy, exceptions=self._names.unlike(catalog.book))
        self._calls.replace(named, executor)
        notices = catalog_notices(named)
        for notice in notices:
            if notice not in self._noticed:
                _log.warning("%s: %s", notice.code, notice.message)
        self._noticed = frozenset(notices)
        self._names = named.book
        self._catalog = self._calls.catalog

    async def prepare(self) -> None:
        """Do what the next turn would wait for: index a large catalog, embed its tools.

        Turns do it too, once for each catalog however many wait for it; it keeps no event
        loop from its work.
        """
        embeds = self._config.search.engine in EMBEDDING_ENGINES
        if not (embeds or self._is_large) or self._prepared is self._catalog:
            return
        async with self._preparing:
            catalog = self._catalog
            if self._prepared is catalog:
                return
            # What fails is told by each conversation, which then has all its tools declared.
            with suppress(ToolSearchError):
                if embeds:
                    await asyncio.to_thread(self._build_index, catalog)
                await self._background.run(partial(self._warm_up, catalog), heavy=True)
            self._prepared = catalog

    @property
    def _is_large(self) -> bool:
        """True if a step over the whole catalog would hold the event loop."""
        return len(self._catalog) >= LARGE_CATALOG

    def _build_index(self, catalog: ToolCatalog) -> None:
        policy = CorePolicy(
            always_loaded_tools=self._config.always_loaded_tools,
            auto_always_load_builtin=self._config.auto_always_load_builtin,
        )
        build_index(catalog.with_policy(policy).deferred, self._config.search)

    def _warm_up(self, catalog: ToolCatalog) -> None:
        """Make what all conversations share of a catalog, by beginning one that is not kept."""
        profile = self._pool.profile(next(iter(self._pool.providers)))
        session = self._new_session(catalog)
        session.begin_turn("", profile=profile)
        session.plan(profile)

    @property
    def permissions(self) -> Permissions:
        """Who may call what; its mode may be changed for each conversation."""
        return self._calls.permissions

    async def aclose(self) -> None:
        """Let tools clean up, and write what waits for the store; no turn may go on."""
        await self.permissions.aclose()
        await self._calls.aclose()
        await self._keeper.aclose()
        self._background.close()

    def use(self, provider: str, *, conversation: ConversationKey | None = None) -> None:
        """Swaps the provider on purpose, from the next turn on, even where it rests.

        Args:
            provider: Its `id`.
            conversation: Which one; None: all that have no choice of their own.

        Raises:
            ConfigurationError: There is no such provider.
        """
        if provider not in self._pool.providers:
            known = ", ".join(self._pool.providers)
            raise ConfigurationError(f"there is no provider {provider!r}; there are: {known}")
        self._chosen[conversation] = provider
        self._pool.health.succeeded(provider)

    def session(self, conversation: ConversationKey = "default") -> ToolSearchSession | None:
        """A conversation's state, where it has begun in this process."""
        known = self._conversations.get(conversation)
        return known.session if known else None

    async def forget(self, conversation: ConversationKey) -> None:
        """Erase a conversation and what it discovered, once no turn of it goes on.

        A turn whose consumer takes no event for a second is ended, and not waited for:
        nothing of it is kept, and a SessionError says so when its next event is asked for.

        Raises:
            StoreError: The store fails: what it has of the conversation is not read any
                more, and is erased when the store is back.
        """
        known = self._conversations.get(conversation)
        if known is not None:
            is_over = await _turn_is_over(known)
            known.is_forgotten = True
            if not is_over and known.watch is not None:
                known.watch.abandon()
            if self._conversations.get(conversation) is known:
                del self._conversations[conversation]
        self._chosen.pop(conversation, None)
        await self._calls.forget(conversation)
        await self._keeper.forget(conversation, known.kept if known else None)

    async def run(
        self,
        message: str | Sequence[ContentPart],
        *,
        conversation: ConversationKey = "default",
        user: str | None = None,
        roles: Collection[str] = (),
        idempotency_key: str | None = None,
    ) -> AsyncGenerator[RunnerEvent, None]:
        """One turn: the user's message in, events out, `Done` last.

        Args:
            message: Text, or text and pictures.
            conversation: Which conversation goes on, or begins.
            user: Who asks, for the tools.
            roles: What the user is; a tool with `roles` wants one of them.
            idempotency_key: The same for a retry of a turn that did not end, such as the
                message's id: a call that it has made with success is not made again.

        Raises:
            AllProvidersFailedError: No provider answered; the message is kept, and
                the conversation can go on.
            SessionError: The conversation was forgotten while no event was taken.
        """
        watch = TurnWatch(self._turn_timeout_s)
        keys = TurnCalls(conversation, idempotency_key)
        asked = _Asked(message, conversation, user, roles, keys, watch)
        async with aclosing(watch.events(self._turn_alone(asked))) as events:
            async for event in events:
                yield event
        if watch.was_abandoned:
            raise SessionError(
                f"the conversation {conversation!r} was forgotten while a turn of it "
                "waited for its events to be taken; run the turn again to begin anew"
            )
        if watch.timed_out:
            for event in self._out_of_time(asked):
                yield event

    def _out_of_time(self, asked: _Asked) -> Iterator[RunnerEvent]:
        """The last events of a turn whose time was over, whatever it was doing."""
        what = f"the turn was ended after {self._turn_timeout_s:g} seconds (turn_timeout_s)"
        yield _warning(Notice("turn_timed_out", what))
        turn = asked.turn
        said = user_message(asked.message).text
        language = turn.session.language if turn else language_of(said)
        yield Done(
            answer=text("answer.timeout", language),
            provider=turn.provider if turn else self._first(asked.conversation),
            steps=turn.steps if turn else 0,
            usage=turn.usage if turn else Usage(),
            stop_reason="timeout",
        )

    async def _turn_alone(self, asked: _Asked) -> AsyncGenerator[RunnerEvent, None]:
        """A turn's events, once no other turn of its conversation goes on.

        Closed anywhere, it leaves the conversation valid.
        """
        # A turn that a tool begins holds up the turn it is in: it must not wait for its end.
        places = nullcontext() if in_call.get() else self._places
        async with self._alone(asked.conversation) as known, places:
            known.watch = asked.watch
            asked.watch.start()
            async with aclosing(self._turn(known, asked)) as events:
                async for event in events:
                    yield event

    async def _turn(
        self, known: _OpenConversation, asked: _Asked
    ) -> AsyncGenerator[RunnerEvent, None]:
        provider = self._first(known.key)
        if known.last not in (None, provider):
            yield self._switched(known, provider)
        session, kept, notice = await self._opened(known)
        if notice is not None:
            yield _warning(notice)
        if self._compact is not None and session.has_begun and session.sent.has_outgrown:
            _, notice = await compacted(session, self._compact)
            if notice is not None:
                yield _warning(notice)
        profile = self._pool.profile(provider)
        await self.permissions.read(known.key)
        await self.prepare()
        begin = partial(self._begin, session, asked, profile)
        session, context, refusal = await self._background.run(begin, heavy=self._is_large)
        if refusal is not None:
            yield refusal
        known.session = session
        if self._learning is not None:
            session.use_votes(await self._learning.votes())
        turn = asked.turn = Turn(
            session=session,
            pool=self._pool,
            provider=provider,
            calls=self._calls,
            context=context,
            keys=asked.keys,
            keep=partial(self._keeper.append, kept),
            max_steps=self._max_steps,
            prefixes=known.prefixes,
            background=self._background,
            is_heavy=self._is_large,
            searches_aside=self._config.search.engine in EMBEDDING_ENGINES,
            compact=self._compact,
        )
        async with aclosing(self._kept_turn(known, kept, turn)) as events:
            async for event in events:
                yield event

    async def _kept_turn(
        self, known: _OpenConversation, kept: KeptConversation, turn: Turn
    ) -> AsyncGenerator[RunnerEvent, None]:
        """A turn's events; `Done` comes when the conversation is kept."""
        is_kept = False
        try:
            async with aclosing(turn.run()) as events:
                async for event in events:
                    if isinstance(event, Done):
                        is_kept = True
                        for warning in await self._keep(known, kept, turn):
                            yield warning
                    yield event
        except ToolSearchError:
            if not is_kept:
                is_kept = True
                for warning in await self._keep(known, kept, turn):
                    yield warning
            raise
        finally:
            if not is_kept:
                await self._keep(known, kept, turn)

    async def _keep(
        self, known: _OpenConversation, kept: KeptConversation, turn: Turn
    ) -> list[RunnerWarning]:
        """Keep what a turn has come to; return what went wrong."""
        session = turn.session
        known.last = turn.provider
        session.close_open_calls()
        record = await self._background.run(session.record, heavy=turn.is_heavy)
        notice = await self._keeper.save(kept, record)
        notices = [notice] if notice is not None else []
        if self._learning is not None and not kept.is_forgotten:
            await self._learning.learn(session.drain_lessons())
            notices += self._learning.take_notices()
        return list(map(_warning, notices))

    def _begin(
        self,
        session: ToolSearchSession,
        asked: _Asked,
        profile: ProviderProfile,
    ) -> tuple[ToolSearchSession, ToolContext, RunnerWarning | None]:
        """Begins a turn with the catalog of now; where it is refused, without it, and warns."""

        @cache
        def context() -> ToolContext:
            # The conversation's language is settled when its turn has begun.
            return self._calls.context(
                asked.conversation, begun.language, user=asked.user, roles=asked.roles
            )

        begun, warning, refusal = session, None, self._calls.denial_reason(context)
        begin = partial(
            ToolSearchSession.begin_turn,
            content=asked.message,
            profile=profile,
            roles=asked.roles,
            denial_reason=refusal,
            hidden=self.permissions.settings.hidden,
        )
        try:
            begin(begun, catalog=self._catalog)
        except SessionError as exc:
            _log.warning("catalog_refused: %s", exc)
            warning = RunnerWarning(code="catalog_refused", message=str(exc))
            begun = session if session.has_begun else self._without_search()
            begin(begun)
        return begun, context(), warning

    def _switched(self, known: _OpenConversation, provider: str) -> ProviderSwitched:
        return ProviderSwitched(
            from_provider=str(known.last),
            to_provider=provider,
            cause=_ASKED_FOR if provider == self._preferred(known.key) else _IN_ORDER,
        )

    def _first(self, key: ConversationKey) -> str:
        """The provider a turn begins with: the chosen or primary one, unless it rests."""
        preferred = self._preferred(key)
        return self._pool.health.order(now=time.monotonic(), preferred=preferred)[0]

    def _preferred(self, key: ConversationKey) -> str | None:
        return self._chosen.get(key) or self._chosen.get(None)

    @asynccontextmanager
    async def _alone(self, key: ConversationKey) -> AsyncGenerator[_OpenConversation, None]:
        """The conversation, once no other turn of it goes on."""
        while True:
            known = self._conversations.setdefault(key, _OpenConversation(key))
            self._conversations.move_to_end(key)
            known.users += 1
            try:
                async with known.lock:
                    # While it waited, it may have been forgotten: then it is another by now.
                    if not known.is_forgotten:
                        yield known
                        return
            finally:
                known.users -= 1
                self._make_room()

    def _make_room(self) -> None:
        """Drops what was not used for longest, its bytes first; it is in the store."""
        cold = len(self._conversations) - _MAX_WARM_SESSIONS
        if cold > 0:
            known = next(islice(self._conversations.values(), cold - 1, None))
            if known.session is not None and not known.users:
                known.session.forget_work()
        spare = len(self._conversations) - _MAX_SESSIONS
        if spare > 0:
            idle = (key for key, known in self._conversations.items() if not known.users)
            for key in list(islice(idle, spare)):
                del self._conversations[key]

    async def _opened(
        self, known: _OpenConversation
    ) -> tuple[ToolSearchSession, KeptConversation, Notice | None]:
        """Return the session of a conversation, and what is wrong with the store it is from."""
        if known.session is not None and known.kept is not None:
            if await self._keeper.is_current(known.kept):
                return known.session, known.kept, None
            # The store has more of it, or nothing any more: what was sent is no prefix now.
            known.session, known.prefixes = None, PrefixMonitor()
        opened = await self._keeper.open(known.key)
        known.kept = opened.kept
        made = partial(self._new_session, self._catalog, opened.record)
        session = await self._background.run(made, heavy=self._is_large)
        return session, opened.kept, opened.notice

    def _new_session(
        self, catalog: ToolCatalog, record: ConversationRecord | None = None
    ) -> ToolSearchSession:
        return ToolSearchSession(
            catalog,
            config=self._config,
            system_prompt=self._system_prompt,
            max_tools=self._pool.most_tools,
            assembler=self._assembler,
            record=record,
            history=self._history,
        )

    def _without_search(self) -> ToolSearchSession:
        """A conversation whose catalog cannot be searched: it has every tool declared."""
        return ToolSearchSession(
            self._catalog,
            config=self._config.model_copy(update={"tool_schema_mode": "full"}),
            system_prompt=self._system_prompt,
            max_tools=self._pool.most_tools,
            assembler=self._assembler,
            history=self._history,
        )


async def _turn_is_over(known: _OpenConversation) -> bool:
    """Wait until no turn of a conversation goes on; False: its consumer takes no events."""
    if not known.lock.locked():
        return True
    acquiring = asyncio.ensure_future(known.lock.acquire())
    try:
        while not (await asyncio.wait([acquiring], timeout=_IDLE_S))[0]:
            if known.watch is not None and known.watch.idle_s >= _IDLE_S:
                return False
    finally:
        acquiring.cancel()
        await asyncio.wait([acquiring])
        if not acquiring.cancelled():
            known.lock.release()
    return True


def _warning(given: Notice) -> RunnerWarning:
    _log.warning("%s: %s", given.code, given.message)
    return RunnerWarning(code=given.code, message=given.message)
