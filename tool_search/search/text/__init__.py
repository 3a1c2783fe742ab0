"""Text of tools and queries, cut into terms."""
