"""A section of settings, and the words for wrong ones, the same in a YAML file and in Python."""

from __future__ import annotations

import re
from collections.abc import Iterator
from difflib import get_close_matches
from typing import Any, get_args

from pydantic import BaseModel, ConfigDict, ValidationError, field_validator

from tool_search.errors import ConfigurationError

__all__ = ["KeyPath", "Settings", "allowed_words", "dotted", "problems"]

KeyPath = tuple[str | int, ...]
"""The place of a setting: keys, and indices of lists."""

# Settings of other systems, as their users have them, and where ours are.
_OTHER_SYSTEMS = {
    "discoveryMode": "tool_schema_mode",
    "essentialOverride": "tool_search.always_loaded_tools",
    "discoveryDefaultServers": "tool_search.always_loaded_tools, as server:*",
    "maxToolsLimit": "tool_search.threshold, with tool_schema_mode: auto",
    "searchThreshold": "tool_search.search.min_relevance",
    "toolSelectionOrder": "tool_search.always_loaded_tools",
    "NameBoost": "tool_search.search.boosts.name",
    "NamespaceBoost": "tool_search.search.boosts.namespace",
    "TagsBoost": "tool_search.search.boosts.tags",
    "defaultMode": "permissions.mode",
    "acceptEdits": "accept",
    "bypassPermissions": "bypass",
    "dontAsk": "never-ask",
}
# A file has the mode next to its section; the settings have it inside.
_MAX_ELSEWHERE = 2
_UNION_MEMBER = re.compile(r"literal\[.*\]|constrained-str|function-\w+\[.*\]")
_MODE, _SECTION, _BOT = "tool_schema_mode", "tool_search", "BotConfig"


class Settings(BaseModel):
    """A frozen section; an unknown key or a value of another type is an error.

    Raises:
        ConfigurationError: A key is unknown or a value is not allowed; one line for each.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)

    def __init__(self, **values: Any) -> None:
        try:
            super().__init__(**values)
        except ValidationError as exc:
            name = type(self).__name__
            listed = [
                f"{name}: {dotted(place)} {said}" for place, said in problems(exc, type(self))
            ]
            raise ConfigurationError("\n".join(listed)) from None

    # Without this mark pydantic validates an inner section by its `__init__`, and the error
    # of the whole would not have the place of its wrong key.
    setattr(__init__, "__pydantic_base_init__", True)  # noqa: B010

    @field_validator("*", mode="before")
    @classmethod
    def _from_list(cls, value: object) -> object:
        """Accept a list for a tuple: YAML has no tuples."""
        return tuple(value) if isinstance(value, list) else value


def problems(
    error: ValidationError, model: type[BaseModel], *, in_file: bool = False
) -> Iterator[tuple[KeyPath, str]]:
    """Yield the place of each wrong setting, and its problem in plain words.

    Args:
        error: The error.
        model: The settings that were wrong.
        in_file: True if the keys are arranged as in a bot's YAML file.
    """
    for each in _merge(error):
        yield each["loc"], _problem(each, model, in_file=in_file)


def allowed_words(
    error: ValidationError, model: type[BaseModel], *, in_file: bool = False
) -> Iterator[tuple[str, ...]]:
    """Yield the keys or values that are allowed in each place; none if they are no list."""
    for each in _merge(error):
        if each["type"] == "extra_forbidden":
            yield tuple(_known_keys(model, each["loc"], in_file=in_file))
        elif each["type"] == "literal_error":
            yield tuple(re.findall(r"'([^']*)'", each["ctx"]["expected"]))
        else:
            yield ()


def _merge(error: ValidationError) -> list[dict[str, Any]]:
    """Return the errors, one for each place, with the places of settings alone.

    Pydantic names the members of a union as if they were keys, and has an error for each.
    """
    merged: dict[KeyPath, dict[str, Any]] = {}
    for found in error.errors(include_url=False):
        each: dict[str, Any] = {**found, "loc": _without_members(found["loc"], found["type"])}
        other = merged.setdefault(each["loc"], each)
        if other is not each:
            more = each["msg"].removeprefix("Input should be ")
            merged[each["loc"]] = {**other, "msg": f"{other['msg']} or {more}"}
    # A section in the place of a text or of a section: only what is wrong in it is the problem.
    return [
        each
        for place, each in merged.items()
        if not (
            each["type"] == "string_type"
            and isinstance(each["input"], dict)
            and any(other[: len(place)] == place and other != place for other in merged)
        )
    ]


def _without_members(location: KeyPath, kind: str) -> KeyPath:
    kept = [s for s in location if not (isinstance(s, str) and _UNION_MEMBER.fullmatch(s))]
    # A key may have this name.
    is_member = kept[-1:] == ["bool"] and kind.startswith("bool_")
    return tuple(kept[:-1] if is_member else kept)


def dotted(path: KeyPath) -> str:
    """Return a place as `providers[0].model`."""
    joined = ""
    for step in path:
        joined += f"[{step}]" if isinstance(step, int) else f".{step}" if joined else str(step)
    return joined


def _problem(error: Any, model: type[BaseModel], *, in_file: bool) -> str:
    """Return the problem, and what another system's name is called here."""
    plain = _plain_problem(error, model, in_file=in_file)
    value = error["input"]
    inner = value if isinstance(value, dict) else [value] if isinstance(value, str) else []
    # A key above the wrong one may be the other system's too: `tools: {discoveryMode: all}`.
    known = _known_keys(model, error["loc"], in_file=in_file)
    for name in (*error["loc"][-1:], *inner):
        if name not in known and (today := _OTHER_SYSTEMS.get(str(name))) is not None:
            return f"{plain}; instead of {name}, write {today}"
    return plain


def _plain_problem(error: Any, model: type[BaseModel], *, in_file: bool) -> str:
    if error["type"] == "extra_forbidden":
        return _unknown_key(error["loc"], model, in_file=in_file)
    if error["type"] == "missing":
        return "is missing"
    problem = error["msg"].removeprefix("Value error, ").replace("valid tuple", "list")
    section = r"valid dictionary( or instance of \w+)?"
    problem = re.sub(section, "section of keys and values", problem)
    described = _describe_value(error["input"], error["loc"])
    return f"{described}: {problem[:1].lower()}{problem[1:]}"


def _unknown_key(location: KeyPath, model: type[BaseModel], *, in_file: bool) -> str:
    key = str(location[-1])
    keys = _known_keys(model, location, in_file=in_file)
    said = f"is unknown; known here: {', '.join(keys)}"
    if key.lower() in ("api_key", "apikey", "key", "token") and "api_key_env" in keys:
        return (
            f"{said}; a key comes from the environment, never from settings: set a variable "
            "such as ANTHROPIC_API_KEY, and name it in api_key_env"
        )
    near = get_close_matches(key, keys, n=1)
    if near:
        return f"{said}; did you mean {near[0]!r}?"
    every = list(_sections_with(model, key))
    outer = [one for one in every if not any(one.startswith(f"{other}.") for other in every)]
    if 0 < len(outer) <= _MAX_ELSEWHERE:
        return f"{said}; {key!r} belongs in {' or '.join(map(repr, outer))}"
    return said


def _sections_with(model: type[BaseModel], key: str, path: str = "") -> Iterator[str]:
    """Yield the sections that have a key, as people write them."""
    for name, field in model.model_fields.items():
        inner = next(_models(field.annotation), None)
        if inner is None:
            continue
        section = f"{path}.{field.alias or name}" if path else field.alias or name
        if key != _MODE and key in {each.alias or own for own, each in inner.model_fields.items()}:
            yield section
        yield from _sections_with(inner, key, section)


def _describe_value(value: object, location: KeyPath) -> str:
    """Return a wrong value for an error, but nothing that could be or hold an API key."""
    if isinstance(value, dict | list | tuple):
        return f"holds {'keys and values' if isinstance(value, dict) else 'a list'}"
    secret = any("key" in str(step) for step in location) or location[-1:] == ("base_url",)
    secret = secret or location[:1] == ("mcpServers",) or location[-2:] == ("store", "url")
    return "is not allowed" if secret and value is not None else f"is {value!r}"


def _known_keys(model: type[BaseModel], location: KeyPath, *, in_file: bool) -> list[str]:
    """Return the keys of the section in which the last step of a place is."""
    top = model
    for step in location[:-1]:
        model = _section(model, step) or model
    keys = {field.alias or name for name, field in model.model_fields.items()}
    if in_file and model is not top:
        # One section alone has it, and a file has it next to that section.
        keys.discard(_MODE)
    elif in_file and _SECTION in keys:
        keys.add(_MODE)
        if model.__name__ == _BOT:
            keys.add("provider_settings")
    return sorted(keys)


def _section(model: type[BaseModel], step: str | int) -> type[BaseModel] | None:
    """Return the settings under a key; None for an index, or a name of the user's."""
    for name, field in model.model_fields.items():
        if step in (name, field.alias):
            return next(_models(field.annotation), None)
    return None


def _models(annotation: Any) -> Iterator[type[BaseModel]]:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        yield annotation
    for argument in get_args(annotation):
        yield from _models(argument)
