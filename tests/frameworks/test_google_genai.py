"""The example's loop on google-genai, over real HTTP on a Gemini stand-in with its rules."""

from __future__ import annotations

import importlib.util
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from google import genai
from google.genai import errors, types

from tool_search import SQLiteStore, ToolSearch, ToolView
from tool_search.sources.toolbox import TOOLBOX
from tool_search.testing import ModelCall, ModelReply, ScriptedModel
from tool_search.testing.gemini import GeminiServer

EXAMPLE = Path(__file__).parents[2] / "examples" / "frameworks" / "with_google_genai.py"
COUNT = ModelCall(name="count_words", arguments={"text": "to be or not to be"})
DONE = ModelReply(text="Done.")


def _example() -> Any:
    spec = importlib.util.spec_from_file_location("with_google_genai", EXAMPLE)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


example = _example()


@pytest.fixture
def gemini() -> Iterator[GeminiServer]:
    """A Gemini with its rules on; a test ends without a violation."""
    with GeminiServer() as running:
        yield running
        assert running.violations == []


def searches(*queries: str) -> ModelReply:
    """Return a reply that searches."""
    return calls(ModelCall(name="tool_search", arguments={"queries": list(queries)}))


def calls(*made: ModelCall) -> ModelReply:
    """Return a reply of calls."""
    return ModelReply(calls=made)


def client_of(server: GeminiServer) -> genai.Client:
    """Return a client of the stand-in."""
    return genai.Client(api_key="key", http_options=types.HttpOptions(base_url=server.base_url))


def ask(server: GeminiServer, steps: list[ModelReply], view: ToolView, contents: list[Any]) -> str:
    """Return the answer to a question of a conversation."""
    server.model = ScriptedModel(steps)
    contents.append(types.Content(role="user", parts=[types.Part(text="Count the words.")]))
    with client_of(server) as client:
        return str(example.ask(client, view, contents))


def responses(contents: list[Any]) -> list[Any]:
    """Return the function responses of a conversation, in order."""
    parts = [part for content in contents for part in content.parts]
    return [p.function_response.response for p in parts if p.function_response]


def test_the_example_counts_in_two_turns_with_one_search(
    gemini: GeminiServer, capsys: pytest.CaptureFixture[str]
) -> None:
    with client_of(gemini) as client:
        example.main(client)
    shown = capsys.readouterr().out
    assert "'words': 6" in shown
    assert "'words': 5" in shown
    assert [len(names) for names in gemini.declared] == [1, 6, 6, 6, 6]


def test_each_list_is_a_prefix_of_the_next_over_three_turns(gemini: GeminiServer) -> None:
    search, contents, found = ToolSearch(TOOLBOX), list[Any](), tuple[str, ...]()
    turn = [searches("count words in a text"), calls(COUNT), DONE]
    for steps in (turn, [searches("convert miles"), DONE], turn[1:]):
        view = search.view(found)
        assert ask(gemini, steps, view, contents) == "Done."
        found = view.found
    assert gemini.declared[0] == ["tool_search"]
    assert "count_words" in gemini.declared[1]
    assert len(gemini.declared) == 7
    assert all(late[: len(early)] == early for early, late in pairwise(gemini.declared))
    assert responses(contents)[-1]["result"]["words"] == 6


@pytest.mark.parametrize(
    ("query", "name"),
    [
        ("统计字数", "count_words"),
        ("подсчитать слова", "count_words"),
        ("emails", "validate_email"),
    ],
)
def test_a_query_in_another_language_and_a_plural_find_their_tool(
    query: str, name: str, gemini: GeminiServer
) -> None:
    view = ToolSearch(TOOLBOX).view()
    ask(gemini, [searches(query), DONE], view, [])
    assert name in gemini.declared[1]


def test_parallel_calls_may_have_searches_among_them(gemini: GeminiServer) -> None:
    many = calls(*searches("count words").calls, *searches("convert miles").calls)
    contents: list[Any] = []
    ask(gemini, [many, calls(COUNT), DONE], ToolSearch(TOOLBOX).view(), contents)
    assert "count_words" in gemini.declared[1]
    assert any("convert" in name for name in gemini.declared[1])
    assert len(responses(contents)) == 3


def test_a_function_that_raises_is_an_error_and_teaches_nothing(gemini: GeminiServer) -> None:
    search = ToolSearch(TOOLBOX)
    view, contents = search.view(), list[Any]()
    wrong = ModelCall(name="count_words", arguments={"txt": 5}, hidden=True)
    ask(gemini, [searches("count words"), calls(wrong), DONE], view, contents)
    assert "TypeError" in responses(contents)[1]["error"]
    assert search.learn_now(view) == 0


async def test_what_was_learned_ranks_first_after_a_restart(
    gemini: GeminiServer, tmp_path: Path
) -> None:
    path = tmp_path / "learned.sqlite"
    used = ModelCall(name="word_frequency", arguments={"text": "a b a"})
    async with SQLiteStore(path) as store:
        search = ToolSearch(TOOLBOX, store=store)
        view = search.view()
        ask(gemini, [searches("words in a text"), calls(used), DONE], view, [])
        assert view.found[0] != "word_frequency"
        assert await search.learn(view) == 1
    async with SQLiteStore(path) as store:
        view = ToolSearch(TOOLBOX, store=store).view()
        ask(gemini, [searches("the words of texts"), DONE], view, [])
    assert view.found[0] == "word_frequency"


@pytest.mark.parametrize(
    ("declared", "error"),
    [
        ([{"name": "a b"}], "Invalid function name"),
        ([{"name": "a"}, {"name": "a"}], "Duplicate function declaration"),
        ([{"name": "a", "parameters_json_schema": {"type": "array"}}], "describe an object"),
    ],
)
def test_the_stand_in_refuses_what_gemini_refuses(
    declared: list[dict[str, Any]], error: str
) -> None:
    functions = [types.FunctionDeclaration(**each) for each in declared]
    with GeminiServer() as server, client_of(server) as client:
        with pytest.raises(errors.ClientError, match=error):
            client.models.generate_content(
                model="gemini-3-flash",
                contents="x",
                config=types.GenerateContentConfig(
                    tools=[types.Tool(function_declarations=functions)]
                ),
            )
        assert len(server.violations) == 1


@pytest.mark.parametrize(
    ("parts", "error"),
    [
        ([{"function_call": {"name": "a"}}], "missing a thought_signature"),
        ([{"function_call": {"name": "a"}, "thought_signature": b"stand-in"}], "number of"),
    ],
)
def test_the_stand_in_refuses_a_history_without_its_parts(parts: list[Any], error: str) -> None:
    user = types.Content(role="user", parts=[types.Part(text="x")])
    called = types.Content(role="model", parts=[types.Part(**part) for part in parts])
    response = types.Part.from_function_response(name="a", response={"result": 1})
    answered = types.Content(role="user", parts=[response, response])
    with GeminiServer() as server, client_of(server) as client:
        with pytest.raises(errors.ClientError, match=error):
            client.models.generate_content(
                model="gemini-3-flash", contents=[user, called, answered]
            )
        assert any(error in violation for violation in server.violations)
