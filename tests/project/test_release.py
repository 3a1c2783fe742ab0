"""`make release` writes an address and an author that it is given, and invents none."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest
import yaml

ROOT = Path(__file__).resolve().parents[2]
FILES = ("pyproject.toml", "mkdocs.yml", "README.md", "README.zh-CN.md")


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    for name in FILES:
        shutil.copy(ROOT / name, tmp_path / name)
    return tmp_path


def release(checkout: Path, url: str, author: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, str(ROOT / ".ci" / "release.py"), "--root", str(checkout)]
    return subprocess.run(  # noqa: S603  # our own script
        [*command, "--url", url, "--author", author], capture_output=True, text=True, check=False
    )


def project(checkout: Path) -> dict[str, Any]:
    text = (checkout / "pyproject.toml").read_text(encoding="utf-8")
    described: dict[str, Any] = tomllib.loads(text)["project"]
    return described


def test_the_repository_names_no_address_but_that_of_a_release() -> None:
    described = project(ROOT)
    if not described.keys().isdisjoint({"urls", "authors"}):
        text = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
        assert text.count("# Written by `make release`.") == 2


def test_a_release_has_links_and_an_author(checkout: Path) -> None:
    before = project(checkout)
    done = release(checkout, "https://example.org/team/name/", "Ann Lee <ann@example.org>")
    assert done.returncode == 0, done.stderr
    after = project(checkout)
    assert after.pop("urls") == {
        "Source": "https://example.org/team/name",
        "Issues": "https://example.org/team/name/issues",
        "Changelog": "https://example.org/team/name/blob/main/CHANGELOG.md",
        "Documentation": "https://example.org/team/name/tree/main/docs",
    }
    assert after.pop("authors") == [{"name": "Ann Lee", "email": "ann@example.org"}]
    assert after == before
    site = yaml.safe_load((checkout / "mkdocs.yml").read_text(encoding="utf-8"))
    assert site["repo_url"] == "https://example.org/team/name"


def test_every_link_of_the_readme_leads_to_the_repository(checkout: Path) -> None:
    """A package index shows the page alone."""
    before = (checkout / "README.md").read_text(encoding="utf-8")
    done = release(checkout, "https://example.org/team/name", "Ann Lee")
    assert done.returncode == 0, done.stderr
    after = (checkout / "README.md").read_text(encoding="utf-8")
    links = re.findall(r"\]\(([^)]+)\)", after)
    assert len(links) == len(re.findall(r"\]\(([^)]+)\)", before))
    assert all(link.startswith(("https://", "#")) for link in links)
    assert "(https://example.org/team/name/blob/main/docs/cost.md)" in after
    assert "(https://example.org/team/name/raw/main/docs/pictures/tokens.svg)" in after


def test_a_second_release_replaces_the_first(checkout: Path) -> None:
    release(checkout, "https://example.org/team/old", "Ann Lee")
    once = release(checkout, "https://example.org/team/new", "Bo")
    assert once.returncode == 0, once.stderr
    texts = {name: (checkout / name).read_text(encoding="utf-8") for name in FILES}
    assert "team/old" not in "".join(texts.values())
    release(checkout, "https://example.org/team/new", "Bo")
    assert texts == {name: (checkout / name).read_text(encoding="utf-8") for name in FILES}
    assert project(checkout)["authors"] == [{"name": "Bo"}]


@pytest.mark.parametrize(
    ("url", "author", "named"),
    [
        ("", "Ann", "URL=''"),
        ("http://example.org/team/name", "Ann", "URL="),
        ("https://example.org", "Ann", "URL="),
        ("https://example.org/team/name", "", "AUTHOR=''"),
        ("https://example.org/team/name", "Ann <no mail>", "AUTHOR="),
    ],
)
def test_nothing_is_written_without_both(checkout: Path, url: str, author: str, named: str) -> None:
    done = release(checkout, url, author)
    assert done.returncode == 1
    assert named in done.stderr
    for name in FILES:
        assert (checkout / name).read_bytes() == (ROOT / name).read_bytes()
