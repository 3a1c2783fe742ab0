"""The base of strategies: what a provider family is sent about tools.

A strategy of your own declares tools and formats search results::

    class Listing(GenericToolSearchStrategy):
        name = "listing"

        def format_result(self, result: SearchResult) -> ResultPart:
            return TextPart(", ".join(result.names) or "nothing")

    register_strategy(Listing)

`strategy: listing` in a configuration then chooses it.
"""

from __future__ import annotations

import inspect
import re
from abc import ABC, abstractmethod
from collections.abc import Iterable
from dataclasses import dataclass, replace
from difflib import get_close_matches
from importlib.metadata import EntryPoint, entry_points
from typing import Any, ClassVar, TypeVar

from tool_search.core.catalog.naming import wire_name
from tool_search.core.messages import (
    Message,
    Phase,
    ReferencePart,
    RequestPlan,
    ResultPart,
    StrategyName,
    TextPart,
    ToolList,
)
from tool_search.core.services import SearchMatch, SearchResult
from tool_search.core.settings import AUTO, DefinitionsRole, Dialect
from tool_search.core.strategies.history import (
    DeclaredNames,
    DefinitionRenderer,
    MessageRenderer,
    PlanInput,
    RenderedHistory,
    history_as_text,
    read_result,
)
from tool_search.core.strategies.tool_lists import ToolsAssembler
from tool_search.errors import (
    ConfigurationError,
    SessionError,
    ToolSearchError,
    UnsupportedStrategyError,
)
from tool_search.i18n import text

__all__ = [
    "STRATEGY_GROUP",
    "StrategySet",
    "ToolSearchStrategy",
    "register_strategy",
    "strategy_class",
    "strategy_names",
]


class ToolSearchStrategy(ABC):
    """Present tool definitions in one provider family's format.

    Two methods have to be written: `declare` and `format_result`. Class attributes state
    the facts that other modules need; each has a default but `name`.

    A strategy is pure: the same conversation gives the same plan. It may be shared
    by any number of conversations.

    Args:
        assembler: Builds and caches tool lists; a shared one builds each list once.

    Attributes:
        name: The name in configurations and profiles.
        list_grows: True if discoveries are appended to the tool list. False promises that
            the list of a conversation stays as it is, so that prompt caches hold.
        sends_definitions_in_messages: True if definitions follow the message that found
            them: references of `format_result` then get the definitions.
        definitions_role: The role of a message of OpenAI Chat that holds definitions.
        dialect: The only dialect that can write the requests; None: any.
        requires: What a model must have, for the error; empty: any model will do.
        rejected_by: A service's words if it does not know the feature, searched in
            "code message"; the conversation goes on with the generic strategy. None: the
            tables beside the adapters' errors have them.
        uses_limits: True if `max_deferred` and `max_tool_bytes` of a profile apply.
    """

    name: ClassVar[StrategyName]
    list_grows: ClassVar[bool] = False
    sends_definitions_in_messages: ClassVar[bool] = False
    definitions_role: ClassVar[DefinitionsRole] = "system"
    dialect: ClassVar[Dialect | None] = None
    requires: ClassVar[str] = ""
    rejected_by: ClassVar[re.Pattern[str] | None] = None
    uses_limits: ClassVar[bool] = False

    def __init__(self, assembler: ToolsAssembler | None = None) -> None:
        self._assembler = assembler or ToolsAssembler()

    @abstractmethod
    def declare(self, conversation: PlanInput) -> ToolList:
        """Return the tools that a request declares, in order."""

    @abstractmethod
    def format_result(self, result: SearchResult) -> ResultPart:
        """Return a search result as text, or as references to the tools it found."""

    def system_text(self, conversation: PlanInput) -> str:
        """Return the system text, with the listing of tools that wait to be found.

        A strategy whose requests show those tools in another way returns it without.
        """
        return "\n\n".join(filter(None, (conversation.system, conversation.listing)))

    def show_result(
        self, message: Message, conversation: PlanInput, tools: DeclaredNames
    ) -> Message:
        """Return a search result of the history as the current request shows it.

        The default uses `format_result`. Text gets the names and schemas that the request
        calls by; references are left to tools that it declares or defines.
        """
        result = read_result(message.text)
        if result is None:
            return message
        if isinstance(self.format_result(result), ReferencePart):
            # Services take only text in an error.
            return (
                message if message.is_error else self._refer(message, result, conversation, tools)
            )
        shown = _callable_result(result, conversation, tools)
        part = self.format_result(shown)
        # The history has the result's JSON, in these or other spaces.
        if shown == result and part == TextPart(result.to_json()):
            return message
        return replace(message, content=(part,))

    def plan(self, conversation: PlanInput, *, phase: Phase = "answer") -> RequestPlan:
        """Return the next request, before a dialect writes it."""
        tools = self._tools(conversation, phase)
        messages = self._messages(conversation, tools)
        system = self.system_text(conversation)
        return RequestPlan(
            strategy=self.name,
            own_facts=type(self),
            phase=phase,
            tools=tools,
            messages=messages,
            system=system,
            listing=conversation.listing if system.endswith(conversation.listing) else "",
            tool_use="none" if phase == "final" and tools else "auto",
            cached_messages=_cache_ends(messages),
            cache_system=bool(system),
            kept=conversation.kept,
        )

    def _tools(self, conversation: PlanInput, phase: Phase) -> ToolList:
        if phase == "detail":
            return self._assembler.chosen(conversation)
        if conversation.mode == "skills_like":
            return self._assembler.light(conversation)
        return self.declare(conversation)

    def _messages(self, conversation: PlanInput, tools: ToolList) -> tuple[Message, ...]:
        kept, key, history = conversation.kept, self._key(conversation), conversation.history
        rendered = kept.get(RenderedHistory, key)
        if (
            rendered is None
            or not rendered.precedes(history)
            or not rendered.renderer.follow(conversation, tools)
        ):
            renderer = self._renderer(replace(conversation, history=()), tools)
            rendered = kept.put(key, RenderedHistory(renderer, kept.last(RenderedHistory)))
        return rendered.through(history)

    def _key(self, conversation: PlanInput) -> object:
        """Return what decides how a message is shown, without what a renderer follows."""
        return (
            self.name,
            conversation.profile,
            conversation.mode,
            conversation.thinking_from,
            conversation.text_after_references,
            conversation.refused,
            conversation.hidden,
            conversation.catalog.fingerprint,
            conversation.search_tool,
            conversation.call_tool,
            conversation.retained,
        )

    def _renderer(self, conversation: PlanInput, tools: ToolList) -> MessageRenderer:
        has_definitions = self.sends_definitions_in_messages and conversation.search_tool
        kind = DefinitionRenderer if has_definitions else MessageRenderer
        return kind(conversation, tools, self.show_result)

    def _refer(
        self,
        message: Message,
        result: SearchResult,
        conversation: PlanInput,
        tools: DeclaredNames,
    ) -> Message:
        """Return a result as references; without a tool to refer to, as its JSON."""
        if self.sends_definitions_in_messages:
            text = TextPart(_under_wire_names(result, conversation).to_json())
            return replace(message, content=(text, ReferencePart(result.names)))
        names = tuple(
            name
            for name in dict.fromkeys(result.names)
            if tools.declares(name) and name not in conversation.refused
        )
        if not names:
            return replace(message, content=(TextPart(result.to_json()),))
        hidden = conversation.hidden_text(result)
        return replace(message, content=(ReferencePart(names), *((hidden,) if hidden else ())))


def _cache_ends(messages: tuple[Message, ...]) -> tuple[int, ...]:
    """Return the indexes of the last message and of the user's last: later requests repeat them."""
    last = len(messages) - 1
    users = (index for index in range(last, -1, -1) if messages[index].role == "user")
    return tuple(sorted({next(users, last), last})) if messages else ()


def _under_wire_names(result: SearchResult, conversation: PlanInput) -> SearchResult:
    rule = conversation.profile.name_rule
    return replace(
        result,
        matches=tuple(replace(m, name=wire_name(m.name, rule)) for m in result.matches),
        loaded=tuple(wire_name(name, rule) for name in result.loaded),
    )


def _callable_result(
    result: SearchResult, conversation: PlanInput, tools: DeclaredNames
) -> SearchResult:
    """Return a result with the names and schemas that a request calls by."""
    if not result.names:
        return result
    return replace(
        result,
        matches=tuple(_callable_match(m, conversation, tools) for m in result.matches),
        loaded=tuple(wire_name(n, conversation.profile.name_rule) for n in result.loaded),
    )


def _callable_match(
    match: SearchMatch, conversation: PlanInput, tools: DeclaredNames
) -> SearchMatch:
    """Return a match under its declared name, with its schema if the request declares none."""
    name = wire_name(match.name, conversation.profile.name_rule)
    # Under bound thinking the list lags by a turn, and a message must not change when the
    # tool enters the list: each match has its schema.
    needed = conversation.profile.thinking_bound_to_prefix or not tools.declares(match.name)
    tool = conversation.definition(match.name)
    if not needed or tool is None:
        return match if name == match.name else replace(match, name=name)
    # oh-my-pi's answers have names alone.
    described = match.description or tool.description
    schema = conversation.schemas.declared(tool).schema
    return replace(match, name=name, description=described, parameters=schema)


STRATEGY_GROUP = "tool_search.core.strategies"
"""The entry point group in which a distribution names its strategy class, under its name::

    [project.entry-points."tool_search.core.strategies"]
    mine = "my_package.strategy:MyStrategy"

It is imported when the name is first used.
"""
_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_-]{0,63}")
_StrategyT = TypeVar("_StrategyT", bound=ToolSearchStrategy)
_registered: dict[str, type[ToolSearchStrategy]] = {}


def register_strategy(cls: type[_StrategyT]) -> type[_StrategyT]:
    """Register a strategy under its `name`, and return it; usable as a decorator.

    A class that is registered already stays so.

    Raises:
        ConfigurationError: It is not a strategy that can be used, or another class has
            its name.
    """
    problem = _class_problem(cls)
    if problem:
        raise ConfigurationError(f"cannot register {cls!r} as a strategy: {problem}")
    known = _registered.setdefault(cls.name, cls)
    if known is not cls:
        raise ConfigurationError(
            f"two strategies have the name {cls.name!r}: {_path(known)} and {_path(cls)}; "
            "give one another name, or pass it to one session or runner by strategies="
        )
    return cls


def strategy_names() -> tuple[str, ...]:
    """Return the known names: registered ones first, then those of installed distributions."""
    installed = sorted(entry.name for entry in entry_points(group=STRATEGY_GROUP))
    return tuple(dict.fromkeys((*_registered, *installed)))


def strategy_class(name: str) -> type[ToolSearchStrategy]:
    """Return the strategy of a name.

    Raises:
        UnsupportedStrategyError: No strategy has it; the message has the known names.
        ConfigurationError: An installed distribution names what is not this strategy.
    """
    known = _registered.get(name)
    if known is not None:
        return known
    installed = tuple(entry_points(group=STRATEGY_GROUP, name=name))
    if installed:
        return _load(installed)
    names = strategy_names()
    nearest = get_close_matches(name, names, n=1)
    hint = f"the nearest is {nearest[0]!r}; " if nearest else ""
    raise UnsupportedStrategyError(
        f"no strategy is named {name!r}; {hint}known: {', '.join(map(repr, names))}; "
        "register another with tool_search.register_strategy"
    )


def _load(entries: tuple[EntryPoint, ...]) -> type[ToolSearchStrategy]:
    entry = entries[0]
    if len({each.value for each in entries}) > 1:
        values = " and ".join(sorted(each.value for each in entries))
        raise ConfigurationError(
            f"two installed strategies have the name {entry.name!r}: {values}; remove one"
        )
    try:
        loaded: Any = entry.load()
    except (ImportError, AttributeError) as exc:
        raise ConfigurationError(
            f"the installed strategy {entry.name!r} ({entry.value}) cannot be imported: {exc}"
        ) from exc
    if getattr(loaded, "name", None) != entry.name:
        raise ConfigurationError(
            f"the installed strategy {entry.name!r} ({entry.value}) must have this name, not "
            f"{getattr(loaded, 'name', None)!r}"
        )
    return register_strategy(loaded)


def _class_problem(cls: Any) -> str:
    """Return why a class cannot be used as a strategy; empty if it can."""
    if not (isinstance(cls, type) and issubclass(cls, ToolSearchStrategy)):
        return "it must be a subclass of ToolSearchStrategy"
    name = getattr(cls, "name", None)
    if not isinstance(name, str) or not _NAME.fullmatch(name) or name == AUTO:
        return (
            f"its name is {name!r}; it must be a letter and up to 63 letters, digits, '_' or '-', "
            f"and not {AUTO!r}"
        )
    if inspect.isabstract(cls):
        return f"it must define {', '.join(sorted(cls.__abstractmethods__))}"
    return ""


def _path(cls: type) -> str:
    return f"{cls.__module__}.{cls.__qualname__}"


# The strategies of one session, and their plans, checked: some are programs of users.


@dataclass(frozen=True, slots=True)
class _CheckedList:
    """A list that was found valid, kept with what that depends on."""

    tools: ToolList


class StrategySet:
    """The strategies of one session: its own first, then the registered ones.

    Args:
        own: Strategies that win over registered ones of their name.
        assembler: The maker of tool lists that registered ones share.

    Raises:
        ConfigurationError: One is not a strategy, or two have the same name.
    """

    def __init__(self, own: Iterable[ToolSearchStrategy], assembler: ToolsAssembler) -> None:
        self._assembler = assembler
        self._made: dict[str, ToolSearchStrategy] = {}
        for strategy in own:
            # A session is public: what a program passes is not type-checked.
            given: object = strategy
            if not isinstance(given, ToolSearchStrategy):
                raise ConfigurationError(
                    f"strategies has {given!r}; it must hold instances of ToolSearchStrategy"
                )
            if strategy.name in self._made:
                raise ConfigurationError(f"strategies has two of the name {strategy.name!r}")
            self._made[strategy.name] = strategy

    def get(self, name: str) -> ToolSearchStrategy:
        """Return the strategy of a name.

        Raises:
            UnsupportedStrategyError: No strategy has it.
        """
        made = self._made.get(name)
        if made is None:
            made = self._made[name] = strategy_class(name)(self._assembler)
        return made

    def plan(self, conversation: PlanInput, *, phase: Phase) -> RequestPlan:
        """Return the next request by the strategy that the conversation's profile names.

        Raises:
            UnsupportedStrategyError: No strategy has the name, or the provider does not
                speak its dialect.
            SessionError: The strategy failed, or it declares a tool twice or a tool that
                the catalog lacks.
        """
        profile = conversation.profile
        strategy = self.get(profile.strategy)
        if strategy.dialect not in (None, profile.dialect):
            raise UnsupportedStrategyError(
                f"strategy {strategy.name!r} needs type {strategy.dialect}, not "
                f"{profile.dialect!r} (model {profile.model!r}); use auto, generic or bridge "
                "for this provider"
            )
        if not profile.declares_tools(phase):
            return _plan_without_tools(strategy, conversation, phase)
        try:
            plan = strategy.plan(conversation, phase=phase)
        except ToolSearchError:
            raise
        except Exception as exc:
            raise SessionError(
                f"strategy {strategy.name!r} failed to plan a request: {type(exc).__name__}: "
                f"{exc}; correct the strategy, or choose another one for this provider"
            ) from exc
        _require_valid(strategy.name, plan.tools, conversation)
        return plan if plan.own_facts is not None else replace(plan, own_facts=type(strategy))


def _plan_without_tools(
    strategy: ToolSearchStrategy, conversation: PlanInput, phase: Phase
) -> RequestPlan:
    note = text("tools.unavailable", conversation.language)
    return RequestPlan(
        strategy=strategy.name,
        own_facts=type(strategy),
        phase=phase,
        tools=ToolList(),
        messages=history_as_text(conversation),
        system="\n\n".join(filter(None, (conversation.prompt, note))),
        kept=conversation.kept,
    )


def _require_valid(strategy: str, tools: ToolList, conversation: PlanInput) -> None:
    """Raise if a tool is declared twice, or if the conversation has no such tool."""
    # Lists of thousands of tools are the same object from request to request.
    key = (conversation.catalog.fingerprint, conversation.hidden, tuple(conversation.retained))
    checked = conversation.kept.get(_CheckedList, key)
    if checked is not None and checked.tools is tools:
        return
    names: set[str] = set()
    for name in tools.names:
        if name in names:
            raise SessionError(
                f"strategy {strategy!r} declares the tool {name!r} twice; declare it once"
            )
        if conversation.definition(name) is None:
            raise SessionError(
                f"strategy {strategy!r} declares the tool {name!r}, which the catalog lacks or "
                "this user may not call; declare tools that `conversation.definition` returns"
            )
        names.add(name)
    conversation.kept.put(key, _CheckedList(tools))
