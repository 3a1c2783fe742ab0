"""Old contents and unread pictures: refused once, remembered with the conversation."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest

from tests.services.raw import JSON, RawService, Rule
from tests.services.rules import FORBIDDEN, LARGE, PICTURE, shows_picture
from tests.services.test_sizes import (
    MODELS,
    TOOLS,
    answers,
    bot,
    codes,
    entries,
    pictures_in,
    report_tool,
)
from tool_search import ExecutableTool, ImagePart, MemoryStore
from tool_search.core.messages import ContentPart, TextPart
from tool_search.runner.events import ContentLeftOut, Done

UNKNOWN_WORDS = {
    "Z.ai": "Invalid API parameter, please check the documentation.",
    "nobody": "Die Anfrage wurde nicht angenommen (E-4711).",
}
FILTERED = "Invalid prompt: we've limited access to this content for safety reasons. Sorry."


def large_among_many(body: JSON) -> str | None:
    """Refuse a large picture among more than 20, by its place."""
    if pictures_in(body) <= 20:
        return None
    places = (
        f"messages.{n}.content.{m}"
        for n, message in enumerate(body["messages"])
        for m, _ in enumerate(message["content"])
        if LARGE.url.partition(",")[2] in json.dumps(message["content"][m])
    )
    place = next(places, None)
    return place and (
        f"{place}.image.source.base64.data: At least one of the image dimensions exceed max "
        "allowed size for many-image requests: 2000 pixels"
    )


def picture(number: int) -> ImagePart:
    """Return a small picture."""
    return ImagePart(f"data:image/png;base64,iVBORw0KGg{number:04d}==")


async def test_old_picture_at_the_named_place_goes_and_the_newest_stays() -> None:
    service = RawService(rule=large_among_many)
    async with bot({"a": ("claude", service)}) as made:
        for number in range(24):
            shown = LARGE if number == 3 else picture(number)
            events = await made.turn([shown, TextPart(f"{number}: {TOOLS[number % 5]}")])
            assert answers(events)
            assert shown.url.partition(",")[2] in json.dumps(service.bodies[-1])
        assert len(service.refused) == 1
        assert pictures_in(service.bodies[-1]) == 23


async def test_large_pictures_are_refused_now_and_then_and_not_in_each_turn() -> None:
    service = RawService(rule=large_among_many)
    async with bot({"a": ("claude", service)}) as made:
        for number in range(32):
            events = await made.turn([LARGE, TextPart(f"{number}: {TOOLS[number % 5]}")])
            assert answers(events)
            assert pictures_in(service.bodies[-1])
        assert len(service.refused) <= 4


@pytest.mark.parametrize("kind", MODELS)
@pytest.mark.parametrize("who", UNKNOWN_WORDS)
async def test_picture_that_is_refused_in_strange_words_is_left_out_once(
    kind: str, who: str
) -> None:
    store = MemoryStore()
    rule: Rule = lambda body: UNKNOWN_WORDS[who] if shows_picture(body) else None  # noqa: E731
    with RawService(rule=rule).running() as service:
        async with bot({"a": (kind, service)}, store=store) as made:
            events = await made.turn([PICTURE, TextPart(f"What is that? {TOOLS[0]}")])
            assert answers(events)[0].startswith("answer")
            assert [e.reason for e in events if isinstance(e, ContentLeftOut)] == [
                "picture_refused"
            ]
            assert len(service.refused) == 1
            assert "[picture left out:" in json.dumps(service.bodies[-1])
            assert service.bodies[-1]["tools"]
        # After a restart it is still known.
        async with bot({"a": (kind, service)}, store=store) as made:
            after = await made.turn(f"And then? {TOOLS[1]}")
            assert answers(after)
            assert codes(after) == []
        assert len(service.refused) == 1


@pytest.mark.parametrize("kind", MODELS)
async def test_picture_that_was_not_at_fault_is_sent_again(kind: str) -> None:
    service = RawService(rule=lambda _: UNKNOWN_WORDS["nobody"])
    async with bot({"a": (kind, service)}) as made:
        with pytest.raises(Exception, match="E-4711"):
            await made.turn([PICTURE, TextPart(f"What is that? {TOOLS[0]}")])
        assert len(service.refused) <= 5
        service.rule = lambda _: None
        assert answers(await made.turn(f"And now? {TOOLS[1]}"))
        assert pictures_in(service.bodies[0]) == 1


async def test_request_that_is_too_large_keeps_the_newest_picture() -> None:
    """A 413 in strange words is one of size: older results go first."""

    def rule(body: JSON) -> str | None:
        return "E-4713" if len(json.dumps(entries(body))) > 9_000 else None

    service = RawService(rule=rule, status=413)
    async with bot({"a": ("chat", service)}) as made:
        for number in range(4):
            assert answers(await made.turn(f"{number}: {TOOLS[number]}"))
        assert answers(await made.turn([PICTURE, TextPart(f"What is that? {TOOLS[4]}")]))
        assert service.refused
        assert pictures_in(service.bodies[-1]) == 1


async def test_provider_that_reads_pictures_is_shown_what_another_was_not() -> None:
    def rule(body: JSON) -> str | None:
        return UNKNOWN_WORDS["Z.ai"] if shows_picture(body) else None

    services = {"blind": ("chat", RawService(rule=rule)), "seeing": ("claude", RawService())}
    async with bot(services) as made:
        events = await made.turn([PICTURE, TextPart(f"What is that? {TOOLS[0]}")], "blind")
        assert [e.provider for e in events if isinstance(e, Done)] == ["seeing"]
        after = await made.turn(f"And now? {TOOLS[1]}", "blind")
        assert [e.provider for e in after if isinstance(e, Done)] == ["blind"]
        assert len(made.services["blind"].refused) == 1
        await made.turn(f"And then? {TOOLS[2]}", "seeing")
        assert pictures_in(made.services["seeing"].bodies[-1]) == 1


@pytest.mark.parametrize("kind", MODELS)
async def test_old_result_that_a_filter_refuses_after_a_swap_ends_no_turn(kind: str) -> None:
    """The person's messages stay; so does the next provider's view of the result."""

    async def run(text: str = "") -> str:
        return FORBIDDEN

    page = ExecutableTool(tool=report_tool(TOOLS[0]).tool, function=run)
    strict = RawService(rule=lambda body: FILTERED if FORBIDDEN in json.dumps(body) else None)
    services = {"open": ("chat", RawService()), "strict": (kind, strict)}
    async with bot(services) as made:
        made.runner.replace_tools([page, *(report_tool(name) for name in TOOLS[1:])])
        await made.turn(f"Please use {TOOLS[0]}", "open")
        for number in (1, 2):
            events = await made.turn(f"Please use {TOOLS[number]}", "strict")
            assert [e.provider for e in events if isinstance(e, Done)] == ["strict"]
            assert answers(events)[0].startswith("answer")
        assert len(strict.refused) == 1
        assert f"Please use {TOOLS[0]}" in json.dumps(entries(strict.bodies[-1]))
        await made.turn(f"Please use {TOOLS[3]}", "open")
        assert FORBIDDEN in json.dumps(made.services["open"].bodies[-1])


async def test_message_that_a_filter_refuses_costs_no_older_content() -> None:
    strict = RawService(rule=lambda body: FILTERED if FORBIDDEN in json.dumps(body) else None)
    services = {"open": ("chat", RawService()), "strict": ("responses", strict)}
    async with bot({"strict": services["strict"], "open": services["open"]}) as made:
        await made.turn(f"Please use {TOOLS[0]}", "open")
        made.services["open"].rule = strict.rule
        events = await made.turn(f"{FORBIDDEN} {TOOLS[1]}", "strict")
        assert [e.stop_reason for e in events if isinstance(e, Done)] == ["refusal"]
        after = await made.turn(f"Please use {TOOLS[2]}", "strict")
        assert answers(after)[0].startswith("answer")
        assert codes(after) == []
        said = json.dumps(entries(strict.bodies[-1]))
        assert said.count("[message left out:") == 1
        assert "One line of a long report" in said


def numbers() -> Iterator[int]:
    """Yield the numbers of pictures in a day of screenshots."""
    yield from (30, 30, 30, 30, 30)


async def test_limit_of_pictures_is_learned_for_other_conversations() -> None:
    def rule(body: JSON) -> str | None:
        sent = pictures_in(body)
        words = f"Too much media: 0 document pages + {sent} images > 100"
        return words if sent > 100 else None

    service = RawService(rule=rule)
    async with bot({"a": ("claude", service)}) as made:
        for conversation in ("one", "two"):
            for number, count in enumerate(numbers()):
                shown = [picture(number * 100 + n) for n in range(count)]
                said: list[ContentPart] = [*shown, TextPart(f"{number}: {TOOLS[number]}")]
                events = [event async for event in made.runner.run(said, conversation=conversation)]
                assert answers(events)
                assert shown[-1].url.partition(",")[2] in json.dumps(service.bodies[-1])
        assert len(service.refused) == 1
