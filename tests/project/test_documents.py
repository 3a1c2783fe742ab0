"""What the documents say runs, and pages in two languages say it alike."""

from __future__ import annotations

import ast
import json
import os
import re
import shlex
import subprocess
import sys
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any, cast, get_args

import pytest
import typer.main
import yaml

import tool_search
from tests.project.run_page import ROOT, blocks, expected_outputs
from tool_search import load_config
from tool_search.cli.application import app
from tool_search.core.messages import NoticeCode
from tool_search.serving.gateway import load_gateway_config
from tool_search.serving.proxy.settings import load_proxy_config

FRAMEWORKS_HERE = ("anthropic_runner",)  # the others are in environments of their own
EXAMPLES = [
    *sorted((ROOT / "examples").glob("*.py")),
    *(ROOT / "examples" / "frameworks" / f"with_{name}.py" for name in FRAMEWORKS_HERE),
]
PAGES_HERE = [name.replace("_", "-") for name in FRAMEWORKS_HERE]
READMES = ("README.md", "README.zh-CN.md")
PAGES = sorted(
    path.relative_to(ROOT).as_posix()
    for path in (*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md"))
)
TRANSLATED = [name for name in PAGES if name.endswith(".zh-CN.md")]
ENGLISH = [name for name in PAGES if name not in TRANSLATED]
# Pages of operators: the same headings, settings and programs in both languages.
OPERATORS = ("docs/index", "docs/astrbot", "docs/configuration", "docs/troubleshooting")
MOVING = tuple(name.removesuffix(".md") for name in ENGLISH if "/moving/" in name)
COMMANDS = cast("Any", typer.main.get_command(app))


def _read(name: str) -> str:
    return (ROOT / name).read_text(encoding="utf-8")


def _prose(name: str) -> str:
    """A page without its code blocks."""
    return re.sub(r"^```.*?^```$", "", _read(name), flags=re.DOTALL | re.MULTILINE)


def _run(*arguments: str) -> subprocess.CompletedProcess[str]:
    without_keys = {k: v for k, v in os.environ.items() if not k.endswith("_API_KEY")}
    return subprocess.run(  # noqa: S603  # our own files
        [sys.executable, *arguments],
        capture_output=True,
        text=True,
        encoding="utf-8",
        timeout=240,
        check=False,
        cwd=ROOT,
        env={**without_keys, "PYTHONIOENCODING": "utf-8", "PYTHONPATH": str(ROOT)},
    )


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_an_example_runs_or_asks_for_its_key(path: Path) -> None:
    done = _run(str(path))
    if "API_KEY=" in path.read_text(encoding="utf-8"):
        assert done.returncode != 0
        assert "API_KEY is not set" in done.stderr
    else:
        assert done.returncode == 0, done.stderr
        assert done.stdout.strip()


def test_the_programs_of_pages_run_and_print_what_is_shown() -> None:
    # One process for all pages, because most of a page's time is starting one.
    # Frameworks are not here; each page's line is in a test of `make test-frameworks`. The
    # program with a server of docs/mcp.md is in a test of `make test-mcp`.
    pages = [
        name
        for name in ENGLISH
        if blocks(ROOT / name, "python")
        and name != "docs/mcp.md"
        and (not name.startswith("docs/frameworks/") or Path(name).stem in PAGES_HERE)
    ]
    done = _run("tests/project/run_page.py", *pages)
    assert done.returncode == 0, done.stderr
    results = json.loads(done.stdout)
    assert [result["error"] for result in results.values() if "error" in result] == []
    for name in pages:
        for shown, output in zip(
            expected_outputs(ROOT / name), results[name]["printed"], strict=True
        ):
            assert shown is None or shown == output, name


@pytest.mark.parametrize("name", TRANSLATED)
def test_a_translated_page_has_the_programs_and_outputs_of_the_english_one(name: str) -> None:
    pages = [ROOT / name, ROOT / name.replace(".zh-CN.md", ".md")]
    programs = [[ast.dump(ast.parse(block)) for block in blocks(page, "python")] for page in pages]
    assert programs[0] == programs[1]
    assert expected_outputs(pages[0]) == expected_outputs(pages[1])


@pytest.mark.parametrize("name", [name for name in PAGES if blocks(ROOT / name, "yaml")])
def test_the_yaml_of_a_page_is_a_configuration(name: str, tmp_path: Path) -> None:
    """A block that shows a part is completed by the one thing that a bot needs: a provider."""
    usual = {"providers": [{"id": "claude", "type": "anthropic", "model": "claude-sonnet-4-6"}]}
    for block in blocks(ROOT / name, "yaml"):
        shown = yaml.safe_load(block)
        if block.startswith("# proxy.yaml"):
            (tmp_path / "proxy.yaml").write_text(block, encoding="utf-8")
            assert load_proxy_config(tmp_path / "proxy.yaml").upstreams
            continue
        if block.startswith("# gateway.yaml"):
            (tmp_path / "gateway.yaml").write_text(block, encoding="utf-8")
            assert load_gateway_config(tmp_path / "gateway.yaml").mcp_servers
            continue
        bot = tmp_path / "bot.yaml"
        bot.write_text(yaml.safe_dump({**usual, **shown}, allow_unicode=True), encoding="utf-8")
        assert load_config(bot).providers


@pytest.mark.parametrize("name", PAGES)
def test_commands_and_options_of_a_page_exist(name: str) -> None:
    lines = re.findall(
        r"^tool-search .*$|(?<=`)tool-search [^`\n]*(?=`)", _read(name), re.MULTILINE
    )
    for line in lines:
        words = [
            word.strip("[]|,") for word in shlex.split(line.replace("\u2026", ""), comments=True)
        ]
        if len(words) < 2 or not re.fullmatch(r"[a-z-]+", words[1]) or words[1] == "--version":
            continue
        command = COMMANDS.get_command(None, words[1])
        assert command is not None, line
        known = {option for item in command.params for option in item.opts}
        used = {word.partition("=")[0] for word in words[2:] if word.startswith("--")}
        assert used <= {*known, "--help"}, line


def test_the_example_configuration_loads() -> None:
    path = ROOT / "examples" / "bot.yaml"
    assert load_config(path).tools == tuple(yaml.safe_load(path.read_text())["tools"])


def _twins(pattern: str, english: str, chinese: str) -> tuple[list[Any], list[Any]]:
    found = [re.findall(pattern, text, flags=re.MULTILINE) for text in (english, chinese)]
    plain = [[str(one).replace(".zh-CN.md", ".md") for one in side] for side in found]
    return plain[0], plain[1]


def test_both_readmes_show_the_same_code_tables_and_links() -> None:
    english, chinese = map(_read, READMES)
    for pattern in (r"^#+ ", r"^\|", r"`tool-search \w+"):
        assert len(set(map(tuple, _twins(pattern, english, chinese)))) == 1, pattern
    links = _twins(r"\]\(([^)]*)\)", english, chinese)
    assert sorted(set(links[0])) == sorted(set(links[1]))


@pytest.mark.parametrize("name", READMES)
def test_a_readme_is_at_most_150_lines(name: str) -> None:
    assert len(_read(name).splitlines()) <= 150


@pytest.mark.parametrize("stem", [*OPERATORS, *MOVING])
def test_an_operators_page_has_the_same_headings_and_settings_in_chinese(stem: str) -> None:
    english, chinese = _read(f"{stem}.md"), _read(f"{stem}.zh-CN.md")
    for pattern in (r"^#+(?= )", r"^\|"):
        assert len(set(map(tuple, _twins(pattern, english, chinese)))) == 1, pattern
    # The meaning of a key is written in each language; elsewhere the prose names settings too.
    shown = r"^\| `([^`]+)`" if "configuration" in stem else r"`([a-z_]+(?:[.:][^`\n]*)?)`"
    settings = [sorted(set(side)) for side in _twins(shown, english, chinese)]
    assert settings[0]
    assert settings[0] == settings[1]


@pytest.mark.parametrize("name", PAGES)
def test_the_links_of_a_page_lead_somewhere(name: str) -> None:
    path = ROOT / name
    links = re.findall(r"\]\(([^)#:\s]+)(?:#[^)]*)?\)", _prose(name))
    missing = [link for link in links if not (path.parent / link).exists()]
    assert not missing


@pytest.mark.parametrize("name", PAGES)
def test_a_page_names_no_file_outside_the_repository(name: str) -> None:
    assert not re.search(r"DESIGN\.md|\.\./shared", _read(name))


def test_codes_of_the_troubleshooting_page_are_those_of_warnings() -> None:
    cells = re.findall(r"^\| ([^|]*) \|", _read("docs/troubleshooting.md"), flags=re.MULTILINE)
    shown = " ".join(cell for cell in cells if "stop_reason" not in cell)
    codes = set(re.findall(r"`([a-z]+(?:_[a-z]+)+)`", shown))
    assert codes
    assert sorted(codes - set(get_args(NoticeCode))) == []


def test_every_module_that_moved_is_where_the_changelog_says() -> None:
    table = _read("CHANGELOG.md").split("### Modules that moved", 1)[1]
    moved = re.findall(r"^\| `([\w.]+)` \| `([\w.]+)` \|$", table, flags=re.MULTILINE)
    assert len(moved) > 200
    missing = [new for _, new in moved if not find_spec(f"tool_search.{new}")]
    assert missing == []


def test_every_public_name_is_on_a_page_of_the_reference() -> None:
    pages = "".join(_read(name) for name in PAGES if name.startswith("docs/api/"))
    shown = re.findall(r"^::: ([\w.]+)$", pages, flags=re.MULTILINE)
    assert (
        sorted(set(cast("Any", tool_search).__all__) - {name.rpartition(".")[2] for name in shown})
        == []
    )
    for name in shown:
        module, _, attribute = name.rpartition(".")
        if module.startswith("tool_search.stores.redis") and find_spec("redis") is None:
            continue  # of an extra that this environment lacks
        assert hasattr(import_module(module), attribute), name


def test_the_site_is_built_strictly() -> None:
    # mkdocs counts only the warnings that it shows: with --quiet, --strict fails nothing.
    (command,) = re.findall(
        r"^\t.*mkdocs build(.*?)(?:#.*)?$", _read("Makefile"), flags=re.MULTILINE
    )
    assert command.split() == ["--strict"]
    assert "make docs" in _read(".ci/run")


def test_every_page_of_figures_is_in_the_navigation() -> None:
    listed = set(re.findall(r"^ +- (benchmarks/\w+\.md)$", _read("mkdocs.yml"), re.MULTILINE))
    assert listed == {f"benchmarks/{path.name}" for path in ROOT.glob("benchmarks/*.md")}
