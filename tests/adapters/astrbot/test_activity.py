"""The activity that the plugin's page shows."""

from __future__ import annotations

from itertools import count

from tool_search.adapters.astrbot.webui.activity import Activity, Timeline


def test_a_timeline_has_requests_searches_and_calls_in_their_order() -> None:
    ticks = count(1)
    activity = Activity(clock=lambda: float(next(ticks)))
    line = activity.timeline(("chat", "1"))
    line.request("openai (gpt)", count=3, tokens=900, full=9_000)
    line.search("send mail", ["send_mail", "send_mail", "list_mail"])
    line.call("send_mail")
    assert [(moment.kind, moment.text) for moment in line.moments] == [
        ("request", "openai (gpt)"),
        ("search", "send mail"),
        ("call", "send_mail"),
    ]
    assert [moment.at for moment in line.moments] == [2, 3, 4]
    assert line.moments[1].names == ("send_mail", "list_mail")
    assert activity.found == {"send_mail": 1, "list_mail": 1}
    assert activity.called == {"send_mail": 1}
    assert not activity.in_vain


def test_searches_in_vain_are_kept_apart() -> None:
    activity = Activity()
    activity.timeline(("chat", "1")).search("buy a ship", [])
    assert [moment.text for moment in activity.in_vain] == ["buy a ship"]


def test_agents_without_a_conversation_count_and_are_not_listed() -> None:
    activity = Activity()
    activity.timeline(None).search("send mail", ["send_mail"])
    assert activity.found["send_mail"] == 1
    assert activity.timelines == {}


def test_the_conversation_used_last_comes_first() -> None:
    activity = Activity()
    for place in ("a", "b", "a"):
        activity.timeline((place, "1")).call("x")
    assert [place for place, _ in activity.timelines] == ["a", "b"]


def test_nothing_grows_with_the_conversations_or_their_messages() -> None:
    activity = Activity()
    for number in range(400):
        line = activity.timeline((f"chat{number}", "1"))
        line.search("q" * 10_000, [])
    for number in range(30_000):
        line.search("x", [f"tool{number}"])
    assert len(activity.timelines) == 100
    assert len(line.moments) == 200
    assert len(activity.in_vain) == 50
    assert len(activity.in_vain[0].text) <= 301
    assert len(activity.found) == 20_000


def test_a_timeline_alone_counts_for_itself() -> None:
    line = Timeline()
    line.call("x")
    assert line.moments[0].to_object()["text"] == "x"
