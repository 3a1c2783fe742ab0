"""A bot from nothing: `init`, then `chat --stand-in`, without a key."""

from __future__ import annotations

import re
import signal
import socket
import subprocess
import sys
from pathlib import Path
from typing import Any

import anthropic
import openai
import pytest
import yaml

from tests.cli.conftest import COMMAND, Command
from tool_search import load_config
from tool_search.i18n import LANGUAGES, Language, text

ROOT = Path(__file__).resolve().parents[3]
QUESTION = "Convert a temperature of 20 celsius to fahrenheit\n"
_KEYS = {"ANTHROPIC_API_KEY": None, "OPENAI_API_KEY": None}


@pytest.fixture(autouse=True)
def _in_an_empty_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for key in _KEYS:
        monkeypatch.delenv(key, raising=False)
    monkeypatch.delitem(sys.modules, "bot_tools", raising=False)


@pytest.mark.parametrize("kind", ["anthropic", "openai", "openai_chat"])
def test_a_bot_from_nothing_answers_without_a_key(command: Command, kind: str) -> None:
    made = command("init", "--provider", kind)
    assert made.status == 0
    assert "tool-search chat --stand-in" in made.out
    asked = command("chat", "--stand-in", typed=QUESTION)
    assert asked.status == 0
    assert "20 °C are 68 °F" in asked.out
    assert "found: convert_temperature" in asked.err
    assert text("stand_in.note", "en-US") in asked.err


@pytest.mark.parametrize("language", LANGUAGES)
def test_the_question_that_init_names_is_answered_in_its_language(
    command: Command, language: Language
) -> None:
    environment = {"LC_ALL": f"{language.replace('-', '_')}.UTF-8"}
    made = command("init", env=environment)
    question = text("init.question", language)
    assert made.out.splitlines()[-1] == text("init.try", language, question=question)
    asked = command("chat", "--stand-in", typed=f"{question}\n", env=environment)
    answer = re.escape(text("init.days_result", language, days="DAYS", year="YEAR"))
    assert re.search(answer.replace("DAYS", r"\d+").replace("YEAR", r"\d{4}"), asked.out)


@pytest.mark.parametrize("language", LANGUAGES)
def test_comments_are_in_the_persons_language(command: Command, language: Language) -> None:
    environment = {"LC_ALL": f"{language.replace('-', '_')}.UTF-8"}
    command("init", "--model", 'm: "x" #1', env=environment)
    written = Path("bot.yaml").read_text(encoding="utf-8")
    assert text("init.mode", language) in written
    assert load_config("bot.yaml").providers[0].model == 'm: "x" #1'
    assert yaml.safe_load(written)["tools"] == ["bot_tools"]


@pytest.mark.parametrize("there", ["bot.yaml", "bot_tools.py"])
def test_a_file_that_is_there_is_not_changed(command: Command, there: str) -> None:
    Path(there).write_text("mine", encoding="utf-8")
    refused = command("init")
    assert (refused.status, refused.out) == (2, "")
    assert f"{there} is there already" in refused.err
    assert [path.read_text(encoding="utf-8") for path in Path().iterdir()] == ["mine"]


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (("--provider", "antropic"), "Did you mean anthropic?"),
        (("--model", " "), "--model is empty"),
        (("--folder", "file/bot"), "cannot be written"),
    ],
)
def test_what_cannot_be_written_says_why(
    command: Command, given: tuple[str, ...], said: str
) -> None:
    Path("file").write_text("", encoding="utf-8")
    refused = command("init", *given)
    assert (refused.status, refused.out) == (2, "")
    assert said in refused.err
    assert "Traceback" not in refused.err


def test_chat_without_a_file_names_the_command_that_writes_one(command: Command) -> None:
    refused = command("chat")
    assert refused.status == 2
    assert "bot.yaml does not exist" in refused.err
    assert "`tool-search init`" in refused.err


def test_the_stand_in_serves_other_programs_until_ctrl_c() -> None:
    with subprocess.Popen(  # noqa: S603  # our own command
        [*COMMAND, "serve-stand-in", "--port", "0"],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, encoding="utf-8", cwd=ROOT,
    ) as serving:  # fmt: skip
        assert serving.stdout is not None
        addresses = dict(serving.stdout.readline().strip().split("=") for _ in range(2))
        hi: Any = [{"role": "user", "content": "Hi"}]
        with anthropic.Anthropic(base_url=addresses["ANTHROPIC_BASE_URL"], api_key="any") as claude:
            said = claude.messages.create(model="claude-sonnet-4-6", max_tokens=50, messages=hi)
        assert "Hi" in said.content[0].to_json()
        with openai.OpenAI(base_url=addresses["OPENAI_BASE_URL"], api_key="any") as gpt:
            chosen = gpt.chat.completions.create(model="gpt-5.4", messages=hi)
        assert "Hi" in (chosen.choices[0].message.content or "")
        serving.send_signal(signal.SIGINT)
        _, errors = serving.communicate(timeout=30)
    assert serving.returncode == 130
    assert "Traceback" not in errors


def test_a_port_that_is_taken_is_named(command: Command) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        refused = command("serve-stand-in", "--port", port)
    assert (refused.status, refused.out) == (2, "")
    assert f"--port {port} cannot be used" in refused.err
