"""OAuth for servers on the network: the SDK's provider, with tokens in a private file.

Source: mcp 1.26 and 2.3, `client/auth/oauth2.py`; RFC 8252, "OAuth 2.0 for Native Apps"
(loopback redirect).
"""

from __future__ import annotations

import asyncio
import json
import logging
import os
from collections.abc import Awaitable, Callable, Mapping
from hmac import compare_digest
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

from mcp.client.auth import OAuthClientProvider
from mcp.shared.auth import OAuthClientInformationFull, OAuthClientMetadata, OAuthToken

from tool_search.adapters.mcp.protocol import HAS_SESSIONLESS
from tool_search.config.mcp import MCPOAuthSettings, MCPServerSettings
from tool_search.config.stores import data_folder
from tool_search.core.values.clean_text import clean_line
from tool_search.core.values.files import locked, replace_file
from tool_search.errors import SourceError

__all__ = ["TokenFile", "oauth_client"]

_FILE = "mcp-tokens.json"
_PATH = "/callback"
_MAX_REQUEST_BYTES = 16_384
_PAGE = b"The bot may use the server now. This window can be closed."
_log = logging.getLogger(__name__)


def oauth_client(server: str, settings: MCPServerSettings) -> Any:
    """Return the SDK's OAuth provider of an entry; None if it has no `oauth`."""
    oauth = settings.oauth
    if oauth is None:
        return None
    returns = LoopbackReturn(server, oauth.callback_port)
    secret = "client_secret_post" if oauth.client_secret else "none"
    metadata = OAuthClientMetadata.model_validate(
        {
            "client_name": "tool-search-middleware",
            "redirect_uris": [returns.address],
            "scope": oauth.scope or None,
            "token_endpoint_auth_method": secret,
        }
    )
    return OAuthClientProvider(
        server_url=settings.url,
        client_metadata=metadata,
        storage=TokenFile(_tokens(oauth), settings.url, _register(oauth, metadata)),
        redirect_handler=returns.show,
        callback_handler=returns.wait,
    )


def _tokens(oauth: MCPOAuthSettings) -> Path:
    return (
        Path(oauth.tokens).expanduser()
        if oauth.tokens
        else data_folder(os.environ) / "tool-search" / _FILE
    )


def _register(oauth: MCPOAuthSettings, metadata: Any) -> Any:
    """Return the client that the owner has registered; None if the bot registers itself."""
    if not oauth.client_id:
        return None
    own = metadata.model_dump(mode="json", exclude_none=True)
    secret = {"client_secret": oauth.client_secret} if oauth.client_secret else {}
    return OAuthClientInformationFull.model_validate(
        {**own, "client_id": oauth.client_id, **secret}
    )


class TokenFile:
    """The tokens and the registration for one url, in a file that only its owner may read.

    Args:
        path: The file; it may hold other servers' tokens too.
        url: The server's address.
        registered: The client that is registered already; None: kept in the file.
    """

    def __init__(self, path: Path, url: str, registered: Any = None) -> None:
        self._path = path
        self._url = url
        self._given = registered

    async def get_tokens(self) -> OAuthToken | None:
        """Return the tokens, or None."""
        kept = (await self._entry()).get("tokens")
        return None if kept is None else OAuthToken.model_validate(kept)

    async def set_tokens(self, tokens: OAuthToken) -> None:
        """Keep the tokens."""
        await self._keep("tokens", tokens)

    async def get_client_info(self) -> OAuthClientInformationFull | None:
        """Return the registered client, or None."""
        if self._given is not None:
            return self._given
        kept = (await self._entry()).get("client")
        return None if kept is None else OAuthClientInformationFull.model_validate(kept)

    async def set_client_info(self, client_info: OAuthClientInformationFull) -> None:
        """Keep the registered client."""
        await self._keep("client", client_info)

    async def _entry(self) -> Mapping[str, Any]:
        content = await asyncio.to_thread(self._read_file)
        entry = content.get(self._url)
        return entry if isinstance(entry, dict) else {}

    async def _keep(self, key: str, value: Any) -> None:
        kept = value.model_dump(mode="json", exclude_none=True)
        await asyncio.to_thread(self._write, key, kept)

    def _read_file(self) -> dict[str, Any]:
        try:
            content = json.loads(self._path.read_text(encoding="utf-8"))
        except FileNotFoundError:
            return {}
        except (OSError, ValueError) as exc:
            raise SourceError(
                f"its file of tokens {str(self._path)!r} cannot be read: {exc}; mend or delete it",
                server=self._url,
            ) from exc
        return content if isinstance(content, dict) else {}

    def _write(self, key: str, value: Any) -> None:
        try:
            with locked(self._path):  # other servers' tokens are in it too
                content = self._read_file()
                entry = content.get(self._url)
                content[self._url] = {**(entry if isinstance(entry, dict) else {}), key: value}
                replace_file(self._path, json.dumps(content, indent=1).encode())
        except OSError as exc:
            raise SourceError(
                f"its file of tokens {str(self._path)!r} cannot be written: {exc}; make room, or "
                "name another one in oauth.tokens",
                server=self._url,
            ) from exc


class LoopbackReturn:
    """The return of a person's browser to this machine.

    Args:
        server: The server's name, for the message to the person.
        port: The port.
    """

    def __init__(self, server: str, port: int) -> None:
        self._server = server
        self._port = port
        self._state: str | None = None
        self.address = f"http://127.0.0.1:{port}{_PATH}"

    async def show(self, address: str) -> None:
        """Ask the person to open the address, and note its `state`: the answer has to have it."""
        self._state = parse_qs(urlsplit(address).query).get("state", [None])[0]
        _log.warning(
            "mcp_permission: server %r needs a person's permission; open %s",
            self._server,
            clean_line(address, 4_000),
        )

    async def wait(self) -> Any:
        """Return the code and the state with which the browser comes back.

        Raises:
            SourceError: The port is taken.
        """
        found: asyncio.Future[dict[str, str]] = asyncio.get_running_loop().create_future()
        try:
            listener = await asyncio.start_server(
                _answer(found, self._state), "127.0.0.1", self._port, limit=_MAX_REQUEST_BYTES
            )
        except OSError as exc:
            raise SourceError(
                f"the port {self._port} for the return of the browser is taken ({exc}); set "
                "another one in oauth.callbackPort",
                server=self._server,
            ) from exc
        async with listener:
            given = await found
        if "code" not in given:
            cause = clean_line(given.get("error_description", given.get("error", "")), 200)
            raise SourceError(f"the permission was refused: {cause}", server=self._server)
        if HAS_SESSIONLESS:
            from mcp.client.auth import AuthorizationCodeResult  # noqa: PLC0415 - not in SDK 1.x

            return AuthorizationCodeResult(
                code=given["code"], state=given.get("state"), iss=given.get("iss")
            )
        return given["code"], given.get("state")


# Any page that the person has open can send a request to the port: without the state of this
# permission it is not an answer. Source: RFC 6749, sections 4.1.2, 4.1.2.1 and 10.12.
def _answer(
    found: asyncio.Future[dict[str, str]], state: str | None
) -> Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]:
    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            line = await reader.readline()
            path = [*line.decode("latin-1").split(" "), "", ""][1]
            address = urlsplit(path)
            given = {key: values[0] for key, values in parse_qs(address.query).items()}
            is_ours = compare_digest(given.get("state", "").encode(), (state or "").encode())
            is_answer = "code" in given or "error" in given
            is_return = address.path == _PATH and is_answer and is_ours
            status, page = (b"200 OK", _PAGE) if is_return else (b"404 Not Found", b"Not found.")
            writer.write(
                b"HTTP/1.1 %b\r\nContent-Type: text/plain\r\nContent-Length: %d\r\n"
                b"Connection: close\r\n\r\n%b" % (status, len(page), page)
            )
            await writer.drain()
            if is_return and not found.done():
                found.set_result(given)
        except (ConnectionError, ValueError):
            return
        finally:
            writer.close()

    return answer
