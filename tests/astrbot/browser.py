"""A real Chromium before the WebUI of a bot."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from tests.astrbot.webui import PASSWORD, PLUGIN, USER

__all__ = ["CHROMIUM", "RED", "Browser", "missing_browser", "opened"]

CHROMIUM = os.environ.get("CHROMIUM") or shutil.which("chromium") or shutil.which("google-chrome")
RED = ".v-overlay--active .bg-error, .v-overlay--active .text-error, .v-snackbar .bg-error"
"""What the WebUI shows of an error: a message, or a dialog's text in red."""
_OPTIONS = [
    "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
    "--disable-background-networking", "--disable-component-update", "--disable-sync",
]  # fmt: skip
_PATIENCE_MS = 30_000


def missing_browser() -> str:
    """Return what is missing for these tests; empty if nothing is."""
    if find_spec("playwright") is None:
        return "pip install playwright"
    return "" if CHROMIUM else "no chromium: install it, or set CHROMIUM to its path"


@contextmanager
def opened(url: str, *, width: int = 1280, height: int = 800) -> Iterator[Browser]:
    """Open a browser that is logged in to a WebUI.

    Args:
        url: The WebUI's address.
        width: The window's width.
        height: Its height.
    """
    from playwright.sync_api import sync_playwright  # noqa: PLC0415 - an optional package

    with sync_playwright() as playwright:
        chromium = playwright.chromium.launch(executable_path=CHROMIUM, args=_OPTIONS)
        context = chromium.new_context(
            viewport={"width": width, "height": height}, locale="zh-CN", reduced_motion="reduce"
        )
        context.set_default_timeout(_PATIENCE_MS)
        browser = Browser(context.new_page(), url)
        browser.login()
        yield browser
        chromium.close()


class Browser:
    """One window.

    Args:
        page: Playwright's page.
        url: The WebUI's address.
    """

    def __init__(self, page: Any, url: str) -> None:
        self.page = page
        self._url = url

    def login(self) -> None:
        """Log in by the form."""
        self.page.goto(f"{self._url}/#/auth/login")
        self.page.locator("input[type=text]").first.fill(USER)
        self.page.locator("input[type=password]").first.fill(PASSWORD)
        self.page.keyboard.press("Enter")
        self.page.wait_for_function("localStorage.getItem('token')")

    def show(self, path: str, *, locale: str = "zh-CN", theme: str = "light") -> None:
        """Open a page of the WebUI."""
        stored = {"astrbot-locale": locale, "themeMode": theme}
        for key, value in stored.items():
            self.page.evaluate("([key, value]) => localStorage.setItem(key, value)", [key, value])
        self.page.goto("about:blank")
        self.page.goto(f"{self._url}/#/{path}")

    def upload(self, archive: Path) -> Any:
        """Install a plugin from its zip; return the dialog that follows."""
        self.show("extension")
        self.page.locator("button:has(i.mdi-plus):visible").last.click()
        self.page.locator("input[type=file]").first.set_input_files(str(archive))
        self.page.get_by_role("button", name="安装", exact=True).click()
        dialog = self.page.locator(".v-overlay--active .v-card", has_text="插件说明文档")
        dialog.wait_for(timeout=3 * _PATIENCE_MS)
        return dialog

    def settings(self, title: str, *, locale: str = "zh-CN") -> Any:
        """Open the settings of the plugin; return their dialog.

        Args:
            title: The plugin's name in the language.
            locale: The language.
        """
        self.show("extension", locale=locale)
        card = self.page.locator(".v-card:visible", has_text=title).last
        card.locator("button:has(i.mdi-cog)").first.click()
        dialog = self.page.locator(".v-overlay--active .v-card").first
        dialog.locator(".v-slider").first.wait_for()
        return dialog

    def plugin_page(self, tab: str = "overview", **look: str) -> Any:
        """Open the plugin's page; return its frame.

        Args:
            tab: The tab.
            look: The language and the theme.
        """
        self.show(f"plugin-view/{PLUGIN}/tool-search", **look)
        frame = self.page.frame_locator("iframe")
        frame.locator("main > h2").first.wait_for()
        return frame if tab == "overview" else self.tab(frame, tab)

    def tab(self, frame: Any, tab: str) -> Any:
        """Choose a tab of the plugin's page; return the frame."""
        frame.locator(f"#tab-{tab}").click()
        frame.locator(f'main[data-shown="{tab}"]').wait_for()
        return frame

    def log(self, part: str, expected: str) -> None:
        """Open the log page, search it, and wait for a text in its lines.

        Args:
            part: The text to search, which the page marks.
            expected: The text that must be shown then.
        """
        self.show("console")
        self.page.get_by_placeholder("搜索日志").first.fill(part)
        self.page.get_by_text(expected).last.wait_for()
