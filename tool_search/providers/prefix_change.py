"""The first difference of two prompts of one conversation, and its cause.

A provider's cache is a prefix of the prompt: the tools, the system text, the
messages, in this order, independent of the order of members in the JSON. Everything
after the first difference is billed again.

Source: Anthropic, Prompt caching ("What invalidates the cache"); OpenAI, Prompt
caching; Anthropic, Tool search tool (deferred definitions are outside the prefix).
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from tool_search.core.values.json import compact_json, json_bytes

__all__ = [
    "Difference",
    "KeptPrefix",
    "PrefixCause",
    "PrefixChange",
    "first_difference",
    "kept_prefix",
    "prefix_change",
]

JSON = Mapping[str, Any]


# Differences follow the order of the JSON text, as a prompt does.


@dataclass(frozen=True, slots=True)
class Difference:
    """A difference of two values; a missing value is None.

    Attributes:
        path: The place, as `tools[3].name`.
        old: The first value there.
        new: The second value there.
    """

    path: str
    old: Any
    new: Any


def first_difference(old: Any, new: Any, path: str) -> Difference | None:
    """Return the innermost place of the first difference, or None if equal.

    The order of an object's members matters, because a prompt shows it.

    >>> first_difference({"a": [1, 2]}, {"a": [1, 3]}, "body").path
    'body.a[1]'
    """
    if isinstance(old, dict) and isinstance(new, dict):
        for place, key in enumerate(old):
            at = f"{path}.{key}"
            others = list(new)
            if place >= len(others) or others[place] != key:
                return Difference(at, old[key], new.get(key))
            found = first_difference(old[key], new[key], at)
            if found is not None:
                return found
        more = list(new)[len(old) :]
        return Difference(f"{path}.{more[0]}", None, new[more[0]]) if more else None
    if isinstance(old, list) and isinstance(new, list):
        for index in range(max(len(old), len(new))):
            at = f"{path}[{index}]"
            if index >= len(old) or index >= len(new):
                return Difference(at, *(v[index] if index < len(v) else None for v in (old, new)))
            found = first_difference(old[index], new[index], at)
            if found is not None:
                return found
        return None
    same = type(old) is type(new) and old == new
    return None if same else Difference(path, old, new)


PrefixCause = Literal[
    "model_changed",
    "tool_added",
    "tool_removed",
    "tool_changed",
    "tools_reordered",
    "system_changed",
    "tool_choice_changed",
    "history_shortened",
    "thinking_left_out",
    "message_changed",
]

_THOUGHTS = ("thinking", "redacted_thinking", "reasoning")
_MAX_EXCERPT_CHARS = 120


@dataclass(frozen=True, slots=True, kw_only=True)
class PrefixChange:
    """The first place at which a request no longer continues the one before it.

    Attributes:
        path: The place in the JSON, for instance `tools[3].description`: of the next
            request, or of the last one if the next has nothing there.
        cause: The kind of change.
        subject: The changed tool, or an empty string.
        in_prompt: True if a prompt cache loses what follows. False for a deferred
            definition without a reference, which only invalidates bound thinking.
        before: The old text there, shortened; empty if there was none.
        after: The new text there, shortened.
    """

    path: str
    cause: PrefixCause
    subject: str = ""
    in_prompt: bool = True
    before: str = ""
    after: str = ""

    def __str__(self) -> str:
        about = f" ({self.subject})" if self.subject else ""
        return f"{self.path}: {self.cause}{about}: {self.before or '-'} -> {self.after or '-'}"


def prefix_change(before: bytes, after: bytes) -> PrefixChange | None:
    """Return the first change in the prompt of the next request; None if it continues.

    Cache breakpoints are not compared. Of a request with `previous_response_id`, only
    its own content is compared.

    Example:
        >>> last = b'{"model":"m","messages":[{"role":"user","content":"Hi"}]}'
        >>> goes_on = last.replace(b'"Hi"}', b'"Hi"},{"role":"assistant","content":"Hello"}')
        >>> prefix_change(last, goes_on)
        >>> prefix_change(last, goes_on.replace(b'"Hi"', b'"Ho"')).path
        'messages[0].content'

    Args:
        before: The body of a request, JSON in any of the three dialects.
        after: The body of the next request, to the same provider.

    Raises:
        ValueError: A body is not a JSON object, or has entries that are none.
    """
    return _first_change(_read_part(before), _read_part(after))


@dataclass(frozen=True, slots=True, kw_only=True)
class KeptPrefix:
    """The part of a prompt that the next request repeats.

    Attributes:
        kept_bytes: The bytes up to the first that differs; all of them if it continues.
        total_bytes: The bytes of the earlier prompt: definitions in the prefix, system text
            and messages, as compact JSON in this order.
        change: The first change; None: the next request continues the prompt.
    """

    kept_bytes: int
    total_bytes: int
    change: PrefixChange | None


def kept_prefix(before: bytes, after: bytes) -> KeptPrefix:
    """Return the part of a prompt that the next request repeats, and the first change.

    Args:
        before: The body of a request, as for `prefix_change`.
        after: The body of the next request.

    Raises:
        ValueError: A body is not a JSON object, or has entries that are none.
    """
    old = _read_part(before)
    new = old if before == after else _read_part(after)
    change = _first_change(old, new)
    was = _prompt_parts(old)
    total = _size(was)
    continues = change is None or not change.in_prompt
    kept = (
        total if continues else _shared_bytes(_write_parts(was), _write_parts(_prompt_parts(new)))
    )
    return KeptPrefix(kept_bytes=kept, total_bytes=total, change=change)


def _prompt_parts(body: JSON) -> list[Any]:
    """Return the parts of a prompt that a cache keeps, in the order of the prompt."""
    parts = [tool for tool in body.get("tools") or () if not _defers(tool)]
    parts += [body[name] for name in ("system", "instructions") if body.get(name)]
    if not body.get("previous_response_id"):
        parts += _items(body.get("input" if "input" in body else "messages"))
    return parts


def _write_parts(parts: Sequence[Any]) -> list[bytes]:
    return [json_bytes(part) for part in parts]


def _size(parts: Sequence[Any]) -> int:
    """Return the bytes of all parts, which are written at once: that is quicker."""
    # Without the brackets of the list and the commas between its parts.
    return len(json_bytes(parts)) - len(parts) - 1 if parts else 0


def _shared_bytes(old: Sequence[bytes], new: Sequence[bytes]) -> int:
    shared = 0
    for was, now in zip(old, new, strict=False):
        if was != now:
            return shared + _common_bytes(was, now)
        shared += len(was)
    return shared


def _common_bytes(old: bytes, new: bytes) -> int:
    """Return the length of the common start, found by halves: parts may be long."""
    low, high = 0, min(len(old), len(new))
    while low < high:
        middle = (low + high + 1) // 2
        if old[low:middle] == new[low:middle]:
            low = middle
        else:
            high = middle - 1
    return low


def _first_change(old: JSON, new: JSON) -> PrefixChange | None:
    changes = list(_changes(old, new))
    return next((change for change in changes if change.in_prompt), next(iter(changes), None))


def _read_part(raw: bytes) -> dict[str, Any]:
    body = _without_marks(json.loads(raw))
    if not isinstance(body, dict):
        raise ValueError("the body of a request must be a JSON object")  # noqa: TRY004 - the wire's value
    for name in ("tools", "messages", "input"):
        entries = body.get(name)
        if isinstance(entries, list) and not all(isinstance(entry, dict) for entry in entries):
            raise ValueError(f"{name} must be a list of JSON objects")
    return body


def _without_marks(value: Any) -> Any:
    if isinstance(value, dict):
        return {
            # Definitions have a mark next to their names alone, and long schemas within.
            k: [*map(_unmark, item)] if k == "tools" and _is_list(item) else _without_marks(item)
            for k, item in value.items()
            if k != "cache_control"
        }
    return [_without_marks(item) for item in value] if isinstance(value, list) else value


def _unmark(tool: Any) -> Any:
    if not isinstance(tool, dict) or "cache_control" not in tool:
        return tool
    return {key: value for key, value in tool.items() if key != "cache_control"}


def _is_list(value: object) -> bool:
    return isinstance(value, list)


def _changes(old: JSON, new: JSON) -> Iterator[PrefixChange]:
    """Yield the changes of each kind, in the order of the prompt."""
    found = first_difference(old.get("model"), new.get("model"), "model")
    if found is not None:
        yield _change(found, "model_changed")
    yield from _tool_changes(old, new)
    for name in ("system", "instructions"):
        found = first_difference(_blocks(old.get(name)), _blocks(new.get(name)), name)
        if found is not None:
            yield _change(found, "system_changed")
    if any("input_schema" in tool for tool in new.get("tools") or ()):
        found = first_difference(old.get("tool_choice"), new.get("tool_choice"), "tool_choice")
        if found is not None:
            yield _change(found, "tool_choice_changed")
    name = "input" if "input" in new else "messages"
    if not (old.get("previous_response_id") or new.get("previous_response_id")):
        yield from _message_changes(_items(old.get(name)), _items(new.get(name)), name)


def _change(
    found: Difference, cause: PrefixCause, *, subject: str = "", in_prompt: bool = True
) -> PrefixChange:
    return PrefixChange(
        path=found.path,
        cause=cause,
        subject=subject,
        in_prompt=in_prompt,
        before=_excerpt(found.old),
        after=_excerpt(found.new),
    )


def _excerpt(value: object) -> str:
    if value is None:
        return ""
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    return text if len(text) <= _MAX_EXCERPT_CHARS else f"{text[: _MAX_EXCERPT_CHARS - 1]}…"


def _tool_changes(old: JSON, new: JSON) -> Iterator[PrefixChange]:
    """Yield the first change among definitions in the prefix, then among the others."""
    # Most lists are the same, which their text says sooner than each of their parts.
    if compact_json(old.get("tools")) == compact_json(new.get("tools")):
        return
    said = json.dumps(old.get("messages") or old.get("input") or [], ensure_ascii=False)
    for deferred in (False, True):
        before = [(i, t) for i, t in enumerate(old.get("tools") or ()) if _defers(t) == deferred]
        after = [(i, t) for i, t in enumerate(new.get("tools") or ()) if _defers(t) == deferred]
        change = _list_change(before, after)
        if change is None:
            continue
        found, cause, name = change
        mentioned = f'"{name}"' in said and cause != "tool_added"
        yield _change(found, cause, subject=name, in_prompt=not deferred or mentioned)


def _defers(tool: JSON) -> bool:
    return tool.get("defer_loading") is True


def _list_change(
    old: Sequence[tuple[int, JSON]], new: Sequence[tuple[int, JSON]]
) -> tuple[Difference, PrefixCause, str] | None:
    names = {_name(tool) for _, tool in old}
    kept = {_name(tool) for _, tool in new}
    for place in range(max(len(old), len(new))):
        if place >= len(old):
            index, tool = new[place]
            return Difference(f"tools[{index}]", None, tool), "tool_added", _name(tool)
        if place >= len(new):
            index, tool = old[place]
            return Difference(f"tools[{index}]", tool, None), "tool_removed", _name(tool)
        (was, before), (index, after) = old[place], new[place]
        if _name(before) == _name(after):
            if before == after and compact_json(before) == compact_json(after):
                continue
            found = first_difference(before, after, f"tools[{index}]")
            if found is not None:
                return found, "tool_changed", _name(after)
        elif _name(before) not in kept:
            return Difference(f"tools[{was}]", before, None), "tool_removed", _name(before)
        elif _name(after) not in names:
            return Difference(f"tools[{index}]", None, after), "tool_added", _name(after)
        else:
            return Difference(f"tools[{index}]", before, after), "tools_reordered", _name(after)
    return None


def _name(tool: JSON) -> str:
    return str(tool.get("name") or tool.get("function", {}).get("name") or tool.get("type"))


def _blocks(content: object) -> object:
    """Return content as blocks; text is one block."""
    return [{"type": "text", "text": content}] if isinstance(content, str) else content


def _items(given: object) -> list[Any]:
    if isinstance(given, str):
        return [{"role": "user", "content": given}]
    return given if isinstance(given, list) else []


def _message_changes(old: list[Any], new: list[Any], name: str) -> Iterator[PrefixChange]:
    for index, before in enumerate(old):
        where = f"{name}[{index}]"
        if index >= len(new):
            yield _change(Difference(where, before, None), "history_shortened")
            return
        after = new[index]
        if index == len(old) - 1 and _goes_on(before, after):
            return
        found = first_difference(before, after, where)
        if found is None:
            continue
        thoughtless = _unthought(old) == _unthought(new)[: len(_unthought(old))]
        yield _change(found, "thinking_left_out" if thoughtless else "message_changed")
        return


def _goes_on(before: JSON, after: JSON) -> bool:
    """True if the last message only got longer, as results and text are joined."""
    said, says = before.get("content"), after.get("content")
    if not isinstance(said, list) or not isinstance(says, list):
        return False
    return {**before, "content": None} == {**after, "content": None} and (says[: len(said)] == said)


def _unthought(messages: list[Any]) -> list[Any]:
    """Return the messages without thinking."""
    kept = []
    for message in messages:
        if message.get("type") in _THOUGHTS:
            continue
        content = message.get("content")
        if isinstance(content, list):
            content = [block for block in content if block.get("type") not in _THOUGHTS]
        kept.append({**message, "content": content})
    return kept
