"""Take the pictures of AstrBot's WebUI for the guide and for the plugin's README.

    .venv-astrbot/bin/python docs/pictures/astrbot_webui.py

Needs the environment that `make test-astrbot` makes, and a Chromium. The bot is a real AstrBot
with 120 tools; a stand-in server on loopback answers as its provider.
"""

from __future__ import annotations

import io
import sys
import tempfile
from pathlib import Path
from runpy import run_path
from typing import Any

FOLDER = Path(__file__).resolve().parent
ROOT = FOLDER.parents[1]
sys.path.insert(0, str(ROOT))

from PIL import Image  # noqa: E402 - AstrBot has it

from tests.astrbot.bot import AstrBot, BotSetup  # noqa: E402 - the checkout's own
from tests.astrbot.browser import Browser, missing_browser, opened  # noqa: E402
from tests.astrbot.webui import PLUGIN, WebUI  # noqa: E402
from tool_search.testing import KeywordModel, StandInServer  # noqa: E402

README_PICTURES = ROOT / "examples" / PLUGIN / "pictures"
_NAMES = {"zh-CN": "工具搜索", "en-US": "Tool search"}
_MESSAGES = (
    ("ann", "convert a length from metres to feet"),
    ("ann", "thanks"),
    ("ben", "请把摄氏度换算成华氏度"),
    ("ben", "好的"),
    ("ann", "how old is a person who was born in 1990"),
)
_COLOURS = 128
_SETTLE_MS = 1_500


def take(browser: Browser, *targets: Path) -> None:
    """Write what the window shows, in few colours."""
    browser.page.wait_for_timeout(_SETTLE_MS)
    shown = Image.open(io.BytesIO(browser.page.screenshot())).convert("RGB")
    small = shown.quantize(_COLOURS, dither=Image.Dither.NONE)
    for target in targets:
        target.parent.mkdir(parents=True, exist_ok=True)
        small.save(target, optimize=True)
        sys.stdout.write(f"{target.relative_to(ROOT)}: {target.stat().st_size:,} bytes\n")


def take_all(browser: Browser, bot: AstrBot, archive: Path) -> None:
    """Take the pictures in the order in which an operator meets the plugin."""
    browser.upload(archive)
    take(browser, FOLDER / "astrbot-upload.png")
    for user, text in _MESSAGES:
        bot.say(text, user=user)
    for locale, name in _NAMES.items():
        browser.settings(name, locale=locale)
        take(browser, FOLDER / f"astrbot-settings-{locale}.png")
        browser.plugin_page(locale=locale)
        file = f"page-{locale}.png"
        take(browser, FOLDER / f"astrbot-{file}", README_PICTURES / file)
    frame: Any = browser.plugin_page("search", locale="zh-CN")
    frame.locator("#query").fill("把米换算成英尺")
    frame.locator("button[type=submit]").click()
    frame.locator(".hit summary").first.click()
    take(browser, FOLDER / "astrbot-page-search.png")
    browser.plugin_page("tools", locale="en-US", theme="dark")
    take(browser, FOLDER / "astrbot-page-tools-dark.png")
    browser.plugin_page("conversations", locale="en-US")
    take(browser, FOLDER / "astrbot-page-conversation.png")
    bot.ask("settings", changes={"max_results": 999})
    browser.log("max_results", "999 is not allowed")
    take(browser, FOLDER / "astrbot-log.png")


def main() -> None:
    """Start the bot, and take the pictures."""
    if missing := missing_browser():
        sys.exit(f"a browser is missing: {missing}")
    build = run_path(str(ROOT / ".ci" / "astrbot_plugin.py"))["build"]
    with (
        tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder,
        StandInServer(model=KeywordModel()) as server,
    ):
        archive = Path(folder) / f"{PLUGIN}.zip"
        build(archive)
        # The time of day would be in each message, and so in the queries of the stand-in model.
        quiet = {"agent_runner": {"config": {"misc": {"datetime_system_prompt": False}}}}
        setup = BotSetup(server=server, plugin_zip=None, tools=120)
        bot = AstrBot(Path(folder) / "root", setup)
        bot.start()
        try:
            bot.ask(
                "configure",
                changes={**quiet, "provider_settings": {"datetime_system_prompt": False}},
            )
            webui = WebUI(bot)
            with opened(webui.url) as browser:
                take_all(browser, bot, archive)
            webui.close()
        finally:
            bot.stop()


if __name__ == "__main__":
    main()
