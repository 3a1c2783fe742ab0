"""A service with OpenAI's `/v1/embeddings` on loopback, which holds its clients to the rules."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from tests.search.word_embedder import WordEmbedder

__all__ = ["EmbeddingService", "running_service"]


class ServedEmbedder(WordEmbedder):
    """An embedder whose vectors are short, since a service writes each number in JSON."""

    dimensions = 256


DIMENSIONS = ServedEmbedder.dimensions


class EmbeddingService:
    """The rules and the state of a service.

    Attributes:
        batch_limit: The most inputs of a request.
        failures: Answers to the next requests instead of vectors: a status with headers, or
            `hang`, `nan` or `short`.
        requests: The bodies of all requests.
    """

    def __init__(self) -> None:
        self.url = ""
        self.batch_limit = 64
        self.failures: list[tuple[int, dict[str, str]] | str] = []
        self.requests: list[dict[str, Any]] = []
        self.keys: set[str | None] = set()
        self.over = threading.Event()
        self._model = ServedEmbedder()

    def answer(self, body: dict[str, Any]) -> tuple[int, dict[str, str], object]:
        """Return status, headers and content for a request."""
        self.requests.append(body)
        texts = body["input"]
        wrong = self._violation(body)
        if wrong:
            return 400, {}, {"error": {"message": wrong, "type": "invalid_request_error"}}
        failure = self.failures.pop(0) if self.failures else None
        if isinstance(failure, tuple):
            return *failure, {"error": {"message": "not now", "type": "rate_limit_error"}}
        rows = self._model.embed(texts).tolist()
        if failure == "hang":
            self.over.wait(30)
        if failure == "nan":
            rows = [[float("nan")] * DIMENSIONS for _ in rows]
        if failure == "short":
            rows = [row[:-1] for row in rows]
        data = [
            {"object": "embedding", "index": index, "embedding": row}
            for index, row in enumerate(rows)
        ]
        # Some services do not keep the order.
        return 200, {}, {"object": "list", "model": body["model"], "data": data[::-1]}

    def _violation(self, body: dict[str, Any]) -> str:
        texts = body["input"]
        if not isinstance(texts, list) or not texts or not all(isinstance(t, str) for t in texts):
            return "input must be a list of texts"
        if not all(texts):
            return "input must not have an empty text"
        if len(texts) > self.batch_limit:
            return f"batch size is invalid, it should not be larger than {self.batch_limit}."
        if body.get("encoding_format", "float") != "float":
            return "encoding_format must be float"
        if "dimensions" in body:
            return "this model does not support dimensions"
        return ""


@contextmanager
def running_service() -> Iterator[EmbeddingService]:
    """Run a service for the time of the block."""
    service = EmbeddingService()

    class Handler(BaseHTTPRequestHandler):
        # One write a reply: the second of two would wait 40 ms for an acknowledgement.
        disable_nagle_algorithm = True
        wbufsize = -1

        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["content-length"])))
            service.keys.add(self.headers["authorization"])
            assert self.path == "/v1/embeddings"
            status, headers, content = service.answer(body)
            encoded = json.dumps(content).encode()
            self.send_response(status)
            for name, value in {**headers, "content-length": str(len(encoded))}.items():
                self.send_header(name, value)
            self.send_header("content-type", "application/json")
            self.end_headers()
            self.wfile.write(encoded)

        def log_message(self, *_: object) -> None:
            """Say nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    service.url = f"http://127.0.0.1:{server.server_address[1]}/v1"
    try:
        yield service
    finally:
        service.over.set()
        server.shutdown()
        server.server_close()
        thread.join()
