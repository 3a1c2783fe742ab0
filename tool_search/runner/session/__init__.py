"""A session: a conversation with search, limits of its history, and calls that run."""
