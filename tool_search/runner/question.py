"""A message of a user that a runner answers, and the turn that does.

A turn with an idempotency key stands in the conversation's record from its first call on: a
retry, on any worker, goes on where the first try ended, or repeats its answer.
"""

from __future__ import annotations

import hashlib
import time
from collections.abc import Awaitable, Callable, Collection, Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from itertools import takewhile

from tool_search.core.conversation.history import unanswered_calls
from tool_search.core.conversation.record import KeyedTurn
from tool_search.core.messages import ContentPart, Message, Notice, user_message
from tool_search.core.values.aside import Background
from tool_search.core.values.json import compact_json
from tool_search.errors import SessionError
from tool_search.i18n import text
from tool_search.providers.base import Usage
from tool_search.runner.conversations import OpenConversation, TurnWatch
from tool_search.runner.events import Done, ToolFinished
from tool_search.runner.execution import TurnCalls
from tool_search.runner.execution.observers import EventStream
from tool_search.runner.session.session import ToolSearchSession
from tool_search.runner.turn import Turn
from tool_search.stores import ConversationKey
from tool_search.stores.keeping import KeptConversation
from tool_search.stores.record import ConversationRecord, message_to_dict

__all__ = ["OpenTurn", "Question"]

_MAX_TURNS = 50
_MAX_ANSWER_CHARS = 200_000  # of all kept answers together; the newest stays in any case
_MAX_AGE_S = 86_400.0
# Calls of searches that the library wrote itself, which no consumer has seen.
_OWN_CALLS = ("restored_", "preload_", "second_chance_")


@dataclass(slots=True)
class Question:
    """The arguments of one `run`, and its turn once that has begun.

    Attributes:
        message: Text, or text and pictures.
        conversation: The key of the conversation.
        user: The user's id.
        roles: The user's roles.
        keys: The calls of a turn that may be retried.
        watch: The watch of the turn's time.
        stream: Takes the turn's events to their readers.
        turn: The turn; None: it has not begun.
        messages: The messages with which it begins, the user's first.
    """

    message: str | Sequence[ContentPart]
    conversation: ConversationKey
    user: str | None
    roles: Collection[str]
    keys: TurnCalls
    watch: TurnWatch
    stream: EventStream
    turn: Turn | None = None
    messages: tuple[Message, ...] = ()

    def taken_over(self) -> None:
        """End a turn whose lock another worker has."""
        self.watch.abandon(
            f"another worker answers the conversation {self.conversation!r}, because this one "
            "did not renew its lock for the length of a lease; run the turn again"
        )

    def begin(self, known: OpenConversation, session: ToolSearchSession) -> Iterator[ToolFinished]:
        """Take an earlier try of the turn out of the history; yield its results.

        Raises:
            SessionError: The idempotency key belongs to another message.
        """
        message = replace(user_message(self.message), turn=self.keys.turn)
        self.messages = (message,)
        if not self.keys.turn:
            return
        digest = _digest_of(message)
        oldest = time.time() - _MAX_AGE_S
        known.turns = tuple(turn for turn in known.turns if turn.at >= oldest)
        earlier = known.keyed_turn(self.keys.turn)
        if earlier is None:
            known.note(KeyedTurn(key=self.keys.turn, message=digest, at=time.time()))
            return
        if earlier.message != digest:
            raise SessionError(
                f"the idempotency_key of {message.text[:80]!r} was given to another message of "
                f"the conversation {self.conversation!r}: give each message a key of its own, "
                "and a retry the key and the message of the first try"
            )
        self.keys.resume(earlier)
        tried = _messages_of(session.history, self.keys.turn)
        done = tried if earlier.done else _done_part(tried, earlier)
        yield from _repeat(done, earlier)
        if earlier.done is None:
            known.session = None  # if the turn does not begin, its messages are read again
            _take_out(session, tried)
            self.messages = (message, *done[1:])

    def answer(self, known: OpenConversation) -> Done | None:
        """Return the end of an earlier try, or None if it has none."""
        earlier = known.keyed_turn(self.keys.turn)
        if earlier is None or earlier.done is None:
            return None
        usage = Usage(**earlier.done["usage"])
        return Done(**{**earlier.done, "usage": usage, "repeated": True})

    def note(self, known: OpenConversation, done: Done | None = None) -> None:
        """Note how far the turn is, and its end."""
        turn = known.keyed_turn(self.keys.turn)
        if turn is None:
            return
        if done is not None:
            values = asdict(done)
            del values["repeated"]
            turn = replace(turn, done=values)
        known.note(replace(turn, calls=dict(self.keys.begun)))
        left = _MAX_ANSWER_CHARS
        kept: list[KeyedTurn] = []
        for each in reversed(known.turns[-_MAX_TURNS:]):
            left -= len(each.done["answer"]) if each.done else 0
            if left < 0 and kept:
                break
            kept.append(each)
        known.turns = tuple(reversed(kept))


@dataclass(slots=True)
class OpenTurn:
    """A keyed turn that goes on, as the store has it.

    Attributes:
        question: The question.
        known: The conversation.
        kept: The store's side of it.
        write: Writes a record.
        background: Runs work that would hold the event loop.
    """

    question: Question
    known: OpenConversation
    kept: KeptConversation
    write: Callable[[KeptConversation, ConversationRecord], Awaitable[Notice | None]]
    background: Background
    _record: ConversationRecord | None = None

    async def refresh(self) -> None:
        """Take the conversation's state, while no call changes it."""
        turn = self.question.turn
        if turn is not None:
            self._record = await self.background.run(turn.session.record, heavy=turn.is_heavy)

    async def save(self) -> None:
        """Write the state with the calls that have begun.

        Raises:
            SessionError: Another worker goes on with the conversation: no tool may be started.
        """
        question, record, had_all = self.question, self._record, not self.kept.is_partial
        if record is None:
            return
        question.note(self.known)
        begun = question.keys.begun
        answers = tuple(
            call.failed(
                text(
                    "call.may_have_run" if call.id in begun else "call.not_run",
                    record.language,
                    name=begun[call.id].tool if call.id in begun else call.name,
                )
            )
            for call in unanswered_calls(record.history)
        )
        history = (*record.history, *answers)
        await self.write(self.kept, replace(record, history=history, turns=self.known.turns))
        if had_all and self.kept.is_partial:
            question.taken_over()
        if question.watch.ended_because:
            raise SessionError(question.watch.ended_because)


def _digest_of(message: Message) -> str:
    content = compact_json(message_to_dict(message)["content"])
    return hashlib.sha256(content.encode("utf-8", "replace")).hexdigest()[:16]


def _messages_of(history: Sequence[Message], turn: str) -> tuple[Message, ...]:
    """Return the messages of a keyed turn, the user's first."""
    start = next((place for place, said in enumerate(history) if said.turn == turn), None)
    if start is None:
        return ()
    rest = takewhile(lambda said: said.role != "user", history[start + 1 :])
    found = [history[start], *rest]
    while found[-1].role == "tool" and (found[-1].tool_call_id or "").startswith(_OWN_CALLS[0]):
        del found[-2:]  # it shows tools to the turn after this one
    return tuple(found)


def _done_part(messages: Sequence[Message], turn: KeyedTurn) -> Sequence[Message]:
    """Return an open turn up to its last reply that has done something.

    The model is asked again for an answer, and for calls of which none was run.
    """
    while messages and messages[-1].role != "user":
        last = max(place for place, said in enumerate(messages) if said.role != "tool")
        calls, results = messages[last].tool_calls, messages[last + 1 :]
        has_begun = any(call.id in turn.calls for call in calls)
        if has_begun or (calls and not any(result.is_error for result in results)):
            break
        messages = messages[:last]
    return messages


def _take_out(session: ToolSearchSession, messages: Sequence[Message]) -> None:
    """Take the messages of a turn out of the history; they are said again at its end."""
    if not messages:
        return
    history = session.history
    if history[-1] is messages[-1]:
        session.drop_last_turn()
        return
    place = next(place for place, said in enumerate(history) if said is messages[0])
    session.adopt_history((*history[:place], *history[place + len(messages) :]))


def _repeat(messages: Sequence[Message], turn: KeyedTurn) -> Iterator[ToolFinished]:
    calls = {call.id: call for message in messages for call in message.tool_calls}
    for message in messages:
        call = calls.get(message.tool_call_id or "")
        if message.role != "tool" or call is None or call.id.startswith(_OWN_CALLS):
            continue
        begun = turn.calls.get(call.id)
        yield ToolFinished(
            call=call,
            tool=begun.tool if begun else call.name,
            content=message.text,
            is_error=message.is_error,
            outcome="failed" if message.is_error else "finished",
            parts=() if isinstance(message.content, str) else message.content,
            repeated=True,
        )
