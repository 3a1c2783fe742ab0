"""`tool-search demo`: the main job end to end, in a process of its own."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from tool_search.cli.application import app
from tool_search.cli.demo.script import TURNS
from tool_search.sources.toolbox import TOOLBOX

FIELDS = {
    "provider", "strategy", "tools_declared", "tools_loaded", "tokens", "full_tokens",
    "prefix_kept",
}  # fmt: skip
_KEYS = ("ANTHROPIC_API_KEY", "OPENAI_API_KEY")


def _process(*arguments: str) -> subprocess.CompletedProcess[str]:
    """The command in a process of its own, as a user without keys runs it."""
    environment = {key: value for key, value in os.environ.items() if key not in _KEYS}
    return subprocess.run(  # noqa: S603  # our own command
        [sys.executable, "-c", "from tool_search.cli import main; main()", "demo", *arguments],
        capture_output=True,
        text=True,
        encoding="utf-8",
        timeout=60,
        env={**environment, "PYTHONIOENCODING": "utf-8", "COLUMNS": "120"},
        check=False,
    )


def _demo(*arguments: str) -> Result:
    """The command in this process, which has its imports."""
    environment = {**dict.fromkeys(_KEYS), "COLUMNS": "120"}
    return CliRunner().invoke(app, ["demo", *arguments], env=environment)


@pytest.fixture(scope="module")
def as_json() -> dict[str, Any]:
    """The output of `demo --json`."""
    done = _process("--json")
    assert (done.returncode, done.stderr) == (0, "")
    shown: dict[str, Any] = json.loads(done.stdout)
    return shown


@pytest.fixture(scope="module")
def shown() -> str:
    """The output of `demo`."""
    done = _demo()
    assert (done.exit_code, done.stderr) == (0, "")
    return done.stdout


def test_demo_json_has_the_designed_fields(as_json: dict[str, Any]) -> None:
    assert {"requests", "discovered", "switches", "saving", "answer"} <= set(as_json)
    assert all(set(request) >= FIELDS for request in as_json["requests"])
    assert as_json["answer"]


def test_demo_asks_claude_and_then_a_generic_provider(as_json: dict[str, Any]) -> None:
    """At least one request of each strategy; the first provider never comes back."""
    strategies = [request["strategy"] for request in as_json["requests"]]
    assert set(strategies) == {"claude", "generic"}
    assert strategies == sorted(strategies)
    assert len({request["provider"] for request in as_json["requests"]}) == 2


def test_demo_calls_after_the_switch_what_was_found_before_it(as_json: dict[str, Any]) -> None:
    """With success, on the generic strategy, and without another search."""
    switch = as_json["switches"][-1]
    after = [call for call in as_json["calls"] if call["request"] >= switch["request"]]
    carried = [call for call in after if call["tool"] in switch["discovered_before"]]
    assert carried
    assert carried[0] == after[0]
    assert all(not call["is_error"] and call["strategy"] == "generic" for call in carried)
    assert set(switch["discovered_before"]) <= set(as_json["discovered"])


def test_demo_saves_most_of_the_tokens(as_json: dict[str, Any]) -> None:
    spent = sum(request["tokens"] for request in as_json["requests"])
    full = sum(request["full_tokens"] for request in as_json["requests"])
    assert as_json["saving"] >= 0.8
    assert as_json["saving"] == pytest.approx(1 - spent / full, abs=1e-3)


def test_demo_keeps_the_prefix_of_each_prompt(as_json: dict[str, Any]) -> None:
    """Claude keeps the whole prefix; a longer generic list costs the text after it."""
    for strategy in ("claude", "generic"):
        first, *later = [r for r in as_json["requests"] if r["strategy"] == strategy]
        assert first["prefix_kept"] is None
        assert all(0 <= request["prefix_kept"] <= 1 for request in later)
        if strategy == "claude":
            assert {request["prefix_kept"] for request in later} == {1}


def test_demo_declares_the_catalog_to_claude_and_a_few_tools_to_others(
    as_json: dict[str, Any],
) -> None:
    assert len(TOOLBOX) >= 100
    for request in as_json["requests"]:
        assert request["tools_loaded"] < 25
        if request["strategy"] == "claude":
            assert request["tools_declared"] == len(TOOLBOX) + 1
        else:
            assert request["tools_declared"] == request["tools_loaded"]


def test_demo_prints_the_conversation_in_both_languages(shown: str) -> None:
    for text in TURNS:
        assert text in shown
    assert "claude" in shown
    assert "generic" in shown


def test_demo_leads_and_ends_with_its_result(shown: str, as_json: dict[str, Any]) -> None:
    first, *_, last = shown.rstrip("\n").splitlines()
    spent = sum(request["tokens"] for request in as_json["requests"])
    full = sum(request["full_tokens"] for request in as_json["requests"])
    saved = f"{as_json['saving'] * 100:.0f} %"
    assert first == last == f"{saved} fewer tokens: {spent:,} instead of {full:,}"
    assert f"{len(as_json['discovered'])} of {len(TOOLBOX)} tools were found" in shown


def test_demo_names_what_a_search_found_and_shows_no_json_of_it(shown: str) -> None:
    assert f"found 3 of {len(TOOLBOX)}: convert_length, " in shown
    assert '"matches"' not in shown


def test_demo_prints_the_same_each_time(shown: str) -> None:
    assert _demo().stdout == shown


def test_demo_live_without_a_key_says_which_one_to_set() -> None:
    """Wrong use: status 2, one line, nothing on standard output."""
    done = _process("--live")
    assert (done.returncode, done.stdout) == (2, "")
    assert all(name in done.stderr for name in _KEYS)
    assert "Traceback" not in done.stderr
    assert len(done.stderr.strip().splitlines()) == 1


def test_demo_live_without_a_key_in_json_is_the_same() -> None:
    done = _demo("--live", "--json")
    assert (done.exit_code, done.stdout) == (2, "")
