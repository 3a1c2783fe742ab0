"""Search engines, one file each; `tool_search.search.build` has their table."""
