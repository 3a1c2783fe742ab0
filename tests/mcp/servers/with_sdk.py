"""A server on the official SDK, 1.x or 2.x: python with_sdk.py stdio|http|sse [PORT]."""

from __future__ import annotations

import asyncio
import base64
import json
import os
import sys
from typing import Any

try:
    from mcp.server.mcpserver import Context, Image, MCPServer
except ImportError:
    from mcp.server.fastmcp import Context, Image
    from mcp.server.fastmcp import FastMCP as MCPServer

from pydantic import BaseModel

PIXEL = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
)
server = MCPServer("with-sdk")


@server.tool()
def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


@server.tool()
def process_id() -> str:
    """Return the id of this process."""
    return str(os.getpid())


@server.tool()
def fail(reason: str) -> str:
    """Fail for a reason."""
    raise ValueError(reason)


class Answer(BaseModel):
    name: str


@server.tool()
async def ask(ctx: Context) -> str:
    """Ask a person in the middle of a call, as the handshake versions do."""
    answer = await ctx.elicit("Your name?", Answer)
    return str(answer)


@server.tool()
def picture() -> Any:
    """Return a picture of one pixel."""
    return Image(data=PIXEL, format="png")


@server.tool()
async def count_slowly(steps: int, pause: float, ctx: Context) -> str:
    """Count, and report progress after each step."""
    for step in range(steps):
        await ctx.report_progress(step + 1, steps, f"step {step + 1}")
        await asyncio.sleep(pause)
    return f"counted to {steps}"


@server.tool()
async def grow(name: str, ctx: Context) -> str:
    """Offer one more tool, and say so."""

    def another() -> str:
        return name

    server.add_tool(another, name=name, description=f"Return {name}.")
    if hasattr(ctx, "notify_tools_changed"):
        await ctx.notify_tools_changed()
    await ctx.session.send_tool_list_changed()
    return "grown"


@server.tool()
async def write_memo(name: str, ctx: Context, times: int = 1) -> str:
    """Offer one more prompt and one more resource, and say so any number of times."""

    def memo() -> str:
        return name

    server.prompt(name=name)(memo)
    server.resource(f"memo://{name}")(memo)
    for _ in range(times):
        if hasattr(ctx, "notify_prompts_changed"):
            await ctx.notify_prompts_changed()
            await ctx.notify_resources_changed()
        await ctx.session.send_prompt_list_changed()
        await ctx.session.send_resource_list_changed()
    return "written"


@server.tool()
def secrets_seen() -> str:
    """List the environment variables of this process."""
    return ",".join(sorted(os.environ))


def behind_token(app: Any) -> Any:
    """Refuse requests without the bearer token and the header of the test."""

    async def checked(scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] == "http":
            headers = {key.decode(): value.decode() for key, value in scope["headers"]}
            if headers.get("authorization") != "Bearer T" or headers.get("x-team") != "core":
                await answer(send, 403, {"error": "no token"})
                return
        await app(scope, receive, send)

    return checked


async def answer(send: Any, status: int, content: Any, *headers: tuple[bytes, bytes]) -> None:
    body = json.dumps(content).encode()
    started = {"type": "http.response.start", "status": status}
    await send({**started, "headers": [(b"content-type", b"application/json"), *headers]})
    await send({"type": "http.response.body", "body": body})


def behind_oauth(app: Any, base: str) -> Any:
    """An authorization server and the MCP server that trusts it, at one address."""
    documents = {
        "/.well-known/oauth-protected-resource/mcp": {
            "resource": f"{base}/mcp",
            "authorization_servers": [base],
        },
        "/.well-known/oauth-authorization-server": {
            "issuer": base,
            "authorization_endpoint": f"{base}/authorize",
            "token_endpoint": f"{base}/token",
            "registration_endpoint": f"{base}/register",
            "response_types_supported": ["code"],
            "grant_types_supported": ["authorization_code", "refresh_token"],
            "code_challenge_methods_supported": ["S256"],
            "token_endpoint_auth_methods_supported": ["none"],
        },
        "/token": {"access_token": "A", "token_type": "Bearer", "expires_in": 3600,
                   "refresh_token": "R"},
    }  # fmt: skip

    async def guarded(scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] != "http":
            await app(scope, receive, send)
            return
        path = scope["path"]
        if path in documents:
            await answer(send, 200, documents[path])
        elif path == "/register":
            asked = json.loads((await receive())["body"])
            await answer(send, 201, {**asked, "client_id": "registered"})
        elif path != "/mcp":
            await answer(send, 404, {})
        elif dict(scope["headers"]).get(b"authorization") != b"Bearer A":
            place = f'Bearer resource_metadata="{base}/.well-known/oauth-protected-resource/mcp"'
            await answer(send, 401, {}, (b"www-authenticate", place.encode()))
        else:
            await app(scope, receive, send)

    return guarded


def main(transport: str, port: int) -> None:
    if transport == "stdio":
        server.run("stdio")
        return
    import uvicorn

    app = server.sse_app() if transport == "sse" else server.streamable_http_app()
    if transport == "oauth":
        app = behind_oauth(app, f"http://127.0.0.1:{port}")
    elif transport == "token":
        app = behind_token(app)
    uvicorn.run(app, host="127.0.0.1", port=port, log_level="error")


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]) if len(sys.argv) > 2 else 0)
