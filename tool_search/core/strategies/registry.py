"""The registered strategies, by the names that configurations and profiles use.

A distribution names its strategy class in the entry point group `tool_search.core.strategies`,
under the strategy's name::

    [project.entry-points."tool_search.core.strategies"]
    mine = "my_package.strategy:MyStrategy"

It is imported when the name is first used.
"""

from __future__ import annotations

import inspect
import re
from difflib import get_close_matches
from importlib.metadata import EntryPoint, entry_points
from typing import Any, TypeVar

from tool_search.core.strategies.base import ToolSearchStrategy
from tool_search.core.strategy_facts import AUTO
from tool_search.errors import ConfigurationError, UnsupportedStrategyError

__all__ = ["STRATEGY_GROUP", "register_strategy", "strategy_class", "strategy_names"]

STRATEGY_GROUP = "tool_search.core.strategies"
_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_-]{0,63}")
_StrategyT = TypeVar("_StrategyT", bound=ToolSearchStrategy)
_registered: dict[str, type[ToolSearchStrategy]] = {}


def register_strategy(cls: type[_StrategyT]) -> type[_StrategyT]:
    """Register a strategy under its `name`, and return it; usable as a decorator.

    A class that is registered already stays so.

    Raises:
        ConfigurationError: It is not a strategy that can be used, or another class has
            its name.
    """
    problem = _class_problem(cls)
    if problem:
        raise ConfigurationError(f"cannot register {cls!r} as a strategy: {problem}")
    known = _registered.setdefault(cls.name, cls)
    if known is not cls:
        raise ConfigurationError(
            f"two strategies have the name {cls.name!r}: {_path(known)} and {_path(cls)}; "
            "give one another name, or pass it to one session or runner by strategies="
        )
    return cls


def strategy_names() -> tuple[str, ...]:
    """Return the known names: registered ones first, then those of installed distributions."""
    installed = sorted(entry.name for entry in entry_points(group=STRATEGY_GROUP))
    return tuple(dict.fromkeys((*_registered, *installed)))


def strategy_class(name: str) -> type[ToolSearchStrategy]:
    """Return the strategy of a name.

    Raises:
        UnsupportedStrategyError: No strategy has it; the message has the known names.
        ConfigurationError: An installed distribution names what is not this strategy.
    """
    known = _registered.get(name)
    if known is not None:
        return known
    installed = tuple(entry_points(group=STRATEGY_GROUP, name=name))
    if installed:
        return _load(installed)
    names = strategy_names()
    nearest = get_close_matches(name, names, n=1)
    hint = f"the nearest is {nearest[0]!r}; " if nearest else ""
    raise UnsupportedStrategyError(
        f"no strategy is named {name!r}; {hint}known: {', '.join(map(repr, names))}; "
        "register another with tool_search.register_strategy"
    )


def _load(entries: tuple[EntryPoint, ...]) -> type[ToolSearchStrategy]:
    entry = entries[0]
    if len({each.value for each in entries}) > 1:
        values = " and ".join(sorted(each.value for each in entries))
        raise ConfigurationError(
            f"two installed strategies have the name {entry.name!r}: {values}; remove one"
        )
    try:
        loaded: Any = entry.load()
    except (ImportError, AttributeError) as exc:
        raise ConfigurationError(
            f"the installed strategy {entry.name!r} ({entry.value}) cannot be imported: {exc}"
        ) from exc
    if getattr(loaded, "name", None) != entry.name:
        raise ConfigurationError(
            f"the installed strategy {entry.name!r} ({entry.value}) must have this name, not "
            f"{getattr(loaded, 'name', None)!r}"
        )
    return register_strategy(loaded)


def _class_problem(cls: Any) -> str:
    """Return why a class cannot be used as a strategy; empty if it can."""
    if not (isinstance(cls, type) and issubclass(cls, ToolSearchStrategy)):
        return "it must be a subclass of ToolSearchStrategy"
    name = getattr(cls, "name", None)
    if not isinstance(name, str) or not _NAME.fullmatch(name) or name == AUTO:
        return (
            f"its name is {name!r}; it must be a letter and up to 63 letters, digits, '_' or '-', "
            f"and not {AUTO!r}"
        )
    if inspect.isabstract(cls):
        return f"it must define {', '.join(sorted(cls.__abstractmethods__))}"
    return ""


def _path(cls: type) -> str:
    return f"{cls.__module__}.{cls.__qualname__}"
