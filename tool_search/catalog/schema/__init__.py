"""JSON Schema of tool arguments: read, repaired, and declared to providers."""
