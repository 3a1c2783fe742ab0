"""Real Redis servers on loopback, started for tests."""

from __future__ import annotations

import shutil
import signal
import socket
import subprocess
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

_PATIENCE_S = 20.0
_SLOTS = 16_384
_LAST_PORT = 65_535
_CLUSTER = ("--cluster-enabled", "yes", "--cluster-node-timeout", "3000")
NO_SERVER = (
    "redis-server is not installed: `apt-get install redis-server` brings it on Debian, and "
    "`make test-stores` does that as root"
)


def free_port() -> int:
    """Return a port that nobody uses now; a cluster's nodes talk on the one 10,000 above it."""
    while True:
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            port: int = probe.getsockname()[1]
            if port < _LAST_PORT - 10_000:
                return port


def has_server() -> bool:
    """Return True if Redis is installed."""
    return shutil.which("redis-server") is not None


class RedisServer:
    """One server, with its files in a folder; it can be killed and started again.

    Args:
        folder: Its files.
        options: More options than persistence of every write.
        password: What it asks of clients; empty: nothing.
    """

    def __init__(self, folder: Path, options: Sequence[str] = (), password: str = "") -> None:
        self.folder = folder
        self.port = free_port()
        self._answer = b"-NOAUTH" if password else b"+PONG"
        options = (*options, "--requirepass", password) if password else options
        self.url = f"redis://127.0.0.1:{self.port}/0"
        self._options = options
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Start the server, and wait until it answers."""
        self.folder.mkdir(parents=True, exist_ok=True)
        command = [
            "redis-server", "--port", str(self.port), "--bind", "127.0.0.1",
            "--dir", str(self.folder), "--save", "", "--appendonly", "yes",
            "--appendfsync", "always", "--logfile", "redis.log", "--daemonize", "no",
            *self._options,
        ]  # fmt: skip
        self._process = subprocess.Popen(command, stdout=subprocess.DEVNULL)  # noqa: S603
        ended = time.monotonic() + _PATIENCE_S
        while not self.ask("PING").startswith(self._answer):
            assert self._process.poll() is None, (self.folder / "redis.log").read_text()[-2000:]
            assert time.monotonic() < ended, f"no answer from {self.url}"
            time.sleep(0.01)

    def ask(self, *command: str) -> bytes:
        """Return the first line of the answer to a command, without redis-py."""
        return self.ask_all(*command).split(b"\r\n")[0]

    def ask_all(self, *command: str) -> bytes:
        """Return the first bytes of the answer to a command; nothing if there is none."""
        written = f"*{len(command)}\r\n" + "".join(f"${len(c)}\r\n{c}\r\n" for c in command)
        with suppress(OSError), socket.create_connection(("127.0.0.1", self.port), 5) as line:
            line.sendall(written.encode())
            return line.recv(65536)
        return b""

    def kill(self) -> None:
        """End the server as a failure of its process would."""
        self._end(signal.SIGKILL)

    def stop(self) -> None:
        """End the server in order."""
        self._end(signal.SIGTERM)

    def _end(self, how: signal.Signals) -> None:
        process, self._process = self._process, None
        if process is not None:
            process.send_signal(how)
            process.wait()


@contextmanager
def running(folder: Path, options: Sequence[str] = (), password: str = "") -> Iterator[RedisServer]:
    """A running server."""
    server = RedisServer(folder, options, password)
    server.start()
    try:
        yield server
    finally:
        server.kill()


@contextmanager
def cluster(folder: Path, nodes: int = 3) -> Iterator[list[RedisServer]]:
    """A running cluster of primaries, each with its share of the slots."""
    with ExitStack() as stack:
        servers = [
            stack.enter_context(running(folder / str(number), _CLUSTER)) for number in range(nodes)
        ]
        edges = [_SLOTS * number // nodes for number in range(nodes + 1)]
        for server, first, end in zip(servers, edges, edges[1:], strict=False):
            assert server.ask("CLUSTER", "ADDSLOTSRANGE", str(first), str(end - 1)) == b"+OK"
        for server in servers[1:]:
            assert servers[0].ask("CLUSTER", "MEET", "127.0.0.1", str(server.port)) == b"+OK"
        ended = time.monotonic() + _PATIENCE_S
        while not all(_sees_all(server, nodes) for server in servers):
            assert time.monotonic() < ended, "the cluster did not come together"
            time.sleep(0.05)
        yield servers


def _sees_all(server: RedisServer, nodes: int) -> bool:
    answer = server.ask_all("CLUSTER", "INFO")
    return b"cluster_state:ok" in answer and b"cluster_known_nodes:%d" % nodes in answer
