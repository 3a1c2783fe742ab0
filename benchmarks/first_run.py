"""Measure the first minutes of a new user: `make demo` in a clone, and the weight of each extra.

Run: python benchmarks/first_run.py demo COMMIT...      seconds and megabytes of `make demo`
     python benchmarks/first_run.py extras [NAME...]    megabytes of each extra

pip's cache is off, so that every package is downloaded.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
_FIRST_QUESTION = "How many miles is a marathon"
_ENVIRONMENT = {**os.environ, "PIP_NO_CACHE_DIR": "1", "PIP_DISABLE_PIP_VERSION_CHECK": "1"}


def megabytes(folder: Path) -> float:
    """Return the size of a folder's files."""
    return sum(path.lstat().st_size for path in folder.rglob("*") if path.is_file()) / 1e6


def demo(commit: str) -> str:
    """Return the row of a commit: from the clone to the first line of the conversation."""
    with tempfile.TemporaryDirectory() as folder:
        began = time.monotonic()
        _run("git", "clone", "--quiet", str(ROOT), folder)
        _run("git", "-C", folder, "checkout", "--quiet", commit)
        first_output = first_line = 0.0
        with subprocess.Popen(
            ["make", "demo"],  # noqa: S607
            cwd=folder, env=_ENVIRONMENT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
            encoding="utf-8",
        ) as running:  # fmt: skip
            for line in running.stdout or ():
                first_output = first_output or time.monotonic() - began
                if _FIRST_QUESTION in line:
                    first_line = first_line or time.monotonic() - began
        if running.returncode:
            sys.exit(f"make demo fails at {commit}")
        size = sum(map(megabytes, Path(folder).glob(".venv*")))
        again = time.monotonic()
        _run("make", "demo", cwd=folder)
        again = time.monotonic() - again
    name = _output("git", "-C", str(ROOT), "log", "-1", "--format=%h %s", commit)
    return f"| {name} | {first_output:.0f} | {first_line:.0f} | {again:.1f} | {size:.0f} |"


def extras(names: list[str]) -> None:
    """Print a row for each extra: its packages and megabytes, without those of the base."""
    base = _weight("")
    print("| extra | packages | MB |\n|---|--:|--:|")
    print(f"| none | {base[0]} | {base[1]:.0f} |", flush=True)
    for name in names:
        packages, size = _weight(f"[{name}]")
        print(f"| `{name}` | {packages - base[0]} | {size - base[1]:.0f} |", flush=True)


def _weight(extra: str) -> tuple[int, float]:
    """Return the packages and megabytes that an installation brings, this one not counted."""
    with tempfile.TemporaryDirectory() as folder:
        _run(
            sys.executable, "-m", "pip", "install", "--quiet", "--no-compile",
            "--target", folder, f"{ROOT}{extra}",
        )  # fmt: skip
        place = Path(folder)
        own = megabytes(place / "tool_search")
        return len(list(place.glob("*.dist-info"))) - 1, megabytes(place) - own


def _run(*command: str, cwd: str | None = None) -> None:
    subprocess.run(command, cwd=cwd, env=_ENVIRONMENT, check=True, stdout=subprocess.DEVNULL)


def _output(*command: str) -> str:
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()


if __name__ == "__main__":
    _, what, *given = sys.argv
    if what == "demo":
        print("| commit | first output, s | first question, s | second run, s | MB |")
        print("|---|--:|--:|--:|--:|")
        for each in given:
            print(demo(each), flush=True)
    else:
        project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
        extras(given or list(project["optional-dependencies"]))
