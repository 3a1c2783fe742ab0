"""Vectors of texts and tools, their cache and their store."""
