"""Addresses: the formats that providers speak, and the paths that clients may ask for."""

from __future__ import annotations

import re
from collections.abc import Sequence
from fnmatch import fnmatchcase
from urllib.parse import urlsplit

from tool_search.core.settings import Dialect

__all__ = [
    "is_canonical",
    "is_listed",
    "key_header",
    "known_dialects",
    "upstream_url",
    "with_version",
]

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
_ENCODED_END = re.compile(r"%(?:2f|5c)", re.IGNORECASE)
# A server that decodes once more, or takes the other slash for one, reads another path.
_READ_TWICE = re.compile(r"[\\\x00-\x1f\x7f]|%(?:2e|2f|5c)", re.IGNORECASE)
# What clients may ask for with a key of the proxy's own, besides the formats. Sources: OpenAI,
# "Models", "Embeddings", "Responses", "Conversations", "Files", "Batch", "Chat Completions";
# Anthropic, "Models", "Files", "Message Batches".
_ROUTES = (
    ("GET HEAD", re.compile(r"/v1/models(?:/.+)?")),
    ("POST", re.compile(r"/v1/(?:embeddings|responses/(?:input_tokens|compact))")),
    (
        "GET HEAD POST DELETE",
        re.compile(
            r"/v1/(?:responses|conversations|files|batches|messages/batches|chat/completions)"
            r"(?:/[^/]+(?:/(?:input_items|cancel|content|results|messages|items(?:/[^/]+)?))?)?"
        ),
    ),
)


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


def is_canonical(path: str, raw_path: str) -> bool:
    """True if every server reads the same path in it, which stays under the base address.

    Args:
        path: The path, decoded.
        raw_path: The path as it came.
    """
    parts = [part.partition(";")[0] for part in path.split("/")[1:]]
    is_plain = path.startswith("/") and "" not in parts[:-1] and {".", ".."}.isdisjoint(parts)
    return is_plain and not _ENCODED_END.search(raw_path) and not _READ_TWICE.search(path)


def with_version(path: str) -> str:
    """Return a path with `/v1` at its begin, which some clients leave out."""
    return path if path.startswith("/v1/") else f"/v1{path}"


def is_listed(method: str, path: str, more: Sequence[str] = ()) -> bool:
    """True if clients may ask for a path with a key of the proxy's own.

    Args:
        method: The method.
        path: The path, decoded and canonical.
        more: Globs of further paths, each with a method before it or for all.
    """
    whole = with_version(path)
    if any(method in methods.split() and each.fullmatch(whole) for methods, each in _ROUTES):
        return True
    named = (glob if " " in glob else f"* {glob}" for glob in more)
    return any(fnmatchcase(f"{method} {each}", glob) for glob in named for each in (path, whole))
