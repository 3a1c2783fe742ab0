"""The AstrBot plugin as it is released, held to the rules of AstrBot's market.

The rules are those of the plugin market's JSON specification of 2026-06-27
(https://docs.astrbot.app/en/dev/plugin-market/2026-06-27.html), of "Publish Plugin"
(https://docs.astrbot.app/en/dev/star/plugin-publish.html) and of the guide for new plugins
(https://docs.astrbot.app/en/dev/star/plugin-new.html).
"""

from __future__ import annotations

import json
import re
import runpy
import shutil
import struct
import subprocess
import sys
import zipfile
import zlib
from pathlib import Path
from typing import Any

import pytest
import yaml
from packaging.specifiers import SpecifierSet

import tool_search

ROOT = Path(__file__).resolve().parents[3]
NAME = "astrbot_plugin_tool_search"
URL = "https://github.com/some-owner/astrbot_plugin_tool_search"
MARKET_URL = r"https://github\.com/[A-Za-z0-9_-]+/[A-Za-z0-9_-]+(\.git|/tree/[A-Za-z0-9_-]+)?"
MAX_BYTES = 16 * 1024 * 1024


def release(
    dist: Path, *, url: str = URL, author: str = "some-owner <ann@example.org>", root: Path = ROOT
) -> subprocess.CompletedProcess[str]:
    script = str(ROOT / ".ci" / "astrbot_release.py")
    command = [sys.executable, script, "--root", str(root), "--dist", str(dist)]
    given = ["--url", url, "--author", author]
    return subprocess.run([*command, *given], capture_output=True, text=True, check=False)  # noqa: S603 - our own script


@pytest.fixture(scope="module")
def dist(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("dist")
    done = release(made)
    assert done.returncode == 0, done.stderr
    return made


@pytest.fixture(scope="module")
def metadata(dist: Path) -> dict[str, Any]:
    text = (dist / NAME / "metadata.yaml").read_text(encoding="utf-8")
    described: dict[str, Any] = yaml.safe_load(text)
    return described


def test_identity_and_repository_are_as_the_market_wants_them(metadata: dict[str, Any]) -> None:
    """Sections 5 to 7.1: the identity is author/name, and the repository is at GitHub."""
    assert metadata["author"] == "some-owner"
    assert metadata["name"] == NAME
    assert re.fullmatch(r"[a-z0-9_]+", metadata["name"])
    assert re.fullmatch(MARKET_URL, metadata["repo"])
    assert metadata["version"] == tool_search.__version__
    for field in ("author", "name", "version", "repo", "desc", "display_name", "short_desc"):
        assert metadata[field] == metadata[field].strip() != ""


def test_texts_are_chinese_by_default_and_translated(dist: Path, metadata: dict[str, Any]) -> None:
    """Section 7.2; AstrBot shows `metadata.yaml` where a language is missing."""
    for field in ("display_name", "short_desc", "desc"):
        assert re.search("[\u4e00-\u9fff]", metadata[field])
    for path in (dist / NAME / ".astrbot-plugin" / "i18n").glob("*.json"):
        said = json.loads(path.read_text(encoding="utf-8"))["metadata"]
        assert sorted(said) == ["desc", "display_name", "short_desc"]
        if path.stem == "zh-CN":
            assert said == {key: metadata[key] for key in said}


def test_tags_are_a_list_of_texts(metadata: dict[str, Any]) -> None:
    assert metadata["tags"]
    assert all(isinstance(tag, str) for tag in metadata["tags"])


def test_only_releases_that_were_run_are_named(metadata: dict[str, Any]) -> None:
    """The oldest is the one of `make test-astrbot-old`."""
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    (oldest,) = re.findall(r"^ASTRBOT_OLD := (.+)$", makefile, re.MULTILINE)
    allowed = SpecifierSet(metadata["astrbot_version"])
    assert allowed.contains(oldest)
    assert allowed.contains("4.29.1")
    assert not allowed.contains("4.24.9")
    assert not allowed.contains("5.0.0")


def test_the_folders_root_is_the_plugin(dist: Path) -> None:
    """AstrBot looks for these names at the root of a repository, and opens README at once."""
    folder = dist / NAME
    for name in ("main.py", "metadata.yaml", "_conf_schema.json", "requirements.txt", "LICENSE"):
        assert (folder / name).is_file(), name
    assert (folder / "library" / "tool_search" / "__init__.py").is_file()
    assert re.search("[\u4e00-\u9fff]", (folder / "README.md").read_text(encoding="utf-8"))
    assert tool_search.__version__ in (folder / "CHANGELOG.md").read_text(encoding="utf-8")
    assert not list(folder.rglob("__pycache__"))


def test_the_zip_is_the_folder(dist: Path) -> None:
    folder, archive = dist / NAME, dist / f"{NAME}-{tool_search.__version__}.zip"
    assert archive.stat().st_size <= MAX_BYTES
    with zipfile.ZipFile(archive) as opened:
        written = {name: opened.read(name) for name in opened.namelist()}
    there = {
        f"{NAME}/{path.relative_to(folder).as_posix()}": path.read_bytes()
        for path in folder.rglob("*")
        if path.is_file()
    }
    assert written == there


def test_links_of_the_readme_lead_to_files_of_the_repository(dist: Path) -> None:
    """By their addresses: the WebUI shows the README, and knows no other place."""
    raw = "https://raw.githubusercontent.com/some-owner/astrbot_plugin_tool_search/HEAD/"
    for page in ("README.md", "README_en.md"):
        text = (dist / NAME / page).read_text(encoding="utf-8")
        pictures = re.findall(r"!\[[^\]]*\]\(([^)]+)\)", text)
        links = re.findall(r"(?<!!)\[[^\]]*\]\(([^)]+)\)", text)
        assert len(pictures) >= 1
        assert len(links) >= 2
        for link, begin in [
            *((p, raw) for p in pictures),
            *((n, f"{URL}/blob/HEAD/") for n in links),
        ]:
            assert link.startswith(begin)
            assert (dist / NAME / link.removeprefix(begin)).is_file()


def test_links_of_a_branch_lead_to_the_branch(tmp_path: Path) -> None:
    assert release(tmp_path, url=f"{URL}/tree/astrbot").returncode == 0
    text = (tmp_path / NAME / "README.md").read_text(encoding="utf-8")
    assert f"({URL}/blob/astrbot/README_en.md)" in text


def test_the_zip_without_a_repository_shows_no_broken_picture(tmp_path: Path) -> None:
    build = runpy.run_path(str(ROOT / ".ci" / "astrbot_plugin.py"))["build"]
    build(tmp_path / "plugin.zip")
    with zipfile.ZipFile(tmp_path / "plugin.zip") as archive:
        text = archive.read(f"{NAME}/README.md").decode()
    assert "![" not in text
    assert "工具搜索" in text


@pytest.mark.parametrize("page", ["README.md", "README_en.md"])
def test_figures_of_the_readme_were_measured(page: str) -> None:
    text = (ROOT / "examples" / NAME / page).read_text(encoding="utf-8")
    measured = (ROOT / "benchmarks" / "astrbot.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| (30|120|500) \|(.+)\|$", text, re.MULTILINE)
    assert len(rows) == 3
    for tools, cells in rows:
        alone, first, after = (cell.split("（")[0].split(" (")[0] for cell in cells.split("|"))
        for bot, request, figure in (
            ("alone", 1, alone),
            ("plugin", 1, first),
            ("plugin", 2, after),
        ):
            row = rf"\| {tools} \| {bot} \| openai_chat \| {request} \|[^\n]*\| {figure.strip()} \|"
            assert re.search(row, measured), row


def test_the_logo_is_the_drawn_one() -> None:
    """Square, and of the recommended size; compared by pixels, since zlib's releases differ."""
    drawn = runpy.run_path(str(ROOT / ".ci" / "astrbot_logo.py"))
    content = (ROOT / "examples" / NAME / "logo.png").read_bytes()
    assert struct.unpack(">II", content[16:24]) == (256, 256)
    length = struct.unpack(">I", content[33:37])[0]
    assert zlib.decompress(content[41 : 41 + length]) == drawn["pixels"]()


def test_what_make_release_has_written_is_used(tmp_path: Path) -> None:
    for name in ("pyproject.toml", "mkdocs.yml", "README.md", "README.zh-CN.md"):
        shutil.copy(ROOT / name, tmp_path / name)
    script = [sys.executable, str(ROOT / ".ci" / "release.py"), "--root", str(tmp_path)]
    subprocess.run([*script, "--url", URL, "--author", "Ann Lee"], check=True)  # noqa: S603
    done = release(tmp_path / "dist", url="", author="", root=tmp_path)
    assert done.returncode == 0, done.stderr
    described = yaml.safe_load((tmp_path / "dist" / NAME / "metadata.yaml").read_text("utf-8"))
    assert (described["author"], described["repo"]) == ("Ann Lee", URL)


@pytest.mark.parametrize(
    ("url", "author", "wrong"),
    [
        ("", "ann", "URL=''"),
        (URL, "", "AUTHOR=''"),
        (URL, "a/b", "'a/b'"),
        ("git@x:a/b", "a", "git@"),
    ],
)
def test_nothing_is_written_without_an_address_and_an_author(
    tmp_path: Path, url: str, author: str, wrong: str
) -> None:
    done = release(tmp_path, url=url, author=author)
    assert done.returncode != 0
    assert wrong in done.stderr
    assert not list(tmp_path.iterdir())


def test_an_address_that_the_market_refuses_is_named(tmp_path: Path) -> None:
    done = release(tmp_path, url="https://gitee.com/ann/plugin")
    assert done.returncode == 0
    assert "https://gitee.com/ann/plugin" in done.stdout


def test_a_clone_keeps_its_history_and_loses_old_files(tmp_path: Path) -> None:
    folder = tmp_path / NAME
    (folder / ".git").mkdir(parents=True)
    (folder / ".git" / "HEAD").write_text("ref", encoding="utf-8")
    assert release(tmp_path).returncode == 0
    (folder / "old.py").write_text("", encoding="utf-8")
    assert release(tmp_path).returncode == 0
    assert (folder / ".git" / "HEAD").is_file()
    assert not (folder / "old.py").exists()


def test_a_folder_of_something_else_is_left_alone(tmp_path: Path) -> None:
    other = tmp_path / NAME / "thesis.txt"
    other.parent.mkdir()
    other.write_text("years of work", encoding="utf-8")
    done = release(tmp_path)
    assert done.returncode != 0
    assert "empty it first" in done.stderr
    assert other.is_file()
