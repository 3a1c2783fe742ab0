"""Structured text: JSON, CSV and Markdown tables."""

# ruff: noqa: D415  (a tool's first line ends with a Chinese full stop)

from __future__ import annotations

import csv
import io
import json
import re
import unicodedata
from typing import NoReturn

from tool_search.demo.toolbox.arguments import require_length, require_within

_MAX_CHARS = 100_000
_STEP = re.compile(r"\.?([^.\[\]]+)|\[(\d{1,9})\]", re.ASCII)


def format_json(text: str, indent: int = 2, sort_keys: bool = False) -> str:
    """Check JSON and print it with indentation. 校验并美化 JSON。

    Args:
        text: The JSON, JSON 文本.
        indent: Spaces a level, 缩进; 0 gives the shortest form in one line, up to 8.
        sort_keys: True to sort the keys of objects, 按键排序.
    """
    require_within("indent", indent, 0, 8)
    separators = None if indent else (",", ":")
    return json.dumps(
        _parse_json("text", text),
        ensure_ascii=False,
        indent=indent or None,
        separators=separators,
        sort_keys=sort_keys,
    )


def json_value_at(text: str, path: str) -> str:
    """Read one value out of JSON by its path. 按路径读取 JSON 中的值。

    Args:
        text: The JSON, JSON 文本.
        path: Keys and indexes such as "users[0].name", 路径.

    Returns:
        The value as JSON.
    """
    require_length("path", path, 1, 500)
    value = _parse_json("text", text)
    position = 0
    while position < len(path):
        step = _STEP.match(path, position)
        if step is None:
            raise ValueError(f"path {path!r} is wrong at {path[position:]!r}; use a.b[0].c")
        key, index = step.groups()
        if isinstance(value, dict) and key in value:
            value = value[key]
        elif isinstance(value, list) and index and int(index) < len(value):
            value = value[int(index)]
        else:
            raise ValueError(f"path {path!r} leads nowhere at {path[position:]!r}")
        position = step.end()
    return json.dumps(value, ensure_ascii=False)


def compare_json(old: str, new: str) -> list[str]:
    """List the differences of two JSON texts. 比较两个 JSON 的差异。

    Args:
        old: The JSON before, 旧 JSON.
        new: The JSON after, 新 JSON.

    Returns:
        One line a difference, in order of their paths; none if they are equal.
    """
    before, after = _leaves(_parse_json("old", old)), _leaves(_parse_json("new", new))
    lines = []
    for path in dict.fromkeys([*before, *after]):
        name = path or "(root)"
        if path not in after:
            lines.append(f"removed {name}: {before[path]}")
        elif path not in before:
            lines.append(f"added {name}: {after[path]}")
        elif before[path] != after[path]:
            lines.append(f"changed {name}: {before[path]} -> {after[path]}")
    return lines


def csv_to_json(text: str, delimiter: str = ",") -> list[dict[str, str]]:
    """Turn CSV with a header line into records. 把 CSV 转换为 JSON 记录。

    Args:
        text: The CSV, CSV 文本; its first line names the columns.
        delimiter: The character between values, 分隔符.
    """
    rows = _read_csv(text, delimiter)
    header = rows[0]
    if len(set(header)) != len(header):
        raise ValueError(f"the header names a column twice: {header!r}")
    for number, row in enumerate(rows[1:], 2):
        if len(row) != len(header):
            raise ValueError(
                f"row {number} has {len(row)} values, the header {len(header)}: {row!r}"
            )
    return [dict(zip(header, row, strict=True)) for row in rows[1:]]


def json_to_csv(text: str, delimiter: str = ",") -> str:
    """Turn a JSON list of objects into CSV. 把 JSON 对象列表转换为 CSV。

    Args:
        text: A JSON list of objects, JSON 文本; the columns are all keys, in order.
        delimiter: The character between values, 分隔符.
    """
    _require_delimiter(delimiter)
    records = _parse_json("text", text)
    if not isinstance(records, list) or not all(isinstance(r, dict) for r in records):
        raise ValueError(f"text must be a JSON list of objects, not {text[:80]!r}")
    columns = list(dict.fromkeys(key for record in records for key in record))
    output = io.StringIO()
    writer = csv.writer(output, delimiter=delimiter, lineterminator="\n")
    writer.writerows([columns, *([_cell(record.get(c)) for c in columns] for record in records)])
    return output.getvalue()


def csv_to_markdown(text: str, delimiter: str = ",") -> str:
    """Turn CSV into a Markdown table. 把 CSV 转换为 Markdown 表格。

    Args:
        text: The CSV, CSV 文本; its first line becomes the head.
        delimiter: The character between values, 分隔符.
    """
    rows = _read_csv(text, delimiter)
    return markdown_table(rows[0], rows[1:])


def markdown_table(headers: list[str], rows: list[list[str]]) -> str:
    """Lay rows out as an aligned Markdown table. 生成对齐的 Markdown 表格。

    Args:
        headers: The titles of the columns, 表头.
        rows: The rows, 行; short ones are filled up with empty cells.
    """
    require_length("headers", headers, 1, 100)
    require_length("rows", rows, 0, 5000)
    width = len(headers)
    if any(len(row) > width for row in rows):
        raise ValueError(f"a row has more cells than the {width} headers {headers!r}")
    table = [
        [_escaped(cell) for cell in row] + [""] * (width - len(row)) for row in (headers, *rows)
    ]
    widths = [max(3, *(_columns(row[i]) for row in table)) for i in range(width)]
    table.insert(1, ["-" * size for size in widths])
    return "\n".join(
        "| "
        + " | ".join(c + " " * (w - _columns(c)) for c, w in zip(row, widths, strict=True))
        + " |"
        for row in table
    )


def _parse_json(name: str, text: str) -> object:
    require_length(name, text, 1, _MAX_CHARS)
    try:
        return json.loads(text, parse_constant=_refuse_constant)
    except (ValueError, RecursionError) as error:
        raise ValueError(f"{name} is not JSON: {error}") from None


def _refuse_constant(constant: str) -> NoReturn:
    raise ValueError(f"{constant} is no JSON number")


def _leaves(value: object, path: str = "") -> dict[str, str]:
    """Return every value that contains no other, by its path, as JSON."""
    parts: dict[str, object] = {}
    if isinstance(value, dict):
        parts = {f"{path}.{key}" if path else str(key): part for key, part in value.items()}
    elif isinstance(value, list):
        parts = {f"{path}[{i}]": part for i, part in enumerate(value)}
    if not parts:
        return {path: json.dumps(value, ensure_ascii=False)}
    return {leaf: text for key, part in parts.items() for leaf, text in _leaves(part, key).items()}


def _require_delimiter(delimiter: str) -> None:
    if len(delimiter) != 1 or delimiter in '"\r\n ':
        raise ValueError(f"delimiter must be one character such as , ; or tab, not {delimiter!r}")


def _read_csv(text: str, delimiter: str) -> list[list[str]]:
    require_length("text", text, 1, _MAX_CHARS)
    _require_delimiter(delimiter)
    try:
        rows = [
            row for row in csv.reader(io.StringIO(text), delimiter=delimiter, strict=True) if row
        ]
    except csv.Error as error:
        raise ValueError(f"text is not CSV: {error}") from None
    if not rows:
        raise ValueError(f"text holds no row: {text[:80]!r}")
    return rows


def _cell(value: object) -> str:
    if value is None:
        return ""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _escaped(cell: str) -> str:
    return " ".join(cell.replace("|", "\\|").split())


def _columns(text: str) -> int:
    return sum(2 if unicodedata.east_asian_width(c) in "WF" else 1 for c in text)


TOOLS = (
    format_json,
    json_value_at,
    compare_json,
    csv_to_json,
    json_to_csv,
    csv_to_markdown,
    markdown_table,
)
