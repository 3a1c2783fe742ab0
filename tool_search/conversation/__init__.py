"""One conversation: history, tools, calls and the next request."""
