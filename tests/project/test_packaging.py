"""What is installed."""

from __future__ import annotations

import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path
from typing import Any

import pytest
from hatchling.builders.wheel import WheelBuilder
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

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


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A wheel of this checkout, as the build tool makes it."""
    folder = tmp_path_factory.mktemp("wheel")
    builder = WheelBuilder(str(ROOT))
    return Path(next(builder.build(directory=str(folder), versions=["standard"])))


def test_the_wheel_has_every_file_of_the_package_and_nothing_beside(wheel: Path) -> None:
    here = ("tool_search", "tool_search/adapters", "tool_search/i18n")
    files = (path for folder in here for path in (ROOT / folder).rglob("*") if path.is_file())
    expected = {str(path.relative_to(ROOT)) for path in files if path.suffix != ".pyc"}
    installed = {name for name in zipfile.ZipFile(wheel).namelist() if ".dist-info/" not in name}
    assert installed == expected


def test_the_package_is_imported_from_an_archive(wheel: Path) -> None:
    program = (
        "import tool_search; from tool_search.i18n import text; from tool_search.sources.toolbox "
        "import TOOLBOX; print(tool_search.build_index.__module__, text('search.no_match', "
        "'zh-CN'), len(TOOLBOX), tool_search.__file__)"
    )
    done = subprocess.run(  # noqa: S603 - our own interpreter
        [sys.executable, "-c", program], env={"PYTHONPATH": str(wheel)}, cwd=wheel.parent,
        capture_output=True, check=True, encoding="utf-8",
    )  # fmt: skip
    assert done.stdout.startswith("tool_search.search.build ")
    assert str(wheel) in done.stdout


def test_no_module_is_loaded_twice() -> None:
    """An editable install makes `adapters` and `i18n` importable by another name too."""
    program = (
        "import sys, tool_search.bot, tool_search.cli, tool_search.serving.proxy, "
        "tool_search.adapters.anthropic, tool_search.adapters.openai_chat; "
        "print([n for n in sys.modules if n.split('.')[0] in ('adapters', 'i18n', 'tests')])"
    )
    done = subprocess.run(  # noqa: S603 - our own interpreter
        [sys.executable, "-c", program], cwd=ROOT, capture_output=True, check=True, text=True
    )
    assert done.stdout.strip() == "[]"


def test_the_extra_all_is_every_other(project: dict[str, Any]) -> None:
    """Nobody has to name them one by one."""
    extras = project["project"]["optional-dependencies"]
    (everything,) = extras["all"]
    named = everything.removeprefix("tool-search-middleware[").removesuffix("]").split(",")
    assert sorted(named) == sorted(set(extras) - {"all"} - LEFT_OUT)


def test_locked_versions_are_those_that_the_project_wants(project: dict[str, Any]) -> None:
    """`constraints.txt` has a version of each package of development, which fits its bounds."""
    lines = (ROOT / "constraints.txt").read_text(encoding="utf-8").splitlines()
    locked = {canonicalize_name(name): version for name, version in (x.split("==") for x in lines)}
    described, groups = project["project"], project["dependency-groups"]
    extras = described["optional-dependencies"]
    wanted = [*described["dependencies"], *groups["test"], *groups["dev"]]
    wanted += [each for name in set(extras) - LEFT_OUT - {"all"} for each in extras[name]]
    for each in (Requirement(text) for text in wanted if isinstance(text, str)):
        if each.marker is None or each.marker.evaluate():
            assert locked[canonicalize_name(each.name)] in each.specifier, each


@pytest.mark.parametrize("folder", ["adapters", "i18n"])
def test_top_level_folders_are_linked_into_the_package(folder: str) -> None:
    link = ROOT / "tool_search" / folder
    assert link.is_symlink()
    assert link.readlink() == Path("..") / folder
    assert link.resolve() == ROOT / folder
