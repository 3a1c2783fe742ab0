"""What the HTTP connections of all providers share."""

from __future__ import annotations

import ssl
import sys
from collections.abc import Mapping
from functools import cache
from types import ModuleType
from typing import Any

from pydantic import SecretStr

from tool_search.errors import ConfigurationError

__all__ = [
    "CONNECT_TIMEOUT_S",
    "check_extra_body",
    "check_key",
    "loaded_http_libraries",
    "tls_context",
]

CONNECT_TIMEOUT_S = 10.0
"""Seconds in which an endpoint must take a connection, where less is not set."""


# openai before 3 and anthropic before 1 bring httpx, later ones httpx2; openai 2.54 takes
# clients of both. Neither is imported here: the SDK that is installed says which is there.
_HTTP_LIBRARIES = ("httpx", "httpx2")


def loaded_http_libraries() -> tuple[ModuleType, ...]:
    """Return the HTTP libraries whose exceptions an SDK of this process can let through."""
    return tuple(sys.modules[name] for name in _HTTP_LIBRARIES if name in sys.modules)


@cache
def tls_context(client: type) -> ssl.SSLContext:
    """Return the one TLS context for all HTTP clients of a class.

    Making one reads every trusted certificate.

    Args:
        client: The HTTP client class of an SDK, `DefaultAsyncHttpxClient`.

    Raises:
        ConfigurationError: The class is of an HTTP library that is not known here.
    """
    for kind in client.__mro__:
        library = kind.__module__.partition(".")[0]
        if library in _HTTP_LIBRARIES:
            context: ssl.SSLContext = sys.modules[library].create_ssl_context()
            return context
    raise ConfigurationError(
        f"{client.__module__}.{client.__qualname__!r} is not an HTTP client of "
        f"{' or '.join(_HTTP_LIBRARIES)}; install a version of the SDK that the extras name, "
        "or pass a client of your own"
    )


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


def check_key(api_key: str | SecretStr, *, provider: str) -> SecretStr:
    """Return the key, which prints as asterisks, if a header can carry it.

    Raises:
        ConfigurationError: It has characters that no key has; the message does not show it.
    """
    key = api_key.get_secret_value() if isinstance(api_key, SecretStr) else api_key
    if not key or not key.isascii() or not key.isprintable():
        raise ConfigurationError(
            f"provider {provider!r}: the API key is empty or has characters that no header can "
            "carry; look for a line end, quotation marks or a placeholder in it"
        )
    return SecretStr(key)
