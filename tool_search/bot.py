"""A bot as its configuration describes it: providers and tools, ready to run.

>>> [item.tool.name for item in tools_from_modules(["tool_search.demo.toolbox.colors"])][:2]
['hex_to_rgb', 'rgb_to_hex']
"""

from __future__ import annotations

import inspect
import logging
import traceback
from collections.abc import AsyncGenerator, Iterable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from dataclasses import replace
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType

from pydantic import SecretStr

from tool_search.adapters import build_provider
from tool_search.catalog.naming import Source
from tool_search.config.bot import BotConfig, ProviderConfig
from tool_search.config.history import MAX_RESULT_CHARS
from tool_search.config.stores import StoreSettings
from tool_search.errors import (
    ConfigurationError,
    DuplicateToolError,
    InvalidToolError,
    StoreError,
    StoreFault,
    UnsupportedStrategyError,
)
from tool_search.execution import (
    AskUser,
    CallOptions,
    ExecutableTool,
    GrantBook,
    GrantFile,
    Permissions,
    executable_tools,
)
from tool_search.providers.base import ChatProvider
from tool_search.runner.runner import ToolSearchRunner
from tool_search.stores import MemoryStore, SQLiteStore
from tool_search.stores.memory import DEFAULT_CONVERSATIONS

__all__ = ["open_runner", "tools_from_modules"]

_WRONG_SETTING: tuple[StoreFault, ...] = ("foreign", "newer", "missing", "no_permission")
_log = logging.getLogger(__name__)


@asynccontextmanager
async def open_runner(
    config: BotConfig,
    *,
    environment: Mapping[str, str] | None = None,
    source: Path | None = None,
    ask: AskUser | None = None,
    calls: CallOptions | None = None,
) -> AsyncGenerator[ToolSearchRunner, None]:
    """A runner for the bot; providers, store and tools are closed when the block ends.

    Args:
        config: The bot.
        environment: Where API keys are; default: this process's.
        source: The file that the configuration was read from: its store is found by it.
        ask: Asks the user for permission; without it, ask means no.
        calls: How calls are run; its permissions, and a `longest_result` other than the
            default, go before the configuration's.

    Raises:
        StoreError: The store's file is none, or may not be opened.
        ConfigurationError: A provider or a module of tools cannot be used, a key is
            missing, or there is no provider.
        InvalidToolError: A function cannot be a tool.
        DuplicateToolError: Two tools without a server have the same name.
    """
    options = _call_options(config, calls or CallOptions(), ask, source)
    keys = _api_keys(config.providers, environment)
    tools = tools_from_modules(config.tools)
    async with AsyncExitStack() as stack:
        providers = {}
        for entry in config.providers:
            provider = _built(entry, keys[entry.id], config)
            if isinstance(provider, AbstractAsyncContextManager):
                await stack.enter_async_context(provider)
            providers[entry.id] = provider
        store = _store(config.store, source)
        if isinstance(store, SQLiteStore):
            # Closed after the runner, which writes what waits.
            stack.push_async_callback(store.aclose)
            await _opened(store)
        runner = ToolSearchRunner(
            providers=providers,
            tools=tools,
            config=config.tool_search,
            system_prompt=config.system_prompt,
            max_steps=config.max_steps,
            turn_timeout_s=config.turn_timeout_s,
            max_concurrent_turns=config.max_concurrent_turns,
            cooldown_s={entry.id: entry.cooldown_s for entry in config.providers},
            store=store,
            calls=options,
            history=config.history,
        )
        stack.push_async_callback(runner.aclose)
        # What is wrong with an older file of grants is said now, not in the middle of a chat.
        await runner.permissions.grants.read()
        await runner.prepare()
        yield runner


def _store(settings: StoreSettings, source: Path | None) -> SQLiteStore | MemoryStore:
    if settings.type == "memory":
        return MemoryStore(
            keep_days=settings.keep_days,
            keep_conversations=settings.keep_conversations or DEFAULT_CONVERSATIONS,
        )
    return SQLiteStore(
        settings.file(source),
        synchronous=settings.synchronous,
        keep_days=settings.keep_days,
        keep_conversations=settings.keep_conversations,
    )


async def _opened(store: SQLiteStore) -> None:
    """Say at once what is wrong with a store; what may pass keeps no bot from starting.

    Raises:
        StoreError: The setting is wrong: only a person can mend that.
    """
    try:
        await store.evidence_revision()
    except StoreError as exc:
        if exc.fault in _WRONG_SETTING:
            raise
        _log.warning("store_unavailable: conversations are in memory for now: %s", exc)


def _call_options(
    config: BotConfig, calls: CallOptions, ask: AskUser | None, source: Path | None
) -> CallOptions:
    """The options with the configuration's permissions and limits, and traces if possible."""
    settings, longest = config.permissions, config.history.longest_result
    if calls.limits.longest_result == MAX_RESULT_CHARS:
        calls = replace(calls, limits=replace(calls.limits, longest_result=longest))
    if calls.permissions is None:
        file = settings.grants_file(source)
        grants = GrantBook(file=GrantFile(file) if file is not None else None)
        permissions = Permissions(settings, ask=ask, grants=grants)
        calls = replace(calls, permissions=permissions)
    if calls.telemetry is None and find_spec("opentelemetry") is not None:
        telemetry = import_module("tool_search.adapters.opentelemetry").OpenTelemetry()
        calls = replace(calls, telemetry=telemetry)
    return calls


def tools_from_modules(names: Iterable[str]) -> tuple[ExecutableTool, ...]:
    """The tools of Python modules: what their `TOOLS` lists, or else their public functions.

    Public functions are those that a module itself defines, in its order.

    Raises:
        ConfigurationError: A module cannot be imported, or has no tools.
        InvalidToolError: Something in `TOOLS` cannot be a tool.
        DuplicateToolError: Two tools without a server have the same name.
    """
    tools: list[ExecutableTool] = []
    homes: dict[Source, str] = {}
    for name in dict.fromkeys(names):
        for item in _tools_of(_imported(name)):
            source = item.tool.source
            if source in homes:
                raise DuplicateToolError(
                    f"two tools have the name {item.tool.name!r}: in the modules "
                    f"{homes[source]!r} and {name!r}; rename one"
                )
            homes[source] = name
            tools.append(item)
    return tuple(tools)


def _imported(name: str) -> ModuleType:
    try:
        return import_module(name)
    except (Exception, SystemExit) as exc:
        # A module of the user's own may fail in any way while it is imported.
        cause = f"{type(exc).__name__}: {exc}{_place(exc)}"
        raise ConfigurationError(f"tools: the module {name!r} cannot be imported: {cause}") from exc


def _place(exc: BaseException) -> str:
    """Where in the module it failed; nothing where the module was not even found."""
    if isinstance(exc, SyntaxError):
        return ""
    frame = traceback.extract_tb(exc.__traceback__)[-1]
    return "" if "importlib" in frame.filename else f" ({frame.filename}, line {frame.lineno})"


def _tools_of(module: ModuleType) -> Sequence[ExecutableTool]:
    name = module.__name__
    listed = getattr(module, "TOOLS", None)
    if listed is None:
        listed = [value for key, value in vars(module).items() if _is_public(key, value, name)]
        if not listed:
            raise ConfigurationError(
                f"tools: the module {name!r} has no tools: it needs a list TOOLS, or public "
                "functions of its own"
            )
    if isinstance(listed, str) or not isinstance(listed, Iterable):
        raise ConfigurationError(
            f"tools: TOOLS of the module {name!r} must be a list of functions, not {listed!r}"
        )
    try:
        return executable_tools(listed)
    except InvalidToolError as exc:
        raise InvalidToolError(f"tools: module {name!r}: {exc}") from exc


def _is_public(key: str, value: object, module: str) -> bool:
    return not key.startswith("_") and inspect.isfunction(value) and value.__module__ == module


def _api_keys(
    providers: Iterable[ProviderConfig], environment: Mapping[str, str] | None
) -> dict[str, SecretStr]:
    """The key of every provider, or one error that names all that are missing."""
    keys, missing = {}, []
    for provider in providers:
        try:
            keys[provider.id] = provider.api_key(environment)
        except ConfigurationError as exc:
            missing.append(str(exc))
    if missing:
        raise ConfigurationError("\n".join(missing))
    return keys


def _built(entry: ProviderConfig, api_key: SecretStr, bot: BotConfig) -> ChatProvider:
    fallbacks = len(bot.providers) > 1
    try:
        return build_provider(entry, api_key=api_key, fallbacks=fallbacks, profiles=bot.profiles)
    except (UnsupportedStrategyError, ImportError) as exc:
        raise ConfigurationError(f"provider {entry.id!r}: {exc}") from exc
