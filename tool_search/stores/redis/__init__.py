"""Conversations, evidence and grants in Redis, for workers on any number of machines."""

from tool_search.stores.redis.store import RedisStore

__all__ = ["RedisStore"]
