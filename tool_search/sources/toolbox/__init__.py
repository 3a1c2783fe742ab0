"""The example toolbox: 196 tools that work offline, of which 29 really run.

The others are definitions alone, for searching: near-duplicates (an equal-payment and an
equal-principal loan, a length and a height) make that hard on purpose. All are plain functions,
whose signature and docstring are all that a catalog or a framework needs: the first line
describes a tool in English and Chinese, `Args:` describes its parameters. Bad input of those
that run raises `ValueError`; their results are JSON values.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from importlib import resources
from inspect import Parameter, Signature
from types import FunctionType
from typing import Any, Literal

from tool_search.i18n import LANGUAGES, text
from tool_search.sources.toolbox import everyday, quantities, words

__all__ = ["TOOLBOX", "TOOLS"]

_TYPES: Mapping[str, Any] = {
    "str": str, "float": float, "int": int, "bool": bool,
    "float | None": float | None, "str | None": str | None, "list[str] | None": list[str] | None,
    "list[float]": list[float], "list[int]": list[int], "list[str]": list[str],
    "list[list[float]]": list[list[float]], "list[list[str]]": list[list[str]],
}  # fmt: skip


def _load_toolbox() -> tuple[Callable[..., object], ...]:
    lines = resources.files(__name__).joinpath("definitions.jsonl").read_text("utf-8")
    entries = map(json.loads, lines.splitlines())
    return tuple(
        _demonstration(entry) if "doc" in entry else _find_running(entry) for entry in entries
    )


def _find_running(entry: Mapping[str, Any]) -> Callable[..., object]:
    modules = (quantities, everyday, words)
    functions = (vars(module).get(entry["name"]) for module in modules)
    return next(function for function in functions if isinstance(function, FunctionType))


def _demonstration(entry: Mapping[str, Any]) -> Callable[..., object]:
    """Return a function with the signature of a definition, which only says that it does nothing.

    Args:
        entry: `name`, `doc`, and `parameters` by name: `type` (a key of `_TYPES`, or a list of
            choices) and `default`.
    """
    parameters = [
        Parameter(
            name,
            Parameter.POSITIONAL_OR_KEYWORD,
            default=each.get("default", Parameter.empty),
            annotation=_type_of(each["type"]),
        )
        for name, each in entry["parameters"].items()
    ]

    def demonstrate(*_: object, **__: object) -> str:
        return "\n".join(text("toolbox.demonstrates", each) for each in LANGUAGES)

    demonstrate.__name__ = demonstrate.__qualname__ = entry["name"]
    demonstrate.__doc__ = entry["doc"]
    demonstrate.__annotations__ = {each.name: each.annotation for each in parameters}
    demonstrate.__annotations__["return"] = str
    # Frameworks read a function's parameters from here, as `inspect` does.
    demonstrate.__signature__ = Signature(parameters, return_annotation=str)  # type: ignore[attr-defined]
    return demonstrate


def _type_of(written: str | list[str]) -> Any:
    return _TYPES[written] if isinstance(written, str) else Literal[tuple(written)]


TOOLBOX: tuple[Callable[..., object], ...] = _load_toolbox()
"""Every tool, grouped by domain, in a fixed order."""

# The name that `tools:` of a bot's configuration looks for in a module.
TOOLS = TOOLBOX
