"""oh-my-pi's settings of tool discovery, and the catalogs that follow from them."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from difflib import get_close_matches
from typing import Any, Literal, cast, get_args

from tool_search.adapters.compat.oh_my_pi.ranking import discoverable
from tool_search.config.conversation import ToolSearchConfig
from tool_search.config.search import AnswerForm, SearchSettings
from tool_search.core.catalog.catalog import CorePolicy, ToolCatalog
from tool_search.core.catalog.tool import Tool
from tool_search.core.discoveries import resolve_mode
from tool_search.errors import ConfigurationError

__all__ = ["DEFAULT_LIMIT", "SEARCH_TOOL_NAME", "DiscoveryMode", "DiscoverySettings"]

SEARCH_TOOL_NAME = "search_tool_bm25"
DEFAULT_LIMIT = 8

DiscoveryMode = Literal["off", "mcp-only", "all"]
DiscoveryModeSetting = Literal["auto", "off", "mcp-only", "all"]

_MAX_TOOLS = 40
_MAX_TOKENS = 16_000
_ESSENTIAL = ("read", "bash", "edit")
_KEYS = (
    "tools.discoveryMode",
    "tools.essentialOverride",
    "mcp.discoveryMode",
    "mcp.discoveryDefaultServers",
)
_INTERNAL = ("resolve", "yield")
_INTERNAL_PREFIX = "report_"


@dataclass(frozen=True, slots=True, kw_only=True)
class DiscoverySettings:
    """The settings of oh-my-pi's users.

    Attributes:
        mode: `tools.discoveryMode`. `off` hides nothing, `mcp-only` the tools of MCP
            servers, `all` built-in tools too; `auto` is `mcp-only` above 40 tools or
            16,000 estimated tokens of definitions, and otherwise `off`.
        mcp_discovery: `mcp.discoveryMode`: `mcp-only`, if `mode` is neither `mcp-only` nor
            `all`.
        essential_override: `tools.essentialOverride`: built-in tools that `all` leaves
            visible, instead of read, bash and edit. Later versions show write, find, glob and
            eval too: name all seven.
        default_servers: `mcp.discoveryDefaultServers`: servers whose tools stay visible.
        answer: The answer of the search tool: `names` for the four keys of oh-my-pi's
            document, `tools` for its later form with descriptions and arguments.
    """

    mode: DiscoveryModeSetting = "auto"
    mcp_discovery: bool = False
    essential_override: tuple[str, ...] = ()
    default_servers: tuple[str, ...] = ()
    answer: AnswerForm = "names"

    @classmethod
    def from_mapping(cls, content: Mapping[str, Any]) -> DiscoverySettings:
        """Return the settings in oh-my-pi's own configuration.

        Keys may be dotted, as `tools.discoveryMode`, or nested; oh-my-pi's other keys are ignored.

        Raises:
            ConfigurationError: A value is not allowed, or a key is written almost like one of
                these; the message has the key.

        >>> DiscoverySettings.from_mapping({"tools": {"discoveryMode": "all"}}).mode
        'all'
        """
        _check_spelling(content)
        mode = _setting(content, "tools.discoveryMode", "auto")
        if mode not in get_args(DiscoveryModeSetting):
            allowed = ", ".join(get_args(DiscoveryModeSetting))
            raise ConfigurationError(f"tools.discoveryMode is {mode!r}: must be one of {allowed}")
        legacy = _setting(content, "mcp.discoveryMode", default=False)
        if not isinstance(legacy, bool):
            raise ConfigurationError(f"mcp.discoveryMode is {legacy!r}: must be true or false")
        return cls(
            mode=cast("DiscoveryModeSetting", mode),
            mcp_discovery=legacy,
            essential_override=_names(content, "tools.essentialOverride"),
            default_servers=_names(content, "mcp.discoveryDefaultServers"),
        )

    def resolved(self, tools: Iterable[Tool]) -> DiscoveryMode:
        """Return the mode for these tools, which do not include the search tool."""
        if self.mode in ("mcp-only", "all"):
            return cast("DiscoveryMode", self.mode)
        if self.mcp_discovery:
            return "mcp-only"
        if self.mode == "off":
            return "off"
        decision = resolve_mode(
            "auto",
            self.catalog(tools, mode="mcp-only"),
            threshold=_MAX_TOOLS,
            threshold_tokens=_MAX_TOKENS,
        )
        return "mcp-only" if decision.mode == "tool_search" else "off"

    def essential(self, known: Collection[str]) -> tuple[str, ...]:
        """Return the built-in tools that stay visible, of those that are known.

        An override of unknown names alone leaves none.
        """
        chosen = tuple(name.strip() for name in self.essential_override if name.strip())
        return tuple(name for name in dict.fromkeys(chosen or _ESSENTIAL) if name in known)

    def catalog(
        self, tools: Iterable[Tool], *, mode: DiscoveryMode, requested: Iterable[str] = ()
    ) -> ToolCatalog:
        """Return a catalog: visible tools are core, the rest is deferred.

        Args:
            tools: All tools.
            mode: The mode, as `resolved` returns it.
            requested: Names that stay visible: asked for, or forced by a tool choice.
        """
        listed = list(tools)
        essential = self.essential([tool.name for tool in listed if tool.kind == "builtin"])
        visible = frozenset((*essential, *requested))
        servers = frozenset(server.strip() for server in self.default_servers)
        marked = (
            replace(tool, always_load=True)
            if not tool.always_load and _is_visible(tool, mode, visible, servers)
            else tool
            for tool in listed
        )
        return ToolCatalog(marked, policy=CorePolicy(auto_always_load_builtin=False))

    def session_catalog(
        self, tools: Iterable[Tool], *, requested: Iterable[str] = ()
    ) -> ToolCatalog:
        """Return the catalog for a session or runner that `session_config` configures."""
        mode: DiscoveryMode = "all" if self.mode == "all" else "mcp-only"
        off = self.mode == "off" and not self.mcp_discovery
        return self.catalog(tools, mode="off" if off else mode, requested=requested)

    def session_config(self) -> ToolSearchConfig:
        """Return the same settings for a `ToolSearchSession` or runner.

        The search tool is then `search_tool_bm25`, ranks as oh-my-pi does and gives its answer;
        `auto` is resolved at the first turn and changes once, if tools come later.
        """
        explicit = self.mcp_discovery or self.mode in ("mcp-only", "all")
        return ToolSearchConfig(
            tool_schema_mode="tool_search"
            if explicit
            else "auto"
            if self.mode == "auto"
            else "full",
            threshold=_MAX_TOOLS,
            threshold_tokens=_MAX_TOKENS,
            max_results=DEFAULT_LIMIT,
            auto_always_load_builtin=False,
            search_tool_name=SEARCH_TOOL_NAME,
            search=SearchSettings(preset="oh-my-pi", answer=self.answer),
        )


def _is_visible(
    tool: Tool, mode: DiscoveryMode, visible: Collection[str], servers: Collection[str]
) -> bool:
    if mode == "off" or tool.name in visible:
        return True
    if discoverable(tool, summary="").source == "mcp":
        return tool.server in servers
    if mode == "mcp-only" or _is_internal(tool):
        return True
    # Tools of other sources have a load mode only if they set one.
    usual = "discoverable" if tool.kind == "builtin" else None
    return bool(tool.annotations.get("load_mode", usual) != "discoverable")


def _is_internal(tool: Tool) -> bool:
    return tool.kind == "builtin" and (
        tool.name in _INTERNAL or tool.name.startswith(_INTERNAL_PREFIX)
    )


def _check_spelling(content: Mapping[str, Any]) -> None:
    """Raise if a key that oh-my-pi does not have is nearly one of those that are read.

    Its configuration holds many settings that are not about tools, which are passed over.
    """
    given = set(map(str, content))
    for section in ("tools", "mcp"):
        nested = content.get(section)
        if isinstance(nested, Mapping):
            given.update(f"{section}.{name}" for name in nested)
    for key in sorted(given.difference(_KEYS)):
        near = get_close_matches(_plain_key(key), list(map(_plain_key, _KEYS)), n=1, cutoff=0.85)
        if near:
            known = next(name for name in _KEYS if _plain_key(name) == near[0])
            raise ConfigurationError(f"{key} is not a setting of tool discovery; write {known}")


def _plain_key(key: str) -> str:
    return key.replace("_", "").replace("-", "").casefold()


def _setting(content: Mapping[str, Any], key: str, default: object) -> object:
    """Return a setting under its dotted or its nested key."""
    section, _, name = key.partition(".")
    nested = content.get(section)
    inner = nested.get(name) if isinstance(nested, Mapping) else None
    value = content.get(key, inner)
    return default if value is None else value


def _names(content: Mapping[str, Any], key: str) -> tuple[str, ...]:
    value = _setting(content, key, ())
    is_list = isinstance(value, Sequence) and not isinstance(value, str)
    if not is_list or not all(isinstance(name, str) for name in cast("Sequence[object]", value)):
        raise ConfigurationError(f"{key} is {value!r}: must be a list of names")
    return tuple(cast("Sequence[str]", value))
