"""What a client of a gateway is shown, before and after its searches."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tool_search import Tool, ToolSearch, ToolSearchConfig
from tool_search.serving.gateway import ExposedTools, ExposureSettings, GatewayNames
from tool_search.serving.gateway.exposure import ExposureMode, OfferedTool

SERVERS = ("github", "chat", "mail")


def offered(*names: str) -> tuple[OfferedTool, ...]:
    """Tools by their names at the gateway."""
    return tuple(
        OfferedTool(name, *name.split("___", 1)) if "___" in name else OfferedTool(name)
        for name in names
    )


# In the order of the file: github, chat, mail.
TOOLS = offered(
    "github___merge", "github___issue", "chat___send", "chat___list", "mail___send", "mail___read"
)
NAMES = [tool.name for tool in TOOLS]


def settings(limit: int = 3, **more: object) -> ExposureSettings:
    """Settings with a small limit."""
    return ExposureSettings(max_tools_limit=limit, **more)  # type: ignore[arg-type]


def test_more_tools_than_the_limit_are_searched_and_the_first_are_shown() -> None:
    shown = ExposedTools(settings(), TOOLS)
    assert shown.listed == ("github___issue", "github___merge", "chat___list")
    assert (shown.hidden, shown.has_search, shown.has_call_tool) == (3, True, False)


@pytest.mark.parametrize(
    "chosen",
    [settings(6), settings(7), settings(0), settings(enabled=False), settings(6, fill=False)],
)
def test_otherwise_everything_is_shown_and_nothing_is_searched(chosen: ExposureSettings) -> None:
    shown = ExposedTools(chosen, TOOLS)
    assert sorted(shown.listed) == sorted(NAMES)
    assert (shown.hidden, shown.has_search, shown.has_call_tool) == (0, False, False)
    assert not shown.take_hits(NAMES[-1:])
    assert not ExposedTools(chosen, TOOLS, can_follow=False).has_call_tool


@pytest.mark.parametrize(
    ("order", "listed"),
    [
        (["server_priority"], ["github___issue", "github___merge", "chat___list"]),
        (["alphabetical"], ["chat___list", "chat___send", "github___issue"]),
        (["random"], ["mail___read", "mail___send", "chat___list"]),
        (["random", "server_priority"], ["mail___read", "mail___send", "chat___list"]),
        (["server_priority", "random"], ["github___issue", "github___merge", "chat___list"]),
        ([], ["github___issue", "github___merge", "chat___list"]),
    ],
)
def test_the_order_chooses_what_fills_the_list(order: list[str], listed: list[str]) -> None:
    draws = [0.1, 0.2, 0.3, 0.35, 0.5, 0.6]
    shown = ExposedTools(settings(order=order), TOOLS, draw=draws.pop)
    assert list(shown.listed) == listed
    assert len(draws) == (0 if "random" in order else 6)


def test_a_random_order_is_drawn_once_a_session() -> None:
    shown = ExposedTools(settings(order=["random"]), TOOLS)
    first = shown.listed
    assert not shown.replace(TOOLS[::-1])
    assert shown.listed == first
    many = {ExposedTools(settings(order=["random"]), TOOLS).listed for _ in range(200)}
    assert len(many) > 20


def test_an_unknown_order_is_passed_over_and_logged(caplog: pytest.LogCaptureFixture) -> None:
    shown = ExposedTools(settings(order=["usage_frequency", "alphabetical"]), TOOLS)
    assert shown.listed[0] == "chat___list"
    assert "'usage_frequency' unknown and passed over" in caplog.text


@pytest.mark.parametrize(
    ("mode", "lists"),
    [
        ("add", [["mail___read"], ["mail___read", "chat___send", "github___issue"]]),
        ("replace", [["mail___read"], ["chat___send", "github___issue"]]),
        ("keep", [
            ["github___issue", "github___merge", "chat___list", "mail___read"],
            ["github___issue", "github___merge", "chat___list", "mail___read", "chat___send"],
        ]),
    ],
)  # fmt: skip
def test_a_search_with_hits_changes_the_list(mode: ExposureMode, lists: list[list[str]]) -> None:
    shown = ExposedTools(settings(mode=mode), TOOLS)
    assert shown.take_hits(["mail___read"])
    assert list(shown.listed) == lists[0]
    assert shown.take_hits(["chat___send", "github___issue"])
    assert list(shown.listed) == lists[1]
    assert shown.hidden == 6 - len(lists[1])


def test_a_search_without_hits_changes_nothing() -> None:
    shown = ExposedTools(settings(mode="replace"), TOOLS)
    before = shown.listed
    assert not shown.take_hits([])
    assert not shown.take_hits(["unknown", "git___hidden"])
    assert shown.listed == before
    assert shown.take_hits(["mail___read"])
    assert not shown.take_hits(["mail___read"])


def test_a_search_gives_no_more_hits_than_either_limit() -> None:
    shown = ExposedTools(settings(3, max_results=10), TOOLS)
    shown.take_hits(NAMES)
    assert list(shown.listed) == NAMES[:3]
    shown = ExposedTools(settings(3, max_results=2), TOOLS)
    shown.take_hits(NAMES)
    assert list(shown.listed) == NAMES[:2]


def test_without_filling_the_core_and_call_tool_are_shown() -> None:
    chosen = settings(fill=False, always_loaded=["mail:*", "*___issue", "merge"])
    shown = ExposedTools(chosen, TOOLS)
    core = ["github___issue", "github___merge", "mail___read", "mail___send"]
    assert list(shown.listed) == core
    assert (shown.hidden, shown.has_search, shown.has_call_tool) == (2, True, True)
    shown.take_hits(["chat___send", "mail___send"])
    assert list(shown.listed) == [*core, "chat___send"]


def test_the_core_is_shown_before_what_fills_the_list_and_stays() -> None:
    shown = ExposedTools(settings(2, always_loaded=["mail___send"]), TOOLS)
    assert shown.listed == ("mail___send", "github___issue")
    shown.take_hits(["chat___list"])
    assert shown.listed == ("mail___send", "chat___list")


def test_a_client_that_cannot_follow_has_one_list_and_call_tool() -> None:
    shown = ExposedTools(settings(), TOOLS, can_follow=False)
    before = shown.listed
    assert not shown.take_hits(["mail___read"])
    assert shown.listed == before
    assert shown.has_call_tool


def test_servers_that_come_and_go_change_the_list_and_keep_what_was_found() -> None:
    shown = ExposedTools(settings(), TOOLS)
    shown.take_hits(["mail___read", "chat___list"])
    assert shown.replace([tool for tool in TOOLS if tool.server != "mail"])
    assert list(shown.listed) == ["chat___list"]
    assert not shown.replace([tool for tool in TOOLS if tool.server != "mail"])
    assert shown.replace(TOOLS)
    assert list(shown.listed) == ["mail___read", "chat___list"]
    assert shown.replace(TOOLS[:3])  # no more than the limit: nothing to search
    assert (len(shown.listed), shown.has_search) == (3, False)


def test_a_change_of_the_number_alone_is_a_change() -> None:
    shown = ExposedTools(settings(), TOOLS)
    assert shown.replace([*TOOLS, *offered("zoo___feed")])
    assert shown.hidden == 4


_HITS = st.lists(st.lists(st.sampled_from([*NAMES, "unknown"]), max_size=7), max_size=6)


@given(
    hits=_HITS, mode=st.sampled_from(["add", "replace", "keep"]), limit=st.integers(0, 8),
    fill=st.booleans(), present=st.lists(st.sets(st.sampled_from(SERVERS)), max_size=6),
)  # fmt: skip
def test_a_list_has_known_tools_once_and_says_how_many_are_hidden(
    hits: list[list[str]], mode: str, limit: int, fill: bool, present: list[set[str]]
) -> None:
    shown = ExposedTools(settings(limit, mode=mode, fill=fill), TOOLS)
    tools = TOOLS
    for step, found in enumerate(hits):
        before = shown.listed, shown.hidden
        if step < len(present):
            tools = tuple(tool for tool in TOOLS if tool.server in present[step])
            changed = shown.replace(tools)
        else:
            changed = shown.take_hits(found)
            if mode == "keep" and shown.has_search:
                assert shown.listed[: len(before[0])] == before[0]
        assert changed or (shown.listed, shown.hidden) == before
        assert len(set(shown.listed)) == len(shown.listed)
        assert set(shown.listed) <= {tool.name for tool in tools}
        assert shown.hidden == len(tools) - len(shown.listed)
        assert shown.has_search == (0 < limit < len(tools))


def test_two_clients_have_searches_of_their_own() -> None:
    tools = [
        Tool(name=name, server=server, kind="mcp", description=f"{name} {server}")
        for server, name in (tool.name.split("___") for tool in TOOLS)
    ]
    names = GatewayNames.of(tools)
    search = ToolSearch(tools, ToolSearchConfig(tool_schema_mode="tool_search"))
    by_source = {tool.source: name for name, tool in names.shown.items()}
    known = {tool.name: by_source[tool.source] for tool in search.catalog.values()}
    lists = []
    for query in ("read mail", "list chat"):
        view, shown = search.view(), ExposedTools(settings(), TOOLS)
        found = view.search({"query": query})
        shown.take_hits(known[name] for name in found.names)
        lists.append(shown.listed[0])
    assert lists == ["mail___read", "chat___list"]


def test_new_sessions_share_an_order_and_nothing_else() -> None:
    model = ExposedTools(settings(), TOOLS)
    one, other = model.fresh(), model.fresh()
    one.take_hits(["mail___read"])
    assert one.listed == ("mail___read",)
    assert other.listed == model.listed == model.fresh().listed
    other.take_hits(["chat___send"])
    assert (one.listed, other.listed) == (("mail___read",), ("chat___send",))
    drawn = ExposedTools(settings(order=["random"]), TOOLS)
    assert len({drawn.fresh().listed for _ in range(100)}) > 10
