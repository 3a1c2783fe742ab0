"""The agent loop: for bots that have none of their own."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import (
    AsyncGenerator,
    Callable,
    Collection,
    Iterable,
    Iterator,
    Mapping,
    Sequence,
)
from contextlib import AsyncExitStack, nullcontext, suppress
from dataclasses import replace
from functools import cache, partial

from tool_search.config.conversation import HistorySettings, ToolSearchConfig
from tool_search.core.catalog.catalog import CorePolicy, ToolCatalog
from tool_search.core.catalog.naming import NameBook
from tool_search.core.discoveries import Discovery
from tool_search.core.messages import ContentPart, Notice, user_message
from tool_search.core.profiles import ProviderProfile
from tool_search.core.strategies import StrategySet, ToolsAssembler, ToolSearchStrategy
from tool_search.core.values.aside import LARGE_CATALOG, Background
from tool_search.errors import ConfigurationError, SessionError, ToolSearchError
from tool_search.i18n import language_of, text
from tool_search.providers.base import ChatProvider, Usage
from tool_search.providers.prompt_cache import PrefixMonitor
from tool_search.runner.conversations import (
    OpenConversation,
    OpenConversations,
    TurnWatch,
    emit,
    turn_locked,
)
from tool_search.runner.events import Done, ProviderSwitched, RunnerEvent, RunnerWarning
from tool_search.runner.execution import (
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
from tool_search.runner.execution.batch import in_call
from tool_search.runner.execution.observers import EventStream
from tool_search.runner.learning import Learning
from tool_search.runner.observing import request_log
from tool_search.runner.providers import COOLDOWN_S, Providers, name_providers
from tool_search.runner.question import OpenTurn, Question
from tool_search.runner.session.session import Compact, ToolSearchSession, compacted
from tool_search.runner.turn import Turn
from tool_search.search.build import build_index
from tool_search.search.discovery.catalog_notices import catalog_notices
from tool_search.stores import ConversationKey, ConversationStore, MemoryStore
from tool_search.stores.keeping import Backlog, ConversationKeeper, KeptConversation
from tool_search.stores.record import ConversationRecord

__all__ = ["ToolSearchRunner"]

_log = logging.getLogger(__name__)


class ToolSearchRunner:
    """The agent loop of one bot, for any number of conversations.

    Turns of one conversation wait for each other; different conversations run side by side.
    A turn whose consumer stops is cancelled with everything that it started, and leaves the
    conversation valid.

    Args:
        providers: The primary first, then the fallbacks in order: strings such as
            `anthropic:claude-sonnet-4-6`, whose key is in the environment, or providers.
            A mapping gives each its `id`. `aclose` closes those that are strings; the
            caller closes the others.
        tools: Functions and `ExecutableTool`s.
        catalog: Definitions that `executor` runs; instead of `tools`.
        executor: Runs the catalog's tools.
        config: The settings.
        system_prompt: The instructions of the bot's owner.
        max_steps: The most requests of a turn in which tools may be called.
        turn_timeout_s: Seconds for a whole turn; None: no limit. A turn that takes longer
            ends with a warning and a `Done` with the reason `timeout`.
        max_concurrent_turns: The most turns at the same time; more wait, first come, first
            served. A turn that a tool begins does not count. None: no limit.
        cooldown_s: Seconds for which a failed provider is skipped: one number, or one by
            `id`; a provider that is not named has 60.
        tool_timeout_s: Seconds for one call of `tools`.
        calls: Permissions, hooks, limits and telemetry of calls.
        store: The store of conversations; None: the memory of this process.
        history: Limits of the history that requests carry.
        compact: The bot's own compaction, asked before old turns are left out of requests.
        strategies: Strategies of this runner; they win over registered ones of their name.

    Raises:
        ConfigurationError: There is no provider, a string cannot be used, a key is missing,
            a catalog has no executor, or two strategies have the same name.
        DuplicateToolError: Two tools without a server have the same name.
    """

    _more_warnings: Callable[[], Iterable[RunnerWarning]] = tuple
    _prepared: ToolCatalog | None = None
    _noticed: frozenset[Notice] = frozenset()

    def __init__(
        self,
        *,
        providers: Providers,
        tools: Iterable[ExecutableTool | ToolFunction] = (),
        catalog: ToolCatalog | None = None,
        executor: ToolExecutor | None = None,
        config: ToolSearchConfig | None = None,
        system_prompt: str = "",
        max_steps: int = 20,
        turn_timeout_s: float | None = None,
        max_concurrent_turns: int | None = 64,
        cooldown_s: float | Mapping[str, float] = COOLDOWN_S,
        tool_timeout_s: float = 60.0,
        calls: CallOptions | None = None,
        store: ConversationStore | None = None,
        history: HistorySettings | None = None,
        compact: Compact | None = None,
        strategies: Iterable[ToolSearchStrategy] = (),
    ) -> None:
        opened = name_providers(providers)
        self._built, self._pool = opened.built, opened.pool(cooldown_s)
        self._config = config or ToolSearchConfig()
        self._system_prompt = system_prompt
        self._history = history or HistorySettings()
        self._compact = compact
        self._max_steps = max_steps
        self._turn_timeout_s, self._tool_timeout_s = turn_timeout_s, tool_timeout_s
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
        self._learning = _learning(self._config, self._store, self._backlog)
        self._assembler = ToolsAssembler()
        self._strategies = tuple(strategies)
        StrategySet(self._strategies, self._assembler)  # a wrong one is an error before any turn
        self._conversations = OpenConversations()
        self._chosen: dict[ConversationKey | None, str] = {}
        self._names = NameBook()
        if catalog is None:
            self.replace_tools(tools)
        else:
            self.replace_catalog(catalog, executor)

    @property
    def catalog(self) -> ToolCatalog:
        """The tools that the next user turns will have."""
        return self._calls.catalog

    def replace_tools(self, tools: Iterable[ExecutableTool | ToolFunction]) -> None:
        """Give the bot other tools, for each conversation from its next user turn on."""
        catalog, made = named_tools(
            executable_tools(tools),
            names=self._names,
            reserved=(self._config.search_tool_name,),
        )
        self.replace_catalog(catalog, FunctionExecutor(made, timeout_s=self._tool_timeout_s))

    def replace_catalog(self, catalog: ToolCatalog, executor: ToolExecutor | None) -> None:
        """Give the bot other definitions and the executor that runs them.

        Raises:
            ConfigurationError: There is no executor.
        """
        if executor is None:
            raise ConfigurationError("a catalog needs an executor that runs its tools")
        # A name keeps its tool even if a new catalog gives it to another one: conversations
        # that are kept refer to it.
        named = catalog.view(policy=catalog.policy, exceptions=self._names.unlike(catalog.book))
        self._calls.replace(named, executor)
        notices = named.once(catalog_notices)
        for notice in notices:
            if notice not in self._noticed:
                _log.warning("%s: %s", notice.code, notice.message)
        self._noticed = frozenset(notices)
        self._names = named.book

    async def prepare(self) -> None:
        """Index a large catalog and embed its tools, for which the next turn would wait.

        Turns do the same, once for each catalog. The work is done off the event loop.
        """
        catalog, embeds = self._calls.catalog, self._embeds
        if catalog is self._prepared or not (embeds or len(catalog) >= LARGE_CATALOG):
            return
        async with self._preparing:
            catalog = self._calls.catalog
            if self._prepared is catalog:
                return
            # Each conversation reports a failure itself, and then declares all its tools.
            with suppress(ToolSearchError):
                if embeds:
                    await asyncio.to_thread(self._build_index, catalog)
                await self._background.run(partial(self._warm_up, catalog), heavy=True)
            self._prepared = catalog

    @property
    def _is_large(self) -> bool:
        """True if a step over the whole catalog would hold the event loop."""
        return len(self._calls.catalog) >= LARGE_CATALOG

    @property
    def _embeds(self) -> bool:
        """True if a new tool or a query is embedded, which may wait for a network."""
        return self._config.search.embeds

    def _build_index(self, catalog: ToolCatalog) -> None:
        policy = CorePolicy(
            always_loaded_tools=self._config.always_loaded_tools,
            auto_always_load_builtin=self._config.auto_always_load_builtin,
        )
        build_index(catalog.with_policy(policy).deferred, self._config.search)

    def _warm_up(self, catalog: ToolCatalog) -> None:
        """Build the parts of a catalog that conversations share, in one that is not kept.

        It begins with the catalog of before, so that the index is that one's with changes.
        """
        profile = self._pool.profile(next(iter(self._pool.providers)))
        session = self._new_session(self._prepared or catalog)
        session.begin_turn("", profile=profile)
        session.begin_turn("", profile=profile, catalog=catalog)
        session.plan(profile)

    @property
    def permissions(self) -> Permissions:
        """The permissions of calls; their mode can be set for each conversation."""
        return self._calls.permissions

    async def aclose(self) -> None:
        """Close tools and providers, and write what waits for the store.

        No turn may go on. Providers that were handed over as objects stay open.
        """
        async with AsyncExitStack() as stack:
            # Each is closed even if the one before it fails; last in, first out.
            stack.push_async_callback(self._calls.readers.aclose)
            for provider in self._built:
                stack.push_async_callback(provider.aclose)
            stack.push_async_callback(self._keeper.aclose)
            stack.push_async_callback(self._calls.aclose)
            stack.push_async_callback(self.permissions.aclose)

    def warn_from(self, take: Callable[[], Iterable[RunnerWarning]]) -> None:
        """Begin each turn with the warnings that a function returns."""
        self._more_warnings = take

    def use(self, provider: str, *, conversation: ConversationKey | None = None) -> None:
        """Choose a provider from the next turn on, even one that is cooling down.

        Args:
            provider: Its `id`.
            conversation: The conversation; None: all that have no choice of their own.

        Raises:
            ConfigurationError: There is no such provider.
        """
        if provider not in self._pool.providers:
            known = ", ".join(self._pool.providers)
            raise ConfigurationError(f"there is no provider {provider!r}; there are: {known}")
        self._chosen[conversation] = provider
        self._pool.health.succeeded(provider)

    def add_provider(self, name: str, provider: ChatProvider, *, cooldown_s: float) -> None:
        """Add a provider, the last in order, under a new `id`; the caller closes it."""
        self._pool.add(name, provider, cooldown_s)

    def session(self, conversation: ConversationKey = "default") -> ToolSearchSession | None:
        """Return a conversation's state, or None if it has not begun in this process."""
        known = self._conversations.get(conversation)
        return known.session if known else None

    async def forget(self, conversation: ConversationKey) -> None:
        """Erase a conversation and its discoveries, after the turn that goes on.

        A turn whose consumer takes no event for a second is ended instead: nothing of it
        is kept, and its consumer gets a SessionError with the next event.

        Raises:
            StoreError: The store fails. Its copy of the conversation is not read any more,
                and is erased when the store is back.
        """
        known = self._conversations.get(conversation)
        if known is not None:
            is_over = await known.wait_for_turn()
            known.is_forgotten = True
            if not is_over and known.watch is not None:
                known.watch.abandon(
                    f"the conversation {conversation!r} was forgotten while a turn of it waited "
                    "for its events to be taken; run the turn again to begin anew"
                )
            self._conversations.remove(known)
        self._chosen.pop(conversation, None)
        await self._calls.forget(conversation)
        await self._keeper.forget(conversation, known.kept if known else None)

    def run(
        self,
        message: str | Sequence[ContentPart],
        *,
        conversation: ConversationKey = "default",
        user: str | None = None,
        roles: Collection[str] = (),
        idempotency_key: str | None = None,
    ) -> AsyncGenerator[RunnerEvent, None]:
        """Run one turn; yield its events, `Done` last.

        Args:
            message: Text, or text and pictures.
            conversation: The key of the conversation that goes on or begins.
            user: The user's id, for tools, permissions and learning: without it, all users
                are one to what searches learn.
            roles: The user's roles; a tool with `roles` needs one of them.
            idempotency_key: The id of the message, for example. A retry with the same key,
                user and message goes on where the first try ended, on any worker; after its
                end, only its `ToolFinished` and `Done` come again, as `repeated`.

        Raises:
            AllProvidersFailedError: No provider answered; the conversation can go on.
            SessionError: The conversation was forgotten while no event was taken, another
                worker has taken it over, or the key was given to another message.
        """
        stream = EventStream(self._calls.readers, conversation, request_log())
        watch = TurnWatch(self._turn_timeout_s, stream)
        keys = TurnCalls(conversation, idempotency_key, user=user)
        question = Question(message, conversation, user, roles, keys, watch, stream)
        return watch.events(
            user_message(message),
            partial(self._turn_alone, question),
            partial(self._last_events, question),
        )

    def _last_events(self, question: Question) -> Iterator[RunnerEvent]:
        """Yield the last events of a turn that took longer than it may.

        Raises:
            SessionError: It was ended for another reason.
        """
        if question.watch.ended_because:
            raise SessionError(question.watch.ended_because)
        what = f"the turn was ended after {self._turn_timeout_s:g} seconds (turn_timeout_s)"
        yield _warning(Notice("turn_timed_out", what))
        turn = question.turn
        said = user_message(question.message).text
        language = turn.session.language if turn else language_of(said)
        yield Done(
            answer=text("answer.timeout", language),
            provider=turn.provider if turn else self._first(question.conversation),
            steps=turn.steps if turn else 0,
            usage=turn.usage if turn else Usage(),
            stop_reason="timeout",
        )

    async def _turn_alone(self, question: Question) -> Done:
        """Answer a question after the turns of its conversation that came before.

        It may be ended at each event: the conversation stays valid.
        """
        # A turn that a tool begins is part of another turn: if it waited for a place, both
        # would wait for ever.
        places = nullcontext() if in_call.get() else self._places
        key = question.conversation
        async with (
            self._conversations.alone(key) as known,
            turn_locked(self._store, key, lost=question.taken_over),
            places,
        ):
            known.watch = question.watch
            question.watch.start()
            return await self._turn(known, question)

    async def _turn(self, known: OpenConversation, question: Question) -> Done:
        for warning in self._more_warnings():
            await emit(warning)
        provider = self._first(known.key)
        session, kept, notice = await self._open(known, keyed=bool(question.keys.turn))
        if notice is not None:
            await emit(_warning(notice))
        for finished in question.begin(known, session):
            await emit(finished)
        if done := question.answer(known):
            return done
        if known.last not in (None, provider):
            await emit(self._switch(known, provider))
        for warning in await self._compact_history(session):
            await emit(warning)
        profile = self._pool.profile(provider)
        await self.permissions.read(known.key)
        await self.prepare()
        if self._learning is not None:
            session.use_votes(await self._learning.votes(question.user))
        begin = partial(self._begin, session, question, profile)
        is_large, embeds = self._is_large, self._embeds
        session, context, preloaded, refusal = await self._background.run(
            begin, heavy=is_large or embeds
        )
        if refusal is not None:
            await emit(refusal)
        known.session = session
        question.keys.keeper = OpenTurn(question, known, kept, self._keeper.save, self._background)
        turn = question.turn = Turn(
            session=session,
            pool=self._pool,
            provider=provider,
            calls=self._calls,
            context=context,
            keys=question.keys,
            keep=partial(self._keeper.append, kept),
            stream=question.stream,
            max_steps=self._max_steps,
            prefixes=known.prefixes,
            background=self._background,
            is_heavy=is_large,
            searches_aside=embeds,
            compact=self._compact,
            preloaded=preloaded,
            second_chance=self._config.second_chance,
        )
        return await self._kept_turn(known, kept, turn, question)

    async def _compact_history(self, session: ToolSearchSession) -> list[RunnerWarning]:
        """Let the bot compact a history that has outgrown its limits."""
        if self._compact is None or not (session.has_begun and session.sent.has_outgrown):
            return []
        return [_warning(n) for n in (await compacted(session, self._compact))[1:] if n]

    async def _kept_turn(
        self, known: OpenConversation, kept: KeptConversation, turn: Turn, question: Question
    ) -> Done:
        """Run a turn; keep the conversation before its end, whatever that is."""
        keep = partial(self._keep, known, kept, question, turn)
        try:
            done = await turn.run()
        except ToolSearchError:
            for warning in await keep():
                await emit(warning)
            raise
        except BaseException:
            await keep()
            raise
        for warning in await keep(done):
            await emit(warning)
        return done

    async def _keep(
        self,
        known: OpenConversation,
        kept: KeptConversation,
        question: Question,
        turn: Turn,
        done: Done | None = None,
    ) -> list[RunnerWarning]:
        """Keep the state after a turn; return a warning for each failure."""
        session = turn.session
        known.last = turn.provider
        session.close_open_calls()
        question.note(known, done)
        record = await self._background.run(session.record, heavy=turn.is_heavy)
        notice = await self._keeper.save(kept, replace(record, turns=known.turns))
        notices = [notice] if notice is not None else []
        if self._learning is not None and not kept.is_forgotten:
            await self._learning.learn(
                session.drain_lessons(), user=turn.context.user, conversation=known.key
            )
            notices += self._learning.take_notices()
        return list(map(_warning, notices))

    def _begin(
        self,
        session: ToolSearchSession,
        question: Question,
        profile: ProviderProfile,
    ) -> tuple[ToolSearchSession, ToolContext, tuple[Discovery, ...], RunnerWarning | None]:
        """Begin a turn with the current catalog; without it, and warn, if it is refused."""

        @cache
        def context() -> ToolContext:
            # Asked only after the turn has begun, which decides the language.
            return self._calls.context(
                question.conversation, begun.language, user=question.user, roles=question.roles
            )

        begun, warning, refusal = session, None, self._calls.denial_reason(context)
        begin = partial(
            ToolSearchSession.begin_turn,
            content=question.message,
            messages=question.messages,
            profile=profile,
            roles=question.roles,
            denial_reason=refusal,
            hidden=self.permissions.settings.hidden,
            may_ask=self._calls.may_ask(context),
        )
        try:
            preloaded = begin(begun, catalog=self._calls.catalog)
        except SessionError as exc:
            _log.warning("catalog_refused: %s", exc)
            warning = RunnerWarning(code="catalog_refused", message=str(exc))
            begun = session if session.has_begun else self._without_search()
            preloaded = begin(begun)
        return begun, context(), preloaded, warning

    def _switch(self, known: OpenConversation, provider: str) -> ProviderSwitched:
        return ProviderSwitched(
            from_provider=str(known.last),
            to_provider=provider,
            cause="requested" if provider == self._prefer(known.key) else "primary_available",
        )

    def _first(self, key: ConversationKey) -> str:
        """Return the chosen or primary provider, or the next if it is cooling down."""
        preferred = self._prefer(key)
        return self._pool.health.order(now=time.monotonic(), preferred=preferred)[0]

    def _prefer(self, key: ConversationKey) -> str | None:
        return self._chosen.get(key) or self._chosen.get(None)

    async def _open(
        self, known: OpenConversation, *, keyed: bool
    ) -> tuple[ToolSearchSession, KeptConversation, Notice | None]:
        """Return the session of a conversation, and a notice if its store fails."""
        if known.session is not None and known.kept is not None:
            if await self._keeper.is_current(known.kept, known.turns if keyed else None):
                return known.session, known.kept, None
            # The store has another state of it: what was sent before is not a prefix any more.
            known.session, known.prefixes = None, PrefixMonitor()
        opened = await self._keeper.open(known.key)
        known.kept = opened.kept
        known.turns = opened.record.turns if opened.record else ()
        made = partial(self._new_session, self._calls.catalog, opened.record)
        session = await self._background.run(made, heavy=self._is_large or self._embeds)
        return session, opened.kept, opened.notice

    def _new_session(
        self,
        catalog: ToolCatalog,
        record: ConversationRecord | None = None,
        config: ToolSearchConfig | None = None,
    ) -> ToolSearchSession:
        return ToolSearchSession(
            catalog,
            config=config or self._config,
            system_prompt=self._system_prompt,
            max_tools=self._pool.most_tools,
            assembler=self._assembler,
            record=record,
            history=self._history,
            strategies=self._strategies,
        )

    def _without_search(self) -> ToolSearchSession:
        """Return a conversation that declares every tool: its catalog cannot be searched."""
        config = self._config.model_copy(update={"tool_schema_mode": "full"})
        return self._new_session(self._calls.catalog, config=config)


def _learning(
    config: ToolSearchConfig, store: ConversationStore, backlog: Backlog
) -> Learning | None:
    """Return what learns of calls; None: the bot does not learn."""
    chosen = config.learning
    if not chosen.enabled:
        return None
    return Learning(
        store,
        backlog=backlog,
        is_shared=chosen.shared is not False,
        keeps_vectors=chosen.vectors,
    )


def _warning(given: Notice) -> RunnerWarning:
    _log.warning("%s: %s", given.code, given.message)
    return RunnerWarning(code=given.code, message=given.message)
