"""The examination of one bot, or of one catalog."""

from __future__ import annotations

import logging
import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from tool_search.cli.doctor.bot_file import read_bot_file
from tool_search.cli.doctor.checks.descriptions import (
    check_descriptions,
    described_findings,
    worst_descriptions,
)
from tool_search.cli.doctor.checks.permissions import check_permissions
from tool_search.cli.doctor.checks.providers import check_providers, profile_or_finding
from tool_search.cli.doctor.checks.servers import check_servers
from tool_search.cli.doctor.checks.settings import check_search, check_settings
from tool_search.cli.doctor.checks.store import check_store
from tool_search.cli.doctor.checks.tools import check_definitions, check_tools, load_tools
from tool_search.cli.doctor.costs import ProviderCost, provider_costs
from tool_search.cli.doctor.examined import Examined, policy_of
from tool_search.cli.doctor.findings import Finding, KeyPath, Severity
from tool_search.cli.doctor.live import NO_SERVERS, ask_providers, ask_servers
from tool_search.cli.doctor.queries import ExplainedSearch, explained_search, query_findings
from tool_search.config.bot import BotConfig
from tool_search.config.search import SearchSettings
from tool_search.core.catalog.catalog import ToolCatalog
from tool_search.core.catalog.tool import Tool
from tool_search.core.profiles import ProviderProfile
from tool_search.errors import CatalogError, ConfigurationError, SearchError
from tool_search.search import JudgedQuery, build_index
from tool_search.search.misses import find_misses

__all__ = ["Examination", "examine_bot", "examine_catalog"]

_ORDER: tuple[Severity, ...] = ("error", "warning", "note")


@dataclass(frozen=True, slots=True, kw_only=True)
class Examination:
    """The result of an examination.

    Attributes:
        findings: The findings, errors first, then in the order of the file.
        catalog: The tools that were looked at.
        costs: The cost of the first request to each provider, in order.
        worst: The tools that are worst described, the worst first.
        search: The search of `query`, explained; None without one.
    """

    findings: tuple[Finding, ...]
    catalog: ToolCatalog
    costs: tuple[ProviderCost, ...] = ()
    worst: tuple[str, ...] = ()
    search: ExplainedSearch | None = None

    @property
    def severity(self) -> Severity | None:
        """The highest severity; None without findings."""
        found = {finding.severity for finding in self.findings}
        return next((each for each in _ORDER if each in found), None)


async def examine_bot(
    path: Path,
    *,
    environment: Mapping[str, str] | None = None,
    live: bool = False,
    query: str | None = None,
    judged: Sequence[JudgedQuery] = (),
    worst: int = 10,
) -> Examination:
    """Examine a bot's file; nothing is written, and nothing asked unless `live`.

    Args:
        path: The file.
        environment: The variables; None: those of this process.
        live: True to ask each provider and each server once.
        query: A search to explain.
        judged: Queries with known answers, by which descriptions are judged too.
        worst: The number of worst descriptions to name.
    """
    variables = os.environ if environment is None else environment
    file = read_bot_file(path)
    bot = Examined(file=file, environment=variables)
    if not file.is_read:
        return _examination(bot, file.findings)
    findings = list(file.findings)
    bot, found = await _with_tools(bot, live=live)
    findings += found
    bot, found = _with_profiles(bot)
    findings += found
    costs = provider_costs(bot)
    findings += check_providers(bot)
    findings += check_tools(bot)
    findings += check_settings(bot, costs)
    findings += check_search(bot, live=live)
    findings += check_permissions(bot)
    findings += check_servers(bot)
    findings += await check_store(bot, live=live)
    if live:
        findings += await ask_providers(bot)
    described = _describe(bot.catalog, bot.origins, judged, file.settings.tool_search.search)
    search = _search(bot.catalog, query, file.settings)
    findings += [*described, *(query_findings(search) if search else ())]
    made = _examination(bot, findings)
    return replace(
        made,
        costs=tuple(costs.values()),
        worst=worst_descriptions(bot.catalog, described, worst),
        search=search,
    )


def examine_catalog(
    tools: Iterable[Tool],
    *,
    origins: Mapping[str, KeyPath] | None = None,
    query: str | None = None,
    judged: Sequence[JudgedQuery] = (),
    worst: int = 10,
) -> Examination:
    """Examine tools without a bot.

    Args:
        tools: The tools.
        origins: The place of each tool, by its name.
        query: A search to explain.
        judged: Queries with known answers.
        worst: The number of worst descriptions to name.
    """
    catalog, places = ToolCatalog(tools), origins or {}
    described = _describe(catalog, places, judged, SearchSettings())
    search = _search(catalog, query, BotConfig())
    findings = [
        *check_definitions(catalog, places),
        *described,
        *(query_findings(search) if search else ()),
    ]
    return Examination(
        findings=_sort(findings),
        catalog=catalog,
        worst=worst_descriptions(catalog, described, worst),
        search=search,
    )


async def _with_tools(bot: Examined, *, live: bool) -> tuple[Examined, Sequence[Finding]]:
    settings = bot.settings
    own = load_tools(settings.tools, bot.file.path)
    servers = {name for name, each in settings.mcp_servers.items() if not each.disabled}
    asked = await ask_servers(bot, bot.environment) if live and servers else NO_SERVERS
    tools = asked.tools
    origins = {
        **{tool.name: ("mcpServers", str(tool.server)) for tool in tools},
        **own.origins,
    }
    catalog, problems = _catalog([*own.tools, *tools], settings)
    unknown = frozenset(servers - asked.connected)
    known = replace(bot, catalog=catalog, origins=origins, unknown_servers=unknown)
    return known, (*own.findings, *asked.findings, *problems)


def _catalog(tools: Sequence[Tool], settings: BotConfig) -> tuple[ToolCatalog, list[Finding]]:
    try:
        return ToolCatalog(tools, policy=policy_of(settings)), []
    except CatalogError as exc:
        return ToolCatalog(), [
            Finding(code="tool_twice", path=("tools",), values={"problem": str(exc)})
        ]


def _with_profiles(bot: Examined) -> tuple[Examined, Sequence[Finding]]:
    profiles: dict[str, ProviderProfile] = {}
    findings = []
    for index, provider in enumerate(bot.settings.providers):
        found = profile_or_finding(provider, index, bot)
        if isinstance(found, Finding):
            findings.append(found)
        else:
            profiles[provider.id] = found
    return replace(bot, profiles=profiles), findings


def _describe(
    catalog: ToolCatalog,
    origins: Mapping[str, KeyPath],
    judged: Sequence[JudgedQuery],
    settings: SearchSettings,
) -> list[Finding]:
    findings = list(check_descriptions(catalog, origins))
    if judged:
        index = build_index(catalog.active, settings)
        by_name = {tool.name: tool for tool in catalog.active}
        findings += described_findings(find_misses(index, judged, by_name), origins)
    return findings


def _search(catalog: ToolCatalog, query: str | None, settings: BotConfig) -> ExplainedSearch | None:
    if query is None:
        return None
    section = settings.tool_search
    try:
        return explained_search(catalog, query, section.search, limit=section.max_results)
    except (ConfigurationError, SearchError) as exc:
        # A finding of `check_search` too, if the engine itself is the reason.
        logging.getLogger(__name__).warning("the query cannot be searched for: %s", exc)
        return None


def _examination(bot: Examined, findings: Iterable[Finding]) -> Examination:
    placed = map(bot.file.placed, findings)
    return Examination(findings=_sort(placed), catalog=bot.catalog)


def _sort(findings: Iterable[Finding]) -> tuple[Finding, ...]:
    return tuple(
        sorted(
            findings,
            key=lambda found: (_ORDER.index(found.severity), found.place.line or 0, found.code),
        )
    )
