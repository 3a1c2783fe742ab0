"""`tool-search chat`: a conversation through the real SDKs with the stand-in server."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.cli.conftest import Command
from tool_search.cli.chat.plain import PlainScreen
from tool_search.cli.chat.screen import JsonScreen
from tool_search.core.messages import ToolCall
from tool_search.runner.events import (
    ContentLeftOut,
    RunnerEvent,
    RunnerWarning,
    ToolOutputDelta,
    ToolProgress,
)
from tool_search.testing import Fault, ModelCall, ModelReply, ScriptedModel, StandInServer

File = Callable[[str, str], Path]
MODULES = [f"tool_search.sources.toolbox.{name}" for name in ("quantities", "everyday", "words")]
SEARCH = ModelReply(calls=(ModelCall(name="tool_search", arguments={"query": "hex colour rgb"}),))
CALL = ModelReply(
    text="One moment.", calls=(ModelCall(name="hex_to_rgb", arguments={"color": "#ff8800"}),)
)
ANSWER = ModelReply(text="Red 255, green 136, blue 0.")
SHELL = ToolCall(id="1", name="shell", arguments="{}")
SECRET = "sk-very-secret-0123456789"


@pytest.fixture
def bot(write: File, server: StandInServer) -> Path:
    """Return a bot of two providers and more than 25 tools."""
    return write(
        "bot.yaml",
        f"tools: {MODULES}\n"
        "providers:\n"
        f"  - {{id: claude, type: anthropic, model: claude-sonnet-4-6, strategy: claude,\n"
        f"     base_url: '{server.anthropic_base_url}', api_key_env: KEY_OF_CLAUDE}}\n"
        f"  - {{id: gpt, type: openai_chat, model: gpt-5.4, api_key_env: KEY_OF_GPT,\n"
        f"     base_url: '{server.openai_base_url}'}}\n",
    )


@pytest.fixture(autouse=True)
def _environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("LC_ALL", "LC_MESSAGES"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("LANG", "en_US.UTF-8")
    for name in ("KEY_OF_CLAUDE", "KEY_OF_GPT"):
        monkeypatch.setenv(name, SECRET)


def test_chat_prints_answers_and_nothing_else(
    command: Command, bot: Path, server: StandInServer
) -> None:
    server.reset(model=ScriptedModel([SEARCH, CALL, ANSWER, ModelReply(text="Bye.")]))
    outcome = command("chat", "--config", bot, typed="What is #ff8800?\n\nThank you\n")
    assert outcome.out.splitlines() == ["Red 255, green 136, blue 0.", "Bye."]
    assert "→ hex_to_rgb" in outcome.err
    assert "← [255,136,0]" in outcome.err
    assert "found: hex_to_rgb, rgb_to_hex" in outcome.err
    assert outcome.status == 0


def test_chat_json_prints_every_event(command: Command, bot: Path, server: StandInServer) -> None:
    server.reset(model=ScriptedModel([SEARCH, CALL, ANSWER]))
    events = command("chat", "--config", bot, "--json", typed="What is #ff8800?\n").lines
    kinds = [event["event"] for event in events if event["event"] != "text_delta"]
    search = ["tool_call_started", "tool_finished", "tools_discovered"]
    assert kinds == [*search, "tool_call_started", "tool_finished", "done"]
    assert "hex_to_rgb" in events[2]["names"]
    assert events[-1]["answer"] == ANSWER.text
    assert events[-1]["usage"]["input_tokens"] > 0


def test_chat_use_swaps_the_provider(command: Command, bot: Path, server: StandInServer) -> None:
    server.reset(model=ScriptedModel([SEARCH, ANSWER, ModelReply(text="Fine.")]))
    outcome = command("chat", "--config", bot, typed="#ff8800?\n/use gpt\nAnd now?\n")
    assert [request.dialect for request in server.requests][-2:] == ["anthropic", "openai_chat"]
    assert "hex_to_rgb" in server.requests[-1].tool_names
    assert "gpt answers from the next message on." in outcome.err
    assert outcome.out.splitlines() == [ANSWER.text, "Fine."]


def test_chat_use_of_an_unknown_provider_lists_those_there_are(command: Command, bot: Path) -> None:
    err = command("chat", "--config", bot, typed="/use gtp\n").err
    assert "There is no provider 'gtp'. There are: claude, gpt." in err


def test_chat_tools_shows_the_next_request(
    command: Command, bot: Path, server: StandInServer
) -> None:
    server.reset(model=ScriptedModel([SEARCH, ANSWER]))
    typed = "/tools\n#ff8800?\n/tools\n/use gpt\n/tools\n"
    events = command("chat", "--config", bot, "--json", typed=typed).lines
    before, after, swapped = [event for event in events if event["event"] == "tools"]
    assert (before["mode"], before["strategy"]) == ("tool_search", "claude")
    assert before["discovered"] == []
    assert before["tools_declared"] == before["tools_total"] + 1
    assert "hex_to_rgb" in after["discovered"]
    assert before["tokens"] < after["tokens"] < after["full_tokens"]
    assert (swapped["provider"], swapped["strategy"]) == ("gpt", "generic")
    assert swapped["tools_declared"] == 1 + len(swapped["discovered"])


def test_chat_tools_is_a_table_of_names_servers_and_states(
    command: Command, bot: Path, server: StandInServer
) -> None:
    server.reset(model=ScriptedModel([SEARCH, ANSWER]))
    outcome = command("chat", "--config", bot, typed="#ff8800?\n/tools\n")
    rows = [line.split() for line in outcome.err.splitlines()]
    assert ["tool", "server", "state"] in rows
    assert ["hex_to_rgb", "-", "found"] in rows
    assert ["is_leap_year", "-", "deferred"] in rows
    events = command("chat", "--config", bot, "--json", typed="/tools\n").lines
    assert {"name": "is_leap_year", "server": None, "state": "deferred"} in events[0]["tools"]


def test_chat_model_shows_and_changes_provider_and_model(
    command: Command, bot: Path, server: StandInServer
) -> None:
    server.reset(model=ScriptedModel([ANSWER, ModelReply(text="Fine.")]))
    typed = "/model\nHello\n/model gpt:gpt-5.4-mini\nAnd now?\n/model\n"
    outcome = command("chat", "--config", bot, typed=typed)
    assert "claude: claude-sonnet-4-6" in outcome.err
    assert "gpt:gpt-5.4-mini: gpt-5.4-mini" in outcome.err
    assert outcome.out.splitlines() == [ANSWER.text, "Fine."]
    last = server.requests[-1]
    assert (last.dialect, last.body["model"]) == ("openai_chat", "gpt-5.4-mini")
    # The conversation goes on.
    assert "Hello" in json.dumps(last.body["messages"])


@pytest.mark.parametrize(
    ("wanted", "said"),
    [
        ("nope", "There is no provider 'nope'."),
        ("nope:x", "'nope:x' must have the form kind:model"),
        ("openai:gpt-5.4", "OPENAI_API_KEY is not set"),
    ],
)
def test_chat_model_that_cannot_be_used_changes_nothing(
    command: Command, bot: Path, monkeypatch: pytest.MonkeyPatch, wanted: str, said: str
) -> None:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    err = command("chat", "--config", bot, typed=f"/model {wanted}\n/model\n").err
    assert said in err
    assert "claude: claude-sonnet-4-6" in err


def test_chat_cost_is_of_this_conversation(
    command: Command, bot: Path, server: StandInServer
) -> None:
    server.reset(model=ScriptedModel([SEARCH, CALL, ANSWER]))
    typed = "/cost\n#ff8800?\n/cost\n/reset\n/cost\n"
    events = command("chat", "--config", bot, "--json", typed=typed).lines
    done = next(event for event in events if event["event"] == "done")
    before, after, forgotten = [event for event in events if event["event"] == "cost"]
    assert before == forgotten
    assert (before["requests"], before["full_input_tokens"]) == (0, 0)
    assert after["requests"] == done["steps"] == 3
    assert after["input_tokens"] == done["usage"]["input_tokens"]
    assert after["full_input_tokens"] > after["input_tokens"]
    # No price is invented for an endpoint that is not the vendor's.
    assert after["dollars"] is None


def test_chat_reset_forgets_the_conversation(
    command: Command, bot: Path, server: StandInServer
) -> None:
    server.reset(model=ScriptedModel([SEARCH, ANSWER, ModelReply(text="New.")]))
    typed = "#ff8800?\n/reset\n/tools\nHello\n"
    outcome = command("chat", "--config", bot, typed=typed)
    found, _, forgotten = outcome.err.partition("are forgotten.")
    assert "found: hex_to_rgb, rgb_to_hex" in found
    assert " found" not in forgotten
    assert len(server.requests[-1].body["messages"]) == 1


def test_chat_from_a_pipe_asks_nobody(command: Command, write: File, server: StandInServer) -> None:
    bot = write(
        "asking.yaml",
        "tools: [tool_search.sources.toolbox.quantities]\npermissions: {ask: [hex_to_rgb]}\n"
        "providers: [{id: p, type: openai_chat, model: m, api_key_env: null, "
        f"base_url: '{server.openai_base_url}'}}]\n",
    )
    # It is not even declared, but a model may remember it.
    call = ModelCall(name="hex_to_rgb", arguments={"color": "#ff8800"}, hidden=True)
    said = [ModelReply(calls=(call,)), ModelReply(text="I may not.")]
    server.reset(model=ScriptedModel(said))
    outcome = command("chat", "--config", bot, typed="What is #ff8800?\n")
    assert "needs the user's permission, and nobody can be asked here" in outcome.err
    assert outcome.out.splitlines() == ["I may not."]


@pytest.mark.parametrize("typed", ["/quit\nHello\n", "/exit\n", ""])
def test_chat_ends_without_a_word(command: Command, bot: Path, typed: str) -> None:
    outcome = command("chat", "--config", bot, typed=typed)
    assert (outcome.out, outcome.status) == ("", 0)


def test_chat_unknown_command_is_no_message(
    command: Command, bot: Path, server: StandInServer
) -> None:
    server.reset(model=ScriptedModel([ANSWER]))
    outcome = command("chat", "--config", bot, typed="/colour red\n/etc/hosts is what?\n")
    assert "There is no command /colour." in outcome.err
    assert len(server.requests) == 1


@pytest.mark.parametrize(
    ("locale", "sentence"),
    [
        ("zh_CN.UTF-8", "输入 /help 查看命令"),
        ("ru_RU.UTF-8", "Список команд: /help"),
        ("C.UTF-8", "/help lists the commands"),
    ],
)
def test_chat_speaks_the_language_of_its_environment(
    command: Command, bot: Path, locale: str, sentence: str
) -> None:
    err = command("chat", "--config", bot, typed="/nothing\n", env={"LANG": locale}).err
    assert sentence in err


def test_chat_goes_on_in_the_language_of_the_conversation(
    command: Command, bot: Path, server: StandInServer
) -> None:
    server.reset(model=ScriptedModel([ModelReply(text="你好。")]))
    err = command("chat", "--config", bot, typed="你好，请介绍一下自己\n/tools\n").err
    assert "模式：tool_search" in err


def test_a_message_in_another_language_does_not_change_the_persons(
    command: Command, bot: Path, server: StandInServer
) -> None:
    server.reset(model=ScriptedModel([ModelReply(text="Hello.")]))
    typed, env = "Hello, who are you?\n/tools\n", {"LANG": "zh_CN.UTF-8"}
    assert "模式：tool_search" in command("chat", "--config", bot, typed=typed, env=env).err


def test_chat_shows_a_switch_and_its_cause(
    command: Command, bot: Path, server: StandInServer
) -> None:
    server.reset(model=ScriptedModel([ModelReply(text="A long half answer."), ANSWER]))
    server.faults.add(Fault(dialect="anthropic", status=529, after_events=3, times=None))
    outcome = command("chat", "--config", bot, typed="Hello\n")
    assert outcome.out.splitlines() == [ANSWER.text]
    assert "provider: claude → gpt" in outcome.err
    assert outcome.status == 0


def test_chat_goes_on_after_a_turn_without_an_answer(
    command: Command, bot: Path, server: StandInServer
) -> None:
    server.reset(model=ScriptedModel([ANSWER]))
    for dialect in ("anthropic", "openai_chat"):
        server.faults.add(Fault(dialect=dialect, status=403, message="no such luck"))
    outcome = command("chat", "--config", bot, typed="Hello\nStill there?\n")
    assert "No answer came." in outcome.err
    assert outcome.err.count("no such luck") >= 2
    assert outcome.out.splitlines() == [ANSWER.text]
    assert outcome.status == 1


def test_chat_json_reports_a_turn_without_an_answer(
    command: Command, bot: Path, server: StandInServer
) -> None:
    for dialect in ("anthropic", "openai_chat"):
        fault = Fault(dialect=dialect, status=400, message="no such luck", times=None)
        server.faults.add(fault)
    events = command("chat", "--config", bot, "--json", typed="Hello\n").lines
    assert events[-1]["event"] == "error"
    assert [cause["provider"] for cause in events[-1]["causes"]] == ["claude", "gpt"]
    assert {cause["status"] for cause in events[-1]["causes"]} == {400}


@pytest.mark.parametrize(
    ("event", "name"),
    [
        (RunnerWarning(code="code", message="text"), "warning"),
        (ToolOutputDelta(call=SHELL, content="a line"), "tool_partial"),
        (ToolProgress(call=SHELL, message="half"), "tool_progress"),
    ],
)
def test_chat_json_keeps_the_names_of_events(
    event: RunnerEvent, name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    JsonScreen().show(event)
    assert json.loads(capsys.readouterr().out)["event"] == name


def test_chat_shows_no_key_that_a_provider_quotes(
    command: Command, bot: Path, server: StandInServer
) -> None:
    said = f"the key {SECRET} has no credit"
    for dialect in ("anthropic", "openai_chat"):
        server.faults.add(Fault(dialect=dialect, status=403, message=said, times=None))
    for option in ((), ("--json",)):
        outcome = command("chat", "--config", bot, *option, typed="Hello\n")
        assert "has no credit" in outcome.err + outcome.out
        assert SECRET not in outcome.err + outcome.out


def test_chat_shows_no_control_characters_of_a_model(
    command: Command, bot: Path, server: StandInServer
) -> None:
    server.reset(model=ScriptedModel([ModelReply(text="a\x1b[2Jb\x07\tc")]))
    assert command("chat", "--config", bot, typed="Hello\n").out == "a[2Jb\tc\n"


def test_chat_finds_modules_of_tools_beside_its_file(
    command: Command, write: File, server: StandInServer
) -> None:
    write("tools_beside_the_bot.py", "def ring() -> str:\n    'Ring a bell.'\n    return 'ding'\n")
    bot = write(
        "bot.yaml",
        "tools: [tools_beside_the_bot]\n"
        f"providers: [{{id: p, type: openai_chat, model: m, api_key_env: null, "
        f"base_url: '{server.openai_base_url}'}}]\n",
    )
    server.reset(model=ScriptedModel([ANSWER]))
    command("chat", "--config", bot, typed="Hello\n")
    assert server.requests[0].tool_names == ("ring",)


def test_chat_says_what_an_answer_leaves_out(capsys: pytest.CaptureFixture[str]) -> None:
    PlainScreen().show(
        ContentLeftOut(provider="p", reason="picture_refused", text="The picture is broken.")
    )
    shown = capsys.readouterr()
    assert (shown.out, shown.err.strip()) == ("", "The picture is broken.")
