"""Anthropic's message threads at the stand-in server, asked by the real SDK client."""

from __future__ import annotations

from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

import anthropic
import pytest

from tool_search.testing import (
    ModelCall,
    ModelReply,
    ModelView,
    ScriptedModel,
    StandInServer,
    check_anthropic,
)

if TYPE_CHECKING:
    from anthropic import AsyncAnthropic

CALL = ModelReply(calls=(ModelCall(name="get_weather", arguments={"city": "Paris"}),))
SUNNY = ModelReply(text="Sunny.")
HAS_THREADS = find_spec("anthropic.lib.threads") is not None


class Watched:
    """A scripted model that keeps what it was shown."""

    def __init__(self, *replies: ModelReply) -> None:
        self.views: list[ModelView] = []
        self._script = ScriptedModel(replies)

    def reply(self, view: ModelView) -> ModelReply:
        """Return the next reply."""
        self.views.append(view)
        return self._script.reply(view)


def create() -> dict[str, Any]:
    """Return the request that begins a thread."""
    return {"thread": {"type": "create"}}


def continuing(reply: Any) -> dict[str, Any]:
    """Return the request that continues a thread after a reply."""
    return {"thread": {"type": "continue", "previous_message_id": reply.id}}


def result(reply: Any, content: str = "21 °C") -> list[dict[str, Any]]:
    """Return the new message alone: the result of a reply's call."""
    call = next(block for block in reply.content if block.type == "tool_use")
    block = {"type": "tool_result", "tool_use_id": call.id, "content": content}
    return [{"role": "user", "content": [block]}]


def bare(body: dict[str, Any], messages: Any) -> dict[str, Any]:
    """Return a request that leaves the tools to the thread."""
    return {"model": body["model"], "max_tokens": body["max_tokens"], "messages": messages}


def code_of(error: anthropic.APIStatusError) -> str:
    """Return the code in an error's details."""
    body: Any = error.body
    return str(body["error"]["details"]["error_code"])


async def test_thread_keeps_tools_and_messages(
    server: StandInServer, claude: AsyncAnthropic, claude_body: Any
) -> None:
    model = Watched(CALL, SUNNY, ModelReply(text="Yes."))
    server.reset(model=model)
    first = await claude.messages.create(**claude_body, extra_body=create())
    second = await claude.messages.create(
        **bare(claude_body, result(first)), extra_body=continuing(first)
    )
    more = [{"role": "user", "content": "Sure?"}]
    await claude.messages.create(**bare(claude_body, more), extra_body=continuing(second))
    seen = model.views[-1]
    assert [tool.name for tool in seen.tools] == ["get_weather"]
    assert [message.role for message in seen.messages] == ["user", "assistant"] * 2 + ["user"]
    assert seen.messages[2].results[0].text == "21 °C"
    assert not server.violations


async def test_streamed_reply_is_kept_too(
    server: StandInServer, claude: AsyncAnthropic, claude_body: Any
) -> None:
    model = Watched(CALL, SUNNY)
    server.reset(model=model)
    async with claude.messages.stream(**claude_body, extra_body=create()) as stream:
        first = await stream.get_final_message()
    body = bare(claude_body, result(first))
    await claude.messages.create(**body, extra_body=continuing(first))
    assert len(model.views[-1].messages) == 3


@pytest.mark.parametrize(
    ("thread", "says"),
    [
        ({"type": "continue", "previous_message_id": "msg_0"}, "thread_not_found"),
        ({"type": "continue"}, "thread.continue.previous_message_id: Field required"),
        (
            {"type": "continue", "previous_message_id": 7},
            "thread.continue.previous_message_id: Input should be a valid string",
        ),
        ({"type": "resume"}, "thread: Input tag 'resume' found using 'type' does not match any"),
        ({"type": "create", "id": "x"}, "thread.create.id: Extra inputs are not permitted"),
        ("create", "thread: Input should be a valid dictionary"),
    ],
)
async def test_thread_that_is_not_there_or_not_well_shaped_is_refused(
    claude: AsyncAnthropic, claude_body: Any, thread: Any, says: str
) -> None:
    with pytest.raises(anthropic.APIStatusError) as caught:
        await claude.messages.create(**claude_body, extra_body={"thread": thread})
    assert says in str(caught.value)
    assert caught.value.status_code == (404 if says == "thread_not_found" else 400)


async def test_reply_is_continued_once(
    server: StandInServer, claude: AsyncAnthropic, claude_body: Any
) -> None:
    """Two requests after one reply would be two conversations."""
    server.reset(model=ScriptedModel([CALL, SUNNY, SUNNY]))
    first = await claude.messages.create(**claude_body, extra_body=create())
    body = bare(claude_body, result(first))
    await claude.messages.create(**body, extra_body=continuing(first))
    with pytest.raises(anthropic.BadRequestError) as caught:
        await claude.messages.create(**body, extra_body=continuing(first))
    assert code_of(caught.value) == "thread_already_continued"


async def test_reply_outside_a_thread_is_not_kept(
    server: StandInServer, claude: AsyncAnthropic, claude_body: Any
) -> None:
    server.reset(model=ScriptedModel([CALL]))
    first = await claude.messages.create(**claude_body)
    with pytest.raises(anthropic.NotFoundError) as caught:
        await claude.messages.create(
            **bare(claude_body, result(first)), extra_body=continuing(first)
        )
    assert code_of(caught.value) == "thread_not_found"


async def test_thread_with_other_tools_is_refused(
    server: StandInServer, claude: AsyncAnthropic, claude_body: Any
) -> None:
    server.reset(model=ScriptedModel([CALL, SUNNY]))
    first = await claude.messages.create(**claude_body, extra_body=create())
    body = {**claude_body, "messages": result(first)}
    renamed = [{**claude_body["tools"][0], "name": "other"}]
    with pytest.raises(anthropic.BadRequestError) as caught:
        await claude.messages.create(**{**body, "tools": renamed}, extra_body=continuing(first))
    assert code_of(caught.value) == "thread_fingerprint_mismatch"
    assert "`tools`" in str(caught.value)
    await claude.messages.create(**body, extra_body=continuing(first))


async def test_rules_hold_for_the_whole_conversation(
    server: StandInServer, claude: AsyncAnthropic, claude_body: Any
) -> None:
    server.reset(model=ScriptedModel([CALL]))
    first = await claude.messages.create(**claude_body, extra_body=create())
    body = bare(claude_body, [{"role": "user", "content": "Never mind."}])
    with pytest.raises(anthropic.BadRequestError, match="without `tool_result` blocks"):
        await claude.messages.create(**body, extra_body=continuing(first))


async def test_counted_continuation_goes_without_the_limit(
    server: StandInServer, claude: AsyncAnthropic, claude_body: Any
) -> None:
    """It counts the whole conversation, and the reply can be continued all the same."""
    server.reset(model=ScriptedModel([CALL, SUNNY]))
    first = await claude.messages.create(**claude_body, extra_body=create())
    counted = {"model": claude_body["model"], "messages": result(first)}
    tokens = await claude.messages.count_tokens(**counted, extra_body=continuing(first))
    whole = await claude.messages.count_tokens(
        model=claude_body["model"], messages=claude_body["messages"], tools=claude_body["tools"]
    )
    assert tokens.input_tokens > whole.input_tokens
    await claude.messages.create(**bare(claude_body, result(first)), extra_body=continuing(first))


def test_thread_has_one_cache_breakpoint_less(conversation: dict[str, Any]) -> None:
    for tool in conversation["tools"][:2]:
        tool["cache_control"] = {"type": "ephemeral"}
    conversation["system"][0]["cache_control"] = {"type": "ephemeral"}
    conversation["thread"] = {"type": "create"}
    assert check_anthropic(conversation) is None
    conversation["cache_control"] = {"type": "ephemeral"}
    refused = check_anthropic(conversation)
    assert refused is not None
    assert "a maximum of 3 blocks with cache_control may be provided when thread is set" in (
        refused.message
    )
    assert refused.code == "thread_unsupported_request"


async def test_tool_runner_of_the_sdk_goes_through(
    server: StandInServer, claude: AsyncAnthropic, claude_body: Any
) -> None:
    @anthropic.beta_async_tool
    async def get_weather(city: str) -> str:
        """Return the weather of a city."""
        return f"Sunny in {city}."

    model = Watched(CALL, CALL, SUNNY)
    server.reset(model=model)
    body = {**claude_body, "tools": [get_weather]}
    runner = claude.beta.messages.tool_runner(**body)
    last = await runner.until_done()
    assert [block.type for block in last.content] == ["text"]
    threads = [request.body.get("thread") for request in server.requests]
    kinds = ["create", "continue", "continue"] if HAS_THREADS else [None] * 3
    assert [thread and thread["type"] for thread in threads] == kinds
    results = [r.text for message in model.views[-1].messages for r in message.results]
    assert results == ["Sunny in Paris."] * 2
