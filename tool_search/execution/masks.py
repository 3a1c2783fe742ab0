"""What of a call may stand in a log."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from tool_search.schema import compact_json

__all__ = ["masked", "masked_json"]

_MASK = "***"
_LONGEST = 500
_SECRET_NAME = re.compile(
    r"pass(word|wd|phrase)?$|pwd|secret|token|(api|access|private)[-_ ]?key|credential|"
    r"authorization|cookie|session_?id|signature|otp$|pin$|密码|密钥|口令|парол|секрет",
    re.IGNORECASE,
)
_SECRET_VALUE = re.compile(
    r"""
      \b(?:sk|pk|rk)[-_][A-Za-z0-9_-]{12,}          # keys of OpenAI, Anthropic, Stripe
    | \bgh[pousr]_[A-Za-z0-9]{20,} | \bgithub_pat_\w{20,}
    | \bxox[abprs]-[A-Za-z0-9-]{10,} | \bAKIA[A-Z0-9]{16}\b | \bAIza[A-Za-z0-9_-]{30,}
    | \beyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{8,}(?:\.[A-Za-z0-9_-]*)?    # JSON web tokens
    | (?<=bearer\ )[A-Za-z0-9._~+/=-]{8,} | (?<=basic\ )[A-Za-z0-9+/=]{8,}
    | (?<=://)[^/\s:@]+:[^/\s@]+(?=@)               # what a user logs in with
    | -----BEGIN[ A-Z]*PRIVATE\ KEY-----.*?(?:-----END[ A-Z]*PRIVATE\ KEY-----|\Z)
    """,
    re.IGNORECASE | re.VERBOSE | re.DOTALL,
)


def masked(value: Any) -> Any:
    """The value with what is or looks like a secret replaced by `***`.

    >>> masked({"to": "ann", "api_key": "k1", "text": "Bearer abcdefgh1234"})
    {'to': 'ann', 'api_key': '***', 'text': 'Bearer ***'}
    """
    if isinstance(value, Mapping):
        return {
            key: _MASK if _SECRET_NAME.search(str(key)) and inner is not None else masked(inner)
            for key, inner in value.items()
        }
    if isinstance(value, list | tuple):
        return [masked(item) for item in value]
    return _SECRET_VALUE.sub(_MASK, value) if isinstance(value, str) else value


def masked_json(value: Any) -> str:
    """The same as JSON, at most 500 characters."""
    try:
        written = compact_json(masked(value))
    except (TypeError, ValueError, RecursionError) as exc:
        return f"<{type(exc).__name__}>"
    return written if len(written) <= _LONGEST else f"{written[: _LONGEST - 1]}…"
