"""The figures of a run, each with an interval of 95 %."""

from __future__ import annotations

import math
import random
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from statistics import fmean, median
from typing import Any

from model.asking import Record
from model.tasks import Task

__all__ = ["Figure", "TokenPrice", "bootstrap", "summarize", "wilson"]

_Z = 1.959964
_SAMPLES = 1000
_MILLION = 1_000_000


@dataclass(frozen=True, slots=True)
class Figure:
    """A value with its interval; n is the number of tasks that it is of."""

    value: float
    low: float
    high: float
    n: int


@dataclass(frozen=True, slots=True, kw_only=True)
class TokenPrice:
    """Dollars for a million tokens."""

    input: float
    read: float
    written: float
    output: float

    def dollars(self, record: Record) -> float:
        """Return the price of a record."""
        fresh = max(0, record.input - record.read - record.written)
        parts = (
            fresh * self.input,
            record.read * self.read,
            record.written * self.written,
            record.output * self.output,
        )
        return sum(parts) / _MILLION


def wilson(hits: int, n: int) -> Figure | None:
    """Return a share with Wilson's interval; None of no tasks.

    >>> wilson(8, 10)
    Figure(value=0.8, low=0.4902, high=0.9433, n=10)
    """
    if n == 0:
        return None
    share, square = hits / n, _Z * _Z
    middle = (share + square / (2 * n)) / (1 + square / n)
    half = _Z / (1 + square / n) * math.sqrt(share * (1 - share) / n + square / (4 * n * n))
    return Figure(
        round(share, 4), round(max(0.0, middle - half), 4), round(min(1.0, middle + half), 4), n
    )


def bootstrap(values: Sequence[float]) -> Figure | None:
    """Return a mean with the interval of 1,000 samples of a fixed seed; None of no values."""
    if not values:
        return None
    dice = random.Random(7)
    means = sorted(fmean(dice.choices(values, k=len(values))) for _ in range(_SAMPLES))
    low, high = means[int(_SAMPLES * 0.025)], means[int(_SAMPLES * 0.975) - 1]
    return Figure(round(fmean(values), 6), round(low, 6), round(high, 6), len(values))


def summarize(
    records: Sequence[Record], tasks: Mapping[str, Task], price: TokenPrice | None
) -> list[dict[str, Any]]:
    """Return the figures of each arm, in the order of its first record.

    `right tool called`: the share of tasks that need a tool in which one of its tools was called.
    `of the right tools`: the mean share of a task's tools that were called. `never searched`:
    the share of tasks that need a tool in which an arm with search neither searched nor called
    one of its tools. `needless`: the share of tasks without a need in which a tool was called or
    searched for. `needless calls`: calls of other tools in a task.
    """
    arms = list(dict.fromkeys(record.arm for record in records))
    return [_arm([r for r in records if r.arm == arm], arm, tasks, price) for arm in arms]


def _arm(
    records: Sequence[Record], arm: str, tasks: Mapping[str, Task], price: TokenPrice | None
) -> dict[str, Any]:
    done = [record for record in records if record.outcome == "done"]
    needy = [record for record in done if tasks[record.task].relevant]
    idle = [record for record in done if not tasks[record.task].relevant]
    shares = [_share(record, tasks[record.task]) for record in needy]
    silent = sum(
        not record.searches and not share for record, share in zip(needy, shares, strict=True)
    )
    others = [float(len(set(r.called) - set(tasks[r.task].relevant))) for r in done]
    figures: dict[str, Figure | None] = {
        "right tool called": wilson(sum(map(bool, shares)), len(shares)),
        "of the right tools": bootstrap(shares),
        "never searched": wilson(silent, len(needy)) if arm.startswith("search") else None,
        "needless": wilson(sum(bool(r.called or r.searches) for r in idle), len(idle)),
        "needless calls": bootstrap(others),
        "requests": bootstrap([float(r.requests) for r in done]),
        "input tokens": bootstrap([float(r.input) for r in done]),
        "output tokens": bootstrap([float(r.output) for r in done]),
        "usd": bootstrap([price.dollars(r) for r in done]) if price else None,
        "seconds": bootstrap([r.seconds for r in done]),
    }
    return {
        "arm": arm,
        "done": len(done),
        "refused": len(records) - len(done),
        "median seconds": median(r.seconds for r in done) if done else None,
        **{name: figure and asdict(figure) for name, figure in figures.items()},
    }


def _share(record: Record, task: Task) -> float:
    return len(set(task.relevant) & set(record.called)) / len(set(task.relevant))
