"""Draws quality against speed from the rows that benchmarks/compare.py hands over.

Run: python plot.py OUTPUT.png < rows.json
"""

from __future__ import annotations

import json
import sys

import matplotlib as mpl

mpl.use("Agg")
from matplotlib import pyplot as plt

OURS = "ours"


def main() -> None:
    """Write the picture."""
    rows = json.load(sys.stdin)
    figure, axes = plt.subplots(figsize=(8, 5), dpi=130)
    for place, row in enumerate(sorted(rows, key=lambda row: row["macro"])):
        own = row["system"].startswith(OURS)
        axes.scatter(
            row["speed_us"], row["macro"], s=64 if own else 40, color="C3" if own else "C0"
        )
        axes.annotate(
            row["system"],
            (row["speed_us"], row["macro"]),
            # Above and below in turn: neighbours in quality do not cover each other.
            xytext=(6, 5 if place % 2 else -13),
            textcoords="offset points",
            fontsize=9,
            fontweight="bold" if own else "normal",
        )
    axes.set_xscale("log")
    axes.set_xlabel("microseconds a query, median, 13,237 tools (log)")
    axes.set_ylabel("recall@5, macro average over eight public sets")
    axes.grid(visible=True, alpha=0.3)
    axes.margins(x=0.15, y=0.1)
    figure.tight_layout()
    figure.savefig(sys.argv[1])


if __name__ == "__main__":
    main()
