"""Discoveries of a conversation, and the order in which tools are declared."""
