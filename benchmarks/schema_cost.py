"""Measure the cost of hostile schemas: reading, declaring, checking a call.

Run: python benchmarks/schema_cost.py

Prints milliseconds of CPU (`time.thread_time`, the best of five), and how many parts of
each schema are left out. `unbounded` is the same check by the validator alone, which is
run until that ends: jsonschema-rs collects the errors of all alternatives.
"""

from __future__ import annotations

import gc
import logging
import time
from collections.abc import Callable, Mapping
from typing import Any

import jsonschema_rs

from tool_search import Tool
from tool_search.catalog.schema.declared import declared_schema
from tool_search.catalog.validation import complaints_about

_TRIES = 5
_WRONG = {"a": 1, "p1": 5}


def _properties(count: int, part: Callable[[int], Any]) -> dict[str, Any]:
    return {"type": "object", "properties": {f"$p{n}": part(n) for n in range(count)}}


def _doubling(levels: int) -> dict[str, Any]:
    parts: dict[str, Any] = {
        f"d{n}": {"anyOf": [{"$ref": f"#/$defs/d{n + 1}"}] * 2} for n in range(levels)
    }
    parts[f"d{levels}"] = {"type": "string"}
    return {"type": "object", "properties": {"a": {"$ref": "#/$defs/d0"}}, "$defs": parts}


SCHEMAS: Mapping[str, dict[str, Any]] = {
    "2^12 alternatives": _doubling(12),
    "2^200 alternatives": _doubling(200),
    "9,000 keys to rename": _properties(9_000, lambda n: {"type": "str", "enum": ["a", str(n)]}),
    "9,000 unknown types": _properties(9_000, lambda n: {"type": f"gadget{n}"}),
    "9,000 slow patterns": _properties(9_000, lambda n: {"pattern": rf"(\w{{50}}){{20}}{n}"}),
    "9,000 references": _properties(9_000, lambda n: {"$ref": f"#/properties/$p{n // 2}"}),
    "60,000 required keys": {"type": "object", "required": [f"${n}" for n in range(60_000)]},
    "1 MB of text": _properties(1, lambda _: {"description": "x" * 1_000_000}),
    "an ordinary tool": _properties(8, lambda n: {"type": "string", "description": f"Part {n}."}),
}
_ENDS = ("2^12 alternatives", "an ordinary tool")


def _best(action: Callable[[], object]) -> float:
    best = float("inf")
    for _ in range(_TRIES):
        began = time.thread_time()
        action()
        best = min(best, time.thread_time() - began)
    return best * 1_000


def _row(name: str, schema: dict[str, Any]) -> str:
    def fresh() -> Tool:
        return Tool(name="t", parameters=schema)

    taken = _best(fresh)
    declared = _best(lambda: declared_schema(fresh())) - taken
    # Each is checked once, because results for a definition are cached.
    tools = [Tool(name=f"t{n}", parameters=schema) for n in range(_TRIES)]
    made = [declared_schema(tool) for tool in tools]
    waiting = iter(tools)
    check = _best(lambda: complaints_about(next(waiting), _WRONG))
    alone = ""
    if name in _ENDS:
        validator = jsonschema_rs.Draft202012Validator(schema)
        alone = f"{_best(lambda: list(validator.iter_errors(_WRONG))):9.1f}"
    size, left_out = len(tools[0].parameters_json), len(made[0].left_out)
    return f"{name:24} {size:9,} {taken:8.1f} {declared:8.1f} {check:8.1f} {alone:>9} {left_out:6}"


def main() -> None:
    """Print the table."""
    logging.disable(logging.WARNING)
    gc.disable()
    print(f"{'schema':24} {'bytes':>9} {'take in':>8} {'declare':>8} {'check':>8} ", end="")
    print(f"{'unbounded':>9} {'left':>6}")
    for name, schema in SCHEMAS.items():
        print(_row(name, schema))


if __name__ == "__main__":
    main()
