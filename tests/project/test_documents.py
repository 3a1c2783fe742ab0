"""What the documents say runs, and both READMEs say it alike."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from tool_search import load_config

ROOT = Path(__file__).resolve().parents[2]
EXAMPLES = sorted((ROOT / "examples").glob("*.py"))
READMES = ("README.md", "README.zh-CN.md")


def _run(*arguments: str, code: str | None = None) -> subprocess.CompletedProcess[str]:
    without_keys = {k: v for k, v in os.environ.items() if not k.endswith("_API_KEY")}
    return subprocess.run(  # noqa: S603  # our own files
        [sys.executable, *arguments],
        input=code,
        capture_output=True,
        text=True,
        encoding="utf-8",
        timeout=60,
        check=False,
        cwd=ROOT,
        env={**without_keys, "PYTHONIOENCODING": "utf-8"},
    )


def _blocks(name: str, language: str) -> list[str]:
    text = (ROOT / name).read_text(encoding="utf-8")
    return re.findall(rf"```{language}\n(.*?)```", text, flags=re.DOTALL)


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_an_example_runs_or_asks_for_its_key(path: Path) -> None:
    done = _run(str(path))
    if "API_KEY=" in path.read_text(encoding="utf-8"):
        assert done.returncode != 0
        assert "API_KEY is not set" in done.stderr
    else:
        assert done.returncode == 0, done.stderr
        assert done.stdout.strip()


@pytest.mark.parametrize("name", READMES)
def test_the_python_of_a_readme_finds_what_it_shows(name: str) -> None:
    (block,) = _blocks(name, "python")
    done = _run("-", code=block)
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    assert ["get_forecast" in lines[0], "send_email" in lines[1]] == [True, True]
    assert "createGitHubIssue" in lines[2]


@pytest.mark.parametrize("name", READMES)
def test_the_yaml_of_a_readme_is_a_configuration(name: str, tmp_path: Path) -> None:
    (block,) = _blocks(name, "yaml")
    bot = tmp_path / "bot.yaml"
    bot.write_text(block, encoding="utf-8")
    assert [provider.id for provider in load_config(bot).providers] == ["claude", "gpt"]


def test_the_example_configuration_loads() -> None:
    path = ROOT / "examples" / "bot.yaml"
    assert load_config(path).tools == tuple(yaml.safe_load(path.read_text())["tools"])


def test_both_readmes_show_the_same_code_tables_and_links() -> None:
    english, chinese = ((ROOT / name).read_text(encoding="utf-8") for name in READMES)
    for pattern in (r"^#+ ", r"^\|", r"\]\(([^)]*)\)", r"`tool-search \w+"):
        found = [re.findall(pattern, text, flags=re.MULTILINE) for text in (english, chinese)]
        swapped = [name for name in found[0] if name != "README.zh-CN.md"]
        assert swapped == [name for name in found[1] if name != "README.md"], pattern
    assert _blocks(READMES[0], "python") == _blocks(READMES[1], "python")


@pytest.mark.parametrize("name", ["docs/histories.md", "docs/histories.zh-CN.md"])
def test_the_python_of_histories_goes_on_from_one(name: str) -> None:
    (block,) = _blocks(name, "python")
    done = _run("-", code=block)
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == "['Weather in Paris?', '', '21 °C', 'And tomorrow?']"


def test_the_python_of_the_page_on_testing_runs() -> None:
    # One process for all blocks, each of which imports what it needs.
    done = _run("-", code="\n".join(_blocks("docs/testing.md", "python")))
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize(
    "name",
    [*READMES, "docs/architecture.md", "docs/measured.md", "docs/testing.md"],
)
def test_the_links_of_a_document_lead_somewhere(name: str) -> None:
    path = ROOT / name
    links = re.findall(r"\]\(([^)#:]+)\)", path.read_text(encoding="utf-8"))
    missing = [link for link in links if not (path.parent / link).exists()]
    assert not missing
