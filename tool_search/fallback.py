"""Which provider next, and what a provider's error means (DESIGN.md, table of answers)."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from tool_search.errors import ConfigurationError, ProviderError
from tool_search.messages import DeclaredTool
from tool_search.profiles import ProviderProfile

__all__ = ["ProviderHealth", "Remedy", "Verdict", "verdict_on"]

Remedy = Literal[
    "generic_strategy", "repair", "within_limit", "without_cache_marks", "next_provider"
]

_REJECTED = (400, 404, 413, 422)
# Messages as the services and their proxies word them; matched loosely, because they change.
_FEATURE = r"(?:defer_loading|tool.?search\w*|tool_reference|additional_tools|namespace)"
_UNKNOWN_FEATURE = re.compile(
    r"defer_loading.{0,80}(not permitted|not supported|unknown|unrecognized|unexpected|invalid)"
    r"|(extra|unknown|unrecognized|unexpected|unsupported|does not support).{0,60}"
    r"(defer_loading|additional_tools|tool_search|tool_reference|\]\.namespace\b)"
    rf"|input tag '{_FEATURE}'|invalid value: '{_FEATURE}'"
    r"|tools\.tool_search requires at least one deferred|deferred tools require tools\.tool_search"
    r"|only .{0,12}\bfunction\b.{0,4} tools are supported|duplicate namespace name"
    r"|(tool.?search|tool_reference|additional_tools|tool type 'namespace').{0,80}"
    r"(not (currently )?supported|not available|not enabled"
    r"|unknown|unrecognized|invalid type|not permitted)",
    re.IGNORECASE | re.DOTALL,
)
_WRONG_REFERENCE = re.compile(
    r"tool reference '(?P<name>[^']*)' (?:was )?(?:not found|has no)"
    r"|references unknown tool '(?P<other>[^']*)'"
    r"|(?:missing|unknown) namespace\b.{0,80}\bfunction_call '(?P<called>[^']*)'",
    re.IGNORECASE,
)
# What a service has kept or encrypted, and no longer knows or takes.
_WRONG_REPLY = re.compile(
    r"previous_response_not_found|previous response with id|invalid_encrypted_content"
    r"|encrypted content\b.{0,200}could not be (verified|decrypted)"
    r"|duplicate item found with id|item with id '[^']*' not found"
    r"|provided without its required (\S+ )?(following )?item",
    re.IGNORECASE | re.DOTALL,
)
# `cache_control` itself, not where or how often it stands.
_UNKNOWN_MARK = re.compile(
    r"cache_control\b.{0,80}(not permitted|not supported|unknown|unrecognized|unexpected|invalid)"
    r"|(extra|unknown|unrecognized|unexpected|unsupported|does not support).{0,60}cache_control",
    re.IGNORECASE | re.DOTALL,
)
# What an endpoint says that takes no tools in a system message, or no message without content.
_NO_LATE_TOOLS = re.compile(
    r"tokenization failed|messages\W{1,3}\d+\W{1,4}tools\b"
    r"|\bcontent\b.{0,40}(required|missing|null)|(missing|required)\b.{0,40}\bcontent\b",
    re.IGNORECASE | re.DOTALL,
)
_UNNAMED_REFERENCE = "tool_reference_unresolved"
_LISTED = r"(?:tools|functions|function[ _]declarations)"
_TOO_MANY = re.compile(
    rf"available_tools_limit_exceeded|too many {_LISTED}|{_LISTED}\W{{0,4}}array too long"
    rf"|{_LISTED}\W{{0,4}}(?:list |array )?should have at most"
    rf"|(?:maximum|at most|more than|limit)[^.]{{0,24}} {_LISTED}"
    rf"|\b{_LISTED}\b[^.]{{0,30}}(?:maximum|at most|limit(?:ed)?|exceeds?)\b[^.]{{0,40}}\d",
    re.IGNORECASE,
)
_LIMIT = re.compile(
    r"(?:maximum|max|at most|more than|limit(?:ed)?|exceeds?)\D{0,40}"
    r"(?P<most>\d{1,3}(?:[,_]\d{3})+|\d+)",
    re.IGNORECASE,
)
_BAD_NAME = re.compile(
    r"(tools?\W.{0,40}\bname\b|function.{0,20}\bname\b|tool_name|tool_use\W{1,3}name"
    r"|input\W{0,2}\d+\W{0,3}name).{0,80}"
    r"(pattern|match|invalid|at most|too long|maximum length|must start)"
    r"|invalid (tool|function) name",
    re.IGNORECASE | re.DOTALL,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """What to do about a provider's error.

    Attributes:
        remedy: `next_provider`, or a way to send the request here once more.
        rests: Whether the provider should not be asked again for a while.
        profile: The provider's profile from now on, where the error taught something.
        references: Wire names of refused references.
        replies: The provider's own blocks of earlier replies were refused.
    """

    remedy: Remedy
    rests: bool = False
    profile: ProviderProfile | None = None
    references: tuple[str, ...] = ()
    replies: bool = False


def verdict_on(
    error: ProviderError, profile: ProviderProfile, tools: Sequence[DeclaredTool] = ()
) -> Verdict:
    """What a provider's error means, given what was asked of it.

    Time-outs, lost connections, 401, 403, 408, 409, 429 and 5xx say nothing about
    the request: the next provider takes over and this one rests. A 400 of any other
    meaning is not repeated, and the provider may have the next turn.

    Args:
        error: What it answered.
        profile: Who was asked, and by which strategy.
        tools: The list that it was sent.
    """
    if error.status not in _REJECTED:
        return Verdict(remedy="next_provider", rests=True)
    said = f"{error.code or ''} {error.detail}"
    if profile.is_native:
        reference = _WRONG_REFERENCE.search(said)
        if reference:
            (name,) = filter(None, reference.groups())
            return Verdict(remedy="repair", references=(name,))
        # Which reference is wrong is not said: none is sent any more.
        unknown = _NO_LATE_TOOLS if profile.strategy == "late_tools" else _UNKNOWN_FEATURE
        if _UNNAMED_REFERENCE in said or unknown.search(said):
            return Verdict(remedy="generic_strategy", profile=profile.generic())
    if profile.cache == "explicit" and _UNKNOWN_MARK.search(said):
        return Verdict(remedy="without_cache_marks", profile=replace(profile, cache="automatic"))
    if profile.dialect == "openai_responses" and _WRONG_REPLY.search(said):
        return Verdict(remedy="repair", replies=True)
    if _TOO_MANY.search(said):
        return Verdict(remedy="within_limit", profile=_shorter(profile, said, tools))
    if _BAD_NAME.search(said) and profile.name_rule != "identifier":
        return Verdict(remedy="within_limit", profile=replace(profile, name_rule="identifier"))
    return Verdict(remedy="next_provider")


def _shorter(profile: ProviderProfile, said: str, tools: Sequence[DeclaredTool]) -> ProviderProfile:
    """The profile with the limit that the message names, or a cautious one.

    Claude's is one of catalogs: a smaller one is told of by references again.
    """
    found = _LIMIT.search(said)
    named = int(re.sub(r"\D", "", found.group("most"))) if found else None
    waiting = sum(entry.deferred for entry in tools)
    if profile.strategy == "claude" and waiting:
        most = named if named is not None and named < waiting else waiting - 1
        return replace(profile, max_deferred=most)
    if profile.is_native:
        longest = profile.max_tools if named is None else max(4, named)
        return replace(profile.generic(), max_tools=longest)
    most = named if named is not None else min(profile.max_tools or 128, 128) // 2
    return replace(profile, max_tools=max(4, most))


class ProviderHealth:
    """Which providers may be asked, in which order; the time is an argument.

    Args:
        cooldowns: Seconds a failed provider rests, by `id`, the primary first.

    >>> health = ProviderHealth({"claude": 60, "gpt": 60})
    >>> health.failed("claude", now=0)
    >>> health.order(now=1), health.order(now=61)
    (('gpt', 'claude'), ('claude', 'gpt'))
    """

    def __init__(self, cooldowns: Mapping[str, float]) -> None:
        if not cooldowns:
            raise ConfigurationError("a bot needs at least one provider; providers is empty")
        self._cooldowns = dict(cooldowns)
        self._resting_until: dict[str, float] = {}

    def failed(self, provider: str, *, now: float) -> None:
        """Notes a failure: the provider rests until its cool-down is over."""
        self._resting_until[provider] = now + self._cooldowns[provider]

    def succeeded(self, provider: str) -> None:
        """Notes an answer, or an operator's word: the provider no longer rests."""
        self._resting_until.pop(provider, None)

    def order(self, *, now: float, preferred: str | None = None) -> tuple[str, ...]:
        """Every provider in the order to ask: the preferred, then as configured.

        Those that rest come last, the one whose rest ends first before the others,
        so that a bot whose providers all failed still tries.
        """
        ids = sorted(self._cooldowns, key=lambda name: name != preferred)
        awake = [name for name in ids if self._resting_until.get(name, now) <= now]
        resting = [name for name in ids if name not in awake]
        return (*awake, *sorted(resting, key=lambda name: self._resting_until[name]))
