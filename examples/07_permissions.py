"""A permission dialogue in the terminal: once, in this conversation, always, or no.

No key, no network: the stand-in model calls two tools. Run: python examples/07_permissions.py
"""

from __future__ import annotations

import asyncio

from tool_search import (
    CallOptions,
    Done,
    PermissionAnswer,
    Permissions,
    PermissionSettings,
    ProviderConfig,
    ToolFinished,
    ToolSearchRunner,
    tool_from_function,
)
from tool_search.adapters import build_provider
from tool_search.runner.execution import PermissionRequest
from tool_search.testing import ModelCall, ModelReply, ScriptedModel, StandInServer

RULES = PermissionSettings(
    ask=("send_mail",),  # the user decides
    deny=("send_mail(to=*@example.org)",),  # the user is not asked
)


def send_mail(to: str, text: str) -> str:
    """Send a mail."""
    return f"sent to {to}: {text}"


async def ask(request: PermissionRequest) -> PermissionAnswer:
    """Asks in the terminal; anything but a known letter is a no."""
    arguments = ", ".join(f"{key}={value!r}" for key, value in request.arguments.items())
    print(f"\nMay {request.tool.name}({arguments}) be called?")
    print("  y  yes, once\n  c  in this conversation\n  a  always\n  n  no")
    try:
        letter = (await asyncio.to_thread(input, "> ")).strip().lower()
    except EOFError:
        letter = "n"
    if letter == "c":
        return PermissionAnswer(allow=True, scope="conversation")
    if letter == "a":
        # The narrowest rule that is suggested: this very argument.
        return PermissionAnswer(allow=True, scope="always", rule=request.suggestions[0])
    return PermissionAnswer(allow=letter == "y", message="" if letter == "n" else "not understood")


def _mail(to: str) -> ModelReply:
    return ModelReply(calls=(ModelCall(name="send_mail", arguments={"to": to, "text": "Hi"}),))


async def main() -> None:
    """One turn with three calls."""
    script = [_mail("bo@example.com"), _mail("bo@example.com"), _mail("eve@example.org")]
    model = ScriptedModel([*script, ModelReply(text="That is all.")])
    with StandInServer(model=model) as server:
        config = ProviderConfig(
            id="gpt", type="openai_chat", model="gpt-5.4", base_url=server.openai_base_url,
            api_key_env=None,
        )  # fmt: skip
        async with build_provider(config, api_key="unused", fallbacks=False) as provider:
            runner = ToolSearchRunner(
                providers={"gpt": provider},
                tools=[tool_from_function(send_mail, always_load=True)],
                calls=CallOptions(permissions=Permissions(RULES, ask=ask)),
            )
            async for event in runner.run("Write to Bo, and to Eve", user="ann"):
                if isinstance(event, ToolFinished):
                    print(f"-> {event.outcome}: {event.content}")
                elif isinstance(event, Done):
                    print(event.answer)


if __name__ == "__main__":
    asyncio.run(main())
