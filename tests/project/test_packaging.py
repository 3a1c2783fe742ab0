"""What is installed."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[2]
# Frameworks exclude each other, and models on the machine bring gigabytes: `all` has neither.
LEFT_OUT = {
    "fastembed",
    "fastmcp",
    "gateway",
    "langchain",
    "litellm",
    "mcp",
    "openai-agents",
    "pydantic-ai",
    "sentence-transformers",
}


@pytest.fixture(scope="module")
def project() -> dict[str, Any]:
    """The project's own description."""
    return tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))


def folders() -> set[str]:
    """The packages there are, by the names they are installed under."""
    here = {"adapters": "tool_search.adapters", "i18n": "tool_search.i18n"}
    found = set()
    for top in ("tool_search", *here):
        for path in (ROOT / top).rglob("__init__.py"):
            parts = path.parent.relative_to(ROOT).parts
            found.add(".".join((here.get(parts[0], parts[0]), *parts[1:])))
    return found


def test_every_package_is_installed(project: dict[str, Any]) -> None:
    assert set(project["tool"]["setuptools"]["packages"]) == folders()


def test_nothing_but_the_package_is_installed_at_top_level(project: dict[str, Any]) -> None:
    packages = project["tool"]["setuptools"]["packages"]
    assert {name.partition(".")[0] for name in packages} == {"tool_search"}
    assert project["tool"]["setuptools"]["package-dir"] == {
        "tool_search": "tool_search",
        "tool_search.adapters": "adapters",
        "tool_search.i18n": "i18n",
    }


def test_the_locales_and_the_type_marker_are_installed(project: dict[str, Any]) -> None:
    data = project["tool"]["setuptools"]["package-data"]
    assert data["tool_search"] == ["py.typed"]
    assert (ROOT / "tool_search" / "py.typed").is_file()
    assert data["tool_search.i18n"] == ["locales/*.json", "help/*.json"]
    assert data["*"] == ["*.pyi"]


def test_the_extra_all_is_every_other(project: dict[str, Any]) -> None:
    """Nobody has to name them one by one."""
    extras = project["project"]["optional-dependencies"]
    (everything,) = extras["all"]
    named = everything.removeprefix("tool-search-middleware[").removesuffix("]").split(",")
    assert sorted(named) == sorted(set(extras) - {"all"} - LEFT_OUT)


@pytest.mark.parametrize("folder", ["adapters", "i18n"])
def test_top_level_folders_are_linked_into_the_package(folder: str) -> None:
    link = ROOT / "tool_search" / folder
    assert link.is_symlink()
    assert link.readlink() == Path("..") / folder
    assert link.resolve() == ROOT / folder
