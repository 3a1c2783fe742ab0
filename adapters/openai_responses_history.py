"""Histories in OpenAI's Responses format, read into the neutral form.

Needs no SDK. Sources: OpenAI, "Responses API" (items of `input`); "Tool search" (the
service's searches have no `call_id`; `additional_tools`; namespaces).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from tool_search.adapters.arguments import arguments_text
from tool_search.adapters.imported_searches import (
    found,
    query_of,
    search_call,
    search_message,
    simple,
)
from tool_search.adapters.wire_values import list_of, mapping_of, text_of
from tool_search.messages import ContentPart, ImagePart, Message, TextPart, ToolCall

__all__ = ["history_from_wire"]

JSON = Mapping[str, Any]


def history_from_wire(
    items: str | Iterable[JSON],
    *,
    search_tool_name: str = "tool_search",
    canonical: Callable[[str], str] = str,
) -> tuple[Message, ...]:
    """The neutral history of a Responses conversation.

    Searches become ordinary calls of the search tool with its JSON as their result: a
    client's, the service's own, and tools that were added in mid-conversation.
    Reasoning, files and items of other tools of the service are left out.

    Args:
        items: The `input` of a request, and the `output` behind it.
        search_tool_name: What the search tool is called in the neutral history.
        canonical: Gives the canonical name for a wire name.
    """
    if isinstance(items, str):
        return (Message(role="user", content=items),)
    reader = _Reader(search_tool_name=search_tool_name, canonical=canonical)
    read = [message for item in items for message in reader.read(mapping_of(item))]
    return (*read, *reader.close())


@dataclass(slots=True, kw_only=True)
class _Reader:
    """Reads a history item by item.

    Attributes:
        search_tool_name: What the search tool is called.
        canonical: Gives the canonical name for a wire name.
    """

    search_tool_name: str
    canonical: Callable[[str], str]
    _texts: list[str] = field(default_factory=list)
    _calls: list[ToolCall] = field(default_factory=list)
    _results: list[Message] = field(default_factory=list)
    _added: list[tuple[str, list[str]]] = field(default_factory=list)
    _names: dict[str, str] = field(default_factory=dict)
    _queries: dict[str, str] = field(default_factory=dict)
    _place: int = 0
    _hosted: str = ""

    def read(self, item: JSON) -> Iterator[Message]:
        """The messages that an item completes."""
        self._place += 1
        kind = text_of(item.get("type")) or "message"
        if kind == "message":
            yield from self._message(item)
        elif kind == "function_call":
            yield from self._reply()
            name = self.canonical(text_of(item.get("name")))
            self._call(item, name, arguments_text(item.get("arguments")))
        elif kind == "function_call_output":
            self._result(item)
        elif kind == "additional_tools":
            self._added.append((f"added_{self._place}", _names(item)))
        elif item.get("execution") == "client":
            yield from self._search(kind, item)
        else:
            yield from self._hosted_search(kind, item)

    def close(self) -> Iterator[Message]:
        """What is still open: a reply, its results, and what was added behind them."""
        if self._calls or "".join(self._texts).strip():
            text, calls = "\n\n".join(self._texts), tuple(self._calls)
            yield Message(role="assistant", content=text, tool_calls=calls)
        yield from self._results
        for call_id, names in self._added:
            yield from self._exchange(call_id, f"select:{','.join(names)}", names)
        self._texts, self._calls, self._results, self._added = [], [], [], []

    def _reply(self) -> Iterator[Message]:
        """Another item of the model's: after results or new tools it begins another reply."""
        if self._results or self._added:
            yield from self.close()

    def _message(self, item: JSON) -> Iterator[Message]:
        parts = _parts(item.get("content"))
        if item.get("role") == "assistant":
            yield from self._reply()
            self._texts += [part.text for part in parts if isinstance(part, TextPart)]
            return
        yield from self.close()
        if parts:
            yield Message(role="user", content=simple(parts))

    def _call(self, item: JSON, name: str, arguments: str) -> None:
        call_id = text_of(item.get("call_id"))
        self._names[call_id] = name
        self._calls.append(ToolCall(id=call_id, name=name, arguments=arguments))

    def _result(self, item: JSON) -> None:
        call_id = text_of(item.get("call_id"))
        content = simple(_parts(item.get("output")))
        name = self._names.get(call_id)
        self._results.append(Message(role="tool", tool_call_id=call_id, name=name, content=content))

    def _search(self, kind: str, item: JSON) -> Iterator[Message]:
        """Half of a client's search."""
        call_id, name = text_of(item.get("call_id")), self.search_tool_name
        if kind == "tool_search_call":
            yield from self._reply()
            query = query_of(mapping_of(item.get("arguments")))
            self._queries[call_id] = query
            self._calls.append(search_call(call_id, query, name=name))
        elif kind == "tool_search_output":
            result = found(self._queries.get(call_id, ""), _names(item), self.canonical)
            self._results.append(search_message(call_id, result, name=name))

    def _hosted_search(self, kind: str, item: JSON) -> Iterator[Message]:
        """Half of a search by the service, which comes before what follows it in the reply."""
        if kind == "tool_search_call":
            self._hosted = query_of(mapping_of(item.get("arguments")))
        elif kind == "tool_search_output":
            yield from self._reply()
            text = "\n\n".join(self._texts)
            self._texts = []
            yield from self._exchange(f"search_{self._place}", self._hosted, _names(item), text)

    def _exchange(
        self, call_id: str, query: str, names: list[str], text: str = ""
    ) -> Iterator[Message]:
        name = self.search_tool_name
        call = search_call(call_id, query, name=name)
        yield Message(role="assistant", content=text, tool_calls=(call,))
        yield search_message(call_id, found(query, names, self.canonical), name=name)


def _names(item: JSON) -> list[str]:
    """The functions that an item brings, those in namespaces too."""
    names = []
    for tool in map(mapping_of, list_of(item.get("tools"))):
        members = list_of(tool.get("tools")) if tool.get("type") == "namespace" else [tool]
        names += [text_of(mapping_of(member).get("name")) for member in members]
    return names


def _parts(content: object) -> tuple[ContentPart, ...]:
    if isinstance(content, str):
        return (TextPart(content),) if content.strip() else ()
    parts: list[ContentPart] = []
    for part in map(mapping_of, list_of(content)):
        text = text_of(part.get("text")) or text_of(part.get("refusal"))
        if text.strip():
            parts.append(TextPart(text))
        elif part.get("type") == "input_image" and text_of(part.get("image_url")):
            parts.append(ImagePart(text_of(part.get("image_url"))))
    return tuple(parts)
