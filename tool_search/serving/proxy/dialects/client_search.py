"""A client's own search in Responses, for a provider that knows no tool search.

The client declares `{type: tool_search, execution: client}`, answers each `tool_search_call`,
and gives definitions in `tool_search_output`. The provider gets a function in its place.
Source: OpenAI, "Tool search" (client-executed).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from tool_search.core.values.json import compact_json, read_object
from tool_search.serving.proxy.dialects.base import JSON, SentEvent

__all__ = ["ClientSearch", "is_client_search"]

_NAMES = ("tool_search", "tool_search_of_client")
_DESCRIPTION = "Searches for tools and loads those that fit."
_PARAMETERS = {
    "type": "object",
    "properties": {"query": {"type": "string"}},
    "required": ["query"],
}
_ARGUMENTS = "response.function_call_arguments."


def is_client_search(entry: JSON) -> bool:
    """True for a client's own search in a list of tools."""
    return entry.get("type") == "tool_search" and entry.get("execution") == "client"


class ClientSearch:
    """A client's search as a function of the provider, in one request and its reply.

    Args:
        tools: The client's list of tools.
    """

    def __init__(self, tools: Iterable[JSON]) -> None:
        taken = {entry.get("name") for entry in tools}
        self.name = next((name for name in _NAMES if name not in taken), _NAMES[-1])
        self._places: set[object] = set()
        self._left_out = 0

    def request(self, body: JSON, items: Iterable[JSON]) -> JSON:
        """Return the request with a function in place of the search, and loaded functions.

        Args:
            body: The client's request.
            items: Its history.
        """
        given = [*items]
        loaded = [tool for item in given if _is_output(item) for tool in item.get("tools") or ()]
        listed = [
            self._function(entry) if is_client_search(entry) else entry
            for entry in body.get("tools") or ()
        ]
        changed = {
            **body,
            "tools": _with_loaded(listed, loaded),
            "input": [self._sent(item) for item in given],
        }
        choice = body.get("tool_choice")
        if isinstance(choice, dict) and choice.get("type") == "tool_search":
            changed["tool_choice"] = {"type": "function", "name": self.name}
        return changed

    def _function(self, entry: JSON) -> JSON:
        return {
            "type": "function",
            "name": self.name,
            "description": entry.get("description") or _DESCRIPTION,
            "parameters": entry.get("parameters") or _PARAMETERS,
            "strict": False,
        }

    def _sent(self, item: JSON) -> JSON:
        """Return an item of the client as the provider takes it."""
        if item.get("type") == "tool_search_call":
            arguments = item.get("arguments")
            text = arguments if isinstance(arguments, str) else compact_json(arguments or {})
            call = {"type": "function_call", "call_id": item.get("call_id")}
            return {**call, "name": self.name, "arguments": text}
        if not _is_output(item):
            return item
        output = compact_json([*map(_summary, _functions(item.get("tools") or ()))])
        called = item.get("call_id")
        return {"type": "function_call_output", "call_id": called, "output": output}

    def reply(self, response: JSON) -> JSON:
        """Return a reply in which calls of the function are searches."""
        output = response.get("output")
        if not isinstance(output, list):
            return response
        return {**response, "output": [*map(self._item, output)]}

    def _item(self, item: JSON) -> JSON:
        if not self._is_call(item):
            return item
        shown: JSON = {key: item[key] for key in ("id", "call_id", "status") if key in item}
        # The service gives an object; text that is not one stays as the model wrote it.
        text = str(item.get("arguments") or "")
        arguments: Any = read_object(text)
        arguments = text if arguments is None else arguments
        return {"type": "tool_search_call", "execution": "client", **shown, "arguments": arguments}

    def _is_call(self, item: JSON) -> bool:
        return item.get("type") == "function_call" and item.get("name") == self.name

    def event(self, event: SentEvent) -> SentEvent | None:
        """Return an event as the client gets it; None for one that a search does not have."""
        data, kind = event.data, str(event.data.get("type"))
        item, response = data.get("item"), data.get("response")
        if isinstance(item, dict) and self._is_call(item):
            self._places.add(data.get("output_index"))
            data = {**data, "item": self._item(item)}
        elif isinstance(response, dict):
            data = {**data, "response": self.reply(response)}
        elif kind.startswith(_ARGUMENTS) and data.get("output_index") in self._places:
            self._left_out += 1
            return None
        number = data.get("sequence_number")
        if isinstance(number, int):
            data = {**data, "sequence_number": number - self._left_out}
        return SentEvent(event.name, data)


def _is_output(item: JSON) -> bool:
    return item.get("type") == "tool_search_output"


def _functions(tools: Iterable[JSON]) -> Iterator[tuple[str | None, JSON]]:
    """Yield the functions of a list, each with its namespace."""
    for tool in tools:
        if tool.get("type") == "namespace":
            for function in tool.get("tools") or ():
                yield str(tool.get("name")), function
        else:
            yield None, tool


def _summary(found: tuple[str | None, JSON]) -> JSON:
    namespace, function = found
    named = {"name": function.get("name"), "description": function.get("description") or ""}
    return named if namespace is None else {**named, "namespace": namespace}


def _with_loaded(listed: Iterable[JSON], loaded: Iterable[JSON]) -> list[JSON]:
    """Return the list without deferred functions, and with those that a search loaded."""
    written = [entry for entry in map(_plain, listed) if entry is not None]
    known = {(space, str(function.get("name"))) for space, function in _functions(written)}
    groups: dict[str, JSON] = {
        str(entry.get("name")): entry for entry in written if entry.get("type") == "namespace"
    }
    for tool in loaded:
        for namespace, function in _functions((tool,)):
            key = (namespace, str(function.get("name")))
            if key in known:
                continue
            known.add(key)
            plain = _undeferred(function)
            if namespace is None:
                written.append(plain)
            elif namespace in groups:
                groups[namespace]["tools"].append(plain)
            else:
                groups[namespace] = {**tool, "tools": [plain]}
                written.append(groups[namespace])
    return written


def _plain(entry: JSON) -> JSON | None:
    """Return an entry without deferred functions; None if nothing is left of it."""
    if entry.get("type") != "namespace":
        return None if entry.get("defer_loading") else entry
    functions = [each for each in entry.get("tools") or () if not each.get("defer_loading")]
    return {**entry, "tools": functions} if functions else None


def _undeferred(function: Mapping[str, Any]) -> JSON:
    return {key: value for key, value in function.items() if key != "defer_loading"}
