"""Requests that use the work of earlier ones are the requests that are written anew."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Mapping
from dataclasses import replace
from types import FrameType
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.conversations import BOUND, CLAUDE, COMPATIBLE, OPENAI, Chat, tool, toolbox
from tool_search import (
    ImagePart,
    Message,
    TextPart,
    ToolCatalog,
    ToolSearchSession,
    profile_for,
)
from tool_search.adapters.anthropic import wire as anthropic_wire
from tool_search.adapters.openai_chat import wire as openai_chat_wire
from tool_search.adapters.openai_responses import wire as openai_responses_wire
from tool_search.adapters.openai_responses.wire import KEPT_REPLY, history_digest
from tool_search.adapters.wire.values import canonical_names
from tool_search.core.messages import KeptWork, NativeReply, RequestPlan
from tool_search.core.profiles import ProviderProfile
from tool_search.providers.prompt_cache import PrefixMonitor

_IS_LONG = os.environ.get("HYPOTHESIS_PROFILE") == "long"

_RESPONSES = profile_for("openai_responses", "gpt-5.5")
_PROFILES = {
    "claude": CLAUDE,
    "bound": BOUND,
    "compatible": COMPATIBLE,
    "chat": OPENAI,
    "full list": replace(OPENAI, max_tools=4),
    "reasoning": profile_for("openai_chat", "deepseek-v4-flash"),
    "late": profile_for("openai_chat", "kimi-k3", strategy="tools_in_messages",
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
            ["turn", "picture", "search", "both", "call", "unknown", "grow", "plain",
             "answer", "compact",  "rewrite", "swap"]
        ),
        st.integers(0, 5),
    ),
    min_size=4,
    max_size=24,
)  # fmt: skip
_TOOLS = toolbox(6, core=1, server="s")


def _answer(chat: Chat, profile: ProviderProfile, text: str) -> None:
    """An answer with blocks of the provider's own."""
    thoughts: Mapping[str, Mapping[str, Any]] = {
        "anthropic": {"type": "thinking", "thinking": text, "signature": "s"},
        "openai_chat": {"reasoning_content": text},
        "openai_responses": {"type": "reasoning", "summary": [], "encrypted_content": text},
    }
    blocks = [thoughts[profile.dialect]]
    if profile.dialect == "anthropic":
        blocks.append({"type": "text", "text": text})
    elif profile.dialect == "openai_responses":
        blocks.append({"type": "message", "role": "assistant", "content": text})
    if profile.keeps_replies:
        digest = history_digest(chat.session.plan(profile), profile)
        blocks.append({"type": KEPT_REPLY, "id": f"resp_{text}", "input": digest})
    native = NativeReply(profile.origin, tuple(blocks))
    chat.session.accept(Message(role="assistant", content=text, native=native))


class _Conversation:
    """A conversation that goes through random steps, with one provider and then another."""

    def __init__(self, profile: ProviderProfile, other: ProviderProfile) -> None:
        self.chat = Chat(_TOOLS)
        self.profile, self.other = profile, other
        self.begin("hello")

    def begin(self, content: Any, **more: Any) -> None:
        """A user turn."""
        self.chat.session.begin_turn(content, profile=self.profile, **more)

    def do(self, step: str, number: int) -> None:
        """One step; a number says with what."""
        chat, name = self.chat, f"tool_{number:03}"
        steps: Mapping[str, Callable[[], object]] = {
            "turn": lambda: self.begin(f"and {number}?"),
            "picture": lambda: self.begin((TextPart("see"), ImagePart("data:image/png;base64,AA"))),
            "search": lambda: chat.search(f"common {name}"),
            "both": lambda: chat.calls(
                ("tool_search", {"query": name}), ("core_000", {"count": 1})
            ),
            "call": lambda: chat.call(name, {"count": number}),
            "unknown": lambda: chat.call(f"unknown_{number}"),
            "grow": lambda: self._grow(f"unknown_{number}"),
            "plain": lambda: chat.answer(f"It is {number}."),
            "answer": lambda: _answer(chat, self.profile, f"{number} it is."),
            "compact": lambda: chat.session.adopt_history(chat.session.history[number:]),
            "rewrite": lambda: chat.session.adopt_history(self._rewritten(number)),
            "swap": self._swap,
        }
        steps[step]()

    def _grow(self, name: str) -> None:
        """A tool that was unknown comes, and is found."""
        self.begin("more", catalog=ToolCatalog([*_TOOLS, tool(name)]))
        self.chat.search(f"select:{name}")

    def _swap(self) -> None:
        self.profile, self.other = self.other, self.profile

    def _rewritten(self, number: int) -> list[Message]:
        """The history with a word of it changed."""
        history = list(self.chat.session.history)
        place = number * len(history) // 6
        if history[place].role != "tool":
            history[place] = replace(history[place], content=f"changed {number}", native=None)
        return history


@settings(deadline=None, max_examples=1_000 if _IS_LONG else 30)
@given(_STEPS, st.sampled_from(sorted(_PROFILES)), st.sampled_from(sorted(_PROFILES)))
def test_kept_work_changes_no_request(
    steps: list[tuple[str, int]], first: str, second: str
) -> None:
    run = _Conversation(_PROFILES[first], _PROFILES[second])
    for step, number in steps:
        run.do(step, number)
        session = run.chat.session
        if not session.history or session.history[-1].role == "assistant":
            run.begin("x")
        fresh = ToolSearchSession(session.catalog, config=run.chat.config, record=session.record())
        plan, anew = session.plan(run.profile), fresh.plan(run.profile)
        assert plan.messages == anew.messages
        encode = _WIRES[run.profile.dialect]
        alone = replace(plan, kept=KeptWork())
        for _ in range(2):
            assert encode(plan, run.profile) == encode(alone, run.profile)
        if run.profile.keeps_replies:
            assert history_digest(plan, run.profile) == history_digest(alone, run.profile)


def test_messages_that_were_shown_are_the_same_objects() -> None:
    """Nothing has to be written twice; a changed list shows most of them as before."""
    chat = Chat([*toolbox(4), tool("core", always_load=True)])
    chat.begin(CLAUDE)
    chat.search("tool_001")
    before = chat.session.plan(CLAUDE).messages
    chat.call("tool_002", {"count": 1})
    after = chat.session.plan(CLAUDE).messages
    assert all(old is new for old, new in zip(before, after, strict=False))


def _turn(chat: Chat, profile: ProviderProfile, monitor: PrefixMonitor, number: int) -> None:
    """A user turn with a call; each request is planned, looked at and encoded."""

    def request() -> None:
        plan = chat.session.plan(profile)
        monitor.check("it", profile, plan, history=chat.session.history)
        _WIRES[profile.dialect](plan, profile)

    chat.session.begin_turn(f"and {number}?", profile=profile)
    request()
    chat.call("tool_001", {"count": number}, result="a line of a report " * 20)
    request()
    canonical_names(chat.session.plan(profile), profile.name_rule)("tool_001")
    _answer(chat, profile, f"It is {number}.")
    chat.session.record()


def _calls_of(work: Callable[[], None]) -> int:
    """Return the number of function calls, ours and the interpreter's."""
    count = 0

    def note(frame: FrameType, event: str, argument: object) -> None:
        nonlocal count
        del frame, argument
        count += event in ("call", "c_call")

    before = sys.getprofile()
    sys.setprofile(note)
    try:
        work()
    finally:
        sys.setprofile(before)
    return count


@pytest.mark.parametrize("name", sorted(_PROFILES))
@pytest.mark.parametrize("discovers", [False, True], ids=["plain", "discovering"])
def test_late_turn_works_no_more_than_an_early_one(name: str, *, discovers: bool) -> None:
    """Counted in calls, since a time says little on a busy machine."""
    chat, profile, monitor = Chat(toolbox(5, core=1)), _PROFILES[name], PrefixMonitor()

    def calls(number: int, found: str) -> int:
        """Return how many calls a turn takes, after its discovery if turns discover."""
        if not discovers:
            return _calls_of(lambda: _turn(chat, profile, monitor, number))
        chat.find(found)
        return _calls_of(lambda: _turn(chat, profile, monitor, number))

    for number in range(5):
        _turn(chat, profile, monitor, number)
    early = calls(5, "tool_002")
    for number in range(6, 60):
        _turn(chat, profile, monitor, number)
    assert calls(60, "tool_003") <= 1.1 * early
