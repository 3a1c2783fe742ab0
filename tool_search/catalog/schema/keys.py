"""Property keys as every provider takes them: a function of the key.

Anthropic refuses a whole request for one key outside `[a-zA-Z0-9_.-]{1,64}`. The same
names are used in every dialect: a conversation that changes its provider then calls a
tool by the arguments that it has seen, and a search result needs no copy per dialect.

Source: Anthropic, error text `Property keys should match pattern
'^[a-zA-Z0-9_.-]{1,64}$'`.
"""

from __future__ import annotations

import hashlib
import re
import unicodedata
from collections.abc import Iterable, Mapping
from functools import lru_cache
from itertools import count
from types import MappingProxyType

__all__ = ["WireKeys", "is_wire_key", "wire_key"]

_MAX_KEY_CHARS = 64
_DIGEST_CHARS = 8
_UNFIT = re.compile(r"[^a-zA-Z0-9_.-]+")
_is_fit = re.compile(rf"[a-zA-Z0-9_.-]{{1,{_MAX_KEY_CHARS}}}").fullmatch
_NO_LETTERS = "key"


def is_wire_key(key: str) -> bool:
    """True if every provider takes the key as it is."""
    return _is_fit(key) is not None


@lru_cache(maxsize=16_384)
def wire_key(key: str, attempt: int = 0) -> str:
    """Return the key as providers take it.

    Accents are dropped and other characters become `_`; eight hexadecimal digits of the
    key's SHA-256 are appended where anything was lost.

    Args:
        key: Any text.
        attempt: Gives another name for each number, if one is taken already.

    >>> wire_key("city"), wire_key("$filter"), wire_key("año")
    ('city', 'filter_0c097d40', 'ano_f5b8fbdc')
    """
    if is_wire_key(key) and not attempt:
        return key
    letters = unicodedata.normalize("NFKD", key[: 4 * _MAX_KEY_CHARS])
    plain = "".join(char for char in letters if not unicodedata.combining(char))
    head = _UNFIT.sub("_", plain).strip("_.-")[: _MAX_KEY_CHARS - _DIGEST_CHARS - 1]
    told_apart = f"{key}\0{attempt}" if attempt else key
    digest = hashlib.sha256(told_apart.encode("utf-8", "replace")).hexdigest()
    return f"{head or _NO_LETTERS}_{digest[:_DIGEST_CHARS]}"


class WireKeys:
    """One schema's keys under names that providers take, one to one.

    A key that fits keeps its name; another key that would get the same one gets the
    next. So the names depend on the set of keys alone, not on their order.

    Args:
        keys: All property keys of one schema.

    Attributes:
        wire: The wire name of each key that has another one.
        original: The key of each such wire name.
    """

    def __init__(self, keys: Iterable[str]) -> None:
        known = set(keys)
        taken = {key for key in known if is_wire_key(key)}
        wire: dict[str, str] = {}
        for key in sorted(known - taken):
            names = (wire_key(key, attempt) for attempt in count())
            wire[key] = next(name for name in names if name not in taken)
            taken.add(wire[key])
        self.wire: Mapping[str, str] = MappingProxyType(wire)
        self.original: Mapping[str, str] = MappingProxyType({v: k for k, v in wire.items()})

    def __bool__(self) -> bool:
        return bool(self.wire)

    def __getitem__(self, key: str) -> str:
        return self.wire.get(key, key)
