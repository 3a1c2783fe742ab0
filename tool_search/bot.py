"""A bot from a configuration or a few strings: providers, tools and conversations.

>>> [item.tool.name for item in tools_from_modules(["tool_search.sources.toolbox.words"])][:2]
['count_words', 'word_frequency']
"""

from __future__ import annotations

import inspect
import logging
import os
import sys
import traceback
from collections.abc import AsyncGenerator, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import AsyncExitStack, aclosing, contextmanager
from dataclasses import replace
from functools import partial
from importlib import import_module
from pathlib import Path
from types import ModuleType, TracebackType
from typing import Any, Self
from uuid import uuid4

from tool_search.config.bot import BotConfig
from tool_search.config.limits import TelemetrySettings
from tool_search.config.loading import config_from_mapping, load_config
from tool_search.config.stores import StoreSettings
from tool_search.core.catalog.catalog import ToolCatalog
from tool_search.core.catalog.naming import Source
from tool_search.core.exports import current_name
from tool_search.core.messages import ContentPart
from tool_search.core.settings import MAX_RESULT_CHARS
from tool_search.errors import (
    ConfigurationError,
    DuplicateToolError,
    InvalidToolError,
    NoAnswerError,
    SessionError,
)
from tool_search.runner.events import Done, RunnerEvent, RunnerWarning
from tool_search.runner.execution import (
    AskUser,
    CallOptions,
    ExecutableTool,
    GrantBook,
    GrantFile,
    Permissions,
    ToolExecutor,
    ToolFunction,
    executable_tools,
)
from tool_search.runner.execution.functions import listed_tools
from tool_search.runner.execution.observers import Telemetry
from tool_search.runner.loop_monitor import LoopMonitor
from tool_search.runner.providers import Providers, name_providers
from tool_search.runner.runner import ToolSearchRunner
from tool_search.sources import CombinedTools, ToolSource
from tool_search.sources.failures import ServerFailures
from tool_search.sources.updates import CatalogUpdates
from tool_search.stores import ConversationKey, ConversationStore, MemoryStore
from tool_search.stores.opening import check_store, open_store

__all__ = ["Bot", "imported_from", "open_bot", "tools_from_modules"]

# Warnings that say why a turn has no answer of the model.
_WITHOUT_ANSWER = ("answer_missing", "message_refused", "reply_refused", "turn_timed_out")
# An optional package is loaded when a bot is opened.
_TELEMETRY = "tool_search.adapters.opentelemetry"
_log = logging.getLogger(__name__)


class Bot:
    """A bot with its providers, tools and conversations, open in an `async with` block.

    Several tasks may ask it at the same time. Turns of one conversation wait for each
    other. The end of the block closes the store, the tools, and each provider that is
    not an object of the caller's.

    Args:
        providers: The primary first, then the fallbacks in order: strings such as
            `anthropic:claude-sonnet-4-6`, ids of `config`, configurations, or providers.
            None: those of `config`.
        tools: Functions and `ExecutableTool`s, after those of `config`.
        config: The settings; None: the defaults, with conversations in memory.
        environment: The variables with API keys; None: those of this process.
        source: The file of the configuration: relative paths in it start at its folder,
            and its modules of tools may be there.
        ask_user: Asks the user for permission; without it, rules that ask deny.
        calls: How calls are run. Its permissions, and a `longest_result` other than the
            default, replace those of the configuration.

    Attributes:
        conversation: The key of the conversation of `ask` and `run` without a
            `conversation`: a new one for each object.

    Raises:
        ConfigurationError: There is no provider.
        InvalidToolError: `tools` is not a list.

    >>> bot = Bot(["anthropic:claude-sonnet-4-6", "openai:gpt-5.4"], tools=[])
    """

    def __init__(
        self,
        providers: Providers | None = None,
        *,
        tools: Iterable[ExecutableTool | ToolFunction] = (),
        config: BotConfig | None = None,
        environment: Mapping[str, str] | None = None,
        source: Path | None = None,
        ask_user: AskUser | None = None,
        calls: CallOptions | None = None,
    ) -> None:
        self._config = BotConfig(store=StoreSettings(type="memory")) if config is None else config
        self._providers = _list(self._config.providers if providers is None else providers)
        if not self._providers:
            where = f"{source}: " if source is not None else ""
            raise ConfigurationError(
                f"{where}a bot needs at least one provider, such as "
                "'anthropic:claude-sonnet-4-6'; providers is empty"
            )
        self._tools = listed_tools(tools)
        self._environment = environment
        self._source = source
        self._ask_user = ask_user
        self._calls = calls or CallOptions()
        self._stack: AsyncExitStack | None = None
        self._runner: ToolSearchRunner | None = None
        self.conversation: ConversationKey = f"bot-{uuid4().hex}"

    @property
    def runner(self) -> ToolSearchRunner:
        """The runner of the open bot.

        Raises:
            SessionError: The bot is not open.
        """
        if self._runner is None:
            raise SessionError("the bot is not open; use it inside `async with bot:`")
        return self._runner

    async def __aenter__(self) -> Self:
        """Open the store, build the providers and import the tools.

        Raises:
            ConfigurationError: A provider or a module of tools cannot be used, or keys
                are missing.
            InvalidToolError: A function cannot be a tool.
            DuplicateToolError: Two tools without a server have the same name.
            StoreError: The store's file is not a store, or may not be opened.
            SessionError: The bot is open already.
        """
        if self._stack is not None:
            raise SessionError("the bot is open already; open each Bot in one `async with` block")
        self._stack = AsyncExitStack()
        try:
            self._runner = await self._open(self._stack)
        except BaseException:
            stack, self._stack = self._stack, None
            await stack.aclose()
            raise
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Close all that the bot has opened."""
        stack, self._stack, self._runner = self._stack, None, None
        if stack is not None:
            await stack.aclose()

    def run(
        self,
        message: str | Sequence[ContentPart],
        *,
        conversation: ConversationKey | None = None,
        user: str | None = None,
        roles: Collection[str] = (),
        idempotency_key: str | None = None,
    ) -> AsyncGenerator[RunnerEvent, None]:
        """Run one turn; yield its events, `Done` last.

        Args:
            message: Text, or text and pictures.
            conversation: The key of the conversation; None: `self.conversation`.
            user: The user's id, for tools and permissions.
            roles: The user's roles.
            idempotency_key: As in `ToolSearchRunner.run`.

        Raises:
            SessionError: The bot is not open, or the conversation is erased meanwhile.
            AllProvidersFailedError: No provider answered; the message is kept.
        """
        return self.runner.run(
            message,
            conversation=self.conversation if conversation is None else conversation,
            user=user,
            roles=roles,
            idempotency_key=idempotency_key,
        )

    async def ask(
        self,
        message: str | Sequence[ContentPart],
        *,
        conversation: ConversationKey | None = None,
        user: str | None = None,
        roles: Collection[str] = (),
        idempotency_key: str | None = None,
    ) -> str:
        """Run one turn; return the text of its answer.

        The arguments and errors are those of `run`.

        Raises:
            NoAnswerError: The turn ended without an answer of the model: it refused, it
                wrote nothing, or the time was over. The conversation can go on.
        """
        turn = self.run(
            message,
            conversation=conversation,
            user=user,
            roles=roles,
            idempotency_key=idempotency_key,
        )
        causes: list[str] = []
        async with aclosing(turn) as events:
            async for event in events:
                if isinstance(event, RunnerWarning) and event.code in _WITHOUT_ANSWER:
                    causes.append(event.message)
                elif isinstance(event, Done):
                    if causes or event.stop_reason in ("refusal", "timeout"):
                        raise NoAnswerError(
                            "; ".join(causes) or event.stop_reason,
                            text=event.answer,
                            reason=event.stop_reason,
                        )
                    return event.answer
        raise SessionError("the turn ended without its last event; ask again")

    async def _open(self, stack: AsyncExitStack) -> ToolSearchRunner:
        config = self._config
        calls = _call_options(config, self._calls, self._ask_user, self._source)
        opened = name_providers(
            self._providers,
            configured=config.providers,
            profiles=config.profiles,
            environment=self._environment,
            incoming=config.limits,
        )
        if (hold_ms := config.telemetry.loop_hold_ms) is not None:
            on_hold = getattr(calls.telemetry, "on_hold", None)
            await stack.enter_async_context(LoopMonitor(hold_s=hold_ms / 1000, on_hold=on_hold))
        for provider in opened.built:
            await stack.enter_async_context(provider)
        with imported_from(self._source):
            listed = tools_from_modules(config.tools)
        sources = await self._open_sources(stack)
        store = await self._open_store(stack)
        functions = executable_tools((*listed, *self._tools))
        combined = CombinedTools(
            functions, sources, reserved=(config.tool_search.search_tool_name,)
        )
        catalog, executor = combined.build() if sources else (None, None)
        runner = ToolSearchRunner(
            providers=opened.by_id,
            tools=() if sources else functions,
            catalog=catalog,
            executor=executor,
            config=config.tool_search,
            system_prompt=config.system_prompt,
            max_steps=config.max_steps,
            turn_timeout_s=config.turn_timeout_s,
            max_concurrent_turns=config.max_concurrent_turns,
            cooldown_s=opened.cooldown_s,
            store=store,
            calls=calls,
            history=config.history,
        )
        stack.push_async_callback(runner.aclose)
        # An error in an older file of grants is reported now, not in the middle of a chat.
        await runner.permissions.grants.read()
        await runner.prepare()
        if sources:
            runner.warn_from(ServerFailures(sources).take)
            updates = CatalogUpdates(combined, sources, partial(_apply, runner))
            updates.start()
            stack.push_async_callback(updates.aclose)
        return runner

    async def _open_store(self, stack: AsyncExitStack) -> ConversationStore:
        store = open_store(self._config.store, self._source, environment=self._environment)
        if not isinstance(store, MemoryStore):
            # Closed after the runner, which then writes what waits.
            stack.push_async_callback(store.aclose)
            if problem := await check_store(store):
                _log.warning("store_unavailable: conversations are in memory for now: %s", problem)
        return store

    async def _open_sources(self, stack: AsyncExitStack) -> tuple[ToolSource, ...]:
        """Connect to the servers of the configuration.

        Raises:
            ConfigurationError: There are servers, and the SDK is not installed.
        """
        servers = self._config.mcp_servers
        if not servers:
            return ()
        try:
            source_class = import_module("tool_search.adapters.mcp").MCPSource
        except ImportError as exc:
            raise ConfigurationError(
                f"mcpServers needs the MCP SDK: "
                "pip install 'tool-search-middleware[mcp]'; in a clone: "
                f"pip install '.[mcp]' ({exc})"
            ) from exc
        limits = self._config.limits
        source = source_class(servers, environment=self._environment, limits=limits)
        return (await stack.enter_async_context(source),)


def open_bot(
    config: str | os.PathLike[str] | Mapping[str, Any] | BotConfig,
    *,
    tools: Iterable[ExecutableTool | ToolFunction] = (),
    environment: Mapping[str, str] | None = None,
    source: str | os.PathLike[str] | None = None,
    ask_user: AskUser | None = None,
    calls: CallOptions | None = None,
) -> Bot:
    """Return the bot of a configuration, to be opened by `async with`.

    Args:
        config: The path of a YAML file, its content as a mapping, or the settings.
        tools: More tools, after those of the configuration.
        environment: The variables with API keys; None: those of this process.
        source: The file that a mapping or settings were read from.
        ask_user: Asks the user for permission; without it, rules that ask deny.
        calls: How calls are run.

    Raises:
        ConfigurationError: The file cannot be read, or is not a bot.

    >>> bot = open_bot({"providers": [{"id": "a", "type": "openai", "model": "gpt-5.4"}]})
    """
    place = None if source is None else Path(source).expanduser()
    if isinstance(config, str | os.PathLike):
        place = Path(config).expanduser()
        if place.is_dir():
            raise ConfigurationError(
                f"{place} is a folder; name the YAML file in it, such as {place / 'bot.yaml'}"
            )
        settings = load_config(place)
    elif isinstance(config, BotConfig):
        settings = config
    elif isinstance(config, Mapping):
        settings = config_from_mapping(config)
    else:
        raise ConfigurationError(
            "open_bot takes the path of a YAML file, a mapping or a BotConfig, "
            f"not {type(config).__name__}"
        )
    return Bot(
        tools=tools,
        config=settings,
        environment=environment,
        source=place,
        ask_user=ask_user,
        calls=calls,
    )


async def _apply(runner: ToolSearchRunner, catalog: ToolCatalog, executor: ToolExecutor) -> None:
    """Give a runner other tools, and index them before the next turn asks."""
    runner.replace_catalog(catalog, executor)
    await runner.prepare()


def _list(given: Providers) -> Mapping[str, Any] | tuple[Any, ...]:
    if isinstance(given, Mapping):
        return dict(given)
    return (given,) if isinstance(given, str) else tuple(given)


@contextmanager
def imported_from(source: Path | None) -> Iterator[None]:
    """Let modules be imported from a configuration's folder, before others."""
    if source is None:
        yield
        return
    folder = str(source.resolve().parent)
    sys.path.insert(0, folder)
    try:
        yield
    finally:
        if folder in sys.path:
            sys.path.remove(folder)


def _call_options(
    config: BotConfig, calls: CallOptions, ask: AskUser | None, source: Path | None
) -> CallOptions:
    """Return the options with the permissions and limits of a configuration, and traces."""
    settings, longest = config.permissions, config.history.longest_result
    if calls.limits.longest_result == MAX_RESULT_CHARS:
        calls = replace(calls, limits=replace(calls.limits, longest_result=longest))
    if calls.permissions is None:
        file = settings.grants_file(source)
        grants = GrantBook(file=GrantFile(file) if file is not None else None)
        permissions = Permissions(settings, ask=ask, grants=grants)
        calls = replace(calls, permissions=permissions)
    if calls.telemetry is None:
        calls = replace(calls, telemetry=_telemetry(config.telemetry))
    return calls


def _telemetry(settings: TelemetrySettings) -> Telemetry | None:
    """Return what traces a bot, as its configuration says.

    Raises:
        ConfigurationError: It says so, and OpenTelemetry is not installed.
    """
    if settings.enabled is False:
        return None
    try:
        adapter = import_module(_TELEMETRY)
    except ImportError as exc:
        if settings.enabled == "auto":
            # Without the extra nobody expects traces; one that is broken somebody does.
            if not any(isinstance(each, ModuleNotFoundError) for each in (exc, exc.__cause__)):
                _log.warning("telemetry_unavailable: there are no traces: %s", exc)
            return None
        raise ConfigurationError(
            f"telemetry.enabled is true, and OpenTelemetry is not installed: "
            f"pip install 'tool-search-middleware[otel]'; in a clone: pip install '.[otel]' ({exc})"
        ) from exc
    made: Telemetry = adapter.OpenTelemetry(
        record_content=settings.record_content, agent_name=settings.agent_name
    )
    return made


def tools_from_modules(names: Iterable[str]) -> tuple[ExecutableTool, ...]:
    """Return the tools of Python modules: their list `TOOLS`, or their public functions.

    Public functions are those that a module itself defines, in its order. A module's
    former name is still imported, with a notice in the log that names its place.

    Raises:
        ConfigurationError: A module cannot be imported, or has no tools.
        InvalidToolError: Something in `TOOLS` cannot be a tool.
        DuplicateToolError: Two tools without a server have the same name.
    """
    tools: list[ExecutableTool] = []
    homes: dict[Source, str] = {}
    for name in dict.fromkeys(map(_current_name, names)):
        for item in _tools_of(_import_module(name)):
            source = item.tool.source
            if source in homes:
                raise DuplicateToolError(
                    f"two tools have the name {item.tool.name!r}: in the modules "
                    f"{homes[source]!r} and {name!r}; rename one"
                )
            homes[source] = name
            tools.append(item)
    return tuple(tools)


def _current_name(name: str) -> str:
    """Return a module's name; log a notice if the given one is its former name."""
    moved = current_name(name)
    if moved is not None:
        _log.warning("module_moved: tools: the module %r is now %r", name, moved)
    return moved or name


def _import_module(name: str) -> ModuleType:
    try:
        return import_module(name)
    except (Exception, SystemExit) as exc:
        # A module of the user's own may fail in any way while it is imported.
        cause = f"{type(exc).__name__}: {exc}{_place(exc)}"
        raise ConfigurationError(f"tools: the module {name!r} cannot be imported: {cause}") from exc


def _place(exc: BaseException) -> str:
    """Return the place of the failure in the module; empty if no module was found."""
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


def __getattr__(name: str) -> Any:
    if name == "open_runner":
        raise AttributeError(
            f"module {__name__!r} has no attribute 'open_runner': it is now {__name__}.open_bot"
        )
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
