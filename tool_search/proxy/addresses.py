"""Providers' addresses: the formats that each speaks, and the addresses of its paths."""

from __future__ import annotations

import re
from urllib.parse import urlsplit

from tool_search.config.providers import Dialect

__all__ = ["key_header", "known_dialects", "upstream_url"]

# By the end of the host. Sources: each vendor's API reference; Ollama, "OpenAI compatibility"
# and "Anthropic compatibility"; OpenRouter, "Anthropic API" and "Responses API (beta)".
_KNOWN: dict[str, tuple[Dialect, ...]] = {
    "api.anthropic.com": ("anthropic",),
    "api.openai.com": ("openai_chat", "openai_responses"),
    "api.deepseek.com": ("openai_chat",),
    "api.moonshot.cn": ("openai_chat",),
    "api.moonshot.ai": ("openai_chat",),
    "openrouter.ai": ("openai_chat", "openai_responses", "anthropic"),
}
# DeepSeek and Moonshot serve Anthropic's format under this path.
_ANTHROPIC_PATH = re.compile(r"/anthropic/?\Z")
_OLLAMA_PORT = 11434
_VERSION = re.compile(r"v\d+(?:alpha|beta)?\d*")


def known_dialects(base_url: str) -> tuple[Dialect, ...]:
    """Return the formats that an address is known to speak; empty: it is not known."""
    parts = urlsplit(base_url)
    if _ANTHROPIC_PATH.search(parts.path):
        return ("anthropic",)
    if _port(base_url) == _OLLAMA_PORT:
        return ("openai_chat", "openai_responses", "anthropic")
    return _KNOWN.get((parts.hostname or "").casefold(), ())


def key_header(base_url: str) -> str | None:
    """Return the only header in which a provider takes its key; None: as its clients send it.

    Source: Anthropic, "Authentication": `x-api-key`; an `Authorization` is read as OAuth, and
    Claude Code sends one for `ANTHROPIC_AUTH_TOKEN`.
    """
    host = (urlsplit(base_url).hostname or "").casefold()
    return "x-api-key" if host == "api.anthropic.com" else None


def _port(base_url: str) -> int | None:
    try:
        return urlsplit(base_url).port
    except ValueError:
        return None


def upstream_url(base_url: str, path: str, query: str = "") -> str:
    """Return the address of a client's path at a provider.

    Args:
        base_url: The provider's address. If it has a version, that replaces the path's `/v1`.
        path: The path of the client's request.
        query: Its query, without the question mark.
    """
    base = base_url.rstrip("/")
    has_version = any(_VERSION.fullmatch(part) for part in urlsplit(base).path.split("/"))
    rest = path.removeprefix("/v1") if has_version and f"{path}/".startswith("/v1/") else path
    return f"{base}{rest}" + (f"?{query}" if query else "")
