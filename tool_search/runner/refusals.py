"""The refusals of one turn: the remedies that are tried, and the plainer forms of its requests."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

from tool_search.errors import ProviderError
from tool_search.providers.errors import (
    MAX_REPEATS,
    Action,
    ErrorAction,
    classify_error,
    plainer_form,
)
from tool_search.providers.profiles import ProviderProfile
from tool_search.providers.refused_tools import SentTools
from tool_search.runner.providers import ProviderPool

__all__ = ["Repeats", "TurnRefusals"]

Repeats = Counter[tuple[str, Action]]
"""The requests for one reply that were sent again, by provider and action."""


@dataclass(slots=True)
class TurnRefusals:
    """The refusals of one turn.

    Attributes:
        pool: The providers.
        primary: The `id` of the provider that the turn began with.
    """

    pool: ProviderPool
    primary: str
    # The usual forms of providers that are asked in plainer ones.
    _usual: dict[str, ProviderProfile] = field(default_factory=dict)

    def action(
        self,
        error: ProviderError,
        provider: str,
        asked: ProviderProfile,
        sent: SentTools,
        *,
        repeats: Repeats,
        is_last: bool,
        has_pictures: bool = False,
    ) -> ErrorAction:
        """Return the action for an error; each action is repeated a limited number of times.

        Args:
            error: The provider's answer.
            provider: The `id` of the provider.
            asked: The profile that the request was written for.
            sent: The tools that were sent.
            repeats: The requests for this reply that were sent again.
            is_last: True if every other provider has failed.
            has_pictures: True if the request has pictures, which may be at fault.
        """
        action = classify_error(error, asked, sent)
        if action.is_unknown and has_pictures and not repeats[provider, "leave_out"]:
            repeats[provider, "leave_out"] += 1
            return ErrorAction(remedy="leave_out", is_unknown=True)
        waits_in_vain = action.remedy == "wait" and provider != self.primary
        if waits_in_vain or not _may_repeat(action, provider, repeats):
            # A remedy that does not help leaves a refusal as unknown as strange words do.
            action = ErrorAction(
                remedy="next_provider",
                cools_down=action.cools_down,
                is_unknown=action.is_unknown
                or not (action.cools_down or action.remedy == "next_provider"),
            )
        if action.is_unknown and is_last:
            plainer = plainer_form(asked)
            if plainer is not None and _may_repeat(plainer, provider, repeats):
                self._usual.setdefault(provider, asked)
                return plainer
        if action.remedy == "next_provider":
            self._restore(provider)
        return action

    def answered(self, provider: str) -> None:
        """Keep the form that helped; but tools are offered again in the next turn."""
        if not self.pool.profile(provider).takes_tools:
            self._restore(provider)
        self._usual.pop(provider, None)

    def _restore(self, provider: str) -> None:
        if provider in self._usual:
            self.pool.learn(provider, self._usual.pop(provider))


def _may_repeat(action: ErrorAction, provider: str, repeats: Repeats) -> bool:
    """Count an action, and return True if it was not repeated too often."""
    repeats[provider, action.remedy] += 1
    return repeats[provider, action.remedy] <= MAX_REPEATS.get(action.remedy, 1)
