"""What the HTTP connections of all providers share."""

from __future__ import annotations

import ssl
from collections.abc import Mapping
from functools import cache
from typing import Any

import httpx2

from tool_search.errors import ConfigurationError

__all__ = ["CONNECT_TIMEOUT_S", "check_extra_body", "check_key", "tls_context"]

CONNECT_TIMEOUT_S = 10.0
"""Seconds in which an endpoint must take a connection, where less is not set."""


@cache
def tls_context() -> ssl.SSLContext:
    """The process's one TLS context: making one reads every trusted certificate."""
    return httpx2.create_ssl_context()


def check_extra_body(extra_body: Mapping[str, Any] | None, *, provider: str) -> dict[str, Any]:
    """The fields to merge into every request's body.

    Raises:
        ConfigurationError: One of them is the plan's to say.
    """
    extra = dict(extra_body or {})
    for key in ("input", "messages", "tools"):
        if key in extra:
            raise ConfigurationError(
                f"provider {provider!r}: extra_body.{key} is not allowed: the conversation "
                "decides it; give tools to the catalog and text to system_prompt"
            )
    return extra


def check_key(api_key: str, *, provider: str) -> str:
    """The key, if a header can carry it.

    Raises:
        ConfigurationError: It has characters that no key has; the message does not show it.
    """
    if not api_key or not api_key.isascii() or not api_key.isprintable():
        raise ConfigurationError(
            f"provider {provider!r}: the API key is empty or has characters that no header can "
            "carry; look for a line end, quotation marks or a placeholder in it"
        )
    return api_key
