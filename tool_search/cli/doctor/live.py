"""Requests of `--live`: each provider and each server is asked once."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import replace
from importlib import import_module
from typing import NamedTuple

from tool_search.adapters import build_provider
from tool_search.cli.doctor.checks.servers import unreadable
from tool_search.cli.doctor.examined import Examined
from tool_search.cli.doctor.findings import Finding
from tool_search.cli.doctor.requests import planned_request
from tool_search.config.bot import ProviderConfig
from tool_search.core.catalog.tool import Tool
from tool_search.core.messages import Notice
from tool_search.errors import (
    ConfigurationError,
    ProviderError,
    SessionError,
    UnsupportedStrategyError,
)
from tool_search.providers.base import ConnectedProvider
from tool_search.providers.refusals import SentTools
from tool_search.runner.providers import ProviderPool
from tool_search.runner.refusals import Repeats, TurnRefusals
from tool_search.sources.base import ServerStatus

__all__ = ["NO_SERVERS", "AskedServers", "ask_providers", "ask_servers"]

_ANSWER_S = 30.0
_START_S = 30.0


class AskedServers(NamedTuple):
    """The answers of the servers.

    Attributes:
        tools: Their tools.
        connected: The servers that have answered.
        findings: A finding for each of the others.
    """

    tools: Sequence[Tool] = ()
    connected: frozenset[str] = frozenset()
    findings: Sequence[Finding] = ()


NO_SERVERS = AskedServers()


async def ask_servers(bot: Examined, environment: Mapping[str, str]) -> AskedServers:
    """Return the tools of the servers, and a finding for each server that does not answer."""
    try:
        source_class = import_module("tool_search.adapters.mcp").MCPSource
    except ImportError:
        return NO_SERVERS  # `check_servers` reports it
    servers = {
        name: each
        for name, each in bot.settings.mcp_servers.items()
        # `check_servers` reports what cannot be read.
        if not each.disabled and not unreadable(each, environment)
    }
    try:
        source = source_class(servers, environment=environment, start_s=_START_S)
        async with source:
            status, tools = tuple(source.status), tuple(source.tools)
    except ConfigurationError as exc:
        values = {"server": ", ".join(servers), "problem": str(exc)}
        finding = Finding(code="server_silent", path=("mcpServers",), values=values)
        return AskedServers(findings=(finding,))
    findings = [
        Finding(
            code="server_silent",
            path=("mcpServers", each.server),
            values={"server": each.server, "problem": _problem(each)},
        )
        for each in status
        if each.state != "connected"
    ]
    connected = frozenset(each.server for each in status if each.state == "connected")
    return AskedServers(tools, connected, findings)


def _problem(status: ServerStatus) -> str:
    said = f"; its last lines: {status.last_lines}" if status.last_lines else ""
    return f"{status.error or 'no answer'}{said}"


async def ask_providers(bot: Examined) -> tuple[Finding, ...]:
    """Return a finding for each provider that refuses the bot's first request.

    The request has the bot's tools, so that a definition which the service refuses is found
    too. Its answer is not read to the end.
    """
    asked = [
        _ask(provider, index, bot)
        for index, provider in enumerate(bot.settings.providers)
        if provider.id in bot.profiles
    ]
    return tuple(found for found in await asyncio.gather(*asked) if found is not None)


async def _ask(provider: ProviderConfig, index: int, bot: Examined) -> Finding | None:
    try:
        built = build_provider(
            provider, profiles=bot.settings.profiles, environment=bot.environment, fallbacks=True
        )
    except (ConfigurationError, UnsupportedStrategyError, ImportError):
        return None  # a missing key or package is a finding already
    path = ("providers", index)
    try:
        async with built, asyncio.timeout(_ANSWER_S):
            notice = await _answer(provider.id, built, bot)
    except ProviderError as exc:
        values = {"provider": provider.id, "problem": str(exc)}
        return Finding(code="provider_refused", path=path, values=values)
    except TimeoutError:
        problem = f"no answer in {_ANSWER_S:g} s"
        values = {"provider": provider.id, "problem": problem}
        return Finding(code="provider_refused", path=path, values=values)
    except SessionError:
        return None  # a catalog that no conversation can have is a finding already
    if notice is None:
        return None
    values = {"provider": provider.id, "problem": notice.message}
    return Finding(code="form_refused", path=path, values=values)


async def _answer(name: str, built: ConnectedProvider, bot: Examined) -> Notice | None:
    """Return a notice if a provider answers only a plainer form of the bot's first request.

    The answer is not read to its end: the connection is closed with the provider.

    Raises:
        ProviderError: It answers no form, or its refusal is a known one.
    """
    refusals = TurnRefusals(ProviderPool({name: built}, {name: 0}), name)
    config, most = bot.settings.tool_search, bot.max_tools
    while True:
        form = refusals.form(name, "answer")
        profile = replace(built.profile, **form)
        plan = planned_request(bot.catalog, profile, config=config, max_tools=most).plan
        try:
            await anext(built.stream(replace(plan, form=form)), None)
        except ProviderError as error:
            sent = SentTools(listed=plan.tools, facts=plan.facts)
            refusals.action(error, name, profile, sent, repeats=Repeats())
            if name not in refusals.plainer:
                raise
            refusals.ask_plainer(name)
        else:
            return next(refusals.answered(name, plan), None)
