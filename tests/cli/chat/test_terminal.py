"""`tool-search chat` at a terminal: a prompt, text as it comes, Ctrl-C that stops an answer."""

from __future__ import annotations

import os
import select
import signal
import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, suppress
from pathlib import Path

import pytest

from tool_search.testing import Fault, ModelCall, ModelReply, ScriptedModel, StandInServer

# A terminal turns Ctrl-C into a signal for the session whose leader has opened it.
_IN_ITS_TERMINAL = (
    "import os; os.open(os.ttyname(0), os.O_RDWR); from tool_search.cli import main; main()"
)
openpty = getattr(os, "openpty", None)
pytestmark = pytest.mark.skipif(openpty is None, reason="needs pseudo-terminals")


class Terminal:
    """A terminal with `tool-search chat` in it.

    Args:
        bot: The configuration.
        columns: Its width.
        home: The folder of what is kept.
        variables: More variables of its environment.
    """

    def __init__(
        self,
        bot: Path,
        *,
        columns: int = 80,
        home: Path | None = None,
        variables: Mapping[str, str] | None = None,
    ) -> None:
        assert openpty is not None
        self._ours, theirs = openpty()
        home = home or bot.parent
        self.process = subprocess.Popen(  # noqa: S603  # our own command
            [sys.executable, "-c", _IN_ITS_TERMINAL, "chat", "--config", str(bot)],
            stdin=theirs,
            stdout=theirs,
            stderr=theirs,
            env={
                **os.environ,
                "LANG": "en_US.UTF-8",
                "TERM": "xterm",
                "COLUMNS": str(columns),
                "XDG_STATE_HOME": str(home / "state"),
                "XDG_DATA_HOME": str(home / "data"),
                **(variables or {}),
            },
            start_new_session=True,
        )
        os.close(theirs)
        self.shown = ""

    def type(self, keys: str) -> None:
        """Types."""
        os.write(self._ours, keys.encode())

    def wait_for(self, text: str) -> None:
        """Read until the text is shown, and takes it and all before it away."""
        deadline = time.monotonic() + 30
        while text not in self.shown:
            assert time.monotonic() < deadline, self.shown
            if select.select([self._ours], [], [], 0.1)[0]:
                self.shown += os.read(self._ours, 4096).decode("utf-8", "replace")
        self.shown = self.shown.partition(text)[2]

    def close(self) -> None:
        """End what is left."""
        self.process.kill()
        self.process.wait()
        os.close(self._ours)


@pytest.fixture
def bot(write: Callable[[str, str], Path], server: StandInServer) -> Path:
    """Return a bot of a few tools."""
    return write(
        "bot.yaml",
        "tools: [tool_search.sources.toolbox.quantities]\n"
        "permissions: {ask: [hex_to_rgb]}\n"
        "providers: [{id: p, type: openai_chat, model: m, api_key_env: null, "
        f"base_url: '{server.openai_base_url}'}}]\n",
    )


@pytest.fixture
def terminal(bot: Path) -> Iterator[Terminal]:
    """Yield a chat with its prompt shown."""
    opened = Terminal(bot)
    opened.wait_for("/help lists the commands.")
    opened.wait_for("> ")
    yield opened
    opened.close()


def test_terminal_shows_an_answer_once(terminal: Terminal, server: StandInServer) -> None:
    server.reset(model=ScriptedModel([ModelReply(text="It is noon.")]))
    terminal.type("What time is it?\n")
    terminal.wait_for("It is noon.")
    terminal.wait_for("> ")
    terminal.type("/quit\n")
    assert terminal.process.wait(30) == 0
    assert "It is noon." not in terminal.shown


def test_terminal_ctrl_c_stops_an_answer_and_the_chat_goes_on(
    terminal: Terminal, server: StandInServer
) -> None:
    server.reset(model=ScriptedModel([ModelReply(text="Here I am.")]))
    server.faults.add(Fault(delay_s=60))
    terminal.type("Hello\n")
    while not server.requests:
        time.sleep(0.01)
    terminal.type("\x03")
    terminal.wait_for("Stopped.")
    terminal.type("Hello?\n")
    terminal.wait_for("Here I am.")


@pytest.mark.parametrize(("typed", "came"), [("y", "[255,136,0]"), ("n", "did not allow")])
def test_terminal_asks_before_a_call_that_needs_permission(
    typed: str, came: str, terminal: Terminal, server: StandInServer
) -> None:
    call = ModelCall(name="hex_to_rgb", arguments={"color": "#ff8800"})
    replies = [ModelReply(calls=(call,)), ModelReply(text="Orange."), ModelReply(text="Fine.")]
    server.reset(model=ScriptedModel(replies))
    terminal.type("What is #ff8800?\n")
    terminal.wait_for('May hex_to_rgb be called with {"color": "#ff8800"}')
    terminal.wait_for("? ")
    terminal.type(f"{typed}\n")
    terminal.wait_for(came)
    terminal.wait_for("Orange.")
    terminal.wait_for("> ")
    terminal.type("Thanks\n")
    terminal.wait_for("Fine.")


def _until_it_ends(terminal: Terminal, interrupt: Callable[[], None]) -> None:
    """Interrupt the chat once more, as a person would.

    Python's readline may miss a signal that comes just after the prompt.
    """
    for _ in range(3):
        interrupt()
        with suppress(subprocess.TimeoutExpired):
            terminal.process.wait(5)
            break


def test_terminal_ctrl_c_at_the_prompt_ends_the_chat(terminal: Terminal) -> None:
    _until_it_ends(terminal, lambda: terminal.type("\x03"))
    assert terminal.process.poll() == 130
    terminal.wait_for("\n")


def test_terminal_end_of_input_ends_the_chat(terminal: Terminal) -> None:
    terminal.type("\x04")
    assert terminal.process.wait(30) == 0
    terminal.wait_for("\n")


def test_terminal_ctrl_c_at_a_question_stops_the_answer(
    terminal: Terminal, server: StandInServer
) -> None:
    call = ModelCall(name="hex_to_rgb", arguments={"color": "#ff8800"})
    server.reset(model=ScriptedModel([ModelReply(calls=(call,)), ModelReply(text="Fine.")]))
    terminal.type("What is #ff8800?\n")
    terminal.wait_for("c and a allow:")
    terminal.wait_for("? ")
    terminal.type("\x03")
    terminal.wait_for("Stopped.")
    terminal.wait_for("> ")
    terminal.type("Thanks\n")
    terminal.wait_for("Fine.")


def test_terminal_keeps_typed_lines_for_the_next_chat(bot: Path, terminal: Terminal) -> None:
    pytest.importorskip("readline")
    terminal.type("/model\n")
    terminal.wait_for("p: m")
    terminal.wait_for("> ")
    terminal.type("/quit\n")
    assert terminal.process.wait(30) == 0
    again = Terminal(bot)
    again.wait_for("chat_history")
    again.wait_for("> ")
    again.type("\x1b[A\x1b[A\n")
    again.wait_for("p: m")
    again.close()


def test_terminal_reads_any_letters_although_the_system_lacks_the_locale(
    bot: Path, server: StandInServer
) -> None:
    pytest.importorskip("readline")
    server.reset(model=ScriptedModel([ModelReply(text="Полдень.")]))
    foreign = Terminal(bot, variables={"LC_ALL": "ru_XX.UTF-8"})
    foreign.wait_for("> ")
    foreign.type("время\x7f\x7fя\n")
    foreign.wait_for("Полдень.")
    foreign.close()
    assert server.requests[0].body["messages"][-1]["content"] == "врея"


@pytest.mark.parametrize("end", ["SIGHUP", "SIGTERM"])
def test_terminal_that_is_closed_leaves_no_conversation(
    bot: Path, terminal: Terminal, server: StandInServer, end: str
) -> None:
    server.reset(model=ScriptedModel([ModelReply(text="It is noon.")]))
    terminal.type("What time is it?\n")
    terminal.wait_for("It is noon.")
    terminal.wait_for("> ")
    number = getattr(signal, end)
    _until_it_ends(terminal, lambda: terminal.process.send_signal(number))
    assert terminal.process.poll() == 128 + number
    (file,) = (bot.parent / "data" / "tool-search").glob("*.db")
    with closing(sqlite3.connect(file)) as kept:
        assert kept.execute("SELECT count(*) FROM conversation").fetchone() == (0,)


def test_terminal_of_20_columns_with_a_home_that_cannot_be_written(
    bot: Path, server: StandInServer
) -> None:
    server.reset(model=ScriptedModel([ModelReply(text="**Twelve** o'clock, as far as I know.")]))
    # A file in the place of a folder: root may write anywhere else.
    # And a locale of ASCII alone.
    plain = {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}
    narrow = Terminal(bot, columns=20, home=bot, variables=plain)
    narrow.wait_for("> ")
    narrow.type("time?\n")
    narrow.wait_for("Twelve")
    narrow.wait_for("o'clock, as")
    narrow.wait_for("far as I know.")
    narrow.wait_for("> ")
    narrow.type("/quit\n")
    assert narrow.process.wait(30) == 0
    assert "Traceback" not in narrow.shown
    narrow.close()
