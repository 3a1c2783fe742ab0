"""Rank some queries with some systems; read a catalog and queries, write rankings, as JSON.

Input: `{"module", "systems", "sets": [{"tools", "queries"}]}`. Output: for each system, for each
set, the ranking of each query. Run by benchmarks/model_queries.py, in the environment of the
module's group.
"""

from __future__ import annotations

import importlib
import json
import sys
from collections.abc import Mapping

from ask import Build


def main() -> None:
    """Write the rankings of standard input."""
    given = json.load(sys.stdin)
    systems: Mapping[str, Build] = importlib.import_module(given["module"]).SYSTEMS
    rankings: dict[str, list[list[list[str]]]] = {}
    for name in given["systems"]:
        rankings[name] = []
        for each in given["sets"]:
            search = systems[name](each["tools"])
            rankings[name].append([list(search(query)) for query in each["queries"]])
    json.dump(rankings, sys.stdout)


if __name__ == "__main__":
    main()
