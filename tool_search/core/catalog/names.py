"""A tool's name in a dialect: a function of the canonical name and of names that a service keeps.

So a name never changes when the catalog does.
Sources: Anthropic, "Tool use", `tools[].name`, and 64 characters for a
`tool_reference`; OpenAI, "Function calling", `function.name`.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Container, MutableMapping
from functools import lru_cache
from itertools import count
from typing import Literal, NamedTuple, get_args

__all__ = ["COMMON", "NAME_RULES", "NameRule", "NameShape", "unique_id", "wire_id", "wire_name"]

NameShape = Literal["common", "identifier"]
"""`common`: `[a-zA-Z0-9_-]{1,64}`; `identifier`: the same, not starting with `-` or a digit, and of
at least three characters (Moonshot AI, Tool Use: `^[a-zA-Z_][a-zA-Z0-9-_]{2,63}$`)."""


class NameRule(NamedTuple):
    """The names that a service takes.

    Attributes:
        shape: Their characters and length.
        kept: Names that the service keeps for itself, sorted.
    """

    shape: NameShape = "common"
    kept: tuple[str, ...] = ()

    def keeping(self, *names: str) -> NameRule:
        """Return the rule of a service that keeps these names too."""
        return self._replace(kept=tuple(sorted({*self.kept, *names})))


COMMON = NameRule()
NAME_RULES = tuple(NameRule(shape) for shape in get_args(NameShape))
"""The rule of each shape, without kept names."""

_SEARCH = "tool_search"
_OTHER_SEARCH = "find_tools"

_MAX_CHARS = 64
_INVALID = re.compile(r"[^a-zA-Z0-9_-]")
_SHORTENED = re.compile(r"_[0-9a-f]{8}\Z")
_IDENTIFIER = re.compile(r"[a-zA-Z_].{2}")
_MAX_ID_CHARS = 40


@lru_cache(maxsize=65_536)
def wire_name(name: str, rule: NameRule = COMMON) -> str:
    """Return the name as a provider takes it.

    Invalid characters become `_`. If anything was replaced or cut, eight hexadecimal
    digits of the canonical name's SHA-256 are appended. A name that ends as if they were
    appended already is treated alike: it could be another tool's wire name. So is a name that
    the service keeps, but for `tool_search`, which is `find_tools` there.

    >>> wire_name("get_weather"), wire_name("files.read")
    ('get_weather', 'files_read_601e4eb6')
    >>> wire_name("tool_search", COMMON.keeping("tool_search"))
    'find_tools'
    """
    plain = _INVALID.sub("_", name)
    if rule.shape == "identifier" and not _IDENTIFIER.match(plain):
        plain = f"t_{plain}"
    if plain == name and 0 < len(name) <= _MAX_CHARS and not _SHORTENED.search(name):
        if not rule.kept:
            return name
        is_other = _SEARCH in rule.kept and _OTHER_SEARCH not in rule.kept
        if is_other and name == _SEARCH:
            return _OTHER_SEARCH
        if name not in rule.kept and not (is_other and name == _OTHER_SEARCH):
            return name
    return f"{plain[: _MAX_CHARS - 9]}_{_digest(name)}"


@lru_cache(maxsize=65_536)
def wire_id(call_id: str) -> str:
    """Return a call's id as every provider takes it: `[a-zA-Z0-9_-]{1,40}`.

    Anthropic refuses other characters, OpenAI Chat more than 40 of them, and
    some compatible providers write ids such as `functions.get_weather:0`.
    """
    plain = _INVALID.sub("_", call_id)
    if plain == call_id and 0 < len(call_id) <= _MAX_ID_CHARS:
        return call_id
    return f"{plain[: _MAX_ID_CHARS - 9]}_{_digest(call_id)}"


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "replace")).hexdigest()[:8]


def unique_id(
    call_id: str, taken: Container[str], numbers: MutableMapping[str, int] | None = None
) -> str:
    """Return the id, with a number appended if it is empty or already taken.

    Providers require ids to be unique in a whole request; some models repeat `call_0`.

    Args:
        call_id: The id as the model gave it.
        taken: The ids of other calls.
        numbers: The last number of each id that repeats, kept from call to call: without
            it, thousands of calls under one id would each count from 2 again.
    """
    if call_id and call_id not in taken:
        return call_id
    start = 2 if numbers is None else numbers.get(call_id, 1) + 1
    for number in count(start):
        numbered = f"{call_id or 'call'}_{number}"
        if numbered not in taken:
            break
    if numbers is not None:
        numbers[call_id] = number
    return numbered
