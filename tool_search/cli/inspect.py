"""`tool-search inspect`: the exact tool list that a provider would get."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path
from typing import Annotated, Literal, cast, get_args

import typer
from rich.table import Table
from rich.text import Text

from tool_search.adapters.anthropic import wire as anthropic_wire
from tool_search.adapters.openai_chat import wire as openai_chat_wire
from tool_search.adapters.openai_responses import wire as openai_responses_wire
from tool_search.catalog.schema.declared import declared_schema
from tool_search.cli.doctor.examined import policy_of
from tool_search.cli.doctor.requests import (
    PlannedRequest,
    ToolListFigures,
    figures_of,
    planned_request,
)
from tool_search.cli.exits import result_console, say, say_notices
from tool_search.cli.options import CatalogOrNoneOption, JsonOption, McpOption, chosen
from tool_search.cli.servers import list_servers, read_tools
from tool_search.cli.terminal.language import number, spoken, wrong_use
from tool_search.cli.terminal.lines import wrapped
from tool_search.config.bot import BotConfig, ProviderConfig, provider_from_string
from tool_search.config.loading import load_config
from tool_search.config.providers import ProfileSettings
from tool_search.core.catalog.catalog import ToolCatalog
from tool_search.core.catalog.tool import Tool
from tool_search.core.discoveries import Mode, tool_tokens
from tool_search.core.messages import RequestPlan, StrategyName, ToolList
from tool_search.core.profiles import ProviderProfile
from tool_search.core.settings import KINDS, Dialect, SchemaMode, dialect_of
from tool_search.errors import ConfigurationError
from tool_search.providers.profile_choice import profile_for, profile_of
from tool_search.providers.prompt_cache import cache_plan
from tool_search.runner.session.session import ToolSearchSession
from tool_search.search.discovery.catalog_notices import catalog_notices
from tool_search.search.discovery.search_tool import clean_description
from tool_search.stores.record import ConversationRecord

__all__ = [
    "PROVIDERS",
    "ListedTool",
    "NextRequest",
    "ProviderKind",
    "ToolState",
    "inspect_command",
    "next_request",
]


@dataclass(frozen=True, slots=True, kw_only=True)
class ProviderKind:
    """A provider as `--provider` names it.

    Attributes:
        dialect: Its wire format.
        model: A current model, with tool search of its own if the provider has any.
        encode_tools: The function from a tool list to its JSON.
    """

    dialect: Dialect
    model: str
    encode_tools: Callable[[ToolList, ProviderProfile], bytes]

    def profile(
        self,
        model: str | None,
        *,
        base_url: str | None = None,
        profiles: Mapping[str, ProfileSettings] | None = None,
    ) -> ProviderProfile:
        """Return the profile of a model, at the provider's own endpoint or at another."""
        return profile_for(
            self.dialect,
            model or self.model,
            base_url=base_url,
            profiles=profiles or {},
            takes_cheapest=True,
        )


PROVIDERS: Mapping[str, ProviderKind] = {
    "anthropic": ProviderKind(
        dialect="anthropic",
        model="claude-sonnet-4-6",
        encode_tools=anthropic_wire.encode_tools,
    ),
    "openai-chat": ProviderKind(
        dialect="openai_chat",
        model="gpt-5.4",
        encode_tools=openai_chat_wire.encode_tools,
    ),
    "openai-responses": ProviderKind(
        dialect="openai_responses",
        model="gpt-5.4",
        encode_tools=openai_responses_wire.encode_tools,
    ),
}
"""The values of `--provider`."""


ToolState = Literal["core", "deferred", "found"]


@dataclass(frozen=True, slots=True, kw_only=True)
class ListedTool:
    """A tool of a bot, and its state in a conversation.

    Attributes:
        name: Its name.
        server: Its server; None: it has none.
        state: `core`, sent with each request; `found`, discovered; `deferred`, only found by
            a search.
    """

    name: str
    server: str | None
    state: ToolState


@dataclass(frozen=True, slots=True, kw_only=True)
class NextRequest:
    """The tools of the next request of a bot's conversation.

    Attributes:
        mode: The conversation's mode.
        strategy: The strategy of the request.
        tools_declared: The length of the tool list.
        tools_total: The number of the bot's active tools.
        discovered: The discovered tools, in order.
        tokens: The estimated tokens of the definitions in the model's view.
        full_tokens: The estimated tokens of all definitions.
        tools: The bot's active tools: core, found, deferred ones.
    """

    mode: Mode
    strategy: StrategyName
    tools_declared: int
    tools_total: int
    discovered: tuple[str, ...]
    tokens: int
    full_tokens: int
    tools: tuple[ListedTool, ...] = ()


def next_request(
    catalog: ToolCatalog,
    config: BotConfig,
    provider: ProviderConfig,
    *,
    record: ConversationRecord | None,
) -> NextRequest:
    """Return the next request of a bot to one of its providers, and change nothing.

    Args:
        catalog: The tools.
        config: The bot.
        provider: The provider.
        record: The conversation; None if it has not begun.
    """
    profile = profile_of(provider, config.profiles)
    known = [profile_of(entry, config.profiles) for entry in config.providers]
    most = min((each.max_tools for each in known if each.max_tools is not None), default=None)
    if record is None:
        settings = config.tool_search
        request = planned_request(catalog, profile, config=settings, max_tools=most)
        plan, mode = request.plan, request.decision.mode
    else:
        session = ToolSearchSession(
            catalog, config=config.tool_search, max_tools=most, record=record
        )
        plan, mode = session.plan(profile, phase="select"), session.decision.mode
    figures = figures_of(plan, b"", catalog)
    found = tuple(entry.name for entry in record.discoveries) if record else ()
    return NextRequest(
        mode=mode,
        strategy=plan.strategy,
        tools_declared=figures.tools_declared,
        tools_total=len(catalog.active),
        discovered=found,
        tokens=figures.tokens,
        full_tokens=figures.full_tokens,
        tools=_list(catalog.with_policy(policy_of(config)), found, is_full=mode == "full"),
    )


def _list(catalog: ToolCatalog, found: Collection[str], *, is_full: bool) -> tuple[ListedTool, ...]:
    core = {tool.name for tool in (catalog.active if is_full else catalog.core)}
    listed: dict[ToolState, list[ListedTool]] = {"core": [], "found": [], "deferred": []}
    for tool in catalog.active:
        state: ToolState = "found" if tool.name in found else "deferred"
        if tool.name in core:
            state = "core"
        listed[state].append(ListedTool(name=tool.name, server=tool.server, state=state))
    return tuple(tool for tools in listed.values() for tool in tools)


_MODES: tuple[SchemaMode, ...] = get_args(SchemaMode)


_ProviderOption = Annotated[
    str | None,
    typer.Option(
        help=f"The provider: {', '.join(KINDS)}, `kind:model`, or an `id` of --config. With "
        "--mcp it may be left out: the servers and their tools are shown."
    ),
]
_ModelOption = Annotated[str | None, typer.Option(help="The model; a current one if left out.")]
_BaseUrlOption = Annotated[str | None, typer.Option(help="The base URL of another endpoint.")]
_ConfigOption = Annotated[
    Path | None, typer.Option(help="The bot's YAML file, for its `profiles` and settings.")
]
_ModeOption = Annotated[
    str | None,
    typer.Option(help=f"The mode: {', '.join(_MODES)}; the configuration's if left out."),
]
_DiscoveredOption = Annotated[
    str, typer.Option(help="The names of discovered tools, separated by commas.")
]
_SummaryOption = Annotated[
    bool, typer.Option("--summary", help="Print figures instead of the tools.")
]
_CacheOption = Annotated[
    bool,
    typer.Option(
        "--cache", help="Print the possible ends of the prompt cache instead of the tools."
    ),
]
_SchemasOption = Annotated[
    bool,
    typer.Option(
        "--schemas",
        help="Print the changes of schemas and the tools set aside, instead of the tools.",
    ),
]


def inspect_command(
    *,
    catalog: CatalogOrNoneOption = None,
    mcp: McpOption = None,
    provider: _ProviderOption = None,
    model: _ModelOption = None,
    base_url: _BaseUrlOption = None,
    config: _ConfigOption = None,
    mode: _ModeOption = None,
    discovered: _DiscoveredOption = "",
    summary: _SummaryOption = False,
    cache: _CacheOption = False,
    schemas: _SchemasOption = False,
    as_json: JsonOption = False,
) -> None:
    """Show the exact tool list that a provider would get, as JSON.

    A terminal gets a table instead, unless --json is given.
    """
    if provider is None:
        _show_servers(catalog, mcp)
        return
    bot = load_config(config) if config else BotConfig()
    kind, profile = _provider(provider, _model(model), base_url, bot)
    wanted = bot.tool_search.tool_schema_mode if mode is None else _mode(mode)
    tools = read_tools(catalog, mcp)
    config_of_mode = bot.tool_search.model_copy(update={"tool_schema_mode": wanted})
    found = _discovered_tools(discovered, tools)
    request = planned_request(tools, profile, config=config_of_mode, discovered=found)
    _explain(request, asked=wanted)
    if not schemas:
        _note_changes(tools, profile)
    wire = kind.encode_tools(request.plan.tools, profile)
    head = {
        "provider": provider,
        "model": profile.model,
        "strategy": request.plan.strategy,
        "mode": request.decision.mode,
    }
    if summary or cache or schemas:
        figures = figures_of(request.plan, wire, tools).to_dict() if summary else {}
        ends = {"cache": _cache(request, profile)} if cache else {}
        changes = _schemas(tools, profile) if schemas else {}
        typer.echo(json.dumps({**head, **figures, **ends, **changes}, ensure_ascii=False))
    elif sys.stdout.isatty() and not as_json:
        _print_tools(head, request.plan, figures_of(request.plan, wire, tools))
    else:
        _print_bytes(head, wire)


def _print_bytes(head: Mapping[str, str], wire: bytes) -> None:
    """Print the tool list byte for byte as a request has it, in one JSON object."""
    opened = json.dumps(head, ensure_ascii=False)[:-1]
    typer.echo(f'{opened}, "tools": {wire.decode("utf-8")}}}')


def _print_tools(head: Mapping[str, str], plan: RequestPlan, figures: ToolListFigures) -> None:
    """Print the tool list for a person."""
    console = result_console()
    table = Table(box=None, pad_edge=False)
    table.add_column(spoken("inspect.tool"), overflow="fold")
    table.add_column(spoken("inspect.tokens"), justify="right")
    table.add_column(spoken("inspect.sent"))
    for entry in plan.tools:
        sent = spoken("inspect.deferred" if entry.deferred else "inspect.loaded")
        # As Text, because a name must not be read as markup.
        cells = (clean_description(entry.tool.name), number(tool_tokens(entry.tool)), sent)
        table.add_row(*map(Text, cells))
    console.print(Text(", ".join(head.values()), style="bold"))
    console.print(table)
    line = spoken(
        "inspect.figures",
        declared=number(figures.tools_declared),
        loaded=number(figures.tools_loaded),
        tokens=number(figures.tokens),
        full_tokens=number(figures.full_tokens),
    )
    console.print(Text(wrapped(line, console.width), style="dim"))


def _show_servers(catalog: Path | None, mcp: str | None) -> None:
    """Print the state of servers and their definitions, as one JSON object.

    Raises:
        ConfigurationError: The tools are not from servers: a provider is needed.
    """
    if mcp is None or catalog is not None:
        known = ", ".join(KINDS)
        raise wrong_use("use.no_provider", known=known)
    listed = list_servers(mcp)
    say_notices(listed.tools.once(catalog_notices))
    tools = [tool.to_dict() for tool in listed.tools.values()]
    typer.echo(json.dumps({"servers": listed.servers, "tools": tools}, ensure_ascii=False))


def _schemas(catalog: ToolCatalog, profile: ProviderProfile) -> dict[str, object]:
    """Return the changes of schemas, and the tools that are set aside."""
    changes = [
        {"tool": tool.name, "kind": each.kind, "place": each.place, "detail": each.detail}
        for tool in catalog.active
        for each in declared_schema(tool).changes
    ]
    aside = [tool.name for tool in catalog.active if profile.sets_aside(tool)]
    return {"schemas": changes, "set_aside": aside}


def _cache(request: PlannedRequest, profile: ProviderProfile) -> dict[str, object]:
    plan = cache_plan(request.plan, profile)
    return {
        "kind": plan.kind,
        "breakpoints": plan.breakpoints,
        "tools_change": plan.tools_change,
        "stable_tools": plan.stable_tools,
        "stable_messages": plan.stable_messages,
    }


def _kind(name: str) -> ProviderKind:
    dialect = dialect_of(chosen("--provider", name, KINDS))
    return next(kind for kind in PROVIDERS.values() if kind.dialect == dialect)


def _provider(
    given: str, model: str | None, base_url: str | None, bot: BotConfig
) -> tuple[ProviderKind, ProviderProfile]:
    """Return what a kind, a string `kind:model` or an `id` of the configuration names."""
    if ":" not in given and given not in {entry.id for entry in bot.providers}:
        kind = _kind(given)
        return kind, kind.profile(model, base_url=base_url, profiles=bot.profiles)
    entry = provider_from_string(given, bot.providers)
    changes = {"model": model, "base_url": base_url}
    stated = {name: value for name, value in changes.items() if value is not None}
    return _kind(entry.type), profile_of(entry.model_copy(update=stated), bot.profiles)


def _model(name: str | None) -> str | None:
    if name is not None and not name.strip():
        raise wrong_use("use.empty_model")
    return name


def _mode(name: str) -> SchemaMode:
    return cast("SchemaMode", chosen("--mode", name, _MODES))


def _discovered_tools(names: str, catalog: ToolCatalog) -> Sequence[Tool]:
    """Return the named tools without core tools, which need no discovery."""
    core = {tool.name for tool in catalog.core}
    active = {tool.name: tool for tool in catalog.active}
    found = []
    for name in dict.fromkeys(part.strip() for part in names.split(",") if part.strip()):
        if name not in active:
            near = get_close_matches(name, active, n=3)
            hint = spoken("use.similar", names=", ".join(near)) if near else ""
            key = "use.switched_off" if name in catalog else "use.not_in_catalog"
            raise ConfigurationError(spoken(key, option="--discovered", name=repr(name)) + hint)
        if name in core:
            say(spoken("inspect.core", name=repr(name)))
        else:
            found.append(active[name])
    return found


def _note_changes(catalog: ToolCatalog, profile: ProviderProfile) -> None:
    changed = sum(bool(declared_schema(tool).changes) for tool in catalog.active)
    aside = sum(map(profile.sets_aside, catalog.active))
    if changed:
        say(spoken("inspect.changed", count=changed))
    if aside:
        say(spoken("inspect.aside", count=aside))


def _explain(request: PlannedRequest, *, asked: str) -> None:
    """Print why a request differs from the requested mode."""
    say_notices(request.notices)
    if asked not in ("auto", request.decision.mode):
        reason = spoken(f"inspect.{request.decision.reason}")
        say(spoken("inspect.mode", mode=request.decision.mode, reason=reason))
