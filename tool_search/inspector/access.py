"""The requests that may read the inspector.

A page of another origin must read nothing. It cannot without a header that permits it, which
is never sent; but it could give its own name this machine's address (DNS rebinding), and be of
the same origin then. So a request without a token has to name this machine as its host.
"""

from __future__ import annotations

import hmac
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from urllib.parse import urlsplit

__all__ = ["TOKEN_HEADER", "Access"]

TOKEN_HEADER = "x-tool-search-token"  # noqa: S105  # the name of a header
"""The header with a token."""

_LOOPBACK = ("127.0.0.1", "::1", "localhost")
# Another program passes the request on, perhaps from another machine.
_FORWARDED = ("forwarded", "x-forwarded-for", "x-forwarded-host", "x-real-ip", "via")


@dataclass(frozen=True, slots=True)
class Access:
    """The rules of who may read.

    Attributes:
        tokens: The tokens, any of which is needed; empty: this machine reads without.
    """

    tokens: Sequence[bytes] = ()

    def refusal(self, headers: Mapping[str, str], peer: str | None) -> tuple[int, str] | None:
        """Return the status and the reason for which a request may not read; None: it may.

        Args:
            headers: The headers, their names in lower case.
            peer: The address of the client; None: it is not known.
        """
        if not _is_own_origin(headers):
            return 403, "a page of another origin may not read this"
        if self.tokens:
            return None if self._has_token(headers) else (401, f"a token is needed: {TOKEN_HEADER}")
        host = _hostname(headers.get("host", ""))
        if host not in _LOOPBACK:
            return 403, "open this under 127.0.0.1 or localhost, or set tokens_env"
        if peer is not None and peer not in _LOOPBACK:
            return 403, "beyond this machine a token is needed: set tokens_env"
        if any(name in headers for name in _FORWARDED):
            return 403, "through another proxy a token is needed: set tokens_env"
        return None

    def _has_token(self, headers: Mapping[str, str]) -> bool:
        given = (
            headers.get(TOKEN_HEADER, ""),
            headers.get("authorization", "").removeprefix("Bearer "),
        )
        return any(hmac.compare_digest(g.encode(), t) for g in given for t in self.tokens)


def _is_own_origin(headers: Mapping[str, str]) -> bool:
    """True unless a browser says that a page of another origin asks."""
    if headers.get("sec-fetch-site", "none") not in ("none", "same-origin"):
        return False
    origin = headers.get("origin")
    if origin is None:
        return True
    return origin.partition("://")[2] == headers.get("host", "")


def _hostname(host: str) -> str:
    """Return the name in a `Host`, without its port."""
    try:
        return (urlsplit(f"//{host}").hostname or "").rstrip(".")
    except ValueError:
        return ""
