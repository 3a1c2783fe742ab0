"""The upload, the settings, the plugin's page and the log page, in a real Chromium."""

from __future__ import annotations

import json
import zipfile
from collections.abc import Callable, Iterator
from importlib.util import find_spec
from pathlib import Path

import pytest

from tests.astrbot.bot import AstrBot
from tests.astrbot.browser import RED, Browser, missing_browser, opened
from tests.astrbot.webui import PLUGIN, WebUI
from tool_search.testing import StandInServer

pytestmark = [
    pytest.mark.skipif(
        find_spec("astrbot") is None or find_spec("astrbot.api.web") is None,
        reason="this AstrBot has no pages for plugins",
    ),
    pytest.mark.skipif(bool(missing_browser()), reason=missing_browser()),
]
I18N = Path(__file__).resolve().parents[2] / "examples" / PLUGIN / ".astrbot-plugin" / "i18n"
TEXTS = {path.stem: json.loads(path.read_text(encoding="utf-8")) for path in I18N.glob("*.json")}
ASK = 'convert a length from metres to feet <img src=x onerror="document.title=1">'


@pytest.fixture(scope="module")
def bot(start_bot: Callable[..., AstrBot]) -> AstrBot:
    return start_bot(providers=("openai",), tools=120, install=False)


@pytest.fixture(scope="module")
def browser(bot: AstrBot) -> Iterator[Browser]:
    webui = WebUI(bot)
    with opened(webui.url) as browser:
        yield browser
    webui.close()


def test_a_plugin_without_readme_is_red(browser: Browser, plugin_zip: Path, tmp_path: Path) -> None:
    """AstrBot shows it so: the next test would see it."""
    bare = tmp_path / plugin_zip.name
    with zipfile.ZipFile(plugin_zip) as whole, zipfile.ZipFile(bare, "w") as made:
        for entry in whole.infolist():
            if not entry.filename.endswith("/README.md"):
                made.writestr(entry, whole.read(entry))
    browser.upload(bare)
    browser.page.locator(RED).first.wait_for()


def test_nothing_is_red_after_the_upload(browser: Browser, plugin_zip: Path) -> None:
    dialog = browser.upload(plugin_zip)
    dialog.get_by_role("heading", name="工具搜索").wait_for()
    assert browser.page.locator(RED).count() == 0


@pytest.mark.parametrize("locale", ["zh-CN", "en-US", "ru-RU"])
def test_settings_are_in_the_language_of_the_webui(browser: Browser, locale: str) -> None:
    dialog = browser.settings(TEXTS[locale]["metadata"]["display_name"], locale=locale)
    text = dialog.inner_text()
    for setting in TEXTS[locale]["config"].values():
        assert setting["description"] in text


@pytest.mark.parametrize("locale", ["zh-CN", "en-US", "ru-RU"])
@pytest.mark.parametrize("theme", ["light", "dark"])
def test_the_page_has_the_language_and_the_theme(browser: Browser, locale: str, theme: str) -> None:
    said = TEXTS[locale]["pages"]["tool-search"]
    frame = browser.plugin_page(locale=locale, theme=theme)
    assert said["tools_now"] in frame.locator("main").inner_text()
    back = frame.locator("body").evaluate("body => getComputedStyle(body).backgroundColor")
    assert (back == "rgb(255, 255, 255)") is (theme == "light")
    for tab in ("tools", "search", "learned", "conversations"):
        browser.tab(frame, tab)
        assert frame.locator(f"#tab-{tab}").inner_text() == said[f"tab_{tab}"]
        assert frame.locator("#problem").is_hidden()


def test_the_table_is_filtered(browser: Browser, bot: AstrBot, server: StandInServer) -> None:
    bot.say("/new", user="ann")
    bot.say(ASK, user="ann")
    frame = browser.plugin_page("tools", locale="en-US")
    rows = frame.locator("main table").first.locator("tbody tr")
    assert rows.count() == 120
    frame.locator("#filter").select_option("found")
    found = rows.count()
    assert 1 <= found < 20
    assert any("convert_length" in row for row in rows.all_inner_texts())
    frame.locator("#filter").select_option("never")
    assert rows.count() == 118 - found
    frame.locator("#word").fill("convert_temperature")
    assert rows.count() <= 5


def test_a_long_name_leaves_room_for_the_other_columns(browser: Browser, bot: AstrBot) -> None:
    bot.ask("run", code=LONG)
    try:
        frame = browser.plugin_page("tools", locale="en-US")
        frame.locator("#word").fill("x" * 200)
        assert frame.locator("tbody tr").count() == 1
        hidden = frame.locator(".scroll").first.evaluate("box => box.scrollWidth - box.clientWidth")
    finally:
        bot.ask("run", code="bot.lifecycle.provider_manager.llm_tools.func_list.pop()")
    assert hidden == 0


LONG = """
from astrbot.core.agent.tool import FunctionTool
tool = FunctionTool(name="x" * 250, description="Long.", parameters={"type": "object"})
tool.handler_module_path = "data.plugins.astrbot_plugin_toolbox.main"
bot.lifecycle.provider_manager.llm_tools.func_list.append(tool)
"""


def test_a_query_is_tried(browser: Browser, server: StandInServer) -> None:
    frame = browser.plugin_page("search", locale="en-US")
    frame.locator("#query").fill("convert length")
    frame.locator("button[type=submit]").click()
    frame.locator(".hit summary").first.click()
    text = frame.locator(".hit").first.inner_text()
    assert "convert_length" in text
    assert "name 0." in text


def test_texts_of_others_are_shown_as_text(
    browser: Browser, bot: AstrBot, server: StandInServer
) -> None:
    frame = browser.plugin_page("conversations", locale="en-US")
    assert "<img src=x onerror=" in frame.locator("ol.timeline").inner_text()
    assert frame.locator("img").count() == 0
    assert browser.page.title() != "1"


def test_what_was_learned_is_erased(browser: Browser, bot: AstrBot, server: StandInServer) -> None:
    bot.say("/new", user="ben")
    bot.say("convert a length from metres to feet", user="ben")
    bot.say("thanks", user="ben")
    frame = browser.plugin_page("learned", locale="en-US")
    frame.locator("button[data-tool]").first.wait_for()
    name = frame.locator("button[data-tool]").first.get_attribute("data-tool")
    frame.locator(f'button[data-tool="{name}"]').click()
    frame.get_by_role("status").wait_for()
    assert frame.locator(f'button[data-tool="{name}"]').count() == 0


def test_a_warning_of_the_plugin_is_on_the_log_page(browser: Browser, bot: AstrBot) -> None:
    bot.ask("settings", changes={"max_results": 999})
    browser.log("max_results", "999 is not allowed")
