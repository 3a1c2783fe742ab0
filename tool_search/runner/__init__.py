"""The agent loop, for bots that have none of their own."""
