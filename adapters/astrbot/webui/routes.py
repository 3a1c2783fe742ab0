"""The page's addresses in AstrBot, which lets only those through who are logged in to the WebUI.

Source: https://docs.astrbot.app/en/dev/star/guides/plugin-pages.html
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from tool_search.adapters.astrbot.preferences import database_errors
from tool_search.adapters.astrbot.reports import MISTAKES
from tool_search.adapters.astrbot.webui.page import ToolSearchPage

__all__ = ["PageRoutes"]

_log = logging.getLogger(__name__)


class PageRoutes:
    """The routes of one page.

    Args:
        page: Gives the facts.
        context: AstrBot's context for plugins.
        plugin: The plugin's name, which each route begins with.
    """

    def __init__(self, page: ToolSearchPage, context: Any, plugin: str) -> None:
        self._page = page
        self._context = context
        self._plugin = plugin
        self._handlers: list[Callable[[], Awaitable[Any]]] = []

    def install(self) -> bool:
        """Register the routes; return False if this AstrBot has no pages."""
        try:
            import astrbot.api.web  # noqa: F401, PLC0415  # 4.29 has it
        except ModuleNotFoundError:
            _log.info("this AstrBot has no pages for plugins: /tool_search status has the facts")
            return False
        page = self._page
        answers: Mapping[tuple[str, str], Callable[[Any], Awaitable[dict[str, Any]]]] = {
            ("GET", "overview"): lambda given: page.overview(given("locale")),
            ("GET", "tools"): lambda _: page.tools(),
            ("GET", "search"): lambda given: page.search(given("query")),
            ("GET", "learned"): lambda _: page.learned(),
            ("POST", "forget"): lambda given: page.forget(given("tool")),
            ("GET", "conversations"): lambda _: page.conversations(),
            ("GET", "conversation"): lambda given: page.conversation(given("place"), given("id")),
        }
        for (method, name), answer in answers.items():
            handler = self._handler(method, answer)
            self._handlers.append(handler)
            self._context.register_web_api(
                f"/{self._plugin}/{name}", handler, [method], f"tool search: {name}"
            )
        return True

    def remove(self) -> None:
        """Remove the routes, which AstrBot itself keeps when a plugin goes."""
        routes = self._context.registered_web_apis if self._handlers else []
        routes[:] = [route for route in routes if route[1] not in self._handlers]
        self._handlers.clear()

    @staticmethod
    def _handler(
        method: str, answer: Callable[[Any], Awaitable[dict[str, Any]]]
    ) -> Callable[[], Awaitable[Any]]:
        async def handle() -> Any:
            from astrbot.api.web import error_response, json_response, request  # noqa: PLC0415

            sent = await request.json(default={}) if method == "POST" else request.query

            def given(name: str) -> str:
                value = sent.get(name, "") if hasattr(sent, "get") else ""
                return value if isinstance(value, str) else ""

            try:
                return json_response(await answer(given))
            except (*MISTAKES, *database_errors()) as exc:
                _log.exception("the page cannot be shown")
                return error_response(f"{type(exc).__name__}: {exc}", status_code=500)

        return handle
