"""The votes of answered queries, over any engine."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.search.registry import WITH_LANGUAGE
from tool_search import SearchSettings, Tool, ToolSearchIndex, build_index
from tool_search.search.learned import (
    HALF_LIFE_S,
    Evidence,
    LearnedQueries,
    definition_sketch,
    evidence_of,
    merge_evidence,
    with_votes,
)

NOW = 2.0e9
TOOLS = (
    Tool(name="get_forecast", description="Weather forecast of a city."),
    Tool(name="send_mail", description="Send an e-mail to somebody."),
    Tool(name="read_mail", description="Read the newest e-mails."),
    Tool(name="convert_money", description="Convert money between currencies."),
    Tool(name="find_route", description="The way from one place to another."),
)
BY_NAME = {tool.name: tool for tool in TOOLS}
NAMES = list(BY_NAME)
QUERY_WORDS = ["weather", "mail", "umbrella", "rain", "cash", "trip", "天气", "邮件", "send_mail"]
QUERIES = st.lists(st.sampled_from(QUERY_WORDS), min_size=1, max_size=4).map(" ".join)
ANSWERS = st.lists(st.tuples(QUERIES, st.sampled_from(NAMES)), max_size=12)


def answered(*answers: tuple[str, str], at: float = NOW) -> list[Evidence]:
    """Evidence that these queries led to these tools, once each."""
    entries = [entry for query, tool in answers for entry in evidence_of(query, tool, now=at)]
    return list({entry.key: entry for entry in entries}.values())


def taught(*answers: tuple[str, str], engine: str = "bm25", at: float = NOW) -> ToolSearchIndex:
    """An index that has learned these answers."""
    index = build_index(TOOLS, SearchSettings(engine=engine))
    return with_votes(index, LearnedQueries(answered(*answers, at=at)).at(NOW))


def names(index: ToolSearchIndex, query: str, *, limit: int = 5) -> list[str]:
    """The names that a search finds."""
    return [match.name for match in index.search(query, limit=limit).matches]


@pytest.mark.parametrize("engine", WITH_LANGUAGE)
def test_words_that_no_tool_has_find_what_they_led_to(engine: str) -> None:
    assert names(taught(engine=engine), "umbrella tomorrow") == []
    index = taught(("do I need an umbrella", "get_forecast"), engine=engine)
    assert names(index, "umbrella tomorrow") == ["get_forecast"]


@pytest.mark.parametrize(
    ("asked", "again"),
    [("北京的天气", "上海天气怎么样"), ("какая погода в Москве", "погода на завтра")],
)
def test_one_request_in_another_language_finds_an_english_tool(asked: str, again: str) -> None:
    assert names(taught(), again) == []
    assert names(taught((asked, "get_forecast")), again) == ["get_forecast"]


def test_evidence_decides_between_tools_that_fit_alike() -> None:
    assert names(taught(), "mail")[0] == "send_mail"
    assert names(taught(("is there mail", "read_mail")), "mail")[0] == "read_mail"


def test_unlike_queries_change_nothing() -> None:
    plain, index = taught(), taught(("umbrella", "get_forecast"))
    assert index.search("money", limit=5) == plain.search("money", limit=5)


@settings(max_examples=50)
@given(ANSWERS, st.sampled_from(NAMES))
def test_an_exact_name_is_never_pushed_down(answers: list[tuple[str, str]], name: str) -> None:
    for query in (name, name.upper(), f"  {name} "):
        first = taught(*answers).search(query, limit=5).matches[0]
        assert (first.name, first.score) == (name, 1.0)


@settings(max_examples=50)
@given(ANSWERS, QUERIES)
def test_what_was_found_is_still_found(answers: list[tuple[str, str]], query: str) -> None:
    before = taught().search(query, limit=5)
    after = taught(*answers).search(query, limit=5)
    assert {match.name for match in before.matches} <= {match.name for match in after.matches}
    assert after.total_found >= before.total_found
    assert (after.total_tools, after.unmatched) == (before.total_tools, before.unmatched)
    scores = {match.name: match.score for match in after.matches}
    assert all(scores[match.name] >= match.score for match in before.matches)


@settings(max_examples=50)
@given(ANSWERS, QUERIES, st.sets(st.sampled_from(NAMES)))
def test_tools_a_caller_may_not_call_are_as_if_they_had_never_answered(
    answers: list[tuple[str, str]], query: str, closed: set[str]
) -> None:
    """This holds for matches, counts and scores, except for the rarity of words."""

    def allowed(name: str) -> bool:
        return name not in closed

    found = taught(*answers).search(query, limit=5, allowed=allowed)
    assert closed.isdisjoint(match.name for match in found.matches)
    assert found.total_tools == len(NAMES) - len(closed)
    assert found.total_found <= found.total_tools
    votes = LearnedQueries(answered(*answers)).votes(
        query, now=NOW, find=lambda name: BY_NAME[name] if allowed(name) else None
    )
    assert closed.isdisjoint(votes)


@settings(max_examples=50)
@given(ANSWERS, QUERIES, st.randoms(use_true_random=False))
def test_the_order_of_the_evidence_changes_nothing(
    answers: list[tuple[str, str]], query: str, chance: random.Random
) -> None:
    entries = answered(*answers)
    mixed = chance.sample(entries, len(entries))
    first, second = (LearnedQueries(each) for each in (entries, mixed))
    find = BY_NAME.get
    assert first.votes(query, now=NOW, find=find) == second.votes(query, now=NOW, find=find)


@settings(max_examples=50)
@given(ANSWERS, QUERIES)
def test_votes_are_bounded(answers: list[tuple[str, str]], query: str) -> None:
    strong = [
        Evidence(tool=entry.tool, words=entry.words, at=NOW, strength=4.0)
        for entry in answered(*answers)
    ]
    votes = LearnedQueries(strong).votes(query, now=NOW, find=BY_NAME.get)
    assert all(0 < vote < 2.5 for vote in votes.values())


def by(source: str, *answers: tuple[str, str]) -> list[Evidence]:
    """Evidence of one source."""
    return [replace(entry, source=source) for entry in answered(*answers)]


def ranked(entries: list[Evidence], query: str, *, source: str = "") -> list[str]:
    """The names that a user's search finds."""
    index = build_index(TOOLS, SearchSettings(engine="bm25"))
    return names(with_votes(index, LearnedQueries(entries).at(NOW, source)), query)


def test_one_user_cannot_put_a_tool_before_a_match_by_words_for_others() -> None:
    lies = by("liar", *((f"is {word} mail", "read_mail") for word in ("there", "rain", "cash")))
    assert ranked(lies, "mail", source="liar") == ["read_mail", "send_mail"]
    for other in ("ann", ""):
        assert ranked(lies, "mail", source=other) == ["send_mail", "read_mail"]


def test_one_users_vote_for_the_best_match_by_words_does_not_lower_its_score() -> None:
    plain = build_index(TOOLS, SearchSettings(engine="bm25"))
    entries = by("ann", ("mail", "send_mail"))
    voted = with_votes(plain, LearnedQueries(entries).at(NOW, "bob"))
    before, after = (index.search("mail", limit=1).matches[0] for index in (plain, voted))
    assert (before.name, after.name) == ("send_mail", "send_mail")
    assert after.score >= before.score


DAY_S = 86_400.0
MAIL = ("is there mail", "read_mail"), ("rain mail", "read_mail")


def grown(source: str, *answers: tuple[str, str]) -> list[Evidence]:
    """Evidence of one source who has also used other tools, for a month."""
    learned = by(source, *answers, ("umbrella", "get_forecast"), ("trip", "find_route"))
    return [replace(entry, first=NOW - 30 * DAY_S) for entry in learned]


def test_two_users_who_have_been_there_for_long_can() -> None:
    others = [entry for name in "cdef" for entry in grown(name)]
    entries = grown("ann", MAIL[0]) + grown("bob", MAIL[1])
    assert ranked(entries + others, "mail", source="eve")[0] == "read_mail"
    for alone in (grown("ann", MAIL[0]), grown("ann", *MAIL)):
        assert ranked(alone + others, "mail", source="eve")[0] == "send_mail"


def test_two_users_cannot_while_there_is_nobody_else() -> None:
    """Two accounts that prepared for a month are all of a store, which says nothing yet."""
    entries = grown("ann", MAIL[0]) + grown("bob", MAIL[1])
    assert ranked(entries, "mail", source="eve")[0] == "send_mail"
    crowd = [entry for number in range(100) for entry in by(f"new {number}", *MAIL, ("trip", "x"))]
    assert ranked(entries + crowd, "mail", source="eve")[0] == "send_mail"


@pytest.mark.parametrize("days", [0.0, 30.0])
def test_accounts_that_were_made_for_one_tool_cannot(days: float) -> None:
    """A hundred of them, used once or for a month."""
    entries = [
        replace(entry, first=NOW - days * DAY_S)
        for number in range(100)
        for entry in by(f"liar {number}", *MAIL)
    ]
    assert ranked(entries, "mail", source="eve") == ["send_mail", "read_mail"]
    assert ranked(entries, "mail", source="liar 7")[0] == "read_mail"


def test_new_accounts_cannot_whatever_they_use() -> None:
    entries = [
        entry for number in range(100) for entry in by(f"liar {number}", *MAIL, ("rain", NAMES[0]))
    ]
    assert ranked(entries, "mail", source="eve")[0] == "send_mail"


def test_while_there_is_nobody_else_only_a_like_query_teaches() -> None:
    lies = [e for n in range(9) for e in by(f"liar {n}", ("is umbrella of cash", "find_route"))]
    assert ranked(lies, "umbrella of cash", source="eve") == ["find_route"]
    far = "umbrella boots coats scarf gloves socks hats trousers belts shirts"
    assert ranked(lies, far, source="eve") == []
    assert ranked(lies, far, source="liar 3") == ["find_route"]
    users = [entry for name in "cdefgh" for entry in grown(name)]
    assert "find_route" in ranked(lies + users, far, source="eve")


def test_few_of_many_sources_do_not_lead() -> None:
    """Five grown sources of five put the tool first, three of thirty do not."""
    five = [entry for name in "abcde" for entry in grown(name, MAIL[0])]
    assert ranked(five, "mail", source="eve")[0] == "read_mail"
    three = [entry for entry in five if entry.source in "abc"]
    thirty = [e for n in range(27) for e in grown(f"honest {n}", ("is there mail", "send_mail"))]
    assert ranked(three + thirty, "mail", source="eve")[0] == "send_mail"


def test_a_source_backs_one_tool_less_than_another_by_the_same_query() -> None:
    """It has asked for one of them by sixty other queries, so it counts little there."""
    many = [(f"x{first}{second}", "find_route") for first in "stuvw" for second in "klmnopqrstuv"]
    entries = grown("bob", ("mail", "find_route"), ("mail", "send_mail"), *many)
    votes = LearnedQueries(entries).votes("mail", now=NOW, find=BY_NAME.get, source="eve")
    assert 0.0 < votes["find_route"] <= votes["send_mail"] <= 1.0


def test_what_others_taught_is_worth_what_the_query_could_reach() -> None:
    entries = [entry for n in range(50) for entry in by(f"user {n}", ("umbrella", "get_forecast"))]
    learned = LearnedQueries(entries)
    of_others, own = (
        learned.votes("umbrella", now=NOW, find=BY_NAME.get, source=source)["get_forecast"]
        for source in ("eve", "user 3")
    )
    assert of_others == 1.0
    assert own > 1.0


def test_weak_votes_keep_their_order_below_the_best_match_by_words() -> None:
    answers = ("mail trip", "find_route"), ("mail trip cash", "convert_money")
    found = ranked(by("ann", *answers) + by("bob", *answers), "mail trip", source="eve")
    assert found[0] == "send_mail"
    assert found.index("find_route") < found.index("convert_money")


def test_a_changed_definition_halves_its_evidence_and_another_function_ends_it() -> None:
    was = BY_NAME["get_forecast"]
    sketch = definition_sketch(was)
    entries = [replace(e, definition=sketch) for e in answered(("umbrella", "get_forecast"))]
    words = "Weather forecast of a city, by hour."
    other = "Deletes invoices that nobody paid since January."

    def vote(tool: Tool, known: Sequence[Evidence] = entries) -> float:
        votes = LearnedQueries(known).votes("umbrella", now=NOW, find=lambda name: tool)
        return votes.get("get_forecast", 0.0)

    halved = vote(was, [replace(entry, strength=0.5) for entry in entries])
    assert vote(was) > halved > 0
    assert vote(replace(was, description=words)) == halved
    assert vote(replace(was, description=other)) == 0
    # An older version did not keep definitions.
    assert vote(replace(was, description=other), answered(("umbrella", "get_forecast"))) > 0


def test_evidence_of_an_older_version_takes_the_definition_of_the_next_success() -> None:
    old = [replace(entry, first=0.0) for entry in answered(("umbrella", "get_forecast"))]
    new = by("ann", ("rain", "get_forecast"))
    sketch = definition_sketch(BY_NAME["get_forecast"])
    known = merge_evidence(old, [replace(entry, definition=sketch) for entry in new])
    assert {entry.definition for entry in known.values()} == {sketch}
    assert sorted(entry.first for entry in known.values()) == [0.0, NOW]


def test_a_success_of_the_changed_tool_adds_to_the_half_that_stays() -> None:
    was, now = BY_NAME["get_forecast"], replace(BY_NAME["get_forecast"], description="Weather.")
    (before,) = answered(("umbrella", "get_forecast"))
    first = replace(before, definition=definition_sketch(was), strength=2.0)
    again = replace(before, definition=definition_sketch(now), at=NOW + 1.0)
    for renewed in (first.renewed(again), again.renewed(first)):
        assert renewed.strength == pytest.approx(2.0)
        assert renewed.definition == again.definition
        assert (renewed.first, renewed.at) == (NOW, NOW + 1.0)


def test_evidence_without_a_source_is_that_of_one_user() -> None:
    old = answered(("is there mail", "read_mail"), ("rain mail", "read_mail"))
    assert ranked(old, "mail")[0] == "read_mail"
    assert ranked(old, "mail", source="ann")[0] == "send_mail"


def test_one_user_teaches_words_that_no_tool_has() -> None:
    assert ranked(by("ann", ("umbrella", "get_forecast")), "umbrella", source="bob") == [
        "get_forecast"
    ]


def test_a_source_counts_once_for_a_query_of_another() -> None:
    once = by("ann", ("umbrella rain", "get_forecast"))
    often = [replace(entry, strength=4.0) for entry in once] + by(
        "ann", ("umbrella trip", "get_forecast"), ("umbrella", "get_forecast")
    )
    find = BY_NAME.get
    other = by("bob", ("umbrella rain cash", "find_route"))
    few, many_ = (
        LearnedQueries([*each, *other]).votes("umbrella rain", now=NOW, find=find, source="eve")
        for each in (once, often)
    )
    assert few["get_forecast"] > few["find_route"]
    assert many_["get_forecast"] / many_["find_route"] < 1.5 * (
        few["get_forecast"] / few["find_route"]
    )


def test_a_source_teaches_others_a_bounded_number_of_words() -> None:
    words = [f"w{chr(97 + n // 26)}{chr(97 + n % 26)}" for n in range(240)]
    learned = LearnedQueries(by("liar", *((word, "find_route") for word in words)))
    find = BY_NAME.get
    assert sum(bool(learned.votes(w, now=NOW, find=find, source="liar")) for w in words) == 240
    assert sum(bool(learned.votes(w, now=NOW, find=find, source="ann")) for w in words) == 32


@settings(max_examples=50)
@given(ANSWERS, QUERIES)
def test_a_liar_never_leads_where_a_tool_fits_by_words(
    answers: list[tuple[str, str]], query: str
) -> None:
    before = names(taught(), query)
    after = ranked(by("liar", *answers), query, source="ann")
    assert not before or after[0] in before


def test_votes_fade() -> None:
    learned = LearnedQueries(answered(("umbrella", "get_forecast")))
    given_later = [
        learned.votes("umbrella", now=NOW + n * HALF_LIFE_S, find=BY_NAME.get) for n in range(4)
    ]
    votes = [vote["get_forecast"] for vote in given_later]
    assert votes == sorted(votes, reverse=True)
    assert votes[-1] < votes[0] / 2


def test_evidence_for_tools_that_are_gone_is_passed_over() -> None:
    index = taught(("umbrella", "old_forecast"), ("umbrella stand", "find_route"))
    assert names(index, "umbrella") == ["find_route"]


def test_an_updated_index_keeps_what_was_learned() -> None:
    index = taught(("umbrella", "rain_radar"))
    assert names(index, "umbrella") == []
    grown = index.updated(
        added=[Tool(name="rain_radar", description="Where it pours.")], removed=[]
    )
    assert names(grown, "umbrella") == ["rain_radar"]


def test_operators_hold_for_voted_tools_too() -> None:
    index = taught(("umbrella", "get_forecast"), ("umbrella", "find_route"))
    assert names(index, "umbrella NOT forecast") == ["find_route"]
    assert names(index, "select:send_mail") == ["send_mail"]


def test_patterns_take_no_votes() -> None:
    index = taught(("umbrella", "get_forecast"), engine="regex")
    assert names(index, "umbrella") == []


def test_an_index_that_takes_no_votes_stays_as_it_is() -> None:
    class Own:
        """Searches in its own way."""

        def search(self, *_: object, **__: object) -> object:
            """Nothing."""

        def updated(self, **_: object) -> Own:
            """Itself."""
            return self

    own: object = Own()
    assert with_votes(own, LearnedQueries(()).at(NOW)) is own  # type: ignore[arg-type]


def many(count: int) -> Sequence[Evidence]:
    """Evidence of this many queries, enough for sums by numpy."""
    chance = random.Random(3)
    words = [f"w{chr(97 + n % 26)}{chr(97 + n // 26)}" for n in range(300)]
    return answered(
        *((" ".join(chance.sample(words, 4)), chance.choice(NAMES)) for _ in range(count))
    )


def test_much_evidence_votes_as_little_does() -> None:
    """Large snapshots are summed by numpy, with equal results."""
    entries = [*many(2_500), *answered(("umbrella rain", "get_forecast"))]
    votes = LearnedQueries(entries).votes("umbrella rain", now=NOW, find=BY_NAME.get)
    assert max(votes, key=lambda name: votes[name]) == "get_forecast"
    assert LearnedQueries(entries).votes("umbrella", now=NOW, find=lambda name: None) == {}


@pytest.mark.parametrize(
    "query", ["", "   ", "!?", "x" * 100_000, "\ud800", "天" * 10_000, "a AND"]
)
def test_any_text_can_be_asked(query: str) -> None:
    index = taught(("umbrella", "get_forecast"), ("天天", "find_route"))
    assert len(index.search(query, limit=5).matches) <= 5
