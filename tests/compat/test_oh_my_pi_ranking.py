"""oh-my-pi's ranking: its words, its description of a tool, its scores."""

from __future__ import annotations

import json
import math
import unicodedata
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tool_search.adapters.compat.oh_my_pi.ranking import (
    discoverable,
    locale_key,
    oh_my_pi_recipe,
    oh_my_pi_tokens,
)
from tool_search.adapters.compat.weighted_bm25 import WeightedBm25Index
from tool_search.core.catalog.tool import Tool


def schema(*keys: str, required: Sequence[str] = ()) -> dict[str, Any]:
    """A schema whose arguments are texts."""
    properties = {key: {"type": "string"} for key in keys}
    return {"type": "object", "properties": properties, "required": list(required)}


def index(*tools: Tool, summaries: Mapping[str, str] | None = None) -> WeightedBm25Index:
    """The tools, ranked as oh-my-pi does."""
    return WeightedBm25Index(tools, oh_my_pi_recipe(summaries))


def scores(built: WeightedBm25Index, query: str) -> list[tuple[str, float]]:
    """Names and scores to six decimals, best first."""
    return [(tool.name, round(score, 6)) for tool, score in built.ranked(query)]


# The checklist in plain steps, one at a time: nothing of it is shared with the engine.


def words_by_steps(text: str) -> list[str]:
    """The words of a text, by one pass over the characters for each rule."""
    chars = [c for c in unicodedata.normalize("NFKD", text) if unicodedata.category(c)[0] != "M"]
    kinds = [unicodedata.category(c) for c in chars]
    spaced = ""
    for place, char in enumerate(chars):
        before = kinds[place - 1] if place else ""
        after = kinds[place + 1] if place + 1 < len(kinds) else ""
        ends_run = before == "Lu" and kinds[place] == "Lu" and after == "Ll"
        ends_word = (before == "Ll" or before.startswith("N")) and kinds[place] == "Lu"
        is_word = kinds[place][0] in "LN"
        spaced += (" " if ends_run or ends_word else "") + (char if is_word else " ")
    return spaced.lower().split()


def scores_by_steps(tools: Sequence[Tool], query: str) -> list[tuple[str, float]]:
    """The formula in its written form, over plain lists."""
    bags = []
    for tool in tools:
        bag: list[str] = []
        keys = sorted(tool.parameters.get("properties", {}))
        parts = [(6, tool.name), (4, tool.title or tool.name), (2, tool.server or "")]
        parts += [(4, tool.name)] if tool.kind == "mcp" else []
        parts += [(2, tool.summary or tool.description[:200]), *((1, key) for key in keys)]
        for weight, text in parts:
            bag += words_by_steps(text) * weight
        bags.append(bag)
    mean = sum(map(len, bags)) / len(bags) or 1
    asked = words_by_steps(query)
    found = []
    for tool, bag in zip(tools, bags, strict=True):
        total = 0.0
        for word in dict.fromkeys(asked):
            tf = bag.count(word)
            if tf:
                df = sum(word in other for other in bags)
                idf = math.log(1 + (len(tools) - df + 0.5) / (df + 0.5))
                norm = 1.2 * (1 - 0.75 + 0.75 * len(bag) / mean)
                total += asked.count(word) * idf * (tf * 2.2 / (tf + norm) + 1.0)
        if total > 0:
            found.append((tool.name, round(total, 6)))
    return sorted(found, key=lambda entry: (-entry[1], locale_key(entry[0])))


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("createGitHubIssue", ["create", "git", "hub", "issue"]),
        ("MCPTool", ["mcp", "tool"]),
        ("fooBar v2Beta", ["foo", "bar", "v2", "beta"]),
        ("IPv4", ["i", "pv4"]),
        ("userIDs", ["user", "i", "ds"]),
        ("JavaScript", ["java", "script"]),
        ("it's", ["it", "s"]),
        ("查找图片", ["查找图片"]),
        ("café ﬁ x² Ⅳ", ["cafe", "fi", "x2", "iv"]),
        ("ＦｕｌｌＷidth", ["full", "width"]),
        ("1st2Nd a1B2 ABCDef", ["1st2", "nd", "a1", "b2", "abc", "def"]),
        ("snake_case-and.dots|│", ["snake", "case", "and", "dots"]),
        ("aΣ Σ ẞX", ["a", "σ", "σ", "ßx"]),
        ("ﷺ", ["صلى", "الله", "عليه", "وسلم"]),
        ("a\u200bb\ud800c", ["a", "b", "c"]),
        ("", []),
        ("!? — 👍", []),
    ],
)
def test_words_are_cut_as_oh_my_pi_cuts_them(text: str, words: list[str]) -> None:
    assert oh_my_pi_tokens(text) == words


@given(st.text(st.characters(codec=None), max_size=40) | st.text("aAbBZ019éÉ_ -Σß", max_size=40))
def test_words_are_those_of_the_rules_taken_one_by_one(text: str) -> None:
    assert oh_my_pi_tokens(text) == words_by_steps(text)


def test_score_is_the_one_worked_out_by_hand() -> None:
    """Name 6, label 4, summary 2: send and mail weigh 12 each, a weighs 2; lengths 26 and 22.

    idf = ln 2; norm = 1.2 (0.25 + 0.75 * 26 / 24) = 1.275; 3 ln 2 (12 * 2.2 / 13.275 + 1).
    """
    built = index(
        Tool(name="send_mail", description="Send a mail"),
        Tool(name="get_weather", description="Weather"),
    )
    assert scores(built, "mail: send mail!") == [("send_mail", 6.214828)]


def test_score_of_an_mcp_tool_worked_out_by_hand() -> None:
    """Create weighs 6 + 4 + 4 in name, label and MCP name, issue 2 more in the summary.

    mcp and github weigh 10 in name and label, github 2 more as server; new, title and
    body 2, 1 and 1: length 14 + 16 + 10 + 12 + 4 = 56, and the mean is the same.
    One tool: idf = ln (1 + 0.5 / 1.5); norm = 1.2; ln(4/3) (14 * 2.2 / 15.2 + 1).
    """
    tool = Tool(
        name="mcp__github_create_issue",
        kind="mcp",
        server="github",
        description="New issue",
        parameters=schema("title", "body"),
    )
    assert scores(index(tool), "create") == [(tool.name, 0.870617)]


def test_repeated_words_of_the_query_count_each_time() -> None:
    built = index(Tool(name="mail"), Tool(name="post"))
    once, twice = scores(built, "mail"), scores(built, "mail MAIL")
    assert twice[0][1] == pytest.approx(2 * once[0][1], abs=2e-6)


def test_equal_scores_go_by_name_as_javascript_sorts() -> None:
    same = [Tool(name=name, title="t", summary="w") for name in ("b1", "B1", "b_1", "b-1", "b0")]
    assert [tool.name for tool, _ in index(*same).ranked("w")] == ["b0", "b1", "B1", "b_1", "b-1"]


@pytest.mark.parametrize("query", ["", "   ", "!? —", "qwzx"])
def test_nothing_asked_or_nothing_known_finds_nothing(query: str) -> None:
    assert index(Tool(name="send_mail")).ranked(query) == ()


def test_an_empty_index_finds_nothing() -> None:
    assert index().ranked("mail") == ()


_WORDS = st.sampled_from(
    ["get", "user", "IDs", "mail", "sendMail", "查找", "café", "v2Beta", "a", "IPv4", "погода"]
)
_TEXTS = st.lists(_WORDS, max_size=5)
_TOOLS = st.lists(
    st.builds(
        lambda name, label, kind, server, text, keys: Tool(
            name="_".join(name),
            title=" ".join(label),
            kind=kind,
            server="".join(server[:1]),
            description=" ".join(text),
            parameters=schema(*keys),
        ),
        st.lists(_WORDS, min_size=1, max_size=3),
        _TEXTS,
        st.sampled_from(["mcp", "builtin", "plugin"]),
        _TEXTS,
        _TEXTS,
        st.lists(_WORDS, max_size=3, unique=True),
    ),
    max_size=8,
    unique_by=lambda tool: tool.name,
)


@settings(max_examples=40)
@given(tools=_TOOLS, query=_TEXTS.map(" ".join))
def test_scores_are_those_of_the_formula_to_six_decimals(tools: list[Tool], query: str) -> None:
    expected = scores_by_steps(tools, query) if tools else []
    assert sorted(scores(index(*tools), query)) == sorted(expected)
    found = index(*tools).ranked(query)
    assert [t.name for t, _ in found] == [
        t.name for t, _ in sorted(found, key=lambda e: (-e.score, locale_key(e.tool.name)))
    ]


def test_scores_of_a_real_catalog_are_those_of_the_formula(shared: Path) -> None:
    folder = shared / "data" / "mcptoolbenchpp"
    lines = (folder / "tools.jsonl").read_text(encoding="utf-8").splitlines()[:150]
    tools = [
        Tool(
            name=entry["name"],
            description=entry.get("description") or "",
            parameters=entry.get("parameters"),
            server=entry.get("server"),
            kind="mcp" if entry.get("server") else "plugin",
        )
        for entry in map(json.loads, lines)
    ]
    queries = (folder / "queries.jsonl").read_text(encoding="utf-8").splitlines()[:10]
    built = index(*tools)
    for query in (json.loads(line)["query"] for line in queries):
        assert scores(built, query) == scores_by_steps(tools, query)


@settings(max_examples=25)
@given(first=_TOOLS, added=_TOOLS, query=_TEXTS.map(" ".join), data=st.data())
def test_updated_ranks_as_a_fresh_build(
    first: list[Tool], added: list[Tool], query: str, data: st.DataObject
) -> None:
    removed = data.draw(st.lists(st.sampled_from(first), max_size=4)) if first else []
    gone = {tool.name for tool in removed}
    kept = {tool.name: tool for tool in first if tool.name not in gone}
    kept.update((tool.name, tool) for tool in added)
    built = index(*first)
    before = built.ranked(query)
    changed = built.updated(added=added, removed=sorted(gone))
    assert changed.ranked(query) == index(*kept.values()).ranked(query)
    assert built.ranked(query) == before
    assert len(changed) == len(kept)


def test_a_tool_is_described_as_oh_my_pi_does() -> None:
    """Label and summary have their defaults; arguments are sorted, with their signatures."""
    tool = Tool(
        name="mcp__github__create_issue",
        description="x" * 300,
        server="github",
        kind="mcp",
        parameters={
            "type": "object",
            "properties": {
                "title": {"type": "string"},
                "state": {"type": "string", "enum": ["open", "closed", 3]},
                "Body": {"type": "string"},
                "many": {"enum": list("abcdefghi")},
                "exactly": {"enum": list("abcdefgh")},
                "number": {"enum": [1, 2]},
            },
            "required": ["title", "state", 4],
        },
    )
    found = discoverable(tool)
    assert (found.label, found.summary, found.source) == (tool.name, "x" * 200, "mcp")
    assert (found.server_name, found.mcp_tool_name) == ("github", "create_issue")
    assert found.schema_keys == ("Body", "exactly", "many", "number", "state", "title")
    assert found.signature == (
        "Body?", "exactly?(a|b|c|d|e|f|g|h)", "many?(a|b|c|d|e|f|g|h|…)", "number?",
        "state(open|closed)", "title",
    )  # fmt: skip


@pytest.mark.parametrize(
    ("name", "fields", "mcp_name"),
    [
        ("mcp__github_create_issue", {"server": "github"}, "create_issue"),
        ("mcp__github__create_issue", {"server": "github"}, "create_issue"),
        ("mcp__git_hub__create_issue", {}, "create_issue"),
        ("create_issue", {"kind": "mcp", "server": "github"}, "create_issue"),
        ("gh_issue", {"kind": "mcp", "annotations": {"mcp_tool_name": "new"}}, "new"),
        ("create_issue", {"kind": "builtin"}, None),
    ],
)
def test_a_tool_has_its_name_on_its_server(
    name: str, fields: dict[str, Any], mcp_name: str | None
) -> None:
    """It is annotated, or else the name without the prefix."""
    assert discoverable(Tool(name=name, **fields)).mcp_tool_name == mcp_name


def test_a_name_that_begins_as_an_mcp_tools_is_one() -> None:
    kinds: Any = ["builtin", "plugin", "handoff", "mcp"]
    sources = [discoverable(Tool(name="t", kind=kind)).source for kind in kinds]
    assert sources == ["builtin", "extension", "custom", "mcp"]
    assert discoverable(Tool(name="mcp__x")).source == "mcp"


def test_a_summary_that_is_given_replaces_the_tools_own() -> None:
    tool = Tool(name="t", description="mail", summary="post")
    assert discoverable(tool).summary == "post"
    assert discoverable(tool, summary="").summary == ""
    assert index(tool, summaries={"t": ""}).ranked("post") == ()
    assert [t.name for t, _ in index(tool, summaries={"t": "fax"}).ranked("fax")] == ["t"]


def test_a_description_is_cut_at_200_utf16_units() -> None:
    assert discoverable(Tool(name="t", description="天" * 300)).summary == "天" * 200
    assert discoverable(Tool(name="t", description="a" + "😀" * 150)).summary == "a" + "😀" * 99


@pytest.mark.parametrize("parameters", [{}, None, {"type": "object"}])
def test_a_tool_without_arguments_has_no_schema_keys(parameters: Any) -> None:
    found = discoverable(Tool(name="t", parameters=parameters))
    assert (found.schema_keys, found.signature) == ((), ())


def test_compounds_and_parts_of_chinese_are_not_found_here() -> None:
    built = index(Tool(name="JavaScript"), Tool(name="查找图片"))
    assert built.ranked("javascript") == built.ranked("图片") == ()
    assert [tool.name for tool, _ in built.ranked("java")] == ["JavaScript"]
