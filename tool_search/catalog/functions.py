"""Python functions as definitions of tools: names, docstrings and parameters."""

from __future__ import annotations

import inspect
import logging
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, get_args, get_type_hints

import docstring_parser
from pydantic import BaseModel, ConfigDict, Field, create_model

from tool_search.core.catalog.tool import Tool
from tool_search.errors import InvalidToolError

__all__ = [
    "CallContext",
    "FunctionArguments",
    "context_parameter",
    "described_function",
]

_log = logging.getLogger(__name__)


class CallContext:
    """The base of what a function gets besides its arguments: no parameter of its schema."""

    __slots__ = ()


class FunctionArguments(BaseModel):
    """The base of models that are made from signatures and check types alone."""

    model_config = ConfigDict(extra="forbid")


def described_function(
    function: Callable[..., Any], **definition: Any
) -> tuple[Tool, type[BaseModel]]:
    """Return the definition of a function, and a model of its arguments.

    Args:
        function: Sync or async. The docstring's text before its sections is the
            description; Google, numpy and reST sections describe the parameters.
        definition: Fields of `Tool` to set, such as `name` or `tags`.

    Raises:
        InvalidToolError: A parameter cannot be described as JSON or passed by name.
    """
    name = definition.pop("name", getattr(function, "__name__", ""))
    documented = docstring_parser.parse(inspect.getdoc(function) or "")
    described = {item.arg_name: item.description or "" for item in documented.params}
    about = [documented.short_description, documented.long_description]
    description = definition.pop("description", "\n\n".join(part for part in about if part))
    if not description:
        _log.warning(
            "function_without_docstring: tool %r: a model sees its name and no description, and "
            "searches find it by its name alone; write a docstring, or give description= to "
            "tool_from_function",
            name,
        )
    arguments = _arguments_model(name, function, described)
    schema = _without_titles(arguments.model_json_schema())
    tool = Tool(
        **{
            "name": name,
            "description": description,
            "parameters": schema if schema.get("properties") else {},
            **definition,
        }
    )
    return tool, arguments


def context_parameter(function: Callable[..., Any]) -> str | None:
    """Return the name of the function's `CallContext` parameter, or None."""
    return next((name for name, kind in _hints(function).items() if _is_context(kind)), None)


def _is_context(kind: object) -> bool:
    """Return True if an annotation is a `CallContext`, optional or not."""
    return any(
        isinstance(each, type) and issubclass(each, CallContext) for each in (kind, *get_args(kind))
    )


def _hints(function: Callable[..., Any]) -> dict[str, Any]:
    while isinstance(function, partial):
        function = function.func
    target = function if inspect.isroutine(function) else getattr(function, "__call__", function)  # noqa: B004
    try:
        return get_type_hints(target, include_extras=True)
    except (NameError, TypeError, AttributeError, SyntaxError) as exc:
        raise InvalidToolError(
            f"tool {getattr(function, '__name__', function)!r}: an annotation cannot be "
            f"resolved ({exc}); import its type at run time"
        ) from exc


def _arguments_model(
    name: str, function: Callable[..., Any], described: Mapping[str, str]
) -> type[BaseModel]:
    hints = _hints(function)
    fields: dict[str, Any] = {}
    untyped = []
    for index, parameter in enumerate(_signature(name, function).parameters.values()):
        kind = hints.get(parameter.name, Any)
        if _is_context(kind):
            continue
        if parameter.kind not in (parameter.POSITIONAL_OR_KEYWORD, parameter.KEYWORD_ONLY):
            raise InvalidToolError(
                f"tool {name!r}: parameter {parameter} cannot be given by name; "
                "use named parameters"
            )
        if parameter.name not in hints:
            untyped.append(parameter.name)
        default = ... if parameter.default is parameter.empty else parameter.default
        description = described.get(parameter.name)
        # Under an alias, because a model reserves field names such as `json` and `schema`.
        field = Field(default=default, alias=parameter.name, description=description)
        fields[f"argument_{index}"] = (kind, field)
    if untyped:
        _log.warning(
            "parameters_without_types: tool %r: a model sees no type for %s, and may send any "
            "JSON; annotate them, such as `%s: str`",
            name,
            ", ".join(untyped),
            untyped[0],
        )
    try:
        return _model_of(name, fields)
    except Exception as exc:
        raise InvalidToolError(_wrong_parameter(name, fields, exc)) from exc


def _model_of(name: str, fields: Mapping[str, Any]) -> type[BaseModel]:
    """Return a model of arguments; pydantic raises many errors if a type has no schema."""
    model: type[BaseModel] = create_model(name, __base__=FunctionArguments, **fields)
    model.model_json_schema()
    return model


def _wrong_parameter(name: str, fields: Mapping[str, Any], error: Exception) -> str:
    """Return the error message for the first parameter whose type has no JSON schema."""
    for key, (kind, field) in fields.items():
        try:
            _model_of(name, {key: (kind, field)})
        except Exception:  # noqa: BLE001  # as for all parameters together
            shown = getattr(kind, "__name__", None) or repr(kind)
            return (
                f"tool {name!r}: parameter {field.alias!r} of type {shown!r} cannot be described "
                "as JSON; use str, int, float, bool, list, dict, Literal, an Enum, a dataclass "
                "or a pydantic model"
            )
    return f"tool {name!r}: its parameters cannot be described as JSON: {error}"


def _signature(name: str, function: Callable[..., Any]) -> inspect.Signature:
    try:
        return inspect.signature(function)
    except (TypeError, ValueError) as exc:
        raise InvalidToolError(f"tool {name!r}: its parameters cannot be read: {exc}") from exc


def _without_titles(schema: Any) -> Any:
    """Return a schema without the titles that pydantic makes from names."""
    if isinstance(schema, list):
        return [_without_titles(item) for item in schema]
    if not isinstance(schema, dict):
        return schema
    kept = {k: v for k, v in schema.items() if k != "title" or isinstance(v, dict)}
    return {
        key: {k: _without_titles(v) for k, v in value.items()}
        if key in ("properties", "$defs") and isinstance(value, dict)
        else value
        if key in ("default", "const", "enum", "examples")
        else _without_titles(value)
        for key, value in kept.items()
    }
