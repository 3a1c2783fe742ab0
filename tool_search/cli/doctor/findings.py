"""Findings of an examination: each with a code, a place, and what to do."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, Literal

from tool_search.i18n import Language, Sentence, text

__all__ = ["CODES", "Correction", "Finding", "KeyPath", "Place", "Severity"]

Severity = Literal["error", "warning", "note"]
"""`error`: the bot does not start, or a part of it never works; `warning`: it works worse or
costs more than it has to; `note`: worth knowing."""

KeyPath = tuple[str | int, ...]

CODES: Mapping[str, Severity] = MappingProxyType(
    {
        "file_unreadable": "error",
        "setting_wrong": "error",
        "provider_missing": "error",
        "key_missing": "error",
        "address_secret": "warning",
        "address_plain": "warning",
        "address_path": "warning",
        "model_unknown": "warning",
        "adapter_missing": "error",
        "strategy_refused": "error",
        "native_search_unused": "note",
        "reasoning_off": "note",
        "provider_repeated": "warning",
        "fallback_late": "warning",
        "profile_unmatched": "warning",
        "provider_refused": "error",
        "form_refused": "warning",
        "tools_missing": "warning",
        "module_failed": "error",
        "module_moved": "warning",
        "tool_twice": "error",
        "tool_unsearchable": "error",
        "name_changed": "warning",
        "schema_changed": "warning",
        "definition_large": "warning",
        "description_empty": "warning",
        "description_short": "warning",
        "description_repeats": "warning",
        "description_foreign": "warning",
        "languages_mixed": "note",
        "description_misses": "warning",
        "always_loaded_unmatched": "warning",
        "mode_overridden": "warning",
        "search_off": "warning",
        "search_costs_more": "warning",
        "core_large": "warning",
        "setting_idle": "warning",
        "search_unavailable": "error",
        "embedder_key_missing": "error",
        "query_finds_nothing": "warning",
        "query_words_unknown": "note",
        "rule_unmatched": "warning",
        "rule_overruled": "warning",
        "sdk_missing": "error",
        "server_variable_missing": "error",
        "server_command_missing": "error",
        "server_unusable": "error",
        "server_secret": "warning",
        "server_plain": "warning",
        "server_silent": "error",
        "store_unusable": "error",
        "store_temporary": "note",
        "store_secret": "warning",
        "store_plain": "warning",
        "store_unreachable": "error",
        "store_read_only": "error",
        "store_evicts": "warning",
        "store_full": "warning",
        "store_not_durable": "warning",
    }
)
"""Every code, with its severity; docs/doctor.md has a section for each."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Correction:
    """A mechanical correction: one word in one line of the file.

    Attributes:
        line: The line, from 1.
        old: The word as it is.
        new: The word to be written instead.
    """

    line: int
    old: str
    new: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """The place of a finding.

    Attributes:
        key: The setting as people write it, such as `providers[0].model`; empty: the file.
        line: Its line; None if it is not in the file.
    """

    key: str = ""
    line: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """One finding.

    Attributes:
        code: Its kind, a key of `CODES`.
        path: The keys and indexes of the setting that it is about.
        values: The facts in its text, by name.
        instead: The word that is certainly meant in place of `wrong`; None: a person decides.
        wrong: The word to be replaced.
        place: The place in the file, once it is known.
    """

    code: str
    path: KeyPath = ()
    values: Mapping[str, Any] = field(default_factory=dict)
    instead: str | None = None
    wrong: str = ""
    place: Place = Place()

    @property
    def severity(self) -> Severity:
        """The severity of its code."""
        return CODES[self.code]

    @property
    def correction(self) -> Correction | None:
        """The mechanical correction, or None if there is none."""
        if self.instead is None or self.place.line is None:
            return None
        return Correction(line=self.place.line, old=self.wrong, new=self.instead)

    def message(self, language: Language) -> str:
        """Return what is wrong."""
        return text(f"doctor.{self.code}", language, **self._say(language))

    def remedy(self, language: Language) -> str:
        """Return what to do."""
        return text(f"remedy.{self.code}", language, **self._say(language))

    def _say(self, language: Language) -> dict[str, Any]:
        """Return the values, sentences among them in a language."""
        return {
            name: value.in_language(language) if isinstance(value, Sentence) else value
            for name, value in self.values.items()
        }

    def to_dict(self) -> dict[str, Any]:
        """Return the finding as JSON values, in English."""
        content: dict[str, Any] = {
            "code": self.code,
            "severity": self.severity,
            "key": self.place.key,
            "line": self.place.line,
            "message": self.message("en-US"),
            "remedy": self.remedy("en-US"),
            "values": self._say("en-US"),
        }
        if self.correction is not None:
            content["fix"] = {"old": self.correction.old, "new": self.correction.new}
        return content
