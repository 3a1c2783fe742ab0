"""Histories of any making: read without an error, and sent on without a broken rule."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.adapters.recorded.traffic import IMPORTERS, WRITERS
from tests.conversations import CLAUDE, OPENAI, Chat, toolbox
from tool_search.core.conversation.history import checked
from tool_search.core.profiles import ProviderProfile
from tool_search.providers.profile_choice import profile_for
from tool_search.testing import check_request

RESPONSES = profile_for("openai_responses", "gpt-5.4")
ODD = st.sampled_from(
    [None, True, 0, 7, 1.5, "", " ", "x", "a", "b", "tool_001", [], ["x"], {}, {"x": 1}, [None],
     "\ud800"]
)  # fmt: skip
IDS = st.one_of(st.sampled_from(["a", "b", "srvtoolu_1", "call_0"]), ODD)
NAMES = st.one_of(st.sampled_from(["tool_001", "tool_search", "tool_search_tool_bm25"]), ODD)
TEXTS = st.one_of(st.sampled_from(["Hi.", '{"query":"q","matches":[{"name":"tool_001"}]}']), ODD)


def objects(kinds: list[str], **fields: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    """Objects of these types with any of these fields, now and then none at all."""
    kind = st.one_of(st.sampled_from(kinds), ODD)
    return st.one_of(st.fixed_dictionaries({"type": kind}, optional=fields), ODD)


REFERENCES = st.lists(objects(["tool_reference"], tool_name=NAMES, name=NAMES), max_size=2)
SOURCES = objects(
    ["base64", "url", "file", "text", "content"], data=TEXTS, url=TEXTS, content=TEXTS
)
BLOCKS = objects(
    ["text", "tool_use", "tool_result", "server_tool_use", "tool_search_tool_result", "thinking",
     "document", "search_result", "image", "compaction", "tool_addition", "web_search_tool_result"],
    text=TEXTS, id=IDS, tool_use_id=IDS, name=NAMES, input=TEXTS, source=SOURCES, title=TEXTS,
    content=st.one_of(TEXTS, REFERENCES, st.fixed_dictionaries({"tool_references": REFERENCES})),
    tool=st.fixed_dictionaries({"name": NAMES}), is_error=ODD,
)  # fmt: skip
PARTS = objects(
    ["text", "refusal", "image_url", "input_audio", "file", "input_text", "output_text",
     "input_image", "input_file"],
    text=TEXTS, image_url=TEXTS, file=st.fixed_dictionaries({"filename": TEXTS}), filename=TEXTS,
)  # fmt: skip
FUNCTIONS = st.one_of(st.fixed_dictionaries({"name": NAMES, "arguments": TEXTS}), ODD)
CALLS = objects(["function", "custom"], id=IDS, function=FUNCTIONS, custom=FUNCTIONS)
ROLES = st.one_of(st.sampled_from(["user", "assistant", "tool", "function", "system"]), ODD)
TOOLS = st.one_of(
    st.lists(objects(["function", "namespace"], name=NAMES, function=FUNCTIONS), max_size=2), ODD
)
MESSAGES: dict[str, st.SearchStrategy[Any]] = {
    "anthropic": st.one_of(
        st.fixed_dictionaries(
            {"role": ROLES, "content": st.one_of(TEXTS, st.lists(BLOCKS, max_size=4))}
        ),
        ODD,
    ),
    "openai_chat": st.one_of(
        st.fixed_dictionaries(
            {"role": ROLES, "content": st.one_of(TEXTS, st.lists(PARTS, max_size=3))},
            optional={
                "tool_calls": st.one_of(st.lists(CALLS, max_size=3), ODD),
                "tool_call_id": IDS, "name": NAMES, "function_call": FUNCTIONS, "tools": TOOLS,
                "reasoning_content": TEXTS, "reasoning_details": TEXTS, "refusal": TEXTS,
            },
        ),
        ODD,
    ),
    "openai_responses": objects(
        ["message", "function_call", "function_call_output", "tool_search_call", "reasoning",
         "tool_search_output", "additional_tools", "custom_tool_call", "web_search_call"],
        role=ROLES, content=st.one_of(TEXTS, st.lists(PARTS, max_size=2)), id=IDS, call_id=IDS,
        name=NAMES, arguments=TEXTS, output=TEXTS, tools=TOOLS, phase=TEXTS,
        execution=st.one_of(st.sampled_from(["client", "server"]), ODD),
        encrypted_content=TEXTS, summary=ODD, input=TEXTS,
    ),
}  # fmt: skip


@pytest.mark.parametrize(
    ("dialect", "profile"),
    [("anthropic", CLAUDE), ("openai_chat", OPENAI), ("openai_responses", RESPONSES)],
)
@settings(max_examples=60)
@given(data=st.data(), is_bound=st.booleans())
def test_any_history_is_read_and_goes_on(
    dialect: str, profile: ProviderProfile, data: st.DataObject, is_bound: bool
) -> None:
    messages = data.draw(st.lists(MESSAGES[dialect], max_size=6))
    origin = profile.origin if is_bound else ""
    history = IMPORTERS[dialect].history_from_wire(messages, origin=origin)
    assert checked(history) == history
    chat = Chat(toolbox(4))
    chat.session.adopt_history(history)
    for target in (profile, CLAUDE if profile is OPENAI else OPENAI):
        chat.begin(target)
        body = WRITERS[target.dialect].to_wire(chat.session.plan(target), target)
        # Blocks of one's own go back as they are: what spoilt them is not ours to mend.
        if target.origin != origin:
            assert check_request(target.dialect, body) is None
        chat.answer()
    answered = Counter(m.tool_call_id for m in chat.session.history if m.role == "tool")
    assert answered == Counter(c.id for m in chat.session.history for c in m.tool_calls)


@pytest.mark.parametrize("data", [None, "", "x", "%%%"])
def test_picture_without_bytes_is_named_and_not_sent(data: str | None) -> None:
    picture = {"type": "image", "source": {"type": "base64", "data": data}}
    history = IMPORTERS["anthropic"].history_from_wire([{"role": "user", "content": [picture]}])
    assert history[0].content == "[picture]"
    chat = Chat(toolbox(4))
    chat.session.adopt_history(history)
    for target in (CLAUDE, OPENAI):
        chat.begin(target)
        body = WRITERS[target.dialect].to_wire(chat.session.plan(target), target)
        assert check_request(target.dialect, body) is None
        chat.answer()
