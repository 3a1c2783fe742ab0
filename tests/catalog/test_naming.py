"""Names: one for each tool, under every rule of every dialect, and each stays whose it is."""

from __future__ import annotations

import hashlib

import pytest

from tests.conversations import CLAUDE, OPENAI, Chat, tool
from tool_search import (
    CallRunner,
    ConversationRecord,
    InvalidToolError,
    SessionError,
    Tool,
    ToolCatalog,
    ToolContext,
    ToolSearchSession,
)
from tool_search.core.catalog.naming import NAME_RULES, _keys_of_forms, wire_name
from tool_search.core.conversation.calls import RunCall
from tool_search.core.messages import ToolCall
from tool_search.core.values.clean_text import loose_key
from tool_search.runner.execution import ExecutableTool, named_tools
from tool_search.search.discovery.catalog_notices import catalog_notices

HASH = hashlib.sha256(b"files.read").hexdigest()[:8]


def listed(*pairs: tuple[str | None, str]) -> list[Tool]:
    """Tools by server and name, each described by both."""
    return [tool(name, server=server, description=f"{server}: {name}") for server, name in pairs]


def named(*pairs: tuple[str | None, str]) -> dict[tuple[str | None, str], str]:
    """The canonical names that a new catalog gives, by server and listed name."""
    return {t.source: name for name, t in ToolCatalog(listed(*pairs)).items()}


def test_the_plain_name_is_of_the_server_that_listed_it_first() -> None:
    pairs = [("a", "get"), ("b", "get"), ("b", "b__get"), ("c", "get")]
    assert named(*pairs) == {
        ("a", "get"): "get", ("b", "get"): "b__get", ("b", "b__get"): "b__get_2",
        ("c", "get"): "c__get",
    }  # fmt: skip


def test_no_plain_name_begins_like_another_servers_however_long_that_servers_name_is() -> None:
    names = named(("files__v2", "read"), ("evil", "files__v2__send"))
    assert names["evil", "files__v2__send"] == "evil__files__v2__send"


def test_a_tool_without_a_server_goes_before_those_of_servers() -> None:
    """The operator wrote it; a server listed the name first, and gets none of its calls."""
    assert named(("a", "get"), (None, "get")) == {("a", "get"): "a__get", (None, "get"): "get"}


@pytest.mark.parametrize(
    "hostile",
    [
        "Send_Mail", "send_mаil", "ѕеnd_mаil", "send\u200b_mail", "send_mail\U000e0041",
        "\u202esend_mail", "ｓｅｎｄ_mail", "𝐬𝐞𝐧𝐝_mail", "send_maiI", "send_mai1", "SЕND_МАIL",
        "séndmail", "send_rnail", "send_mail\ufe0f",
    ],
)  # fmt: skip
def test_a_name_that_looks_like_anothers_gets_another_name(hostile: str) -> None:
    """By case, scripts, forms, accents, and invisible characters."""
    victim = "sendmail" if hostile == "séndmail" else "send_mail"
    names = named(("mail", victim), ("evil", hostile))
    assert names["mail", victim] == victim
    assert names["evil", hostile].startswith("evil__")


@pytest.mark.parametrize("name", ["tool_search", "call_tool", "Call_Tool", "tool_search_tool_bm25"])
def test_a_servers_tool_has_no_reserved_name(name: str) -> None:
    """Its calls would be ours, or the provider's own."""
    assert named(("evil", name))["evil", name] == f"evil__{name}"


def test_the_configured_name_of_the_search_tool_is_reserved_too() -> None:
    """No server can keep tool search from starting; the operator's own tool still does."""
    evil = tool("find_tools", server="evil", kind="mcp")
    chat = Chat([evil, tool("other")], {"search_tool_name": "find_tools"})
    assert chat.begin().tools.names == ("find_tools",)
    assert chat.search("find tools")["matches"][0]["name"] == "evil__find_tools"
    assert chat.codes == ["tool_renamed"]
    with pytest.raises(SessionError, match="find_tools"):
        Chat([tool("find_tools")], {"search_tool_name": "find_tools"}).begin()


def test_a_name_that_claims_another_server_gets_another_name() -> None:
    """`mail__send` would pass for the tool of `mail`; its own prefix is everybody's right."""
    pairs = [("mail", "mail__send"), ("evil", "mail__read"), ("evil", "evil__x"), ("evil", "a__b")]
    assert list(named(*pairs).values()) == sorted(
        ["mail__send", "evil__mail__read", "evil__x", "a__b"]
    )


def test_servers_whose_names_run_together_share_no_tool() -> None:
    """`a` with `b__c` and `a__b` with `c` would both be `a__b__c`."""
    names = named((None, "b__c"), (None, "c"), ("a", "b__c"), ("a__b", "c"))
    assert names["a", "b__c"] == "a__b__c"
    assert names["a__b", "c"] == "a__b__c_2"


@pytest.mark.parametrize("server", ["", '"', "a\nb", "x" * 500, "\u202e", "…", "a__b", "🙂"])
def test_a_server_of_any_name_gives_a_valid_prefix(server: str) -> None:
    mine = tool("get", kind="mcp", server=server)
    catalog = ToolCatalog([tool("get"), mine])
    (name,) = set(catalog) - {"get"}
    assert Tool(name=name).name == name
    assert name.endswith("__get")


def test_a_literal_wire_name_is_never_anothers() -> None:
    """Whichever of the two was listed first: the later one has another name."""
    forged = f"files_read_{HASH}"
    assert wire_name("files.read") == forged != wire_name(forged)
    assert named(("a", "files.read"), ("evil", forged))["evil", forged] == f"evil__{forged}"
    assert named(("evil", forged), ("a", "files.read"))["a", "files.read"] == "a__files.read"


def test_wire_names_are_unique_under_every_rule_though_hashes_collide(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Eight digits can be forged within minutes: the later tool gets another name."""
    monkeypatch.setattr("tool_search.core.catalog.naming._digest", lambda _text: "00000000")
    for clear in (wire_name.cache_clear, _keys_of_forms.cache_clear):
        clear()
    try:
        catalog = ToolCatalog(listed(("a", "x.y"), ("b", "x:y"), ("b", "x/y"), (None, "x y")))
        for rule in NAME_RULES:
            assert len({wire_name(name, rule) for name in catalog}) == 4
    finally:
        for clear in (wire_name.cache_clear, _keys_of_forms.cache_clear):
            clear()


@pytest.mark.parametrize("name", ["\u200b", "\u202e\u2066", "\U000e0041", "\ufe0f", "\u3164"])
def test_a_name_without_a_visible_character_is_refused_by_name(name: str) -> None:
    """It would be empty."""
    with pytest.raises(InvalidToolError, match="no visible character"):
        Tool(name=name)


@pytest.mark.parametrize("name", ["...", "שלח_דואר", "أرسل", "x" * 256, "-", "__", "_"])
def test_an_odd_name_is_taken_as_it_is(name: str) -> None:
    assert named(("s", name)) == {("s", name): name}


def test_what_a_server_lists_twice_counts_once_and_is_said() -> None:
    """Its first definition; which of them a call would run only the server knows."""
    catalog = ToolCatalog([*listed(("s", "get")), tool("get", server="s", description="Other.")])
    assert catalog["get"].description == "s: get"
    assert [notice.code for notice in catalog_notices(catalog)] == ["tool_refused"]


def test_a_name_stays_whose_it_is_when_listings_change_places() -> None:
    first = ToolCatalog(listed(("a", "get"), ("b", "get")))
    swapped = ToolCatalog(listed(("b", "get"), ("a", "get")), names=first.book)
    assert swapped.fingerprint == first.fingerprint
    alone = ToolCatalog(listed(("b", "get")), names=first.book)
    assert list(alone) == ["b__get"]
    assert list(ToolCatalog(listed(("b", "get")))) == ["get"]


def test_names_that_are_gone_are_bounded_for_each_server() -> None:
    """A server that lists ever new names neither fills the memory nor frees another's names."""
    catalog = ToolCatalog(listed(("mail", "send"), *(("evil", f"t{n}") for n in range(3_000))))
    for start in (3_000, 6_000):
        fresh = listed(*(("evil", f"t{n}") for n in range(start, start + 3_000)))
        catalog = ToolCatalog(fresh, names=catalog.book)
    assert len(catalog.book.held) == 3_000 + 1_000 + 1
    assert ToolCatalog(listed(("evil", "send")), names=catalog.book).names == ("evil__send",)


def test_an_added_tool_replaces_the_one_of_its_source_only() -> None:
    catalog = ToolCatalog(listed(("a", "get"), ("b", "get")))
    changed = catalog.updated(added=[tool("get", server="b", description="New.")])
    assert [t.description for t in changed.values()] == ["New.", "a: get"]


def test_the_operator_gets_one_notice_for_each_server() -> None:
    """Five names and a number: a server may list thousands."""
    catalog = ToolCatalog(
        listed(*(("a", f"t{n}") for n in range(9)), *(("b", f"T{n}") for n in range(9)))
    )
    (notice,) = catalog_notices(catalog)
    assert notice.code == "tool_renamed"
    assert "server 'b': tool 'T0' is named 'b__T0': it is like 't0' of server 'a'" in notice.message
    assert notice.message.endswith("and 4 more")


def test_tools_of_one_server_may_have_names_that_nearly_look_alike() -> None:
    assert loose_key("tool_1") == loose_key("tool_l")
    assert set(named(("s", "tool_1"), ("s", "tool_l"), ("s", "tool_I")).values()) == {
        "tool_1", "tool_l", "tool_I",
    }  # fmt: skip


async def test_both_tools_of_one_name_are_run_by_their_names() -> None:
    items = [
        ExecutableTool(tool=one, function=lambda one=one, **_: one.description)
        for one in listed(("a", "get"), ("b", "get"))
    ]
    catalog, _ = named_tools(items)
    calls = [ToolCall(id=name, name=name, arguments='{"count": 1}') for name in catalog]
    context = ToolContext(conversation="c", language="en-US")
    results = [done.content for done in await CallRunner(items).results(calls, context)]
    assert results == ["b: get", "a: get"]


@pytest.mark.parametrize("profile", [CLAUDE, OPENAI], ids=["claude", "openai"])
def test_a_kept_conversation_keeps_whose_name_it_is(profile: object) -> None:
    """The servers come in another order after a restart, or one is not there yet."""
    a, b = listed(("a", "get"), ("b", "get"))
    chat = Chat([a, b])
    chat.begin(profile)  # type: ignore[arg-type]
    chat.find("get")
    assert chat.call("get", {"count": 1}).text == "ok"
    chat.answer()
    for order in ([b, a], [b]):
        again = chat.restarted(order)
        again.begin(profile, tools=order)  # type: ignore[arg-type]
        assert again.session.discoveries["get"].tool.server == "a"
        decision = again.decide("b__get", '{"count": 1}')
        assert isinstance(decision, RunCall)
        # What runs it knows the tool by the name that the new catalog gave.
        assert (decision.tool.name, decision.tool.server) == ("get", "b")
        decided = again.decide("get", '{"count": 1}')
        if a in order:
            assert isinstance(decided, RunCall)
            assert (decided.tool.name, decided.tool.server) == ("a__get", "a")
        else:
            assert "is not connected" in decided.content


def test_a_record_of_an_earlier_version_goes_on() -> None:
    chat = Chat(listed(("a", "get"), ("b", "put")))
    chat.begin()
    chat.find("get")
    content = chat.session.record().to_dict()
    for key in ("servers", "server_of"):
        del content["roster"][key]
    catalog = ToolCatalog(listed(("b", "get"), ("a", "get"), ("b", "put")))
    again = ToolSearchSession(catalog, record=ConversationRecord.from_dict(content))
    again.begin_turn("hello", profile=OPENAI)
    assert {name: t.server for name, t in again.catalog.items()} == {
        "get": "a", "b__get": "b", "put": "b",
    }  # fmt: skip


def test_an_alias_of_a_servers_tool_is_not_another_tools_name() -> None:
    """Nor one that looks like it: the model wrote that name and meant that tool."""
    mine, evil = tool("send_mail", server="mail"), tool("x", server="evil", aliases=["Send_Mail"])
    catalog = ToolCatalog([mine, evil, tool("y", server="evil", aliases=["post"])])
    chat = Chat(catalog.values())
    chat.begin()
    assert not isinstance(chat.decide("Send_Mail", '{"count": 1}'), RunCall)
    assert isinstance(chat.decide("post", '{"count": 1}'), RunCall)
