"""The packages that importing an adapter needs, and the errors if one is missing."""

from __future__ import annotations

import subprocess
import sys

import pytest

WITHOUT_SDK = (
    "anthropic.history",
    "anthropic.reply",
    "anthropic.wire",
    "openai_chat.history",
    "openai_chat.reply",
    "openai_chat.wire",
    "openai_responses.history",
    "openai_responses.reply",
    "openai_responses.tools",
    "openai_responses.wire",
)


def run(code: str) -> subprocess.CompletedProcess[str]:
    """Return the code in a fresh interpreter."""
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)  # noqa: S603 - our own code


def test_import_of_the_formats_loads_no_sdk() -> None:
    modules = ", ".join(f"tool_search.adapters.{name}" for name in WITHOUT_SDK)
    check = "assert not {'anthropic', 'openai', 'httpx', 'httpx2'} & set(sys.modules)"
    done = run(f"import sys, tool_search.adapters, {modules}; {check}")
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize(
    ("module", "sdk", "extra"),
    [
        ("anthropic.provider", "anthropic", "anthropic"),
        ("anthropic_runner", "anthropic.lib.tools", "anthropic"),
        ("openai_chat.provider", "openai", "openai"),
        ("openai_responses.provider", "openai", "openai"),
        ("openai_agents", "agents", "openai-agents"),
        ("pydantic_ai", "pydantic_ai", "pydantic-ai"),
    ],
)
def test_import_without_the_sdk_names_the_extra(module: str, sdk: str, extra: str) -> None:
    done = run(f"import sys; sys.modules[{sdk!r}] = None; import tool_search.adapters.{module}")
    assert done.returncode == 1
    assert f"pip install 'tool-search-middleware[{extra}]'" in done.stderr


def test_errors_of_http_libraries_are_of_those_that_are_loaded() -> None:
    check = "assert len(http_errors()) == 1 and not {'httpx', 'httpx2'} & set(sys.modules)"
    done = run(f"import sys; from tool_search.adapters.sdk.failures import http_errors; {check}")
    assert done.returncode == 0, done.stderr
