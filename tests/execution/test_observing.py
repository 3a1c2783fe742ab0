"""Records, traces and logs of calls, in addition to their events."""

from __future__ import annotations

import json
import logging
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.execution.calling import CONTEXT, calls, result, runner, tool
from tool_search import CallOptions
from tool_search.core.values.redaction import redacted, redacted_json
from tool_search.runner.execution import ToolFailure, ToolRun


async def _works(**arguments: Any) -> str:
    return "fine"


async def _fails(**arguments: Any) -> str:
    raise ValueError("no such box")


async def _seen(function: Any, wanted: Any = "it") -> list[ToolRun | ToolFailure]:
    seen: list[ToolRun | ToolFailure] = []
    options = CallOptions(observers=[seen.append])
    await result(runner(tool(function), options=options), wanted)
    return seen


async def test_success_is_told_only_where_it_was_one() -> None:
    (good,) = await _seen(_works)
    assert isinstance(good, ToolRun)
    assert (good.name, good.tool, good.success) == ("tool_execution", "it", True)
    assert good.duration > 0
    assert set(good.to_dict()) == {"tool", "duration", "success"}
    bad, _ = await _seen(_fails)
    assert isinstance(bad, ToolRun)
    assert bad.success is False


async def test_failure_is_told_with_the_place_where_it_was_raised() -> None:
    _, error = await _seen(_fails)
    assert isinstance(error, ToolFailure)
    assert (error.name, error.tool) == ("tool_error", "it")
    assert error.error == "it failed: ValueError: no such box"
    assert "in _fails" in error.stack
    assert set(error.to_dict()) == {"tool", "error", "stack"}


async def test_call_that_never_ran_is_an_error_without_a_stack() -> None:
    """An unknown tool, for example."""
    execution, error = await _seen(_works, "nobody")
    assert isinstance(execution, ToolRun)
    assert isinstance(error, ToolFailure)
    assert (execution.success, error.stack) == (False, "")


async def test_observer_that_fails_stops_nothing(caplog: pytest.LogCaptureFixture) -> None:
    def broken(event: ToolRun | ToolFailure) -> None:
        raise RuntimeError("no database")

    seen: list[Any] = []
    options = CallOptions(observers=[broken, seen.append])
    assert not (await result(runner(tool(_works), options=options), "it")).is_error
    assert len(seen) == 1
    assert "an observer of calls failed" in caplog.text


async def test_log_has_a_line_a_call_with_its_secrets_masked(
    caplog: pytest.LogCaptureFixture,
) -> None:
    arguments = {"to": "bo", "api_key": "k-1", "text": "Bearer abcdefgh12345"}
    with caplog.at_level(logging.DEBUG, logger="tool_search.runner.execution.batch"):
        await runner(tool(_works)).results(calls(("it", arguments)), CONTEXT)
    (record,) = [r for r in caplog.records if r.name == "tool_search.runner.execution.batch"]
    line = record.getMessage()
    assert line.startswith("tool it finished after ")
    assert '"to":"bo"' in line
    assert "k-1" not in line
    assert "abcdefgh12345" not in line
    assert "fine" not in line


@pytest.mark.parametrize(
    "secret",
    [
        "sk-ant-api03-abcdefghijklmnop", "ghp_abcdefghijklmnopqrstuvwx", "xoxb-1234567890-abc",
        "AKIAABCDEFGHIJKLMNOP", "eyJhbGciOiJIUzI1.eyJzdWIiOiIxMjM0.abc", "sk_live_abcdefghijklmn",
        "-----BEGIN RSA PRIVATE KEY-----\nMIIE\n-----END RSA PRIVATE KEY-----",
    ],
)  # fmt: skip
def test_value_that_looks_like_a_secret_is_masked_wherever_it_stands(secret: str) -> None:
    written = redacted_json({"text": [f"use {secret} now"]})
    assert json.loads(written) == {"text": ["use *** now"]}


@pytest.mark.parametrize(
    "name",
    ["password", "db_passwd", "apiKey", "api_key", "X-Api-Key", "access_token", "client_secret",
     "Authorization", "cookie", "密码", "пароль", "PIN"],
)  # fmt: skip
def test_value_under_a_secrets_name_is_masked(name: str) -> None:
    assert redacted({"a": {name: {"x": 1}}}) == {"a": {name: "***"}}


def test_what_a_user_logs_in_with_is_masked_in_addresses() -> None:
    assert redacted("postgres://bo:hunter2@db:5432/x") == "postgres://***@db:5432/x"


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
        lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
        max_leaves=10,
    )
)
def test_anything_can_be_logged(value: Any) -> None:
    assert len(redacted_json(value)) <= 500
