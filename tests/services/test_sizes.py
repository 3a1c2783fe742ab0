"""Services whose context is full, or that read no picture: no conversation ends there."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import AsyncExitStack, ExitStack, aclosing, asynccontextmanager
from dataclasses import dataclass
from typing import Any

import pytest

from tests.services.raw import JSON, RawService, Rule
from tool_search import (
    ExecutableTool,
    ImagePart,
    MemoryStore,
    Message,
    ProviderConfig,
    Tool,
    ToolSearchConfig,
    ToolSearchRunner,
)
from tool_search.adapters import build_provider
from tool_search.config import HistorySettings
from tool_search.core.messages import ContentPart, TextPart
from tool_search.core.settings import Dialect
from tool_search.errors import AllProvidersFailedError
from tool_search.runner.events import (
    ContentLeftOut,
    Done,
    ProviderSwitched,
    RunnerEvent,
    RunnerWarning,
)
from tool_search.testing.prefix import prefix_change

MODELS: Mapping[str, tuple[Dialect, str]] = {
    "claude": ("anthropic", "claude-sonnet-4-6"),
    "anthropic-generic": ("anthropic", "glm-5"),
    "chat": ("openai_chat", "gpt-5.4"),
    "responses": ("openai_responses", "gpt-5.5"),
}
STRATEGIES = {"claude": "claude", "responses": "openai_responses"}
TOOLS = ("read_invoice", "water_plants", "book_flight", "tune_piano", "bake_bread")
REPORT = "One line of a long report, about nothing at all. " * 60
LIMIT = 4_000
PICTURE = ImagePart("data:image/png;base64,iVBORw0KGgo=")


@dataclass(frozen=True, slots=True)
class Bot:
    """A bot and the services that it talks to, by name."""

    runner: ToolSearchRunner
    services: Mapping[str, RawService]

    async def turn(
        self, message: str | Sequence[ContentPart], provider: str | None = None
    ) -> list[RunnerEvent]:
        """Return the events of one turn."""
        if provider is not None:
            self.runner.use(provider, conversation="c")
        async with asyncio.timeout(20), aclosing(self.runner.run(message, conversation="c")) as run:
            return [event async for event in run]

    @property
    def history(self) -> tuple[Message, ...]:
        """The history on record."""
        session = self.runner.session("c")
        assert session is not None
        return session.history


def report_tool(name: str) -> ExecutableTool:
    """Return a tool that a search finds by its name, with a long result."""
    schema = {"type": "object", "properties": {"text": {"type": "string"}}}
    words = name.replace("_", " ")

    async def run(text: str = "") -> str:
        return f"{words} {text}: {REPORT}"

    tool = Tool(name=name, description=f"Can {words}.", parameters=schema, server="s", kind="mcp")
    return ExecutableTool(tool=tool, function=run)


@asynccontextmanager
async def bot(
    services: Mapping[str, tuple[str, RawService]], **settings: Any
) -> AsyncIterator[Bot]:
    """A bot of services, by name, each with the kind of model that it serves."""
    async with AsyncExitStack() as stack:
        servers = stack.enter_context(ExitStack())
        made = {}
        for name, (kind, service) in services.items():
            if not service.url:
                servers.enter_context(service.running())
            dialect, model = MODELS[kind]
            path = "" if dialect == "anthropic" else "/v1"
            config = ProviderConfig.model_validate(
                {
                    "id": name, "type": dialect, "model": model, "api_key_env": None,
                    "base_url": service.url + path, "extra_body": {"stream": False},
                    "strategy": STRATEGIES.get(kind, "auto"),
                }
            )  # fmt: skip
            made[name] = await stack.enter_async_context(
                build_provider(config, api_key="unused", fallbacks=True)
            )
        runner = ToolSearchRunner(
            providers=made,
            **{
                "tools": [report_tool(name) for name in TOOLS],
                "config": ToolSearchConfig(tool_schema_mode="tool_search", language="en-US"),
                "cooldown_s": 0,
                **settings,
            },
        )
        stack.push_async_callback(runner.aclose)
        yield Bot(runner, {name: service for name, (_, service) in services.items()})


def entries(body: JSON) -> Any:
    """Return the messages or items of a request."""
    return body["messages"] if "messages" in body else body["input"]


def size_of(body: JSON) -> int:
    """Return the tokens of a request's messages, as the services here count them."""
    return len(json.dumps(entries(body), ensure_ascii=False)) // 4


def too_long(wording: str, limit: int = LIMIT) -> Rule:
    """Return a context of so many tokens, and what the service says beyond it."""

    def rule(body: JSON) -> str | None:
        sent = size_of(body)
        return wording.format(sent=sent, limit=limit) if sent > limit else None

    return rule


def loaded(body: JSON) -> set[str]:
    """Return the tools that a request lets the model call without a search."""
    found = set()
    for tool in body.get("tools", ()):
        if not tool.get("defer_loading"):
            found.add(tool.get("name") or tool.get("function", {}).get("name"))
    for entry in entries(body):
        found |= {t["name"] for t in entry.get("tools", ())}
        blocks = entry.get("content") if isinstance(entry.get("content"), list) else ()
        for block in blocks or ():
            parts = block.get("content") if isinstance(block.get("content"), list) else ()
            found |= {part["tool_name"] for part in parts if "tool_name" in part}
    return found


def codes(events: Sequence[RunnerEvent]) -> list[str]:
    """Return the codes of the warnings."""
    return [event.code for event in events if isinstance(event, RunnerWarning)]


def answers(events: Sequence[RunnerEvent]) -> list[str]:
    """Return the answers of the turns."""
    return [event.answer for event in events if isinstance(event, Done)]


WORDINGS = {
    "anthropic": ("claude", 400, "prompt is too long: {sent} tokens > {limit} maximum"),
    "glm": ("anthropic-generic", 400, "Prompt 超长"),
    "too large": ("claude", 413, "Request exceeds the maximum size"),
    "openai": (
        "chat", 400,
        (
            "This model's maximum context length is {limit} tokens. However, your messages "
            "resulted in {sent} tokens. Please reduce the length of the messages."
        ),
    ),
    "moonshot": (
        "chat", 400,
        "Invalid request: Your request exceeded model token limit: {limit} (requested: {sent})",
    ),
    "qwen": ("chat", 400, "Range of input length should be [1, {limit}]"),
    "proxy": ("chat", 413, "Request Entity Too Large"),
    "responses": (
        "responses", 400,
        (
            "Your input exceeds the context window of this model. Please adjust your input and "
            "try again."
        ),
    ),
}  # fmt: skip


@pytest.mark.parametrize(("kind", "status", "wording"), WORDINGS.values(), ids=WORDINGS)
async def test_conversation_goes_on_where_the_context_is_full(
    kind: str, status: int, wording: str
) -> None:
    full = RawService(rule=too_long(wording), status=status)
    other = RawService()
    events: list[RunnerEvent] = []
    async with bot({"full": (kind, full), "other": ("chat", other)}) as made:
        for number in range(10):
            provider = "other" if number in (4, 5) else "full"
            events += await made.turn(f"{number}: {TOOLS[number % 5]}", provider)
        assert len(answers(events)) == 10
        assert all(answer.startswith("answer") for answer in answers(events))
        said = [code for code in codes(events) if code != "provider_waited_for"]
        assert said[0] == "results_shortened"
        assert set(said) == {"results_shortened", "turns_left_out"}
        assert 2 <= len(full.refused) <= 9
        assert loaded(full.bodies[-1]) >= set(TOOLS)
        record = "\n".join(message.text for message in made.history)
        assert record.count(REPORT) == 10
        assert [f"{n}: " in record for n in range(10)] == [True] * 10


@pytest.mark.parametrize("kind", MODELS)
async def test_limit_of_the_settings_keeps_the_context_from_being_full(kind: str) -> None:
    full = RawService(rule=too_long("prompt is too long: {sent} tokens > {limit} maximum", 6_000))
    events: list[RunnerEvent] = []
    history = HistorySettings(max_tokens=2_500)
    async with bot({"full": (kind, full)}, history=history) as made:
        for number in range(10):
            events += await made.turn(f"{number}: {TOOLS[number % 5]}")
    assert full.refused == []
    assert len(answers(events)) == 10
    assert set(codes(events)) == {"results_shortened", "turns_left_out"}
    assert 2 <= codes(events).count("turns_left_out") <= 8
    assert loaded(full.bodies[-1]) >= set(TOOLS)


async def test_window_of_a_model_that_counts_each_digit_is_not_overrun() -> None:
    """Qwen and Mistral make a token of each digit, other models one of three."""

    async def run(text: str = "") -> str:
        return " ".join(str(1_234_567 + number) for number in range(100))

    def rule(body: JSON) -> str | None:
        said = json.dumps(entries(body))
        digits = sum(map(str.isdigit, said))
        sent = digits + (len(said) - digits) // 4
        return f"prompt is too long: {sent} tokens > 6000 maximum" if sent > 6_000 else None

    full = RawService(rule=rule)
    async with bot({"full": ("chat", full)}, history=HistorySettings(max_tokens=3_600)) as made:
        tools = [ExecutableTool(tool=report_tool(name).tool, function=run) for name in TOOLS]
        made.runner.replace_tools(tools)
        for number in range(12):
            assert answers(await made.turn(f"{number}: {TOOLS[number % 5]}"))
    assert full.refused == []


@pytest.mark.parametrize("kind", MODELS)
async def test_what_was_left_out_stays_so_after_a_restart(kind: str) -> None:
    store = MemoryStore()
    wording = "prompt is too long: {sent} tokens > {limit} maximum"
    with RawService(rule=too_long(wording)).running() as full:
        async with bot({"full": (kind, full)}, store=store) as made:
            for number in range(5):
                await made.turn(f"{number}: {TOOLS[number]}")
        refused, last = len(full.refused), full.bodies[-1]
        assert refused
        async with bot({"full": (kind, full)}, store=store) as made:
            await made.turn(f"again: {TOOLS[0]}")
            change = prefix_change(json.dumps(last).encode(), json.dumps(full.bodies[-1]).encode())
            assert change is None, str(change)
        assert len(full.refused) == refused


async def test_own_compaction_goes_before_anything_is_left_out() -> None:
    """It is given the turns before the present one, and its words take their place."""
    given: list[int] = []

    async def compact(past: Sequence[Message]) -> list[Message]:
        given.append(len(past))
        return [
            Message(role="user", content="What happened before?"),
            Message(role="assistant", content="Some reports were read."),
        ]

    full = RawService(rule=too_long("prompt is too long: {sent} tokens > {limit} maximum"))
    events: list[RunnerEvent] = []
    async with bot({"full": ("chat", full)}, compact=compact) as made:
        for number in range(7):
            events += await made.turn(f"{number}: {TOOLS[number % 5]}")
    assert len(answers(events)) == 7
    assert given
    assert set(codes(events)) == {"history_compacted"}
    assert full.bodies[-1]["messages"][1]["content"] == "What happened before?"
    assert loaded(full.bodies[-1]) >= {TOOLS[number % 5] for number in range(7)}


@pytest.mark.parametrize("broken", ["fails", "nothing", "nonsense"])
async def test_compaction_that_fails_leaves_it_to_the_library(broken: str) -> None:
    async def compact(past: Sequence[Message]) -> Any:
        if broken == "fails":
            raise OSError("the summarizer is gone")
        return None if broken == "nothing" else [5, "no message"]

    full = RawService(rule=too_long("prompt is too long: {sent} tokens > {limit} maximum"))
    events: list[RunnerEvent] = []
    history = HistorySettings(max_tokens=2_500)
    async with bot({"full": ("chat", full)}, compact=compact, history=history) as made:
        for number in range(6):
            events += await made.turn(f"{number}: {TOOLS[number % 5]}")
    assert len(answers(events)) == 6
    assert "results_shortened" in codes(events)
    assert ("compaction_failed" in codes(events)) == (broken != "nothing")


@pytest.mark.parametrize("kind", MODELS)
async def test_message_that_is_too_long_for_everybody_is_answered_and_left_out(kind: str) -> None:
    rule = too_long("prompt is too long: {sent} tokens > {limit} maximum")
    services = {"a": (kind, RawService(rule=rule)), "b": ("chat", RawService(rule=rule))}
    async with bot(services) as made:
        await made.turn(f"first: {TOOLS[0]}", "a")
        events = await made.turn("word " * 6_000 + TOOLS[1])
        (done,) = (event for event in events if isinstance(event, Done))
        assert done.answer.startswith("Your message is too long")
        assert done.stop_reason == "other"
        assert "message_refused" in codes(events)
        after = await made.turn(f"second: {TOOLS[2]}")
        assert answers(after)[0].startswith("answer")
        assert codes(after) == []
        sent = json.dumps(made.services["a"].bodies[-1])
        assert "[message left out: it was too long]" in sent
        assert any(message.text.startswith("word word") for message in made.history)


async def test_message_that_is_too_long_for_one_is_another_ones() -> None:
    rule = too_long("prompt is too long: {sent} tokens > {limit} maximum")
    services = {"small": ("chat", RawService(rule=rule)), "large": ("claude", RawService())}
    async with bot(services) as made:
        events = await made.turn("word " * 6_000 + TOOLS[1], "small")
        (done,) = (event for event in events if isinstance(event, Done))
        assert (done.provider, done.answer[:6]) == ("large", "answer")
        after = await made.turn(f"second: {TOOLS[2]}", "small")
        assert [e.provider for e in after if isinstance(e, Done)] == ["small"]


def pictures_in(body: JSON) -> int:
    """Return the number of pictures in a request."""
    text = json.dumps(body)
    return sum(text.count(f'"type": "{kind}"') for kind in ("image_url", "input_image", "image"))


def cannot_read(wording: str) -> Rule:
    """Return a service that reads no picture."""
    return lambda body: wording if pictures_in(body) else None


REFUSALS = {
    "anthropic": ("claude", "Could not process image", "picture_refused"),
    "too large": (
        "anthropic-generic",
        "messages.0.content.1.image.source.base64: image exceeds 5 MB maximum: 6 bytes > 5 bytes",
        "picture_refused",
    ),
    "openai": (
        "chat",
        (
            "You uploaded an unsupported image. Please make sure your image has of one the "
            "following formats: ['png', 'jpeg', 'gif', 'webp']."
        ),
        "picture_refused",
    ),
    "responses": (
        "responses",
        "The image data you provided does not represent a valid image. Please check your input.",
        "picture_refused",
    ),
    "deepseek": (
        "chat",
        (
            "Failed to deserialize the JSON body into the target type: messages[1]: unknown "
            "variant `image_url`, expected `text` at line 1 column 679289"
        ),
        "pictures_unknown",
    ),
}


@pytest.mark.parametrize(("kind", "wording", "reason"), REFUSALS.values(), ids=REFUSALS)
async def test_picture_that_nobody_takes_is_left_out_and_the_user_is_told(
    kind: str, wording: str, reason: str
) -> None:
    service = RawService(rule=cannot_read(wording))
    async with bot({"a": (kind, service)}) as made:
        events = await made.turn([PICTURE, TextPart(f"What is that? {TOOLS[0]}")])
        assert answers(events)[0].startswith("answer")
        (told,) = (event for event in events if isinstance(event, ContentLeftOut))
        assert (told.provider, told.reason) == ("a", reason)
        assert told.text.startswith(("The picture could not", "Pictures cannot be seen"))
        assert codes(events) == ["content_left_out"]
        for number in range(3):
            after = await made.turn(f"{number}: {TOOLS[number + 1]}")
            assert codes(after) == []
            assert answers(after)[0].startswith("answer")
        assert len(service.refused) == 1
        assert "[picture left out:" in json.dumps(service.bodies[-1])
        assert PICTURE in made.history[0].content
        if reason == "pictures_unknown":
            # It is remembered of the model: nothing is sent to learn it again.
            again = await made.turn([PICTURE, TextPart(f"And that? {TOOLS[0]}")])
            assert len(service.refused) == 1
            assert [e.reason for e in again if isinstance(e, ContentLeftOut)] == [reason]


async def test_picture_refused_by_a_server_that_breaks_is_left_out_at_once() -> None:
    """llama.cpp without its projector answers 500; other 500s are read as no refusal."""
    words = (
        "image input is not supported - hint: if this is unexpected, you may need to provide the "
        "mmproj"
    )
    service = RawService(rule=cannot_read(words), status=500)
    async with bot({"a": ("chat", service)}) as made:
        events = await made.turn([PICTURE, TextPart(f"What is that? {TOOLS[0]}")])
        assert answers(events)[0].startswith("answer")
        assert answers(await made.turn(f"And then? {TOOLS[1]}"))[0].startswith("answer")
        assert len(service.refused) == 1
        service.rule = lambda _: "Unknown parameter: 'stream_options' is not supported."
        with pytest.raises(AllProvidersFailedError):
            await made.turn(f"Please use {TOOLS[2]}")
        assert len(service.refused) == 2


@pytest.mark.parametrize("kind", MODELS)
async def test_picture_that_one_cannot_read_is_another_ones(kind: str) -> None:
    """Whoever sees it answers; the first goes on with the conversation, without the picture."""
    blind = RawService(rule=cannot_read("This model does not support image inputs"))
    services = {"blind": (kind, blind), "seeing": ("chat", RawService())}
    async with bot(services) as made:
        events = await made.turn([PICTURE, TextPart(f"What is that? {TOOLS[0]}")], "blind")
        (done,) = (event for event in events if isinstance(event, Done))
        assert done.provider == "seeing"
        assert [e for e in events if isinstance(e, ContentLeftOut)] == []
        assert pictures_in(made.services["seeing"].bodies[0]) == 1
        after = await made.turn(f"And now? {TOOLS[1]}", "blind")
        assert [e.provider for e in after if isinstance(e, Done)] == ["blind"]
        (back,) = (event for event in after if isinstance(event, ProviderSwitched))
        assert (back.to_provider, back.cause) == ("blind", "requested")
        assert len(blind.refused) == 1
        # Its newest picture goes to who sees it, unasked.
        seen = await made.turn([PICTURE, TextPart(f"And that? {TOOLS[2]}")], "blind")
        assert [e.provider for e in seen if isinstance(e, Done)] == ["seeing"]
        assert len(blind.refused) == 1


@pytest.mark.parametrize("kind", MODELS)
async def test_message_that_filters_refuse_is_answered_and_left_out(kind: str) -> None:
    def filtered(body: JSON) -> str | None:
        said = json.dumps(body)
        return "Input data may contain inappropriate content." if "forbidden" in said else None

    service = RawService(rule=filtered)
    async with bot({"a": (kind, service)}) as made:
        events = await made.turn(f"Something forbidden. {TOOLS[0]}")
        (done,) = (event for event in events if isinstance(event, Done))
        assert (done.stop_reason, done.answer[:41]) == (
            "refusal", "Your message could not be answered: its c",
        )  # fmt: skip
        after = await made.turn(f"Something else. {TOOLS[1]}")
        assert answers(after)[0].startswith("answer")
        assert codes(after) == []


def picture_tool() -> ExecutableTool:
    """Return a tool whose result is a picture."""

    async def run(text: str = "") -> list[ContentPart]:
        return [TextPart(f"a chart {text}"), PICTURE]

    return ExecutableTool(tool=report_tool("bake_bread").tool, function=run)


@pytest.mark.parametrize("kind", ["claude", "responses"])
async def test_picture_of_a_tool_is_left_out_where_it_is_refused(kind: str) -> None:
    service = RawService(rule=cannot_read("Could not process image"))
    async with bot({"a": (kind, service)}) as made:
        made.runner.replace_tools([picture_tool()])
        events = await made.turn(f"A chart, please: {TOOLS[4]}")
        assert answers(events)[0].startswith("answer")
        assert codes(events) == ["content_left_out"]
        assert [e for e in events if isinstance(e, ContentLeftOut)] == []
        assert len(service.refused) == 1
