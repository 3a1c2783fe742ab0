"""A checkout that is not installed, and a copy inside another project's `vendor` folder."""

# ruff: noqa: S603  (the processes are our own command)

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import tool_search

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(params=["checkout", "vendored"])
def source(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """Return the folder for `PYTHONPATH`."""
    if request.param == "checkout":
        return ROOT
    vendor = tmp_path / "project" / "vendor"
    ignored = shutil.ignore_patterns("__pycache__")
    for name in ("tool_search", "adapters", "i18n"):
        shutil.copytree(ROOT / name, vendor / name, symlinks=True, ignore=ignored)
    return vendor


def _run(source: Path, folder: Path, *arguments: str) -> str:
    done = subprocess.run(
        [sys.executable, *arguments],
        capture_output=True,
        text=True,
        encoding="utf-8",
        check=False,
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(source)},
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_a_checkout_that_is_not_installed_imports(source: Path, tmp_path: Path) -> None:
    code = (
        "import tool_search.adapters.anthropic, tool_search.i18n\n"
        "print(tool_search.__file__, tool_search.adapters.anthropic.AnthropicProvider.__name__)"
    )
    out = _run(source, tmp_path, "-c", code)
    assert out.split() == [str(source / "tool_search" / "__init__.py"), "AnthropicProvider"]


def test_a_checkout_that_is_not_installed_runs_the_command(
    source: Path, tmp_path: Path, catalog: Path
) -> None:
    options = ("--catalog", str(catalog), "--query", "mail", "--json")
    found = json.loads(_run(source, tmp_path, "-m", "tool_search", "search", *options))
    assert found["matches"]
    assert _run(source, tmp_path, "-m", "tool_search", "--version").strip() == (
        tool_search.__version__
    )
