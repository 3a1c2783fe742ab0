"""Tools whose schemas no service takes as they are, on every kind of provider."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.conversations import PROFILES, Chat
from tests.runner.bench import Bench, assert_paired, named, say, turn
from tests.runner.kinds import KINDS, provider
from tool_search import Done, RunnerWarning, Tool, ToolFinished
from tool_search.adapters.anthropic import wire as anthropic_wire
from tool_search.adapters.openai_chat import wire as openai_chat_wire
from tool_search.catalog.schema.vocabulary import wire_key
from tool_search.testing import ModelCall, ModelReply, ModelView, ScriptedModel

FILTER, USER, OWNER = wire_key("$filter"), wire_key("user id"), wire_key("名字")
FILES = Tool(
    name="list_files",
    description="List the files of a drive.",
    parameters={
        "$schema": "http://json-schema.org/draft-07/schema#",
        "type": "object",
        "properties": {
            "$filter": {"type": "str"},
            "owners": {
                "type": "array",
                "items": {
                    "type": "object",
                    "properties": {"user id": {"type": "int"}, "名字": {"type": "string"}},
                    "required": ["user id"],
                },
            },
            "box": {"type": "array", "items": [{"type": "number"}, {"type": "number"}]},
            "odd": {"$ref": "#/$defs/nowhere"},
            "tags": {"type": "array"},
            "size": {"type": "integer", "minimum": 0, "exclusiveMinimum": True},
        },
        "required": ["$filter"],
    },
)
OTHERS = [
    Tool(name="water_plants", description="Water the plants."),
    Tool(name="send_mail", description="Send a mail.", parameters={"properties": {"año": True}}),
    Tool(name="now", description="The time.", always_load=True,
         parameters={"type": "object", "properties": {"time zone": {"type": "string"}}}),
]  # fmt: skip
SHOWN = {FILTER: "a eq 1", "owners": [{USER: 7, OWNER: "李"}], "box": [1, 2]}
OWN = {"$filter": "a eq 1", "owners": [{"user id": 7, "名字": "李"}], "box": [1, 2]}


def find(_: ModelView) -> ModelReply:
    query = {"query": "list the files of a drive"}
    return ModelReply(calls=(ModelCall(name="tool_search", arguments=query),))


def list_files(view: ModelView) -> ModelReply:
    """Calls the tool as this request lets it be called, by the keys that it shows."""
    if view.tool("list_files") is not None:
        return ModelReply(calls=(ModelCall(name="list_files", arguments=SHOWN),))
    shown = [result.text for message in view.messages for result in message.results]
    assert any(FILTER in text and '$filter":' not in text for text in shown)
    arguments = {"name": "list_files", "arguments": SHOWN}
    return ModelReply(calls=(ModelCall(name="call_tool", arguments=arguments),))


@pytest.mark.parametrize("kind", KINDS)
async def test_a_tool_is_called_by_the_keys_it_is_shown_and_gets_its_own(
    bench: Bench, kind: str
) -> None:
    """No request is refused, for five turns, on any kind of provider."""
    bench.server.reset(model=ScriptedModel([find, list_files, say("Done.")] * 5))
    runner = await bench.runner(
        tools=[FILES, *OTHERS], providers={kind: await provider(bench, kind)}
    )
    for _ in range(5):
        events = await turn(runner, "List my files.", conversation="c")
        assert named(events, Done)[0].answer == "Done."
    assert bench.ran == [("list_files", OWN)] * 5
    assert {status for _, status in bench.asked} == {200}
    assert len({json.dumps(r.body.get("tools")) for r in bench.requests[2:]}) <= 2


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("claude", "gpt"), ("gpt", "claude"), ("responses", "glm"), ("glm", "responses"),
        ("gpt-kimi", "claude"), ("gpt-bridge", "responses"), ("responses-plain", "gpt"),
    ],
)  # fmt: skip
async def test_a_swap_shows_the_next_provider_the_same_keys(
    bench: Bench, first: str, second: str
) -> None:
    """What one provider's model has called reads the same for another's."""
    bench.server.reset(model=ScriptedModel([find, list_files, say("A."), list_files, say("B.")]))
    ids = {first: first, f"{second}-b": second}
    providers = {name: await provider(bench, kind) for name, kind in ids.items()}
    runner = await bench.runner(tools=[FILES, *OTHERS], providers=providers)
    await turn(runner, "List my files.", conversation="c")
    runner.use(f"{second}-b")
    await turn(runner, "Again.", conversation="c")
    assert bench.ran == [("list_files", OWN)] * 2
    last = json.dumps(bench.requests[-1].body, ensure_ascii=False)
    assert FILTER in last
    assert "a eq 1" in last
    assert '$filter":' not in last
    assert '$filter\\":' not in last


async def test_an_operator_reads_what_is_left_out_once_by_tool_and_place(bench: Bench) -> None:
    bench.server.reset(model=ScriptedModel([find, list_files, say("A."), say("B.")]))
    runner = await bench.runner("gpt", tools=[FILES, *OTHERS])
    said = [
        event.message
        for _ in range(2)
        for event in named(await turn(runner, "List.", conversation="c"), RunnerWarning)
        if event.code == "schema_incomplete"
    ]
    why = "is left out: '#/$defs/nowhere' leads to nothing in the schema"
    assert said == [f"tool 'list_files': /properties/odd/$ref {why}"]


async def test_a_complaint_and_a_key_given_twice_are_said_in_the_keys_of_the_wire(
    bench: Bench,
) -> None:
    def wrong(_: ModelView) -> ModelReply:
        calls = ({FILTER: 5}, {FILTER: "a", "$filter": "b"}, {"$filter": "c"})
        return ModelReply(calls=tuple(ModelCall(name="list_files", arguments=a) for a in calls))

    bench.server.reset(model=ScriptedModel([find, wrong, say("Done.")]))
    runner = await bench.runner("gpt", tools=[FILES, *OTHERS])
    events = named(await turn(runner, "List."), ToolFinished)
    _, bad, twice, good = (event.content for event in events)
    assert f"{FILTER}: 5 is not of type" in bad
    assert f"{FILTER} = $filter" in twice
    assert good == "list_files is done"
    assert bench.ran == [("list_files", {"$filter": "c"})]


def test_a_history_has_the_tools_own_keys_and_each_wire_its_own() -> None:
    chat = Chat([FILES, *OTHERS])
    chat.begin(PROFILES["openai"])
    chat.find("list_files")
    chat.call("list_files", SHOWN)
    chat.call("list_files", {FILTER: "a", "$filter": "b"})
    called = [call for message in chat.session.history for call in message.tool_calls]
    assert json.loads(called[1].arguments) == OWN
    assert json.loads(called[2].arguments) == {FILTER: "a", "$filter": "b"}
    assert_paired(chat.session.history)
    for name, profile in PROFILES.items():
        plan = chat.session.plan(profile)
        write: Any = openai_chat_wire if profile.dialect == "openai_chat" else anthropic_wire
        text = json.dumps(write.to_wire(plan, profile), ensure_ascii=False)
        assert text.count("a eq 1") == 1, name
        assert chat.session.plan(profile).messages == plan.messages
        shown = [call for message in plan.messages for call in message.tool_calls]
        assert json.loads(shown[1].arguments) == SHOWN


def test_a_call_through_call_tool_is_translated_within() -> None:
    chat = Chat([FILES, *OTHERS])
    chat.begin(PROFILES["openai"])
    for inner in (SHOWN, json.dumps(SHOWN), OWN):
        result = chat.call("call_tool", {"name": "list_files", "arguments": inner})
        assert (result.text, result.is_error) == ("ok", False)
    plan = chat.session.plan(PROFILES["openai"])
    called = [call for m in chat.session.history for call in m.tool_calls]
    shown = [call for message in plan.messages for call in message.tool_calls]
    assert [json.loads(call.arguments)["arguments"] for call in called] == [OWN] * 3
    assert [json.loads(call.arguments)["arguments"] for call in shown] == [SHOWN] * 3


def test_a_schema_in_a_hint_has_the_keys_of_the_wire() -> None:
    chat = Chat([FILES, *OTHERS])
    chat.begin(PROFILES["openai"])
    result = chat.call("list_files", {})
    assert FILTER in result.text
    assert '"$filter":' not in result.text
