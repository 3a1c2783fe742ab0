"""The address of a Redis server, and the problems with it and their remedies.

Sources: Redis documentation, "Errors" and "Key eviction"; redis-py, `redis.exceptions`.
"""

from __future__ import annotations

import re
from urllib.parse import SplitResult, urlsplit

from tool_search.errors import ConfigurationError, StoreFault

try:
    from redis import exceptions
except ImportError as exc:
    raise ImportError(
        "a store in Redis needs redis-py: "
        "pip install 'tool-search-middleware[redis]'; in a clone: pip install '.[redis]'"
    ) from exc

__all__ = ["can_pass", "fault_of", "shown_address"]

_SCHEMES = ("redis", "rediss", "unix")
_ADDRESS = (
    "the address of Redis must be redis://HOST:PORT/NUMBER, rediss:// for TLS, or unix://PATH; "
    "in its user and password write / as %2F, @ as %40, # as %23 and ? as %3F. It is not shown, "
    "because it may have a password"
)
_ADVICE: dict[StoreFault, str] = {
    "unreachable": "does not answer ({error}); check that it runs, and store.url",
    "no_permission": "refused this user ({error}); check the user and the password in store.url, "
    "and the commands that the user may run",
    "out_of_memory": "is out of memory ({error}); raise maxmemory, or set store.keep_days",
    "read_only": "is read-only ({error}); name the primary in store.url, or wait for the failover",
    "disk_failed": "cannot save to its disk ({error}); make room there, or correct its folder",
    "foreign": "has data of another program under the same names ({error}); name another "
    "store.prefix",
    "unknown": "refused a request ({error}); check store.url, and that it is Redis 7 or later",
}
_BY_TYPE: tuple[tuple[type[Exception], StoreFault], ...] = (
    (exceptions.AuthenticationError, "no_permission"),
    (exceptions.AuthorizationError, "no_permission"),
    (exceptions.NoPermissionError, "no_permission"),
    (exceptions.OutOfMemoryError, "out_of_memory"),
    (exceptions.ReadOnlyError, "read_only"),
    (exceptions.ConnectionError, "unreachable"),
    (exceptions.TimeoutError, "unreachable"),
    (exceptions.ClusterDownError, "unreachable"),
    (exceptions.MasterDownError, "unreachable"),
    (exceptions.RedisClusterException, "unreachable"),
    (OSError, "unreachable"),
)
# Errors inside a script keep their code only in the text.
_BY_CODE: dict[str, StoreFault] = {
    "OOM": "out_of_memory",
    "READONLY": "read_only",
    "MISCONF": "disk_failed",
    "WRONGTYPE": "foreign",
    "NOPERM": "no_permission",
    "NOAUTH": "no_permission",
    "WRONGPASS": "no_permission",
    "CLUSTERDOWN": "unreachable",
    "MASTERDOWN": "unreachable",
    "NOREPLICAS": "unreachable",
    "LOADING": "unreachable",
    "TRYAGAIN": "unreachable",
    # An ACL that refuses a command inside a script has no code.
    "user executing the script": "no_permission",
}
_CODE = re.compile(r"\b(" + "|".join(_BY_CODE) + r")\b")


def shown_address(url: str) -> str:
    """Return an address without user, password and options.

    Raises:
        ConfigurationError: It is not an address of Redis; the message does not show it.
    """
    try:
        split = urlsplit(url)
        shown = _show_address(split)
    except ValueError:
        # The cause would show a piece of a password with a character that must be encoded.
        raise ConfigurationError(_ADDRESS) from None
    if shown is None:
        raise ConfigurationError(_ADDRESS)
    return shown


def _show_address(split: SplitResult) -> str | None:
    if split.fragment or split.scheme not in _SCHEMES:
        return None
    if split.scheme == "unix":
        return f"unix://{split.path}" if split.path and "@" not in split.path else None
    if not split.hostname or not re.fullmatch(r"/?\d*", split.path):
        return None
    host = f"[{split.hostname}]" if ":" in split.hostname else split.hostname
    return f"{split.scheme}://{host}:{split.port or 6379}{split.path}"


def fault_of(error: Exception) -> tuple[StoreFault, str]:
    """Return the problem of a server, and a message with its remedy."""
    fault = _fault(error)
    return fault, _ADVICE[fault].format(error=error or type(error).__name__)


def can_pass(error: Exception) -> bool:
    """Return True if the same request may succeed a moment later."""
    return _fault(error) == "unreachable"


def _fault(error: Exception) -> StoreFault:
    code = _CODE.search(str(error))
    if isinstance(error, exceptions.ResponseError) and code is not None:
        return _BY_CODE[code[1]]
    return next((fault for kind, fault in _BY_TYPE if isinstance(error, kind)), "unknown")
