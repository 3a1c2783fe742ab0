"""One turn of a conversation: from the user's message to the answer."""

from __future__ import annotations

import asyncio
import logging
import time
from collections import Counter
from collections.abc import (
    Awaitable,
    Callable,
    Iterator,
    Mapping,
    Sequence,
)
from contextlib import aclosing
from dataclasses import dataclass, field, replace
from functools import partial

from tool_search.core.conversation.calls import CallDecision
from tool_search.core.conversation.record import OF_PICTURES, OmissionReason
from tool_search.core.discoveries import Discovery
from tool_search.core.messages import Message, Notice, NoticeCode, Phase, RequestPlan, ToolCall
from tool_search.core.profiles import ProviderProfile
from tool_search.core.services import CALL_TOOL_NAME
from tool_search.core.values.aside import Background, closing
from tool_search.errors import AllProvidersFailedError, ProviderError
from tool_search.i18n import text
from tool_search.providers.base import ReplyDelta, ReplyEnd, StopReason, Usage
from tool_search.providers.errors import NOTICES_OF_ACTIONS, ErrorAction
from tool_search.providers.prompt_cache import LATE_CALL, PrefixMonitor
from tool_search.providers.refusals import SentTools
from tool_search.runner.conversations import emit
from tool_search.runner.events import (
    ContentLeftOut,
    Done,
    ProviderSwitched,
    RunnerEvent,
    RunnerWarning,
    TextDelta,
    ToolsDiscovered,
    TurnEnd,
)
from tool_search.runner.execution import CallRunner, FinishedCall, ToolContext, TurnCalls
from tool_search.runner.execution.observers import EventStream
from tool_search.runner.observing import request_finished, request_started
from tool_search.runner.providers import ProviderPool
from tool_search.runner.refusals import Repeats, TurnRefusals, ending_notice
from tool_search.runner.session.session import Compact, ToolSearchSession, compacted

__all__ = ["KeepDiscoveries", "Turn"]

KeepDiscoveries = Callable[
    [Sequence[Discovery]], Awaitable[tuple[tuple[Discovery, ...], Notice | None]]
]

_MAX_ANSWERS_AT_ONCE = 50
_log = logging.getLogger(__name__)


@dataclass(slots=True, kw_only=True)
class Turn:
    """One turn: requests, calls and results until there is an answer.

    Attributes:
        session: The conversation, whose turn has begun.
        pool: The providers.
        provider: The `id` of the provider that is asked.
        calls: The runner of calls.
        context: The context of tools.
        keys: The calls of a turn that may be retried.
        keep: Keeps discoveries; returns all of the conversation, and a notice if it failed.
        max_steps: The most requests in which tools may be called.
        prefixes: The monitor of the last request to each provider.
        background: Runs work that would hold the event loop.
        is_heavy: True if each step over the catalog would hold the event loop.
        searches_aside: True if a search would, such as one by meaning.
        stream: Takes the turn's events to their readers.
        compact: The bot's own compaction, for a history that is too long.
        preloaded: The tools that were loaded for the user's message.
        second_chance: True if an answer that says there is no tool may be asked for again.
    """

    session: ToolSearchSession
    pool: ProviderPool
    provider: str
    calls: CallRunner
    context: ToolContext
    keys: TurnCalls
    keep: KeepDiscoveries
    stream: EventStream
    max_steps: int
    prefixes: PrefixMonitor = field(default_factory=PrefixMonitor)
    background: Background = field(default_factory=Background)
    is_heavy: bool = False
    searches_aside: bool = False
    compact: Compact | None = None
    preloaded: Sequence[Discovery] = ()
    second_chance: bool = False
    _usage: Usage = field(default_factory=Usage)
    _steps: int = 0
    _reply: ReplyEnd | None = None
    _plan: RequestPlan | None = None
    _paused: list[str] = field(default_factory=list)
    _refusals: TurnRefusals = field(init=False)
    _left: int = field(init=False)
    _compacted: bool = False
    # Providers that refused the user's message; those of them that are asked without pictures.
    _refused: dict[str, OmissionReason] = field(default_factory=dict)
    _blind: set[str] = field(default_factory=set)
    _is_unanswerable: bool = False
    # Text that consumers have of a reply that is not whole; text that is held back from them.
    _shown: list[str] = field(default_factory=list)
    _held: list[TextDelta] | None = None

    def __post_init__(self) -> None:
        self._refusals = TurnRefusals(self.pool, self.provider)
        self._left = self.max_steps

    async def run(self) -> Done:
        """Hand over the turn's events; return the last one.

        Raises:
            AllProvidersFailedError: No provider answered.
        """
        await self._tell_discovered(self.preloaded)
        while self._left:
            await self._get_reply()
            known = len(self.session.discoveries)
            calls = self._accept()
            await self._tell_ending()
            await self._tell_discovered(self.session.discoveries.entries[known:])
            if not calls and self._answer.stop_reason != "pause":
                return await self._done(self._answer.stop_reason)
            await self._run_calls(calls)
        # `max_steps` are over: the answer has no tools.
        await self._ask("final")
        self.session.accept(replace(self._answer.message, tool_calls=(), native=None))
        await self._tell_ending()
        return await self._done("max_steps")

    async def _emit(self, event: RunnerEvent) -> None:
        """Hand an event over; hold back the text of a reply that may not count."""
        if isinstance(event, TextDelta):
            if self._held is not None:
                self._held.append(event)
                return
            self._shown.append(event.text)
        elif isinstance(event, ProviderSwitched):
            self._shown.clear()
            if self._held is not None:
                # The discarded text was held back, so no consumer has seen it.
                self._held.clear()
                event = replace(event, discarded_text="")
        await emit(event)

    async def _get_reply(self) -> None:
        """Ask for the reply that counts: the second one after a second chance."""
        self._left -= 1
        await self._ask_in_mode()
        reply = self._answer
        if not (self.second_chance and self._left) or self._is_unanswerable:
            return
        if reply.stop_reason == "answer":
            find = partial(self.session.second_chance, reply.message)
            heavy = self.is_heavy or self.searches_aside
            if new := await self.background.run(find, heavy=heavy):
                await self._ask_again(new)

    async def _ask_again(self, new: Sequence[Discovery]) -> None:
        """Ask for a reply in place of the last one, for which tools were found.

        If no provider gives it, the last one is the answer after all.
        """
        self._left -= 1
        first, provider = self._answer, self.provider
        void = first.message.text
        await self._switch(provider, "second_chance", void)
        await self._tell_discovered(new)
        try:
            await self._ask_in_mode()
        except AllProvidersFailedError as error:
            await self._warn("second_chance_failed", f"the first answer is kept: {error}")
            failed, self.provider = self.provider, provider
            await self._switch(failed, str(error), "".join(self._shown))
            # Its own blocks belong to the request before the search.
            self._reply = replace(first, message=replace(first.message, native=None))
            await self._emit(TextDelta(text=void))

    def _accept(self) -> tuple[ToolCall, ...]:
        """Accept the reply; return the calls to run: none of a refused reply.

        A paused reply goes back as it is, and the next one goes on with it.
        """
        message, reason = self._answer.message, self._answer.stop_reason
        if reason == "refusal":
            message = replace(message, tool_calls=(), native=None)
        if reason == "pause":
            self._paused.append(message.text)
        elif message.tool_calls:
            self._paused.clear()
        return self.session.accept(message, is_paused=reason == "pause")

    async def _tell_ending(self) -> None:
        """Warn about the end of the reply."""
        # An answer of our own is not the provider's.
        notice = None if self._is_unanswerable else ending_notice(self._answer, self.provider)
        if notice is not None:
            await self._warn(notice.code, notice.message)

    @property
    def steps(self) -> int:
        """The number of requests that were answered."""
        return self._steps

    @property
    def usage(self) -> Usage:
        """The tokens of all requests."""
        return self._usage

    @property
    def _answer(self) -> ReplyEnd:
        if self._reply is None:
            raise RuntimeError("no provider has answered yet")
        return self._reply

    async def _done(self, reason: StopReason | TurnEnd) -> Done:
        answer = "".join([*self._paused, self._answer.message.text])
        if not answer.strip():
            stopped = self._answer.stop_reason
            refused = stopped == "refusal"
            if not refused:
                what = f"{self.provider!r} ended without text: {stopped}"
                await self._warn("answer_missing", what)
            key = "answer.refused" if refused else "answer.missing"
            answer = text(key, self.session.language)
        return Done(
            answer=answer, provider=self.provider, steps=self._steps, usage=self._usage,
            stop_reason="answer" if reason == "calls" else reason,
        )  # fmt: skip

    async def _ask_in_mode(self) -> None:
        """Ask for a whole reply; in `skills_like` the text of the first of two is held back."""
        if self.session.decision.mode != "skills_like":
            await self._ask("answer")
            return
        held: list[TextDelta] = []
        self._held = held
        try:
            await self._ask("select")
        finally:
            self._held = None
        picked = [call.name for call in self._answer.message.tool_calls]
        catalog, permits = self.session.catalog, self.session.permits
        known = [n for n in dict.fromkeys(picked) if n in catalog and permits(catalog[n])]
        if known and self._plan is not None and self._plan.phase == "select":
            await self._ask("detail", known)
            return
        for delta in held:
            await self._emit(delta)

    async def _ask(self, phase: Phase, selected: Sequence[str] = ()) -> None:
        """Ask providers until one has given a whole reply."""
        causes: dict[str, ProviderError] = {}
        repeats: Repeats = Counter()
        # A provider that would get a line of text in place of the whole message is not asked.
        failed = {name for name, why in self._refused.items() if why not in OF_PICTURES}
        while not self._is_unanswerable:
            form = self._refusals.form(self.provider, phase)
            profile = replace(self.pool.profile(self.provider), **form)
            if self.session.sent.hides_pictures_from(profile):
                blind = ProviderError("the model takes no pictures", provider=self.provider)
                verdict = ErrorAction(remedy="leave_out", left_out="pictures_unknown")
                await self._pass_on(verdict, blind, failed, causes)
                continue
            planned = partial(self._plan_request, profile, phase, selected)
            plan, notices = await self.background.run(planned, heavy=self.is_heavy)
            for notice in notices:
                await self._emit(notice)
            streamed: list[str] = []
            try:
                await self._stream(replace(plan, form=form), streamed)
            except ProviderError as error:
                discarded = "".join(streamed)
                asked = replace(profile, strategy=plan.strategy)
                verdict = self._refusals.action(
                    error, self.provider, asked, self._send(plan),
                    repeats=repeats, phase=plan.phase, is_shown=bool(discarded),
                    has_pictures=self.session.sent.shows_pictures_to(asked),
                )  # fmt: skip
                await self._pass_on(verdict, error, failed, causes, discarded=discarded)
            else:
                self.pool.health.succeeded(self.provider)
                self.session.sent.accept(profile)
                for news in self._refusals.answered(self.provider, plan):
                    await self._warn(news.code, news.message)
                return

    def _send(self, plan: RequestPlan) -> SentTools:
        own = (self.session.search_tool_name, CALL_TOOL_NAME)
        return SentTools(listed=plan.tools, loaded=tuple(plan.brought()), own=own, facts=plan.facts)

    async def _pass_on(
        self,
        verdict: ErrorAction,
        error: ProviderError,
        failed: set[str],
        causes: dict[str, ProviderError],
        *,
        discarded: str = "",
    ) -> None:
        """Prepare to send the request again, to this provider or to the next."""
        causes[self.provider] = error
        before = self.provider
        if verdict.remedy == "shorten":
            verdict, notice = await self._shorten(verdict, error)
            if notice is not None:
                await self._warn(notice.code, notice.message)
        verdict = self._left_out(verdict, error)
        if verdict.remedy == "next_provider":
            failed.add(self.provider)
            await self._move_on(verdict, failed, causes)
        elif verdict.remedy not in ("shorten", "leave_out"):
            await self._emit(self._remedy(verdict, error))
            if verdict.wait_s:
                await asyncio.sleep(verdict.wait_s)
        if self.provider != before or discarded:
            await self._switch(before, str(error), discarded)

    async def _shorten(
        self, verdict: ErrorAction, error: ProviderError
    ) -> tuple[ErrorAction, Notice | None]:
        """Shorten the next request; if nothing can go, the message itself is too long.

        The bot's own compaction is tried first, once a turn. Where no words say that it is too
        long, the form may be at fault.
        """
        is_guess = verdict.is_unknown and verdict.measure == "tokens"
        self.prefixes.forget(self.provider)
        notice = None
        if self.compact is not None and not self._compacted and not is_guess:
            self._compacted = True
            is_shorter, notice = await compacted(self.session, self.compact)
            if is_shorter:
                return verdict, notice
        profile = self.pool.profile(self.provider)
        if self.session.sent.shorten(
            profile, share=verdict.share, measure=verdict.measure, is_guess=is_guess
        ):
            if is_guess:
                self._refusals.ask_plainer(self.provider)
            return verdict, notice
        if verdict.is_unknown and (plan := self._plan):
            sent = self._send(plan)
            verdict = self._refusals.plainer_action(error, self.provider, sent, plan.phase)
            if self.provider in self._refusals.plainer:
                return verdict, notice
        return ErrorAction(remedy="leave_out", left_out="message_too_long"), notice

    def _left_out(self, verdict: ErrorAction, error: ProviderError) -> ErrorAction:
        """Leave out of later requests here what was refused; another provider may take it."""
        profile = self.pool.profile(self.provider)
        if verdict.remedy != "leave_out":
            is_over = verdict.remedy == "next_provider"
            is_over &= verdict.is_unknown or not verdict.cools_down
            if is_over and self.session.sent.take_back(profile):
                # It may be refused again, in words that name it.
                self._refused.pop(self.provider, None)
                self._blind.discard(self.provider)
            return verdict
        self.prefixes.forget(self.provider)
        refused = self.session.sent.leave_out(
            profile, verdict.left_out, picture=error.picture, most=verdict.most,
            is_guess=verdict.is_unknown,
        )  # fmt: skip
        if refused in ("result", "older"):
            return verdict
        if refused == "message":
            self._refused[self.provider] = verdict.left_out
        return ErrorAction(remedy="next_provider")

    def _plan_request(
        self, profile: ProviderProfile, phase: Phase, selected: Sequence[str]
    ) -> tuple[RequestPlan, list[RunnerEvent]]:
        plan = self._plan = self.session.plan(profile, phase=phase, selected=selected)
        return plan, list(self._notice(profile, plan))

    def _notice(self, profile: ProviderProfile, plan: RequestPlan) -> Iterator[RunnerEvent]:
        """Yield the session's notices, and a warning if a prompt cache ends without one."""
        if self.session.sent.loses_tools_at(profile):
            told = text("content.tools_unknown", self.session.language)
            yield ContentLeftOut(provider=self.provider, reason="tools_unknown", text=told)
        own = self.pool.notices(self.provider, plan, self.session.language)
        notices = (*self.session.take_notices(), *own)
        for notice in notices:
            yield self._warning(notice.code, notice.message)
        moved = self.prefixes.check(
            self.provider, profile, plan,
            history=self.session.history, announced=[notice.code for notice in notices],
        )  # fmt: skip
        if moved is not None:
            if LATE_CALL in moved:
                yield self._warning(
                    "late_definition",
                    f"what {self.provider!r} is sent differs from its last request at {moved}: "
                    "the tool is there now, and its definition is sent before the call; the "
                    "prompt cache ends there",
                )
                return
            yield self._warning(
                "prefix_moved",
                f"what {self.provider!r} is sent differs from its last request at {moved}, and "
                "nothing announced explains it: its prompt cache ends there",
            )

    async def _stream(self, plan: RequestPlan, streamed: list[str]) -> None:
        reply, provider = None, self.pool.providers[self.provider]
        started = first_at = failure = None
        if self.stream.is_read:
            started = await request_started(
                self.provider, provider.profile, plan, self.session.catalog,
                is_prefix_kept=self.prefixes.is_kept,
            )  # fmt: skip
            self.stream.tell(started, plan)
        began = time.monotonic()
        try:
            async with closing(provider.stream(plan)) as events:
                async for event in events:
                    first_at = first_at or time.monotonic()
                    if isinstance(event, ReplyDelta):
                        streamed.append(event.text)
                        await self._emit(TextDelta(text=event.text))
                    elif isinstance(event, ReplyEnd):
                        reply = event
        except BaseException as error:
            failure = error
            raise
        finally:
            if started is not None:
                finished = request_finished(started, began, first_at, reply, failure)
                self.stream.tell(finished, reply.message if reply else None)
        if reply is None:
            raise ProviderError("the reply has no end", provider=self.provider)
        self._reply = reply
        self._steps += 1
        self._usage += reply.usage

    async def _move_on(
        self, verdict: ErrorAction, failed: set[str], causes: Mapping[str, ProviderError]
    ) -> None:
        """Choose the next provider to ask, or give up.

        If all others have failed, one that refused the user's pictures is asked without them,
        and one that refused a request for no known reason in a plainer form.
        """
        now = time.monotonic()
        if verdict.cools_down:
            self.pool.health.failed(self.provider, now=now)
        order = self.pool.health.order(now=now)
        waiting = [name for name in order if name not in failed]
        hidden = self._refused.keys() - self._blind
        blind = [name for name in order if name in hidden and self._refused[name] in OF_PICTURES]
        plainer = [name for name in order if name in self._refusals.plainer]
        if waiting:
            self.provider = waiting[0]
        elif blind:
            self.provider = blind[0]
            self._blind.add(self.provider)
            failed.discard(self.provider)
            why = self._refused[self.provider]
            shown = text(f"content.{why}", self.session.language)
            await self._emit(ContentLeftOut(provider=self.provider, reason=why, text=shown))
        elif plainer:
            self.provider = plainer[0]
            self._refusals.ask_plainer(self.provider)
            failed.discard(self.provider)
        elif causes.keys() <= self._refused.keys() - self._blind:
            await self._answer_alone(causes)
        else:
            raise AllProvidersFailedError(causes)

    async def _answer_alone(self, causes: Mapping[str, ProviderError]) -> None:
        """Answer in place of the providers: none of them takes the user's message."""
        reasons = [self._refused[name] for name in causes]
        is_long = "message_too_long" in reasons
        for notice in self.session.take_notices():
            await self._warn(notice.code, notice.message)
        said = "; ".join(f"{name!r}: {cause.detail}" for name, cause in causes.items())
        await self._warn("message_refused", f"no provider takes the user's message: {said}")
        answer = text(f"answer.{'message_too_long' if is_long else 'message_refused'}",
                      self.session.language)  # fmt: skip
        await self._emit(TextDelta(text=answer))
        self._reply = ReplyEnd(
            message=Message(role="assistant", content=answer), usage=Usage(),
            stop_reason="other" if is_long else "refusal",
        )  # fmt: skip
        self._is_unanswerable = True

    def _remedy(self, verdict: ErrorAction, error: ProviderError) -> RunnerWarning:
        """Apply what an error shows, so that the next plan avoids it."""
        if verdict.remedy == "wait":
            what = f"sent once more after {verdict.wait_s:g} seconds, because {error}"
            return self._warning("provider_waited_for", what)
        self.prefixes.forget(self.provider)
        plan = self._plan
        if verdict.references and plan is not None:
            self.session.drop_references(verdict.references)
        if verdict.replies:
            self.session.drop_native_blocks(self.pool.profile(self.provider).origin)
        if verdict.set_aside:
            names = ", ".join(repr(tool.name) for tool in verdict.set_aside)
            origin = self.pool.profile(self.provider).origin
            what = f"{names} set aside for {origin}, and sent once more, because {error}"
            return self._warning("tool_set_aside", what)
        return self._warning(NOTICES_OF_ACTIONS[verdict.remedy], f"sent once more, because {error}")

    async def _run_calls(self, calls: Sequence[ToolCall]) -> None:
        """Run the calls of a reply, and commit results and discoveries.

        Each call has its result in the history, even if the turn is cancelled.
        """
        await self.keys.refresh()
        batch = self.calls.batch(
            calls, self.context, decide=self._decide, turn=self.keys, stream=self.stream
        )
        answered = 0
        try:
            async with aclosing(batch.events()) as events:
                async for event in events:
                    if not isinstance(event, FinishedCall):
                        await self._emit(event)
                        continue
                    committed = partial(self.session.commit, (event.to_commit(),))
                    new = await self.background.run(committed, heavy=self.is_heavy)
                    await self.keys.end(event.call.id, is_error=event.result.is_error)
                    answered += 1
                    if answered % _MAX_ANSWERS_AT_ONCE == 0:
                        await asyncio.sleep(0)  # results that wait for nothing would hold the loop
                    if (searched := event.searched()) is not None:
                        self.stream.tell(searched)
                    await self._emit(event.finished(self.session.last_message.text))
                    await self._tell_discovered(new)
        finally:
            for outcome in batch.undelivered():
                self.session.commit((outcome.to_commit(),))

    def _decide(self, call: ToolCall) -> CallDecision | Awaitable[CallDecision]:
        """Decide a call: here, or in the background if that would hold the event loop."""
        decided = partial(self.session.decide, call)
        is_search = call.name == self.session.search_tool_name
        if not (self.is_heavy or (self.searches_aside and is_search)):
            return decided()
        return self.background.run(decided, heavy=True, waits=self.searches_aside and is_search)

    async def _tell_discovered(self, new: Sequence[Discovery]) -> None:
        """Keep discoveries, and tell of them."""
        if not new:
            return
        entries, notice = await self.keep(new)
        if notice is not None:
            await self._warn(notice.code, notice.message)
        self.session.adopt_discoveries(entries)
        if self.session.decision.mode == "tool_search":  # in other modes all tools can be called
            names = tuple(entry.tool.name for entry in new)
            total = len(self.session.discoveries)
            await self._emit(ToolsDiscovered(names=names, total=total, via=new[0].via))

    async def _switch(self, before: str, cause: str, discarded: str) -> None:
        """Tell that another request follows, to this provider after another one or itself."""
        await self._emit(
            ProviderSwitched(
                from_provider=before,
                to_provider=self.provider,
                cause=cause,
                discarded_text=discarded,
            )
        )

    async def _warn(self, code: NoticeCode, message: str) -> None:
        await self._emit(self._warning(code, message))

    @staticmethod
    def _warning(code: NoticeCode, message: str) -> RunnerWarning:
        _log.warning("%s: %s", code, message)
        return RunnerWarning(code=code, message=message)
