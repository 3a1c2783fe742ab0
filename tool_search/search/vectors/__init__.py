"""Vectors of texts and tools."""
