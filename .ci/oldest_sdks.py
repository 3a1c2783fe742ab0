"""Prints what pip is to install for the oldest SDKs that `pyproject.toml` allows."""

import sys
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
EXTRAS = ("anthropic", "openai")


def oldest(extras: dict[str, list[str]]) -> list[str]:
    """The requirement of each SDK's extra, held to its lower bound."""
    held = []
    for extra in EXTRAS:
        (requirement,) = extras[extra]
        name, bound, version = requirement.partition(">=")
        if not bound or "," in version:
            sys.exit(f"pyproject.toml: {requirement!r} must have a lower bound and no other")
        held.append(f"{name}=={version}")
    return held


if __name__ == "__main__":
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    print(*oldest(project["optional-dependencies"]))
