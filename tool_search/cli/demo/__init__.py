"""`tool-search demo` in the terminal."""
