"""Validation of arguments by a tool's JSON Schema, within bounded work.

A yes or no comes first, which is quick. Errors are only collected if that is quick too: a
validator collects those of all alternatives, 15 seconds for a schema of one kilobyte
(measured with jsonschema-rs 0.60), and cannot be interrupted.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping
from functools import lru_cache
from itertools import islice
from typing import Any

from tool_search.catalog.schema.declared import declared_schema
from tool_search.catalog.schema.graph import SchemaGraph, SchemaWork
from tool_search.core.catalog.schemas import Schemas, TooComplexError
from tool_search.core.catalog.tool import Tool, schema_of
from tool_search.core.values.packages import has_package

_HAS_VALIDATOR = has_package("jsonschema_rs")
if _HAS_VALIDATOR:  # not every platform has a wheel
    import jsonschema_rs

__all__ = ["SCHEMAS", "complaints_about"]

_MAX_COMPLAINTS = 5
_MAX_COMPLAINT_CHARS = 200
# Evaluations of a part; one takes up to 50 ns to answer yes or no, and 10 µs to explain.
_MAX_WORK = 100_000
_MAX_EXPLAINED_WORK = 1_000
_MAX_BACKTRACKS = 10_000
_MAX_PATTERN_BYTES = 1 << 18
# Before 2020-12, `format` was more than a remark.
_FORMATS_COUNT = ("draft-04", "draft-06", "draft-07")
_TOO_MUCH = (
    "they hold too many values, or values nested too deeply, to be checked; send less at once"
)
_DO_NOT_FIT = "some value in them does not fit, and they are too large to say which"
_log = logging.getLogger(__name__)


def complaints_about(tool: Tool, arguments: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the errors in a call's arguments, at most five sentences; empty: they are valid.

    Each has the place by its path (`items/0/count: ...`), with keys as the model reads them.
    A tool without a schema takes anything; references outside the schema are not fetched.

    Args:
        tool: The tool.
        arguments: The arguments under the tool's own keys.
    """
    if not schema_of(tool):
        return ()
    if not _HAS_VALIDATOR:
        return _find_missing(tool, arguments)
    check = _check_of(tool)
    return check.complaints(arguments if isinstance(arguments, dict) else dict(arguments))


SCHEMAS = Schemas(declared=declared_schema, complaints=complaints_about)
"""JSON Schema as this package reads and checks it."""


def _find_missing(tool: Tool, arguments: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the required arguments that are missing: all that is checked without a validator."""
    required = schema_of(tool).get("required")
    listed = required if isinstance(required, list | tuple) else ()
    missing = [name for name in listed if isinstance(name, str) and name not in arguments]
    return tuple(f'"{name}" is a required property' for name in missing[:_MAX_COMPLAINTS])


@lru_cache(maxsize=4096)
def _check_of(tool: Tool) -> _Check:
    return _Check(tool)


class _Check:
    """The check of one tool's arguments.

    Args:
        tool: The tool.
    """

    def __init__(self, tool: Tool) -> None:
        declared = self._declared = declared_schema(tool)
        draft = str(schema_of(tool).get("$schema", ""))
        self._formats = True if any(each in draft for each in _FORMATS_COUNT) else None
        self._work = SchemaWork(SchemaGraph(declared.sound))
        self._own = self._validator(declared.sound)
        self._wire = self._own if declared.keys is None else self._validator(declared.wire)
        if declared.incomplete:
            _log.warning(
                "tool %r: its schema is broken, and not all of it is checked: %s",
                tool.name,
                declared.incomplete,
            )

    def complaints(self, arguments: dict[str, Any]) -> tuple[str, ...]:
        """Return what is wrong with the arguments."""
        work = self._work.of(arguments, limit=_MAX_WORK)
        if work > _MAX_WORK:
            return (_TOO_MUCH,)
        try:
            if self._own.is_valid(arguments):
                return ()
            shown = dict(self._declared.on_wire(arguments))
            return tuple(self._explain(shown, work)) or (_DO_NOT_FIT,)
        except (ValueError, TooComplexError) as exc:  # nested deeper than the validator reads
            return (str(exc)[:_MAX_COMPLAINT_CHARS],)

    def _explain(self, arguments: dict[str, Any], work: int) -> Iterator[str]:
        if work <= _MAX_EXPLAINED_WORK:
            for error in islice(self._wire.iter_errors(arguments), _MAX_COMPLAINTS):
                yield _sentence(error)
        elif not self._work.has_alternatives:
            # Without alternatives, the first error is found without looking for others.
            try:
                self._wire.validate(arguments)
            except jsonschema_rs.ValidationError as error:
                yield _sentence(error)

    def _validator(self, schema: dict[str, Any]) -> jsonschema_rs.Validator:
        return jsonschema_rs.Draft202012Validator(
            schema,
            offline=True,
            validate_formats=self._formats,
            pattern_options=jsonschema_rs.FancyRegexOptions(
                backtrack_limit=_MAX_BACKTRACKS, size_limit=_MAX_PATTERN_BYTES
            ),
        )


def _sentence(error: jsonschema_rs.ValidationError) -> str:
    path = "/".join(map(str, error.instance_path))
    message = error.message[:_MAX_COMPLAINT_CHARS]
    return f"{path}: {message}" if path else message
