"""The settings of a bot, read from a YAML file."""

from __future__ import annotations

import math
import os
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import yaml
from pydantic import BaseModel, ValidationError

from tool_search.config.bot import BotConfig
from tool_search.config.settings import KeyPath, allowed_words, dotted, problems
from tool_search.errors import ConfigurationError

__all__ = [
    "SettingProblem",
    "SettingsError",
    "config_from_mapping",
    "load_config",
    "load_settings",
    "named",
    "read_sections",
    "read_yaml",
    "settings_from_mapping",
    "validated",
]

_MAX_REPEATED = 100_000
_AS_IN_ASTRBOT = ("tool_schema_mode", "tool_search")
_ModelT = TypeVar("_ModelT", bound=BaseModel)


class SettingProblem(NamedTuple):
    """A wrong setting of a file.

    Attributes:
        path: The keys and list indexes that lead to it.
        line: Its line; None if the settings are not from a file.
        problem: What is wrong, without the place.
        allowed: The keys or values that are allowed in its place, if they can be listed.
    """

    path: KeyPath
    line: int | None
    problem: str
    allowed: tuple[str, ...] = ()


class SettingsError(ConfigurationError):
    """Wrong settings, each with its place.

    Attributes:
        problems: The settings.
    """

    def __init__(self, message: str, *, problems: Sequence[SettingProblem]) -> None:
        super().__init__(message)
        self.problems = tuple(problems)

    def __reduce__(self) -> Any:
        return partial(type(self), problems=self.problems), self.args


def load_config(path: str | os.PathLike[str]) -> BotConfig:
    """Return the settings of a bot in a YAML file.

    `tool_schema_mode` and `tool_search` may be at the top or, as in AstrBot, under
    `provider_settings`.

    Raises:
        ConfigurationError: The file cannot be read or parsed, a key is unknown or
            repeated, or a value is not allowed; the error has the line and the key.
    """
    return load_settings(path, BotConfig)


def load_settings(path: str | os.PathLike[str], model: type[_ModelT]) -> _ModelT:
    """Return the settings in a YAML file whose section `tool_search` is as in a bot's.

    Args:
        path: The file.
        model: The type of the settings.

    Raises:
        ConfigurationError: The file cannot be read or parsed, a key is unknown or
            repeated, or a value is not allowed; the error has the line and the key.
    """
    source = Path(path)
    content, lines = read_sections(source)
    return validated(model, content, lines, source)


def read_sections(source: Path) -> tuple[dict[str, Any], dict[KeyPath, int]]:
    """Return the content of a bot's file in the form of `BotConfig`, and the line of each key.

    Raises:
        ConfigurationError: The file cannot be read or parsed, or has a key twice.
    """
    content, lines = read_yaml(source)
    return _arrange_sections(content, lines, source), lines


def read_yaml(source: Path) -> tuple[dict[Any, Any], dict[KeyPath, int]]:
    """Return the content of a YAML or JSON file, and the line of each key by its path.

    Raises:
        ConfigurationError: The file cannot be read or parsed, or has a key twice.
    """
    try:
        node = yaml.compose(source.read_text(encoding="utf-8"), Loader=yaml.SafeLoader)
        _check_aliases(node)
        lines = dict(_lines(node, (), source)) if node is not None else {}
        content = yaml.SafeLoader("").construct_document(node) if node is not None else None
    except (OSError, UnicodeDecodeError) as exc:
        raise ConfigurationError(f"{source}: cannot be read: {exc}") from exc
    except (yaml.YAMLError, ValueError, RecursionError) as exc:
        raise ConfigurationError(f"{source}: is not YAML: {_yaml_problem(exc)}") from exc
    content = {} if content is None else content
    if not isinstance(content, dict):
        raise ConfigurationError(
            f"{source}: must hold keys and values, not a {type(content).__name__}"
        )
    return content, lines


def config_from_mapping(content: Mapping[str, Any]) -> BotConfig:
    """Return the settings in a mapping of the form that a YAML file has.

    Raises:
        ConfigurationError: A key is unknown or a value is not allowed.
    """
    return settings_from_mapping(content, BotConfig)


def settings_from_mapping(content: Mapping[str, Any], model: type[_ModelT]) -> _ModelT:
    """Return the settings in a mapping of the form that the YAML of `load_settings` has.

    Raises:
        ConfigurationError: A key is unknown or a value is not allowed.
    """
    source, lines = Path("configuration"), dict[KeyPath, int]()
    arranged = _arrange_sections(dict(content), lines, source)
    return validated(model, arranged, lines, source)


def _check_aliases(node: yaml.Node | None) -> None:
    """Check that aliases do not multiply.

    Raises:
        ValueError: They repeat too many values.
    """
    sizes: dict[int, float] = {}
    if node is not None and _expand(node, sizes) > len(sizes) + _MAX_REPEATED:
        raise ValueError(f"its aliases (*name) repeat more than {_MAX_REPEATED:,} values")


def _expand(node: yaml.Node, sizes: dict[int, float]) -> float:
    """Return the number of values, those of an alias as often as it stands; endless if in itself.

    Args:
        node: The value.
        sizes: The number of each value so far, by its id.
    """
    if id(node) not in sizes:
        sizes[id(node)] = math.inf
        parts = node.value if isinstance(node, yaml.CollectionNode) else ()
        inner = chain.from_iterable(parts) if isinstance(node, yaml.MappingNode) else parts
        sizes[id(node)] = 1 + sum(_expand(part, sizes) for part in inner)
    return sizes[id(node)]


def _yaml_problem(exc: Exception) -> str:
    mark = getattr(exc, "problem_mark", None)
    problem = getattr(exc, "problem", None) or str(exc)
    return f"line {mark.line + 1}, column {mark.column + 1}: {problem}" if mark else problem


def _lines(node: yaml.Node, path: KeyPath, source: Path) -> Iterator[tuple[KeyPath, int]]:
    """Yield the line of every key, by its path."""
    if isinstance(node, yaml.MappingNode):
        seen = set()
        for key, value in node.value:
            name = key.value if isinstance(key, yaml.ScalarNode) else "a key that is not a word"
            inner = (*path, name)
            if inner in seen:
                raise _wrong(source, {inner: key.start_mark.line + 1}, inner, "is there twice")
            seen.add(inner)
            yield inner, key.start_mark.line + 1
            yield from _lines(value, inner, source)
    elif isinstance(node, yaml.SequenceNode):
        for index, value in enumerate(node.value):
            yield (*path, index), value.start_mark.line + 1
            yield from _lines(value, (*path, index), source)


def _arrange_sections(
    content: dict[Any, Any], lines: dict[KeyPath, int], source: Path
) -> dict[str, Any]:
    """Return the file's content with the sections in the places of `BotConfig`."""
    arranged = dict(content)
    nested = _section(arranged.pop("provider_settings", None), "provider_settings", lines, source)
    for key, value in nested.items():
        if key not in _AS_IN_ASTRBOT:
            raise _wrong(
                source,
                lines,
                ("provider_settings", key),
                f"is unknown; known here: {', '.join(_AS_IN_ASTRBOT)}",
            )
        if key in arranged:
            raise _wrong(source, lines, (key,), "is set here and under provider_settings")
        arranged[key] = value
        moved = {p[1:]: n for p, n in lines.items() if p[:2] == ("provider_settings", key)}
        lines.update(moved)
    section = _section(arranged.pop("tool_search", None), "tool_search", lines, source)
    mode = ("tool_search", "tool_schema_mode")
    if mode[1] in section:
        raise _wrong(source, lines, mode, "belongs next to tool_search, not in it")
    if mode[1] in arranged:
        section = {**section, mode[1]: arranged.pop(mode[1])}
        if mode[1:] in lines:  # a mapping has none
            lines[mode] = lines[mode[1:]]
    return {**arranged, "tool_search": section}


def _section(value: object, key: str, lines: Mapping[KeyPath, int], source: Path) -> dict[Any, Any]:
    if value is not None and not isinstance(value, dict):
        kind = type(value).__name__
        raise _wrong(source, lines, (key,), f"must hold keys and values, not a {kind}")
    return dict(value or {})


def validated(
    model: type[_ModelT],
    content: Mapping[str, Any],
    lines: Mapping[KeyPath, int],
    source: Path,
    *,
    is_arranged: bool = True,
) -> _ModelT:
    """Return the content as settings.

    Args:
        model: The type of the settings.
        content: The content.
        lines: The line of each key, by its path.
        source: The file.
        is_arranged: True if `read_sections` has put sections in the places of `model`.

    Raises:
        ConfigurationError: A key is unknown or a value is not allowed; one line for each.
    """
    try:
        return model.model_validate(content)
    except ValidationError as exc:
        found = zip(
            problems(exc, model, in_file=is_arranged),
            allowed_words(exc, model, in_file=is_arranged),
            strict=True,
        )
        wrong = [_wrong(source, lines, *place, words) for place, words in found]
        listed = [problem for each in wrong for problem in each.problems]
        raise SettingsError("\n".join(map(str, wrong)), problems=listed) from exc


def _wrong(
    source: Path,
    lines: Mapping[KeyPath, int],
    path: KeyPath,
    problem: str,
    allowed: Sequence[str] = (),
) -> SettingsError:
    line = next((lines[path[:n]] for n in range(len(path), 0, -1) if path[:n] in lines), None)
    where = f"{source}, line {line}" if line is not None else str(source)
    return SettingsError(
        f"{where}: {named(path)} {problem}",
        problems=[SettingProblem(path, line, problem, tuple(allowed))],
    )


def named(path: KeyPath) -> str:
    """Return the place of a setting as a file has it, such as `providers[0].model`."""
    return dotted(path).replace("tool_search.tool_schema_mode", "tool_schema_mode")
