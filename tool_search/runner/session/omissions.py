"""Parts of a history that requests leave out; the stored history stays whole.

A model's context is finite, and services refuse contents that they cannot read. Omissions
are remembered, so that requests repeat each other byte for byte until more has to go.
Results of earlier turns are shortened first. Then the oldest turns are left out, up to a
user's message and so never between a call and its result. A line of text replaces contents
that a service refused.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from tool_search.core.catalog.tool import most_tokens
from tool_search.core.conversation.record import (
    EVERYBODY,
    OF_PICTURES,
    Measure,
    Omission,
    OmissionReason,
)
from tool_search.core.messages import ContentPart, ImagePart, Message, TextPart
from tool_search.core.values.json import compact_json
from tool_search.core.values.shortening import cut
from tool_search.i18n import Language, text

__all__ = [
    "HistoryView",
    "MessageWeights",
    "Omissions",
    "pictured",
    "weight_of",
]

# Anthropic, Vision: 1,568 tokens a picture at most; OpenAI: 765 for a square in high detail.
_PICTURE_TOKENS = 1_500
# A message's own marks: its role, its beginning and its end.
_FRAME = {"tokens": 4, "bytes": 40}
_BYTES_PER_TOKEN = 4


def weight_of(message: Message, measure: Measure) -> int:
    """Estimate a message's size.

    The provider's own blocks (thinking, encrypted items) count by their length.
    """
    texts = [message.text, *(f"{call.name}{call.arguments}" for call in message.tool_calls)]
    parts = () if isinstance(message.content, str) else message.content
    urls = [part.url for part in parts if isinstance(part, ImagePart)]
    own = len(compact_json(list(message.native.blocks))) if message.native else 0
    if measure == "bytes":
        said = sum(len(text.encode("utf-8", "replace")) for text in texts)
        return _FRAME[measure] + max(said + sum(map(len, urls)), own)
    said = sum(map(most_tokens, texts)) + _PICTURE_TOKENS * len(urls)
    return _FRAME[measure] + max(said, own // _BYTES_PER_TOKEN)


class MessageWeights:
    """The sizes of a history's messages, estimated once each."""

    def __init__(self) -> None:
        self._messages: tuple[Message, ...] = ()
        self._weights: dict[Measure, list[int]] = {}

    def of(self, messages: tuple[Message, ...], measure: Measure) -> list[int]:
        """Return the sizes of these messages, in order."""
        # Equal tuples are compared by identity first, which takes no time.
        if messages[: len(self._messages)] != self._messages:
            self._weights.clear()
        self._messages = messages
        known = self._weights.setdefault(measure, [])
        known += [weight_of(message, measure) for message in messages[len(known) :]]
        return known[: len(messages)]


_SHORT_RESULT = 1_000


class Omissions:
    """The omissions of one conversation, by endpoint.

    Args:
        entries: As `entries` were when the conversation was stored.
    """

    def __init__(self, entries: Iterable[Omission] = ()) -> None:
        self._entries = {entry.endpoint: entry for entry in entries}
        self._whole = MessageWeights()
        self._sent: dict[str, MessageWeights] = {}
        self._shown: dict[str, _Shown] = {}

    @property
    def entries(self) -> tuple[Omission, ...]:
        """The omissions of each endpoint that has any."""
        return tuple(self._entries.values())

    def of(self, endpoint: str) -> Omission:
        """Return all that requests to an endpoint leave out."""
        own = self._entries.get(endpoint, Omission(endpoint=endpoint))
        common = self._entries.get(EVERYBODY)
        return own if common is None or endpoint == EVERYBODY else own.merged_with(common)

    def put(self, omission: Omission) -> None:
        """Have requests leave this out from the next one on."""
        self._entries[omission.endpoint] = omission

    def leave_out(self, endpoint: str, contents: Mapping[int, OmissionReason]) -> None:
        """Replace these contents by a line of text in requests to an endpoint."""
        own = self._entries.get(endpoint, Omission(endpoint=endpoint))
        self.put(replace(own, contents={**own.contents, **contents}))

    def take_back(self, endpoint: str, places: Collection[int]) -> None:
        """Send these contents again."""
        own = self._entries.get(endpoint, Omission(endpoint=endpoint))
        self.put(replace(own, contents={n: w for n, w in own.contents.items() if n not in places}))

    def shown(
        self, history: tuple[Message, ...], endpoint: str, view: HistoryView
    ) -> tuple[Message, ...]:
        """Return the history as requests to an endpoint carry it."""
        omission = self.of(endpoint)
        if not omission.reach and view.with_pictures:
            return history
        shown = self._shown.get(endpoint)
        if shown is None or not shown.precedes(history, omission, view):
            shown = self._shown[endpoint] = _Shown(omission, view)
        return shown.through(history)

    def weight(
        self,
        history: tuple[Message, ...],
        endpoint: str,
        view: HistoryView,
        measure: Measure = "tokens",
    ) -> int:
        """Estimate the size of the messages of a request."""
        weights = self._sent.setdefault(endpoint, MessageWeights())
        return sum(weights.of(self.shown(history, endpoint, view), measure))

    def reduced(
        self,
        history: tuple[Message, ...],
        endpoint: str,
        view: HistoryView,
        *,
        target: int,
        measure: Measure = "tokens",
    ) -> Omission | None:
        """Return what else has to go for requests to be of a size, the least first.

        Args:
            history: The whole history.
            endpoint: The endpoint for which requests are too large.
            view: The form of messages in its requests.
            target: The size that their messages should have at most.
            measure: The unit of the size.

        Returns:
            The new omission, which may not be enough, or None if nothing can be left out.
        """
        now = self.of(endpoint)
        start = _current_turn(history)
        best, size = now, sum(self._weights_of(history, now, view, measure))
        for results_before in (start, len(history)):
            shorter = replace(best, results_before=max(best.results_before, results_before))
            for candidate in self._cuts(history, shorter, view, target, measure):
                reached = sum(self._weights_of(history, candidate, view, measure))
                if reached < size:
                    best, size = candidate, reached
                if size <= target:
                    return None if best is now else best
        return None if best is now else best

    def within_turns(self, history: Sequence[Message], most: int) -> Omission | None:
        """Return the omission that keeps so many turns, or None if none has to go yet."""
        # Half as many again are kept first, so that the prompt cache rarely loses its prefix.
        now = self.of(EVERYBODY)
        sent = range(now.turns_before, len(history))
        turns = [index for index in sent if history[index].role == "user"]
        if len(turns) <= most + max(1, most // 2):
            return None
        return replace(now, turns_before=turns[-most])

    def inserted(self, place: int, count: int) -> None:
        """Shift indexes after messages were inserted into the history at a place."""

        def moved(index: int) -> int:
            return index + count if index > place else index

        self._entries = {
            endpoint: replace(
                entry,
                turns_before=moved(entry.turns_before),
                results_before=moved(entry.results_before),
                contents={
                    index + count if index >= place else index: why
                    for index, why in entry.contents.items()
                },
            )
            for endpoint, entry in self._entries.items()
        }

    def truncated(self, count: int) -> None:
        """Drop indexes after the history was cut to its first messages."""
        self._entries = {
            endpoint: replace(
                entry,
                turns_before=min(count, entry.turns_before),
                results_before=min(count, entry.results_before),
                contents={i: why for i, why in entry.contents.items() if i < count},
            )
            for endpoint, entry in self._entries.items()
        }

    def replaced(self, before: Sequence[Message], after: Sequence[Message]) -> None:
        """Keep the omissions of messages that a replaced history still has unchanged."""
        self._entries = {
            endpoint: entry
            for endpoint, entry in self._entries.items()
            if tuple(after[: entry.reach]) == tuple(before[: entry.reach])
        }

    def renamed(self, rename: Mapping[str, tuple[Message, ...]]) -> None:
        """Take other openings, by endpoint."""
        for endpoint, opening in rename.items():
            self._entries[endpoint] = replace(self._entries[endpoint], opening=opening)

    def _cuts(
        self,
        history: tuple[Message, ...],
        omission: Omission,
        view: HistoryView,
        target: int,
        measure: Measure,
    ) -> Iterator[Omission]:
        """Yield the omission as it is, then without as many old turns as it takes."""
        yield omission
        weights = self._weights_of(history, omission, view, measure)
        start, left = _current_turn(history), sum(weights)
        for index, weight in enumerate(weights[: start - omission.turns_before]):
            left -= weight
            following = omission.turns_before + index + 1
            is_turn = history[following].role == "user"
            if is_turn and (left <= target or following == start):
                yield replace(omission, turns_before=following)
                return

    def _weights_of(
        self, history: tuple[Message, ...], omission: Omission, view: HistoryView, measure: Measure
    ) -> list[int]:
        """Return the sizes of the messages that are sent, without the opening."""
        weights = list(self._whole.of(history, measure))
        for index in range(omission.turns_before, omission.results_before):
            weights[index] = weight_of(view.result(history[index]), measure)
        for index, why in omission.contents.items():
            weights[index] = weight_of(view.without(history[index], why), measure)
        return weights[omission.turns_before :]


@dataclass(frozen=True, slots=True, kw_only=True)
class HistoryView:
    """The form of messages in requests that leave something out.

    Attributes:
        language: The language of lines that replace contents.
        search_tool_name: The name of the tool whose results stay whole, since they load tools.
        with_pictures: False if the model takes no pictures.
    """

    language: Language
    search_tool_name: str
    with_pictures: bool = True

    def show(self, message: Message, index: int, omission: Omission) -> Message:
        """Return a message as a request carries it."""
        why = omission.contents.get(index)
        if why is not None:
            return self.without(message, why)
        if index < omission.results_before:
            message = self.result(message)
        return message if self.with_pictures else self.without(message, "pictures_unknown")

    def without(self, message: Message, why: OmissionReason) -> Message:
        """Return a message with a line in place of its pictures, or of all that it says."""
        line = TextPart(text(f"left_out.{why}", self.language))
        if why not in OF_PICTURES:
            return replace(message, content=line.text, native=None)
        parts = () if isinstance(message.content, str) else message.content
        if not pictured(message):
            return message
        content: list[ContentPart] = [
            line if isinstance(part, ImagePart) else part
            for part in parts or (TextPart(message.text),)
        ]
        # A user's document exists only as native blocks of its service, which go.
        if line not in content:
            content.append(line)
        return replace(message, content=tuple(content), native=None)

    def result(self, message: Message) -> Message:
        """Return a tool's result, shortened; any other message as it is."""
        if message.role != "tool" or message.name == self.search_tool_name:
            return message
        short = cut(message.text, longest=_SHORT_RESULT, language=self.language)
        if short == message.content:
            return message
        return replace(message, content=short, native=None)


class _Shown:
    """A history in the form of requests to one endpoint, extended with each request."""

    def __init__(self, omission: Omission, view: HistoryView) -> None:
        self._omission = omission
        self._view = view
        self._history: tuple[Message, ...] = ()
        self._messages: list[Message] = list(omission.opening)
        self._whole: tuple[Message, ...] = tuple(omission.opening)

    def precedes(self, history: tuple[Message, ...], omission: Omission, view: HistoryView) -> bool:
        """True if a history continues the one that was shown."""
        if (self._omission, self._view) != (omission, view):
            return False
        return history[: len(self._history)] == self._history

    def through(self, history: tuple[Message, ...]) -> tuple[Message, ...]:
        """Return the form of a history that continues the one that was shown."""
        first = max(len(self._history), self._omission.turns_before)
        for index in range(first, len(history)):
            self._messages.append(self._view.show(history[index], index, self._omission))
        if len(self._whole) != len(self._messages):
            self._whole = tuple(self._messages)
        self._history = history
        return self._whole


def pictured(message: Message) -> int:
    """Return the number of a message's pictures; native blocks of its service count as one."""
    if message.role == "assistant":
        return 0
    parts = () if isinstance(message.content, str) else message.content
    return sum(isinstance(part, ImagePart) for part in parts) or int(message.native is not None)


def _current_turn(history: Sequence[Message]) -> int:
    """Return the index of the user's last message; 0 if there is none."""
    places = (i for i in range(len(history) - 1, -1, -1) if history[i].role == "user")
    return next(places, 0)
