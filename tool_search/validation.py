"""Arguments against a tool's JSON Schema (2020-12 unless it says otherwise)."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping
from functools import lru_cache
from itertools import islice
from typing import Any

import jsonschema_rs

from tool_search.catalog import Tool

__all__ = ["complaints_about"]

_MOST_COMPLAINTS = 5
_LONGEST_COMPLAINT = 200
_log = logging.getLogger(__name__)


@lru_cache(maxsize=4096)
def _validator(tool: Tool) -> jsonschema_rs.Validator | None:
    try:
        return jsonschema_rs.validator_for(dict(tool.parameters), offline=True)
    except ValueError as exc:
        # A server's broken schema must not make its tool uncallable: the tool judges then.
        _log.warning("tool %r: arguments are not checked, its schema is broken: %s", tool.name, exc)
        return None


def complaints_about(tool: Tool, arguments: Mapping[str, Any]) -> tuple[str, ...]:
    """What is wrong with a call's arguments, at most five sentences; empty: they fit.

    Each names the place by its path (`items/0/count: ...`). A tool without a
    schema takes anything; no reference outside the schema is ever fetched.
    """
    if not tool.parameters:
        return ()
    validator = _validator(tool)
    if validator is None:
        return ()
    arguments = arguments if isinstance(arguments, dict) else dict(arguments)
    try:
        if validator.is_valid(arguments):
            return ()
        return tuple(_described(validator, arguments))
    except ValueError as exc:  # nested deeper than the validator reads
        return (str(exc)[:_LONGEST_COMPLAINT],)


def _described(validator: jsonschema_rs.Validator, arguments: Mapping[str, Any]) -> Iterator[str]:
    for error in islice(validator.iter_errors(arguments), _MOST_COMPLAINTS):
        path = "/".join(map(str, error.instance_path))
        message = error.message[:_LONGEST_COMPLAINT]
        yield f"{path}: {message}" if path else message
