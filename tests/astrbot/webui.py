"""A client of the WebUI of a bot."""

from __future__ import annotations

import socket
from pathlib import Path
from typing import Any

import httpx

from tests.astrbot.bot import AstrBot

__all__ = ["PASSWORD", "PLUGIN", "USER", "WebUI"]

USER, PASSWORD = "boss", "a long Passw0rd of this test"
PLUGIN = "astrbot_plugin_tool_search"


class WebUI:
    """The WebUI of a bot, logged in.

    Args:
        bot: The bot; it serves the WebUI from now on.
    """

    def __init__(self, bot: AstrBot) -> None:
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        bot.ask("dashboard", port=port, password=PASSWORD)
        self.url = f"http://127.0.0.1:{port}"
        self.client = httpx.Client(base_url=self.url, timeout=60, trust_env=False)
        logged_in = self.client.post(
            "/api/v1/auth/login", json={"username": USER, "password": PASSWORD}
        ).json()
        token = logged_in["data"]["token"]
        self.client.headers["Authorization"] = f"Bearer {token}"

    def upload(self, archive: Path) -> Any:
        """Install a plugin from its zip, as the WebUI's form does."""
        files = {"file": (archive.name, archive.read_bytes(), "application/zip")}
        return self.client.post("/api/v1/plugins/install/upload", files=files).json()

    def get(self, path: str, **query: str) -> Any:
        """Return the JSON of a path below `/api/v1`."""
        return self.client.get(f"/api/v1/{path}", params=query).json()

    def page(self, name: str, **query: str) -> Any:
        """Return the facts of the plugin's page."""
        return self.get(f"plugins/extensions/{PLUGIN}/{name}", **query)

    def close(self) -> None:
        """Close the connections."""
        self.client.close()
