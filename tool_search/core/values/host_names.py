"""The host of an address, as HTTP clients read it.

Clients differ: one decodes `%65vil.org`, takes `2130706433` or `0x7f.1` for 127.0.0.1 or
reads a backslash as a slash, another does not. An address that they may read in different
ways has no certain host here.

Sources: RFC 3986, section 3.2.2 (hosts of addresses); RFC 5891 (IDNA 2008), as httpx applies
it: `idna.encode(host.lower())`; UTS #46, as requests and aiohttp do; RFC 3490 (IDNA 2003), as
Python's own `socket` does; RFC 6052, section 2.1 (IPv4 addresses inside of IPv6 ones).
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Callable
from contextlib import suppress
from functools import partial

__all__ = ["connected_host", "is_address", "read_host"]

_MAX_HOST_CHARS = 253
_NAME = re.compile(r"(?:[a-z0-9_-]{1,63}\.)*[a-z0-9_-]{1,63}")
# WHATWG, "URL", section 3.5: a host whose last label is a number is an IPv4 address.
_NUMBER = re.compile(r"[0-9]+|0x[0-9a-f]*")
# NAT64, and the older addresses that are compatible with IPv4.
_HOLD_IPV4 = (ipaddress.IPv6Network("64:ff9b::/96"), ipaddress.IPv6Network("::/96"))


def read_host(host: str) -> tuple[str, ...] | None:
    """Return the names of a host as they go over the wire, httpx's first.

    The others are those that clients of another reading come to. Names are ASCII, in lower
    case, without a dot at the end; an IPv6 address has no brackets. None if clients may read
    the host in different ways that cannot be listed.

    >>> read_host("stra\u00dfe.de"), read_host("0x7f.1")
    (('xn--strae-oqa.de', 'strasse.de'), None)
    """
    if host.startswith("[") and host.endswith("]"):
        host = host[1:-1]
    if ":" in host:
        return _read_ipv6(host)
    if len(host) > _MAX_HOST_CHARS + 1:
        return None
    if host.isascii():
        return _read_ascii(host)
    import idna  # noqa: PLC0415  # its tables are large, and hosts seldom need them

    mapped = partial(idna.encode, uts46=True)
    spelled = {_encode(idna.encode, host.lower()), _encode(mapped, host)} - {None}
    names = _read_ascii(spelled.pop() or "") if len(spelled) == 1 else None
    older = _encode(lambda name: name.encode("idna"), host)
    return names if names is None or older in (None, *names) else (*names, str(older))


def is_address(host: str) -> bool:
    """Return True if a host that was read is an address, and not a name."""
    return ":" in host or bool(_NUMBER.fullmatch(host.rpartition(".")[2]))


def connected_host(host: str) -> str | None:
    """Return a host as an HTTP client connects to it; None if it would refuse the host."""
    names = read_host(host)
    return names[0] if names else None


def _read_ascii(host: str) -> tuple[str, ...] | None:
    name = host.lower().removesuffix(".")
    if len(name) > _MAX_HOST_CHARS or not _NAME.fullmatch(name):
        return None
    if not is_address(name):
        return (name,)
    # Only the one spelling that no client reads as octal, hexadecimal or shortened.
    with suppress(ValueError):
        return (str(ipaddress.IPv4Address(name)),)
    return None


def _read_ipv6(host: str) -> tuple[str, ...] | None:
    with suppress(ValueError):
        address = ipaddress.IPv6Address(host)
        inner = {address.ipv4_mapped, address.sixtofour}
        if any(address in network for network in _HOLD_IPV4) and int(address) > 1:
            inner.add(ipaddress.IPv4Address(int(address) & 0xFFFFFFFF))
        return None if address.scope_id else (str(address), *map(str, inner - {None}))
    return None


def _encode(encode: Callable[[str], bytes], host: str) -> str | None:
    with suppress(UnicodeError):
        return encode(host).decode("ascii").lower().rstrip(".")
    return None
