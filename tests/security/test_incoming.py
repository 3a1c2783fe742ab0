"""Secrets in addresses, codes and other libraries' logs; closing where POSIX names are missing."""

from __future__ import annotations

import logging
import subprocess
import sys
from importlib import import_module

import httpx2
import pytest
from pydantic import SecretStr

from tool_search.adapters.sdk.failures import Failure, raise_failure
from tool_search.core.values.redaction import redacted_text
from tool_search.errors import ProviderError
from tool_search.testing.hostile import Bounds, HostileServer

KEY = "planted_0123456789"


@pytest.mark.parametrize(
    "text", [f"redis://:{KEY}@host:6379/0", f"pw={KEY}", f"auth={KEY} x", f"a;sig={KEY}"]
)
def test_a_secret_of_these_forms_is_redacted(text: str) -> None:
    assert KEY not in redacted_text(text)


def test_a_key_in_the_code_of_an_error_is_masked() -> None:
    failure = Failure(detail="no", status=401, code=f"invalid {KEY}")
    with pytest.raises(ProviderError) as caught:
        raise_failure(failure, provider="p", secret=SecretStr(KEY))
    assert KEY not in f"{caught.value} {caught.value.code}"


@pytest.mark.parametrize("library", ["httpx", "httpx2"])
def test_the_line_of_an_http_client_shows_no_key(
    library: str, caplog: pytest.LogCaptureFixture
) -> None:
    import_module("tool_search.adapters.sdk.connection")  # all of our clients are made there
    caplog.set_level(logging.INFO)
    logging.getLogger(library).info("HTTP Request: %s %s", "POST", f"https://a.example/?key={KEY}")
    assert "https://a.example/?key=***" in caplog.text
    assert KEY not in caplog.text


def test_what_the_hostile_server_does_itself_counts_for_nobody() -> None:
    with HostileServer() as server, Bounds() as bounds:
        assert len(httpx2.get(server.page("many")).content) > 10_000_000
    assert bounds.longest == ""


def test_the_hostile_server_is_there_where_the_names_of_posix_are_missing() -> None:
    """As on Windows; `Bounds` measures the CPU of callbacks there, and no memory."""
    program = (
        "import sys; sys.modules['resource'] = None\n"
        "from tool_search.testing.hostile import Bounds, HostileServer\n"
        "with HostileServer(), Bounds() as bounds: pass\n"
        "bounds.check(); assert bounds.spent_mb == 0"
    )
    done = subprocess.run(  # noqa: S603 - this interpreter
        [sys.executable, "-c", program], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
