"""Redaction of secrets in logs, traces and texts for models.

By their names (arguments, fields, headers, parameters of an address) and by their form
(keys of known services, tokens, credentials in an address). Every pattern takes time
linear in the text.
"""

from __future__ import annotations

import logging
import re
import traceback
from collections.abc import Mapping
from typing import Any

from tool_search.core.values.json import compact_json

__all__ = ["log_failure", "redact_logs", "redacted", "redacted_json", "redacted_text"]

_MASK = "***"
_MAX_CHARS = 500
# A longer text is cut before it is searched, which would hold the event loop: 16,000
# characters take about 10 ms at the worst.
_HEAD_CHARS = 12_000
_TAIL_CHARS = 4_000
_SECRET_NAME = re.compile(
    r"pass(word|wd|phrase)?$|pwd|(^|[-_])(pw|auth|sig)$|secret|token|credential|"
    r"(api|access|private)[-_ ]?key|authorization|cookie|session_?id|signature|otp$|pin$|"
    r"密码|密钥|口令|парол|секрет",
    re.IGNORECASE,
)
_SECRET_VALUE = re.compile(
    r"""
      \b(?:sk|pk|rk)[-_][A-Za-z0-9_-]{12,}          # keys of OpenAI, Anthropic, Stripe
    | \bgh[pousr]_[A-Za-z0-9]{20,} | \bgithub_pat_\w{20,}
    | \bxox[abprs]-[A-Za-z0-9-]{10,} | \bAKIA[A-Z0-9]{16}\b | \bAIza[A-Za-z0-9_-]{30,}
    | \beyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{8,}(?:\.[A-Za-z0-9_-]*)?    # JSON web tokens
    | (?<=bearer\ )[A-Za-z0-9._~+/=-]{8,} | (?<=basic\ )[A-Za-z0-9+/=]{8,}
    | (?<=://)[^/\s:@]{0,200}:[^/\s@]{1,200}(?=@)     # what a user logs in with
    | (?<=://)[^/\s:@]{12,200}(?=@)                  # a token alone
    | -----BEGIN[ A-Z]*PRIVATE\ KEY-----.*?(?:-----END[ A-Z]*PRIVATE\ KEY-----|\Z)
    """,
    re.IGNORECASE | re.VERBOSE | re.DOTALL,
)


_SECRET_FIELD = re.compile(
    r"""
      (?P<header>\b(?:proxy-)?authorization["']?\s{0,3}[:=]\s{0,3}["']?)[^\r\n"',}\]]{3,}
    | (?P<field>
        (?:password|passwd|passphrase|pwd|secret|(?:api|access|private)[-_ ]?key|credential
          |set-cookie|cookie|session_?id|signature)[\w-]{0,20}["']?\s{0,3}[:=]\s{0,3}["']?
      | token[\w-]{0,20}(?:=|["']\s{0,3}[:=]\s{0,3}["']?)
      | (?<![\w-])(?:pw|sig|auth)=
      | (?<=[?&])(?:key|code)=
      )
      [^\s"'&,;<>}\])]{3,}
    """,
    re.IGNORECASE | re.VERBOSE,
)


def redacted_text(text: str) -> str:
    """Return a text without its secrets; of a long one, both ends.

    For texts of third parties: exceptions, standard error, tracebacks.

    >>> redacted_text("GET https://ann:pw1@db.example/?token=abc123 failed")
    'GET https://***@db.example/?token=*** failed'
    """
    cut = len(text) - _HEAD_CHARS - _TAIL_CHARS
    if cut > 0:
        left_out = f"\n... [{cut} characters left out] ...\n"
        text = f"{text[:_HEAD_CHARS]}{left_out}{text[-_TAIL_CHARS:]}"
    text = _SECRET_VALUE.sub(_MASK, text)
    return _SECRET_FIELD.sub(lambda m: f"{m['header'] or m['field']}{_MASK}", text)


def log_failure(log: logging.Logger, message: str, *values: object) -> None:
    """Log the exception that is being handled, with its traceback, and no secret of either.

    Args:
        log: The logger.
        message: The failed action, with placeholders for `values` as in logging.
        values: The values of the placeholders.
    """
    log.error("%s\n%s", message % values, redacted_text(traceback.format_exc().rstrip()))


def redact_logs(*names: str) -> None:
    """Redact the lines of other libraries' loggers: at INFO, HTTP clients write whole addresses."""
    for name in names:
        logging.getLogger(name).addFilter(_redact_line)


def _redact_line(record: logging.LogRecord) -> bool:
    written = record.getMessage()
    shown = redacted_text(written)
    if shown != written:
        record.msg, record.args = shown, ()
    return True


def redacted(value: Any) -> Any:
    """Return the value with `***` in place of each secret or likely secret.

    >>> redacted({"to": "ann", "api_key": "k1", "text": "Bearer abcdefgh1234"})
    {'to': 'ann', 'api_key': '***', 'text': 'Bearer ***'}
    """
    if isinstance(value, Mapping):
        return {
            key: _MASK if _SECRET_NAME.search(str(key)) and inner is not None else redacted(inner)
            for key, inner in value.items()
        }
    if isinstance(value, list | tuple):
        return [redacted(item) for item in value]
    return _SECRET_VALUE.sub(_MASK, value) if isinstance(value, str) else value


def redacted_json(value: Any) -> str:
    """Return the same as JSON, at most 500 characters."""
    try:
        written = compact_json(redacted(value))
    except (TypeError, ValueError, RecursionError) as exc:
        return f"<{type(exc).__name__}>"
    return written if len(written) <= _MAX_CHARS else f"{written[: _MAX_CHARS - 1]}…"
