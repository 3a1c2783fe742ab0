"""Whatever servers call their tools: a name is declared once, and runs what was shown."""

from __future__ import annotations

import json
import os
import re
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from tests.security.hostile_names import (
    LISTINGS,
    OWN,
    PROFILES,
    Listing,
    body_of,
    brought,
    declared,
    namespaces,
    tools_of,
)
from tool_search import ConversationRecord, ToolCatalog, ToolSearchConfig, ToolSearchSession
from tool_search.adapters.wire.values import canonical_names
from tool_search.core.catalog import naming
from tool_search.core.catalog.naming import NameBook, NameRule, wire_name
from tool_search.core.conversation.calls import CallResult, RunCall
from tool_search.core.messages import Message, Phase, RequestPlan, ToolCall
from tool_search.core.profiles import ProviderProfile
from tool_search.core.values.clean_text import look_alike_keys
from tool_search.runner.execution import ExecutableTool, named_tools

_LONG = os.environ.get("HYPOTHESIS_PROFILE") == "long"
_ALLOWED = re.compile(r"[a-zA-Z0-9_-]{1,64}")


class World:
    """A bot in one conversation: its catalog, what runs its tools, and what was shown.

    Args:
        mode: Of the conversation.
        listing: The tools that there are at first.
    """

    def __init__(self, mode: str, listing: Listing) -> None:
        self.config = ToolSearchConfig.model_validate({"tool_schema_mode": mode})
        self.names = NameBook()
        self.version = 0
        self.shown: dict[str, str] = {}
        self.calls = 0
        self.list(listing)
        self.session = ToolSearchSession(self.catalog, config=self.config)

    def list(self, listing: Listing) -> None:
        """The servers list these tools, in this order."""
        self.version += 1
        items = [
            ExecutableTool(tool=tool, function=lambda tool=tool, **_: tool.description)
            for tool in tools_of(listing, self.version)
        ]
        self.catalog, named = named_tools(items, names=self.names)
        self.names = self.catalog.book
        # What an executor knows: by name alone.
        self.runs = {item.tool.name: item.function for item in named}

    def restart(self, listing: Listing) -> None:
        """The process ends and begins again, and its servers come in another order."""
        record = ConversationRecord.from_dict(
            json.loads(json.dumps(self.session.record().to_dict()))
        )
        self.names = NameBook()
        self.list(listing)
        self.session = ToolSearchSession(self.catalog, config=self.config, record=record)

    def turn(self, profile: ProviderProfile, wanted: int) -> None:
        """A user turn: a search, a look at the request, and a call of everything in it."""
        self.session.begin_turn("Do it.", profile=profile, catalog=self.catalog)
        self.check(profile)
        mode = self.session.decision.mode
        if mode == "tool_search" and self.session.catalog.deferred:
            deferred = self.session.catalog.deferred
            query = deferred[wanted % len(deferred)].name
            self.call("tool_search", {"query": f"select:{query}"})
            self.check(profile)
        self.session.accept(Message(role="assistant", content="Done."))

    def check(self, profile: ProviderProfile) -> None:
        """No name twice in the request, and each runs what it is shown with."""
        phases: tuple[Phase, ...] = ("answer",)
        if self.session.decision.mode == "skills_like":
            phases = ("select", "detail")
        for phase in phases:
            selected = [*self.session.catalog][:5]
            plan = self.session.plan(profile, phase=phase, selected=selected)
            self.check_request(plan, profile)

    def check_request(self, plan: RequestPlan, profile: ProviderProfile) -> None:
        """The same of one request."""
        body = body_of(plan, profile)
        listed, late = declared(body), brought(body)
        names = [name for name, _ in listed]
        assert len(set(names)) == len(names)
        assert not set(namespaces(body)).intersection(names)
        assert all(map(_ALLOWED.fullmatch, [*names, *namespaces(body)]))
        canonical = canonical_names(plan, profile.name_rule)
        for name, description in {**dict(late), **dict(listed)}.items():
            if name in OWN and not description.startswith(("None", "'")):
                continue
            assert dict(listed).get(name, description) == description
            self.check_call(canonical(name), name, description)

    def check_call(self, canonical: str, name: str, description: str) -> None:
        """A call runs the tool that the model was shown, of the server that it was shown for."""
        source = description.rpartition(" v")[0]
        assert self.shown.setdefault(canonical, source) == source
        for how in (canonical, name):
            decision = self.session.decide(ToolCall(id="x", name=how, arguments='{"n": 1}'))
            inner = {"name": how, "arguments": {"n": 1}}
            through = self.session.decide(
                ToolCall(id="y", name="call_tool", arguments=json.dumps(inner))
            )
            for decided in (decision, through):
                if isinstance(decided, RunCall):
                    assert self.runs[decided.tool.name]() == description
                else:
                    # Its server is gone, and nothing else runs in its place.
                    assert source not in {
                        t.description.rpartition(" v")[0] for t in self.catalog.values()
                    }

    def call(self, name: str, arguments: dict[str, Any]) -> None:
        """The model calls a tool, and its result is taken in."""
        self.calls += 1
        call = ToolCall(id=f"c{self.calls}", name=name, arguments=json.dumps(arguments))
        (made,) = self.session.accept(Message(role="assistant", tool_calls=(call,)))
        decision = self.session.decide(made)
        content = "" if isinstance(decision, RunCall) else decision.content
        self.session.commit([CallResult(decision=decision, content=content)])


_STEPS = st.lists(
    st.tuples(
        st.sampled_from(["list", "restart", "turn", "turn"]),
        LISTINGS,
        st.sampled_from(list(PROFILES)),
        st.integers(0, 99),
    ),
    min_size=1,
    max_size=5,
)


def live(mode: str, first: Listing, steps: list[tuple[str, Listing, str, int]]) -> None:
    """One conversation through listings, restarts and swaps of its provider."""
    world = World(mode, first)
    world.turn(PROFILES["claude"], 0)
    for what, listing, profile, number in steps:
        if what == "restart":
            world.restart([*listing, *reversed(first)])
        elif what == "list":
            world.list([*reversed(first), *listing] if number % 2 else listing)
        world.turn(PROFILES[profile], number)


@settings(max_examples=3_000 if _LONG else 20)
@given(
    mode=st.sampled_from(["tool_search", "tool_search", "full", "skills_like"]),
    first=LISTINGS,
    steps=_STEPS,
)
@example(  # one letter is too short a name for Gemini, which gets another one
    mode="tool_search",
    first=[(None, wire_name("c", NameRule("identifier")), False)],
    steps=[("list", [(None, "c", False)], "gemini", 0)],
)
def test_each_name_is_declared_once_and_runs_what_was_shown(
    mode: str, first: Listing, steps: list[tuple[str, Listing, str, int]]
) -> None:
    live(mode, first, steps)


@settings(max_examples=3_000 if _LONG else 100)
@given(first=LISTINGS, second=LISTINGS)
def test_names_of_a_catalog_differ_whatever_is_listed(first: Listing, second: Listing) -> None:
    before = ToolCatalog(tools_of(first, 1))
    after = ToolCatalog(tools_of(second, 1), names=before.book)
    held = {**{t.source: n for n, t in before.items()}, **{t.source: n for n, t in after.items()}}
    assert len(held) == len({*before, *after})
    for forms in (wire_name, lambda name: wire_name(name, NameRule("identifier"))):
        assert len({forms(name) for name in held.values()}) == len(held)
    keys = [key for name in held.values() for key in look_alike_keys(name)]
    assert len(set(keys)) == len(keys)
    for tool in after.values():
        assert before.by_source.get(tool.source, tool).name == tool.name


def _case(number: int) -> str:
    return "".join(c.upper() if number >> place & 1 else c for place, c in enumerate("sendmailnow"))


@pytest.mark.parametrize("count", [2_000, pytest.param(20_000, marks=pytest.mark.long)])
@pytest.mark.parametrize(
    "hostile",
    [
        _case,
        lambda n: "send" + "\u200b" * (n % 200) + "\U000e0041" * (n // 200 % 50),
        lambda _: "x",
    ],
    ids=["case", "invisible", "one name"],
)
def test_naming_takes_a_bounded_number_of_tries_for_each_tool(
    hostile: Any, count: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """However many tools want one name: time is linear in what is listed."""
    tries = 0
    is_free = naming._NameWriter._is_free

    def counted(*given: Any) -> bool:
        nonlocal tries
        tries += 1
        return is_free(*given)

    monkeypatch.setattr(naming._NameWriter, "_is_free", counted)
    tools = tools_of([(f"s{n % 7}", hostile(n), False) for n in range(count)], 1)
    catalog = ToolCatalog(tools)
    assert len(catalog) == len({tool.source for tool in tools})
    assert tries <= 4 * count
