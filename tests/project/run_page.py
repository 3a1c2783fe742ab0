"""Run the programs of a page in order, as its reader would, against the stand-in server.

Run: python tests/project/run_page.py PAGE...

Prints the output of each block, or the error of the page, as JSON. Addresses of the vendors
lead to the stand-in server and keys are made up; everything else is real: SDKs, HTTP, the library.
"""

from __future__ import annotations

import io
import json
import os
import re
import sys
import tempfile
import traceback
from collections.abc import Iterator
from contextlib import chdir, contextmanager, redirect_stdout
from dataclasses import replace
from pathlib import Path
from types import ModuleType
from typing import Any
from unittest.mock import patch

from tool_search.adapters.anthropic import AnthropicProvider
from tool_search.adapters.openai_chat import OpenAIChatProvider
from tool_search.adapters.openai_responses import OpenAIResponsesProvider
from tool_search.adapters.sdk.provider import SDKProvider
from tool_search.testing import KeywordModel, StandInServer

ROOT = Path(__file__).resolve().parents[2]
_BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.DOTALL | re.MULTILINE)
KEYS = ("ANTHROPIC_API_KEY", "OPENAI_API_KEY")


def blocks(path: Path, language: str) -> list[str]:
    """Return the text of each code block of a language."""
    text = path.read_text(encoding="utf-8")
    return [block[2] for block in _BLOCK.finditer(text) if block[1] == language]


def expected_outputs(path: Path) -> list[str | None]:
    """Return what the page says that each program prints; None if it does not say."""
    found = [(block[1], block[2]) for block in _BLOCK.finditer(path.read_text(encoding="utf-8"))]
    following = [*found[1:], ("", "")]
    return [
        after[1] if after[0] == "text" else None
        for block, after in zip(found, following, strict=False)
        if block[0] == "python"
    ]


@contextmanager
def _at(provider: type[SDKProvider], address: str) -> Iterator[None]:
    """Have the vendor's own endpoint at an address; profiles stay those of the vendor."""
    with patch.object(provider, "_sdk", replace(provider._sdk, base_url=address)):
        yield


@contextmanager
def stand_in_services() -> Iterator[None]:
    """Answer for the vendors: a folder with `bot.yaml`, keys, and their addresses."""
    with (
        StandInServer(model=KeywordModel()) as server,
        tempfile.TemporaryDirectory() as folder,
        _at(AnthropicProvider, server.anthropic_base_url),
        _at(OpenAIChatProvider, server.openai_base_url),
        _at(OpenAIResponsesProvider, server.openai_base_url),
        patch.dict(os.environ, dict.fromkeys(KEYS, "unused")),
        patch.dict(os.environ, OPENAI_BASE_URL=server.openai_base_url, XDG_DATA_HOME=folder),
        chdir(folder),
    ):
        Path("bot.yaml").write_text((ROOT / "examples" / "bot.yaml").read_text("utf-8"), "utf-8")
        yield


def run(path: Path) -> list[str]:
    """Return what each program of the page prints; later ones may use names of earlier ones."""
    page = ModuleType("__main__")
    sys.modules["__main__"] = page
    printed = []
    for number, block in enumerate(blocks(path, "python")):
        output = io.StringIO()
        with redirect_stdout(output):
            exec(compile(block, f"{path.name}, block {number}", "exec"), page.__dict__)  # noqa: S102  # our own page
        printed.append(output.getvalue())
    return printed


def main() -> None:
    """Run the pages that are named."""
    results: dict[str, dict[str, Any]] = {}
    for name in sys.argv[1:]:
        with stand_in_services():
            try:
                results[name] = {"printed": run(ROOT / name)}
            except Exception:  # noqa: BLE001  # whatever a page raises is reported with its name
                results[name] = {"error": traceback.format_exc()}
    sys.stdout.write(json.dumps(results))


if __name__ == "__main__":
    main()
