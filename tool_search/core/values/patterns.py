"""Patterns of permission rules, matched against single values of a call's arguments.

A rule that allows requires that a value matches in every reading; a rule that denies or asks
applies if it may match in some reading: with spaces around it, as a number in another
spelling, percent-encoded, with invisible characters. So an ambiguous spelling gains nothing.

- `text*`: the value, `*` for anything;
- `git:*`: `git` alone, or with anything after a space;
- `nocase:text*`: in any case of its letters;
- `domain:example.org`, `domain:*.example.org`: the host of an address, of http or https alone
  where a rule allows;
- `email:*@example.org`: the recipients of mail.
"""

from __future__ import annotations

import posixpath
import re
from abc import ABC, abstractmethod
from dataclasses import dataclass
from fnmatch import fnmatchcase
from functools import lru_cache
from typing import Final, Literal

from tool_search.core.values.host_names import is_address, read_host
from tool_search.core.values.readings import (
    KINDS,
    Scalar,
    exact_number,
    folded_alike,
    has_endless_marks,
    is_ambiguous,
    numbers,
    readings,
    truth,
    without_unseen,
    written,
)

__all__ = ["NAMED_PATTERN", "ValuePattern", "read_pattern"]

NAMED_PATTERN: Final = re.compile(r"([^\s=:*?\[\]()]+)=(.*)", re.DOTALL)
"""A pattern that names an argument: `to=*@example.org`, `where.host=x`."""

_MAX_VALUE_CHARS = 20_000
_GLOB: Final = frozenset("*?[")
_COMMAND_ENDS = re.compile(r"[;&|\n\r`()]+")
_SHELL = re.compile(r"[;&|`$<>(){}\\\x00-\x1f\x7f]")
_QUOTES = str.maketrans("", "", "'\"\\")


class ValuePattern(ABC):
    """One pattern, read.

    A text of more than 20,000 characters is not read: it matches no rule that allows, and
    every other one.
    """

    @property
    def is_anything(self) -> bool:
        """True if it matches every value."""
        return False

    def fits_surely(self, value: Scalar, *, is_subject: bool = False) -> bool:
        """Return True if the value matches in every reading.

        Args:
            value: A value that a tool is given.
            is_subject: True if the tool's author took it out of the arguments.
        """
        if self.is_anything:
            return True
        return not _is_too_long(value) and self._fits_surely(value, is_subject)

    def may_fit(self, value: Scalar) -> bool:
        """Return True if the value matches in some reading."""
        return self.is_anything or _is_too_long(value) or self._may_fit(value)

    def is_meant_by(self, value: Scalar) -> bool:
        """Return True if a value, of whatever kind, may mean what the pattern names."""
        return not self.is_anything and self.may_fit(value)

    @abstractmethod
    def _fits_surely(self, value: Scalar, is_subject: bool) -> bool: ...

    @abstractmethod
    def _may_fit(self, value: Scalar) -> bool: ...


def _is_too_long(value: Scalar) -> bool:
    return isinstance(value, str) and len(value) > _MAX_VALUE_CHARS


@lru_cache(maxsize=1024)
def read_pattern(pattern: str) -> ValuePattern:
    """Return the pattern of a text.

    Raises:
        ValueError: Its host or mail address cannot be read.
    """
    kind, colon, rest = pattern.partition(":")
    if colon and kind == "domain":
        return _Named("host", _host_glob(rest))
    if colon and kind == "email":
        return _Named("address", _mailbox_glob(rest))
    ignores_case = bool(colon) and kind == "nocase"
    text = rest if ignores_case else pattern
    if text.endswith(":*"):
        return _Command(text.removesuffix(":*"), ignores_case)
    return _Glob(text, ignores_case)


@dataclass(frozen=True, slots=True)
class _Glob(ValuePattern):
    """A text, `*` for anything."""

    text: str
    ignores_case: bool = False

    @property
    def is_anything(self) -> bool:
        return bool(self.text) and not self.text.strip("*")

    def _fits_surely(self, value: Scalar, is_subject: bool) -> bool:
        given = written(value)
        if given == self.text:
            return True
        if isinstance(value, bool):
            return given == self.text.lower()
        number = exact_number(value)
        if number is not None and self._is_plain:
            return number in numbers(self.text)
        if not is_subject and is_ambiguous(given, self.text):
            return False
        if self.ignores_case:
            return fnmatchcase(folded_alike(given), folded_alike(self.text))
        return fnmatchcase(given, self.text)

    def _may_fit(self, value: Scalar) -> bool:
        if has_endless_marks(value) or self._may_be(value):
            return True
        if self.ignores_case:
            pattern = without_unseen(self.text).casefold()
            return any(fnmatchcase(form.casefold(), pattern) for form in readings(value))
        return any(fnmatchcase(form, self.text) for form in readings(value))

    def _may_be(self, value: Scalar) -> bool:
        """Return True if both may be one number, or one boolean."""
        if not self._is_plain:
            return False
        if self.text.lower() in ("true", "false"):
            return truth(value) is (self.text.lower() == "true")
        mine, theirs = numbers(self.text), numbers(value)
        # As doubles too: that is all that JavaScript has.
        return bool(mine & theirs) or bool(set(map(float, mine)) & set(map(float, theirs)))

    @property
    def _is_plain(self) -> bool:
        return _GLOB.isdisjoint(self.text)


@dataclass(frozen=True, slots=True)
class _Command(ValuePattern):
    """A text alone, or with anything after a space."""

    start: str
    ignores_case: bool = False

    def _fits_surely(self, value: Scalar, is_subject: bool) -> bool:
        given, start = written(value), self.start
        # Only tools with `subjects` know the places at which one command may end.
        if not is_subject and _SHELL.search(given):
            return False
        if self.ignores_case:
            given, start = folded_alike(given), folded_alike(start)
        return given == start or given.startswith(f"{start} ")

    def _may_fit(self, value: Scalar) -> bool:
        start = self._spell(" ".join(self.start.split()))
        return has_endless_marks(value) or any(
            spelled == start or spelled.startswith(f"{start} ")
            for form in readings(value)
            for part in _COMMAND_ENDS.split(form)
            for spelled in self._spellings(part)
        )

    def _spellings(self, command: str) -> tuple[str, str]:
        """Return a command without quotes and extra spaces, and the same without its folder."""
        words = command.translate(_QUOTES).split() or [""]
        bare = [posixpath.basename(words[0]), *words[1:]]
        return self._spell(" ".join(words)), self._spell(" ".join(bare))

    def _spell(self, text: str) -> str:
        return text.casefold() if self.ignores_case else text


@dataclass(frozen=True, slots=True)
class _Named(ValuePattern):
    """The host of an address, or the recipients of mail."""

    kind: Literal["host", "address"]
    glob: str

    def is_meant_by(self, value: Scalar) -> bool:
        is_read = not _is_too_long(value) and KINDS[self.kind](written(value)) is not None
        if is_read and (self.kind == "address" or self._may_fit(value)):
            return self._may_fit(value)
        host = self.glob.rpartition("@")[2].removeprefix("*.")
        return host != "*" and (
            _is_too_long(value) or any(host in form.lower() for form in readings(value))
        )

    def _fits_surely(self, value: Scalar, is_subject: bool) -> bool:  # noqa: ARG002
        items = KINDS[self.kind](written(value))
        return bool(items) and all(fnmatchcase(item[0], self.glob) for item in items or ())

    def _may_fit(self, value: Scalar) -> bool:
        items = KINDS[self.kind](written(value))
        return items is None or any(fnmatchcase(one, self.glob) for item in items for one in item)


def _host_glob(pattern: str) -> str:
    """Return the glob of `example.org` or `*.example.org`."""
    bare = pattern.removeprefix("*.")
    names = read_host(bare)
    if names is None or (bare != pattern and is_address(names[0])):
        raise ValueError(f"{pattern!r} is not a host or *.host, such as *.example.org")
    return names[0] if bare == pattern else f"*.{names[0]}"


def _mailbox_glob(pattern: str) -> str:
    """Return the glob of `local@host`, `*` for any."""
    local, at, host = pattern.rpartition("@")
    if not (local and at and host) or "@" in local:
        raise ValueError(f"{pattern!r} is not a mail address, such as *@example.org")
    return f"{local.lower()}@{host if host == '*' else _host_glob(host)}"
