"""Engines that need packages: refused until they can run, installed by AstrBot's installer."""

from __future__ import annotations

import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.astrbot.bot import AstrBot, lists
from tool_search.testing import StandInServer

ASK = "convert a length from metres to feet"
INDEX = """
import os, sys
from astrbot.core import pip_installer
os.environ["PIP_RETRIES"] = "0"
os.environ["PIP_INDEX_URL"] = "http://127.0.0.1:9/simple"
pip_installer.pypi_index_url = "http://127.0.0.1:9/simple"
pip_installer.pip_install_arg = {arguments!r}
sys.path.append({target!r})
"""


def google_re2(folder: Path) -> None:
    """Write a wheel of that name, which holds nothing."""
    wheel = folder / "google_re2-9.0-py3-none-any.whl"
    about = "google_re2-9.0.dist-info"
    with zipfile.ZipFile(wheel, "w") as made:
        made.writestr("re2.py", "")
        made.writestr(
            f"{about}/METADATA", "Metadata-Version: 2.1\nName: google-re2\nVersion: 9.0\n"
        )
        made.writestr(
            f"{about}/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
        )
        made.writestr(f"{about}/RECORD", "")


@pytest.fixture(scope="module")
def bot(start_bot: Callable[..., AstrBot]) -> AstrBot:
    """One whose settings name an engine that cannot run."""
    return start_bot(
        providers=("openai",), tools=40, settings={"engine": "hybrid", "language": "en-US"}
    )


def test_an_engine_without_its_packages_is_told_and_replaced(
    bot: AstrBot, server: StandInServer
) -> None:
    bot.say(ASK, user="boss")
    assert "convert_length" in lists(server.requests)[-1]
    status = bot.say("/tool_search status", user="boss")
    assert "engine: 'hybrid' is not allowed; allowed: bm25, rank_bm25, lexical" in status
    assert "/tool_search install hybrid" in status
    answer = bot.say("/tool_search set engine regex", user="boss")
    assert "regex needs packages of 2 MB" in answer
    assert "hybrid (37 MB installed)" in bot.say("/tool_search install", user="boss")


def test_a_failed_installation_has_its_cause(
    bot: AstrBot, server: StandInServer, tmp_path: Path
) -> None:
    bot.ask("run", code=INDEX.format(arguments="", target=str(tmp_path)))
    answer = bot.say("/tool_search install regex", user="boss")
    assert "cannot answer" in answer
    assert "google-re2" in answer


def test_an_installed_engine_can_be_chosen(
    bot: AstrBot, server: StandInServer, tmp_path: Path
) -> None:
    """From a wheel on this machine, into a folder of its own."""
    google_re2(tmp_path)
    target = tmp_path / "packages"
    arguments = f"--no-index --find-links {tmp_path} --target {target}"
    bot.ask("run", code=INDEX.format(arguments=arguments, target=str(target)))
    assert "regex can run" in bot.say("/tool_search install regex", user="boss")
    assert "engine is regex" in bot.say("/tool_search set engine regex", user="boss")
    bot.say("/tool_search set engine default", user="boss")


def test_others_install_nothing(bot: AstrBot, server: StandInServer) -> None:
    assert "packages" not in bot.say("/tool_search install", user="somebody")
