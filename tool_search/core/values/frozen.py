"""JSON values that cannot be changed, not even in their depth.

They are subclasses of `dict` and `list`, so that they can be encoded as JSON, validated and
compared like any others. Copies (`copy.deepcopy`, `dict(...)`) can be changed.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any, NoReturn

from tool_search.errors import CatalogError

__all__ = ["EMPTY", "FrozenDict", "FrozenList", "frozen", "frozen_items"]


class _ReadOnlyError(CatalogError, TypeError):
    """A change of a value that belongs to a tool; a `TypeError`, as for other immutable types."""


def _refuse(self: object, *_: object, **__: object) -> NoReturn:
    raise _ReadOnlyError(
        f"a tool's {'object' if isinstance(self, dict) else 'list'} cannot be changed: its "
        "fingerprint is known to indexes and providers; change a copy.deepcopy() of it, and make "
        "a new tool with dataclasses.replace(tool, parameters=...)"
    )


def _plain(value: dict[str, Any] | list[Any]) -> Any:
    return json.loads(json.dumps(value))


class FrozenDict(dict[str, Any]):
    """A JSON object that cannot be changed."""

    __slots__ = ()
    __setitem__: Callable[..., NoReturn] = _refuse
    __delitem__: Callable[..., NoReturn] = _refuse
    __ior__: Callable[..., NoReturn] = _refuse
    clear: Callable[..., NoReturn] = _refuse
    pop: Callable[..., NoReturn] = _refuse
    popitem: Callable[..., NoReturn] = _refuse
    setdefault: Callable[..., NoReturn] = _refuse
    update: Callable[..., NoReturn] = _refuse

    def __copy__(self) -> dict[str, Any]:
        return dict(self)

    def __deepcopy__(self, _memo: object) -> dict[str, Any]:
        copied: dict[str, Any] = _plain(self)
        return copied

    def __reduce__(self) -> tuple[Any, ...]:
        # The default protocol sets items one by one.
        return type(self), (dict(self),)


class FrozenList(list[Any]):
    """A JSON list that cannot be changed."""

    __slots__ = ()
    __setitem__: Callable[..., NoReturn] = _refuse
    __delitem__: Callable[..., NoReturn] = _refuse
    __iadd__: Callable[..., NoReturn] = _refuse
    __imul__: Callable[..., NoReturn] = _refuse
    append: Callable[..., NoReturn] = _refuse
    clear: Callable[..., NoReturn] = _refuse
    extend: Callable[..., NoReturn] = _refuse
    insert: Callable[..., NoReturn] = _refuse
    pop: Callable[..., NoReturn] = _refuse
    remove: Callable[..., NoReturn] = _refuse
    reverse: Callable[..., NoReturn] = _refuse
    sort: Callable[..., NoReturn] = _refuse

    def __copy__(self) -> list[Any]:
        return list(self)

    def __deepcopy__(self, _memo: object) -> list[Any]:
        copied: list[Any] = _plain(self)
        return copied

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (list(self),)


EMPTY = FrozenDict()
"""The object without keys."""


def frozen(value: Any) -> Any:
    """Return a JSON value that cannot be changed; what is inside is copied."""
    is_container = type(value) is dict or type(value) is list
    return _frozen_copies(value)[id(value)] if is_container else value


def frozen_items(value: dict[str, Any]) -> dict[str, Any]:
    """Return a new object whose values cannot be changed."""
    made = _frozen_copies(value)
    return {key: made.get(id(one), one) for key, one in value.items()}


def _frozen_copies(value: Any) -> dict[int, Any]:
    """Return frozen copies of a container and of those in it, by identity.

    Without recursion: a schema may have more levels than the interpreter has frames.
    """
    outer_first = [value]
    for part in outer_first:
        inner = part.values() if type(part) is dict else part
        outer_first += [one for one in inner if type(one) is dict or type(one) is list]
    made: dict[int, Any] = {}
    for part in reversed(outer_first):
        if type(part) is dict:
            items = {key: made.get(id(one), one) for key, one in part.items()}
            made[id(part)] = FrozenDict(items) if items else EMPTY
        else:
            made[id(part)] = FrozenList([made.get(id(one), one) for one in part])
    return made
