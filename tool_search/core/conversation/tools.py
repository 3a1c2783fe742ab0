"""The tools of one conversation: its mode, its lists, and its search tool.

The first turn freezes the language, the mode, the core's order and the search tool's
text. User turns apply a new catalog and a changed configuration.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace

from tool_search.core.catalog.catalog import CorePolicy, ToolCatalog
from tool_search.core.catalog.naming import NameBook, Source
from tool_search.core.catalog.schemas import TextLimits
from tool_search.core.catalog.tool import Tool
from tool_search.core.conversation.record import ConversationState
from tool_search.core.discoveries import (
    OWN_TOOLS,
    DiscoveryState,
    Mode,
    ModeDecision,
    ModeReason,
    ToolOrder,
    core_room,
    resolve_mode,
)
from tool_search.core.messages import Notice, NoticeCode
from tool_search.core.profiles import ProviderProfile
from tool_search.core.services import (
    CALL_TOOL_NAME,
    SearchesCatalogs,
    SearchTool,
    ToolSearchIndex,
    Votes,
    call_tool_definition,
)
from tool_search.core.settings import ConversationSettings, SchemaMode
from tool_search.errors import SearchError, SessionError
from tool_search.i18n import Language, language_of

__all__ = ["FrozenSettings", "ToolState"]

_MAX_NOTICED = 1_000
_MAX_SCHEMA_NOTICES = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class FrozenSettings:
    """Settings that the first turn decides; later only a changed configuration does.

    Attributes:
        language: The language of all text for the model and the user.
        decision: The mode, which may also go from `full` to `tool_search`, once.
        search_tool: The search tool's definition; its name alone outside `tool_search`.
        call_tool: The definition of the tool that calls tools for which no list has room.
        configured: The `tool_schema_mode` that decided the mode; None: not known.
        listing: The listing of tools that wait to be found; None: to be made.
    """

    language: Language
    decision: ModeDecision
    search_tool: Tool
    call_tool: Tool
    configured: SchemaMode | None
    listing: str | None = None


class ToolState:
    """The tools of one conversation.

    Args:
        catalog: The tools.
        config: The settings.
        discoveries: The discoveries of the conversation.
        max_tools: The longest tool list that every provider of the bot takes.
        search: What searches the catalog.
    """

    def __init__(
        self,
        catalog: ToolCatalog,
        *,
        config: ConversationSettings,
        discoveries: DiscoveryState,
        max_tools: int | None,
        search: SearchesCatalogs,
    ) -> None:
        self._config = config
        self.search = search
        self._discoveries = discoveries
        self._max_core = None if max_tools is None else core_room(max_tools)
        self._index: ToolSearchIndex | None = None
        self._with_votes: tuple[ToolSearchIndex, Votes | None, ToolSearchIndex] | None = None
        self.votes: Votes | None = None
        self.trail = search.trail()
        self._notices: list[Notice] = []
        self._noticed: set[Notice] = set()
        self._withheld: tuple[Tool, ...] = ()
        self._incomplete: set[str] = set()
        self.tool_order = ToolOrder(ToolCatalog(), catalog_order=(), declared_order=(), core=())
        self._frozen: FrozenSettings | None = None
        self._given = catalog
        self._names = catalog.book
        self.catalog = self._view(catalog, self.own_names)

    @property
    def is_frozen(self) -> bool:
        """True if a first turn has decided the settings."""
        return self._frozen is not None

    @property
    def frozen(self) -> FrozenSettings:
        """The frozen settings.

        Raises:
            SessionError: No turn has begun yet.
        """
        if self._frozen is None:
            raise SessionError("the conversation has not started; call begin_turn first")
        return self._frozen

    @property
    def mode(self) -> Mode:
        """The conversation's mode."""
        return self.frozen.decision.mode

    @property
    def search_tool_name(self) -> str:
        """The name by which the model calls searches."""
        return self._frozen.search_tool.name if self._frozen else self._config.search_tool_name

    @property
    def own_names(self) -> tuple[str, str]:
        """The names of the library's own tools."""
        return self.search_tool_name, CALL_TOOL_NAME

    @property
    def open_tools(self) -> int:
        """The number of deferred tools that everybody may call."""
        return sum(map(self.catalog.is_open, self.catalog.deferred))

    def _view(self, given: ToolCatalog, own: Iterable[str]) -> ToolCatalog:
        """Return a catalog as this conversation has it: with its own core and names."""
        return given.view(
            policy=self._policy(),
            limits=TextLimits(
                description=self._config.max_description_chars,
                schema_text=self._config.max_schema_text_chars,
            ),
            exceptions=self._exceptions(given.book),
            reserved=own,
        )

    def _policy(self) -> CorePolicy:
        return CorePolicy(
            always_loaded_tools=self._config.always_loaded_tools,
            auto_always_load_builtin=self._config.auto_always_load_builtin,
            max_core=self._max_core,
        )

    def _exceptions(self, given: NameBook) -> dict[Source, str]:
        """Return names that this conversation refers to, and that other tools have in a catalog."""
        unlike = self._names.unlike(given)
        tool_order = self.tool_order
        referred = (
            {*tool_order.catalog_order, *tool_order.left, *self._discoveries.names}
            if unlike
            else ()
        )
        return {source: name for source, name in unlike.items() if name in referred}

    def _use(self, catalog: ToolCatalog) -> None:
        self.catalog = catalog
        self._names = catalog.book

    def search_tool(self, language: Language | None = None) -> SearchTool | None:
        """Return the search tool; None if the catalog cannot be searched."""
        if self._index is None:
            return None
        return self.search.search_tool(
            self._search(self._index),
            self.catalog,
            name=self.search_tool_name,
            language=language or self.frozen.language,
        )

    @property
    def searched_index(self) -> ToolSearchIndex | None:
        """The index with the current votes; None if the catalog cannot be searched."""
        return None if self._index is None else self._search(self._index)

    def freeze_listing(self, denied: Callable[[Iterable[Tool]], frozenset[str]]) -> None:
        """Make the listing, if the search tool's text is new.

        Args:
            denied: Returns the names of those tools that this turn's user may not call.
        """
        frozen = self.frozen
        if frozen.listing is not None or self.mode != "tool_search":
            return
        made = self.search.listing(
            self.catalog, name=self.search_tool_name, language=frozen.language, denied=denied
        )
        self._frozen = replace(frozen, listing=made)

    def _search(self, index: ToolSearchIndex) -> ToolSearchIndex:
        """Return the index with the current votes; the same one until either changes."""
        known = self._with_votes
        if known is None or known[0] is not index or known[1] is not self.votes:
            known = self._with_votes = (
                index,
                self.votes,
                self.search.with_votes(index, self.votes),
            )
        return known[2]

    @property
    def embeds(self) -> bool:
        """True if a search embeds its query, and so may wait for an embedder."""
        return self.search.embeds

    def take_notices(self) -> tuple[Notice, ...]:
        """Return the notices for an operator since the last call of this method."""
        if warning := getattr(self._index, "warning", ""):
            self.notice("search_limited", warning)
        notices, self._notices = tuple(self._notices), []
        return notices

    def notice(self, code: NoticeCode, message: str) -> None:
        """Note a fact that holds for the whole conversation; it is reported once."""
        notice = Notice(code, message)
        if notice not in self._noticed:
            # A server that lists ever new tools has ever new notices.
            if len(self._noticed) >= _MAX_NOTICED:
                self._noticed.clear()
            self._noticed.add(notice)
            self._notices.append(notice)

    def notice_schemas(self, tools: Iterable[Tool]) -> None:
        """Note tools whose schemas are shown in part, each once.

        Args:
            tools: Tools that a request shows.
        """
        declared = self.search.schemas.declared
        found = [
            tool for tool in tools
            if declared(tool).left_out and tool.shown_fingerprint not in self._incomplete
        ]  # fmt: skip
        self._incomplete.update(tool.shown_fingerprint for tool in found)
        for tool in found[:_MAX_SCHEMA_NOTICES]:
            self.notice("schema_incomplete", f"tool {tool.name!r}: {declared(tool).incomplete}")
        if rest := found[_MAX_SCHEMA_NOTICES:]:
            names = ", ".join(repr(tool.name) for tool in rest[:_MAX_SCHEMA_NOTICES])
            self.notice(
                "schema_incomplete",
                f"parts of the schemas of {len(rest)} more tools are left out, among them {names}; "
                "tool-search inspect lists them",
            )

    def announce(self, code: NoticeCode, message: str) -> None:
        """Note a fact that may recur; it is reported each time."""
        self._notices.append(Notice(code, message))

    def begin(self, catalog: ToolCatalog | None, profile: ProviderProfile, sample: str) -> None:
        """Begin a user turn: the first one freezes settings, later ones follow changes.

        Args:
            catalog: The tools from now on; None: they have not changed.
            profile: The provider that will be asked first.
            sample: The user's message, for its language.

        Raises:
            SessionError: A tool has the search tool's name; nothing has changed.
        """
        self.trail.begin_turn()
        offered = self.catalog if catalog is None else self._view(catalog, self.own_names)
        if self._frozen is None:
            self._freeze(offered, profile, sample)
        else:
            self._follow_settings(offered, profile)
        for notice in self.search.notices(offered, is_searched=self._index is not None):
            self.notice(notice.code, notice.message)
        self._given = self._given if catalog is None else catalog

    def restore(self, record: ConversationState) -> None:
        """Go on with a recorded conversation.

        A tool that took the name of one of the library's own since is left out; the next user
        turn reports it.
        """
        self.tool_order = ToolOrder.restored(record.tool_order)
        self._names = NameBook(record.names)
        self._use(self._view(self._given, (record.search_tool.name, CALL_TOOL_NAME)))
        if record.decision.mode == "tool_search":
            own = (record.search_tool.name, CALL_TOOL_NAME)
            self._withheld = tuple(self.catalog[name] for name in own if name in self.catalog)
            self._use(self.catalog.updated(removed=own))
        self._frozen = FrozenSettings(
            language=record.language,
            decision=self._with_index(record.decision),
            search_tool=record.search_tool,
            call_tool=call_tool_definition(record.language),
            configured=record.configured,
            listing=record.listing,
        )
        self._follow_catalog()
        self.tool_order.append_unlisted(self._discoveries)

    def fit(self, profile: ProviderProfile) -> ProviderProfile:
        """Return the profile for planning a request to this provider.

        Tools for which the provider's list has no room must be searched. A catalog beyond
        Claude's limits gets a filtered list.
        """
        declared = len(self.tool_order.catalog_order) - (self.own_names[0] not in self.catalog)
        too_long = profile.max_tools is not None and declared > profile.max_tools
        if too_long and profile.max_tools is not None:
            self._defer_core(profile.max_tools)
        if too_long and self.mode != "tool_search" and self.catalog.deferred:
            self._search_from_now("above_provider_limit")
        if (
            self.mode == "skills_like"
            and profile.thinking_bound_to_prefix
            and self.catalog.deferred
        ):
            self._search_from_now("not_offered")
        deferred, text_bytes = len(self.catalog.deferred), self.search.text_bytes(self.catalog)
        deferred += len(self.tool_order.retained(self._discoveries))
        for what, size, most in (
            ("deferred tools", deferred, profile.max_deferred),
            ("bytes of tool text", text_bytes, profile.max_tool_bytes),
        ):
            if most is not None and size > most:
                self.notice(
                    "catalog_over_limit",
                    f"{size:,} {what} are more than the {most:,} that {profile.model!r} takes; "
                    "it gets the generic strategy",
                )
                return profile.generic()
        return profile

    def _defer_core(self, max_tools: int) -> None:
        """Defer the core tools for which a shorter list has no room."""
        if len(self.tool_order.core) <= max_tools - OWN_TOOLS or self._index is None:
            return
        self._max_core = core_room(max_tools)
        catalog = self.catalog.with_policy(self._policy())
        self._index = self._update(self._index, catalog)
        self._use(catalog)
        before = len(self.tool_order.core)
        self.tool_order.defer(catalog, self._discoveries)
        self._notices.append(
            Notice(
                "catalog_changed",
                f"a list of {max_tools} tools has no room for {before} core tools: "
                f"{len(self.tool_order.core)} are core from now on, the others are deferred",
            )
        )

    def _freeze(self, catalog: ToolCatalog, profile: ProviderProfile, sample: str) -> None:
        config = self._config
        decision = self._decide(catalog, profile)
        if decision.mode == "tool_search":
            self._check_names(catalog)
        self._use(catalog)
        language = language_of(sample) if config.language == "auto" else config.language
        decision = self._with_index(decision)
        search_tool = self.search_tool(language)
        self._frozen = FrozenSettings(
            language=language,
            decision=decision,
            search_tool=search_tool.definition() if search_tool else Tool(name=self.own_names[0]),
            call_tool=call_tool_definition(language),
            configured=config.tool_schema_mode,
        )
        self.tool_order = ToolOrder.start(catalog, search_tool_name=config.search_tool_name)
        self.tool_order.append(self._discoveries.names)
        if len(catalog.core) == self._max_core:
            self.notice(
                "catalog_over_limit", f"{self._max_core} tools are core, what is more is deferred"
            )

    def _decide(self, catalog: ToolCatalog, profile: ProviderProfile) -> ModeDecision:
        """Decide the mode by the configuration, within the provider's limits."""
        decision = self._resolve(catalog, profile)
        if decision.mode != "skills_like" or not profile.thinking_bound_to_prefix:
            return decision
        mode: Mode = "tool_search" if catalog.deferred else "full"
        self.notice(
            "mode_changed",
            f"skills_like is not offered on {profile.model!r}, whose thinking is bound to "
            f"the tool list; the mode is {mode}",
        )
        return ModeDecision(mode=mode, reason="not_offered")

    def _resolve(self, catalog: ToolCatalog, profile: ProviderProfile) -> ModeDecision:
        return resolve_mode(
            self._config.tool_schema_mode,
            catalog,
            threshold=self._config.threshold,
            threshold_tokens=self._config.threshold_tokens,
            max_tools=profile.max_tools,
        )

    def _follow_settings(self, catalog: ToolCatalog, profile: ProviderProfile) -> None:
        """Apply a catalog, and settings that the configuration has changed.

        Raises:
            SessionError: The catalog is refused; nothing has changed.
        """
        before = self.frozen
        wanted = self._choose_settings(catalog, profile)
        old, new = before.search_tool.name, wanted.search_tool.name
        if old != new:
            catalog = catalog.updated(
                added=[t for t in self._withheld if t.name == old and t.name not in catalog]
            )
        self._frozen = wanted
        orders = self.tool_order.catalog_order, self.tool_order.declared_order
        if old != new:
            self.tool_order.rename(old, new)
            self.tool_order.append_unlisted(self._discoveries)
        try:
            self._apply_catalog(catalog, profile)
        except SessionError:
            self._frozen = before
            self.tool_order.catalog_order, self.tool_order.declared_order = orders
            raise
        changes = _changes(before, wanted)
        if not changes:
            return
        search_tool = self.search_tool() if self.mode == "tool_search" else None
        if search_tool is not None:
            definition = search_tool.definition()
            self._frozen = replace(self.frozen, search_tool=definition, listing=None)
        self._notices.append(
            Notice("settings_changed", f"the configuration has changed: {'; '.join(changes)}")
        )

    def _choose_settings(self, catalog: ToolCatalog, profile: ProviderProfile) -> FrozenSettings:
        """Return the settings with the values that the configuration has changed.

        `auto` keeps the frozen value, and so does a setting that cannot be followed.
        """
        frozen, config = self.frozen, self._config
        language = frozen.language if config.language == "auto" else config.language
        name = self._wanted_name(catalog)
        configured: SchemaMode | None = config.tool_schema_mode
        decision = frozen.decision
        # `auto` never decides for `skills_like`, so a conversation in it follows `auto` too.
        follows = configured != "auto" or decision.mode == "skills_like"
        if follows and configured != frozen.configured:
            now = self._decide(catalog, profile)
            if now.mode == "tool_search" and not self._can_search(catalog, name):
                configured = frozen.configured  # the next turn tries again
            elif now.mode != decision.mode:
                decision = now
        wanted = replace(frozen, decision=decision, configured=configured)
        if name != frozen.search_tool.name:
            wanted = replace(wanted, search_tool=replace(frozen.search_tool, name=name))
        if language != frozen.language:
            wanted = replace(wanted, language=language, call_tool=call_tool_definition(language))
        return wanted

    def _can_search(self, catalog: ToolCatalog, name: str) -> bool:
        """True if tool search can start; otherwise a notice gives the reason."""
        if self.mode == "tool_search":
            return True
        try:
            self._check_names(catalog, (name, CALL_TOOL_NAME))
        except SessionError as exc:
            self.notice("search_unavailable", f"tool search cannot start: {exc}")
            return False
        return self._index is not None  # restoring the conversation gave the reason

    def _wanted_name(self, catalog: ToolCatalog) -> str:
        """Return the configured name of the search tool, or the current one if a tool has it."""
        current, wanted = self.search_tool_name, self._config.search_tool_name
        if wanted == current or (wanted not in catalog and wanted not in self._discoveries):
            return wanted
        self.notice(
            "catalog_refused",
            f"search_tool_name {wanted!r} is the name of a tool; this conversation keeps "
            f"{current!r}; rename the tool, or set search_tool_name",
        )
        return current

    def _apply_catalog(self, catalog: ToolCatalog, profile: ProviderProfile) -> None:
        if self.mode == "tool_search":
            self._check_names(catalog)
        has_changed = catalog.fingerprint != self.catalog.fingerprint
        if has_changed and self._index is not None:
            self._index = self._update(self._index, catalog)
        # The executor may know the tools of an equal catalog under other names.
        self._use(catalog)
        if has_changed:
            self._follow_catalog()
        if self.mode == "full":
            now = self._resolve(catalog, profile)
            if now.mode == "tool_search":
                self._search_from_now(now.reason)

    def _update(self, index: ToolSearchIndex, catalog: ToolCatalog) -> ToolSearchIndex:
        """Return the index over another catalog.

        Raises:
            SessionError: The engine failed; the catalog is not applied.
        """
        try:
            return self.search.updated(index, self.catalog, catalog)
        except SearchError as exc:
            raise SessionError(f"the changed catalog cannot be searched: {exc}") from exc

    def _follow_catalog(self) -> None:
        self._notices += self.tool_order.apply_catalog(
            self.catalog, self._discoveries, mode=self.mode, own=self.own_names
        )

    def _search_from_now(self, reason: ModeReason) -> None:
        """Change the mode to `tool_search`, the only change that a mode makes by itself."""
        frozen, search_tool = self.frozen, self.search_tool()
        if search_tool is None:
            return
        try:
            self._check_names(self.catalog)
        except SessionError as exc:
            self.notice("search_unavailable", f"tool search cannot start: {exc}")
            return
        self._frozen = replace(
            frozen,
            decision=ModeDecision(mode="tool_search", reason=reason),
            search_tool=search_tool.definition(),
            listing=None,
        )
        self.notice("mode_changed", f"from {frozen.decision.mode} to tool_search: {reason}")

    def _with_index(self, decision: ModeDecision) -> ModeDecision:
        """Return the decision, or `full` if the catalog cannot be searched."""
        try:
            self._index = self.search.index_of(self.catalog)
        except SearchError as exc:
            self.notice("search_unavailable", f"tool search cannot start: {exc}")
            if decision.mode == "tool_search":
                return ModeDecision(mode="full", reason="search_unavailable")
        return decision

    def _check_names(self, catalog: ToolCatalog, names: Iterable[str] | None = None) -> None:
        for name in names or self.own_names:
            if name in catalog:
                raise SessionError(
                    f"tool {name!r} has the name of a tool of tool search itself; rename it, "
                    "or set search_tool_name"
                )


def _changes(before: FrozenSettings, after: FrozenSettings) -> list[str]:
    """Return each setting that differs, with both values."""
    settings = (
        ("tool_schema_mode", before.decision.mode, after.decision.mode),
        ("language", before.language, after.language),
        ("search_tool_name", before.search_tool.name, after.search_tool.name),
    )
    return [f"{name} from {old} to {new}" for name, old, new in settings if old != new]
