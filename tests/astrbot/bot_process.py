"""A real AstrBot in a process of its own, which reads commands line by line.

Run by AstrBot's interpreter as `bot_process.py ROOT`; ROOT holds `setup.json`. Imports
nothing of the library: everything here comes from the plugin's zip.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
import os
import shutil
import sys
import time
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any

ROOT = Path(sys.argv[1])
SETUP = json.loads((ROOT / "setup.json").read_text(encoding="utf-8"))
os.environ["ASTRBOT_ROOT"] = str(ROOT)
os.chdir(ROOT)
sys.path.insert(0, str(ROOT))
# What AstrBot logs must not come between the answers.
ANSWERS = os.fdopen(os.dup(1), "w", encoding="utf-8")
os.dup2(2, 1)

PLUGIN = "astrbot_plugin_tool_search"


class NoLibrary:
    """Lets no import find a library that is installed here: an operator has the zip alone."""

    @staticmethod
    def find_spec(name: str, *_: object) -> None:
        if name == "tool_search":
            raise ModuleNotFoundError("No module named 'tool_search'", name=name)


sys.meta_path.insert(0, NoLibrary)


def check_schemas_once() -> None:
    """Let AstrBot check a schema that it has accepted no second time.

    It checks all with each message, for 20 ms each: with 609 tools, 12 s in which no operation
    comes between.
    """
    jsonschema: Any = import_module("jsonschema")
    accepted: set[str] = set()
    validate, rules = jsonschema.validate, jsonschema.Draft202012Validator.META_SCHEMA

    def check(instance: Any, schema: Any, *args: Any, **kwargs: Any) -> None:
        content = repr(instance) if schema is rules else ""
        if content not in accepted:
            validate(instance, schema, *args, **kwargs)
            if content:
                accepted.add(content)

    jsonschema.validate = check


def merged(target: Any, changes: dict[str, Any]) -> None:
    """Change nested settings in place."""
    for key, value in changes.items():
        if isinstance(value, dict) and isinstance(target.get(key), dict):
            merged(target[key], value)
        else:
            target[key] = value


class Bot:
    """The operations; each gives what JSON can hold."""

    def __init__(self) -> None:
        self.lifecycle: Any = None
        self._messages = 0

    async def start(self) -> dict[str, Any]:
        """Boot the core, and install the plugin from its zip if it is missing."""
        from astrbot.core import LogBroker, LogManager, astrbot_config, db_helper
        from astrbot.core.core_lifecycle import AstrBotCoreLifecycle

        check_schemas_once()
        self.before = self.methods()
        merged(astrbot_config, SETUP["config"])
        astrbot_config.save_config()
        self.broker = LogBroker()
        LogManager.set_queue_handler(logging.getLogger("astrbot"), self.broker)
        self.lifecycle = AstrBotCoreLifecycle(self.broker, db_helper)
        await self.lifecycle.initialize()
        # What the platform's loop would run, alone.
        await self.mcp_ready()
        if SETUP["zip"] and not (ROOT / "data/plugins" / PLUGIN).exists():
            await self.lifecycle.plugin_manager.install_plugin_from_file(SETUP["zip"])
        return {"failed": str(self.lifecycle.plugin_manager.failed_plugin_info or "")}

    async def mcp_ready(self) -> None:
        """Wait for the MCP servers of the setup."""
        manager = self.lifecycle.provider_manager.llm_tools
        for _ in range(600):
            served = [tool for tool in manager.func_list if hasattr(tool, "mcp_server_name")]
            if len(served) >= SETUP["served"]:
                return
            await asyncio.sleep(0.1)
        raise RuntimeError("the MCP servers did not start")

    async def say(
        self,
        text: str,
        user: str = "u1",
        group: str = "",
        streaming: bool | None = None,
        provider: str = "",
    ) -> list[str]:
        """One message through the whole pipeline; gives what the bot sent."""
        event = self._event(text, user, group)
        if streaming is not None:
            event.set_extra("enable_streaming", streaming)
        if provider:  # as the WebUI's chat sets it
            event.set_extra("selected_provider", provider)
        (scheduler,) = self.lifecycle.pipeline_scheduler_mapping.values()
        await asyncio.wait_for(scheduler.execute(event), 90)
        return event.sent

    async def say_together(self, messages: list[dict[str, Any]]) -> list[list[str]]:
        """Messages at the same time."""
        return list(await asyncio.gather(*(self.say(**message) for message in messages)))

    async def begin(self, messages: list[dict[str, Any]]) -> None:
        """Send messages at the same time, and answer them while other operations run."""
        self._begun = asyncio.ensure_future(self.say_together(messages))

    async def answers(self) -> list[list[str]]:
        """Return the answers to the messages that were begun."""
        return await self._begun

    async def storm(
        self, messages: list[dict[str, Any]], operations: list[tuple[str, dict[str, Any], float]]
    ) -> list[list[str]]:
        """Answer messages, three at a time, while operations run.

        Each operation begins after so many answers, and the rest of its number in seconds.
        """
        waiting, answers = iter(messages), []
        answered: asyncio.Queue[int] = asyncio.Queue()

        async def talk() -> None:
            for message in waiting:
                answer = await self.say(**message)
                answers.append(answer)
                answered.put_nowait(len(answers))

        async def operate() -> None:
            seen = 0
            for name, arguments, moment in operations:
                while seen < int(moment):
                    seen = await answered.get()
                await asyncio.sleep(moment % 1)
                await getattr(self, name)(**arguments)

        await asyncio.gather(operate(), *(talk() for _ in range(3)))
        return answers

    def library(self, name: str) -> Any:
        """Return a module of the plugin's library, which has a name of its own."""
        own = type(self._star().star_cls.tool_search).__module__.partition(".")[0]
        return import_module(f"{own}.{name}")

    async def history(self, user: str = "u1") -> list[dict[str, Any]]:
        """Return the saved history of a user's conversation."""
        manager = self.lifecycle.star_context.conversation_manager
        umo = f"probe:FriendMessage:{user}"
        current = await manager.get_curr_conversation_id(umo)
        found = await manager.get_conversation(umo, current) if current else None
        return json.loads(found.history or "[]") if found else []

    async def configure(self, changes: dict[str, Any]) -> None:
        """Change AstrBot's settings, and builds its pipeline anew."""
        config = self.lifecycle.astrbot_config
        merged(config, changes)
        (key,) = self.lifecycle.pipeline_scheduler_mapping
        await self.lifecycle.reload_pipeline_scheduler(key)

    async def settings(self, changes: dict[str, Any]) -> None:
        """Change the plugin's settings, and loads it anew, as the WebUI does."""
        star = self._star()
        star.config.update(changes)
        star.config.save_config()
        await self.reload()

    async def reload(self) -> None:
        """Load the plugin anew."""
        done, problem = await self.lifecycle.plugin_manager.reload(PLUGIN)
        if not done:
            raise RuntimeError(problem)

    async def off(self) -> None:
        """Switch the plugin off, as the WebUI does."""
        await self.lifecycle.plugin_manager.turn_off_plugin(PLUGIN)
        await self._hooks_gone()

    async def on(self) -> None:
        """Switch the plugin on again."""
        await self.lifecycle.plugin_manager.turn_on_plugin(PLUGIN)

    async def install(self, archive: str) -> None:
        """Install the plugin from its zip, which AstrBot deletes."""
        copy = shutil.copy(archive, ROOT / "upload.zip")
        await self.lifecycle.plugin_manager.install_plugin_from_file(str(copy))

    async def uninstall(self) -> None:
        """Take the plugin away."""
        await self.lifecycle.plugin_manager.uninstall_plugin(
            PLUGIN, delete_config=True, delete_data=True
        )
        await self._hooks_gone()

    async def switch(self, tool: str, active: bool) -> None:
        """Switch a tool on or off, as the WebUI does."""
        context = self.lifecycle.star_context
        change = context.activate_llm_tool if active else context.deactivate_llm_tool
        for _ in range(50):
            try:
                change(tool)
            except Exception as exc:  # older releases write what was said at the same time
                if "database is locked" not in str(exc):
                    raise
                await asyncio.sleep(0.2)
            else:
                return
        raise RuntimeError(f"{tool} could not be switched: the database stayed locked")

    async def permit(self, tool: str, who: str) -> None:
        """Set who may call a tool, as the WebUI does."""
        from astrbot.core import sp

        kept = await sp.global_get("tool_permissions", {})
        kept.setdefault("_default", {})[tool] = who
        await sp.global_put("tool_permissions", kept)

    async def run(self, code: str) -> Any:
        """Run the body of an async function `(bot)` of a test, and gives what it returns."""
        body = "\n".join(f"    {line}" for line in code.splitlines())
        scope: dict[str, Any] = {}
        exec(f"async def _(bot):\n{body}", scope)  # noqa: S102 - a test's own lines
        return await scope["_"](self)

    def methods(self) -> list[int]:
        """Return the objects of AstrBot that the plugin replaces, by identity."""
        from astrbot.core.agent.runners.tool_loop_agent_runner import ToolLoopAgentRunner
        from astrbot.core.provider.sources.anthropic_source import ProviderAnthropic

        touched = [ProviderAnthropic.text_chat, ProviderAnthropic.text_chat_stream]
        with contextlib.suppress(ModuleNotFoundError):  # as in older releases
            from astrbot.core.provider.sources.openai_responses_source import (
                ProviderOpenAIResponses as Responses,
            )

            touched += [Responses._query, Responses._query_stream, Responses._parse_response]
        return [id(method) for method in (*touched, ToolLoopAgentRunner.reset)]

    async def dashboard(self, port: int, password: str) -> None:
        """Serve the WebUI on loopback, its password set."""
        from astrbot.core import db_helper
        from astrbot.dashboard.password_state import (
            set_dashboard_password_hashes,
            set_password_change_required,
            set_password_storage_upgraded,
        )
        from astrbot.dashboard.server import AstrBotDashboard

        config = self.lifecycle.astrbot_config
        config["dashboard"].update(host="127.0.0.1", port=port, username="boss")
        config["dashboard"]["auth_rate_limit"] = {**config["dashboard"]["auth_rate_limit"]}
        config["dashboard"]["auth_rate_limit"]["enable"] = False
        set_dashboard_password_hashes(config, password)
        await set_password_storage_upgraded(db_helper, config, True)
        await set_password_change_required(db_helper, config, False)
        config.save_config()
        server = AstrBotDashboard(self.lifecycle, db_helper, asyncio.Event())
        self._served = asyncio.ensure_future(server.run())
        for _ in range(200):
            with contextlib.suppress(OSError):
                _, writer = await asyncio.open_connection("127.0.0.1", port)
                writer.close()
                return
            await asyncio.sleep(0.1)
        raise RuntimeError("the WebUI did not start")

    async def log_page(self) -> list[dict[str, Any]]:
        """Return what the WebUI's log page shows."""
        return [dict(entry) for entry in self.broker.log_cache]

    async def state(self) -> dict[str, Any]:
        """Return the parts of the plugin that are left in the process."""
        loaded = [name for name in sys.modules if name.startswith(f"{PLUGIN}_library_")]
        library = sys.modules.get(min(loaded, key=len, default=""))
        return {
            "untouched": self.methods() == self.before,
            "library": str(getattr(library, "__file__", "")),
            "paths": [path for path in sys.path if PLUGIN in path],
            "wrapped": self._depth(),
            "handlers": self._handlers(),
            "routes": self._routes(),
        }

    def _routes(self) -> list[str]:
        routes = self.lifecycle.star_context.registered_web_apis
        return [route[0] for route in routes if route[0].startswith(f"/{PLUGIN}/")]

    def _handlers(self) -> int:
        from astrbot.core.star.star_handler import star_handlers_registry

        return sum(PLUGIN in handler.handler_module_path for handler in star_handlers_registry)

    async def _hooks_gone(self) -> None:
        """Wait until the plugin has seen that it stays away; it looks every 50 ms."""
        for _ in range(100):
            if self.methods() == self.before:
                return
            await asyncio.sleep(0.02)
        raise RuntimeError("the hooks are still there")

    def _depth(self) -> int:
        from astrbot.core.provider.sources.anthropic_source import ProviderAnthropic

        depth, method = 0, ProviderAnthropic.text_chat
        while hasattr(method, "__wrapped__"):
            depth, method = depth + 1, method.__wrapped__
        return depth

    def _star(self) -> Any:
        (star,) = [s for s in self.lifecycle.star_context.get_all_stars() if s.name == PLUGIN]
        return star

    def _event(self, text: str, user: str, group: str) -> Any:
        from astrbot.core.message.components import Plain
        from astrbot.core.platform import (
            AstrBotMessage,
            AstrMessageEvent,
            MessageMember,
            MessageType,
            PlatformMetadata,
        )

        class Event(AstrMessageEvent):
            sent: list[str]

            async def send(self, message: Any) -> None:
                self.sent.append(message.get_plain_text())
                await super().send(message)

            async def send_streaming(self, generator: Any, use_fallback: bool = False) -> None:
                parts = [part.get_plain_text() async for part in generator]
                self.sent.append("".join(parts))
                await super().send_streaming(generator, use_fallback)

        self._messages += 1
        message = AstrBotMessage()
        message.type = MessageType.GROUP_MESSAGE if group else MessageType.FRIEND_MESSAGE
        message.self_id, message.session_id = "bot", group or user
        message.message_id = str(self._messages)
        message.sender = MessageMember(user, user)
        message.message, message.message_str = [Plain(text)], text
        message.raw_message, message.timestamp = {}, int(time.time())
        if group:
            message.group_id = group
        about = PlatformMetadata(name="probe", description="probe", id="probe")
        event = Event(text, message, about, group or user)
        event.sent = []
        event.is_wake = event.is_at_or_wake_command = True
        return event


async def main() -> None:
    """Answer one line after the other until the input ends."""
    bot = Bot()
    loop = asyncio.get_running_loop()
    while line := await loop.run_in_executor(None, sys.stdin.readline):
        asked = json.loads(line)
        operation: Callable[..., Any] = getattr(bot, asked["do"])
        try:
            answer = {"result": await operation(**asked["with"])}
        except Exception as exc:  # noqa: BLE001 - the test reads it
            answer = {"error": f"{type(exc).__name__}: {exc}"}
        ANSWERS.write(json.dumps(answer) + "\n")
        ANSWERS.flush()
    os._exit(0)


asyncio.run(main())
