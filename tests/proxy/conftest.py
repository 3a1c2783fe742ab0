"""A proxy on a port of its own, in front of the stand-in provider."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

import pytest
import uvicorn

from tool_search.serving.proxy.app import ToolSearchProxy
from tool_search.serving.proxy.settings import ProxyConfig, UpstreamSettings
from tool_search.testing import KeywordModel, StandInServer


@contextmanager
def serve(proxy: ToolSearchProxy) -> Iterator[str]:
    """Serve a proxy on a free port, and give its address."""
    settings = uvicorn.Config(proxy.asgi(), port=0, log_level="critical")
    server = uvicorn.Server(settings)
    thread = threading.Thread(target=server.run, daemon=True)
    thread.start()
    while not server.started:
        time.sleep(0.01)
    (socket,) = server.servers[0].sockets
    try:
        yield f"http://127.0.0.1:{socket.getsockname()[1]}"
    finally:
        server.should_exit = True
        thread.join(10)


def upstreams(server: StandInServer, **settings: Any) -> tuple[UpstreamSettings, ...]:
    """Return the stand-in provider as the upstreams of a proxy."""
    return (
        UpstreamSettings(
            id="claude",
            base_url=server.anthropic_base_url.removesuffix("/v1"),
            dialects=("anthropic",),
            **settings,
        ),
        UpstreamSettings(
            id="openai",
            base_url=server.openai_base_url,
            dialects=("openai_chat", "openai_responses"),
            **settings,
        ),
    )


@pytest.fixture
def server() -> Iterator[StandInServer]:
    """A stand-in provider with its rules on; a test ends without a violation."""
    with StandInServer(model=KeywordModel(search_tool="tool_search")) as running:
        yield running
        assert running.violations == ()


Start = Callable[..., str]


@pytest.fixture
def start(server: StandInServer) -> Iterator[Start]:
    """A function that starts a proxy with settings, and returns its address."""
    with ExitStack() as stack:

        def begin(strategy: str = "auto", **settings: Any) -> str:
            config = ProxyConfig(upstreams=upstreams(server, strategy=strategy), **settings)
            return stack.enter_context(serve(ToolSearchProxy(config)))

        yield begin
