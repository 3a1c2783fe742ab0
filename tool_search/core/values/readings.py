"""The readings of one value by the programs behind tools, by one table of kinds.

Sources: RFC 3986, section 3.2.2 (hosts of addresses); RFC 5322, section 3.4 (mailboxes), of
which this is the part without its obsolete and nested forms.
"""

from __future__ import annotations

import json
import posixpath
import re
import unicodedata
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from decimal import Decimal, InvalidOperation
from functools import lru_cache
from typing import Final, Literal
from urllib.parse import unquote, urlsplit

from tool_search.core.values.host_names import is_address, read_host

__all__ = [
    "KINDS",
    "Items",
    "Scalar",
    "exact_number",
    "folded_alike",
    "has_endless_marks",
    "is_ambiguous",
    "numbers",
    "readings",
    "truth",
    "without_unseen",
    "written",
]

Scalar = str | int | float | bool | None
"""A value that holds no others."""

Items = tuple[tuple[str, ...], ...]
"""What a text names: each item by its spellings, the certain one first, "" if none is."""

_MAX_PLAIN_DIGITS = 400
_MAX_NUMBER_CHARS = 20_000
_MAX_DECODINGS = 2
# Longer runs make Unicode's canonical ordering quadratic (UAX #15, "Stream-Safe Text Format").
_MAX_MARKS = 30
_UNSEEN = frozenset(("Cc", "Cf", "Zl", "Zp"))
_LINE = frozenset(("Cc", "Zl", "Zp"))
_OCTAL = re.compile(r"[+-]?0[0-7]+")
_BASED = re.compile(r"[+-]?0[xob][0-9a-f]+", re.IGNORECASE)
_UNSAFE = re.compile(r"[\x00-\x20\x7f\\]")
_HOST_AND_PORT = re.compile(r"(\[[0-9A-Fa-f:.]+\]|[^\[\]:@%]+)(?::[0-9]*)?")
_MAILBOX = re.compile(r"([A-Za-z0-9_+'-]+(?:\.[A-Za-z0-9_+'-]+)*)@([^\s@,;:<>()\[\]\"\\%!]+)")
_NAMED_MAILBOX = re.compile(r"[\w .'-]*<([^<>]*)>")
_MAX_LOCAL_CHARS = 64
# Words that pydantic and YAML take for a boolean.
_TRUTHS = {
    **dict.fromkeys(("true", "t", "yes", "y", "on", "1", "1.0"), True),
    **dict.fromkeys(("false", "f", "no", "n", "off", "0", "0.0"), False),
}


def written(value: Scalar) -> str:
    """Return a value as text; a number in plain digits, so that `1e2` is `100`."""
    if isinstance(value, str):
        return value
    number = exact_number(value)
    return json.dumps(value) if number is None else _plain(number)


def exact_number(value: Scalar) -> Decimal | None:
    """Return the number that a JSON number is; None for anything else."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return Decimal(value) if isinstance(value, int) else Decimal(repr(value))


def numbers(value: Scalar) -> frozenset[Decimal]:
    """Return the numbers that a value may be read as; a boolean is 1 or 0.

    >>> numbers(" 1e2 ") == numbers(100.0) == numbers("0x64")
    True
    """
    if isinstance(value, bool):
        return frozenset((Decimal(int(value)),))
    exact = exact_number(value)
    if exact is not None:
        return frozenset((exact,))
    if not isinstance(value, str) or len(value) > _MAX_NUMBER_CHARS:
        return frozenset()
    text = value.strip().replace("_", "")
    found = set()
    with suppress(InvalidOperation):
        found.add(Decimal(text))
    with suppress(ValueError):  # `0o8` is no number
        if _BASED.fullmatch(text) or _OCTAL.fullmatch(text):
            found.add(Decimal(int(text, 8 if _OCTAL.fullmatch(text) else 0)))
    return frozenset(number for number in found if number.is_finite())


def truth(value: Scalar) -> bool | None:
    """Return the boolean that a value may be read as; None if it is none."""
    return _TRUTHS.get(written(value).strip().lower())


def readings(value: Scalar) -> tuple[str, ...]:
    """Return a value as programs may read it, the value itself first.

    Spaces around it are stripped, invisible characters left out, full-width forms
    mapped, percent signs decoded, paths normalized, numbers written plainly.
    """
    return _readings_of_text(value) if isinstance(value, str) else tuple(_readings(value))


@lru_cache(maxsize=32)  # many rules look at one value
def _readings_of_text(text: str) -> tuple[str, ...]:
    return tuple(dict.fromkeys(_readings(text)))


def _readings(value: Scalar) -> Iterator[str]:
    form, is_given = written(value), True
    for _ in range(_MAX_DECODINGS + 2):
        yield form
        yield from _spellings("path", form)
        cleaned = _clean(form if is_given or "%" not in form else unquote(form))
        form, is_given = cleaned, False
    yield from _spellings("number", form)


def _spellings(kind: Literal["number", "path"], text: str) -> Iterator[str]:
    return (spelling for item in KINDS[kind](text) or () for spelling in item)


def without_unseen(text: str) -> str:
    """Return a text in Unicode's form NFKC, without invisible characters."""
    if text.isascii() and text.isprintable():
        return text
    unseen = "".join(char for char in set(text) if unicodedata.category(char) in _UNSEEN)
    return unicodedata.normalize("NFKC", text.translate(str.maketrans("", "", unseen)))


def _clean(text: str) -> str:
    return without_unseen(text).strip()


def has_endless_marks(value: Scalar) -> bool:
    """Return True if a text has more combining marks in a row than any script needs."""
    if not isinstance(value, str) or value.isascii():
        return False
    marks = "".join(char for char in set(value) if unicodedata.combining(char))
    return bool(marks and re.search(f"[{re.escape(marks)}]{{{_MAX_MARKS + 1}}}", value))


def is_ambiguous(value: str, pattern: str) -> bool:
    """Return True if no glob should let a text through: programs may read it as more.

    It holds a line break or another control character, a way up out of a folder, or a JSON
    list or object in a string, which some servers unpack.

    Args:
        value: The text.
        pattern: The glob, whose own characters are allowed.
    """
    if any(unicodedata.category(char) in _LINE for char in set(value).difference(pattern)):
        return True
    if "/" in pattern and ".." in _segments(value) and ".." not in _segments(pattern):
        return True
    if value.lstrip()[:1] in ("[", "{") and value.lstrip()[:1] != pattern[:1]:
        with suppress(ValueError, RecursionError):
            return isinstance(json.loads(value), dict | list)
    return False


def _segments(path: str) -> list[str]:
    decoded = unquote(unquote(path)) if "%" in path else path
    return [part.strip() for part in decoded.replace("\\", "/").split("/")]


def folded_alike(text: str) -> str:
    """Return a text in lower case, unless that makes a letter of another script.

    So the Kelvin sign is not a `k`, and the rule for `bank` does not let `ban\u212a` through.
    """
    return "".join(
        low if len(low := char.lower()) == 1 and low.isascii() == char.isascii() else char
        for char in text
    )


def _plain(number: Decimal) -> str:
    """Return a number in plain digits; in scientific notation if there are very many."""
    if not number:
        return "0"
    if abs(number.adjusted()) > _MAX_PLAIN_DIGITS:
        return str(number)
    digits = format(number, "f")  # exact, where `normalize` rounds to the context's precision
    return digits.rstrip("0").rstrip(".") if "." in digits else digits


def _read_number(text: str) -> Items:
    return tuple((_plain(number),) for number in numbers(text))


def _read_path(text: str) -> Items:
    if "/" not in text and "\\" not in text:
        return ()
    path = text.replace("\\", "/").removeprefix("file://")
    return ((posixpath.normpath(f"/{path.lstrip('/')}" if path.startswith("/") else path),),)


@lru_cache(maxsize=32)  # many rules look at one value
def _read_host(address: str) -> Items | None:
    """Read the host of an address; the scheme may be left out: `example.org/a`."""
    if _UNSAFE.search(address):
        return None
    try:
        parts = urlsplit(address)
        if not parts.netloc and ":" not in address:
            parts = urlsplit(f"//{address}")
    except ValueError:
        return None
    user, _, host_and_port = parts.netloc.rpartition("@")
    found = _HOST_AND_PORT.fullmatch(host_and_port)
    names = None if found is None or "@" in user else read_host(found[1])
    if names is None:
        return None
    # `file://example.org/etc/passwd` has a host too, and is not the web.
    return (names if parts.scheme in ("", "http", "https") else ("", *names),)


@lru_cache(maxsize=32)
def _read_mailboxes(text: str) -> Items | None:
    """Read mailboxes, separated by commas, only where every mail program reads them alike.

    Quoted local parts, comments, routes (`<@a:b@c>`, `b%c@a`) and address literals have no
    certain reading. Most services deliver `bo+tag@host` to `bo@host`.
    """
    if any(unicodedata.category(char) in _UNSEEN for char in set(text)):
        return None
    found: list[tuple[str, ...]] = []
    for entry in text.split(",") if text.strip(" ") else ():
        named = _NAMED_MAILBOX.fullmatch(entry.strip(" "))
        box = _MAILBOX.fullmatch(named[1] if named else entry.strip(" "))
        names = read_host(box[2]) if box and len(box[1]) <= _MAX_LOCAL_CHARS else None
        if box is None or names is None or is_address(names[0]):
            return None
        locals_ = (box[1].lower(), box[1].lower().partition("+")[0])
        found.append(tuple(f"{local}@{name}" for name in names for local in locals_))
    return tuple(found)


KINDS: Final[Mapping[str, Callable[[str], Items | None]]] = {
    "number": _read_number,
    "path": _read_path,
    "host": _read_host,
    "address": _read_mailboxes,
}
"""Return what a text of each kind names; None if programs may read it in different ways."""
