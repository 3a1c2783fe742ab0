"""Starts AstrBot in a process of its own, and talks to it."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from importlib import metadata
from importlib.util import find_spec
from itertools import count
from pathlib import Path
from typing import Any

from tool_search.runner.execution.functions import tool_from_function
from tool_search.sources.toolbox import TOOLS
from tool_search.testing import CapturedRequest, StandInServer

HERE = Path(__file__).resolve().parent
_PACKAGE = find_spec("astrbot")
VERSION = tuple(map(int, metadata.version("astrbot").split(".")[:2])) if _PACKAGE else ()
"""AstrBot's, its first two numbers; empty where it is not installed."""
HAS_RESPONSES = any(
    Path(place, "core/provider/sources/openai_responses_source.py").exists()
    for place in (_PACKAGE.submodule_search_locations or () if _PACKAGE else ())
)
"""Whether it has a provider of OpenAI's Responses."""

_MODEL = ("agent_runner", "config", "model")
_MISC = ("agent_runner", "config", "misc")
# Where each setting is: in 4.29, and in 4.27 and before.
_PLACES = {
    "max_steps": ((*_MISC, "max_steps"), ("provider_settings", "max_agent_step")),
    "tool_schema_mode": (
        (*_MISC, "tool_schema_mode"),
        ("provider_settings", "tool_schema_mode"),
    ),
    "persona": (
        ("agent_runner", "config", "persona", "persona_id"),
        ("provider_settings", "default_personality"),
    ),
    "provider": ((*_MODEL, "provider_id"), ("provider_settings", "default_provider_id")),
    "fallbacks": (
        (*_MODEL, "fallback_provider_ids"),
        ("provider_settings", "fallback_chat_models"),
    ),
}
_USUAL = {"max_steps": 30, "tool_schema_mode": "full", "persona": "default"}
ODD = ("convert_angle", "sphere_measures")
BUILTIN = ("future_task", "send_message_to_user")
_users = count(1)


def new_user() -> str:
    """Return a user nobody has talked with yet."""
    return f"user{next(_users)}"


def definitions(number: int) -> list[dict[str, Any]]:
    """So many different tools; beyond the example toolbox, its tools for other places.

    One of an MCP server's and one of a plugin's have a key that no Claude model takes.
    """
    own = [tool_from_function(function).tool for function in TOOLS]
    made = []
    for index in range(number):
        tool, copy = own[index % len(own)], index // len(own)
        name = tool.name if copy == 0 else f"{tool.name}_{copy + 1}"
        suffix = "" if copy == 0 else f" For region {copy + 1}."
        odd = {"$note": {"type": "string"}} if tool.name in ODD else {}
        properties = {**tool.parameters.get("properties", {}), **odd}
        made.append(
            {
                "name": name,
                "description": f"{tool.description}{suffix}",
                "parameters": {"type": "object", **tool.parameters, "properties": properties},
            }
        )
    return made


@dataclass(kw_only=True)
class BotSetup:
    """The setup of a bot.

    Attributes:
        server: Answers as its providers.
        plugin_zip: The installed plugin; None for none.
        providers: Names of `provider`; the first is asked first.
        tools: The number of tools, AstrBot's own and one decorated tool included.
        mcp_share: The share of them that an MCP server has.
        settings: Of the plugin.
        config: Changes to AstrBot's own.
        gemini: The address of a service with Gemini's own dialect.
        grok: The address of a service with the name of an xAI model.
    """

    server: StandInServer
    plugin_zip: Path | None
    providers: Sequence[str] = ("openai",)
    tools: int = 120
    mcp_share: float = 0.4
    settings: Mapping[str, Any] = field(default_factory=dict)
    config: Mapping[str, Any] = field(default_factory=dict)
    gemini: str = ""
    grok: str = ""

    def provider(self, name: str) -> dict[str, Any]:
        """One provider as AstrBot has it."""
        kinds = {
            "openai": ("openai_chat_completion", self.server.openai_base_url, "gpt-5.4"),
            "claude": (
                "anthropic_chat_completion",
                self.server.anthropic_base_url,
                "claude-sonnet-4-6",
            ),
            "responses": ("openai_responses", self.server.openai_base_url, "gpt-5.4"),
            "gemini": ("googlegenai_chat_completion", self.gemini, "gemini-2.5-flash"),
            "gemini-openai": (
                "openai_chat_completion",
                self.server.openai_base_url,
                "gemini-2.5-flash",
            ),
            "plain": ("openai_chat_completion", self.server.openai_base_url, "gpt-4o-mini"),
            "deepseek": (
                "openai_chat_completion",
                self.server.openai_base_url,
                "deepseek-v4-flash",
            ),
            "moonshot": (
                "openai_chat_completion",
                self.server.openai_base_url,
                "kimi-k2.6",
            ),
            "grok": ("openai_chat_completion", self.grok, "grok-4.5"),
            "grok-responses": ("openai_responses", self.grok, "grok-4.5"),
            "gemini3": ("googlegenai_chat_completion", self.gemini, "gemini-3-pro-preview"),
            "kimi": (
                "kimi_code_chat_completion",
                self.server.anthropic_base_url,
                "kimi-for-coding",
            ),
        }
        kind, address, model = kinds[name]
        return {
            "id": name, "provider": name, "type": kind, "provider_type": "chat_completion",
            "enable": True, "key": ["k"], "api_base": address, "model": model,
            "model_config": {"model": model},
            "modalities": ["text"] if name == "plain" else ["text", "image", "tool_use"],
        }  # fmt: skip

    def astrbot_config(self) -> dict[str, Any]:
        """AstrBot's own settings."""
        first, *others = self.providers
        misc = self.config.get("misc", {})
        return {
            "provider": [self.provider(name) for name in self.providers],
            "admins_id": ["boss"],
            "provider_settings": {
                "streaming_response": False,
                "default_provider_id": first,
                "fallback_chat_models": others,
                "request_max_retries": 1,
            },
            "agent_runner": {
                "config": {
                    "model": {
                        "provider_id": first,
                        "fallback_provider_ids": others,
                        "request_max_retries": 1,
                    },
                    "misc": {**misc},
                },
            },
            "platform_settings": {"rate_limit": {"count": 10_000, "time": 1}},
            **{key: value for key, value in self.config.items() if key != "misc"},
        }


class AstrBot:
    """A running bot.

    Args:
        root: Its ASTRBOT_ROOT.
        setup: What it has.
    """

    def __init__(self, root: Path, setup: BotSetup) -> None:
        self.root = root
        self.setup = setup
        self._process: subprocess.Popen[str] | None = None
        self._write_files()

    def _write_files(self) -> None:
        setup, data = self.setup, self.root / "data"
        shutil.copytree(HERE / "toolbox_plugin", data / "plugins" / "astrbot_plugin_toolbox")
        made = definitions(setup.tools - len(BUILTIN) - 1)
        split = round(len(made) * setup.mcp_share)
        tools = data / "plugins" / "astrbot_plugin_toolbox" / "tools.json"
        tools.write_text(json.dumps(made[split:]), encoding="utf-8")
        served = data / "served.json"
        served.write_text(json.dumps(made[:split]), encoding="utf-8")
        command = [str(HERE / "toolbox_server.py"), str(served)]
        server = {"command": sys.executable, "args": command, "active": True}
        servers = {"toolbox": server} if split else {}
        (data / "mcp_server.json").write_text(json.dumps({"mcpServers": servers}), "utf-8")
        (data / "config").mkdir()
        own = data / "config" / "astrbot_plugin_tool_search_config.json"
        own.write_text(json.dumps(dict(setup.settings)), encoding="utf-8")
        copy = None
        if setup.plugin_zip is not None:
            copy = self.root / "upload.zip"
            shutil.copy(setup.plugin_zip, copy)
        content = {
            "config": setup.astrbot_config(),
            "zip": None if copy is None else str(copy),
            "served": split,
        }
        (self.root / "setup.json").write_text(json.dumps(content), encoding="utf-8")

    def start(self) -> None:
        """Boot the bot, with the files of an earlier run if there are any."""
        with (self.root / "log.txt").open("a", encoding="utf-8") as log:
            self._process = subprocess.Popen(  # noqa: S603 - our own file
                [sys.executable, str(HERE / "bot_process.py"), str(self.root)],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
                text=True,
            )
        failed = self.ask("start")["failed"]
        assert not failed, failed

    def stop(self) -> None:
        """End the process."""
        if self._process is not None and self._process.stdin is not None:
            self._process.stdin.close()
            self._process.wait(20)
            if self._process.stdout is not None:
                self._process.stdout.close()
            self._process = None

    def kill(self) -> None:
        """End the process at once, in the middle of what it does."""
        process = self._process
        assert process is not None
        self._process = None
        process.kill()
        process.wait(20)

    def ask(self, operation: str, **arguments: Any) -> Any:
        """Return the result of one operation of `bot_process.Bot`."""
        process = self._process
        assert process is not None
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write(json.dumps({"do": operation, "with": arguments}) + "\n")
        process.stdin.flush()
        line = process.stdout.readline()
        assert line, f"the bot has ended:\n{self.log[-3000:]}"
        answer = json.loads(line)
        assert "error" not in answer, f"{answer['error']}\n{self.log[-3000:]}"
        return answer["result"]

    def set_runner(self, **settings: Any) -> None:
        """Change settings of AstrBot's runner, under the names of `_PLACES`."""
        changes: dict[str, Any] = {}
        for name, value in settings.items():
            for path in _PLACES[name]:
                place = changes
                for step in path[:-1]:
                    place = place.setdefault(step, {})
                place[path[-1]] = value
        self.ask("configure", changes=changes)

    @contextmanager
    def runner(self, **settings: Any) -> Iterator[None]:
        """Changes them for a while."""
        self.set_runner(**settings)
        try:
            yield
        finally:
            self.set_runner(**{name: _USUAL[name] for name in settings})

    def say(self, text: str, user: str = "u1", **more: Any) -> str:
        """Return the bot's answer to a message: its last message, if it sent several."""
        sent = self.ask("say", text=text, user=user, **more)
        return sent[-1] if sent else ""

    @property
    def log(self) -> str:
        """The log, without colours."""
        text = (self.root / "log.txt").read_text(encoding="utf-8", errors="replace")
        return re.sub(r"\x1b\[[0-9;]*m", "", text)


def lists(requests: Sequence[CapturedRequest]) -> list[tuple[str, ...]]:
    """Return the tool names of each request."""
    return [request.tool_names for request in requests]
