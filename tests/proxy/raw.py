"""A raw provider that records requests and gives back what a test says."""

from __future__ import annotations

import ssl
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path


@dataclass
class Received:
    """A request as the provider received it."""

    method: str
    path: str
    headers: Mapping[str, str]
    body: bytes
    header_lines: tuple[tuple[str, str], ...] = ()


@dataclass
class RawProvider:
    """What a provider answers, and what it was asked.

    Attributes:
        status: The status of each reply.
        headers: The headers of each reply.
        body: The body of each reply.
        bodies: The bodies of the next replies, before `body`.
        statuses: The statuses of the next replies, before `status`.
        header_lines: Further headers of each reply; their names may be repeated.
        requests: The requests, in order.
        address: Its address.
    """

    status: int = 200
    headers: dict[str, str] = field(default_factory=lambda: {"content-type": "application/json"})
    body: bytes = b"{}"
    bodies: list[bytes] = field(default_factory=list)
    statuses: list[int] = field(default_factory=list)
    header_lines: tuple[tuple[str, str], ...] = ()
    requests: list[Received] = field(default_factory=list)
    address: str = ""


@contextmanager
def raw_provider(certificate: Path | None = None) -> Iterator[RawProvider]:
    """Run a provider on a free port, over TLS if it has a certificate with its key."""
    provider = RawProvider()

    class Handler(BaseHTTPRequestHandler):
        # One write a reply: the second of two would wait 40 ms for an acknowledgement.
        disable_nagle_algorithm = True
        wbufsize = -1
        protocol_version = "HTTP/1.1"

        def answer(self) -> None:
            length = int(self.headers.get("content-length") or 0)
            headers = {name.lower(): value for name, value in self.headers.items()}
            body = self.rfile.read(length)
            lines = tuple((name.lower(), value) for name, value in self.headers.items())
            provider.requests.append(Received(self.command, self.path, headers, body, lines))
            reply = provider.bodies.pop(0) if provider.bodies else provider.body
            self.send_response(provider.statuses.pop(0) if provider.statuses else provider.status)
            for name, value in (*provider.headers.items(), *provider.header_lines):
                self.send_header(name, value)
            self.send_header("content-length", str(len(reply)))
            self.end_headers()
            self.wfile.write(b"" if self.command == "HEAD" else reply)

        do_GET = do_POST = do_DELETE = do_PUT = answer  # noqa: N815  # names of http.server
        do_HEAD = do_OPTIONS = answer  # noqa: N815

        def log_message(self, *_: object) -> None:
            """Print nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    scheme = "http"
    if certificate is not None:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(certificate)
        server.socket = context.wrap_socket(server.socket, server_side=True)
        scheme = "https"
    thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
    thread.start()
    provider.address = f"{scheme}://127.0.0.1:{server.server_port}"
    try:
        yield provider
    finally:
        server.shutdown()
        server.server_close()
