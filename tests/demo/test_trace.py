"""`tool-search demo --trace`: the conversation as a tree, in the terminal and as data."""

from __future__ import annotations

import json
from typing import Any

import pytest
from typer.testing import CliRunner

from tool_search.cli.application import app
from tool_search.cli.demo.script import TURNS


@pytest.fixture(scope="module")
def traced() -> dict[str, Any]:
    """The output of `demo --trace --json`."""
    done = CliRunner().invoke(app, ["demo", "--trace", "--json"])
    assert (done.exit_code, done.stderr) == (0, "")
    shown: dict[str, Any] = json.loads(done.stdout)
    return shown


def test_trace_has_every_request_under_its_turn(traced: dict[str, Any]) -> None:
    turns = traced["trace"]
    assert [turn["user"] for turn in turns] == list(TURNS)
    requests = [request for turn in turns for request in turn["requests"]]
    asked = [request["provider"] for request in traced["requests"]]
    assert [request["provider"] for request in requests] == asked
    assert all(request["duration_s"] > 0 for request in requests)
    assert turns[-1]["answer"] == traced["answer"]


def test_trace_has_every_call_with_its_steps(traced: dict[str, Any]) -> None:
    calls = [c for turn in traced["trace"] for r in turn["requests"] for c in r["calls"]]
    assert [call["tool"] for call in calls] == [call["tool"] for call in traced["calls"]]
    searches = [call for call in calls if call["tool"] == "tool_search"]
    assert all(call["found"] for call in searches)
    assert {step["name"] for call in searches for step in call["steps"]} == {"search"}
    run = [call for call in calls if call["tool"] != "tool_search"]
    assert all(call["outcome"] == "finished" for call in run)
    for call in run:
        assert [step["name"] for step in call["steps"]] == ["decision", "permission", "call"]
        assert call["duration_s"] >= call["steps"][-1]["duration_s"] > 0


def test_trace_shows_the_request_that_failed(traced: dict[str, Any]) -> None:
    requests = [request for turn in traced["trace"] for request in turn["requests"]]
    failed = [request for request in requests if "failed" in request]
    assert [request["provider"] for request in failed] == ["claude"]


def test_trace_is_a_tree_in_the_terminal() -> None:
    done = CliRunner().invoke(app, ["demo", "--trace"], env={"COLUMNS": "120"})
    assert done.exit_code == 0
    for part in (
        *TURNS,
        "request 1 claude",
        "└── call",
        "found 3 of 196: convert_length",
        "fewer tokens",
    ):
        assert part in done.stdout


def test_demo_without_it_has_no_durations() -> None:
    done = CliRunner().invoke(app, ["demo", "--json"])
    assert "trace" not in json.loads(done.stdout)
    assert "duration_s" not in done.stdout
