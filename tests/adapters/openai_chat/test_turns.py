"""Messages as Mistral's models take them."""

from __future__ import annotations

import json
import re

from hypothesis import given
from hypothesis import strategies as st

from tests.adapters.contract import plan_of
from tool_search.adapters.openai_chat import wire as openai_chat_wire
from tool_search.adapters.openai_chat.turns import nine_characters
from tool_search.core.messages import Message, ToolCall
from tool_search.providers.profile_choice import profile_for
from tool_search.testing import check_openai_chat

MISTRAL = profile_for("openai_chat", "mistral-large-2512", base_url="https://api.mistral.ai/v1")
IDS = st.sampled_from(["call_1", "D681PevKs", "restored_0123456789abcdef", "функция:0", "x" * 40])


@st.composite
def turns(draw: st.DrawFn) -> list[Message]:
    """Turns with calls, each of which may have ended after its results."""
    said: list[Message] = []
    for number in range(draw(st.integers(1, 4))):
        said.append(Message(role="user", content="Go on."))
        for call in range(draw(st.integers(0, 2))):
            made = ToolCall(id=f"{draw(IDS)}{number}{call}", name="get_weather")
            text = draw(st.sampled_from(["", "I look."]))
            said.append(Message(role="assistant", content=text, tool_calls=(made,)))
            said.append(Message(role="tool", tool_call_id=made.id, name=made.name, content="Sun."))
        if draw(st.booleans()):
            said.append(Message(role="assistant", content="Sunny."))
    return [*said, Message(role="user", content="And now?")]


@given(turns())
def test_any_history_is_taken_by_mistral_and_by_everybody_else(history: list[Message]) -> None:
    plan = plan_of(*history)
    body = openai_chat_wire.to_wire(plan, MISTRAL)
    assert json.loads(openai_chat_wire.encode(plan, MISTRAL)) == body
    assert check_openai_chat(body) is None
    assert check_openai_chat({**body, "model": "gpt-5.4"}) is None
    texts = [m.text for m in history if m.role == "assistant" and m.text]
    sent = [m["content"] for m in body["messages"] if m["role"] == "assistant" and m["content"]]
    assert [text for text in sent if text != "…"] == texts


@given(st.text(max_size=60))
def test_id_is_nine_letters_or_digits(call_id: str) -> None:
    assert re.fullmatch("[a-zA-Z0-9]{9}", nine_characters(call_id))


def test_ids_of_a_long_conversation_stay_apart() -> None:
    ids = {nine_characters(f"call_{number}") for number in range(50_000)}
    assert len(ids) == 50_000


def test_id_of_mistral_s_own_is_kept() -> None:
    assert nine_characters("D681PevKs") == "D681PevKs"
