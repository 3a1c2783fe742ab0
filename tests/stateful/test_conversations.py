"""Random conversations over real HTTP: nothing refused, nothing lost, no prefix broken."""

from __future__ import annotations

import asyncio
import gc
import json
import os
from collections import Counter, deque
from collections.abc import Callable, Coroutine, Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Literal

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    rule,
    run_state_machine_as_test,
)

from tests.adapters.recorded.test_histories import CASES, imported
from tests.stateful.model import ObedientModel, tools_of, uncallable
from tool_search import (
    AllProvidersFailedError,
    ExecutableTool,
    MemoryStore,
    ProviderConfig,
    RunnerWarning,
    Tool,
    ToolSearchConfig,
    ToolSearchRunner,
    ToolSearchSession,
)
from tool_search.adapters import build_provider
from tool_search.core.catalog.naming import wire_name
from tool_search.providers.base import ConnectedProvider
from tool_search.testing import (
    CapturedRequest,
    Endpoint,
    Fault,
    ModelCall,
    ModelReply,
    StandInServer,
)
from tool_search.testing.prefix import prefix_change

_CONVERSATIONS = (
    10_000
    if os.environ.get("HYPOTHESIS_PROFILE") == "long"
    else int(os.environ.get("CONVERSATIONS", "40"))
)
# Parts of the conversations, so that they share the machine's cores; each with other providers.
_PARTS = 4
_KEY = "group:42"
_BRIDGED = "deepseek-chat"
_LATE = "kimi-k3"
_BOUND = "claude-opus-5-5"
_PROVIDERS = [
    "claude", "gpt", "responses", "compatible", "bound", "kept", "late", "bridge", "kimi",
    "deepseek", "thinking",
]  # fmt: skip
# The warnings that announce a list changed elsewhere than at its end.
# A form that a service refused in unknown words is not sent again.
_LIST_CAUSES = {"core_tool_gone", "schema_changed", "mode_changed", "form_refused"}
_CATALOG_CAUSES = {"catalog_changed", *_LIST_CAUSES}
# Those that announce messages changed elsewhere than at their end.
_SIZE_CAUSES = {"results_shortened", "turns_left_out", "content_left_out"}
_TOO_MUCH = [
    "prompt is too long: 3 tokens > 2 maximum", "Range of input length should be [1, 9]",
    "Request exceeds the maximum size", "Could not process image", "Content Exists Risk",
]  # fmt: skip
_NAMES = [
    "get_forecast", "sendMail", "files.read", "create issue", "查询天气", "2fa_code",
    "a" * 70, "отправить_письмо",
]  # fmt: skip


# Keys that services refuse, tuples, misspelt types and references that lead nowhere.
_ODD: tuple[Mapping[str, Any], ...] = (
    {"$filter": {"type": "string"}, "user id": {"type": "int"}},
    {"$filter": {"type": "string"}, "名字": {"type": "object", "properties": {"año": {}}}},
    {"$filter": {"items": [{"type": "string"}], "type": ["array", "string"]}},
    {"$filter": {"$ref": "#/$defs/nowhere"}, "a": {"exclusiveMinimum": True, "minimum": 1}},
)
_TEXTS = st.sampled_from(["hello", "查一下天气", "какая погода", "common thing please"])
_STEPS = st.lists(st.integers(0, 10**6), max_size=5)
_NUMBER = st.integers(0, 10**6)


_IMPORTED = [imported(exchange) for case in CASES for exchange in case.values]  # type: ignore[arg-type]


@dataclass(frozen=True)
class World:
    """What all conversations share: two servers, their providers, one event loop."""

    run: Callable[[Coroutine[Any, Any, object]], object]
    full: StandInServer
    plain: StandInServer
    providers: Mapping[str, ConnectedProvider]


@pytest.fixture(scope="module")
def world() -> Iterator[World]:
    """Servers, clients and a loop that live as long as the module's tests."""
    no_search = Endpoint(supports_tool_search=False)
    with (
        asyncio.Runner() as loop,
        StandInServer() as full,
        StandInServer(endpoint=no_search) as plain,
    ):
        configs = [
            ProviderConfig(
                id="claude", type="anthropic", model="claude-sonnet-4-6", strategy="claude",
                base_url=full.anthropic_base_url, api_key_env=None,
            ),
            ProviderConfig(
                id="bound", type="anthropic", model=_BOUND, strategy="claude",
                base_url=full.anthropic_base_url, api_key_env=None,
            ),
            ProviderConfig(
                id="gpt", type="openai_chat", model="gpt-5.4",
                base_url=full.openai_base_url, api_key_env=None,
            ),
            ProviderConfig(
                id="responses", type="openai_responses", model="gpt-5.5",
                strategy="openai_responses", base_url=full.openai_base_url, api_key_env=None,
            ),
            ProviderConfig(
                id="kept", type="openai_responses", model="gpt-5.6", tool_search="deferred",
                strategy="openai_responses", previous_response_id=True,
                base_url=full.openai_base_url, api_key_env=None,
            ),
            ProviderConfig(
                id="late", type="openai_responses", model="gpt-5.2",
                strategy="openai_responses", base_url=full.openai_base_url, api_key_env=None,
            ),
            ProviderConfig(
                id="kimi", type="openai_chat", model=_LATE, strategy="tools_in_messages",
                base_url=full.openai_base_url, api_key_env=None,
            ),
            ProviderConfig(
                id="deepseek", type="openai_chat", model="deepseek-v4-flash",
                base_url=full.openai_base_url, api_key_env=None,
            ),
            ProviderConfig(
                id="thinking", type="openai_chat", model="kimi-k2.6",
                base_url=full.openai_base_url, api_key_env=None,
            ),
            ProviderConfig(
                id="bridge", type="openai_chat", model=_BRIDGED, strategy="bridge",
                base_url=full.openai_base_url, api_key_env=None,
            ),
            ProviderConfig(
                id="compatible", type="anthropic", model="glm-5",
                base_url=plain.anthropic_base_url, api_key_env=None,
            ),
        ]  # fmt: skip
        providers = {
            config.id: build_provider(config, api_key="unused", fallbacks=True)
            for config in configs
        }
        # The SDKs leave iterators of broken replies to the garbage collector, which must not
        # find them in a server's thread while the loop still runs them.
        gc.collect()
        gc.freeze()
        gc.disable()
        yield World(loop.run, full, plain, providers)
        loop.run(_collect())
        gc.enable()
        for provider in providers.values():
            loop.run(provider.aclose())


@lru_cache(maxsize=2_000)
def _tool(name: str, *, version: int = 0, server: str | None = None, core: bool = False) -> Tool:
    odd = _ODD[len(name) % len(_ODD)] if name.startswith("odd") else {}
    return Tool(
        name=name,
        description=f"common thing {name} v{version}",
        kind="mcp" if server else "plugin",
        server=server,
        always_load=core,
        parameters={
            "type": "object",
            "properties": {
                "count": {"type": "integer"},
                f"word{version}": {"type": "string"},
                **odd,
            },
            "required": ["count"],
        },
    )


def _runnable(tool: Tool, ran: Callable[[str, Mapping[str, object]], None]) -> ExecutableTool:
    def run(**arguments: object) -> object:
        ran(tool.name, arguments)
        if arguments["count"] == 13:
            raise ValueError("thirteen")
        return {"done": tool.name, **arguments}

    return ExecutableTool(tool=tool, function=run)


def _is_search_request(request: CapturedRequest) -> bool:
    return "tool_search" in request.tool_names


class Conversations(RuleBasedStateMachine):
    """One conversation, whatever happens to it."""

    world: World
    part = 0
    ended = 0

    @initialize(
        size=st.sampled_from([0, 3, 12, 30, 150, 150]),
        core=st.integers(0, 3),
        mode=st.sampled_from(["auto", "tool_search", "full", "skills_like"]),
        providers=st.permutations(_PROVIDERS),
        count=st.integers(1, 4),
        most=st.sampled_from([2, 5, 100]),
        shown=st.sampled_from(
            [
                {},
                {"preload": 1, "preload_score": 0.0},
                {"preload": 5, "preload_score": 0.0, "listing": "none"},
                {"listing": "servers", "listing_tokens": 2_000},
                {"listing": "names", "listing_tokens": 60, "preload": 3, "preload_score": 0.3},
                {"second_chance": True, "preload_score": 0.0},
                {"second_chance": True, "preload": 1, "preload_score": 0.2},
            ]
        ),
    )
    def start(  # noqa: PLR0917  # hypothesis passes them by name
        self,
        size: int,
        core: int,
        mode: str,
        providers: list[str],
        count: int,
        most: int,
        shown: dict[str, Any],
    ) -> None:
        """A bot with some tools and providers, and nothing said yet."""
        self.model = ObedientModel()
        for server in (self.world.full, self.world.plain):
            server.reset(model=self.model)
        plain = [*_NAMES[:4], "odd_1", "odd_22", "odd_333", "odd_4444", *_NAMES[4:]]
        deferred = [*plain, *(f"tool_{n}" for n in range(size))][: size or 1]
        self.tools = {name: _tool(name, server=f"s{n % 3}") for n, name in enumerate(deferred)}
        self.tools |= {f"core_{n}": _tool(f"core_{n}", core=True) for n in range(core)}
        self.gone: dict[str, Tool] = {}
        self.ids = [*providers[self.part * 2 :], *providers[: self.part * 2]][:count]
        self.config = ToolSearchConfig.model_validate(
            {"tool_schema_mode": mode, "max_results": most, **shown}
        )
        self.store = MemoryStore()
        self.discovered: tuple[str, ...] = ()
        self.last: dict[str, CapturedRequest] = {}
        self.said: dict[str, CapturedRequest] = {}
        self.ran: Counter[tuple[str, str]] = Counter()
        self.warned: list[tuple[str, int, int]] = []
        self.sent = (0, 0)
        self.failed: set[str] = set()
        self._restart()

    def _restart(self) -> None:
        self.runner = ToolSearchRunner(
            providers={name: self.world.providers[name] for name in self.ids},
            tools=self._runnable(),
            config=self.config,
            store=self.store,
            max_steps=4,
            cooldown_s=0,
        )

    def _runnable(self) -> list[ExecutableTool]:
        return [_runnable(tool, self._note) for tool in self.tools.values()]

    def _note(self, name: str, arguments: Mapping[str, object]) -> None:
        self.ran[name, json.dumps(arguments, sort_keys=True)] += 1

    @property
    def session(self) -> ToolSearchSession | None:
        """The conversation's state, once it has begun in this process."""
        return self.runner.session(_KEY)

    @rule(text=_TEXTS, steps=_STEPS)
    def say(self, text: str, steps: list[int]) -> None:
        """A user turn, in which the model does some of what models do, one by one."""
        self._say(text, [(self._call(step),) for step in steps])

    @rule(text=_TEXTS, steps=_STEPS)
    def say_and_get_parallel_calls(self, text: str, steps: list[int]) -> None:
        """A turn in which the model calls everything at once."""
        self._say(text, [tuple(map(self._call, steps))])

    @rule(number=_NUMBER, steps=_STEPS)
    def search_and_call(self, number: int, steps: list[int]) -> None:
        """A turn as it should be: a search for some tool, and a call of it."""
        name = self._name(number)
        search = ModelCall(name="tool_search", arguments={"query": name})
        call = ModelCall(name=name, arguments={"count": number})
        self._say("do it", [(search,), (call,), *((self._call(step),) for step in steps)])

    @rule(number=_NUMBER, chosen=st.integers(0, 3))
    def search_broadly(self, number: int, chosen: int) -> None:
        """A turn that finds more than a limited list has room for, and uses some of it."""
        everything = ModelCall(name="tool_search", arguments={"query": "common thing"})
        calls = (self._call(4 + 10 * number), self._call(8 + 10 * (number + 1)))
        self.runner.use(self.ids[chosen % len(self.ids)])
        self._say("find all", [(everything,), (everything, everything), calls])

    @rule(text=_TEXTS, steps=_STEPS, chosen=st.integers(0, 3))
    def swap(self, text: str, steps: list[int], chosen: int) -> None:
        """The operator swaps the provider between two turns."""
        self.runner.use(self.ids[chosen % len(self.ids)])
        self.say(text, steps)

    @rule(
        text=_TEXTS,
        steps=_STEPS,
        dialect=st.sampled_from(["anthropic", "openai_chat", "openai_responses"]),
        status=st.sampled_from([400, 401, 408, 429, 500, 529, None]),
        skip=st.integers(0, 3),
        after=st.sampled_from([None, 2, "tool_call"]),
    )
    def fail(  # noqa: PLR0917  # hypothesis passes them by name
        self,
        text: str,
        steps: list[int],
        dialect: str,
        status: int | None,
        skip: int,
        after: Literal["tool_call"] | int | None,
    ) -> None:
        """A provider fails in the middle of a turn."""
        fault = Fault(
            dialect=dialect, status=status, broken=status is None, skip=skip, after_events=after
        )
        server = self.world.plain if len(text) % 2 else self.world.full
        server.faults.add(fault)
        self.say(text, steps)

    @rule(
        text=_TEXTS,
        steps=_STEPS,
        dialect=st.sampled_from(["anthropic", "openai_chat", "openai_responses"]),
        message=st.sampled_from(_TOO_MUCH),
        skip=st.integers(0, 3),
    )
    def say_too_much(
        self, text: str, steps: list[int], dialect: str, message: str, skip: int
    ) -> None:
        """A provider refuses a request for its length, or for what is in it."""
        fault = Fault(dialect=dialect, status=400, message=message, skip=skip)
        server = self.world.plain if len(text) % 2 else self.world.full
        server.faults.add(fault)
        self.say(text, steps)

    @rule(text=_TEXTS, steps=_STEPS, what=st.integers(0, 7), number=_NUMBER)
    def change_the_catalog(self, text: str, steps: list[int], what: int, number: int) -> None:
        """Servers come, go and change, or list the same again; then the user speaks."""
        changes = (
            self._lose_a_server, self._return_what_was_lost, self._add_tools,
            self._add_a_core_tool, self._change_a_schema, self._list_again,
            self._lose_a_server, self._return_what_was_lost,
        )  # fmt: skip
        changes[what](number)
        self.runner.replace_tools(self._runnable())
        self.say(text, steps)

    @rule(text=_TEXTS, steps=_STEPS)
    def restart(self, text: str, steps: list[int]) -> None:
        """The bot's process ends and begins again."""
        self._restart()
        self.say(text, steps)

    @rule(text=_TEXTS, steps=_STEPS, number=_NUMBER)
    def import_a_history(self, text: str, steps: list[int], number: int) -> None:
        """The bot goes on with a conversation that another program had with a service."""
        session = self.session
        if session is not None and session.has_begun and _IMPORTED:
            session.adopt_history(_IMPORTED[number % len(_IMPORTED)])
            self.said.clear()
        self.say(text, steps)

    @rule(text=_TEXTS, steps=_STEPS, kept=st.integers(0, 4))
    def compact(self, text: str, steps: list[int], kept: int) -> None:
        """The bot forgets the older part of the history."""
        session = self.session
        if session is not None and session.has_begun:
            session.adopt_history(session.history[len(session.history) - kept :])
            self.said.clear()
        self.say(text, steps)

    def _say(self, text: str, replies: list[tuple[ModelCall, ...]]) -> None:
        said = [ModelReply(text="Let me see.", calls=c) for c in replies if c]
        if self.config.second_chance:
            said.insert(len(text) % (len(said) + 1), ModelReply(text="I have no tool for that."))
        self.model.replies = deque(said)
        self.sent = self._counts()
        self.ran.clear()
        searching = self._is_searching()
        self.world.run(self._turn(text))
        # One fault at most is planned for a turn: with a fallback there is an answer.
        assert self.failed == set() or self.failed == set(self.ids[:1]) == set(self.ids)
        self.world.full.faults.clear()
        self.world.plain.faults.clear()
        if searching:
            self._check_callable()
        self._check()

    def _counts(self) -> tuple[int, int]:
        return len(self.world.full.requests), len(self.world.plain.requests)

    @property
    def requests(self) -> tuple[CapturedRequest, ...]:
        """What the turn sent."""
        return self.world.full.requests[self.sent[0] :] + self.world.plain.requests[self.sent[1] :]

    def _is_searching(self) -> bool:
        session = self.session
        return bool(session and session.has_begun and session.decision.mode == "tool_search")

    def _check_callable(self) -> None:
        """Every earlier discovery that is there can be called, without a search."""
        present = [name for name in self.discovered if name in self.tools]
        for request in self.requests:
            if self._is_plain_end(request):
                continue
            missing = uncallable(present, request)
            assert not missing, (request.model, missing)

    def _is_plain_end(self, request: CapturedRequest) -> bool:
        """True for the last request of a turn in a plainer form, which says it has no tools.

        The usual form forbids calls in another way, which strange services may refuse.
        """
        return not request.tool_names and "form_refused" in {code for code, *_ in self.warned}

    def _call(self, step: int) -> ModelCall:
        name = self._name(step // 10)
        good: dict[str, Any] = {"count": step % 97}
        if name.startswith("odd") and step % 3:
            good["$filter"] = "x"
        return (
            ModelCall(name="tool_search", arguments={"query": "common thing", "limit": 100}),
            ModelCall(name="tool_search", arguments={"query": name}),
            ModelCall(name="tool_search", arguments={"queries": [name, "common"], "limit": 1}),
            ModelCall(name="tool_search", arguments={"query": "???"}),
            ModelCall(name=name, arguments=good),
            ModelCall(name=name, arguments=good),
            ModelCall(name=name, arguments={"count": 13}),
            ModelCall(name=name, arguments={"count": "many"}),
            ModelCall(name="call_tool", arguments={"name": name, "arguments": good}),
            ModelCall(name="no_such_tool" if step % 3 else name, arguments='{"count": '),
        )[step % 10]

    def _name(self, number: int) -> str:
        names = sorted({*self.tools, *self.gone, *self.discovered})
        return names[number % len(names)]

    async def _turn(self, text: str) -> None:
        try:
            async for event in self.runner.run(text, conversation=_KEY):
                if isinstance(event, RunnerWarning):
                    self.warned.append((event.code, *self._counts()))
        except AllProvidersFailedError as failure:
            self.failed = set(failure.causes)
        else:
            self.failed = set()

    def _lose_a_server(self, number: int) -> None:
        server = f"s{number % 3}"
        for name in [n for n, tool in self.tools.items() if tool.server == server]:
            self.gone[name] = self.tools.pop(name)

    def _return_what_was_lost(self, _number: int) -> None:
        self.tools |= self.gone
        self.gone = {}

    def _add_tools(self, number: int) -> None:
        first = len(self.tools) + len(self.gone)
        for n in range(first, first + (1, 30)[number % 2]):
            self.tools[f"late_{n}_{number}"] = _tool(f"late_{n}_{number}", server="late")

    def _add_a_core_tool(self, number: int) -> None:
        self.tools[f"core_{number}"] = _tool(f"core_{number}", core=True)

    def _change_a_schema(self, number: int) -> None:
        name = sorted(self.tools)[number % len(self.tools)] if self.tools else None
        if name is not None:
            old = self.tools[name]
            self.tools[name] = _tool(
                name, version=1 + number % 3, server=old.server, core=old.always_load
            )

    def _list_again(self, _number: int) -> None:
        self.tools = dict(reversed(self.tools.items()))

    def _check(self) -> None:
        """No request refused, no list broken, no discovery lost, each call one result."""
        for request in self.requests:
            assert request.violation is None, request.violation
            if request.status == 200:
                self._check_prefix(request)
                self._check_messages(request)
        codes = {code for code, *_ in self.warned}
        assert codes.isdisjoint({"prefix_moved", "request_repaired"}), self.warned
        self._check_runs()
        session = self.session
        assert session is not None
        names = session.discoveries.names
        assert names[: len(self.discovered)] == self.discovered
        answered = Counter(m.tool_call_id for m in session.history if m.role == "tool")
        asked = Counter(c.id for m in session.history for c in m.tool_calls)
        assert answered == asked
        self.discovered = names

    def _check_prefix(self, request: CapturedRequest) -> None:
        """A list continues the one before, unless a warning since has named the cause."""
        if self._is_plain_end(request):
            return
        before = self.last.get(request.model)
        self.last[request.model] = request
        if before is None or not _is_search_request(before):
            return
        causes = self._causes(before, request)
        declares_all, declared_all = (
            b'"defer_loading"' in (each.tools_bytes or b"") for each in (request, before)
        )
        is_fixed = declares_all or request.dialect == "openai_responses"
        is_fixed |= request.model in (_BRIDGED, _LATE)
        if is_fixed and not causes & _CATALOG_CAUSES:
            assert request.tools_bytes == before.tools_bytes
        # A whole catalog of which nothing is left to defer is a changed one too.
        if not declares_all and not causes & (_CATALOG_CAUSES if declared_all else _LIST_CAUSES):
            old = tools_of(before)
            assert tools_of(request)[: len(old)] == old

    def _check_messages(self, request: CapturedRequest) -> None:
        """System text and messages go on from the last request's, whatever the tools do."""
        if self._is_plain_end(request):
            return
        before = self.said.get(request.model)
        self.said[request.model] = request
        if before is None or self._causes(before, request) & {
            *_CATALOG_CAUSES,
            *_SIZE_CAUSES,
            "late_definition",
        }:
            return
        change = prefix_change(_conversation(before), _conversation(request))
        # Bound thinking goes where it no longer holds, and the rest of its block with it.
        if change is not None and request.model == _BOUND and change.before == "thinking":
            return
        assert change is None, str(change)

    def _causes(self, before: CapturedRequest, request: CapturedRequest) -> set[str]:
        """What was announced between two requests to one model."""
        is_plain = request.model == "glm-5"
        return {
            code
            for code, full, plain in self.warned
            # Only an answer shows that a form helps: this notice follows its request.
            if before.number
            < (plain if is_plain else full) - (code == "form_refused")
            <= request.number
        }

    def _check_runs(self) -> None:
        """Each call of the turn that was answered by its tool ran it once, as it was asked."""
        session = self.session
        assert session is not None
        turn = max(n for n, said in enumerate(session.history) if said.role == "user")
        results = {m.tool_call_id: m.text for m in session.history if m.role == "tool"}
        expected: Counter[tuple[str, str]] = Counter()
        wired = {wire_name(name): name for name in self.tools}
        for call in (c for m in session.history[turn:] for c in m.tool_calls):
            name, arguments = call.name, call.parsed_arguments()
            if name == "call_tool" and arguments is not None:
                name, arguments = arguments["name"], arguments["arguments"]
            # A tool that its request did not declare is called by its name on the wire.
            name = wired.get(name, name)
            if name in self.tools and _is_its_own(results[call.id]):
                expected[name, json.dumps(arguments, sort_keys=True)] += 1
        assert self.ran == expected

    def teardown(self) -> None:
        """Leaves no fault for the next conversation."""
        self.world.full.faults.clear()
        self.world.plain.faults.clear()
        type(self).ended += 1
        if self.ended % 10 == 0:
            self.world.run(_collect())


def _conversation(request: CapturedRequest) -> bytes:
    """A request without its tools, which have a check of their own."""
    tools = ("tools", "tool_choice", "parallel_tool_calls")
    return json.dumps({k: v for k, v in request.body.items() if k not in tools}).encode()


def _is_its_own(result: str) -> bool:
    """True if a result is the tool's, and not what is said of a call that did not run."""
    return '"done"' in result or "thirteen" in result


async def _collect() -> None:
    gc.collect()
    await asyncio.sleep(0)


@pytest.mark.timeout(0)
@pytest.mark.parametrize("part", range(_PARTS))
def test_a_conversation_survives_anything(world: World, part: int) -> None:
    machine = type(f"Part{part}", (Conversations,), {"world": world, "part": part})
    run_state_machine_as_test(
        machine,
        settings=settings(max_examples=_CONVERSATIONS // _PARTS, stateful_step_count=7),
    )


def _machine(world: World) -> Conversations:
    found: Conversations = type("Found", (Conversations,), {"world": world, "part": 0})()
    return found


@pytest.mark.parametrize("first", ["bridge", "compatible"])
def test_a_plainer_form_after_a_strange_refusal_is_announced(world: World, first: str) -> None:
    """The next turn asks the provider in a form with another list, which a notice names."""
    machine = _machine(world)
    machine.start(
        most=2, core=0, mode="auto", count=4, size=150,
        providers=[first, "kept", "thinking", "deepseek", "responses"],
        shown={"listing": "names", "listing_tokens": 60, "preload": 3, "preload_score": 0.3},
    )  # fmt: skip
    machine.compact(kept=0, steps=[], text="hello")
    machine.fail(after=None, dialect="anthropic", skip=0, status=400, steps=[], text="hello")
    machine.compact(kept=0, steps=[], text="hello")
    machine.teardown()


def test_the_last_request_of_a_turn_in_a_plainer_form_has_no_tools(world: World) -> None:
    """Four steps are over: the form says that no tool can be called, in words of its own."""
    machine = _machine(world)
    machine.start(size=0, core=0, mode="auto", providers=["claude"], most=2, count=1, shown={})
    for text, steps in (("hello", []), ("какая погода", []), ("hello", [0, 0, 0, 0])):
        machine.fail(after=None, dialect="anthropic", skip=0, status=400, steps=steps, text=text)
    assert machine.world.full.requests[-1].tool_names == ()
    machine.teardown()


def test_a_tool_that_was_called_before_it_came_is_in_its_namespace(world: World) -> None:
    """Found by seed 12: the service had kept the call by a name that the tool has on the wire."""
    machine = _machine(world)
    machine.start(size=30, core=2, providers=["kept"], most=2, mode="auto", count=1, shown={})
    machine.change_the_catalog(number=0, steps=[47], text="hello", what=0)
    machine.change_the_catalog(number=0, steps=[0], text="hello", what=1)
    machine.teardown()


def test_a_definition_that_comes_before_an_old_call_is_announced(world: World) -> None:
    """Found by seed 12: the prefix moves there, and nothing else explained it."""
    machine = _machine(world)
    providers = ["kept", "late", "bound", "claude"]
    machine.start(
        count=4, core=2, providers=providers, most=5, mode="tool_search", size=0, shown={}
    )
    machine.change_the_catalog(number=9513, steps=[47, 168, 1467, 0, 174290], text="hello", what=0)
    machine.restart(steps=[4, 42230, 1224, 228], text="查一下天气")
    machine.change_the_catalog(number=189281, steps=[26547], text="common thing please", what=1)
    assert "late_definition" in {code for code, *_ in machine.warned}
    machine.teardown()


def test_a_tool_called_unknown_by_its_wire_name_is_shown_before_the_call(world: World) -> None:
    """The call got a namespace once a search brought the tool: the prefix moved untold."""
    machine = _machine(world)
    machine.start(size=30, core=0, providers=["responses"], most=2, mode="auto", count=1, shown={})
    machine.search_and_call(number=0, steps=[64514, 0])
    machine.teardown()
