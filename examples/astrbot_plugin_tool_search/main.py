"""Tool search for AstrBot: the bot's model finds its tools when it needs them."""

import asyncio
import builtins
import importlib
import itertools
import logging
import sys
import weakref
from collections.abc import AsyncIterator, Mapping, Sequence
from importlib.machinery import ModuleSpec, SourceFileLoader
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

from astrbot.api import AstrBotConfig, FunctionTool, logger
from astrbot.api.event import AstrMessageEvent, MessageEventResult, filter
from astrbot.api.provider import ProviderRequest
from astrbot.api.star import Context, Star, StarTools
from astrbot.core import pip_installer
from astrbot.core.star.filter.command import GreedyStr
from astrbot.core.utils import pip_installer as pip_module

NAME = "astrbot_plugin_tool_search"
_LIBRARY = Path(__file__).parent / "library" / "tool_search"


class _Loader(SourceFileLoader):
    """Loads a module of a copy from what the copy has kept of its file."""

    def __init__(self, name: str, path: str, copy: "_Copy") -> None:
        super().__init__(name, path)
        self._copy = copy

    def exec_module(self, module: ModuleType) -> None:
        """Run the module; its imports of the library are those of its own copy."""
        vars(module)["__builtins__"] = self._copy.builtins
        super().exec_module(module)

    def get_data(self, path: str) -> bytes:
        """Return the content that a file had when the copy was made."""
        kept = self._copy.files.get(path)
        return super().get_data(path) if kept is None else kept[0]

    def path_stats(self, path: str) -> dict[str, float]:
        """Return the time and the size that a file had then: they tell what is compiled of it."""
        _, time, size = self._copy.files[path]
        return {"mtime": time, "size": size}

    def set_data(self, path: str, data: Any, *, _mode: int = 0o666) -> None:
        """Keep what was compiled; of an ended copy, whose folder may be gone, nothing."""
        if not self._copy.has_ended:
            super().set_data(path, data, _mode=_mode)


class _Copy:
    """The library that the plugin contains, loaded under a name of its own.

    AstrBot takes a plugin away, and loads it again, while messages are being answered. Each of
    these goes on with the copy that it began with, which imports some modules late: so a copy
    keeps its modules and its files until nothing of it is in use. No other plugin's copy of the
    library meets this one, whose name is never `tool_search`.

    Attributes:
        name: The name of its package.
        files: The content, time and size of each of its files.
        builtins: The builtins of its modules.
        has_ended: True if the plugin no longer uses it; messages may.
    """

    def __init__(self) -> None:
        numbered = (f"{NAME}_library_{number}" for number in itertools.count(1))
        self.name = next(name for name in numbered if name not in sys.modules)
        self.files = {
            str(path): _content(path)
            for path in _LIBRARY.rglob("*")
            if path.suffix in (".py", ".pyi", ".json")
        }
        self.builtins = {**vars(builtins), "__import__": self._import}
        self.has_ended = False
        if str(_LIBRARY / "__init__.py") not in self.files:
            raise ImportError(f"{_LIBRARY} has no library; install the plugin from its zip")
        sys.meta_path.append(self)

    def load(self, name: str) -> ModuleType:
        """Return a module of the library by its name in the sources."""
        return importlib.import_module(self._own_name(name))

    def find_spec(
        self, name: str, _path: object = None, _target: object = None
    ) -> ModuleSpec | None:
        """Return the specification of a module of this copy; None for any other."""
        package, *steps = name.split(".")
        if package != self.name:
            return None
        place = _LIBRARY.joinpath(*steps)
        for file, is_package in ((place / "__init__.py", True), (place.with_suffix(".py"), False)):
            if str(file) in self.files:
                spec = ModuleSpec(
                    name,
                    _Loader(name, str(file), self),
                    origin=str(file),
                    # A package without folders: Python would read what is there by then.
                    is_package=is_package,
                )
                spec.has_location = True
                return spec
        return None

    def leave_with(self, user: object) -> None:
        """Take the copy out of Python when an object is gone that all of its users hold."""
        # A finalizer may run inside of any other code, an import for instance.
        loop = asyncio.get_running_loop()
        weakref.finalize(user, lambda: loop.is_closed() or loop.call_soon_threadsafe(self._leave))

    def _leave(self) -> None:
        sys.meta_path.remove(self)
        for name in [*sys.modules]:
            if name.partition(".")[0] == self.name:
                del sys.modules[name]

    def _import(
        self,
        name: str,
        scope: Mapping[str, object] | None = None,
        inner: Mapping[str, object] | None = None,
        wanted: Sequence[str] | None = (),
        level: int = 0,
    ) -> Any:
        """Import for a module of this copy, by the names in its source."""
        module = builtins.__import__(self._own_name(name), scope, inner, wanted or (), level)
        if module is importlib and wanted:
            return SimpleNamespace(**{**vars(importlib), "import_module": self.load})
        return module

    def _own_name(self, name: str) -> str:
        is_own = name.partition(".")[0] == "tool_search"
        return f"{self.name}{name.removeprefix('tool_search')}" if is_own else name


def _content(path: Path) -> tuple[bytes, float, int]:
    about = path.stat()
    return path.read_bytes(), about.st_mtime, about.st_size


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
# Without a wheel pip would compile Rust and C for minutes, at each start.
_WHEELS_ALONE = "--only-binary=:all:"
Replies = AsyncIterator[MessageEventResult]
# A loading may install packages for minutes.
_WAIT_S, _MOST_WAITS = 0.05, 6_000


class ToolSearchPlugin(Star):
    """The plugin: it passes AstrBot's requests and its commands to the library."""

    def __init__(self, context: Context, config: AstrBotConfig) -> None:
        super().__init__(context)
        self.config = config
        self._installing: asyncio.Task[None] | None = None
        # A plugin has a logger of its own from 4.29 on.
        self._log = getattr(self, "logger", logger)
        self.tool_search: Any = None
        self._open()

    def _open(self) -> None:
        # AstrBot makes a plugin that was switched off anew without running this file.
        self._copy = _Copy()
        adapter = "tool_search.adapters.astrbot"
        context, folder = self.context, StarTools.get_data_dir(NAME)
        self.tool_search = self._copy.load(adapter).AstrBotToolSearch(
            context, self.config, plugin=NAME, folder=folder, log=self._log
        )
        self._copy.leave_with(self.tool_search)
        commands = self._copy.load(f"{adapter}.commands").AstrBotCommands
        page = self._copy.load(f"{adapter}.webui.page").ToolSearchPage
        routes = self._copy.load(f"{adapter}.webui.routes").PageRoutes
        self.commands = commands(self.tool_search, context)
        self.page = routes(page(self.tool_search, context), context, NAME)

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
        missing_packages = self._copy.load("tool_search.core.values.packages").missing_packages
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
            self.tool_search.remove()
            self._open()
            self._install()
        for package, loss in rest.items():
            # The library's log has the warnings of `/tool_search status`.
            logging.getLogger(f"{self._copy.name}.astrbot").warning(
                "%s is not installed: %s", package, loss
            )

    async def terminate(self) -> None:
        """Remove the hooks; AstrBot calls this when it unloads the plugin."""
        if self._installing is not None:
            self._installing.cancel()
        await self._close()
        self._leaving = asyncio.create_task(self._leave(self.tool_search))
        # AstrBot keeps every plugin that it has loaded; without this, each with its library.
        self.tool_search = self.commands = self.page = None

    async def _close(self) -> None:
        self._copy.has_ended = True
        self.page.remove()
        await self.tool_search.close()

    async def _leave(self, tool_search: Any) -> None:
        """Remove the hooks once the plugin is loaded again, or stays away.

        AstrBot does not tell which: a message that comes before the new hooks has the old ones,
        in place of a list that its provider refuses.
        """
        try:
            for _ in range(_MOST_WAITS):
                star = self.context.get_registered_star(NAME)
                new = getattr(star, "star_cls", None)
                is_loaded = new not in (None, self) and getattr(new, "_installing", True)
                is_off = not star.activated if star else not _LIBRARY.exists()
                if is_loaded or is_off:
                    break
                await asyncio.sleep(_WAIT_S)
        finally:
            tool_search.remove()

    # After all other plugins, so that the tools that they add are seen.
    @filter.on_llm_request(priority=-1_000_000)
    async def search_tools(self, event: AstrMessageEvent, req: ProviderRequest) -> None:
        """Replace the request's tools by a set that is searched."""
        if self.tool_search is not None:
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
        if self.tool_search is not None:
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
