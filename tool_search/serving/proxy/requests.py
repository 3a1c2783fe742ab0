"""A client's request, and the provider that it goes to."""

from __future__ import annotations

import asyncio
import zlib
from dataclasses import dataclass, field

import httpx2

from tool_search.adapters.hosts.chain import owner_digest
from tool_search.adapters.wire.incoming import TooLargeError, parse_json
from tool_search.adapters.wire.values import mended_value
from tool_search.config.limits import LimitSettings
from tool_search.core.profiles import ProviderProfile
from tool_search.core.settings import AUTO
from tool_search.core.values.json import json_bytes, read_json
from tool_search.providers.profile_choice import profile_for
from tool_search.serving.door import TOKEN_HEADER
from tool_search.serving.proxy.dialects.base import JSON, Emulated, WireDialect
from tool_search.serving.proxy.history import Exchange
from tool_search.serving.proxy.report import Report
from tool_search.serving.proxy.settings import ClientRule, UpstreamSettings

__all__ = [
    "CREDENTIALS",
    "KEY_HEADERS",
    "ClientRequest",
    "has_tools",
    "object_in",
    "owner_of",
    "profile_of_request",
    "read_object",
    "uncompressed",
]

KEY_HEADERS = ("authorization", "x-api-key", "api-key", "x-goog-api-key")
"""The headers that have a client's key for the provider."""

CREDENTIALS = (*KEY_HEADERS, TOKEN_HEADER)
"""The headers by which clients are told apart."""

# Strategies that a proxy can give a client; any other is the generic one.
_STRATEGIES = ("generic", "bridge", "claude", "openai_responses", "tools_in_messages")
# Features that only a service with tool search of its own knows.
_SEARCH_BETAS = ("advanced-tool-use-", "tool-search-tool-")
# Smaller bodies are read and written on the event loop: a thread would take longer.
_SMALL_BYTES = 20_000
# The header of zlib is told from that of gzip by the bytes.
_ANY_HEADER = zlib.MAX_WBITS + 32


@dataclass(slots=True, kw_only=True)
class ClientRequest:
    """A request of a client in one of the formats.

    Attributes:
        dialect: The format.
        path: The path.
        raw: The body in bytes, not compressed.
        headers: The headers.
        query: The query, without the question mark.
        upstream: The provider.
        rule: The rule for the client.
        owner: The digest of the client's credential.
        report: The report of the request.
        body: The body.
        client: The name of the client by its token; empty: there are no tokens.
        compressed: The body as it came, with its headers, if it was compressed.
        found_by_client: The tools that a client which defers by itself has found.
        kept: What the provider's conversation still lacks after this request, which is passed
            on; None: nothing changes there.
    """

    dialect: WireDialect
    path: str
    raw: bytes
    headers: httpx2.Headers
    query: str
    upstream: UpstreamSettings
    rule: ClientRule
    owner: str
    report: Report
    body: JSON = field(default_factory=dict)
    client: str = ""
    compressed: tuple[bytes, httpx2.Headers] | None = None
    found_by_client: Emulated = field(default_factory=lambda: Emulated({}))
    kept: Exchange | None = None

    def write(self, body: JSON) -> None:
        """Send the request on with another body."""
        self.body = body
        self.raw, self.compressed = json_bytes(body), None

    def emulate(self, emulated: Emulated) -> None:
        """Send the request on in a form for a provider that does not know deferred tools."""
        self.found_by_client = emulated
        self.write(emulated.body)
        betas = self.headers.get("anthropic-beta", "").split(",")
        kept = [beta.strip() for beta in betas if not beta.strip().startswith(_SEARCH_BETAS)]
        self.headers = self.headers.copy()
        self.headers.pop("anthropic-beta", None)
        if any(kept):
            self.headers["anthropic-beta"] = ",".join(kept)


def owner_of(headers: httpx2.Headers, secret: bytes) -> str:
    """Return the digest of a client's credentials, under which its exchanges are kept."""
    given: dict[str, str] = {}
    for value in filter(None, (headers.get(name, "") for name in CREDENTIALS)):
        # A client that sends its key in two headers, and at times in one, is the same client.
        given.setdefault(value.removeprefix("Bearer "), value)
    return owner_digest("\n".join(given.values()), secret)


def has_tools(body: JSON) -> bool:
    """True if a request has a list of definitions."""
    tools = body.get("tools")
    return isinstance(tools, list) and bool(tools) and all(isinstance(t, dict) for t in tools)


def profile_of_request(asked: ClientRequest) -> ProviderProfile:
    """Return the provider's profile, with a strategy that a proxy can give."""
    upstream, dialect = asked.upstream, asked.dialect.name
    model = str(asked.body.get("model") or "")
    profile = profile_for(
        dialect, model, base_url=upstream.base_url, strategy=upstream.strategy or AUTO
    )
    if profile.strategy not in _STRATEGIES or profile.search_form == "hosted":
        profile = profile.generic()
    if profile.thinking_bound_to_prefix and profile.strategy == "generic":
        # A list that grows inside a turn would end the thinking.
        return profile_for(dialect, model, base_url=upstream.base_url, strategy="bridge")
    return profile


async def read_object(raw: bytes, limits: LimitSettings | None = None) -> JSON | None:
    """Return the object in a body, or None if it is not one.

    Args:
        raw: The body.
        limits: The bounds of what a provider sends.

    Raises:
        TooLargeError: It is beyond the bounds.
    """
    if len(raw) > _SMALL_BYTES:
        return await asyncio.to_thread(object_in, raw, limits)
    return object_in(raw, limits)


def object_in(raw: bytes, limits: LimitSettings | None = None) -> JSON | None:
    """Return the object in JSON text, or None if it is not one."""
    try:
        if limits is not None:
            value = parse_json(raw, limits)
            value = mended_value(value) if b"\\ud" in raw.lower() else value
        else:
            value = read_json(raw.decode("utf-8"))
    except TooLargeError:
        raise
    except (UnicodeDecodeError, ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None


async def uncompressed(raw: bytes, encoding: str, max_bytes: int) -> bytes | None:
    """Return a body that was compressed; None if it is not, or cannot be read.

    Args:
        raw: The body.
        encoding: Its `content-encoding`.
        max_bytes: The largest body that is read.
    """
    if encoding.strip().casefold() not in ("gzip", "x-gzip", "deflate"):
        return None
    return await asyncio.to_thread(_inflate, raw, max_bytes)


def _inflate(raw: bytes, max_bytes: int) -> bytes | None:
    inflater = zlib.decompressobj(_ANY_HEADER)
    try:
        plain = inflater.decompress(raw, max_bytes)
    except zlib.error:
        return None
    # One that goes on after the largest size, or breaks off, is the provider's to refuse.
    return plain if inflater.eof else None
