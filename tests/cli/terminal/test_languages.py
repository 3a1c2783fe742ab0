"""Help and errors of use in each language."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
import typer
from rich.cells import cell_len

from tests.cli.conftest import Command
from tool_search.cli.application import COMMANDS, app
from tool_search.i18n import LANGUAGES, Language, script_of, text

ROOT = Path(__file__).resolve().parents[3]
OTHERS = [language for language in LANGUAGES if language != "en-US"]


def sentences() -> set[str]:
    """Return every paragraph and every option of the help, in English."""
    group: Any = typer.main.get_command(app)
    said = set()
    for command in (group, *(group.get_command(None, name) for name in COMMANDS)):
        ctx = typer.Context(command)
        paragraphs = (command.help or "").split("\n\n")
        options = [param.help or "" for param in command.get_params(ctx)]
        said |= {" ".join(sentence.split()) for sentence in (*paragraphs, *options)}
    return said - {""}


@pytest.mark.parametrize("language", OTHERS)
def test_help_is_translated_and_nothing_else_is(language: Language) -> None:
    file = ROOT / "i18n" / "help" / f"{language}.json"
    translations = json.loads(file.read_text(encoding="utf-8"))
    assert set(translations) == sentences()
    own = script_of(language)
    assert own is not None
    assert [said for said in translations.values() if not re.search(own, said)] == []


@pytest.mark.parametrize("columns", [20, 80, 120])
@pytest.mark.parametrize("language", LANGUAGES)
def test_help_fits_and_is_not_cut_off(command: Command, language: Language, columns: int) -> None:
    for name in ("", *COMMANDS):
        arguments = (name, "-h") if name else ("-h",)
        shown = command("--language", language, *arguments, env={"COLUMNS": str(columns)})
        assert shown.status == 0
        assert all(cell_len(line) <= columns for line in shown.out.split("\n")), name
        assert "…" not in shown.out
        assert (
            "..."
            not in shown.out.replace("[ARGS]...", "")
            .replace('"query": ...', "")
            .replace('"relevant": ...', "")
            or columns == 20
        )
        assert text("help.options", language) in shown.out


@pytest.mark.parametrize("language", LANGUAGES)
def test_errors_of_use_are_in_the_persons_language(command: Command, language: Language) -> None:
    environment = {"LC_ALL": language.replace("-", "_") + ".UTF-8"}

    def said(*arguments: str) -> str:
        refused = command(*arguments, env=environment)
        assert (refused.status, refused.out) == (2, "")
        return refused.err

    assert text("usage.no_command", language, command="'serch'") in said("serch")
    assert text("usage.near", language, name="search") in said("serch")
    assert text("usage.no_option", language, option="--quer") in said("search", "--quer", "x")
    assert text("usage.near", language, name="--query") in said("search", "--quer", "x")
    assert text("usage.missing", language, option="--catalog") in said("eval")
    assert text("usage.needs_value", language, option="--query") in said("search", "--query")
    assert text("usage.extra", language, arguments="x") in said("search", "x")
    assert "--store" not in said("search", "--mode", "x")  # the dashes alone are alike
    for typed in ("many", "-4"):
        problem = said("search", "--limit", typed).partition("See")[0]
        assert f"--limit '{typed}'" in problem
    # In this process the program has another name.
    assert "search --help" in said("search", "x")


@pytest.mark.parametrize("language", OTHERS)
@pytest.mark.parametrize(
    "arguments",
    [
        "search --catalog {tools}",
        "search --catalog {tools} --query x --limit 0",
        "search --catalog {tools} --query x --limit many",
        "search --query x",
        "search --catalog {folder}/none.json --query x",
        "search --catalog {folder} --query x",
        "search --catalog {tools} --query x --engine semantc",
        "search --catalog {tools} --query x --store {folder}/none.db",
        "inspect --catalog {tools}",
        "inspect --catalog {tools} --provider antropic",
        "inspect --catalog {tools} --provider anthropic --mode fast",
        "inspect --catalog {tools} --provider anthropic --discovered get_wether",
        "inspect --catalog {tools} --provider anthropic --model=",
        "learned --config a --store b",
        "forget",
        "forget --all --store {folder}/none.db --export {tools}",
        "doctor",
        "doctor --catalog {tools} --live",
        "replay",
        "replay --catalog {tools} --store {folder}/none.db",
        "replay --catalog {tools} --days many",
        "chat --config {folder}/none.yaml",
        "init --folder {folder} --provider openai --model=",
        "init --folder {folder} --provider antropic",
        "serve-stand-in --port 70000",
        "proxy",
        "gateway",
    ],
)
def test_no_error_of_use_is_english(
    command: Command, catalog: Path, tmp_path: Path, arguments: str, language: Language
) -> None:
    given = arguments.format(tools=catalog, folder=tmp_path).split()
    refused = command("--language", language, *given)
    assert (refused.status, refused.out) == (2, "")
    said = re.sub(r"--\S+|'[^']*'|`[^`]*`|\S*[/:._]\S*", "", refused.err.partition("\n")[0])
    # Names of options, values, files and kinds are left out: what is left is a sentence.
    assert re.search(str(script_of(language)), said)
    assert not re.search(r"[a-z]+ [a-z]+ [a-z]+ ", said), said


@pytest.mark.parametrize("given", ["zh", "zh-CN", "zh_CN.UTF-8", "ZH"])
def test_a_language_may_be_named_in_any_form_and_anywhere(command: Command, given: str) -> None:
    usage = text("help.options", "zh-CN")
    environment = {"LC_ALL": "ru_RU.UTF-8"}
    assert usage in command("--language", given, "search", "-h", env=environment).out
    assert usage in command("search", f"--language={given}", "-h", env=environment).out
    assert usage in command("search", "-h", "--language", given, env=environment).out


@pytest.mark.parametrize("given", ["fr", "", "english", "x" * 1000])
def test_an_unknown_language_is_an_error_of_use(command: Command, given: str) -> None:
    refused = command("search", "--language", given)
    assert (refused.status, refused.out) == (2, "")
    assert "must be one of zh-CN, en-US, ru-RU" in refused.err


@pytest.mark.parametrize("locale", ["C", "POSIX", "xx_YY.UTF-8", "", "fr_FR@euro"])
def test_another_locale_is_english(command: Command, locale: str) -> None:
    shown = command("-h", env={"LC_ALL": locale, "LANG": "C", "LC_MESSAGES": ""})
    assert text("help.options", "en-US") in shown.out


@pytest.fixture
def hidden(monkeypatch: pytest.MonkeyPatch) -> None:
    """Hide the anthropic SDK, as if its extra were not installed."""
    for name in [*sys.modules]:
        if name.partition(".")[0] == "anthropic" or name.startswith("tool_search.adapters.anthr"):
            monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "anthropic", None)


def test_a_command_without_its_extra_names_it(command: Command, hidden: None) -> None:
    refused = command("demo")
    assert (refused.status, refused.out) == (2, "")
    (line,) = refused.err.strip().splitlines()
    assert line.startswith("error: the anthropic adapter needs the anthropic SDK")
    assert line.endswith("pip install '.[anthropic]'")


def test_a_command_that_cannot_be_imported_breaks_no_help(
    command: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    module, _ = COMMANDS["proxy"]
    import_module(module)
    monkeypatch.setitem(sys.modules, module, None)
    assert "search" in command("-h").out
    with pytest.raises(ModuleNotFoundError):  # no extra brings this one
        command("proxy", "--port", "1")


def test_completion_that_cannot_be_written_says_so(
    command: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("_TYPER_COMPLETE_TEST_DISABLE_SHELL_DETECTION", "1")
    home = tmp_path / "home"
    home.write_text("a file, and no folder", encoding="utf-8")
    monkeypatch.setenv("HOME", str(home))
    refused = command("--install-completion", "bash")
    assert (refused.status, refused.out) == (2, "")
    assert "Completion cannot be installed" in refused.err
    assert "--show-completion" in refused.err


def test_completion_lists_commands_and_options() -> None:
    def completed(words: str, place: int) -> list[str]:
        done = subprocess.run(  # our own command
            [sys.executable, "-c", "from tool_search.cli import main; main()"],
            env={
                "_TOOL_SEARCH_COMPLETE": "complete_bash", "COMP_WORDS": words,
                "COMP_CWORD": str(place), "PYTHONPATH": str(ROOT), "PATH": "",
            },
            capture_output=True, encoding="utf-8", check=False, cwd=ROOT,
        )  # fmt: skip
        return done.stdout.split()

    assert "search" in completed("tool-search se", 1)
    assert "--catalog" in completed("tool-search search --ca", 2)
