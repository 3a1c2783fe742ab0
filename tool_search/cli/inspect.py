"""`tool-search inspect`: exactly what a provider would be sent of a catalog."""

from __future__ import annotations

import json
from collections.abc import Sequence
from difflib import get_close_matches
from pathlib import Path
from typing import Annotated, get_args

import typer

from tool_search.catalog.catalog import Tool, ToolCatalog
from tool_search.cli.exits import say, say_notices
from tool_search.cli.files import read_catalog
from tool_search.cli.planning import (
    PROVIDERS,
    PlannedRequest,
    ProviderKind,
    figures_of,
    planned_request,
)
from tool_search.config.bot import BotConfig, SchemaMode, load_config
from tool_search.errors import ConfigurationError
from tool_search.providers.profiles import ProviderProfile
from tool_search.providers.prompt_cache import cache_plan

__all__ = ["inspect_command"]

_MODES: tuple[SchemaMode, ...] = get_args(SchemaMode)


def inspect_command(
    *,
    catalog: Annotated[Path, typer.Option(help="A file of tools, in any known format.")],
    provider: Annotated[str, typer.Option(help=f"One of {', '.join(PROVIDERS)}.")],
    model: Annotated[str | None, typer.Option(help="Default: a current one.")] = None,
    base_url: Annotated[
        str | None, typer.Option(help="Another endpoint than the provider's own.")
    ] = None,
    config: Annotated[
        Path | None, typer.Option(help="A bot.yaml: its `profiles` and settings count.")
    ] = None,
    mode: Annotated[
        str | None,
        typer.Option(help=f"One of {', '.join(_MODES)}. Default: the configuration's, or auto."),
    ] = None,
    discovered: Annotated[
        str, typer.Option(help="Names of tools that were found already, with commas between.")
    ] = "",
    summary: Annotated[
        bool, typer.Option("--summary", help="Figures in place of the tools.")
    ] = False,
    cache: Annotated[
        bool,
        typer.Option("--cache", help="Where its prompt cache may end, in place of the tools."),
    ] = False,
    schemas: Annotated[
        bool,
        typer.Option(
            "--schemas",
            help="What is renamed, repaired, left out or set aside, in place of the tools.",
        ),
    ] = False,
) -> None:
    """Show the tool list that a provider would be sent, as JSON."""
    kind = _kind(provider)
    bot = load_config(config) if config else BotConfig()
    profile = kind.profile(_model(model), base_url=base_url, profiles=bot.profiles)
    chosen = bot.tool_search.tool_schema_mode if mode is None else _mode(mode)
    tools = read_catalog(catalog)
    request = planned_request(
        tools,
        profile,
        config=bot.tool_search.model_copy(update={"tool_schema_mode": chosen}),
        discovered=_discovered(discovered, tools),
    )
    _explain(request, asked=chosen)
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
    else:
        opened = json.dumps(head, ensure_ascii=False)[:-1]
        # The bytes that a request carries, not another rendering of the same list.
        typer.echo(f'{opened}, "tools": {wire.decode("utf-8")}}}')


def _schemas(catalog: ToolCatalog, profile: ProviderProfile) -> dict[str, object]:
    """What is declared of a catalog's schemas otherwise than it was given."""
    changes = [
        {"tool": tool.name, "kind": each.kind, "place": each.place, "detail": each.detail}
        for tool in catalog.active
        for each in tool.declared_schema.changes
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
    if name not in PROVIDERS:
        raise ConfigurationError(f"--provider {name!r}: there are {', '.join(PROVIDERS)}")
    return PROVIDERS[name]


def _model(name: str | None) -> str | None:
    if name is not None and not name.strip():
        raise ConfigurationError("--model is empty; leave it out for a current model")
    return name


def _mode(name: str) -> SchemaMode:
    for mode in _MODES:
        if mode == name:
            return mode
    raise ConfigurationError(f"--mode {name!r}: there are {', '.join(_MODES)}")


def _discovered(names: str, catalog: ToolCatalog) -> Sequence[Tool]:
    """The tools of these names, those left out that are sent without being found."""
    core = {tool.name for tool in catalog.core}
    active = {tool.name: tool for tool in catalog.active}
    chosen = []
    for name in dict.fromkeys(part.strip() for part in names.split(",") if part.strip()):
        if name not in active:
            near = get_close_matches(name, active, n=3)
            hint = f"; similar names: {', '.join(near)}" if near else ""
            state = "is switched off" if name in catalog else "is not in the catalog"
            raise ConfigurationError(f"--discovered: tool {name!r} {state}{hint}")
        if name in core:
            say(f"note: {name!r} is a core tool: it is sent without being found")
        else:
            chosen.append(active[name])
    return chosen


def _note_changes(catalog: ToolCatalog, profile: ProviderProfile) -> None:
    changed = sum(bool(tool.declared_schema.changes) for tool in catalog.active)
    aside = sum(map(profile.sets_aside, catalog.active))
    if changed:
        say(f"note: schemas declared otherwise than given: {changed}; --schemas lists how")
    if aside:
        say(f"note: tools set aside for this endpoint: {aside}; --schemas lists them")


def _explain(request: PlannedRequest, *, asked: str) -> None:
    """Says why a request is not what was asked for."""
    say_notices(request.notices)
    if asked not in ("auto", request.decision.mode):
        say(f"note: the mode is {request.decision.mode}: {request.decision.reason}")
