"""Output for a person at a terminal: their language, and lines that fit."""
