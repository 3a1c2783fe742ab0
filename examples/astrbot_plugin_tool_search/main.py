"""Tool search for AstrBot: the bot's model finds its tools when it needs them."""

import asyncio
import importlib.util
import logging
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from types import ModuleType

from astrbot.api import AstrBotConfig, FunctionTool, logger
from astrbot.api.event import AstrMessageEvent, MessageEventResult, filter
from astrbot.api.provider import ProviderRequest
from astrbot.api.star import Context, Star, StarTools
from astrbot.core import pip_installer
from astrbot.core.star.filter.command import GreedyStr
from astrbot.core.utils import pip_installer as pip_module

_LIBRARY = Path(__file__).parent / "library" / "tool_search"


def _library_modules() -> dict[str, ModuleType]:
    """Return the loaded modules of the library, whoever loaded them."""
    named = list(sys.modules.items())
    return {name: module for name, module in named if name.partition(".")[0] == "tool_search"}


def _load_library() -> dict[str, ModuleType]:
    """Load the library that the plugin contains; return the modules of another copy.

    Nothing is added to `sys.path`, where another plugin's copy could come first, and ours in its
    place.
    """
    others = _library_modules()
    for name in others:
        del sys.modules[name]
    spec = importlib.util.spec_from_file_location(
        "tool_search", _LIBRARY / "__init__.py", submodule_search_locations=[str(_LIBRARY)]
    )
    if spec is None or spec.loader is None:
        raise ImportError(f"{_LIBRARY} has no library; install the plugin from its zip")
    module = importlib.util.module_from_spec(spec)
    sys.modules["tool_search"] = module
    spec.loader.exec_module(module)
    # What an earlier load of ours left is not another copy.
    return {name: module for name, module in others.items() if not _is_ours(module)}


def _is_ours(module: ModuleType) -> bool:
    return str(getattr(module, "__file__", "")).startswith(str(_LIBRARY))


_OTHERS = _load_library()

# Older releases of AstrBot have fewer classes of errors.
_PIP_ERRORS: tuple[type[Exception], ...] = (
    ImportError,
    OSError,
    RuntimeError,
    ValueError,
    *(
        getattr(pip_module, name)
        for name in ("PipInstallError", "DependencyConflictError")
        if hasattr(pip_module, name)
    ),
)
NAME = "astrbot_plugin_tool_search"
# Without a wheel pip would compile Rust and C for minutes, at each start.
_WHEELS_ALONE = "--only-binary=:all:"
Replies = AsyncIterator[MessageEventResult]


class ToolSearchPlugin(Star):
    """The plugin: it passes AstrBot's requests and its commands to the library."""

    def __init__(self, context: Context, config: AstrBotConfig) -> None:
        super().__init__(context)
        self.config = config
        self._installing: asyncio.Task[None] | None = None
        # A plugin has a logger of its own from 4.29 on.
        self._log = getattr(self, "logger", logger)
        self._open()

    def _open(self) -> None:
        # Not at the top: the library may be loaded again, once a package is there.
        from tool_search.adapters.astrbot import AstrBotToolSearch  # noqa: PLC0415
        from tool_search.adapters.astrbot.commands import AstrBotCommands  # noqa: PLC0415
        from tool_search.adapters.astrbot.webui.page import ToolSearchPage  # noqa: PLC0415
        from tool_search.adapters.astrbot.webui.routes import PageRoutes  # noqa: PLC0415

        context, folder = self.context, StarTools.get_data_dir(NAME)
        self.tool_search = AstrBotToolSearch(
            context, self.config, plugin=NAME, folder=folder, log=self._log
        )
        self.commands = AstrBotCommands(self.tool_search, context)
        self.page = PageRoutes(ToolSearchPage(self.tool_search, context), context, NAME)

    async def initialize(self) -> None:
        """Install the hooks; AstrBot calls this after it has loaded the plugin."""
        self._install()
        self._installing = asyncio.create_task(self.install_missing())

    def _install(self) -> None:
        self.tool_search.install()
        self.page.install()

    async def install_missing(self) -> None:
        """Install the packages that make the search better, while the plugin works without them.

        They are not in `requirements.txt`: AstrBot refuses a whole plugin if one of its packages
        has no wheel on an index or for a platform.
        """
        from tool_search.values.packages import missing_packages  # noqa: PLC0415

        missing = missing_packages()
        for package in missing:
            try:
                await pip_installer.install(package_name=f"{_WHEELS_ALONE} {package}")
            except _PIP_ERRORS as exc:
                self._log.info("pip could not install %s: %s", package, exc)
        importlib.invalidate_caches()
        rest = missing_packages()
        if len(rest) < len(missing):
            await self._close()
            _load_library()
            self._open()
            self._install()
        for package, loss in rest.items():
            # The library's log has the warnings of `/tool_search status`.
            logging.getLogger("tool_search.astrbot").warning(
                "%s is not installed: %s", package, loss
            )

    async def terminate(self) -> None:
        """Remove the hooks and the library; AstrBot calls this when it unloads the plugin."""
        if self._installing is not None:
            self._installing.cancel()
        await self._close()
        sys.modules.update({n: each for n, each in _OTHERS.items() if n not in sys.modules})

    async def _close(self) -> None:
        self.page.remove()
        await self.tool_search.close()
        for name, module in _library_modules().items():
            if _is_ours(module):
                del sys.modules[name]

    # After all other plugins, so that the tools that they add are seen.
    @filter.on_llm_request(priority=-1_000_000)
    async def search_tools(self, event: AstrMessageEvent, req: ProviderRequest) -> None:
        """Replace the request's tools by a set that is searched."""
        await self.tool_search.prepare(event, req)

    @filter.on_llm_tool_respond()
    async def observe(
        self,
        event: AstrMessageEvent,
        tool: FunctionTool,
        tool_args: dict[str, object] | None,
        _result: object,
    ) -> None:
        """Let search learn which tools were called."""
        await self.tool_search.observe(event, tool, tool_args)

    @filter.command_group("tool_search")
    def tool_search_group(self) -> None:
        """工具搜索：status、test、learned、forget、reset、mode、set。 / Tool search."""

    @filter.permission_type(filter.PermissionType.ADMIN)
    @tool_search_group.command("status")
    async def status(self, event: AstrMessageEvent) -> Replies:
        """显示本会话的工具搜索状态。 / Show the state of tool search here."""
        yield event.plain_result(await self.commands.status(event))

    @filter.permission_type(filter.PermissionType.ADMIN)
    @tool_search_group.command("test")
    async def test(self, event: AstrMessageEvent, query: GreedyStr) -> Replies:
        """试一次搜索，不改变任何状态。 / Try a search; nothing is changed."""
        yield event.plain_result(await self.commands.test(event, str(query)))

    @filter.permission_type(filter.PermissionType.ADMIN)
    @tool_search_group.command("reset")
    async def reset(self, event: AstrMessageEvent) -> Replies:
        """忘记本会话已找到的工具。 / Forget the tools found here."""
        yield event.plain_result(await self.commands.reset(event))

    @filter.permission_type(filter.PermissionType.ADMIN)
    @tool_search_group.command("learned")
    async def learned(self, event: AstrMessageEvent) -> Replies:
        """显示曾找到各工具的词语。 / Show the words that have led to each tool."""
        yield event.plain_result(await self.commands.learned(event))

    @filter.permission_type(filter.PermissionType.ADMIN)
    @tool_search_group.command("forget")
    async def forget(self, event: AstrMessageEvent, tool: str = "") -> Replies:
        """忘记关于一个工具学到的内容。 / Forget what was learned about a tool."""
        yield event.plain_result(await self.commands.forget(event, tool))

    @filter.permission_type(filter.PermissionType.ADMIN)
    @tool_search_group.command("install")
    async def install(self, event: AstrMessageEvent, engine: str = "") -> Replies:
        """安装一个搜索引擎的依赖。 / Install the packages of a search engine."""
        yield event.plain_result(await self.commands.install(event, engine))

    @filter.permission_type(filter.PermissionType.ADMIN)
    @tool_search_group.command("uninstall")
    async def uninstall(self, event: AstrMessageEvent, engine: str = "") -> Replies:
        """移除一个搜索引擎的依赖。 / Remove the packages of a search engine."""
        yield event.plain_result(await self.commands.uninstall(event, engine))

    @filter.permission_type(filter.PermissionType.ADMIN)
    @tool_search_group.command("mode")
    async def mode(self, event: AstrMessageEvent, mode: str = "") -> Replies:
        """设置本会话的模式：auto、tool_search、full 或 default。 / Set the mode here."""
        yield event.plain_result(await self.commands.set(event, "tool_schema_mode", mode))

    @filter.permission_type(filter.PermissionType.ADMIN)
    @tool_search_group.command("set")
    async def set(self, event: AstrMessageEvent, setting: str = "", value: str = "") -> Replies:
        """设置或显示本会话的其他设置。 / Set another setting here, or show all."""
        yield event.plain_result(await self.commands.set(event, setting, value))
