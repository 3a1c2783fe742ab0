"""The stand-in server as OpenAI Responses, asked by the real SDK client."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import openai
import pytest

from tool_search.testing import (
    Fault,
    KeywordModel,
    ModelCall,
    ModelReply,
    ModelView,
    ScriptedModel,
    StandInServer,
)

if TYPE_CHECKING:
    from openai import AsyncOpenAI
    from openai.types.responses import Response

QUESTION = {"role": "user", "content": "What is the weather in Paris?"}
SCHEMA = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}
WEATHER: dict[str, Any] = {
    "type": "function",
    "name": "get_weather",
    "description": "The weather of a city.",
    "parameters": SCHEMA,
    "strict": False,
}
SEARCH: dict[str, Any] = {
    "type": "tool_search",
    "execution": "client",
    "description": "Finds tools.",
    "parameters": {"type": "object", "properties": {"query": {"type": "string"}}},
}
REPLY = ModelReply(
    text="Let me look that up for you.",
    calls=(
        ModelCall(name="get_weather", arguments={"city": "Paris"}),
        ModelCall(name="tool_search", arguments={"query": "time"}),
    ),
    thinking="The city is Paris.",
)


@pytest.fixture
def body() -> dict[str, Any]:
    """Return a valid request."""
    return {"model": "gpt-5.4", "input": [QUESTION], "tools": [SEARCH, WEATHER]}


async def test_reply_has_reasoning_text_and_both_kinds_of_call(
    server: StandInServer, gpt: AsyncOpenAI, body: Any
) -> None:
    server.reset(model=ScriptedModel([REPLY]))
    response = await gpt.responses.create(**body)
    thought, message, call, search = response.output
    assert (thought.type, message.type) == ("reasoning", "message")
    assert call.type == "function_call"
    assert (call.name, call.arguments, call.namespace) == ("get_weather", '{"city": "Paris"}', None)
    assert search.type == "tool_search_call"
    assert (search.arguments, search.execution) == ({"query": "time"}, "client")
    assert response.output_text == "Let me look that up for you."
    assert response.status == "completed"
    assert response.usage is not None
    assert response.usage.total_tokens == response.usage.input_tokens + response.usage.output_tokens


async def test_stream_accumulates_to_the_same_reply(
    server: StandInServer, gpt: AsyncOpenAI, body: Any
) -> None:
    server.reset(model=ScriptedModel([REPLY, REPLY]))
    plain = await gpt.responses.create(**body)
    events = [event async for event in await gpt.responses.create(**body, stream=True)]
    last = events[-1]
    assert last.type == "response.completed"
    unnamed = {"id", "call_id"}
    assert [item.model_dump(exclude=unnamed) for item in last.response.output] == [
        item.model_dump(exclude=unnamed) for item in plain.output
    ]
    assert last.response.usage == plain.usage
    assert [event.sequence_number for event in events] == list(range(len(events)))


async def test_events_come_in_the_recorded_order(
    server: StandInServer, gpt: AsyncOpenAI, body: Any
) -> None:
    """Each item opens, grows and is done; a search comes whole, with the id of its end."""
    server.reset(model=ScriptedModel([REPLY]))
    stream = await gpt.responses.create(**body, stream=True)
    events = [event async for event in stream]
    kinds = [event.type for event in events]
    once = [kind for index, kind in enumerate(kinds) if kind not in kinds[index - 1 : index]]
    assert [kind.removeprefix("response.") for kind in once] == [
        "created",
        "in_progress",
        "output_item.added",
        "reasoning_summary_part.added",
        "reasoning_summary_text.delta",
        "reasoning_summary_text.done",
        "reasoning_summary_part.done",
        "output_item.done",
        "output_item.added",
        "content_part.added",
        "output_text.delta",
        "output_text.done",
        "content_part.done",
        "output_item.done",
        "output_item.added",
        "function_call_arguments.delta",
        "function_call_arguments.done",
        "output_item.done",
        "output_item.added",
        "output_item.done",
        "completed",
    ]
    opened, done = (event.item for event in events[-3:-1])
    assert opened.arguments == {}
    assert opened.call_id != done.call_id


async def test_model_sees_a_deferred_tool_once_an_output_brought_it(
    server: StandInServer, gpt: AsyncOpenAI, body: Any
) -> None:
    seen: list[list[str]] = []

    def look(view: ModelView) -> ModelReply:
        seen.append([tool.name for tool in view.tools])
        called = "get_time" if view.results else "tool_search"
        return ModelReply(calls=(ModelCall(name=called),))

    server.reset(model=ScriptedModel([look, look]))
    deferred = {**WEATHER, "name": "get_time", "defer_loading": True}
    body["tools"].append(deferred)
    first = await gpt.responses.create(**body)
    (search,) = first.output
    assert search.type == "tool_search_call"
    found = {"type": "tool_search_output", "execution": "client", "call_id": search.call_id}
    body["input"] += [search.to_dict(), {**found, "tools": [deferred]}]
    second = await gpt.responses.create(**body)
    (call,) = second.output
    assert call.type == "function_call"
    assert (call.name, call.namespace) == ("get_time", "get_time")
    assert seen == [["tool_search", "get_weather"], ["tool_search", "get_weather", "get_time"]]


async def test_hidden_call_of_a_deferred_tool_has_its_namespace(
    server: StandInServer, gpt: AsyncOpenAI, body: Any
) -> None:
    reply = ModelReply(calls=(ModelCall(name="get_time", hidden=True),))
    server.reset(model=ScriptedModel([reply]))
    body["tools"].append({**WEATHER, "name": "get_time", "defer_loading": True})
    (call,) = (await gpt.responses.create(**body)).output
    assert call.type == "function_call"
    assert call.namespace == "get_time"


async def test_keyword_model_searches_calls_and_answers(
    server: StandInServer, gpt: AsyncOpenAI
) -> None:
    """It goes by the dialect's own search, whatever else the search tool is called."""
    server.reset(model=KeywordModel(search_tool="find_tools"))
    history: list[Any] = [QUESTION]
    tools: Any = [SEARCH]
    answers: dict[str, Any] = {
        "tool_search_call": {
            "type": "tool_search_output",
            "execution": "client",
            "tools": [{**WEATHER, "defer_loading": True}],
        },
        "function_call": {"type": "function_call_output", "output": "18 degrees"},
    }
    for _ in range(2):
        response = await gpt.responses.create(model="gpt-5.4", input=history, tools=tools)
        (item,) = response.output
        answer = {**answers[item.type], "call_id": getattr(item, "call_id", None)}
        history += [item.to_dict(), answer]
    final = await gpt.responses.create(model="gpt-5.4", input=history, tools=tools)
    assert [item.get("type") for item in history] == [
        None,
        "tool_search_call",
        "tool_search_output",
        "function_call",
        "function_call_output",
    ]
    assert final.output_text == "get_weather: 18 degrees"
    assert server.violations == ()


async def test_conversation_goes_on_from_a_reply_that_is_kept(
    server: StandInServer, gpt: AsyncOpenAI, body: Any
) -> None:
    texts: list[str] = []

    def look(view: ModelView) -> ModelReply:
        texts.append(view.messages[0].text)
        return ModelReply(text=f"{len(view.messages)} messages")

    calls = ModelReply(calls=(ModelCall(name="get_weather", arguments={"city": "Paris"}),))
    server.reset(model=ScriptedModel([calls, look, look]))
    first = await gpt.responses.create(**body)
    (call,) = first.output
    assert call.type == "function_call"
    answer = {"type": "function_call_output", "call_id": call.call_id, "output": "sunny"}
    second = await gpt.responses.create(
        **{**body, "input": [answer]}, previous_response_id=first.id
    )
    third = await gpt.responses.create(
        **{**body, "input": "Thanks."}, previous_response_id=second.id
    )
    assert (second.output_text, third.output_text) == ("3 messages", "5 messages")
    assert texts == [QUESTION["content"]] * 2


@pytest.mark.parametrize("stored", [True, False])
async def test_call_left_open_in_a_kept_reply_has_to_be_answered(
    server: StandInServer, gpt: AsyncOpenAI, body: Any, stored: bool
) -> None:
    """Kept items are checked with the request; others are not found."""
    calls = ModelReply(calls=(ModelCall(name="get_weather", arguments={"city": "Paris"}),))
    server.reset(model=ScriptedModel([calls]))
    first = await gpt.responses.create(**body, store=stored)
    expected = "No tool output found for function call" if stored else "Previous response with id"
    with pytest.raises(openai.BadRequestError, match=expected):
        await gpt.responses.create(**{**body, "input": "Well?"}, previous_response_id=first.id)


async def test_items_that_are_kept_cannot_be_sent_as_well(
    server: StandInServer, gpt: AsyncOpenAI, body: Any
) -> None:
    server.reset(model=ScriptedModel([ModelReply(text="Hi.")]))
    first = await gpt.responses.create(**body)
    again = [item.to_dict() for item in first.output]
    with pytest.raises(openai.BadRequestError, match="Duplicate item found with id msg_"):
        await gpt.responses.create(**{**body, "input": again}, previous_response_id=first.id)


async def test_reasoning_goes_back_with_its_call_and_in_full_where_nothing_is_kept(
    server: StandInServer, gpt: AsyncOpenAI, body: Any
) -> None:
    """By its id if it is kept, encrypted if not, and never left out."""
    thinks = ModelReply(thinking="Hm.", text="Hi.")
    server.reset(model=ScriptedModel([thinks, thinks, thinks, thinks]))
    kept = await gpt.responses.create(**body)
    thought, message = (item.to_dict() for item in kept.output)
    body["input"] = [QUESTION, thought, message, QUESTION]
    assert (await gpt.responses.create(**body)).output_text == "Hi."
    with pytest.raises(openai.BadRequestError, match="without its required 'reasoning' item"):
        await gpt.responses.create(**{**body, "input": [QUESTION, message, QUESTION]})
    body["input"] = [QUESTION]
    unkept = await gpt.responses.create(**body, store=False)
    again = [item.to_dict() for item in unkept.output]
    with pytest.raises(openai.NotFoundError, match="Items are not persisted"):
        await gpt.responses.create(**{**body, "input": [QUESTION, *again, QUESTION]})
    include: Any = ["reasoning.encrypted_content"]
    unkept = await gpt.responses.create(**body, store=False, include=include)
    again = [item.to_dict() for item in unkept.output]
    server.reset(model=ScriptedModel([ModelReply(text="Done.")]))
    response = await gpt.responses.create(**{**body, "input": [QUESTION, *again, QUESTION]})
    assert response.output_text == "Done."


async def test_cached_input_is_what_the_service_has_read_before(
    server: StandInServer, gpt: AsyncOpenAI, body: Any
) -> None:
    server.reset(model=ScriptedModel([ModelReply(text="Hi.")] * 3))
    body["instructions"] = "Be brief. " * 1_000

    async def cached() -> int:
        response: Response = await gpt.responses.create(**body)
        assert response.usage is not None
        return response.usage.input_tokens_details.cached_tokens

    first = await cached()
    brings = {"type": "additional_tools", "role": "developer"}
    body["input"].append({**brings, "tools": [{**WEATHER, "name": "get_time"}]})
    second = await cached()
    body["tools"] = [{**WEATHER, "description": "Weather."}, *body["tools"][:1]]
    assert (first, await cached()) == (0, 0)
    assert second >= 2_432


async def test_tokens_are_counted_without_asking_the_model(
    server: StandInServer, gpt: AsyncOpenAI, body: Any
) -> None:
    server.reset(model=ScriptedModel([ModelReply(text="Hi.")]))
    counted = await gpt.responses.input_tokens.count(**body)
    usage = (await gpt.responses.create(**body)).usage
    assert usage is not None
    assert counted.input_tokens == usage.input_tokens


async def test_refused_request_reads_as_the_services_own(
    server: StandInServer, gpt: AsyncOpenAI, body: Any
) -> None:
    body["tools"] = [WEATHER, WEATHER]
    with pytest.raises(openai.BadRequestError, match="names must be unique") as refused:
        await gpt.responses.create(**body)
    assert (refused.value.param, refused.value.type) == ("tools[1].name", "invalid_request_error")
    assert server.requests[0].tool_names == ("get_weather", "get_weather")


async def test_error_inside_a_stream_is_raised_by_the_client(
    server: StandInServer, gpt: AsyncOpenAI, body: Any
) -> None:
    server.reset(model=ScriptedModel([REPLY]))
    server.faults.add(Fault(status=500, after_events=3))
    with pytest.raises(openai.APIError, match="The server had an error"):
        [event async for event in await gpt.responses.create(**body, stream=True)]


async def test_connection_breaks_in_the_middle_of_a_call(
    server: StandInServer, gpt: AsyncOpenAI, body: Any
) -> None:
    server.reset(model=ScriptedModel([REPLY]))
    server.faults.add(Fault(broken=True, after_events="tool_call"))
    last = ""
    with pytest.raises(openai.APIConnectionError):  # noqa: PT012 - what came before it counts
        async for event in await gpt.responses.create(**body, stream=True):
            last = event.type
    assert last == "response.function_call_arguments.delta"


@pytest.mark.parametrize(
    ("reason", "status"), [("max_output_tokens", "incomplete"), (None, "completed")]
)
async def test_reply_that_was_cut_says_why(
    server: StandInServer, gpt: AsyncOpenAI, body: Any, reason: str | None, status: str
) -> None:
    server.reset(model=ScriptedModel([ModelReply(text="Hi", stop_reason=reason)]))
    response = await gpt.responses.create(**body)
    assert response.status == status
    assert (response.incomplete_details and response.incomplete_details.reason) == reason


async def test_refusal_is_a_part_of_its_own(
    server: StandInServer, gpt: AsyncOpenAI, body: Any
) -> None:
    server.reset(model=ScriptedModel([ModelReply(text="No.", stop_reason="refusal")]))
    (message,) = (await gpt.responses.create(**body)).output
    assert message.type == "message"
    assert [part.to_dict() for part in message.content] == [{"type": "refusal", "refusal": "No."}]


@pytest.mark.parametrize("how", ["cut", "bad_escape"])
async def test_arguments_that_are_no_json(
    server: StandInServer, gpt: AsyncOpenAI, body: Any, how: Any
) -> None:
    """Of a search the service only ever sends an object; endpoints that imitate it do not."""
    server.reset(model=ScriptedModel([REPLY]))
    server.faults.add(Fault(arguments=how))
    *_, call, search = (item.to_dict() for item in (await gpt.responses.create(**body)).output)
    for arguments in (call["arguments"], search["arguments"]):
        assert isinstance(arguments, str)
        with pytest.raises(ValueError, match="line 1"):
            json.loads(arguments)


async def test_empty_reply_has_a_message_without_content(
    server: StandInServer, gpt: AsyncOpenAI, body: Any
) -> None:
    server.faults.add(Fault(empty=True))
    response = await gpt.responses.create(**body)
    assert (response.output_text, [item.type for item in response.output]) == ("", ["message"])


async def test_conversation_that_nobody_made_is_not_found(
    server: StandInServer, gpt: AsyncOpenAI, body: Any
) -> None:
    with pytest.raises(openai.NotFoundError, match="Conversation with id 'conv_1' not found"):
        await gpt.responses.create(**body, conversation="conv_1")
    assert len(server.violations) == 1


CRM: dict[str, Any] = {
    "type": "namespace",
    "name": "crm",
    "description": "Customers.",
    "tools": [
        {**WEATHER, "name": "list_orders", "description": "Orders.", "defer_loading": True},
        {**WEATHER, "name": "get_customer", "description": "A customer.", "defer_loading": True},
    ],
}


@pytest.fixture
def hosted() -> dict[str, Any]:
    """Return a request that lets the service search."""
    deferred = {**WEATHER, "defer_loading": True}
    return {
        "model": "gpt-5.4",
        "input": [QUESTION],
        "tools": [{"type": "tool_search"}, deferred, CRM],
    }


@pytest.mark.parametrize("stream", [False, True])
async def test_service_searches_itself_and_the_model_goes_on_in_the_same_reply(
    server: StandInServer, gpt: AsyncOpenAI, hosted: Any, stream: bool
) -> None:
    """Call and output without an id for pairs, then the call of what was found."""
    server.reset(model=KeywordModel())
    if stream:
        events = [event async for event in await gpt.responses.create(**hosted, stream=True)]
        output = events[-1].response.output
        added = [event.item for event in events if event.type == "response.output_item.added"]
        assert [item.type for item in added] == [item.type for item in output]
    else:
        output = (await gpt.responses.create(**hosted)).output
    search, found, call = (item.to_dict() for item in output)
    assert (search["type"], search["execution"], search["call_id"]) == (
        "tool_search_call",
        "server",
        None,
    )
    assert found["tools"] == [hosted["tools"][1]]
    assert (call["name"], call["namespace"]) == ("get_weather", "get_weather")
    answer = {"type": "function_call_output", "call_id": call["call_id"], "output": "18 degrees"}
    hosted["input"] += [search, found, call, answer]
    assert (await gpt.responses.create(**hosted)).output_text == "get_weather: 18 degrees"
    assert server.violations == ()


async def test_path_of_a_namespace_brings_all_that_waits_in_it(
    server: StandInServer, gpt: AsyncOpenAI, hosted: Any
) -> None:
    """A model may name what it wants; the reply that holds the search is kept as a whole."""
    script = [
        ModelReply(calls=(ModelCall(name="tool_search", arguments={"paths": ["crm"]}),)),
        ModelReply(calls=(ModelCall(name="list_orders", arguments={"city": "Paris"}),)),
        ModelReply(text="None."),
    ]
    server.reset(model=ScriptedModel(script))
    first = await gpt.responses.create(**hosted)
    _, found, call = (item.to_dict() for item in first.output)
    assert found["tools"] == [CRM]
    assert (call["name"], call["namespace"]) == ("list_orders", "crm")
    answer = {"type": "function_call_output", "call_id": call["call_id"], "output": "none"}
    second = await gpt.responses.create(
        **{**hosted, "input": [answer]}, previous_response_id=first.id
    )
    assert second.output_text == "None."
