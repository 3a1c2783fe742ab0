"""Draw how queries, builds and memory grow, from the rows of benchmarks/search_growth.py.

Run: python plot_growth.py OUTPUT.svg < rows.json
"""

from __future__ import annotations

import json
import sys

import matplotlib as mpl

mpl.use("Agg")
from matplotlib import pyplot as plt

FIGURES = (
    ("query_ms", "a query, ms"),
    ("build_s", "build, s"),
    ("ready_s", "ready from disk, s"),
    ("memory_mb", "memory, MB"),
)


def main() -> None:
    """Write the picture."""
    rows = json.load(sys.stdin)
    # The same picture for the same rows.
    mpl.rcParams["svg.hashsalt"] = "growth"
    figure, all_axes = plt.subplots(1, 4, figsize=(15, 4), dpi=110)
    for axes, (key, label) in zip(all_axes, FIGURES, strict=True):
        for system in dict.fromkeys(row["system"] for row in rows):
            own = [row for row in rows if row["system"] == system and row.get(key)]
            if own:
                sizes = [row["tools"] for row in own]
                axes.plot(sizes, [row[key] for row in own], marker="o", label=system)
        axes.set_xscale("log")
        axes.set_yscale("log")
        axes.set_title(label)
        axes.set_xlabel("tools")
        axes.grid(visible=True, alpha=0.3)
    all_axes[0].legend()
    figure.tight_layout()
    figure.savefig(sys.argv[1], metadata={"Date": None})


if __name__ == "__main__":
    main()
