"""Names that a model's service keeps for itself, and others in their place in a host's requests."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any, TypeVar, cast
from urllib.parse import urlsplit

from tool_search.core.catalog.naming import NameRule, wire_name
from tool_search.core.settings import Dialect
from tool_search.providers.known import EVER_KEPT_NAMES, OWN_HOSTS, known_facts
from tool_search.providers.refusals import read_answers

__all__ = ["KeptNames"]

_T = TypeVar("_T")
_OTHER_SEARCH = wire_name("tool_search", NameRule().keeping("tool_search"))
# What a call says, or a tool takes, may have a `name` of its own.
_NOT_OURS = frozenset({"args", "arguments", "input", "parameters", "input_schema"})
_REFUSED = (400, 404, 409, 415, 422)
_MAX_NAMED = 3
_MAX_LEARNED = 1_000
_learned: dict[tuple[Dialect, str, str], frozenset[str]] = {}
"""The names that services have refused since the process began, by dialect, address and model."""


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
        self._service = dialect, urlsplit(base_url).netloc, model
        learned = _learned.get(self._service, ())
        # A tool of a name that stands for another's would be taken for that one.
        taken = declared & {_OTHER_SEARCH}
        known = known_facts(dialect, host, model).get("kept_names", ())
        rule = NameRule().keeping(*known, *learned, *taken)
        self._sent = {name: wire_name(name, rule) for name in declared & {*rule.kept}}
        # Whichever service was asked: a host may have asked another one in its place.
        ever = NameRule().keeping(*EVER_KEPT_NAMES, *learned, *taken)
        self._plain = declared - self._sent.keys()
        self._own = {wire_name(name, ever): name for name in declared & {*ever.kept}}

    def __bool__(self) -> bool:
        return bool(self._sent)

    def learn(self, refusal: Exception) -> bool:
        """Remember the names that a service refuses; True if the request may be sent again."""
        if getattr(refusal, "status_code", None) not in _REFUSED:
            return False
        # The SDKs' own texts leave out what is not in OpenAI's form.
        said = f"{refusal} {getattr(getattr(refusal, 'response', None), 'text', '')}"
        meanings = list(read_answers(self._service[0], said))
        kept = {found["name"] for meaning, found in meanings if meaning == "name_kept"}
        # Words that no row has may name what they refuse; an echo names many.
        named = kept if meanings else {*re.findall(r"[\w-]+", said)}
        refused = self._plain & named
        if not refused or (not meanings and len(refused) > _MAX_NAMED):
            return False
        _learned[self._service] = _learned.get(self._service, frozenset()) | refused
        if len(_learned) > _MAX_LEARNED:
            del _learned[next(iter(_learned))]
        return True

    def sent(self, value: _T) -> _T:
        """Return a message, a tool or a list of them with the names that the service takes."""
        return cast("_T", _rename(value, self._sent))

    def own(self, value: _T) -> _T:
        """Return a reply with the tools' own names."""
        return cast("_T", _rename(value, self._own))

    def text(self, said: str, name: str) -> str:
        """Return a text about one tool with the name that the service takes."""
        return re.sub(rf"\b{re.escape(name)}\b", self._sent.get(name, name), said)

    def instructed(self, message: Any, name: str) -> Any:
        """Return a system text that calls a tool as the service does; another as it is."""
        if message.get("role") not in {"system", "developer"}:
            return message
        content = message.get("content")
        if isinstance(content, list):
            said = [
                {**p, "text": self.text(p["text"], name)} if "text" in p else p for p in content
            ]
            return {**message, "content": said}
        return {**message, "content": self.text(str(content or ""), name)}


def _rename(value: Any, names: Mapping[str, str]) -> Any:
    if isinstance(value, Mapping):
        return {
            key: names.get(part, part) if key == "name" and isinstance(part, str)
            else part if key in _NOT_OURS else _rename(part, names)
            for key, part in value.items()
        }  # fmt: skip
    return [_rename(part, names) for part in value] if isinstance(value, list) else value
