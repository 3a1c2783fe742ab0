"""Make the environment of `make demo`: what the demo imports, and nothing else.

Run: python .ci/demo_environment.py FOLDER

The library itself is not installed: the demo runs from the checkout. On a terminal one line
shows the progress; elsewhere each stage is a line.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import time
import tomllib
import venv
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
EXTRAS = ("anthropic", "openai", "cli")
_STAGE = re.compile(r"\s*(Collecting|Downloading|Using cached|Installing) (\S+)")
_VERBS = {"Collecting": "find", "Downloading": "download", "Using cached": "take"}


def requirements() -> list[str]:
    """Return what pip is to install."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    extras = project["optional-dependencies"]
    return [*project["dependencies"], *(each for extra in EXTRAS for each in extras[extra])]


class Progress:
    """One line that changes on a terminal, and a few lines elsewhere."""

    def __init__(self) -> None:
        self._on_terminal = sys.stdout.isatty()
        self._began = time.monotonic()

    def show(self, message: str) -> None:
        """Show a step; elsewhere than on a terminal nothing is shown."""
        if self._on_terminal:
            width = shutil.get_terminal_size().columns - 1
            line = f"{self.seconds:4.0f} s  {message}"
            sys.stdout.write(f"\r\x1b[K{line[:width]}")
            sys.stdout.flush()

    def say(self, message: str) -> None:
        """Print a line that remains."""
        start = "\r\x1b[K" if self._on_terminal else ""
        sys.stdout.write(f"{start}{message}\n")
        sys.stdout.flush()

    @property
    def seconds(self) -> float:
        """The seconds since the start."""
        return time.monotonic() - self._began


def make(folder: Path) -> None:
    """Make the environment; it ends the process if pip fails."""
    progress = Progress()
    wanted = requirements()
    progress.say(f"The demo needs {len(wanted)} packages; they come into {folder.name}, once.")
    # The pip of this Python installs there, which saves a copy of pip and its seconds.
    has_pip = find_spec("pip") is not None
    venv.create(folder, clear=True, with_pip=not has_pip)
    inside = str(folder / ("Scripts" if os.name == "nt" else "bin") / "python")
    pip = [sys.executable, "-m", "pip", "--python", inside] if has_pip else [inside, "-m", "pip"]
    options = ["--disable-pip-version-check", "--no-input", "--progress-bar=off", "--no-compile"]
    lines = []
    for line in _output([*pip, "install", *options, *wanted]):
        lines.append(line)
        if found := _STAGE.match(line):
            verb, name = found.groups()
            if verb == "Installing":
                progress.say("Downloaded; installing.")
            progress.show(f"{_VERBS.get(verb, 'install')} {name.rpartition('/')[2]}")
    size = sum(path.stat().st_size for path in folder.rglob("*") if path.is_file()) / 1e6
    progress.say(f"Ready after {progress.seconds:.0f} s, {size:.0f} MB.")


def _output(command: list[str]) -> Iterator[str]:
    """Yield the lines of a command; if it fails, end with all that it printed."""
    environment = {**os.environ, "PYTHONUNBUFFERED": "1"}
    seen = []
    with subprocess.Popen(  # noqa: S603  # pip, with requirements of this project
        command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    ) as running:
        for line in running.stdout or ():
            seen.append(line)
            yield line
    if running.returncode:
        sys.exit(f"{''.join(seen)}\npip could not install the demo's packages")


if __name__ == "__main__":
    make(Path(sys.argv[1]).absolute())
