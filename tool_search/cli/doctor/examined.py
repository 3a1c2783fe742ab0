"""The subject of the checks: the settings, the tools and the profiles of one bot."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from tool_search.cli.doctor.bot_file import BotFile
from tool_search.cli.doctor.findings import KeyPath
from tool_search.config.bot import BotConfig
from tool_search.core.catalog.catalog import CorePolicy, ToolCatalog
from tool_search.core.profiles import ProviderProfile

__all__ = ["Examined"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Examined:
    """One bot, as far as it is known without a request.

    Attributes:
        file: Its file.
        environment: The environment variables.
        catalog: Its tools, with the core that the settings choose.
        origins: The setting that a tool comes from, by the tool's name.
        profiles: The profile of each provider that has one, by the provider's `id`.
        unknown_servers: The servers whose tools are not among `catalog`.
    """

    file: BotFile
    environment: Mapping[str, str]
    catalog: ToolCatalog = field(default_factory=ToolCatalog)
    origins: Mapping[str, KeyPath] = field(default_factory=dict)
    profiles: Mapping[str, ProviderProfile] = field(default_factory=dict)
    unknown_servers: frozenset[str] = frozenset()

    @property
    def knows_servers(self) -> bool:
        """True if the tools of all servers are among `catalog`."""
        return not self.unknown_servers

    @property
    def settings(self) -> BotConfig:
        """The settings."""
        return self.file.settings

    @property
    def max_tools(self) -> int | None:
        """The longest list that every provider takes; None: no limit is known."""
        limits = (profile.max_tools for profile in self.profiles.values())
        return min((limit for limit in limits if limit is not None), default=None)

    @property
    def policy(self) -> CorePolicy:
        """The choice of core tools."""
        return policy_of(self.settings)


def policy_of(settings: BotConfig) -> CorePolicy:
    """Return the choice of core tools that settings make."""
    return CorePolicy(
        always_loaded_tools=settings.tool_search.always_loaded_tools,
        auto_always_load_builtin=settings.tool_search.auto_always_load_builtin,
    )
