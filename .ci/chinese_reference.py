"""Write the Chinese page of configuration from the English one and a table of meanings."""

from __future__ import annotations

import re
from pathlib import Path

import yaml

MEANINGS = Path(__file__).with_name("configuration.zh-CN.yaml")
# In this order: a longer phrase before its parts.
_PHRASES = (
    (r"\[list of sections\]", "[多节]"),
    (r"\[sections by name\]", "[按名称的多节]"),
    (r"\[section\]", "[一节]"),
    (r"\bwhole number\b", "整数"),
    (r"\bnumber\b", "数字"),
    (r"\blist of texts\b", "文本列表"),
    (r"\btext\b", "文本"),
    (r"\bmapping\b", "映射"),
    (r"\brequired\b", "必填"),
    (r"\bor the preset's\b", "或预设的值"),
    (r"\bwith a preset\b", "（使用预设时）"),
    (r"\babove (\d)", r"大于 \1"),
    (r"\bat most (\d)", r"不超过 \1"),
    (r"(\d) to (\d)", r"\1 到 \2"),
    (r", by `type`", "，取决于 `type`"),
    (r"\bor\b", "或"),
    (r", ", "，"),
)


def chinese_configuration(english: str) -> str:
    """Return the Chinese page: keys, types and defaults are those of the English one.

    Raises:
        KeyError: A heading or a key has no meaning in the table.
    """
    table = yaml.safe_load(MEANINGS.read_text(encoding="utf-8"))
    made = re.search(r"<!--.*?-->", english)
    lines = [
        f"# {table['title']}",
        "",
        made[0] if made else "",
        "",
        table["intro"].replace("， ", "，"),
    ]
    for section in re.split(r"^## ", english, flags=re.MULTILINE)[1:]:
        heading, summary = table["headings"][section.partition("\n")[0]]
        columns = " | ".join(table["columns"])
        lines += ["", f"## {heading}", "", summary, "", f"| {columns} |", "|---|---|---|---|"]
        for row in re.findall(r"^\| (`.*) \|$", section, flags=re.MULTILINE):
            key, kind, default, _ = (cell.strip() for cell in row.split("|", 3))
            meaning = table["keys"][key.strip("`")]
            cells = (key, _translated(kind), _translated(default), meaning)
            lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"


def _translated(cell: str) -> str:
    """Return a cell in Chinese; code and links stay as they are."""
    parts = re.split(r"(`[^`]*`|\(#[^)]*\))", cell.strip())
    for number in range(0, len(parts), 2):
        for phrase, chinese in _PHRASES:
            parts[number] = re.sub(phrase, chinese, parts[number])
    return "".join(parts)
