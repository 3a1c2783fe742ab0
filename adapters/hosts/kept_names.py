"""Names that a model's service keeps for itself, and others in their place in a host's requests."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any, TypeVar, cast
from urllib.parse import urlsplit

from tool_search.core.catalog.names import NameRule, wire_name
from tool_search.core.kinds import Dialect
from tool_search.providers.known import EVER_KEPT_NAMES, OWN_HOSTS, known_facts

__all__ = ["KeptNames"]

_T = TypeVar("_T")
_OTHER_SEARCH = wire_name("tool_search", NameRule().keeping("tool_search"))
# What a call says, or a tool takes, may have a `name` of its own.
_NOT_OURS = frozenset({"args", "arguments", "input", "parameters", "input_schema"})


class KeptNames:
    """The tools of a request whose names the model's service keeps; false if there are none.

    A host's state has the tools' own names; requests and replies pass through here.

    Args:
        dialect: The dialect of the requests.
        model: The model's name.
        base_url: The endpoint; empty: the vendor's own.
        names: The names of the tools, the search tool among them.

    >>> kept = KeptNames("openai_chat", "grok-4.5", "", ["tool_search", "send_mail"])
    >>> kept.sent({"function": {"name": "tool_search"}})
    {'function': {'name': 'find_tools'}}
    >>> kept.own({"name": "find_tools"})
    {'name': 'tool_search'}
    """

    def __init__(self, dialect: Dialect, model: str, base_url: str, names: Iterable[str]) -> None:
        host = urlsplit(base_url).hostname or OWN_HOSTS[dialect]
        declared = set(names)
        # A tool of a name that stands for another's would be taken for that one.
        taken = declared & {_OTHER_SEARCH}
        rule = NameRule().keeping(*known_facts(dialect, host, model).get("kept_names", ()), *taken)
        self._sent = {name: wire_name(name, rule) for name in declared & {*rule.kept}}
        # Whichever service was asked: a host may have asked another one in its place.
        ever = NameRule().keeping(*EVER_KEPT_NAMES, *taken)
        self._own = {wire_name(name, ever): name for name in declared & {*ever.kept}}

    def __bool__(self) -> bool:
        return bool(self._sent)

    def sent(self, value: _T) -> _T:
        """Return a message, a tool or a list of them with the names that the service takes."""
        return cast("_T", _renamed(value, self._sent))

    def own(self, value: _T) -> _T:
        """Return a reply with the tools' own names."""
        return cast("_T", _renamed(value, self._own))

    def text(self, said: str, name: str) -> str:
        """Return a text about one tool with the name that the service takes."""
        return re.sub(rf"\b{re.escape(name)}\b", self._sent.get(name, name), said)


def _renamed(value: Any, names: Mapping[str, str]) -> Any:
    if isinstance(value, Mapping):
        return {
            key: names.get(part, part) if key == "name" and isinstance(part, str)
            else part if key in _NOT_OURS else _renamed(part, names)
            for key, part in value.items()
        }  # fmt: skip
    return [_renamed(part, names) for part in value] if isinstance(value, list) else value
