"""What an operator meets in the WebUI: the upload, and the plugin's page."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from importlib.util import find_spec
from pathlib import Path

import pytest

from tests.astrbot.bot import AstrBot
from tests.astrbot.webui import PLUGIN, WebUI
from tool_search.testing import StandInServer

pytestmark = pytest.mark.skipif(
    find_spec("astrbot") is None or find_spec("astrbot.api.web") is None,
    reason="this AstrBot has no pages for plugins",
)
ASK = "convert a length from metres to feet"


@pytest.fixture(scope="module")
def uploaded(
    start_bot: Callable[..., AstrBot], plugin_zip: Path
) -> Iterator[tuple[AstrBot, WebUI, dict[str, object]]]:
    bot = start_bot(providers=("openai",), tools=40, install=False)
    webui = WebUI(bot)
    before = len(bot.log)
    answer = {**webui.upload(plugin_zip), "log": bot.log[before:]}
    yield bot, webui, answer
    webui.close()


@pytest.fixture
def webui(uploaded: tuple[AstrBot, WebUI, dict[str, object]], server: StandInServer) -> WebUI:
    return uploaded[1]


@pytest.fixture
def bot(uploaded: tuple[AstrBot, WebUI, dict[str, object]], server: StandInServer) -> AstrBot:
    return uploaded[0]


def test_nothing_is_red_after_the_upload(
    uploaded: tuple[AstrBot, WebUI, dict[str, object]], webui: WebUI
) -> None:
    """The WebUI opens the README as soon as a plugin is installed, and shows an error in red."""
    answer = uploaded[2]
    assert answer["status"] == "ok", answer
    readme = webui.get(f"plugins/{PLUGIN}/readme")
    assert readme["status"] == "ok", readme
    assert "工具搜索" in readme["data"]["content"]
    changes = webui.get(f"plugins/{PLUGIN}/changelog")
    assert changes["status"] == "ok", changes
    assert "0.1.0" in changes["data"]["content"]
    said = [
        line
        for line in str(answer["log"]).splitlines()
        if re.search(r"\[ERRO|\[WARN|Traceback", line)
    ]
    assert said == []


def test_the_page_is_registered_and_served(webui: WebUI) -> None:
    parts = webui.get(f"plugins/{PLUGIN}/views")["data"]["components"]
    assert [part["page_name"] for part in parts if part["type"] == "page"] == ["tool-search"]
    entry = webui.get(f"plugins/{PLUGIN}/views/tool-search")["data"]
    for asset, part in (("", "<main"), ("app.js", "bridge.ready"), ("style.css", "data-theme")):
        path, _, query = entry["content_path"].partition("?")
        served = webui.client.get(f"{path}{asset}?{query}")
        assert served.status_code == 200
        assert part in served.text


def test_only_those_who_are_logged_in_see_the_facts(webui: WebUI) -> None:
    path = f"/api/v1/plugins/extensions/{PLUGIN}/overview"
    assert webui.client.get(path, headers={"Authorization": ""}).status_code == 401


def test_the_overview_says_what_status_says(bot: AstrBot, webui: WebUI) -> None:
    bot.say("/new", user="boss")
    bot.say(ASK, user="boss")
    facts = webui.page("overview")
    assert facts["mode"] == "auto"
    assert (facts["total"], facts["core"], facts["deferred"]) == (40, 2, 38)
    assert facts["providers"] == [{"provider": "openai", "strategy": "generic"}]
    assert facts["requests"] >= 2
    assert facts["saved"] >= facts["saved_today"] > 0
    assert f"about {facts['saved']} tokens" in bot.say("/tool_search status", user="boss")


def test_problems_with_settings_are_in_the_language_of_the_webui(
    bot: AstrBot, webui: WebUI
) -> None:
    bot.ask("settings", changes={"max_results": 0})
    try:
        (said,) = webui.page("overview", locale="zh-CN")["problems"]
        assert said.startswith("max_results：不允许 0；允许：1 到 100 的整数")
        (said,) = webui.page("overview")["problems"]
        assert said.startswith("max_results: 0 is not allowed")
    finally:
        bot.ask("settings", changes={"max_results": 5})


def test_the_table_has_core_found_and_switched_off_tools(bot: AstrBot, webui: WebUI) -> None:
    bot.say("/new", user="boss")
    bot.say(ASK, user="boss")
    listed = webui.page("tools")["tools"]
    other = [row["name"] for row in listed if row["kind"] == "deferred"][-1]
    bot.ask("switch", tool=other, active=False)
    try:
        rows = {row["name"]: row for row in webui.page("tools")["tools"]}
    finally:
        bot.ask("switch", tool=other, active=True)
    assert rows["future_task"]["kind"] == "core"
    assert rows["convert_length"]["kind"] == "deferred"
    assert rows["convert_length"]["found"] >= 1
    assert rows["convert_length"]["called"] >= 1
    assert rows["convert_length"]["tokens"] > 20
    assert rows[other]["kind"] == "off"
    assert any(row["kind"] == "deferred" and not row["found"] for row in rows.values())


def test_a_query_is_tried_with_its_reasons(bot: AstrBot, webui: WebUI) -> None:
    tried = webui.page("search", query="convert length zzyzx")
    assert tried["hits"][0]["name"] == "convert_length"
    assert tried["unmatched"] == ["zzyzx"]
    words = {word["word"]: word for word in tried["hits"][0]["reasons"]["words"]}
    assert words["length"]["share"] > 0
    assert "name" in words["length"]["fields"]
    assert webui.page("search", query="qqqq zzzz")["hits"] == []
    assert webui.page("search", query="  ")["hits"] == []
    assert webui.page("search", query="x" * 20_000)["hits"] == []


def test_what_was_learned_can_be_erased(bot: AstrBot, webui: WebUI) -> None:
    bot.say("/new", user="boss")
    bot.say(ASK, user="boss")
    bot.say("thanks", user="boss")
    learned = {one["name"]: one["words"] for one in webui.page("learned")["tools"]}
    assert "length" in learned["convert_length"]
    path = f"/api/v1/plugins/extensions/{PLUGIN}/forget"
    erased = webui.client.post(path, json={"tool": "convert_length"}).json()
    assert erased["erased"] >= 1
    assert "convert_length" not in {one["name"] for one in webui.page("learned")["tools"]}
    bodies: tuple[object, ...] = ([], "x", {"tool": 3}, {})
    for odd in bodies:
        assert webui.client.post(path, json=odd).json()["erased"] == 0


def test_a_conversation_has_its_timeline(bot: AstrBot, webui: WebUI) -> None:
    bot.say("/new", user="boss")
    bot.say(ASK, user="boss")
    newest = webui.page("conversations")["conversations"][0]
    assert newest["place"].endswith("boss")
    facts = webui.page("conversation", place=newest["place"], id=newest["id"])
    kinds = [moment["kind"] for moment in facts["moments"]]
    assert kinds == ["request", "search", "request", "call", "request"]
    assert "convert_length" in facts["moments"][1]["names"]
    assert facts["moments"][0]["tokens"] < facts["moments"][0]["full"]
    assert "convert_length" in facts["state"]["found"]
    assert facts["state"]["mode"] == "tool_search"
    assert webui.page("conversation", place="no", id="one")["state"] is None


def test_every_text_of_the_page_is_there_in_three_languages(plugin_zip: Path) -> None:
    folder = Path(__file__).resolve().parents[2] / "examples" / PLUGIN
    code = (folder / "pages" / "tool-search" / "app.js").read_text(encoding="utf-8")
    wanted = set(re.findall(r'\b(?:t|nothing)\("(\w+)"', code))
    assert len(wanted) > 60
    for path in (folder / ".astrbot-plugin" / "i18n").glob("*.json"):
        said = json.loads(path.read_text(encoding="utf-8"))["pages"]["tool-search"]
        assert wanted <= set(said), path
        assert all(said.values())


def test_no_route_is_left_after_uninstalling(bot: AstrBot, webui: WebUI) -> None:
    """The last test of this file: the plugin is gone."""
    assert bot.ask("state")["routes"]
    bot.ask("uninstall")
    assert bot.ask("state")["routes"] == []
    assert webui.page("overview")["status"] == "error"
