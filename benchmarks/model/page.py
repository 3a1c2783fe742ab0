"""The page of a run: its plan, its table, and plots as SVG."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape
from typing import Any

__all__ = ["page"]

_PLOTTED = ("right tool called", "of the right tools", "never searched", "needless")
_COLUMNS = (
    *_PLOTTED,
    "needless calls",
    "requests",
    "input tokens",
    "output tokens",
    "usd",
    "seconds",
)
_ROW, _LEFT, _WIDTH = 26, 230, 420
_STYLE = (
    "body{font:15px/1.5 system-ui,sans-serif;max-width:1100px;margin:2em auto;padding:0 1em}"
    "table{border-collapse:collapse;font-size:13px}td,th{border:1px solid #ccc;padding:3px 7px;"
    "text-align:right}td:first-child,th:first-child{text-align:left}svg{font:13px sans-serif}"
)


def page(plan: Mapping[str, Any], arms: Sequence[Mapping[str, Any]], *, state: str) -> str:
    """Return the page as HTML that needs no other file."""
    facts = "".join(
        f"<li>{escape(str(key))}: {escape(str(value))}</li>"
        for key, value in plan.items()
        if key != "arms"
    )
    plots = "".join(_plot(name, arms) for name in _PLOTTED)
    return (
        "<!doctype html><html lang='en'><meta charset='utf-8'>"
        f"<title>Tool search with {escape(str(plan['model']))}</title><style>{_STYLE}</style>"
        f"<h1>Tool search with {escape(str(plan['model']))}</h1><p>{escape(state)}</p>"
        f"<ul>{facts}</ul>{plots}{_scatter(arms)}{_table(arms)}</html>\n"
    )


def _plot(name: str, arms: Sequence[Mapping[str, Any]]) -> str:
    """Return a bar with an interval for each arm that has the figure."""
    rows = [(str(arm["arm"]), arm[name]) for arm in arms if arm[name]]
    if not rows:
        return ""
    height = _ROW * len(rows) + 10
    drawn = []
    for place, (arm, figure) in enumerate(rows):
        top = place * _ROW + 5
        middle = top + _ROW / 2
        low, high = (_LEFT + figure[end] * _WIDTH for end in ("low", "high"))
        drawn.append(
            f"<text x='0' y='{middle + 4}'>{escape(arm)}</text>"
            f"<rect x='{_LEFT}' y='{top + 4}' width='{figure['value'] * _WIDTH:.1f}' "
            f"height='{_ROW - 8}' fill='#7aa6d8'/>"
            f"<line x1='{low:.1f}' x2='{high:.1f}' y1='{middle}' y2='{middle}' stroke='#222'/>"
            f"<text x='{_LEFT + _WIDTH + 10}' y='{middle + 4}'>{figure['value']:.2f} "
            f"({figure['low']:.2f}-{figure['high']:.2f})</text>"
        )
    width = _LEFT + _WIDTH + 160
    return f"<h2>{escape(name)}</h2><svg width='{width}' height='{height}'>{''.join(drawn)}</svg>"


def _scatter(arms: Sequence[Mapping[str, Any]]) -> str:
    """Return the right tools against the input tokens."""
    rows = [arm for arm in arms if arm["of the right tools"] and arm["input tokens"]]
    if not rows:
        return ""
    most = max(arm["input tokens"]["value"] for arm in rows) or 1
    drawn = []
    for arm in rows:
        tokens, share = arm["input tokens"]["value"], arm["of the right tools"]["value"]
        x, y = 50 + tokens / most * _WIDTH, 220 - share * 200
        drawn.append(
            f"<circle cx='{x:.1f}' cy='{y:.1f}' r='4' fill='#c0504d'/>"
            f"<text x='{x + 7:.1f}' y='{y + 4:.1f}'>{escape(str(arm['arm']))}</text>"
        )
    axes = (
        f"<line x1='50' x2='{50 + _WIDTH}' y1='220' y2='220' stroke='#222'/>"
        "<line x1='50' x2='50' y1='20' y2='220' stroke='#222'/><text x='20' y='26'>1</text>"
        f"<text x='20' y='224'>0</text><text x='{_WIDTH - 20}' y='240'>{most:,.0f} tokens</text>"
    )
    return (
        "<h2>of the right tools, by input tokens of a task</h2>"
        f"<svg width='{_WIDTH + 300}' height='250'>{axes}{''.join(drawn)}</svg>"
    )


def _table(arms: Sequence[Mapping[str, Any]]) -> str:
    head = "".join(f"<th>{escape(name)}</th>" for name in ("arm", "done", "refused", *_COLUMNS))
    rows = "".join(
        f"<tr><td>{escape(str(arm['arm']))}</td><td>{arm['done']}</td><td>{arm['refused']}</td>"
        + "".join(f"<td>{_cell(arm[name])}</td>" for name in _COLUMNS)
        + "</tr>"
        for arm in arms
    )
    return f"<h2>All figures</h2><table><tr>{head}</tr>{rows}</table>"


def _cell(figure: Mapping[str, Any] | None) -> str:
    if figure is None:
        return ""
    value, low, high = (f"{figure[key]:,.4g}" for key in ("value", "low", "high"))
    return f"{value} ({low} to {high})"
