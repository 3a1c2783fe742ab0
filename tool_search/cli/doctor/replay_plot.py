"""A plot of replayed conversations: tokens of definitions with every tool, and with search."""

from __future__ import annotations

from xml.sax.saxutils import escape

from tool_search.cli.doctor.replay import Replays
from tool_search.i18n import Language, text

__all__ = ["replay_svg"]

_WIDTH, _BAR, _GAP, _LEFT, _RIGHT, _TOP = 760, 9, 12, 190, 90, 64
_MAX_BARS = 30
_MAX_KEY_CHARS = 24
_COLOURS = {"full": "#9aa5b1", "search": "#2f6fb2"}


def replay_svg(found: Replays, language: Language) -> str:
    """Return an SVG with two bars for each conversation, the largest ones first."""
    by_size = sorted(found.conversations, key=lambda each: (-each.full_tokens, each.key))
    shown = by_size[:_MAX_BARS]
    most = max((max(each.full_tokens, each.search_tokens) for each in shown), default=1) or 1
    step = 2 * _BAR + _GAP
    height = _TOP + step * max(1, len(shown)) + 20
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {height}">',
        f'<rect width="{_WIDTH}" height="{height}" fill="white"/><g font-family="sans-serif">',
        _text(10, 20, _heading(found, language), weight="bold"),
        *_legend(language),
    ]
    for row, each in enumerate(shown):
        top = _TOP + step * row
        recall = "-" if each.recall is None else f"{each.recall:.2f}"
        parts.append(_text(10, top + _BAR + 4, f"{_short(each.key)}  {recall}"))
        sizes = {"full": each.full_tokens, "search": each.search_tokens}
        for place, (kind, tokens) in enumerate(sizes.items()):
            length = (_WIDTH - _LEFT - _RIGHT) * tokens / most
            y = top + place * _BAR
            parts.append(
                f'<rect x="{_LEFT}" y="{y}" width="{length:.1f}" height="{_BAR - 1}" '
                f'fill="{_COLOURS[kind]}"/>'
            )
            parts.append(_text(_LEFT + length + 6, y + _BAR - 1, f"{tokens:,}", size=9))
    return "\n".join([*parts, "</g></svg>", ""])


def _heading(found: Replays, language: Language) -> str:
    recall = "-" if found.recall is None else f"{found.recall:.2f}"
    return text("replayed.heading", language, count=len(found.conversations), recall=recall)


def _legend(language: Language) -> list[str]:
    parts = []
    for place, kind in enumerate(_COLOURS):
        x = _LEFT + 220 * place
        parts.append(f'<rect x="{x}" y="34" width="10" height="10" fill="{_COLOURS[kind]}"/>')
        parts.append(_text(x + 16, 43, text(f"replayed.{kind}", language)))
    return parts


def _text(x: float, y: float, content: str, *, size: int = 12, weight: str = "normal") -> str:
    return (
        f'<text x="{x:.1f}" y="{y:.1f}" font-size="{size}" font-weight="{weight}">'
        f"{escape(content)}</text>"
    )


def _short(key: str) -> str:
    plain = "".join(char if char.isprintable() else "?" for char in key)
    return plain if len(plain) <= _MAX_KEY_CHARS else f"{plain[: _MAX_KEY_CHARS - 1]}…"
