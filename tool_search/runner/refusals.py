"""The refusals of one turn: the remedies that are tried, and the plainer forms of its requests."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from tool_search.core.catalog.naming import NameRule, wire_name
from tool_search.core.catalog.tool import Tool
from tool_search.core.messages import Notice, Phase, RequestPlan, ToolList
from tool_search.core.profiles import ProviderProfile
from tool_search.core.values.redaction import redacted_text
from tool_search.errors import ProviderError
from tool_search.providers.base import ReplyEnd
from tool_search.providers.errors import MAX_REPEATS, Action, ErrorAction, classify_error
from tool_search.providers.known import EVER_KEPT_NAMES
from tool_search.providers.refusals import SentTools
from tool_search.runner.providers import PlainerForm, ProviderPool, changes

__all__ = ["Repeats", "TurnRefusals", "ending_notice"]

# The ends of replies that an operator should know of.


def ending_notice(reply: ReplyEnd, provider: str) -> Notice | None:
    """Return a notice if a reply was refused or cut, else None."""
    detail = f" ({reply.detail})" if reply.detail else ""
    cut = sum(call.is_cut for call in reply.message.tool_calls)
    if reply.stop_reason == "refusal":
        return Notice("reply_refused", f"{provider!r} refused to answer{detail}")
    if reply.stop_reason == "length" or cut:
        what = f"; {cut} of its calls were cut, and not run" if cut else ""
        return Notice(
            "reply_cut",
            f"{provider!r} ended its reply before it was complete{detail}{what}; if that "
            "happens often, raise the limit of a reply's tokens (extra_body)",
        )
    return None


Repeats = Counter[tuple[str, Action]]
"""The requests for one reply that were sent again, by provider and action."""

# Some refuse null beside calls, others an empty text, others a blank one.
_SOME_TEXT = "…"
_MAX_PLAINER = 4
"""The most requests of a turn in a plainer form."""
_CONFLICT = 409
_MAX_WORDS = 10_000
_MAX_NAMED = 3
_SHORTER = 0.5
"""The share of a history that is left where its length may be at fault."""
_MAX_SET_FIELDS = 20
_MAX_DESCRIPTION = 300
# What is said, what is kept, and what is paid is no matter of a service's words.
_NEVER_CHANGED = frozenset(
    ("background", "container", "input", "instructions", "mcp_servers", "messages", "metadata",
     "model", "n", "previous_response_id", "service_tier", "store", "system", "tools", "user"),
)  # fmt: skip
_TOKEN = re.compile(r"\w[\w.-]*", re.ASCII)
_TOKENS = re.compile(r"(?<!\w)[1-9]\d{3,6}(?!\w)", re.ASCII)
_FEW_TOKENS = 4_096
_SET = re.compile(
    r"(?:\b(?:set|use|specify|pass)\W{1,4}|[将把]\W{0,4}|设置\W{1,4})"
    r"(?P<field>[a-z]\w*(?:\.[a-z]\w*)*)[\"'`]?"
    r"(?:\s+(?:to|as)\s+|\s*[=:：]\s*|\s*(?:设置?为|改为)\s*)"
    r"(?P<quote>[\"'`]?)(?P<value>[\w.-]{1,40})(?P=quote)",
    re.IGNORECASE | re.ASCII,
)


@dataclass(slots=True)
class TurnRefusals:
    """The refusals of one turn.

    Attributes:
        pool: The providers.
        primary: The `id` of the provider that the turn began with.
        left: The number of further requests in plainer forms.
        plainer: Providers that have a plainer form left, if no other provider answers.
    """

    pool: ProviderPool
    primary: str
    left: int = _MAX_PLAINER
    plainer: set[str] = field(default_factory=set)
    _forms: dict[str, PlainerForm] = field(default_factory=dict)
    _tried_hints: set[str] = field(default_factory=set)
    # Providers whose request was shortened on suspicion; true: after a form that had helped.
    _shortened: dict[str, bool] = field(default_factory=dict)

    def form(self, provider: str, phase: Phase) -> Mapping[str, Any]:
        """Return the fields of a provider's profile that are others in its next request."""
        form = self._form(provider, phase)
        return form.changes if form else {}

    def profile(self, provider: str) -> ProviderProfile:
        """Return the profile by which a provider is asked for an answer."""
        return replace(self.pool.profile(provider), **self.form(provider, "answer"))

    def action(
        self,
        error: ProviderError,
        provider: str,
        asked: ProviderProfile,
        sent: SentTools,
        *,
        repeats: Repeats,
        phase: Phase = "answer",
        has_pictures: bool = False,
        is_shown: bool = False,
    ) -> ErrorAction:
        """Return the action for an error; each action is repeated a limited number of times.

        Args:
            error: The provider's answer.
            provider: The `id` of the provider.
            asked: The profile that the request was written for.
            sent: The tools that were sent.
            repeats: The requests for this reply that were sent again.
            phase: The purpose of the request.
            has_pictures: True if the request has pictures, which may be at fault.
            is_shown: True if a part of the reply was shown.
        """
        action = classify_error(error, asked, sent)
        is_strange = action.remedy == "next_provider" and action.is_unknown
        if is_strange and has_pictures and not repeats[provider, "leave_out"]:
            repeats[provider, "leave_out"] += 1
            return ErrorAction(remedy="leave_out", is_unknown=True)
        has_row = not action.is_unknown
        waits_in_vain = action.remedy == "wait" and provider != self.primary
        if waits_in_vain or not _may_repeat(action, provider, repeats):
            # A remedy that does not help leaves a refusal as unknown as strange words do.
            cools_down = action.cools_down
            is_form = action.remedy not in ("wait", "next_provider") and not cools_down
            action = ErrorAction(
                remedy="next_provider", cools_down=cools_down, is_unknown=not has_row or is_form
            )
        if action.profile is not None:
            self._learn(provider, asked, action.profile, phase)
        if action.remedy == "next_provider" and action.is_unknown and not is_shown:
            return self.plainer_action(error, provider, sent, phase, has_row=has_row)
        return action

    def plainer_action(
        self,
        error: ProviderError,
        provider: str,
        sent: SentTools,
        phase: Phase,
        *,
        has_row: bool = False,
    ) -> ErrorAction:
        """Have the provider's next request be plainer; it rests if none with tools is left."""
        usual, before = self.pool.profile(provider), self._form(provider, phase)
        key = (usual.origin, phase)
        self.pool.forms.pop(key, None)
        self._forms.pop(provider, None)
        self.plainer.discard(provider)
        if provider in self._tried_hints or provider in self._shortened:
            self._tried_hints.discard(provider)
            before = None
        asked = replace(usual, **before.changes) if before else usual
        took = self.pool.took_tools.get(usual.origin)
        left = min(self.left, 1) if provider in self._shortened else self.left
        is_first = before is None or before.helped
        form = self.pool.hints.pop(key, None) if before is None else None
        if form is not None and self.left > 0:
            self._tried_hints.add(provider)
        elif found := next(
            _plainer_forms(asked, error, sent, took, left=left, is_first=is_first), None
        ):
            how, plain, is_passing = found
            said = before.said if before and not is_first else redacted_text(str(error))
            # The same messages were refused in a form with tools too.
            is_alone = self._shortened.get(provider, is_first)
            is_passing |= not (plain.takes_tools or took is None or is_alone)
            form = PlainerForm(
                changes(usual, plain), how, said, has_row=has_row, is_passing=is_passing
            )
            if took is not None and not plain.takes_tools and provider not in self._shortened:
                # Older turns go before tools that it has taken: the fault may be the length.
                self._shortened[provider] = is_first
                if self.left == 1:
                    self._forms[provider] = form
                return ErrorAction(remedy="shorten", share=_SHORTER, is_unknown=True)
        if form is not None:
            self._use(form, provider, key)
        rests = form is None or form.is_passing or not form.takes_tools
        return ErrorAction(
            remedy="next_provider", cools_down=rests or error.status == _CONFLICT, is_unknown=True
        )

    def _use(self, form: PlainerForm, provider: str, key: tuple[str, Phase]) -> None:
        self._forms[provider] = form
        self.plainer.add(provider)
        if not form.is_passing and form.takes_tools:
            self.pool.remember(key, form)

    def ask_plainer(self, provider: str) -> None:
        """Count a further request to a provider in its plainer form."""
        self.left -= 1
        self.plainer.discard(provider)

    def answered(self, provider: str, plan: RequestPlan) -> Iterator[Notice]:
        """Remember the form that helped; yield the notice of a new one."""
        self._shortened.pop(provider, None)
        origin, form = self.pool.profile(provider).origin, self._form(provider, plan.phase)
        key = (origin, plan.phase)
        if plan.tools:
            self.pool.took_tools[origin] = plan.tools
        if form is None:
            if plan.tools:
                self.pool.hints.pop(key, None)
            return
        helped = self._forms[provider] = replace(form, helped=True)
        # A service that has taken tools refuses this message, and not tools; and where a row is
        # known, its remedy may help the next time.
        refuses_tools = origin not in self.pool.took_tools and not form.has_row
        is_kept = not form.is_passing and (form.takes_tools or refuses_tools)
        # A length that has helped twice is a limit.
        is_kept |= provider in self._tried_hints and "max_tools" in form.changes
        if is_kept:
            self.pool.remember(key, helped)
        elif form.is_passing:
            self.pool.hints[key] = helped
        if not form.helped and (origin, form.how) not in self.pool.told:
            self.pool.told.add((origin, form.how))
            until = "from now on" if is_kept else "in this turn"
            yield Notice(
                "form_refused",
                f"{provider!r} answers requests {form.how}, and is asked so {until}; no rule is "
                f"known that helps against its refusal of the usual ones: {form.said}",
            )

    def _learn(
        self, provider: str, asked: ProviderProfile, corrected: ProviderProfile, phase: Phase
    ) -> None:
        """Correct a provider's profile, and its plainer form where that has another value."""
        self.pool.learn(provider, corrected, asked)
        if form := self._form(provider, phase):
            learned = changes(asked, corrected)
            both = {name: learned.get(name, value) for name, value in form.changes.items()}
            self._forms[provider] = replace(form, changes=both)

    def _form(self, provider: str, phase: Phase) -> PlainerForm | None:
        known = self.pool.forms.get((self.pool.profile(provider).origin, phase))
        return self._forms.get(provider, known)


def _may_repeat(action: ErrorAction, provider: str, repeats: Repeats) -> bool:
    """Count an action, and return True if it was not repeated too often."""
    repeats[provider, action.remedy] += 1
    return repeats[provider, action.remedy] <= MAX_REPEATS.get(action.remedy, 1)


def _plainer_forms(
    asked: ProviderProfile,
    error: ProviderError,
    sent: SentTools,
    took: ToolList | None,
    *,
    left: int,
    is_first: bool,
) -> Iterator[tuple[str, ProviderProfile, bool]]:
    """Yield plainer forms of a request than the refused one, each with its description.

    Fields and tools that the words name come first. The last request of a turn has no tools.
    The third is true of a form that shall not be kept: the fault may be of this conversation.

    Args:
        asked: The profile that the refused request was written for.
        error: The refusal.
        sent: The tools that were sent.
        took: The last list of tools that the service took.
        left: The number of further requests of the turn.
        is_first: True if no plainer form was refused before.
    """
    said = f"{error.code or ''} {error.detail}"[:_MAX_WORDS]
    words = {word.rstrip(".-") for word in _TOKEN.findall(said)}
    tools = _named_tools(words, asked.name_rule, sent)
    plain = _without_options(asked)
    bare = _plainest(plain)
    others = [tool for tool in tools if tool.name not in sent.own]
    forms: list[tuple[str, ProviderProfile, bool]] = []
    if is_first and left > 1:
        told = _as_told(asked, said, words, tools, error)
        forms.append(("with what it names changed", told, False))
    if left > 1:
        # Of a service that has taken tools, the optional parts are not at fault.
        if not tools and took is None:
            forms.append(("without optional parts", plain, False))
        forms.append(("with schemas of names and types alone", bare, False))
        if others:
            forms.append((f"without {_quote(others)}", _without(others, bare), False))
        elif took is not None:
            forms += _forms_of_last_tools(bare, sent, took)
    if left > 0:
        forms.append(("without tools", replace(bare, takes_tools=False), False))
    for how, form, is_passing in forms:
        if form != asked:
            yield how, form, is_passing


def _forms_of_last_tools(
    bare: ProviderProfile, sent: SentTools, took: ToolList
) -> Iterator[tuple[str, ProviderProfile, bool]]:
    """Yield forms with and without the tools that came after the last accepted list."""
    listed = [entry.tool for entry in sent.listed if not entry.deferred]
    last = [tool for tool in listed if tool.name not in sent.own and not took.declares(tool.name)]
    others = [tool for tool in listed if tool.name in sent.own]
    if not last:
        return
    if len(last) + len(others) < len(listed):
        yield "with fewer tools", replace(bare, max_tools=len(last) + len(others)), True
    yield f"without {_quote(last[:_MAX_NAMED])}", _without(last, bare), True


def _quote(tools: Sequence[Tool]) -> str:
    return ", ".join(repr(tool.name) for tool in tools)


def _without(tools: Sequence[Tool], profile: ProviderProfile) -> ProviderProfile:
    aside = profile.set_aside.union(tool.shown_fingerprint for tool in tools)
    return replace(profile, set_aside=aside)


def _plainest(plain: ProviderProfile) -> ProviderProfile:
    """Return the form whose definitions and messages no service is known to refuse.

    Rules of the service that are known stay.
    """
    longest = min(plain.max_description or _MAX_DESCRIPTION, _MAX_DESCRIPTION)
    bare = replace(
        plain,
        schema_rules="plain",
        max_schema_levels=None,
        max_description=longest,
        max_calls=1,
        empty_content=_SOME_TEXT,
        names_results=True,
        takes_system=False,
        returns_reasoning=plain.returns_reasoning and plain.missing_reasoning is not None,
    )
    return bare if plain.message_rules == "mistral" else replace(bare, message_rules="alternating")


def _without_options(asked: ProviderProfile) -> ProviderProfile:
    """Return the form of a growing list without optional parts, and without kept names."""
    return replace(
        asked.generic(),
        name_rule=asked.name_rule.keeping(*EVER_KEPT_NAMES),
        cache="automatic",
        search_form="client",
        keeps_replies=False,
        gives_reasoning=False,
        takes_strict=False,
        states_effort=False,
        takes_stream_options=False,
        takes_result_pictures=False,
        takes_tool_choice_none=False,
        sends_extra_body=False,
    )


def _named_tools(words: set[str], rule: NameRule, sent: SentTools) -> list[Tool]:
    """Return the sent tools that a refusal names; none if it names many, as an echo does."""
    tools = [*(entry.tool for entry in sent.listed), *sent.loaded]
    named = {tool.name: tool for tool in tools if wire_name(tool.name, rule) in words}
    return list(named.values()) if len(named) <= _MAX_NAMED else []


def _as_told(
    asked: ProviderProfile, said: str, words: set[str], tools: list[Tool], error: ProviderError
) -> ProviderProfile:
    """Return the form that has the values which the words ask for, and not what they name."""
    told = {match["field"]: _value(match["value"]) for match in _SET.finditer(said)}
    dropped = (error.fields & words) - {place.partition(".")[0] for place in told}
    if "stream" in dropped:
        dropped |= {"stream_options"}
    told = {**dict.fromkeys(sorted(dropped)), **told}
    told = {place: told[place] for place in told if place.partition(".")[0] not in _NEVER_CHANGED}
    if asked.dialect == "anthropic" and told.get("max_tokens", 0) is None:
        # Required there: the smallest number that is said, or what every model writes.
        told["max_tokens"] = min(map(int, _TOKENS.findall(said)), default=_FEW_TOKENS)
    names = [wire_name(tool.name, asked.name_rule) for tool in tools]
    # A tool that has another name already is not refused for its name.
    kept = [name for name, tool in zip(names, tools, strict=True) if name == tool.name]
    set_fields = {**dict(asked.set_fields), **told}
    return replace(
        asked,
        set_fields=tuple(list(set_fields.items())[:_MAX_SET_FIELDS]),
        name_rule=asked.name_rule.keeping(*kept),
    )


def _value(written: str) -> str | float | bool | None:
    try:
        value = json.loads(written.lower())
    except ValueError:
        return written
    return value if isinstance(value, (int, float, bool)) or value is None else written
