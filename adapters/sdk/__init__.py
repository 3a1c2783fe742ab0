"""Connections and replies by the vendors' SDKs."""
