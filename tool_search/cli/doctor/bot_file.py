"""A bot's file, read as far as it can be: wrong settings are set aside, one by one."""

from __future__ import annotations

import copy
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from difflib import get_close_matches
from pathlib import Path
from typing import Any

from tool_search.cli.doctor.findings import Finding, KeyPath, Place
from tool_search.config.bot import BotConfig
from tool_search.config.loading import (
    SettingProblem,
    SettingsError,
    named,
    read_sections,
    validated,
)
from tool_search.errors import ConfigurationError

__all__ = ["BotFile", "read_bot_file"]

# Setting one aside may show another, such as a key that is now missing.
_MAX_ROUNDS = 20
_LIKE = 0.75
_SECRET_KEYS = ("api_key", "apikey", "apiKey", "key", "token")


@dataclass(frozen=True, slots=True, kw_only=True)
class BotFile:
    """The settings of a file without those that are wrong.

    Attributes:
        path: The file.
        settings: The settings; the default for each one that is wrong.
        places: The place of each key, by its path in `settings`.
        findings: What is wrong with the file itself.
        is_read: False if nothing of the file could be read.
    """

    path: Path
    settings: BotConfig
    places: Mapping[KeyPath, Place]
    findings: tuple[Finding, ...] = ()
    is_read: bool = True

    def sets(self, *path: str | int) -> bool:
        """True if the file has a key."""
        return path in self.places

    def lacks(self, *sections: str) -> bool:
        """True if something in one of these sections was wrong, and is left out of `settings`."""
        return any(found.path[:1] == (section,) for found in self.findings for section in sections)

    def placed(self, finding: Finding) -> Finding:
        """Return a finding with its place in the file."""
        if finding.place != Place():
            return finding
        return replace(finding, place=_place(self.places, finding.path))


def read_bot_file(path: Path) -> BotFile:
    """Return what can be read of a bot's file, with a finding for each thing that cannot."""
    try:
        content, lines = read_sections(path)
    except ConfigurationError as exc:
        return BotFile(
            path=path, settings=BotConfig(), places={}, findings=(_unreadable(exc),), is_read=False
        )
    places = {key: Place(key=named(key), line=line) for key, line in lines.items()}
    content, findings = copy.deepcopy(content), list[Finding]()
    gone: set[KeyPath] = set()
    for _ in range(_MAX_ROUNDS):
        try:
            settings = validated(BotConfig, content, {}, path)
        except SettingsError as exc:
            new = [each for each in exc.problems if each.path not in gone]
            findings += [_wrong(each, places) for each in new]
            gone.update(problem.path for problem in exc.problems)
            for part in _parts(content, [problem.path for problem in exc.problems]):
                places = _without(content, part, places)
        else:
            return BotFile(path=path, settings=settings, places=places, findings=tuple(findings))
    return BotFile(
        path=path, settings=BotConfig(), places=places, findings=tuple(findings), is_read=False
    )


def _unreadable(error: ConfigurationError) -> Finding:
    if not isinstance(error, SettingsError):
        mark = getattr(error.__cause__, "problem_mark", None)
        return Finding(
            code="file_unreadable",
            values={"problem": str(error)},
            place=Place(line=None if mark is None else mark.line + 1),
        )
    found = error.problems[0]
    place = Place(key=named(found.path), line=found.line)
    return Finding(
        code="file_unreadable",
        values={"problem": f"{place.key} {found.problem}"},
        place=place,
    )


def _wrong(found: SettingProblem, places: Mapping[KeyPath, Place]) -> Finding:
    place = _place(places, found.path)
    key = named(found.path) if found.path not in places else place.key
    given = _find_wrong(found)
    near = get_close_matches(given, found.allowed, n=2, cutoff=_LIKE) if given else []
    return Finding(
        code="setting_wrong",
        path=found.path,
        values={"setting": key, "problem": found.problem},
        place=Place(key=key, line=place.line),
        wrong=given,
        instead=near[0] if len(near) == 1 else None,
    )


def _find_wrong(found: SettingProblem) -> str:
    """Return the wrong word: an unknown key, or a value that is not one of a list."""
    if not found.allowed:
        return ""
    if found.problem.startswith("is '"):
        return found.problem.removeprefix("is '").partition("'")[0]
    # The name of another variable's setting cannot hold the key that was written here.
    is_key = found.problem.startswith("is unknown") and found.path[-1] not in _SECRET_KEYS
    return str(found.path[-1]) if is_key else ""


def _place(places: Mapping[KeyPath, Place], path: KeyPath) -> Place:
    """Return the place of a key, or of the nearest section around it."""
    around = (path[:length] for length in range(len(path), 0, -1))
    return next((places[each] for each in around if each in places), Place(key=named(path)))


def _parts(content: dict[str, Any], paths: Iterable[KeyPath]) -> list[KeyPath]:
    """Return the parts to take out: none within another, later entries of a list first."""
    deepest = {_deepest(content, path) for path in paths}
    whole = [part for part in deepest if not any(part[:n] in deepest for n in range(1, len(part)))]
    return sorted(whole, key=lambda part: [(isinstance(s, int), s) for s in part], reverse=True)


def _deepest(content: dict[str, Any], path: KeyPath) -> KeyPath:
    """Return the path of the last part of a path that is there."""
    inner: Any = content
    for length, step in enumerate(path):
        if not _has(inner, step):
            return path[:length]
        inner = inner[step]
    return path


def _without(
    content: dict[str, Any], part: KeyPath, places: Mapping[KeyPath, Place]
) -> dict[KeyPath, Place]:
    """Take a part out of the content, and return the places of the rest."""
    inner: Any = content
    for step in part[:-1]:
        inner = inner[step]
    del inner[part[-1]]
    kept = {key: place for key, place in places.items() if key[: len(part)] != part}
    return dict(_shift(kept, part)) if isinstance(part[-1], int) else kept


def _has(part: Any, step: str | int) -> bool:
    if isinstance(part, dict):
        return step in part
    return isinstance(part, list) and isinstance(step, int) and step < len(part)


def _shift(places: Mapping[KeyPath, Place], removed: KeyPath) -> Iterable[tuple[KeyPath, Place]]:
    """Yield the places after an entry of a list was removed."""
    *around, index = removed
    depth = len(around)
    for key, place in places.items():
        step = key[depth] if len(key) > depth and list(key[:depth]) == around else None
        if isinstance(step, int) and isinstance(index, int) and step > index:
            yield (*key[:depth], step - 1, *key[depth + 1 :]), place
        else:
            yield key, place
