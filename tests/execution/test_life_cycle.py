"""The steps of a call: their order, and the result if one of them ends it."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import pytest

from tests.execution.calling import CONTEXT, calls, of_kind, result, runner, told, tool
from tool_search import (
    CallOptions,
    CallRunner,
    ExecutableTool,
    ImagePart,
    Permissions,
    PermissionSettings,
    TextPart,
    Tool,
    ToolCall,
    ToolCallError,
    ToolCatalog,
    ToolContext,
    ToolFinished,
)
from tool_search.i18n import Language
from tool_search.runner.events import ToolProgress
from tool_search.runner.execution import (
    CallLimits,
    CallOutputDelta,
    ExecutionResult,
    HookAnswer,
    HookedCall,
    PermissionRequest,
    ToolHook,
)

SCHEMA = {
    "type": "object",
    "properties": {"to": {"type": "string"}, "count": {"type": "integer"}},
    "required": ["to"],
}


def mail(function: Callable[..., Any] | None = None, **more: Any) -> ExecutableTool:
    """A tool with a schema."""

    async def send(**arguments: Any) -> str:
        return f"sent to {arguments['to']}"

    return tool(function or send, "send_mail", parameters=SCHEMA, **more)


def hooked(*hooks: ToolHook, **more: Any) -> CallOptions:
    """Options with hooks."""
    return CallOptions(hooks=hooks, **more)


def before(answer: HookAnswer | Exception | None) -> ToolHook:
    """A hook that gives one answer, or fails."""

    async def hook(call: HookedCall) -> HookAnswer | None:
        if isinstance(answer, Exception):
            raise answer
        return answer

    return ToolHook(before=hook)


async def test_steps_of_a_call_come_in_order() -> None:
    """Check, hooks, permission, call, hooks, rendering; and each is timed in the event."""
    seen: list[str] = []

    def check(arguments: Mapping[str, Any], context: ToolContext) -> None:
        seen.append("validate_input")

    async def first(call: HookedCall) -> None:
        seen.append("before")

    async def last(call: HookedCall, given: ExecutionResult) -> None:
        seen.append(f"after {given.data}")

    async def ask(request: PermissionRequest) -> bool:
        seen.append("permission")
        return True

    async def send(**arguments: Any) -> int:
        seen.append("call")
        return 5

    def render(value: int) -> str:
        seen.append("render")
        return f"{value} sent"

    options = hooked(ToolHook(before=first, after=last), permissions=Permissions(ask=ask))
    made = mail(send, validate_input=check, needs_permission=True, render=render)
    done = await result(runner(made, options=options), ("send_mail", {"to": "bo"}))
    assert seen == ["validate_input", "before", "permission", "call", "render", "after 5"]
    assert done.content == "5 sent"
    assert [step.name for step in done.steps] == [
        "decision", "validate_input", "before_hooks", "permission", "call", "after_hooks",
    ]  # fmt: skip
    assert all(step.duration_s >= 0 for step in done.steps)
    assert (done.outcome, done.is_error) == ("finished", False)


async def _raising(**arguments: Any) -> None:
    raise ValueError("no such box")


async def _hanging(**arguments: Any) -> None:
    await asyncio.Event().wait()


async def _empty(**arguments: Any) -> Any:
    return
    yield


def _refusing(arguments: Mapping[str, Any], context: ToolContext) -> str:
    return "ask somebody else"


async def _refusing_later(arguments: Mapping[str, Any], context: ToolContext) -> str:
    return "ask somebody else"


def _denying(*rules: str) -> CallOptions:
    settings = PermissionSettings(ask=rules)
    return CallOptions(permissions=Permissions(settings))


_GOOD = ("send_mail", {"to": "bo"})
_SCHEMA_SAID = (
    "The arguments of send_mail do not fit its schema: "
    'to: 5 is not of type "string"; count: "x" is not of type "integer".'
)
_CHANGED_SAID = (
    "The arguments of send_mail were changed before the call and no longer fit its schema: "
    'to: 7 is not of type "string".'
)
_CASES: list[tuple[str, ExecutableTool, CallOptions, Any, str, str]] = [
    ("unknown", mail(), CallOptions(), "send_post", "failed", "There is no tool named send_post."),
    ("near", mail(), CallOptions(), "send_mai", "failed",
     "There is no tool named send_mai. (send_mail?)"),
    ("schema", mail(), CallOptions(), ("send_mail", {"to": 5, "count": "x"}), "failed",
     _SCHEMA_SAID),
    ("validate", mail(validate_input=_refusing), CallOptions(), _GOOD, "failed",
     "send_mail cannot take these arguments: ask somebody else"),
    ("validate later", mail(validate_input=_refusing_later), CallOptions(), _GOOD, "failed",
     "send_mail cannot take these arguments: ask somebody else"),
    ("blocked", mail(), hooked(before(HookAnswer(block="not at night"))), _GOOD, "denied",
     "send_mail was stopped before it ran: not at night"),
    ("changed", mail(), hooked(before(HookAnswer(arguments={"to": 7}))), _GOOD, "failed",
     _CHANGED_SAID),
    ("denied", mail(), _denying("send_mail(to=b*)"), _GOOD, "denied",
     "send_mail needs the user's permission, and nobody can be asked here."),
    ("raised", mail(_raising), CallOptions(), _GOOD, "failed",
     "send_mail failed: ValueError: no such box"),
    ("timed out", mail(_hanging, timeout_s=0.02), CallOptions(), _GOOD, "failed",
     "send_mail did not answer within 0.02 seconds and was given up."),
    ("no result", mail(_empty), CallOptions(), _GOOD, "failed",
     "send_mail ended without a result."),
    ("facts fail", mail(needs_permission=lambda given: given["nowhere"]), CallOptions(), _GOOD,
     "denied", ("The permission for send_mail could not be checked, so it was not called: "
     "KeyError: 'nowhere'")),
]  # fmt: skip


@pytest.mark.parametrize(
    ("made", "options", "wanted", "outcome", "content"),
    [case[1:] for case in _CASES],
    ids=[case[0] for case in _CASES],
)
async def test_every_kind_of_error_has_its_text(
    made: ExecutableTool, options: CallOptions, wanted: Any, outcome: str, content: str
) -> None:
    done = await result(runner(made, options=options), wanted)
    assert (done.content, done.outcome, done.is_error) == (content, outcome, True)


@pytest.mark.parametrize(
    ("language", "word"), [("zh-CN", "执行失败"), ("ru-RU", "ошибка"), ("en-US", "failed")]
)
async def test_errors_are_in_the_conversations_language(language: Language, word: str) -> None:
    done = await result(runner(mail(_raising)), _GOOD, replace(CONTEXT, language=language))
    assert word in done.content


async def test_broken_arguments_are_repaired_or_shown_back() -> None:
    run = runner(mail())
    wanted = [
        ToolCall(id="1", name="send_mail", arguments="{'to': 'bo',}"),
        ToolCall(id="2", name="send_mail", arguments='{"to": "b'),
    ]
    mended, cut = await run.results(wanted, CONTEXT)
    assert mended.content == "sent to bo"
    assert cut.content.startswith("The arguments of send_mail are not a JSON object")


async def test_tool_is_called_by_an_alias_and_by_its_wire_name() -> None:
    run = runner(tool(_alias, "files.read", aliases=("cat",)))
    first, second = await run.results(calls("cat", "files_read_601e4eb6"), CONTEXT)
    assert [first.tool, second.tool] == ["files.read", "files.read"]
    assert not first.is_error


async def _alias(**arguments: Any) -> str:
    return "read"


async def test_before_hooks_see_what_those_before_them_changed() -> None:
    seen = []

    async def upper(call: HookedCall) -> HookAnswer:
        return HookAnswer(arguments={"to": call.arguments["to"].upper()}, warning="shouting")

    async def look(call: HookedCall) -> None:
        seen.append(call.arguments["to"])

    options = hooked(ToolHook(before=upper), ToolHook(before=look))
    events = await told(runner(mail(), options=options), calls(_GOOD))
    assert seen == ["BO"]
    assert of_kind(events, ToolProgress)[0].message == "shouting"
    assert of_kind(events, ToolFinished)[0].content == "sent to BO"


async def test_hook_concerns_the_tools_it_names() -> None:
    block = replace(before(HookAnswer(block="no")), tools=("other",))
    assert not (await result(runner(mail(), options=hooked(block)), _GOOD)).is_error


async def test_hook_that_fails_or_hangs_warns_and_stops_nothing() -> None:
    """A broken hook must not break the bot."""

    async def hang(call: HookedCall) -> None:
        await asyncio.Event().wait()

    options = hooked(before(RuntimeError("broken")), ToolHook(before=hang, timeout_s=0.01))
    events = await told(runner(mail(), options=options), calls(_GOOD))
    warnings = [event.message for event in of_kind(events, ToolProgress)]
    assert warnings[0] == "a hook failed: RuntimeError: broken"
    assert len(warnings) == 2
    assert of_kind(events, ToolFinished)[0].content == "sent to bo"


@pytest.mark.parametrize(
    ("wishes", "asked", "outcome"),
    [
        (["allow"], 0, "finished"),
        (["ask"], 1, "finished"),
        (["allow", "ask"], 1, "finished"),
        (["ask", "allow"], 1, "finished"),
        ([None], 1, "finished"),
    ],
)
async def test_hook_may_spare_or_force_the_question(
    wishes: list[Any], asked: int, outcome: str
) -> None:
    questions = []

    async def ask(request: PermissionRequest) -> bool:
        questions.append(request)
        return True

    permissions = Permissions(PermissionSettings(ask=("send_mail",)), ask=ask)
    hooks = [before(HookAnswer(permission=wish)) for wish in wishes]
    done = await result(runner(mail(), options=hooked(*hooks, permissions=permissions)), _GOOD)
    assert (len(questions), done.outcome) == (asked, outcome)


@pytest.mark.parametrize(
    "settings",
    [
        PermissionSettings(deny=("send_mail(to=b*)",)),
        PermissionSettings.model_validate({"policy": {"ask": ["send_mail(to=b*)"]}}),
    ],
    ids=["deny", "policy"],
)
async def test_hook_that_allows_lifts_no_denial_and_no_policy(settings: PermissionSettings) -> None:
    """A hook acts for the bot's owner, but the rules override it."""
    options = hooked(before(HookAnswer(permission="allow")), permissions=Permissions(settings))
    assert (await result(runner(mail(), options=options), _GOOD)).outcome == "denied"


async def test_after_hook_may_give_another_result() -> None:
    seen = []

    async def hide(call: HookedCall, given: ExecutionResult) -> ExecutionResult:
        seen.append(given.content)
        return ExecutionResult(content="hidden")

    options = hooked(ToolHook(after=hide))
    assert (await result(runner(mail(), options=options), _GOOD)).content == "hidden"
    assert (await result(runner(mail(_raising), options=options), _GOOD)).outcome == "finished"
    denied = replace(options, permissions=_denying("send_mail(to=b*)").permissions)
    assert (await result(runner(mail(), options=denied), _GOOD)).outcome == "denied"
    assert len(seen) == 2


async def test_long_error_keeps_its_ends_and_says_what_was_cut() -> None:
    async def fail(**arguments: Any) -> None:
        raise RuntimeError("a" * 6_000 + "b" * 6_000 + "!")

    said = (await result(runner(mail(fail)), _GOOD)).content
    prefix = len("send_mail failed: RuntimeError: ")
    assert f"... [{12_001 + prefix - 10_000} characters left out] ..." in said
    assert said.startswith("send_mail failed: RuntimeError: aaa")
    assert said.endswith("b!")
    assert len(said) < 10_100


async def test_error_of_the_librarys_own_is_told_as_it_is_written() -> None:
    async def fail(**arguments: Any) -> None:
        raise ToolCallError("the file is not there: list the folder")

    done = await result(runner(tool(fail)), "it")
    assert done.content == "it failed: the file is not there: list the folder"


async def test_error_of_a_program_shows_its_output() -> None:
    def run(**arguments: Any) -> None:
        code = "import sys; print('out'); print('err', file=sys.stderr); sys.exit(3)"
        subprocess.run([sys.executable, "-c", code], capture_output=True, check=True)  # noqa: S603

    said = (await result(runner(mail(run)), _GOOD)).content
    assert said.splitlines()[1:] == ["err", "out"]
    assert "status 3" in said.splitlines()[0]


@pytest.mark.parametrize(
    ("limits", "kept", "left_out"),
    [
        (CallLimits(), 30_000, 970_000),
        (CallLimits(longest_result=1_000), 1_000, 999_000),
        (CallLimits(longest_result=None), 1_000_000, 0),
    ],
)
async def test_result_keeps_head_and_tail_within_its_limit(
    limits: CallLimits, kept: int, left_out: int
) -> None:
    """One large result must not end a conversation."""

    async def much(**arguments: Any) -> str:
        return "a" * 500_000 + "z" * 500_000

    run = runner(mail(much), options=CallOptions(limits=limits))
    content = (await result(run, _GOOD)).content
    assert (content.count("a" * 500), content.count("z" * 500)) == (kept // 1_000, kept // 1_000)
    assert (f"[{left_out} characters left out]" in content) == bool(left_out)


async def test_text_beside_a_picture_is_cut_too() -> None:
    picture = ImagePart("data:image/png;base64," + "A" * 90_000)

    async def much(**arguments: Any) -> Any:
        return [TextPart("x" * 40_000), picture]

    over = await result(runner(mail(much)), _GOOD)
    words, seen = over.parts
    assert isinstance(words, TextPart)
    assert len(words.text) < 30_100
    assert (seen, words.text) == (picture, over.content)


async def test_what_another_tool_asked_for_is_whole() -> None:
    """Half a JSON text is useless to a program."""

    async def inner() -> ExecutionResult:
        """Give much."""
        return ExecutionResult(content="x" * 100_000)

    async def outer(context: ToolContext) -> int:
        """Count what there is."""
        return len(await context.call("inner"))

    assert (await result(runner(inner, outer), "outer")).content == "100000"


async def test_what_came_before_a_failure_is_not_lost() -> None:
    """The pieces of the result, for the model."""

    async def stream(**arguments: Any) -> Any:
        yield CallOutputDelta("first line")
        yield CallOutputDelta("second line")
        raise OSError("the line is cut")

    said = (await result(runner(mail(stream)), _GOOD)).content
    assert said.splitlines() == [
        "send_mail failed: OSError: the line is cut",
        "What it had given by then: first line",
        "second line",
    ]


async def test_data_and_what_the_model_reads_of_it_are_apart() -> None:
    async def inner() -> dict[str, int]:
        """Give a value."""
        return {"a": 1}

    async def outer(context: ToolContext) -> int:
        """Take the value."""
        value: dict[str, int] = await context.call("inner")
        return value["a"] + 1

    made = tool(inner, "inner", render=lambda value: f"a is {value['a']}")
    run = runner(made, outer)
    assert (await result(run, "inner")).content == "a is 1"
    assert (await result(run, "outer")).content == "2"


@pytest.mark.parametrize(
    ("value", "content", "pictures"),
    [
        (ImagePart("data:image/png;base64,AA=="), "[pictures: 1]", 1),
        ((TextPart("a chart"), ImagePart("https://x/1.png")), "a chart\n[pictures: 1]", 1),
        (["see", ImagePart("https://x/1.png"), {"n": 1}], 'see\n{"n":1}\n[pictures: 1]', 1),
        (TextPart("words"), "words", 0),
        (ExecutionResult(content="for the model", data={"n": 1}), "for the model", 0),
        ({"n": [1]}, '{"n":[1]}', 0),
    ],
)
async def test_pictures_and_structures_reach_the_result(
    value: Any, content: str, pictures: int
) -> None:
    async def give(**arguments: Any) -> Any:
        return value

    done = await result(runner(mail(give)), _GOOD)
    assert done.content == content
    assert sum(isinstance(part, ImagePart) for part in done.parts) == pictures


async def test_foreign_executor_lives_the_same_life() -> None:
    """Permission, timeout and rendering also apply to other executors."""

    class Slow:
        async def run(self, call: ToolCall, context: ToolContext) -> Any:
            context.progress("on my way")
            await asyncio.Event().wait()
            yield ExecutionResult(content="never")

    catalog = ToolCatalog([Tool(name="far")])
    limits = CallLimits(timeout_s=0.02)
    run = CallRunner(catalog=catalog, executor=Slow(), options=CallOptions(limits=limits))
    events = await told(run, calls("far"))
    assert of_kind(events, ToolProgress)[0].message == "on my way"
    assert "within 0.02 seconds" in of_kind(events, ToolFinished)[0].content
