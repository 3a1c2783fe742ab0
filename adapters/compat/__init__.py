"""Tool search with the names, answers, settings and rankings of other systems."""
