"""The mail addresses in a text, read only where every mail program reads them alike.

`bo@example.org`, `Bo <bo@example.org>`, and such separated by commas. Quoted local parts,
comments, routes (`<@a:b@c>`, `b%c@a`) and address literals have no certain reading.

Source: RFC 5322, section 3.4, of which this is the part without its obsolete and nested forms.
"""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass
from functools import lru_cache

from tool_search.core.values.host_names import Host, read_host

__all__ = ["Mailbox", "read_mailboxes"]

_MAX_LOCAL_CHARS = 64
_UNSEEN = frozenset(("Cc", "Cf", "Zl", "Zp"))
_ADDRESS = re.compile(r"([A-Za-z0-9_+'-]+(?:\.[A-Za-z0-9_+'-]+)*)@([^\s@,;:<>()\[\]\"\\%!]+)")
_NAMED = re.compile(r"[\w .'-]*<([^<>]*)>")


@dataclass(frozen=True, slots=True)
class Mailbox:
    """One mail address.

    Attributes:
        local: The part before the `@`, in lower case.
        host: The host that receives the mail.
    """

    local: str
    host: Host

    @property
    def without_tag(self) -> str:
        """The local part without a `+tag`, which most services deliver to the same place."""
        return self.local.partition("+")[0]


@lru_cache(maxsize=32)  # many rules look at one value
def read_mailboxes(text: str) -> tuple[Mailbox, ...] | None:
    """Return the addresses in a text, in order; None if programs may read it differently.

    >>> [box.local for box in read_mailboxes("Bo <bo@example.org>, ann@example.org")]
    ['bo', 'ann']
    >>> read_mailboxes('"eve@evil.example"@example.org') is None
    True
    """
    if not text.strip(" "):
        return ()
    if any(unicodedata.category(char) in _UNSEEN for char in set(text)):
        return None
    found = []
    for entry in text.split(","):
        mailbox = _read_one(entry.strip(" "))
        if mailbox is None:
            return None
        found.append(mailbox)
    return tuple(found)


def _read_one(entry: str) -> Mailbox | None:
    named = _NAMED.fullmatch(entry)
    address = _ADDRESS.fullmatch(named[1] if named else entry)
    if address is None or len(address[1]) > _MAX_LOCAL_CHARS:
        return None
    host = read_host(address[2])
    if host is None or host.is_address:
        return None
    return Mailbox(address[1].lower(), host)
