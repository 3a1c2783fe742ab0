"""The door of the proxy, the gateway and the inspector: the requests that may enter.

A page of the web may send requests to a server of this machine, which has the operator's keys.
Browsers say so in `Origin` and `Sec-Fetch-Site`. And a page may give its own name this machine's
address (DNS rebinding), and be of the same origin then: its name is in `Host`. What other
machines reach has tokens, which no such page knows.
"""

from __future__ import annotations

import asyncio
import hashlib
import hmac
import json
import os
from collections.abc import Awaitable, Callable, Mapping, MutableMapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Any, TypeVar
from urllib.parse import urlsplit

from tool_search.core.values.aside import end
from tool_search.errors import ConfigurationError

__all__ = [
    "LOOPBACK",
    "TOKEN_HEADER",
    "Access",
    "Guarded",
    "check_reach",
    "cors_middleware",
    "until_disconnect",
]

TOKEN_HEADER = "x-tool-search-token"  # noqa: S105  # the name of a header
"""The header with a token."""

LOOPBACK = ("127.0.0.1", "::1", "localhost")
"""The names of this machine."""

_READERS = (TOKEN_HEADER, "authorization")
# Another program passes the request on, perhaps from another machine.
_FORWARDED = ("forwarded", "x-forwarded-for", "x-forwarded-host", "x-real-ip", "via")
_T = TypeVar("_T")
_Refusal = tuple[int, str]
_Message = MutableMapping[str, Any]
_Receive = Callable[[], Awaitable[_Message]]
_Send = Callable[[_Message], Awaitable[None]]
_App = Callable[[MutableMapping[str, Any], _Receive, _Send], Awaitable[None]]


def _read_tokens(setting: str, name: str | None) -> tuple[bytes, ...]:
    """Return the tokens of clients in an environment variable.

    Args:
        setting: The setting that names the variable.
        name: The variable; None: there are no tokens.

    Raises:
        ConfigurationError: The variable is empty.
    """
    if name is None:
        return ()
    tokens = tuple(t.strip().encode() for t in os.environ.get(name, "").split(",") if t.strip())
    if not tokens:
        raise ConfigurationError(
            f"{setting}: the environment variable {name!r} is empty; set it to the "
            "tokens of clients, separated by commas"
        )
    return tokens


def check_reach(section: str, host: str, tokens_env: str | None) -> None:
    """Raise ConfigurationError if other machines reach a server that has no tokens."""
    if host not in LOOPBACK and not tokens_env:
        raise ConfigurationError(
            f"{section}.host is {host!r}, which is open to other machines: set "
            f"{section}.tokens_env to an environment variable with the tokens of clients, or use "
            "127.0.0.1"
        )


@dataclass(frozen=True, slots=True)
class Access:
    """The rules of who may enter, and who may read the inspector.

    Attributes:
        tokens: The tokens, any of which is needed; empty: this machine needs none.
        section: The section of the settings with `hosts` and `cors`.
        is_local: True if it listens on this machine alone.
        hosts: Globs of names under which it is reached, besides this machine's. Empty: beyond
            this machine any name.
        cors: The origins of pages that may ask; `*` for all.
    """

    tokens: Sequence[bytes] = ()
    section: str = "listen"
    is_local: bool = True
    hosts: Sequence[str] = ()
    cors: Sequence[str] = ()

    @classmethod
    def of(cls, section: str, host: str, tokens_env: str | None, **names: Sequence[str]) -> Access:
        """Return the rules of a server by its settings.

        Raises:
            ConfigurationError: Other machines reach it without tokens, or the variable of the
                tokens is empty.
        """
        check_reach(section, host, tokens_env)
        tokens = _read_tokens(f"{section}.tokens_env", tokens_env)
        return cls(tokens, section, host in LOOPBACK, **names)

    def stranger(self, headers: Mapping[str, str]) -> _Refusal | None:
        """Return the status and the reason for which a request is refused; None: it is not.

        Args:
            headers: The headers, their names in lower case.
        """
        origin, host = headers.get("origin"), headers.get("host", "")
        if "*" in self.cors:
            return None
        # A browser never leaves the host out.
        if host and (self.is_local or self.hosts) and not self._is_known(_hostname(host)):
            known = f"{self.section}.hosts: [{json.dumps(_hostname(host) or 'NAME')}]"
            return 421, f"this is not served under the host {host[:200]!r}; set {known} to allow it"
        if origin is None or origin not in self.cors:
            allow = f"set {self.section}.cors: [{json.dumps((origin or 'ORIGIN')[:200])}] to allow"
            if origin is not None and not (_is_same(origin, host) or _is_of_this_machine(origin)):
                return 403, f"a page of the origin {origin[:200]!r} may not ask; {allow} it"
            if headers.get("sec-fetch-site", "none") not in ("none", "same-origin"):
                return 403, f"a page of another origin may not ask; {allow} it"
        return None

    def _is_known(self, name: str) -> bool:
        globs = (glob.casefold() for glob in self.hosts)
        return name in LOOPBACK or any(fnmatchcase(name, glob) for glob in globs)

    def client(self, headers: Mapping[str, str], names: Sequence[str] = _READERS) -> str | None:
        """Return the name of the client whose token a request has; None: it has none.

        Args:
            headers: The headers, their names in lower case.
            names: The headers in which a token may be.
        """
        for name in names:
            given = headers.get(name, "")
            if name == "authorization":
                kind, _, value = given.partition(" ")
                given = value.strip() if kind.casefold() == "bearer" else ""
            token = given.encode("utf-8", "replace")
            # All are compared, so that the time does not say which one was nearest.
            if sum(hmac.compare_digest(token, each) for each in self.tokens):
                return hashlib.sha256(token).hexdigest()[:16]
        return None

    def refusal(self, headers: Mapping[str, str], peer: str | None) -> _Refusal | None:
        """Return the status and the reason for which a request may not read; None: it may.

        Args:
            headers: The headers, their names in lower case.
            peer: The address of the client; None: it is not known.
        """
        origin, host = headers.get("origin"), headers.get("host", "")
        is_own = origin is None or _is_same(origin, host)
        if not is_own or headers.get("sec-fetch-site", "none") not in ("none", "same-origin"):
            return 403, "a page of another origin may not read this"
        if self.tokens:
            has_token = self.client(headers) is not None
            return None if has_token else (401, f"a token is needed: {TOKEN_HEADER}")
        if _hostname(host) not in LOOPBACK:
            return 403, "open this under 127.0.0.1 or localhost, or set tokens_env"
        if peer is not None and peer not in LOOPBACK:
            return 403, "beyond this machine a token is needed: set tokens_env"
        if any(name in headers for name in _FORWARDED):
            return 403, "through another proxy a token is needed: set tokens_env"
        return None


class Guarded:
    """An ASGI application that strangers do not reach, and whose requests have a time.

    Args:
        app: The application.
        access: The rules of who may enter.
        body_timeout_s: Seconds that the body of a request may take.
    """

    def __init__(self, app: _App, access: Access, *, body_timeout_s: float) -> None:
        self._app = app
        self._access = access
        self._body_timeout_s = body_timeout_s

    async def __call__(
        self, scope: MutableMapping[str, Any], receive: _Receive, send: _Send
    ) -> None:
        """Answer a request that may enter, and refuse any other."""
        headers = {
            name.decode("latin-1").lower(): value.decode("latin-1")
            for name, value in scope["headers"]
        }
        refused = self._access.stranger(headers)
        if "content-length" in headers and "transfer-encoding" in headers:
            # Two servers in a row may read two requests in it (RFC 9112, section 6.1).
            refused = 400, "a request has content-length or transfer-encoding, not both"
        if refused is not None:
            await _refuse(send, *refused)
            return
        request = _TimedRequest(receive, send, self._body_timeout_s)
        await self._app(scope, request.receive, request.send)


async def until_disconnect(receive: _Receive, work: Awaitable[_T]) -> _T | None:
    """Return the result of the work; None if the client goes away, and the work is cancelled.

    Args:
        receive: The server's `receive`, after the body of the request was read.
        work: The work; what it raises is raised.
    """
    task, gone = asyncio.ensure_future(work), asyncio.ensure_future(_wait_for_end(receive))
    try:
        await asyncio.wait((task, gone), return_when=asyncio.FIRST_COMPLETED)
        return await task if task.done() else None
    finally:
        await end(task, gone)


async def _wait_for_end(receive: _Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass


class _TimedRequest:
    """A request whose body has a time; after it the client counts as gone."""

    def __init__(self, receive: _Receive, send: _Send, timeout_s: float) -> None:
        self._receive = receive
        self._send = send
        self._timeout_s = timeout_s
        self._end_at = asyncio.get_running_loop().time() + timeout_s
        self._is_read = self._is_answered = self._is_late = False

    async def receive(self) -> _Message:
        if self._is_late:
            return {"type": "http.disconnect"}
        if self._is_read:
            return await self._receive()
        try:
            async with asyncio.timeout_at(self._end_at):
                message = await self._receive()
        except TimeoutError:
            self._is_late = True
            if not self._is_answered:
                await _refuse(self._send, 408, f"the body took longer than {self._timeout_s} s")
            return {"type": "http.disconnect"}
        self._is_read = not message.get("more_body")
        return message

    async def send(self, message: _Message) -> None:
        if not self._is_late:
            self._is_answered = True
            await self._send(message)


async def _refuse(send: _Send, status: int, reason: str) -> None:
    body = json.dumps({"error": {"message": reason}}).encode()
    headers = [
        (b"content-type", b"application/json"),
        (b"content-length", str(len(body)).encode()),
        (b"connection", b"close"),
    ]
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": body})


def cors_middleware(access: Access) -> list[Any]:
    """Return Starlette's middleware that lets the pages of `cors` read replies."""
    from starlette.middleware import Middleware  # noqa: PLC0415  # of the extra proxy
    from starlette.middleware.cors import CORSMiddleware  # noqa: PLC0415

    if not access.cors:
        return []
    return [
        Middleware(
            CORSMiddleware,
            allow_origins=list(access.cors),
            allow_methods=["*"],
            allow_headers=["*"],
            expose_headers=["*", "Mcp-Session-Id"],
        )
    ]


def _is_same(origin: str, host: str) -> bool:
    return origin.partition("://")[2].casefold() == host.casefold()


def _is_of_this_machine(origin: str) -> bool:
    scheme, _, host = origin.partition("://")
    return scheme == "http" and _hostname(host) in LOOPBACK


def _hostname(host: str) -> str:
    """Return the name in a `Host`, without its port."""
    try:
        return (urlsplit(f"//{host}").hostname or "").rstrip(".")
    except ValueError:
        return ""
