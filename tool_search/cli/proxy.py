"""`tool-search proxy`: tool search for any client that takes a base URL."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated

import typer

from tool_search.cli.start.serving import serve_until_interrupted, take_address
from tool_search.cli.terminal.language import wrong_use
from tool_search.core.settings import Dialect
from tool_search.errors import ConfigurationError
from tool_search.serving.proxy.settings import ProxyConfig, load_proxy_config, proxy_config

__all__ = ["proxy_command"]

# An open page of the inspector would hold the end of the process.
_CLOSE_S = 10
_ANY_ADDRESS = ("0.0.0.0", "::")  # noqa: S104  # compared, not bound
_MISSING = (
    "tool-search proxy needs {name}: "
    "pip install 'tool-search-middleware[proxy]'; in a clone: pip install '.[proxy]'"
)


def proxy_command(
    *,
    config: Annotated[
        Path | None, typer.Option(metavar="FILE", help="The proxy's settings, a YAML file.")
    ] = None,
    upstream: Annotated[
        str | None, typer.Option(metavar="URL", help="The provider's address, without a file.")
    ] = None,
    dialect: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME",
            help="A format that the provider speaks: anthropic, openai_chat, openai_responses.",
        ),
    ] = None,
    port: Annotated[
        int | None,
        typer.Option(
            metavar="PORT", min=0, max=65_535, help="The port of the proxy; 0: any free one."
        ),
    ] = None,
) -> None:
    """Give any client tool search: set its base URL to the proxy's address.

    The proxy declares the few tools that a request needs, answers the model's searches, and
    passes everything else on.
    """
    settings = _settings(config, upstream, dialect)
    try:
        import uvicorn  # noqa: F401, PLC0415  # of the extra proxy

        from tool_search.serving.proxy.app import ToolSearchProxy  # noqa: PLC0415
    except ModuleNotFoundError as exc:
        raise ConfigurationError(_MISSING.format(name=exc.name)) from exc
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(name)s %(message)s")
    logging.getLogger("httpx2").setLevel(logging.WARNING)
    proxy = ToolSearchProxy(settings)
    listen = settings.listen
    sockets, port = take_address(listen.host, listen.port if port is None else port)
    taken = settings.model_copy(update={"listen": listen.model_copy(update={"port": port})})
    for line in client_lines(taken):
        typer.echo(line)
    serve_until_interrupted(proxy.asgi(), sockets, close_s=_CLOSE_S)


def _settings(path: Path | None, url: str | None, dialects: list[str] | None) -> ProxyConfig:
    if (path is None) == (url is None):
        raise wrong_use("use.one_of", first="--config FILE", second="--upstream URL")
    if path is not None:
        return load_proxy_config(path)
    return proxy_config(str(url), tuple(_dialect(name) for name in dialects or ()))


def _dialect(name: str) -> Dialect:
    known: dict[str, Dialect] = {
        "anthropic": "anthropic",
        "openai_chat": "openai_chat",
        "openai_responses": "openai_responses",
    }
    found = known.get(name.replace("-", "_"))
    if found is None:
        listed = ", ".join(known)
        raise wrong_use("use.value", option="--dialect", value=repr(name), names=listed)
    return found


def client_lines(settings: ProxyConfig) -> Iterator[str]:
    """Yield the line to set for each client, and the address of the inspector."""
    listen = settings.listen
    # What listens on every address is reached from this machine by its own.
    host = "127.0.0.1" if listen.host in _ANY_ADDRESS else listen.host
    address = f"http://{f'[{host}]' if ':' in host else host}:{listen.port}"
    spoken = {dialect for each in settings.upstreams for dialect in each.spoken}
    if "anthropic" in spoken:
        yield f"Claude Code, anthropic SDK:  ANTHROPIC_BASE_URL={address}"
    if "openai_chat" in spoken or "openai_responses" in spoken:
        yield f"OpenAI SDK and most clients: OPENAI_BASE_URL={address}/v1"
    if "openai_responses" in spoken:
        yield 'Codex, in config.toml:       model_provider = "search"'
        yield (
            f'                             model_providers.search = {{name = "search", '
            f'base_url = "{address}/v1", env_key = "OPENAI_API_KEY", wire_api = "responses"}}'
        )
    if listen.tokens_env is not None:
        yield f"Header of each client:       x-tool-search-token: one of ${listen.tokens_env}"
    if settings.inspector.enabled:
        yield f"Inspector, in a browser:     {address}/inspector"
