"""`tool-search chat`."""
