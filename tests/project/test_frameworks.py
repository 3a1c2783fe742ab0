"""The table of frameworks in the Makefile, and the places that repeat it."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
MAKEFILE = (ROOT / "Makefile").read_text(encoding="utf-8")
EXTRAS = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"][
    "optional-dependencies"
]


def _row(name: str) -> str:
    found = re.search(rf"^{name} [:?]= (.*)$", MAKEFILE, re.MULTILINE)
    assert found is not None, name
    return found[1]


FRAMEWORKS = _row("FRAMEWORKS").split()


def _oldest(framework: str) -> tuple[str, str]:
    """Return the package of a framework, and its oldest version that is tested."""
    requirement = _row(f"FRAMEWORK_OLDEST_{framework}").split()[0]
    package, _, version = requirement.partition("==")
    assert version, requirement
    return package, version


@pytest.mark.parametrize("framework", FRAMEWORKS)
def test_the_newest_and_the_oldest_are_of_one_package(framework: str) -> None:
    newest = _row(f"FRAMEWORK_PACKAGES_{framework}").split()[0]
    assert newest == _oldest(framework)[0]


@pytest.mark.parametrize("framework", FRAMEWORKS)
def test_the_oldest_is_the_bound_of_the_extra(framework: str) -> None:
    name = framework.replace("_", "-")
    if not (ROOT / "adapters" / f"{framework}.py").exists():
        assert name not in EXTRAS
        return
    bounds = [each.partition(">=")[2].partition(",")[0] for each in EXTRAS[name]]
    assert f"{_oldest(framework)[1]}.".startswith(f"{bounds[0]}.")


@pytest.mark.parametrize("framework", FRAMEWORKS)
def test_the_page_names_the_oldest_and_the_readmes_the_page(framework: str) -> None:
    page = f"docs/frameworks/{framework.replace('_', '-')}.md"
    text = (ROOT / page).read_text(encoding="utf-8")
    short = ".".join(_oldest(framework)[1].split(".")[:2])
    assert re.search(rf"\b{re.escape(short)}", text)
    for readme in ("README.md", "README.zh-CN.md"):
        assert page in (ROOT / readme).read_text(encoding="utf-8")


@pytest.mark.parametrize("framework", FRAMEWORKS)
def test_a_framework_has_tests_and_an_example(framework: str) -> None:
    assert (ROOT / "tests" / "frameworks" / f"test_{framework}.py").is_file()
    assert (ROOT / "examples" / "frameworks" / f"with_{framework}.py").is_file()
