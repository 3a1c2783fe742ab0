"""`tool-search search` and `eval` with `--preset`, and the block that oh-my-pi shows."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from rich.cells import cell_len

from tests.cli.conftest import Command, as_lines
from tool_search.adapters.compat.oh_my_pi.surface import (
    DiscoveryAnswer,
    DiscoveryDetails,
    DiscoveryMatch,
)
from tool_search.adapters.compat.oh_my_pi.terminal import discovery_block

COUNT_ISSUES = [
    {"name": f"issue_{number}", "description": "Works on an issue."} for number in range(7)
]


def match(**fields: Any) -> DiscoveryMatch:
    """Return a match of one name."""
    usual = {"name": "t", "label": "t", "description": "d", "score": 1.0}
    return DiscoveryMatch(**{**usual, "schema_keys": (), "signature": (), **fields})


def shown(*matches: DiscoveryMatch, total: int = 9, expanded: bool = False) -> list[str]:
    """Return the lines of a search that found these."""
    details = DiscoveryDetails(
        query="q",
        limit=8,
        total_tools=total,
        activated_tools=(),
        active_selected_tools=("a", "b"),
        tools=matches,
    )
    answer = DiscoveryAnswer(content="", details=details)
    return discovery_block(answer, expanded=expanded).plain.split("\n")


def test_block_has_the_counts_and_two_lines_a_match() -> None:
    lines = shown(match(label="Create issue", server_name="github", score=4.56789))
    assert lines == [
        "⌕ Tool Discovery: q · 1 match · 2 active · 9 total · limit:8",
        "• Create issue github · score 4.568",
        "  d",
    ]


def test_block_rounds_a_half_up() -> None:
    assert shown(match(score=0.0625))[1].endswith("score 0.063")


@pytest.mark.parametrize(
    ("count", "expanded", "bullets", "last"),
    [(5, False, 5, "  d"), (6, False, 5, "… 1 more tool"), (8, False, 5, "… 3 more tools"),
     (8, True, 8, "  d")],
)  # fmt: skip
def test_block_shows_five_matches_unless_expanded(
    count: int, expanded: bool, bullets: int, last: str
) -> None:
    lines = shown(*[match()] * count, expanded=expanded)
    assert sum(line.startswith("•") for line in lines) == bullets
    assert lines[-1] == last


@pytest.mark.parametrize("text", ["x" * 200, "查找图片" * 60, "a" + "查" * 100])
def test_block_cuts_at_72_and_96_cells(text: str) -> None:
    lines = shown(match(label=text, description=text))
    label = lines[1].removeprefix("• ").partition(" score")[0].rstrip()
    assert 70 <= cell_len(label) <= 72
    assert 94 <= cell_len(lines[2].removeprefix("  ").rstrip()) <= 96
    assert "…" in label


def test_block_cleans_what_servers_wrote() -> None:
    loud = "a\tb\n\x1b[31mc\u202e [red]d[/]"
    lines = shown(match(label=loud, description=loud, server_name=loud))
    assert len(lines) == 3
    assert lines[2] == "  a b [31mc [red]d[/]"
    assert not {"\t", "\x1b", "\u202e"} & set("".join(lines))


def test_block_leaves_an_empty_description_out() -> None:
    assert len(shown(match(description=""))) == 2


@pytest.mark.parametrize(
    ("total", "message"),
    [(0, "No discoverable tools are currently loaded."), (3, "No matching tools found.")],
)
def test_block_says_why_there_is_no_match(total: int, message: str) -> None:
    lines = shown(total=total)
    assert lines[1:] == [message]
    assert "0 matches" in lines[0]


def test_block_of_an_error_is_a_warning_with_its_text() -> None:
    block = discovery_block(DiscoveryAnswer.error("first\tline\nsecond"))
    assert block.plain == "⚠ Tool Discovery\nfirst line\nsecond"


@pytest.fixture
def issues(write: Callable[[str, str], Path]) -> Path:
    """Return seven tools that one word finds."""
    return write("issues.jsonl", as_lines(COUNT_ISSUES))


def test_search_with_oh_my_pis_preset_shows_its_block(command: Command, issues: Path) -> None:
    options = ("--catalog", issues, "--preset", "oh_my_pi")
    lines = command("search", *options, "--query", "issue").out.splitlines()
    assert lines[0] == "⌕ Tool Discovery: issue · 7 matches · 0 active · 7 total · limit:8"
    assert lines[-2:] == ["… 2 more tools", ""]
    nothing = command("search", *options, "--query", "??").out.splitlines()
    assert nothing[1] == "Query must contain at least one letter or number."
    assert command("search", *options, "--query", " ").out.splitlines()[1] == (
        "Query is required and must not be empty."
    )


def test_search_json_of_a_preset_has_raw_scores_too(command: Command, issues: Path) -> None:
    """With six decimals, in addition to the score of every engine.

    Each tool has length 28: ln(16/15) (12 * 2.2 / 13.2 + 1) + ln(16/3) (10 * 2.2 / 11.2 + 1).
    """
    options = ("--catalog", issues, "--query", "issue 3", "--preset", "oh-my-pi", "--json")
    first = command("search", *options).json["matches"][0]
    assert list(first) == ["name", "score", "raw_score"]
    assert first["name"] == "issue_3"
    assert first["raw_score"] == 5.15576


@pytest.mark.parametrize("preset", ["tooldiscovery", "astrbot"])
def test_search_with_another_preset_shows_the_table(
    command: Command, catalog: Path, preset: str
) -> None:
    out = command("search", "--catalog", catalog, "--query", "mail", "--preset", preset).out
    assert "send_mail" in out
    assert "1 of 1 found, 5 searched" in out


def test_search_and_eval_refuse_a_preset_with_another_engine(
    command: Command, catalog: Path, write: Callable[[str, str], Path]
) -> None:
    queries = write("q.jsonl", '{"query": "mail", "relevant": ["send_mail"]}\n')
    chosen = ("--preset", "oh-my-pi", "--engine", "lexical")
    for options in (("search", "--query", "mail"), ("eval", "--queries", queries)):
        outcome = command(*options, "--catalog", catalog, *chosen)
        assert outcome.status == 2
        assert "preset 'oh-my-pi' and engine 'lexical'" in outcome.err


def test_an_unknown_preset_is_wrong_use(command: Command, catalog: Path) -> None:
    outcome = command("search", "--catalog", catalog, "--query", "a", "--preset", "google")
    assert outcome.status == 2
    assert "--preset 'google' must be one of oh-my-pi, tooldiscovery, astrbot" in outcome.err


def test_eval_measures_a_preset(
    command: Command, catalog: Path, write: Callable[[str, str], Path]
) -> None:
    queries = write("q.jsonl", '{"query": "mail", "relevant": ["send_mail"]}\n')
    options = ("--catalog", catalog, "--queries", queries, "--preset", "oh-my-pi", "--json")
    assert command("eval", *options).json["recall@5"] == 1.0
