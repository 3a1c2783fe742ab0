"""The first commands of a new user: a bot to begin with, and a provider without a key."""
