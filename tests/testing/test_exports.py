"""The names of `tool_search.testing`."""

from __future__ import annotations

import subprocess
import sys

import pytest

from tool_search import testing

NAMES: list[str] = vars(testing)["__all__"]


def test_every_listed_name_can_be_used_and_is_found_by_dir() -> None:
    assert [name for name in NAMES if getattr(testing, name) is None] == []
    assert set(NAMES) <= set(dir(testing))


def test_a_wrong_name_gets_the_nearest_ones() -> None:
    with pytest.raises(AttributeError, match="did you mean StandInServer"):
        getattr(testing, "StandinServer")  # noqa: B009 - type checkers know that it is wrong


def test_checking_a_request_starts_no_server_module() -> None:
    code = (
        "import sys\nfrom tool_search.testing import check_anthropic\n"
        "print('tool_search.testing.server.server' in sys.modules)"
    )
    done = subprocess.run(  # noqa: S603 - our own code
        [sys.executable, "-c", code], capture_output=True, check=True, text=True
    )
    assert done.stdout.strip() == "False"
