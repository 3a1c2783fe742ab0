"""Actions on the errors of providers, and the order in which providers are asked."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, Literal

from tool_search.core.catalog.naming import wire_name
from tool_search.core.catalog.tool import Tool
from tool_search.core.conversation.record import Measure, OmissionReason
from tool_search.core.messages import NoticeCode
from tool_search.core.profiles import ProviderProfile
from tool_search.core.settings import StrategyFacts
from tool_search.errors import ConfigurationError, ProviderError
from tool_search.providers.known import NO_SIGNATURE
from tool_search.providers.refusals import (
    Meaning,
    SentTools,
    named_limits,
    read_answers,
    refused_tools,
)

__all__ = [
    "MAX_REPEATS",
    "MAX_SET_ASIDE",
    "MAX_WAIT_S",
    "NOTICES_OF_ACTIONS",
    "Action",
    "ErrorAction",
    "ProviderHealth",
    "classify_error",
]

Action = Literal[
    "generic_strategy",
    "repair",
    "within_limit",
    "without_cache_marks",
    "with_reasoning",
    "without_reasoning",
    "with_signatures",
    "once_more",
    "in_its_form",
    "without_tool",
    "shorten",
    "leave_out",
    "wait",
    "next_provider",
]
MAX_REPEATS: Mapping[Action, int] = {
    "with_reasoning": 3, "in_its_form": 8, "without_tool": 8, "shorten": 8, "leave_out": 4,
}  # fmt: skip
"""The most repeated requests for one reply at a provider, by action; 1 for the others."""

NOTICES_OF_ACTIONS: Mapping[Action, NoticeCode] = {
    "generic_strategy": "strategy_replaced",
    "repair": "request_repaired",
    "within_limit": "rendered_within_limit",
    "without_cache_marks": "cache_marks_refused",
    "with_reasoning": "reasoning_required",
    "without_reasoning": "reasoning_refused",
    "with_signatures": "reasoning_required",
    "once_more": "request_repeated",
    "in_its_form": "form_refused",
    "without_tool": "tool_set_aside",
}
"""The notice of an action by which the same provider is asked once more."""

MAX_WAIT_S = 5.0
"""The longest wait for a provider that names a time, in seconds: a person waits too."""

MAX_SET_ASIDE = 30
"""The most tools that are set aside for one endpoint; with more, no single tool is at fault."""

# With fewer left, the conversation is too long, not the reply.
_MIN_REPLY_TOKENS = 1_024
_REJECTED = (400, 404, 413, 415, 422)
_CONFLICT = 409
_TOO_LARGE = 413
_RATE_LIMITED = 429
# Templates, decoders of pictures and parsers of calls break so: of the request, not the server.
_BROKEN = 500
_READ_WHEN_BROKEN: frozenset[Meaning] = frozenset(
    (
        "message_rules_broken", "turns_refused", "calls_refused", "system_refused",
        "picture_refused", "pictures_unknown", "reply_malformed",
    )
)  # fmt: skip
_MAX_KEPT_NAMES = 40
# Anthropic, Vision: in a request of more pictures, each has at most 2,000 pixels a side.
_MANY_PICTURES = 20
_TEMPLATE = re.compile(r"\bjinja|chat.?template", re.IGNORECASE)
# No form of a request helps against these.
_OF_THE_ACCOUNT = re.compile(
    r"credit|balance|billing|quota|payment|api.?key|unauthori[sz]ed|permission"
    r"|model\b.{0,80}(?:not exist|not found|unknown|no access|not have access|deprecated)"
    r"|model_not_found|unknown model|no such model|余额|欠费|模型不存在",
    re.IGNORECASE,
)
# Tokens are estimated and a conversation goes on: a tight fit would be cut again at once.
_MARGIN = 0.75
_UNCOUNTED = 0.7
_FEWER_BYTES = 0.5
_MIN_SHARE = 0.05
# An empty text is DeepSeek's own form (recorded). Some proxies drop empty strings, so a space
# comes next (octopus 251). One gateway wants the effort stated too (kimi-cli 1616).
_EMPTY = ""
_BLANK = " "
_SOME = "…"


@dataclass(frozen=True, slots=True, kw_only=True)
class ErrorAction:
    """The action on a provider's error.

    Attributes:
        remedy: `next_provider`, or a way to send the request here once more.
        cools_down: True if the provider is skipped until its cooldown ends.
        profile: The provider's corrected profile; None if the error corrects nothing.
        references: Wire names of refused references.
        replies: True if the provider refused its own blocks of earlier replies.
        set_aside: Tools that are not declared to the provider from now on.
        wait_s: Seconds to wait before the request is sent once more.
        share: The size that the messages should have, as a share of the current size.
        measure: The unit of that size.
        left_out: The reason to leave out a content.
        most: The most pictures of a request.
        is_unknown: True if no row of the tables has the words of a refused request.
    """

    remedy: Action
    cools_down: bool = False
    wait_s: float = 0.0
    profile: ProviderProfile | None = None
    references: tuple[str, ...] = ()
    replies: bool = False
    set_aside: tuple[Tool, ...] = ()
    share: float = 1.0
    measure: Measure = "tokens"
    left_out: OmissionReason = "picture_refused"
    most: int = 0
    is_unknown: bool = field(default=False, compare=False)


@dataclass(frozen=True, slots=True)
class _Refusal:
    """One reading of a refusal.

    Attributes:
        said: The service's code and message.
        found: The first place that has the wording.
        profile: The profile that the request was written for.
        sent: The tools that were sent.
    """

    said: str
    found: re.Match[str]
    profile: ProviderProfile
    sent: SentTools

    @property
    def facts(self) -> StrategyFacts:
        """The facts of the strategy that wrote the request."""
        return self.sent.facts or self.profile.facts


def classify_error(
    error: ProviderError, profile: ProviderProfile, sent: SentTools | None = None
) -> ErrorAction:
    """Return the action on a provider's error.

    Time-outs, lost connections, 401, 403, 408, 409, 429 and 5xx mean nothing about the
    request: the next provider takes over, and this one cools down. But a 500 in words about a
    template, a picture or a broken call is read as a refusal. After an unknown one, or a 409, the
    provider may be asked in a plainer form, if no other is left. The wordings of services are a
    table in each adapter; the first row that has an action counts. A provider that can be asked
    again in a few seconds, by its own words, is waited for once.

    Args:
        error: The provider's answer.
        profile: The profile that the request was written for.
        sent: The tools that were sent.
    """
    said = f"{error.code or ''} {error.detail}"
    if error.status == _RATE_LIMITED:
        answers = dict(reversed(list(read_answers(profile.dialect, said))))
        if "context_too_long" in answers:  # more tokens than the limit of a whole minute
            return _shorten(
                _Refusal(said, answers["context_too_long"], profile, sent or SentTools())
            )
    is_broken = error.status == _BROKEN
    facts = (sent and sent.facts) or profile.facts
    if is_broken or error.status in _REJECTED:
        for meaning, found in read_answers(profile.dialect, said, facts.rejected_by):
            if is_broken and meaning not in _READ_WHEN_BROKEN:
                continue
            action = _REMEDIES[meaning](_Refusal(said, found, profile, sent or SentTools()))
            if action is not None:
                return replace(action, cools_down=is_broken)
    if error.status not in _REJECTED:
        wait_s = error.retry_after_s
        if wait_s is not None and wait_s <= MAX_WAIT_S:
            return ErrorAction(remedy="wait", cools_down=True, wait_s=wait_s)
        is_form = error.status == _CONFLICT or (is_broken and bool(_TEMPLATE.search(said)))
        return ErrorAction(remedy="next_provider", cools_down=True, is_unknown=is_form)
    is_form = not error.remedy and not _OF_THE_ACCOUNT.search(said)
    if error.status == _TOO_LARGE:
        share = _FEWER_BYTES
        return ErrorAction(remedy="shorten", share=share, measure="bytes", is_unknown=is_form)
    return ErrorAction(remedy="next_provider", is_unknown=is_form)


def _without_feature(refusal: _Refusal) -> ErrorAction | None:
    # A strategy with words of its own uses another feature than the tables know.
    if refusal.facts.dialect is None or refusal.facts.rejected_by is not None:
        return None
    return _without_strategy(refusal)


def _without_strategy(refusal: _Refusal) -> ErrorAction | None:
    if refusal.profile.strategy == "generic":
        return None
    return ErrorAction(remedy="generic_strategy", profile=refusal.profile.generic())


def _without_reference(refusal: _Refusal) -> ErrorAction | None:
    if refusal.facts.dialect is None:
        return None
    return ErrorAction(remedy="repair", references=(refusal.found["name"],))


def _without_cache_marks(refusal: _Refusal) -> ErrorAction | None:
    if refusal.profile.cache != "explicit":
        return None
    profile = replace(refusal.profile, cache="automatic")
    return ErrorAction(remedy="without_cache_marks", profile=profile)


def _without_replies(refusal: _Refusal) -> ErrorAction:
    profile = refusal.profile
    # A service that has forgotten one reply may keep none, as for customers who forbid keeping.
    forgot = profile.keeps_replies and refusal.found[0].lower().startswith("previous")
    kept = replace(profile, keeps_replies=False) if forgot else None
    return ErrorAction(remedy="repair", replies=True, profile=kept)


def _with_reasoning(refusal: _Refusal) -> ErrorAction | None:
    """Return the next form of missing reasoning that some service takes, if one is left."""
    profile, is_each = refusal.profile, bool(refusal.found.groupdict().get("each"))
    if profile.dialect == "openai_responses":
        # DeepSeek takes no empty text there.
        if profile.missing_reasoning == _SOME and profile.returns_reasoning:
            return None
        form = replace(profile, missing_reasoning=_SOME, returns_reasoning=True)
    elif profile.missing_reasoning is None or not profile.returns_reasoning:
        form = replace(profile, missing_reasoning=_EMPTY, returns_reasoning=True)
        form = replace(form, reasoning_in_answers=is_each)
    elif is_each and not profile.reasoning_in_answers:
        form = replace(profile, reasoning_in_answers=True)
    elif profile.missing_reasoning == _EMPTY:
        form = replace(profile, missing_reasoning=_BLANK)
    elif profile.dialect == "openai_chat" and not profile.states_effort:
        form = replace(profile, states_effort=True)
    else:
        return None
    return ErrorAction(remedy="with_reasoning", profile=form)


def _with_content(refusal: _Refusal) -> ErrorAction | None:
    """Return the next form of a reply without text: null, an empty text, a space."""
    content = refusal.profile.empty_content
    if content == _BLANK:
        return None
    is_empty = content is not None or "empty" in refusal.found.groupdict()
    return _with(refusal, empty_content=_BLANK if is_empty else _EMPTY)


def _with_fewer_calls(refusal: _Refusal) -> ErrorAction | None:
    profile, most = refusal.profile, int(refusal.found.groupdict().get("most") or 1)
    if profile.max_calls is not None and not 0 < most < profile.max_calls:
        return None
    return _with(refusal, max_calls=max(1, most))


def _with(refusal: _Refusal, remedy: Action = "in_its_form", **form: Any) -> ErrorAction | None:
    """Return a form with other values in the profile; None if it has them already."""
    profile = replace(refusal.profile, **form)
    if profile == refusal.profile:
        return None
    return ErrorAction(remedy=remedy, profile=profile)


def _at_most(name: str, refusal: _Refusal) -> ErrorAction | None:
    """Return a form within the limit that the words name."""
    most, known = int(refusal.found["most"]), getattr(refusal.profile, name)
    form: dict[str, Any] = {name: most}
    return _with(refusal, **form) if 1 < most < (known or most + 1) else None


def _without_tool(refusal: _Refusal) -> ErrorAction | None:
    profile = refusal.profile
    refused = refused_tools(refusal.found, refusal.sent, profile)
    known = profile.set_aside.union(tool.shown_fingerprint for tool in refused)
    if not refused or len(known) > MAX_SET_ASIDE:
        return None
    profile = replace(profile, set_aside=known)
    return ErrorAction(remedy="without_tool", profile=profile, set_aside=refused)


def _with_another_name(refusal: _Refusal) -> ErrorAction | None:
    """Return a form in which no tool has the name that the service keeps for itself."""
    rule, sent = refusal.profile.name_rule, refusal.sent
    kept = refusal.found["name"].partition(".")[0]
    tools = [*(entry.tool for entry in sent.listed), *sent.loaded]
    names = {wire_name(tool.name, rule) for tool in tools}
    names |= {wire_name(tool.server) for tool in tools if tool.server}
    # A name that was not sent teaches nothing, and a service cannot keep ever more of them.
    if kept in rule.kept or kept not in names or len(rule.kept) >= _MAX_KEPT_NAMES:
        return None
    return _with(refusal, name_rule=rule.keeping(kept))


def _with_shorter_reply(refusal: _Refusal) -> ErrorAction | None:
    """Return a limit that the service allows; a limit of the user's stays as it is."""
    profile, named = refusal.profile, refusal.found.groupdict()
    if profile.dialect != "anthropic":
        return None  # no request of ours asked for any length
    if named.get("most"):
        # A length that is documented is not what was refused.
        most = int(named["most"]) if profile.max_output_tokens is None else 0
    else:
        # Half of what is left: the conversation grows with each turn.
        most = (int(named["limit"]) - int(named["input"])) // 2
        most = most if most >= _MIN_REPLY_TOKENS else 0
    if not 0 < most < (profile.max_output_tokens or most + 1):
        return None
    return ErrorAction(remedy="within_limit", profile=replace(profile, max_output_tokens=most))


def _shorten(refusal: _Refusal) -> ErrorAction:
    """Return a size within the limit that the message names, or a noticeably smaller one."""
    groups = refusal.found.groupdict()
    limit, sent, reserved = (
        int((groups.get(name) or "0").replace(",", "")) for name in ("limit", "sent", "reserved")
    )
    share = _MARGIN * (limit - reserved) / sent if limit and sent else _UNCOUNTED
    return ErrorAction(remedy="shorten", share=min(max(share, _MIN_SHARE), _MARGIN))


def _with_fewer_pictures(refusal: _Refusal) -> ErrorAction:
    named = int(refusal.found.groupdict().get("most") or 0)
    return ErrorAction(
        remedy="leave_out",
        left_out="too_many_pictures",
        most=named or _MANY_PICTURES,
        profile=replace(refusal.profile, max_pictures=named) if named else None,
    )


def _without_pictures(refusal: _Refusal) -> ErrorAction:
    profile = replace(refusal.profile, takes_pictures=False)
    return ErrorAction(remedy="leave_out", left_out="pictures_unknown", profile=profile)


_REMEDIES: Mapping[Meaning, Callable[[_Refusal], ErrorAction | None]] = {
    "feature_unknown": _without_feature,
    "strategy_rejected": _without_strategy,
    "reference_unknown": _without_reference,
    # The message does not say which reference is wrong: no more are sent.
    "references_unknown": _without_feature,
    "cache_marks_unknown": _without_cache_marks,
    "replies_refused": _without_replies,
    "reasoning_missing": _with_reasoning,
    "reasoning_refused": partial(
        _with, remedy="without_reasoning", returns_reasoning=False, missing_reasoning=None
    ),
    "reasoning_excludes_tools": partial(_with, reasons_with_tools=False),
    "encrypted_content_unknown": partial(_with, gives_reasoning=False),
    "signature_missing": partial(_with, remedy="with_signatures", missing_signature=NO_SIGNATURE),
    # The request was right: the model wrote a broken call, and may write a good one.
    "reply_malformed": lambda _: ErrorAction(remedy="once_more"),
    "message_rules_broken": partial(_with, message_rules="mistral"),
    "turns_refused": partial(_with, message_rules="alternating"),
    "content_missing": _with_content,
    "calls_refused": _with_fewer_calls,
    "system_refused": partial(_with, takes_system=False),
    "result_name_missing": partial(_with, names_results=True),
    "schema_rules_broken": partial(_with, schema_rules="moonshot"),
    "schema_recursive": partial(_with, schema_rules="acyclic"),
    "schema_too_deep": partial(_at_most, "max_schema_levels"),
    "description_too_long": partial(_at_most, "max_description"),
    "stream_options_unknown": partial(_with, takes_stream_options=False),
    "tool_choice_refused": partial(_with, takes_tool_choice_none=False),
    "tools_unknown": partial(_with, takes_tools=False),
    "tool_refused": _without_tool,
    "too_many_tools": lambda refusal: ErrorAction(remedy="within_limit", profile=_shorter(refusal)),
    "reply_limit_refused": _with_shorter_reply,
    "name_refused": lambda refusal: _with(
        refusal,
        "within_limit",
        name_rule=refusal.profile.name_rule._replace(shape="identifier"),
    ),
    "name_kept": _with_another_name,
    "context_too_long": _shorten,
    "request_too_large": lambda _: ErrorAction(
        remedy="shorten", share=_FEWER_BYTES, measure="bytes"
    ),
    "result_pictures_refused": partial(_with, takes_result_pictures=False),
    "picture_refused": lambda _: ErrorAction(remedy="leave_out", left_out="picture_refused"),
    "too_many_pictures": _with_fewer_pictures,
    "pictures_unknown": _without_pictures,
    "content_refused": lambda _: ErrorAction(remedy="leave_out", left_out="message_refused"),
}


def _shorter(refusal: _Refusal) -> ProviderProfile:
    """Return the profile with the limit that the message names, or a cautious one."""
    profile, facts = refusal.profile, refusal.facts
    # Grok names the number that it was sent first, in the same words.
    named = min(named_limits(refusal.said), default=None)
    deferred = sum(entry.deferred for entry in refusal.sent.listed)
    # The limit is one of catalogs: a smaller catalog is deferred again.
    if facts.uses_limits and deferred:
        most = named if named is not None and named < deferred else deferred - 1
        return replace(profile, max_deferred=most)
    if facts.dialect is not None:
        longest = profile.max_tools if named is None else max(4, named)
        return replace(profile.generic(), max_tools=longest)
    most = named if named is not None else min(profile.max_tools or 128, 128) // 2
    return replace(profile, max_tools=max(4, most))


class ProviderHealth:
    """The cooldowns of providers, and the order in which to ask them; time is an argument.

    Args:
        cooldowns: Seconds of a failed provider's cooldown, by `id`, the primary first.

    >>> health = ProviderHealth({"claude": 60, "gpt": 60})
    >>> health.failed("claude", now=0)
    >>> health.order(now=1), health.order(now=61)
    (('gpt', 'claude'), ('claude', 'gpt'))
    """

    def __init__(self, cooldowns: Mapping[str, float]) -> None:
        if not cooldowns:
            raise ConfigurationError("a bot needs at least one provider; providers is empty")
        self._cooldowns = dict(cooldowns)
        self._cooldown_until: dict[str, float] = {}

    def add(self, provider: str, cooldown_s: float) -> None:
        """Add a provider, the last in order."""
        self._cooldowns[provider] = cooldown_s

    def failed(self, provider: str, *, now: float) -> None:
        """Start the cooldown of a provider that failed."""
        self._cooldown_until[provider] = now + self._cooldowns[provider]

    def succeeded(self, provider: str) -> None:
        """End the cooldown of a provider that answered, or that an operator chose."""
        self._cooldown_until.pop(provider, None)

    def order(self, *, now: float, preferred: str | None = None) -> tuple[str, ...]:
        """Return every provider in the order to ask: the preferred, then as configured.

        Providers that are cooling down come last, by the end of their cooldown: a bot
        whose providers all failed still tries.
        """
        ids = sorted(self._cooldowns, key=lambda name: name != preferred)
        ready = [name for name in ids if self._cooldown_until.get(name, now) <= now]
        cooling = [name for name in ids if name not in ready]
        return (*ready, *sorted(cooling, key=lambda name: self._cooldown_until[name]))
