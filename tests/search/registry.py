"""The engines of the product's table, in the groups that tests need."""

from __future__ import annotations

from tool_search.search.build import ENGINES, PRESETS

EVERY_ENGINE = tuple(ENGINES)
BY_WORDS = tuple(name for name, row in ENGINES.items() if row.ranks_by == ("words",))
WITH_WORDS = tuple(name for name, row in ENGINES.items() if "words" in row.ranks_by)
WITHOUT_VECTORS = tuple(name for name, row in ENGINES.items() if not row.needs_vectors)
# Their queries are in the query language, and their scores take votes.
WITH_LANGUAGE = tuple(name for name in WITHOUT_VECTORS if not ENGINES[name].has_own_syntax)
EVERY_PRESET = tuple(PRESETS)
# Their ranking is an index of its own, which no engine has.
PRESETS_WITH_INDEX = tuple(name for name, row in PRESETS.items() if any(row.indexes.values()))
