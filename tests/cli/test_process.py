"""`tool-search` as a process: its status, its streams, its start."""

# ruff: noqa: S603  (the processes are our own command)

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.cli.conftest import COMMAND, Command
from tool_search.testing import Fault, StandInServer

File = Callable[[str, str], Path]


def test_process_writes_results_to_standard_output(
    process: Command, write: File, catalog: Path
) -> None:
    queries = write("q.jsonl", '{"query": "火车票"}')
    options = ("--catalog", catalog, "--queries", queries, "--json")
    plain = {**os.environ, "LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONIOENCODING": "ascii"}
    outcome = process("search", *options, env=plain)
    assert outcome.json["query"] == "火车票"
    assert (outcome.err, outcome.status) == ("", 0)


def test_process_ends_with_2_for_a_wrong_file(process: Command, write: File) -> None:
    broken = write("broken.jsonl", '{"name": "a"}\nnonsense\n')
    outcome = process("search", "--catalog", broken, "--query", "x")
    assert (outcome.status, outcome.out) == (2, "")
    assert "broken.jsonl, line 2, column 1: is not JSON" in outcome.err
    assert "Traceback" not in outcome.err


def test_process_ends_with_1_where_a_piped_message_got_no_answer(
    process: Command, write: File
) -> None:
    bot = write(
        "bot.yaml",
        "providers:\n"
        "  - {id: a, type: openai_chat, model: m, api_key_env: null, base_url: 'http://127.0.0.1:9'}\n"
        "  - {id: b, type: openai_chat, model: m, api_key_env: null, base_url: 'http://127.0.0.1:9'}\n",
    )
    outcome = process("chat", "--config", bot, typed="Hello\n")
    assert (outcome.status, outcome.out) == (1, "")
    assert "No answer came." in outcome.err
    assert "Traceback" not in outcome.err


@pytest.mark.parametrize("missing", ["typer", "rich"])
def test_process_without_its_extra_says_how_to_install_it(missing: str) -> None:
    code = f"import sys; sys.modules[{missing!r}] = None; from tool_search.cli import main; main()"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, check=False)
    assert done.returncode == 2
    assert b"pip install 'tool-search-middleware[cli]'" in done.stderr
    assert b"Traceback" not in done.stderr


@pytest.mark.skipif(os.name == "nt", reason="no signals of this kind on Windows")
@pytest.mark.parametrize("form", [("--json",), ()], ids=["json", "table"])
def test_process_ends_quietly_where_its_reader_is_gone(
    write: File, catalog: Path, form: tuple[str, ...]
) -> None:
    queries = write("q.jsonl", '{"query": "mail"}\n' * (5_000 if form else 1_000))
    options = ("search", "--catalog", catalog, "--queries", queries, *form)
    with subprocess.Popen(
        [*COMMAND, *map(str, options)], stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as started:
        assert started.stdout is not None
        assert started.stderr is not None
        started.stdout.readline()
        started.stdout.close()
        assert started.stderr.read() == b""
    assert started.returncode == 141


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")
def test_process_says_that_the_output_is_full(catalog: Path) -> None:
    options = ("search", "--catalog", catalog, "--query", "mail", "--json")
    with Path("/dev/full").open("wb") as full:
        done = subprocess.run(
            [*COMMAND, *map(str, options)], stdout=full, stderr=subprocess.PIPE, check=False
        )
    assert done.returncode == 1
    assert b"the output cannot be written" in done.stderr
    assert b"Traceback" not in done.stderr


@pytest.mark.skipif(os.name == "nt", reason="no signals of this kind on Windows")
def test_process_ends_with_130_when_interrupted(write: File, server: StandInServer) -> None:
    server.faults.add(Fault(delay_s=60, times=None))
    bot = write(
        "bot.yaml",
        "providers: [{id: p, type: openai_chat, model: m, api_key_env: null, "
        f"base_url: '{server.openai_base_url}'}}]\n",
    )
    with subprocess.Popen(
        [*COMMAND, "chat", "--config", str(bot)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    ) as started:
        assert started.stdin is not None
        assert started.stderr is not None
        started.stdin.write(b"Hello\n")
        started.stdin.flush()
        while not server.requests:
            assert started.poll() is None
            time.sleep(0.01)
        started.send_signal(signal.SIGINT)
        assert b"Traceback" not in started.stderr.read()
    assert started.returncode == 130


def test_process_loads_no_sdk_to_search(catalog: Path) -> None:
    """Start-up stays quick: what only chat needs is loaded by chat."""
    code = (
        "import sys\nfrom tool_search.cli import main\n"
        "try:\n    main()\nexcept SystemExit:\n    pass\n"
        "print([name for name in ('anthropic', 'openai', 'numpy', 'jieba') if name in sys.modules])"
    )
    options = ("search", "--catalog", str(catalog), "--query", "mail", "--json")
    done = subprocess.run([sys.executable, "-c", code, *options], capture_output=True, check=True)
    assert done.stdout.splitlines()[-1] == b"[]"
