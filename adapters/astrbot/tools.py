"""AstrBot's tools and histories in this library's form; loads nothing of AstrBot.

From 4.26 on, AstrBot wraps every plugin and MCP tool in a permission guard: the kind of a tool
is that of the wrapped one, and a call runs the guard.
"""

from __future__ import annotations

import json
import logging
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Any

from tool_search.adapters.astrbot.reports import WarnOnce
from tool_search.adapters.wire.requests import result_text
from tool_search.adapters.wire.values import label_of, mappings_of, text_of
from tool_search.catalog.schema.declared import declared_schema
from tool_search.core.catalog.catalog import ToolCatalog
from tool_search.core.catalog.naming import name_keys
from tool_search.core.catalog.tool import Tool, ToolKind
from tool_search.core.conversation.synthetic_searches import InsertionPoint
from tool_search.core.messages import Message
from tool_search.core.profiles import ProviderProfile
from tool_search.core.services import SearchResult
from tool_search.errors import InvalidToolError
from tool_search.stores.record import message_from_dict, message_to_dict

__all__ = [
    "TranslatedTools",
    "as_context",
    "declared_parameters",
    "is_new",
    "kind_of",
    "neutral_history",
    "takes_an_object",
    "text_after_result",
    "unsaved",
    "with_canonical_names",
    "with_demands",
    "without_guard",
    "without_reminders",
]

_HANDOFF, _MCP, _PLAIN = "HandoffTool", "MCPTool", "FunctionTool"
_OWN_PACKAGE = "astrbot.core."
_ROLES = ("user", "assistant", "tool")
_RESTORED = "restored_"  # the prefix of the ids of synthetic searches
# AstrBot ends each user's message with the time and the like; a model that copies the message into
# a query would search for Mondays, and search would learn them.
_REMINDER = re.compile(r"<system_reminder>.*?(?:</system_reminder>|\Z)", re.DOTALL)
# Every provider takes such names; a tool without a definition is sent under AstrBot's own name.
_WIRE_NAME = re.compile(r"[a-zA-Z0-9_-]{1,64}")
_log = logging.getLogger(__name__)


def without_guard(tool: Any) -> Any:
    """Return the tool itself, without AstrBot's permission guard."""
    wrapped = getattr(tool, "_wrapped", None)
    return tool if wrapped is None else wrapped


def kind_of(tool: Any, is_builtin: Callable[[str], bool]) -> ToolKind:
    """Return the origin of a tool of AstrBot's.

    Args:
        tool: The tool of a request, guarded or not.
        is_builtin: AstrBot's own answer by name; always False if it has none.
    """
    raw = without_guard(tool)
    classes = {cls.__name__ for cls in type(raw).__mro__}
    if _HANDOFF in classes:
        return "handoff"
    if _MCP in classes:
        return "mcp"
    if is_builtin(raw.name):
        return "builtin"
    is_own = type(raw).__module__.startswith(_OWN_PACKAGE) and type(raw).__name__ != _PLAIN
    return "builtin" if is_own and not getattr(raw, "handler_module_path", None) else "plugin"


class TranslatedTools:
    """Definitions of AstrBot's tools; each is made once for its content.

    Attributes:
        last_catalog: The last catalog of them.
    """

    def __init__(self) -> None:
        self._last: tuple[Tool, ...] = ()
        self.last_catalog = ToolCatalog()
        self._known: dict[str, tuple[tuple[Any, ...], Tool]] = {}
        self._causes: dict[str, str] = {}
        self._warn = WarnOnce(_log)

    def definitions(
        self,
        tools: Iterable[Any],
        is_builtin: Callable[[str], bool],
        plugin_of: Callable[[Any], str | None] = lambda _module: None,
    ) -> dict[str, Tool]:
        """Return the definitions by name, without tools that cannot have one.

        Args:
            tools: AstrBot's tools.
            is_builtin: AstrBot's own answer by name.
            plugin_of: Returns the plugin of a module, which is its tools' server.
        """
        made = {}
        for tool in tools:
            try:
                made[tool.name] = self._definition(tool, is_builtin, plugin_of)
            except InvalidToolError as exc:
                self._causes[str(tool.name)] = str(exc)
        return made

    def _definition(
        self,
        tool: Any,
        is_builtin: Callable[[str], bool],
        plugin_of: Callable[[Any], str | None],
    ) -> Tool:
        raw = without_guard(tool)
        kind = kind_of(tool, is_builtin)
        server = getattr(raw, "mcp_server_name", None)
        if kind == "plugin":
            server = plugin_of(getattr(raw, "handler_module_path", None))
        content = (kind, server, tool.description, tool.parameters)
        known = self._known.get(tool.name) if isinstance(tool.name, str) else None
        if known is not None and known[0] == content:
            return known[1]
        made = Tool(
            name=tool.name,
            description=tool.description or "",
            parameters=tool.parameters or {},
            kind=kind,
            server=server if isinstance(server, str) else None,
            title=text_of(getattr(getattr(raw, "mcp_tool", None), "title", None)) or None,
        )
        self._known[tool.name] = (content, made)
        return made

    def catalog(self, definitions: Mapping[str, Tool]) -> ToolCatalog:
        """Return a catalog in which a name stays with its first tool.

        Equal definitions have the last catalog again: a conversation that knows it compares
        nothing, which takes 0.1 s with 3,000 tools.
        """
        tools = tuple(definitions.values())
        if tools != self._last:
            self.last_catalog = ToolCatalog(tools, names=self.last_catalog.book)
            self._last = tools
        return self.last_catalog

    def by_name(
        self, catalog: ToolCatalog, definitions: Mapping[str, Tool], tools: Mapping[str, Any]
    ) -> dict[str, Any]:
        """Return AstrBot's tools by canonical name, those without a definition by their own.

        A tool without a definition is left out if its name equals or resembles another's, or if
        every provider would refuse a request with it.

        Args:
            catalog: The catalog that names the definitions.
            definitions: The definitions, by AstrBot's own names.
            tools: AstrBot's tools, by the same names.
        """
        named = {}
        for name, tool in tools.items():
            definition = definitions.get(name)
            if definition is not None:
                known = catalog.by_source.get(definition.source)
                if known is not None:
                    named[known.name] = tool
                continue
            cause = self._causes.get(str(name), f"tool {name!r} has no definition")
            if _can_be_sent(name, catalog) and takes_an_object(tool):
                named[name] = tool
                self._warn(f"a tool is always sent, as AstrBot has it: {cause}")
            else:
                self._warn(f"a tool is left out, since no provider takes it: {cause}")
        return named


def declared_parameters(tool: Tool) -> dict[str, Any]:
    """Return the declared schema of a definition, for a tool of AstrBot's."""
    return dict(declared_schema(tool).schema)


def neutral_history(contexts: Iterable[Any] | None) -> tuple[Message, ...]:
    """Return a request's `contexts` in the neutral form.

    System texts, AstrBot's checkpoints and the first lines of a persona are left out: no
    history keeps them.
    """
    found = []
    for said in contexts or ():
        content = plain_message(said)
        if content.get("role") in _ROLES and not content.get("_no_save"):
            found.append(message_from_dict(_plain_fields(content)))
    return tuple(found)


def with_canonical_names(history: Iterable[Message], catalog: ToolCatalog) -> tuple[Message, ...]:
    """Return a history whose search results have canonical names; AstrBot keeps wire names."""
    return tuple(_canonical_result(said, catalog.by_wire_name) for said in history)


def _canonical_result(said: Message, tools: Mapping[str, Tool]) -> Message:
    found = SearchResult.from_json(said.text) if said.role == "tool" else None
    if found is None or tools.keys().isdisjoint((*found.names, *found.loaded)):
        return said

    def canonical(name: str) -> str:
        return tools[name].name if name in tools else name

    matches = tuple(replace(match, name=canonical(match.name)) for match in found.matches)
    loaded = tuple(map(canonical, found.loaded))
    return replace(said, content=replace(found, matches=matches, loaded=loaded).to_json())


def without_reminders(arguments: Mapping[str, Any]) -> dict[str, Any]:
    """Return a search's arguments without AstrBot's own notes to the model."""
    return {key: _without_reminder(value) for key, value in arguments.items()}


def _without_reminder(value: Any) -> Any:
    if isinstance(value, list):
        return [_without_reminder(each) for each in value]
    return _REMINDER.sub("", value).strip() or value if isinstance(value, str) else value


def text_after_result(result: str) -> str:
    """Return the text of a search's result besides the tools: AstrBot's notices, or an error."""
    found = SearchResult.from_json(result)
    if found is None or found.error is not None:
        return result.strip()
    written = result.lstrip()
    _, end = json.JSONDecoder().raw_decode(written)
    return written[end:].strip()


def plain_message(said: Any) -> Mapping[str, Any]:
    """Return a message of AstrBot's as a mapping; in some places it is an object."""
    if isinstance(said, Mapping):
        return said
    dumped: Mapping[str, Any] = said.model_dump()
    return dumped


def _plain_fields(content: Mapping[str, Any]) -> dict[str, Any]:
    calls = [
        {
            **call,
            "id": label_of(call.get("id")),
            "function": {**call["function"], "name": label_of(call["function"].get("name"))},
        }
        for call in mappings_of(content.get("tool_calls"))
        if isinstance(call.get("function"), Mapping)
    ]
    return {
        "role": content["role"],
        "content": _without_own_parts(content.get("content")),
        "tool_calls": calls,
        "tool_call_id": label_of(content.get("tool_call_id")) or None,
    }


def _without_own_parts(content: Any) -> Any:
    """Return the content without parts that only AstrBot's providers read, such as thinking."""
    if not isinstance(content, list | tuple):
        return content if isinstance(content, str) else ""
    known = ("text", "image_url")
    return [p for p in content if isinstance(p, str) or (p and p.get("type") in known)]


def is_new(request: Any) -> bool:
    """True if a request opens its conversation; `/reset` leaves one without a history."""
    conversation = getattr(request, "conversation", None)
    if conversation is None:
        return not neutral_history(request.contexts)
    saved = getattr(conversation, "history", None)
    try:
        return not (json.loads(saved) if isinstance(saved, str) else saved)
    except ValueError:
        return False


def unsaved(
    points: Iterable[InsertionPoint], before: Iterable[InsertionPoint], saved: Iterable[Message]
) -> Iterator[Message]:
    """Yield the searches that restore discoveries: new ones, and earlier ones that were lost.

    Args:
        points: All of them, with their places.
        before: Those of the turns before.
        saved: The history that AstrBot has saved.
    """
    known, shown = set(_call_ids(before)), {call.id for said in saved for call in said.tool_calls}
    for point in points:
        is_new = known.isdisjoint(_call_ids((point,)))
        for said in point.messages:
            ids = {call.id for call in said.tool_calls} or {said.tool_call_id or ""}
            if is_new or any(call_id.startswith(_RESTORED) for call_id in ids - shown):
                yield said


def _call_ids(points: Iterable[InsertionPoint]) -> Iterator[str]:
    return (call.id for point in points for said in point.messages for call in said.tool_calls)


def as_context(message: Message, profile: ProviderProfile) -> dict[str, Any]:
    """Return a message as AstrBot keeps it: results have no name, and name tools as lists do.

    Args:
        message: The message.
        profile: A profile with the rule for names in lists.
    """
    content = message_to_dict(message)
    if message.role == "assistant":
        content["content"] = content["content"] or None
    found = SearchResult.from_json(message.text) if message.role == "tool" else None
    if found is not None:
        content["content"] = result_text(found, profile)
    content.pop("name", None)
    return content


def with_demands(
    contexts: Iterable[Any], *, reasoning: str | None, signature: str | None
) -> list[Any]:
    """Return messages whose synthetic searches have what a provider demands of a call.

    AstrBot sends a part `think` as reasoning, and `extra_content` of a call as Google's.

    Args:
        contexts: AstrBot's messages.
        reasoning: The reasoning of a message with calls; None: it needs none.
        signature: Google's signature of a call; None: it needs none.
    """
    return [_with_demands(said, reasoning, signature) for said in contexts]


def _with_demands(said: Any, reasoning: str | None, signature: str | None) -> Any:
    calls = mappings_of(said.get("tool_calls")) if isinstance(said, Mapping) else []
    if not any(label_of(call.get("id")).startswith(_RESTORED) for call in calls):
        return said
    changed = dict(said)
    if reasoning is not None and not isinstance(said.get("content"), list):
        spoken = [{"type": "text", "text": said["content"]}] if said.get("content") else []
        changed["content"] = [{"type": "think", "think": reasoning}, *spoken]
    if signature is not None:
        extra = {"extra_content": {"google": {"thought_signature": signature}}}
        changed["tool_calls"] = [{**extra, **call} for call in calls]
    return changed


def takes_an_object(tool: Any) -> bool:
    """True if providers take the schema of a tool: otherwise they refuse the whole request."""
    schema = getattr(tool, "parameters", None)
    return not schema or (isinstance(schema, Mapping) and schema.get("type", "object") == "object")


def _can_be_sent(name: object, catalog: ToolCatalog) -> bool:
    return (
        isinstance(name, str)
        and _WIRE_NAME.fullmatch(name) is not None
        and catalog.book.owners.keys().isdisjoint(name_keys(name))
    )
