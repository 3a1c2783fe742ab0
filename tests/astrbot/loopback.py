"""Services on loopback that the stand-in provider server does not speak for."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import Any

Answer = Callable[[dict[str, Any]], Any]


@dataclass
class Service:
    """A running service.

    Attributes:
        address: Its base URL.
        answer: Returns the body of a reply; a list is sent as server-sent events.
        asked: The path and the body of each request, in order.
    """

    address: str
    answer: Answer
    asked: list[tuple[str, dict[str, Any]]] = field(default_factory=list)


@contextmanager
def service(answer: Answer) -> Iterator[Service]:
    """Serves until it is left."""
    served: list[Service] = []

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            length = int(self.headers.get("Content-Length") or 0)
            body = json.loads(self.rfile.read(length) or b"{}")
            (one,) = served
            one.asked.append((self.path, body))
            said = one.answer(body)
            streamed = isinstance(said, list)
            parts = said if streamed else [said]
            written = [json.dumps(part) for part in parts]
            text = "".join(f"data: {part}\n\n" for part in written) if streamed else written[0]
            self.send_response(200)
            kind = "text/event-stream" if streamed else "application/json"
            self.send_header("Content-Type", kind)
            self.send_header("Content-Length", str(len(text.encode())))
            self.end_headers()
            self.wfile.write(text.encode())

        def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - the class's own name
            """Send nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    served.append(Service(f"http://127.0.0.1:{server.server_port}", answer))
    thread = Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield served[0]
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
