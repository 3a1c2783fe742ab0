"""Histories as requests carry them: within limits, without refused content, complete."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import takewhile
from typing import Literal

from tool_search.core.catalog.tool import Tool
from tool_search.core.conversation.history import (
    MessageLog,
    visible_names,
)
from tool_search.core.conversation.record import (
    EVERYBODY,
    OF_PICTURES,
    Measure,
    Omission,
    OmissionReason,
)
from tool_search.core.conversation.session import WholeHistory
from tool_search.core.conversation.synthetic_searches import SyntheticSearches
from tool_search.core.conversation.tools import ToolState
from tool_search.core.discoveries import DiscoveryState
from tool_search.core.messages import ImagePart, Message
from tool_search.core.profiles import ProviderProfile
from tool_search.core.settings import HistoryLimits
from tool_search.runner.session.omissions import HistoryView, Omissions, pictured, weight_of

__all__ = ["Refused", "SentHistory"]

Refused = Literal["result", "message", "older"]
"""Whose content a provider refused: results since the last reply, the user's last message, or
what is older."""


class SentHistory(WholeHistory):
    """The parts of a history that requests leave out; each omission is announced.

    Args:
        log: The history.
        tools: The tools of the conversation, which take its notices.
        searches: The searches that show discoveries again.
        discoveries: The discoveries of the conversation.
        limits: The limits of what requests carry.
        omissions: The omissions when the conversation was stored.
    """

    def __init__(
        self,
        log: MessageLog,
        *,
        tools: ToolState,
        searches: SyntheticSearches,
        discoveries: DiscoveryState,
        limits: HistoryLimits,
        omissions: Iterable[Omission] = (),
    ) -> None:
        super().__init__(log)
        self._tools = tools
        self._searches = searches
        self._discoveries = discoveries
        self._limits = limits
        self._omissions = Omissions(omissions)
        # By endpoint: the length of the history that it took, and contents that may be at fault.
        self._taken: dict[str, int] = {}
        self._suspected: dict[str, set[int]] = {}
        # By endpoint: what was left out before older turns went on suspicion.
        self._longer: dict[str, Omission] = {}
        self._without_tools: set[str] = set()

    @property
    def omissions(self) -> tuple[Omission, ...]:
        """The omissions, as a record keeps them."""
        return self._omissions.entries

    def to(self, profile: ProviderProfile) -> tuple[Message, ...]:
        """Return the history as requests to a provider carry it."""
        self._limit_pictures(profile)
        view = self._view(with_pictures=profile.takes_pictures)
        return self._omissions.shown(self._log.messages, profile.origin, view)

    def follow_inserted(self, place: int, count: int) -> None:
        """Follow messages that were inserted into the history before one of it."""
        self._omissions.inserted(place, count)
        self._suspected = {
            origin: {index + count if index >= place else index for index in places}
            for origin, places in self._suspected.items()
        }

    def follow_truncated(self) -> None:
        """Follow a history that lost its last messages."""
        self._omissions.truncated(len(self._log))

    def follow_replaced(self, before: Sequence[Message]) -> None:
        """Follow a history that was replaced, as far as it begins as it did before."""
        self._omissions.replaced(before, self._log.messages)

    def follow_renamed(self) -> None:
        """Follow another name of the search tool."""
        openings = {
            entry.endpoint: tuple(self._searches.renamed(entry.opening))
            for entry in self._omissions.entries
        }
        self._omissions.renamed(openings)

    @property
    def has_outgrown(self) -> bool:
        """True if requests are to carry less, by the settings, from the next turn on."""
        limits, history = self._limits, self._log.messages
        if limits.max_tokens is not None:
            view = self._view(with_pictures=True)
            if self._omissions.weight(history, EVERYBODY, view) > limits.max_tokens:
                return True
        turns = limits.keep_turns
        return turns is not None and self._omissions.within_turns(history, turns) is not None

    def shorten(
        self,
        profile: ProviderProfile,
        *,
        share: float,
        measure: Measure = "tokens",
        is_guess: bool = False,
    ) -> bool:
        """Have requests to a provider carry less: they were too long.

        Results of earlier turns are shortened first, then the oldest turns are left out, then
        results of the current turn are shortened too. The recorded history stays whole.

        Args:
            profile: The provider.
            share: The largest size of the messages, as a share of the current size.
            measure: The measure of that size.
            is_guess: True if the service did not say that they were.

        Returns:
            False if nothing is left that may go.
        """
        history, view = self._log.messages, self._view(with_pictures=profile.takes_pictures)
        size = int(share * self._omissions.weight(history, profile.origin, view, measure))
        if is_guess and (start := self._log.last_user):
            # There is one attempt, and it may be their number: all earlier turns go.
            size = min(size, sum(weight_of(message, measure) for message in history[start:]))
        omission = self._omissions.reduced(
            history, profile.origin, view, target=size, measure=measure
        )
        if omission is None:
            return False
        if is_guess:
            self._longer[profile.origin] = self._omissions.of(profile.origin)
        was = "may have been" if is_guess else "was"
        self._leave_out_turns(omission, f"a request to {profile.model!r} {was} too long")
        return True

    def leave_out(
        self,
        profile: ProviderProfile,
        why: OmissionReason,
        *,
        picture: str = "",
        most: int = 0,
        is_guess: bool = False,
    ) -> Refused | None:
        """Have requests to a provider leave out the content that it refused.

        The picture that it names goes, or else the newest content that can be meant: results
        since the last reply, what it was never sent before, the user's last message, older
        content. Of too many pictures the oldest go.

        Args:
            profile: The provider.
            why: The reason.
            picture: The address of the picture that it names.
            most: The most pictures that it takes.
            is_guess: True if the service did not say what it refused.

        Returns:
            Whose content it was; None if all that it could be is left out already.
        """
        known, history = self._omissions.of(profile.origin).contents, self._log.messages
        for refused, places in self._suspects(profile, why, picture, most):
            left = [place for place in places if place not in known]
            if why in OF_PICTURES:
                left = [place for place in left if pictured(history[place])]
            if left:
                if refused == "message" and why == "message_refused":
                    self.take_back(profile)
                if is_guess or (refused == "older" and why == "message_refused"):
                    self._suspected.setdefault(profile.origin, set()).update(left)
                self._omissions.leave_out(profile.origin, dict.fromkeys(left, why))
                what = f"{len(left)} message{'s' if len(left) > 1 else ''}"
                self._tools.announce(
                    "content_left_out",
                    f"requests to {profile.model!r} leave out the content of {what}: {why}",
                )
                return refused
        return None

    def accept(self, profile: ProviderProfile) -> None:
        """Keep what is left out: a provider answered a request."""
        self._taken[profile.origin] = len(self._log)
        self._suspected.pop(profile.origin, None)
        self._longer.pop(profile.origin, None)

    def take_back(self, profile: ProviderProfile) -> bool:
        """Send what was left out on suspicion again: a provider refused the request without it.

        Returns:
            True if it was the content of a message.
        """
        places = self._suspected.pop(profile.origin, ())
        self._omissions.take_back(profile.origin, places)
        if before := self._longer.pop(profile.origin, None):
            contents = self._omissions.of(profile.origin).contents
            self._omissions.put(replace(before, contents=contents))
        return bool(places)

    def shows_pictures_to(self, profile: ProviderProfile) -> bool:
        """True if requests to a provider have pictures."""
        return profile.takes_pictures and bool(self._find_pictures(profile))

    def _limit_pictures(self, profile: ProviderProfile) -> None:
        """Leave the oldest pictures out of requests to a provider that takes fewer."""
        most, history = profile.max_pictures, self._log.messages
        if most and sum(pictured(history[place]) for place in self._find_pictures(profile)) > most:
            self.leave_out(profile, "too_many_pictures", most=most)

    def _find_pictures(self, profile: ProviderProfile) -> list[int]:
        """Return the indexes of messages whose pictures a provider is sent."""
        omission, history = self._omissions.of(profile.origin), self._log.messages
        sent = range(omission.turns_before, len(history))
        return [n for n in sent if n not in omission.contents and pictured(history[n])]

    def hides_pictures_from(self, profile: ProviderProfile) -> bool:
        """True if the user's last message has pictures that a provider would not be sent."""
        place = self._log.last_user
        if profile.takes_pictures or place is None or not pictured(self._log.messages[place]):
            return False
        return place not in self._omissions.of(profile.origin).contents

    def loses_tools_at(self, profile: ProviderProfile) -> bool:
        """True at the first request of the conversation to a model that takes no tools."""
        if profile.takes_tools or profile.origin in self._without_tools:
            return False
        self._without_tools.add(profile.origin)
        return bool(self._tools.catalog)

    def _suspects(
        self, profile: ProviderProfile, why: OmissionReason, picture: str, most: int
    ) -> Iterator[tuple[Refused, Sequence[int]]]:
        """Yield the indexes of messages that a provider may have refused, the likeliest first.

        Results of searches are not among them: they load tools.
        """
        history, user = self._log.messages, self._log.last_user
        end, searches = len(history), self._tools.search_tool_name
        newest = takewhile(lambda i: history[i].role == "tool", range(end - 1, -1, -1))
        results = [i for i in newest if history[i].name != searches]
        named = [i for i in range(end) if picture and _has_picture(history[i], picture)]
        is_old = user not in named and not set(named).intersection(results)
        if why == "too_many_pictures":
            yield from self._oldest_pictures(profile, named if is_old else [], most)
            return
        if named:
            yield "older" if is_old else "message" if user in named else "result", named
        if why != "message_too_long":
            yield "result", results
        if why == "message_refused":
            # What it has answered before is not at fault.
            unseen = range(self._taken.get(profile.origin, 0), user or 0)
            for role in ("tool", "user"):
                said = (i for i in unseen if history[i].role == role)
                yield "older", [i for i in said if history[i].name != searches]
        if user is not None:
            yield "message", [user]
        if why != "message_too_long":
            said = (i for i in range(end) if history[i].role != "assistant")
            yield "older", [i for i in said if history[i].name != searches]

    def _oldest_pictures(
        self, profile: ProviderProfile, named: Sequence[int], most: int
    ) -> Iterator[tuple[Refused, Sequence[int]]]:
        """Yield the messages whose pictures are too many: once the named, then the older half."""
        history, shown = self._log.messages, self._find_pictures(profile)
        if "too_many_pictures" not in self._omissions.of(profile.origin).contents.values():
            yield "older", named
        room, left = most // 2 - sum(pictured(history[place]) for place in shown[-1:]), []
        for place in reversed(shown[:-1]):
            room -= pictured(history[place])
            if room < 0:
                left.append(place)
        yield "older", left
        yield "message", shown[-1:]

    def keep_within_limits(self) -> None:
        """Leave out of requests as much as the settings require, when a user's turn begins."""
        limits, history, view = self._limits, self._log.messages, self._view(with_pictures=True)
        if limits.keep_turns is not None:
            omission = self._omissions.within_turns(history, limits.keep_turns)
            if omission is not None:
                why = f"history.keep_turns is {limits.keep_turns}"
                self._leave_out_turns(omission, why)
        if limits.max_tokens is not None:
            size = self._omissions.weight(history, EVERYBODY, view)
            target = limits.max_tokens // 2
            omission = self._omissions.reduced(history, EVERYBODY, view, target=target)
            if size > limits.max_tokens and omission is not None:
                why = f"history.max_tokens is {limits.max_tokens:,}, and they had about {size:,}"
                self._leave_out_turns(omission, why)

    def _leave_out_turns(self, omission: Omission, why: str) -> None:
        """Apply what requests leave out from now on, and announce each kind once."""
        before, history = self._omissions.of(omission.endpoint), self._log.messages
        who = "every provider" if omission.endpoint == EVERYBODY else omission.endpoint
        view = self._view(with_pictures=True)
        first = max(before.results_before, omission.turns_before)
        newly = history[first : omission.results_before]
        if any(view.result(message) is not message for message in newly):
            self._tools.announce(
                "results_shortened",
                f"requests to {who} have earlier results of tools shortened: {why}; they stay "
                "whole on record",
            )
        gone = history[before.turns_before : omission.turns_before]
        if gone:
            turns = sum(message.role == "user" for message in gone)
            self._tools.announce(
                "turns_left_out",
                f"requests to {who} leave out the {turns} oldest of their turns: {why}; they stay "
                "on record",
            )
            opening = self._opening(omission.turns_before)
            omission = replace(omission, opening=opening)
        self._omissions.put(omission)

    def _opening(self, place: int) -> tuple[Message, ...]:
        """Return the messages in place of those before an index, with their discoveries."""
        name = self._tools.search_tool_name
        hidden: list[Tool] = []
        if self._tools.mode == "tool_search":
            shown = visible_names(self._log.messages[place:], name)
            hidden = [entry.tool for entry in self._discoveries if entry.name not in shown]
        language, total = self._tools.frozen.language, self._tools.open_tools
        return self._searches.opening(hidden, place=place, total_tools=total, language=language)

    def _view(self, *, with_pictures: bool) -> HistoryView:
        return HistoryView(
            language=self._tools.frozen.language,
            search_tool_name=self._tools.search_tool_name,
            with_pictures=with_pictures,
        )


def _has_picture(message: Message, address: str) -> bool:
    """True if a message has a picture of this address, or of this data."""
    parts = () if isinstance(message.content, str) else message.content
    urls = (part.url for part in parts if isinstance(part, ImagePart))
    return any(address in (url, url.partition(",")[2]) for url in urls)
