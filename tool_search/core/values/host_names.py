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
from contextlib import suppress
from dataclasses import dataclass
from functools import lru_cache
from urllib.parse import urlsplit

__all__ = ["Host", "connected_host", "read_address", "read_host"]

_MAX_HOST_CHARS = 253
_MAX_LABEL_CHARS = 63
_UNSAFE = re.compile(r"[\x00-\x20\x7f\\]")
_HOST_AND_PORT = re.compile(r"(\[[0-9A-Fa-f:.]+\]|[^\[\]:@%]+)(?::[0-9]*)?")
_LABEL = re.compile(r"[a-z0-9_-]+")
# WHATWG, "URL", section 3.5: a host whose last label is a number is an IPv4 address.
_NUMBER = re.compile(r"[0-9]+|0x[0-9a-f]*")
_NAT64 = ipaddress.IPv6Network("64:ff9b::/96")
_COMPATIBLE = ipaddress.IPv6Network("::/96")


@dataclass(frozen=True, slots=True)
class Host:
    """One host under all its names.

    Attributes:
        name: As it goes over the wire: ASCII, lower case, no dot at the end. An IPv6
            address has no brackets.
        others: Hosts that clients of another reading come to.
    """

    name: str
    others: frozenset[str] = frozenset()

    @property
    def is_address(self) -> bool:
        """True if it is an address, and not a name."""
        return ":" in self.name or bool(_NUMBER.fullmatch(self.name.rpartition(".")[2]))

    @property
    def names(self) -> frozenset[str]:
        """The host, and those that clients of another reading come to."""
        return self.others | {self.name}


@lru_cache(maxsize=32)  # many rules look at one value
def read_address(address: str) -> Host | None:
    r"""Return the host of an address; None if clients may read it in different ways.

    The scheme may be left out: `example.org/a` has a host too.

    >>> read_address("https://Bücher.example:8080/a").name
    'xn--bcher-kva.example'
    >>> read_address("http://0x7f.1/"), read_address("https://a.example\\@b.example/")
    (None, None)
    """
    if _UNSAFE.search(address):
        return None
    try:
        parts = urlsplit(address)
        if not parts.netloc and ":" not in address:
            parts = urlsplit(f"//{address}")
    except ValueError:
        return None
    user, _, host_and_port = parts.netloc.rpartition("@")
    found = _HOST_AND_PORT.fullmatch(host_and_port)
    return None if found is None or "@" in user else read_host(found[1])


def read_host(host: str) -> Host | None:
    """Return a host by its name or address; None if clients may read it in different ways."""
    if host.startswith("[") and host.endswith("]"):
        host = host[1:-1]
    if ":" in host:
        return _read_ipv6(host)
    if not host or len(host) > _MAX_HOST_CHARS + 1:
        return None
    if host.isascii():
        return _read_ascii(host)
    wire = _as_2008(host)
    read = None if wire is None else _read_ascii(wire)
    if read is None:
        return None
    older = _as_2003(host)
    return read if older in (None, read.name) else Host(read.name, frozenset({str(older)}))


def connected_host(host: str) -> str | None:
    """Return a host as an HTTP client connects to it; None if it would refuse the host."""
    read = read_host(host)
    return None if read is None else read.name


def _read_ascii(host: str) -> Host | None:
    name = host.lower().removesuffix(".")
    labels = name.split(".")
    if len(name) > _MAX_HOST_CHARS or not all(map(_LABEL.fullmatch, labels)):
        return None
    if any(len(label) > _MAX_LABEL_CHARS for label in labels):
        return None
    if not _NUMBER.fullmatch(labels[-1]):
        return Host(name)
    # Only the one spelling that no client reads as octal, hexadecimal or shortened.
    with suppress(ValueError):
        return Host(str(ipaddress.IPv4Address(name)))
    return None


def _read_ipv6(host: str) -> Host | None:
    try:
        address = ipaddress.IPv6Address(host)
    except ValueError:
        return None
    if address.scope_id is not None:
        return None
    inner = {address.ipv4_mapped, address.sixtofour}
    if (address in _NAT64 or address in _COMPATIBLE) and int(address) > 1:
        inner.add(ipaddress.IPv4Address(int(address) & 0xFFFFFFFF))
    return Host(str(address), frozenset(str(one) for one in inner if one is not None))


def _as_2008(host: str) -> str | None:
    """Return the one host that clients of IDNA 2008 connect to, mapped first or not."""
    import idna  # noqa: PLC0415  # its tables are large, and hosts seldom need them

    found = set()
    for is_mapped in (False, True):
        with suppress(UnicodeError):
            written = host if is_mapped else host.lower()
            found.add(idna.encode(written, uts46=is_mapped).decode("ascii").rstrip("."))
    return found.pop() if len(found) == 1 else None


def _as_2003(host: str) -> str | None:
    with suppress(UnicodeError):
        return host.encode("idna").decode("ascii").lower().rstrip(".")
    return None
