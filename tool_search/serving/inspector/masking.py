"""Masking of keys in what the inspector keeps."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from tool_search.core.values.json import encodable
from tool_search.core.values.redaction import redacted, redacted_text

__all__ = ["Masker"]

_MASK = "***"
_MAX_TEXT_CHARS = 1_000
# A shorter one is part of ordinary words.
_MIN_SECRET_CHARS = 8


class Masker:
    """Masks the credentials of a request, and whatever has a key's form or name.

    Args:
        secrets: The credentials.
    """

    def __init__(self, secrets: Iterable[str]) -> None:
        given = {secret for secret in secrets if len(secret) >= _MIN_SECRET_CHARS}
        self._secrets = sorted(given, key=len, reverse=True)

    def text(self, text: str) -> str:
        """Return a short text without keys or lone surrogates, cut to 1,000 characters."""
        text = self._without_secrets(encodable(text))
        cut = text if len(text) <= _MAX_TEXT_CHARS else f"{text[: _MAX_TEXT_CHARS - 1]}…"
        return redacted_text(cut)

    def value(self, value: Any) -> Any:
        """Return a JSON value without keys; of a long text, both ends.

        Numbers stay: `max_tokens` is not a token.
        """
        if isinstance(value, Mapping):
            return {
                self._without_secrets(str(key)): self._member(str(key), inner)
                for key, inner in value.items()
            }
        if isinstance(value, list | tuple):
            return [self.value(item) for item in value]
        return redacted_text(self._without_secrets(value)) if isinstance(value, str) else value

    def _member(self, key: str, inner: Any) -> Any:
        if isinstance(inner, str) and redacted({key: ""})[key] == _MASK:
            return _MASK
        return self.value(inner)

    def _without_secrets(self, text: str) -> str:
        for secret in self._secrets:
            text = text.replace(secret, _MASK)
        return text
