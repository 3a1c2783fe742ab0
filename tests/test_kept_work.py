"""Requests that use the work of earlier ones are the requests that are written anew."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

from hypothesis import given, settings
from hypothesis import strategies as st

from tests.conversations import BOUND, CLAUDE, COMPATIBLE, OPENAI, Chat, tool, toolbox
from tool_search import ImagePart, Message, TextPart, ToolSearchSession, profile_for
from tool_search.adapters import anthropic_wire, openai_chat_wire, openai_responses_wire
from tool_search.kept_work import KeptWork
from tool_search.messages import NativeReply, RequestPlan
from tool_search.profiles import ProviderProfile

_RESPONSES = profile_for("openai_responses", "gpt-5.5")
_PROFILES = {
    "claude": CLAUDE,
    "bound": BOUND,
    "compatible": COMPATIBLE,
    "chat": OPENAI,
    "full list": replace(OPENAI, max_tools=4),
    "reasoning": profile_for("openai_chat", "deepseek-v4-flash"),
    "late": profile_for("openai_chat", "kimi-k3", strategy="late_tools",
                        base_url="https://api.moonshot.ai/v1"),
    "bridge": profile_for("openai_chat", "gpt-5.4", strategy="bridge"),
    "responses": _RESPONSES,
    "additional": profile_for("openai_responses", "gpt-5.2"),
    "kept": replace(_RESPONSES, keeps_replies=True),
}  # fmt: skip
_WIRES: Mapping[str, Callable[[RequestPlan, ProviderProfile], bytes]] = {
    "anthropic": anthropic_wire.encode,
    "openai_chat": openai_chat_wire.encode,
    "openai_responses": openai_responses_wire.encode,
}
_STEPS = st.lists(
    st.tuples(
        st.sampled_from(
            ["turn", "picture", "search", "both", "call", "unknown", "answer", "native", "compact"]
        ),
        st.integers(0, 5),
        st.sampled_from(sorted(_PROFILES)),
        st.booleans(),
    ),
    min_size=1,
    max_size=14,
)


class _Conversation:
    """A conversation that goes through random steps."""

    def __init__(self) -> None:
        self.chat = Chat(toolbox(6, core=1, server="s"))
        self.profile = OPENAI
        self.swaps = False
        self.chat.session.begin_turn("hello", profile=OPENAI)

    def do(self, step: str, number: int) -> None:
        chat, name = self.chat, f"tool_{number:03}"
        if step == "turn":
            chat.session.begin_turn(f"and {number}?", profile=self.profile)
        elif step == "picture":
            parts = (TextPart("see"), ImagePart("data:image/png;base64,AAAA"))
            chat.session.begin_turn(parts, profile=self.profile)
        elif step == "search":
            chat.search(f"common {name}")
        elif step == "both":
            chat.calls(("tool_search", {"query": name}), ("core_000", {"count": 1}))
        elif step == "call":
            chat.call(name, {"count": number})
        elif step == "unknown":
            chat.call(f"unknown_{number}")
        elif step == "answer":
            chat.answer(f"It is {number}.")
        elif step == "native":
            chat.session.accept(self._native(number))
        else:
            chat.session.adopt_history(chat.session.history[-number:])

    def _native(self, number: int) -> Message:
        blocks = {
            "anthropic": {"type": "thinking", "thinking": str(number), "signature": "s"},
            "openai_chat": {"reasoning_content": f"thought {number}"},
            "openai_responses": {"type": "reasoning", "summary": [], "encrypted_content": "e"},
        }
        native = NativeReply(self.profile.origin, (blocks[self.profile.dialect],))
        return Message(role="assistant", content=f"{number} it is.", native=native)


@settings(deadline=None)
@given(_STEPS)
def test_kept_work_changes_no_request(steps: list[tuple[str, int, str, bool]]) -> None:
    """A session that remembers nothing plans and encodes the same."""
    run = _Conversation()
    for step, number, name, swaps in steps:
        run.profile = _PROFILES[name] if swaps else run.profile
        run.do(step, number)
        session = run.chat.session
        fresh = ToolSearchSession(session.catalog, config=run.chat.config, record=session.record())
        fresh.begin_turn("x", profile=run.profile)
        session.begin_turn("x", profile=run.profile)
        plan, anew = session.plan(run.profile), fresh.plan(run.profile)
        assert plan.messages == anew.messages
        encode = _WIRES[run.profile.dialect]
        alone = encode(replace(plan, kept=KeptWork()), run.profile)
        assert encode(plan, run.profile) == alone
        assert encode(plan, run.profile) == alone


def test_messages_that_were_shown_are_the_same_objects() -> None:
    """So that nothing has to be written twice; a changed list shows most of them as before."""
    chat = Chat([*toolbox(4), tool("core", always_load=True)])
    chat.begin(CLAUDE)
    chat.search("tool_001")
    before = chat.session.plan(CLAUDE).messages
    chat.call("tool_002", {"count": 1})
    after = chat.session.plan(CLAUDE).messages
    assert all(old is new for old, new in zip(before, after, strict=False))
