"""Packages that are not there cost a plainer search, and one line each."""

from __future__ import annotations

import tarfile
from collections.abc import Callable
from io import BytesIO
from pathlib import Path

import pytest

from tests.astrbot.bot import AstrBot
from tests.astrbot.test_engines import INDEX, google_re2
from tests.astrbot.test_warnings import page
from tool_search.testing import StandInServer

ASK = "convert a length from metres to feet"
MISSING = """
packages = bot.library("core.values.packages")
packages._LOSSES = {"re2": ("google-re2", "patterns are not searched")}
await bot._star().star_cls.install_missing()
"""


def source_package(folder: Path) -> None:
    """Write google-re2 as source; pip compiles it where it finds no wheel and may do so."""
    files = {
        "pyproject.toml": (
            '[build-system]\nrequires = []\nbuild-backend = "builder"\nbackend-path = ["."]\n'
        ),
        "builder.py": f"open({str(folder / 'compiled')!r}, 'w').close()\nraise SystemExit(1)\n",
        "PKG-INFO": "Metadata-Version: 2.1\nName: google-re2\nVersion: 9.0\n",
    }
    with tarfile.open(folder / "google-re2-9.0.tar.gz", "w:gz") as made:
        for name, content in files.items():
            entry = tarfile.TarInfo(f"google-re2-9.0/{name}")
            entry.size = len(content.encode())
            made.addfile(entry, BytesIO(content.encode()))


@pytest.fixture(scope="module")
def bot(start_bot: Callable[..., AstrBot]) -> AstrBot:
    """One of its own: these tests install packages for it."""
    return start_bot(providers=("openai",), tools=40)


def test_a_package_that_cannot_be_installed_is_one_line(
    bot: AstrBot, server: StandInServer, tmp_path: Path
) -> None:
    source_package(tmp_path)
    arguments = f"--no-index --find-links {tmp_path}"
    bot.ask("run", code=INDEX.format(arguments=arguments, target=str(tmp_path)))
    bot.ask("run", code=MISSING)
    assert not (tmp_path / "compiled").exists()
    said = "google-re2 is not installed: patterns are not searched"
    assert len(page(bot, said)) == 1
    assert said in bot.say("/tool_search status", user="boss")
    assert "mcp convert_length" in bot.say(ASK, user="without")


def test_a_package_that_was_installed_is_used_at_once(
    bot: AstrBot, server: StandInServer, tmp_path: Path
) -> None:
    """The library is loaded again, and the bot's conversations go on."""
    google_re2(tmp_path)
    before = server.requests[-1].tool_names if server.requests else ()
    target = tmp_path / "packages"
    arguments = f"--no-index --find-links {tmp_path} --target {target}"
    bot.ask("run", code=INDEX.format(arguments=arguments, target=str(target)))
    bot.ask("run", code=MISSING)
    assert bot.ask("state")["wrapped"] == 1
    assert "mcp convert_length" in bot.say(ASK, user="without")
    assert server.requests[0].tool_names[: len(before)] == before
    assert "convert_length" in server.requests[0].tool_names
