"""Chat providers: their facts, their errors and their prompt caches."""
