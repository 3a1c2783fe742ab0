"""Values of services, calls with canonical names, and arguments, as every dialect reads them."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Mapping
from functools import cache
from typing import Any

from tool_search.adapters.wire.requests import definitions_in
from tool_search.core.catalog.naming import NameRule, wire_name
from tool_search.core.messages import Message, RequestPlan, ToolCall
from tool_search.core.values.json import compact_json, read_object
from tool_search.i18n import Language, text

__all__ = [
    "ObjectEnd",
    "arguments_json",
    "arguments_object",
    "arguments_text",
    "attachment",
    "canonical_names",
    "count_of",
    "fields_of",
    "is_whole",
    "known",
    "label_of",
    "list_of",
    "made_call",
    "mapping_of",
    "mappings_of",
    "mended",
    "mended_value",
    "named_of",
    "position_of",
    "readable",
    "text_of",
]

# Calls of a reply, with canonical names for the names in it.


def canonical_names(plan: RequestPlan, rule: NameRule) -> Callable[[str], str]:
    """Return a function from wire names to canonical names; unknown names stay unchanged.

    It knows the tools that the plan declares and those that its messages define. The name
    that a model has seen precedes an equal canonical name of another tool.
    """
    declared = plan.tools.by_wire_name(rule)

    @cache
    def sent_names() -> Mapping[str, str]:
        known = plan.kept.get(_SentNames, rule)
        if known is None or not known.precedes(plan.messages):
            known = plan.kept.put(rule, _SentNames(rule))
        return known.through(plan.messages)

    def canonical(name: str) -> str:
        return declared.get(name) or sent_names().get(name, name)

    return canonical


def made_call(
    canonical: Callable[[str], str], place: int, call_id: object, name: object, arguments: object
) -> ToolCall:
    """Return a call of a reply; some services give calls no id, so their place names them."""
    return ToolCall(
        id=text_of(call_id) or f"call_{place}",
        name=canonical(text_of(name)),
        arguments=arguments_text(arguments),
    )


class _SentNames:
    """The tools that a history defines, by wire name; extended at each request."""

    def __init__(self, rule: NameRule) -> None:
        self._rule = rule
        self._messages: tuple[Message, ...] = ()
        self._names: dict[str, str] = {}

    def precedes(self, messages: tuple[Message, ...]) -> bool:
        """True if a history continues the one that was read."""
        # Equal tuples are compared by identity first, which takes no time.
        return messages[: len(self._messages)] == self._messages

    def through(self, messages: tuple[Message, ...]) -> Mapping[str, str]:
        """Return the canonical names by wire name."""
        for message in messages[len(self._messages) :]:
            tools = definitions_in(message)
            self._names |= {wire_name(tool.name, self._rule): tool.name for tool in tools}
        self._messages = messages
        return self._names


# Arguments of a call, in a dialect's format and in the neutral history.


_MARK = re.compile(r'["{}\\]')


def arguments_object(call: ToolCall) -> dict[str, Any]:
    """Return the arguments as a request may have them; `{}` if they are not a JSON object.

    Python reads `NaN` and `1e999`, which are not JSON: every provider refuses them.
    """
    value = call.parsed_arguments()
    try:
        compact_json(value)
    except (ValueError, RecursionError):
        return {}
    return value or {}


def arguments_json(call: ToolCall) -> str:
    """Return the arguments as the model wrote them; `{}` if they are not a JSON object."""
    return call.arguments if arguments_object(call) else "{}"


def arguments_text(value: object) -> str:
    """Return the arguments of a reply as text; some endpoints send an object, some nothing."""
    if isinstance(value, str):
        return value if value.strip() else "{}"
    if value is None:
        return "{}"
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def is_whole(written: object) -> bool:
    """True if arguments are the text of a complete JSON object."""
    return isinstance(written, str) and bool(written.strip()) and read_object(written) is not None


class ObjectEnd:
    """A reader of a JSON object that comes in pieces; it reads each character once.

    Attributes:
        is_over: True while nothing but space follows the object's last bracket.
    """

    def __init__(self) -> None:
        self.is_over = False
        self._depth = 0
        self._in_string = False
        self._is_escaped = False

    def feed(self, piece: str) -> None:
        """Read the next piece."""
        if not piece:
            return
        escaped = 0 if self._is_escaped else -1
        end = 0 if self.is_over else None
        for mark in _MARK.finditer(piece):
            if mark.start() == escaped:
                continue
            end = None
            sign = mark.group()
            if sign == "\\":
                escaped = mark.end() if self._in_string else escaped
            elif sign == '"':
                self._in_string = not self._in_string
            elif not self._in_string:
                self._depth += 1 if sign == "{" else -1
                end = mark.end() if self._depth == 0 else None
        self._is_escaped = escaped == len(piece)
        self.is_over = end is not None and not piece[end:].strip()


# JSON values of services and of other clients' histories, read whatever their types are.


# Names that a service gives to its models and replies go into logs and traces.
_MAX_ORIGIN_CHARS = 200


def mended(text: str) -> str:
    """Return the text with halves of surrogate pairs joined, and lone ones replaced."""
    # In UTF-16, a surrogate pair is its two halves, one after the other.
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")


def mended_value(value: Any) -> Any:
    """Return a JSON value with all its texts mended."""
    return json.loads(mended(json.dumps(value, ensure_ascii=False)))


# No request has so many tokens: a larger number is not a count, and must not enter our sums.
_MAX_COUNT = 10**12


def text_of(value: object) -> str:
    """Return the value if it is a text, else an empty one."""
    return value if isinstance(value, str) else ""


def mapping_of(value: object) -> Mapping[str, Any]:
    """Return the value if it is an object, else an empty one."""
    return value if isinstance(value, Mapping) else {}


def list_of(value: object) -> list[Any]:
    """Return the value if it is an array, else an empty one; a client may write a tuple."""
    return value if isinstance(value, list) else list(value) if isinstance(value, tuple) else []


def count_of(value: object) -> int:
    """Return the value if it is a number of tokens, else 0."""
    number = position_of(value)
    return number if number is not None and number <= _MAX_COUNT else 0


def named_of(reply: object, key: str) -> str:
    """Return a reply's own name of itself or of its model, without line breaks; empty: none."""
    named = mended(text_of(mapping_of(reply).get(key))[:_MAX_ORIGIN_CHARS])
    return named if named.isprintable() else ""


def position_of(value: object) -> int | None:
    """Return the value if it is a place in a list, else None."""
    if isinstance(value, int) and not isinstance(value, bool) and value >= 0:
        return value
    return None


def known(value: object) -> dict[str, Any]:
    """Return an object without its nulls, which in a stream mean "as before"."""
    return {key: item for key, item in mapping_of(value).items() if item is not None}


# Values of another client's history may have any type.

_MAX_NAME_CHARS = 200


def label_of(value: object) -> str:
    """Return an id or a name, which some clients write as a number; empty if it is neither."""
    is_number = isinstance(value, int) and not isinstance(value, bool)
    return str(value) if is_number else text_of(value)


def fields_of(value: object) -> dict[str, Any]:
    """Return an object's fields; those of an SDK's type too, empty for anything else.

    Clients append the replies of an SDK to their messages as they are.
    """
    if not isinstance(value, Mapping):
        dump = getattr(value, "model_dump", None)
        value = dump(mode="json", exclude_unset=True) if callable(dump) else None
    return value if isinstance(value, dict) else dict(mapping_of(value))


def mappings_of(value: object) -> list[dict[str, Any]]:
    """Return the objects of a list."""
    return [fields for item in list_of(value) if (fields := fields_of(item))]


def readable(value: object) -> str:
    """Return a result as text; one that a client has left as an object, as JSON."""
    if value is None or isinstance(value, str):
        return value or ""
    return arguments_text(value)


def attachment(kind: str, language: Language, names: Iterable[object] = ()) -> str:
    """Return a line of text for content that the neutral history has no form for.

    Args:
        kind: `file`, `audio` or `picture`.
        language: The language of the line.
        names: Possible names of the content, the best first.
    """
    line = text(f"imported.{kind}", language)
    named = next((name for name in map(label_of, names) if name.strip()), "")[:_MAX_NAME_CHARS]
    return f"[{line}: {named}]" if named else f"[{line}]"
