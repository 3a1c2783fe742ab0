"""Figures over the kept requests: what tool search saved, found and took."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from typing import Any

from tool_search.serving.inspector.records import CatalogRecord, RequestRecord

__all__ = ["figures"]

_MAX_NAMES = 20
_MAX_PERIODS = 40
_SUMS = ("tokens", "full_tokens", "kept_bytes", "total_bytes", "searches", "empty_searches")


def figures(requests: Sequence[RequestRecord], catalogs: Iterable[CatalogRecord]) -> dict[str, Any]:
    """Return the figures as JSON values.

    Latencies are those of requests with tool search, in milliseconds.
    """
    found, called = _by_conversation(requests)
    used = Counter(name for record in requests for name in record.client_side.calls)
    idle = Counter(
        name for key, names in found.items() for name in names if name not in called[key]
    )
    seen = set(used).union(*found.values())
    never = {name for each in catalogs for name in each.names if name not in seen}
    own = sorted(record.own_seconds * 1_000 for record in requests if not record.passed)
    return {
        "requests": len(requests),
        "with_search": len(own),
        "tokens": sum(record.tokens for record in requests),
        "full_tokens": sum(record.full_tokens for record in requests),
        "kept_bytes": sum(record.kept_bytes for record in requests),
        "total_bytes": sum(record.total_bytes for record in requests),
        "searches": sum(record.searches for record in requests),
        "empty_searches": sum(record.empty_searches for record in requests),
        "own_ms_p50": _percentile(own, 50),
        "own_ms_p99": _percentile(own, 99),
        "most_used": _name(used),
        "found_not_called": _name(idle),
        "never_found": sorted(never)[:_MAX_NAMES],
        "never_found_total": len(never),
        "periods": _periods(requests),
    }


def _by_conversation(
    requests: Iterable[RequestRecord],
) -> tuple[dict[str, set[str]], dict[str, set[str]]]:
    """Return the found and the called names of each conversation."""
    found: dict[str, set[str]] = defaultdict(set)
    called: dict[str, set[str]] = defaultdict(set)
    for record in requests:
        key = record.conversation or record.id
        for search in record.searched:
            found[key].update(search.found)
        called[key].update(record.client_side.calls)
    return found, called


def _name(counts: Counter[str]) -> list[dict[str, Any]]:
    best = sorted(counts.items(), key=lambda pair: (-pair[1], pair[0]))[:_MAX_NAMES]
    return [{"name": name, "count": count} for name, count in best]


def _percentile(values: Sequence[float], percent: int) -> float | None:
    """Return the smallest value that at least so many percent do not exceed."""
    if not values:
        return None
    return round(values[max(0, -(-len(values) * percent // 100) - 1)], 3)


def _periods(requests: Sequence[RequestRecord]) -> list[dict[str, Any]]:
    """Return sums over equal periods of time, oldest first."""
    if not requests:
        return []
    first, last = min(r.at for r in requests), max(r.at for r in requests)
    length = max((last - first) / _MAX_PERIODS, 1.0)
    periods: dict[int, dict[str, Any]] = {}
    for record in requests:
        place = min(int((record.at - first) / length), _MAX_PERIODS - 1)
        new = {"at": first + place * length, "requests": 0, **dict.fromkeys(_SUMS, 0)}
        period = periods.setdefault(place, new)
        period["requests"] += 1
        for name in _SUMS:
            period[name] += getattr(record, name)
    return [periods[place] for place in sorted(periods)]
