"""Catalogs as text, in the formats that are in use; the format is detected.

JSON Lines, a JSON array, or objects written one after the other; each holds tools
as this library, OpenAI, Anthropic or MCP writes them, in any mixture. Pure: the
caller reads the file.

Sources: OpenAI, "Function calling" (`tools` of Chat Completions and of Responses);
Anthropic, "Tool use" (`input_schema`); Model Context Protocol, 2025-06-18,
"Tools" (`tools/list`, `ToolAnnotations`).
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from tool_search.core.catalog.naming import Source
from tool_search.core.catalog.tool import Tool
from tool_search.errors import CatalogError, DuplicateToolError, InvalidToolError

__all__ = ["json_values", "parse_tools", "tool_from_definition"]

_SCHEMA_KEYS = ("parameters", "input_schema", "inputSchema")
_OTHER_NAMES = {"outputSchema": "output_schema", "input_examples": "examples"}
_HINTS = {"readOnlyHint": "read_only", "destructiveHint": "destructive"}
# Keys that only the bot's owner may set for a tool.
_CLAIMS = frozenset(("kind", "server", "listed_name", "always_load", "defer_loading"))
_SWITCHES = ("active", "always_load", "defer_loading")
_FORMATS = (
    "a tool is {name, description, parameters}, an OpenAI or Anthropic tool, "
    "or an entry of an MCP tools/list result"
)
# Tools that a provider runs itself carry the date of their version: bash_20250124.
_SERVER_TOOL = re.compile(r"[a-z_]+_\d{8}")
_DECODER = json.JSONDecoder()
# Wrong definitions that an error names in addition to the first.
_MAX_PLACES = 8
_GAP = re.compile(r"[ \t\r\n]*")


def parse_tools(text: str, *, source: str = "catalog") -> tuple[Tool, ...]:
    r"""Return the tools in a text, in its order.

    A definition with a `server` is of kind mcp, any other of kind plugin, unless it
    has a `kind` of its own. Anthropic's own search tools are passed over. The owner of a
    file can correct it, so one wrong definition refuses the whole file; definitions that a
    server lists while a bot runs go through `tool_from_definition` one by one.

    Args:
        text: JSON Lines, a JSON array, or an MCP `tools/list` result; a byte-order
            mark, CRLF and blank lines are accepted.
        source: The name of the text in errors, such as its file's name.

    Raises:
        CatalogError: The text is not JSON, or holds a value that is not a tool.
        InvalidToolError: Definitions are wrong; the error has the place of each.
        DuplicateToolError: Two definitions have the same name and server.

    >>> [tool.name for tool in parse_tools('{"name": "add"}\n{"name": "send_mail"}')]
    ['add', 'send_mail']
    """
    tools: list[Tool] = []
    places: dict[Source, str] = {}
    wrong: list[tuple[str, InvalidToolError]] = []
    for place, definition in _definitions(text, source):
        try:
            tool = tool_from_definition(definition)
        except InvalidToolError as exc:
            wrong.append((place, exc))
            continue
        if tool is None:
            continue
        if tool.source in places:
            raise DuplicateToolError(
                f"{place}: tool {tool.name!r} has the name of another one "
                f"({places[tool.source]}); rename one, or give its server a prefix"
            )
        places[tool.source] = place
        tools.append(tool)
    if wrong:
        raise _combined_error(wrong) from wrong[0][1]
    return tuple(tools)


def _combined_error(wrong: Sequence[tuple[str, InvalidToolError]]) -> InvalidToolError:
    """Return an error about the first wrong definition, with the places of the others."""
    (place, problem), *others = wrong
    message = f"{place}: {problem}"
    if others:
        listed = "; ".join(other for other, _ in others[:_MAX_PLACES])
        more = f" and {len(others) - _MAX_PLACES} more" if len(others) > _MAX_PLACES else ""
        message += f" (and {len(others)} other wrong definitions: {listed}{more})"
    return InvalidToolError(message)


def tool_from_definition(definition: object, *, server: str | None = None) -> Tool | None:
    """Return the tool that a JSON object defines; None for a provider's own search tool.

    Args:
        definition: The definition, as the library, OpenAI, Anthropic or MCP writes it.
        server: The server that listed it; the definition cannot claim another one.

    Raises:
        InvalidToolError: It is not a definition, or a wrong one.

    >>> tool_from_definition({"name": "add", "inputSchema": {"type": "object"}}).parameters
    {'type': 'object'}
    """
    if not isinstance(definition, Mapping):
        raise InvalidToolError(f"{_preview(definition)} is not an object; {_FORMATS}")
    if server is not None:
        definition = _of_server(definition, server)
    content = {key: value for key, value in definition.items() if value is not None}
    function = content.pop("function", None)
    if isinstance(function, Mapping):
        content.update((key, value) for key, value in function.items() if value is not None)
    kind = content.get("type")
    if isinstance(kind, str) and kind.startswith("tool_search"):
        return None
    if "name" not in content:
        raise InvalidToolError(f"{_preview(definition)} has no name; {_FORMATS}")
    return Tool.from_dict(_settle(content))


def json_values(text: str, *, source: str) -> Iterator[tuple[str, Any]]:
    """Yield every JSON value in a text with its place: `source`, or `source, line 3`.

    One value a line, or values of several lines, one after the other.

    Raises:
        CatalogError: A part is not JSON; the error has its line and column.
    """
    text = text.removeprefix("\ufeff")
    lines = [(n, line) for n, line in enumerate(text.split("\n"), start=1) if line.strip()]
    if len(lines) > 1 and _is_json(lines[0][1]):
        for number, line in lines:
            yield f"{source}, line {number}", _decoded_line(line, number, source)
        return
    position = first = _end_of_gap(text, 0)
    begin, number = 0, 1
    while position < len(text):
        number += text.count("\n", begin, position)
        begin = position
        value, position = _decode(text, begin, source)
        is_whole = begin == first and position == len(text) and len(lines) > 1
        yield source if is_whole else f"{source}, line {number}", value


def _definitions(text: str, source: str) -> Iterator[tuple[str, object]]:
    """Yield every definition with its place."""
    for place, value in json_values(text, source=source):
        if isinstance(value, list):
            yield from ((f"{place}, index {i}", item) for i, item in enumerate(value))
            continue
        listing = _listing(value, place)
        if listing is None:
            yield place, value
            continue
        server = listing.get("server")
        for index, item in enumerate(listing["tools"]):
            if server and isinstance(item, dict):
                item = _of_server(item, server)  # noqa: PLW2901  # the same one, completed
            yield f"{place}, tools[{index}]", item


def _listing(value: Any, place: str) -> dict[str, Any] | None:
    """Return the object with the list `tools`, bare or in a JSON-RPC answer."""
    if not isinstance(value, dict) or "name" in value:
        return None
    if isinstance(value.get("error"), dict) and "jsonrpc" in value:
        raise CatalogError(
            f"{place}: is a JSON-RPC error and no list of tools: {_preview(value['error'])}"
        )
    inner = value.get("result", value)
    return inner if isinstance(inner, dict) and isinstance(inner.get("tools"), list) else None


def _of_server(definition: Mapping[str, Any], server: str) -> dict[str, Any]:
    """Return a server's definition without claims about its own place in the bot."""
    kept = {key: value for key, value in definition.items() if key not in _CLAIMS}
    return {**kept, "server": server, "kind": "mcp"}


def _settle(content: dict[str, Any]) -> dict[str, Any]:
    """Return the definition under our own keys."""
    name = content["name"]
    renamed = {_OTHER_NAMES.get(key, key): value for key, value in content.items()}
    schema_key = next((key for key in _SCHEMA_KEYS if key in content), None)
    if schema_key is not None:
        renamed["parameters"] = content[schema_key]
    elif _SERVER_TOOL.fullmatch(str(content.get("type", ""))):
        raise InvalidToolError(
            f"tool {name!r}: its type {content['type']!r} is one that the provider runs "
            "itself; leave it out of the catalog"
        )
    for key in _SWITCHES:
        if not isinstance(renamed.get(key, True), bool):
            raise InvalidToolError(
                f"tool {name!r}: {key} must be true or false, not {_preview(renamed[key])}"
            )
    renamed.setdefault("kind", "mcp" if renamed.get("server") else "plugin")
    annotations = renamed.get("annotations")
    if isinstance(annotations, dict):
        # A fact in both spellings stays in both: the two may contradict each other.
        facts = {
            key if _HINTS.get(key) in annotations else _HINTS.get(key, key): fact
            for key, fact in annotations.items()
        }
        renamed.setdefault("title", facts.pop("title", None))
        renamed["annotations"] = {key: fact for key, fact in facts.items() if fact is not None}
    return renamed


def _is_json(line: str) -> bool:
    try:
        json.loads(line)
    except (ValueError, RecursionError):
        return False
    return True


def _decoded_line(line: str, number: int, source: str) -> Any:
    try:
        return json.loads(line)
    except json.JSONDecodeError as exc:
        raise CatalogError(
            f"{source}, line {number}, column {exc.colno}: is not JSON: {exc.msg}"
        ) from exc
    except (ValueError, RecursionError) as exc:
        raise CatalogError(f"{source}, line {number}: cannot be read as JSON: {exc}") from exc


def _decode(text: str, position: int, source: str) -> tuple[Any, int]:
    """Return the value that begins here, and the place where the next one begins."""
    try:
        value, end = _DECODER.raw_decode(text, position)
    except json.JSONDecodeError as exc:
        broken = _broken_line(text, position, exc)
        if broken is not None:
            _decoded_line(text.split("\n")[broken - 1], broken, source)
        raise CatalogError(
            f"{source}, line {exc.lineno}, column {exc.colno}: is not JSON: {exc.msg}"
        ) from exc
    except (ValueError, RecursionError) as exc:
        line = _line_at(text, position)
        raise CatalogError(f"{source}, line {line}: cannot be read as JSON: {exc}") from exc
    return value, _end_of_gap(text, end)


def _broken_line(text: str, position: int, exc: json.JSONDecodeError) -> int | None:
    """Return the wrong line if a value on one line was cut off and the next line began.

    The decoder reads on and reports the beginning of the next line, which is correct.
    """
    begins = exc.colno == 1 and text[exc.pos : exc.pos + 1] == "{"
    if text[position] != "{" or not begins:
        return None
    return _line_at(text, position)


def _line_at(text: str, position: int) -> int:
    return text.count("\n", 0, position) + 1


def _end_of_gap(text: str, position: int) -> int:
    match = _GAP.match(text, position)
    return match.end() if match else position


def _preview(value: object) -> str:
    try:
        text = json.dumps(value, ensure_ascii=False, default=repr)
    except RecursionError:
        return f"{type(value).__name__} nested too deep"
    return text if len(text) <= 80 else f"{text[:77]}..."
