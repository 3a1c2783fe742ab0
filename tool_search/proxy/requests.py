"""A client's request, and the provider that it goes to."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass, field

from tool_search.config.strategies import AUTO
from tool_search.providers.profiles import ProviderProfile, profile_for
from tool_search.proxy.dialects.base import JSON, Emulated, WireDialect
from tool_search.proxy.report import Report
from tool_search.proxy.settings import ClientRule, UpstreamSettings
from tool_search.values.json import compact_json, read_json

__all__ = [
    "ClientRequest",
    "has_tools",
    "json_bytes",
    "object_in",
    "profile_of_request",
    "read_object",
]

# Strategies that a proxy can give a client; any other is the generic one.
_STRATEGIES = ("generic", "bridge", "claude", "openai_responses", "tools_in_messages")
# Features that only a service with tool search of its own knows.
_SEARCH_BETAS = ("advanced-tool-use-", "tool-search-tool-")
# Smaller bodies are read and written on the event loop: a thread would take longer.
_SMALL_BYTES = 20_000


@dataclass(slots=True, kw_only=True)
class ClientRequest:
    """A request of a client in one of the formats.

    Attributes:
        dialect: The format.
        path: The path.
        raw: The body in bytes.
        headers: The headers, their names in lower case.
        query: The query, without the question mark.
        upstream: The provider.
        rule: The rule for the client.
        owner: The digest of the client's credential.
        report: The report of the request.
        body: The body.
        found_by_client: The tools that a client which defers by itself has found.
    """

    dialect: WireDialect
    path: str
    raw: bytes
    headers: Mapping[str, str]
    query: str
    upstream: UpstreamSettings
    rule: ClientRule
    owner: str
    report: Report
    body: JSON = field(default_factory=dict)
    found_by_client: Emulated = field(default_factory=lambda: Emulated({}))

    def emulate(self, emulated: Emulated) -> None:
        """Send the request on in a form for a provider that does not know deferred tools."""
        self.found_by_client = emulated
        self.body = emulated.body
        self.raw = json_bytes(emulated.body)
        betas = self.headers.get("anthropic-beta", "").split(",")
        kept = [beta.strip() for beta in betas if not beta.strip().startswith(_SEARCH_BETAS)]
        headers = {k: v for k, v in self.headers.items() if k != "anthropic-beta"}
        self.headers = {**headers, "anthropic-beta": ",".join(kept)} if any(kept) else headers


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


async def read_object(raw: bytes) -> JSON | None:
    """Return the object in a body, or None if it is not one."""
    if len(raw) > _SMALL_BYTES:
        return await asyncio.to_thread(object_in, raw)
    return object_in(raw)


def object_in(raw: bytes) -> JSON | None:
    """Return the object in JSON text, or None if it is not one."""
    try:
        value = read_json(raw.decode("utf-8"))
    except (UnicodeDecodeError, ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None


def json_bytes(value: JSON) -> bytes:
    """Return an object as JSON text."""
    return compact_json(value).encode("utf-8", "replace")
