"""Tool search behind a base URL: a proxy between a client and its provider."""
