"""The stand-in provider server: real HTTP on loopback for tests and demonstrations.

It answers as Anthropic Messages, OpenAI Chat Completions and OpenAI Responses do,
streaming and not. It rejects invalid requests with their own status and text, and a
scripted or a keyword model writes the replies.
"""

from __future__ import annotations

import socket
import sys
import threading
from http.server import ThreadingHTTPServer
from typing import TYPE_CHECKING, Any, Self

from tool_search.errors import ToolSearchError
from tool_search.testing.models.scripted import ScriptedModel
from tool_search.testing.server.endpoint import Endpoint
from tool_search.testing.server.exchange import Exchange
from tool_search.testing.server.state import ServerState

if TYPE_CHECKING:
    from types import TracebackType

    from tool_search.testing.models.scripted import StandInModel
    from tool_search.testing.server.captured import CapturedRequest
    from tool_search.testing.server.faults import FaultPlan
    from tool_search.testing.violations import Violation

__all__ = ["StandInServer", "StandInServerError"]

_POLL_SECONDS = 0.01
_JOIN_SECONDS = 10.0
_VENDOR = Endpoint()


class StandInServerError(ToolSearchError):
    """A stand-in server is not running, runs already, or cannot stop."""


class StandInServer:
    """A provider on loopback, for as long as the `with` block lasts.

    Example:
        >>> from tool_search.testing import ModelReply, ScriptedModel, StandInServer
        >>> with StandInServer(model=ScriptedModel([ModelReply(text="Hello.")])) as server:
        ...     url = server.anthropic_base_url  # for anthropic.AsyncAnthropic(base_url=url)
        >>> len(server.requests)
        0

    Any key is accepted, but it must be present; it is never stored.

    Args:
        model: The model that answers; default: an empty script.
        endpoint: The endpoint whose rules apply.
        port: The port of the loopback interface; 0: a free one.
    """

    def __init__(
        self,
        *,
        model: StandInModel | None = None,
        endpoint: Endpoint = _VENDOR,
        port: int = 0,
    ) -> None:
        self._port = port
        self._state = ServerState(model or ScriptedModel(), endpoint)
        self._listener: _Listener | None = None
        self._thread: threading.Thread | None = None

    def start(self) -> Self:
        """Start listening on the loopback interface.

        Raises:
            StandInServerError: It is already running.
            OSError: The port is taken, or may not be used.
        """
        if self._listener is not None:
            raise StandInServerError("the stand-in server is already running; close it first")
        self._listener = _Listener(self._state, self._port)
        self._thread = threading.Thread(
            target=self._listener.serve_forever,
            args=(_POLL_SECONDS,),
            name="stand-in-server",
            daemon=True,
        )
        self._thread.start()
        return self

    def close(self) -> None:
        """Stop listening, ends open connections and waits for their threads.

        Raises:
            StandInServerError: A model's code did not return.
        """
        if self._listener is None or self._thread is None:
            return
        listener, thread = self._listener, self._thread
        self._listener = self._thread = None
        self._state.over.set()
        listener.shutdown()
        thread.join(_JOIN_SECONDS)
        listener.server_close()
        listener.end_connections()

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def reset(self, *, model: StandInModel | None = None, endpoint: Endpoint | None = None) -> None:
        """Forget requests and faults, and end delays; connections stay open.

        Args:
            model: The model that answers from here on; None to keep the model.
            endpoint: The endpoint whose rules apply from here on; None to keep it.
        """
        old = self._state
        self._state = ServerState(model or old.model, endpoint or old.endpoint)
        if self._listener is not None:
            self._listener.state = self._state
        old.over.set()

    @property
    def faults(self) -> FaultPlan:
        """The faults to come: `server.faults.add(Fault(status=529))`."""
        return self._state.faults

    @property
    def requests(self) -> tuple[CapturedRequest, ...]:
        """The requests since the last reset, in order of arrival."""
        return self._state.requests

    @property
    def violations(self) -> tuple[Violation, ...]:
        """The rules that requests broke since the last reset, in order."""
        return tuple(
            request.violation for request in self.requests if request.violation is not None
        )

    @property
    def url(self) -> str:
        """The server's origin, without a path.

        Raises:
            StandInServerError: It is not running.
        """
        if self._listener is None:
            raise StandInServerError("the stand-in server is not running; use it in a with block")
        return f"http://127.0.0.1:{self._listener.server_address[1]}"

    @property
    def anthropic_base_url(self) -> str:
        """The `base_url` for an Anthropic client."""
        return self.url

    @property
    def openai_base_url(self) -> str:
        """The `base_url` for an OpenAI client, for Chat Completions and Responses."""
        return f"{self.url}/v1"


class _Listener(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 128

    def __init__(self, state: ServerState, port: int) -> None:
        super().__init__(("127.0.0.1", port), Exchange)
        self.state = state
        self._open: dict[threading.Thread, socket.socket] = {}
        self._open_lock = threading.Lock()

    def process_request(self, request: Any, client_address: Any) -> None:
        thread = threading.Thread(
            target=self._serve_connection,
            args=(request, client_address),
            name="stand-in-connection",
            daemon=True,
        )
        with self._open_lock:
            self._open[thread] = request
        thread.start()

    def _serve_connection(self, request: Any, client_address: Any) -> None:
        try:
            self.process_request_thread(request, client_address)
        finally:
            with self._open_lock:
                del self._open[threading.current_thread()]

    def end_connections(self) -> None:
        with self._open_lock:
            connections = dict(self._open)
        for connection in connections.values():
            try:
                connection.shutdown(socket.SHUT_RDWR)
            except OSError:
                # The client or the connection's own thread closed it first.
                continue
        for thread in connections:
            thread.join(_JOIN_SECONDS)
            if thread.is_alive():
                raise StandInServerError(
                    f"a connection did not end within {_JOIN_SECONDS:.0f} seconds: "
                    "the code of the stand-in model did not return"
                )

    def handle_error(self, request: Any, client_address: Any) -> None:
        # A client may close its connection at any time.
        if not isinstance(sys.exception(), ConnectionError):
            super().handle_error(request, client_address)
