"""Which addresses of the network a tool may connect to: public ones."""

from __future__ import annotations

import ipaddress
import socket
from collections.abc import Callable, Sequence

from tool_search.workspace.workspace import WorkspaceError

__all__ = ["Resolve", "is_public", "public_address", "resolved"]

Resolve = Callable[[str, int], Sequence[str]]
"""The addresses of a host, for a port."""

# Source: RFC 6052, section 2.1: the well-known prefix of addresses that hold IPv4 ones.
_NAT64 = ipaddress.IPv6Network("64:ff9b::/96")


def resolved(host: str, port: int) -> list[str]:
    """The addresses of a host, as the system finds them.

    Raises:
        OSError: There are none.
    """
    found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return list(dict.fromkeys(str(address[0]) for *_, address in found))


def is_public(address: str) -> bool:
    """Whether an address is one of the open internet's, not of a private network or this host.

    >>> [is_public(one) for one in ("93.184.216.34", "10.0.0.1", "::ffff:127.0.0.1")]
    [True, False, False]
    """
    try:
        read = ipaddress.ip_address(address)
    except ValueError:
        return False
    if isinstance(read, ipaddress.IPv6Address):
        inner = read.ipv4_mapped or read.sixtofour
        if inner is None and read in _NAT64:
            inner = ipaddress.IPv4Address(int(read) & 0xFFFFFFFF)
        if inner is not None:
            return is_public(str(inner))
        if read.is_site_local:
            return False
    return read.is_global and not read.is_multicast and not read.is_reserved


def public_address(
    host: str, port: int, resolve: Resolve, may_connect: Callable[[str], bool]
) -> str:
    """The address to connect to; all that a name has must be allowed.

    Raises:
        WorkspaceError: The name has no address, or one that is not allowed.
    """
    try:
        addresses = resolve(host, port)
    except (OSError, UnicodeError) as exc:
        raise WorkspaceError(f"the host {host!r} cannot be found: {exc}") from exc
    if not addresses or not all(map(may_connect, addresses)):
        raise WorkspaceError(
            f"the host {host!r} is not on the public internet, and no other may be reached"
        )
    return addresses[0]
