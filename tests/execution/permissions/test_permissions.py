"""Permissions: levels, modes, grants, questions, and agreement of search and execution."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.execution.calling import CONTEXT, PATIENCE_S, calls, result, runner, tool
from tool_search import (
    CallOptions,
    CallRunner,
    ConfigurationError,
    ExecutableTool,
    MemoryStore,
    PermissionAnswer,
    Permissions,
    PermissionSettings,
    SQLiteStore,
    Tool,
    ToolContext,
    tool_from_function,
)
from tool_search.runner.execution import (
    FunctionExecutor,
    Grant,
    GrantBook,
    GrantFile,
    PermissionRequest,
)

SCHEMA = {"type": "object", "properties": {"to": {"type": "string"}}, "required": ["to"]}
GOOD = ("send_mail", {"to": "bo"})


async def _done(**arguments: Any) -> str:
    return "done"


def mail(name: str = "send_mail", **more: Any) -> ExecutableTool:
    """A tool that changes something."""
    return tool(_done, name, parameters=SCHEMA, **more)


class User:
    """A user who gives answers in turn and keeps the questions."""

    def __init__(self, *answers: PermissionAnswer | bool | Exception) -> None:
        self.answers = list(answers)
        self.asked: list[PermissionRequest] = []

    async def ask(self, request: PermissionRequest) -> PermissionAnswer | bool:
        """Return the next answer, or False if none is left."""
        self.asked.append(request)
        answer = self.answers.pop(0) if self.answers else False
        if isinstance(answer, Exception):
            raise answer
        return answer


def bot(
    settings: dict[str, Any],
    *tools: ExecutableTool,
    user: User | None = None,
    grants: GrantBook | None = None,
) -> CallRunner:
    permissions = Permissions(
        PermissionSettings.model_validate(settings), ask=user.ask if user else None, grants=grants
    )
    return runner(*(tools or (mail(),)), options=CallOptions(permissions=permissions))


async def outcome(
    settings: dict[str, Any],
    made: ExecutableTool | None = None,
    *,
    user: User | None = None,
    context: ToolContext = CONTEXT,
) -> str:
    made = made or mail()
    wanted = (made.tool.name, {"to": "bo"})
    return (await result(bot(settings, made, user=user), wanted, context)).outcome


_READS = {"annotations": {"read_only": True}}
_DESTROYS = {"annotations": {"destructive": True}}
_ASKS = {"needs_permission": True}


@pytest.mark.parametrize(
    ("settings", "facts", "asked", "ends"),
    [
        ({}, {}, 0, "finished"),
        ({}, _ASKS, 1, "finished"),
        ({"allow": ["send_mail"]}, _ASKS, 0, "finished"),
        ({"ask": ["send_mail"]}, {}, 1, "finished"),
        ({"ask": ["send_mail"], "allow": ["send_mail"]}, {}, 1, "finished"),
        ({"deny": ["send_mail(to=b*)"], "allow": ["send_mail"], "ask": ["*"]}, {}, 0, "denied"),
        ({"deny": ["send_mail(to=x*)"]}, {}, 0, "finished"),
        ({"otherwise": "ask"}, {}, 1, "finished"),
        ({"otherwise": "ask"}, _READS, 0, "finished"),
        ({"otherwise": "deny"}, {}, 0, "denied"),
        ({"otherwise": "deny", "allow": ["send_mail(b*)"]}, {}, 0, "finished"),
        ({"mode": "plan"}, {}, 0, "denied"),
        ({"mode": "plan", "allow": ["send_mail"]}, {}, 0, "denied"),
        ({"mode": "plan"}, _READS, 0, "finished"),
        ({"mode": "plan", "ask": ["send_mail"]}, _READS, 1, "finished"),
        ({"mode": "plan"}, {"is_read_only": lambda a: a["to"] == "bo"}, 0, "finished"),
        ({"mode": "plan"}, {"is_read_only": lambda a: a["to"] != "bo"}, 0, "denied"),
        ({"mode": "accept", "otherwise": "ask"}, {}, 0, "finished"),
        ({"mode": "accept"}, _ASKS, 0, "finished"),
        ({"mode": "accept", "otherwise": "ask"}, _DESTROYS, 1, "finished"),
        ({"mode": "accept", "ask": ["send_mail"]}, {}, 1, "finished"),
        ({"mode": "bypass", "ask": ["send_mail"]}, {}, 0, "finished"),
        ({"mode": "bypass", "deny": ["send_mail(b*)"]}, {}, 0, "denied"),
        ({"mode": "never-ask", "ask": ["send_mail"]}, {}, 0, "denied"),
        ({"mode": "never-ask", "otherwise": "ask"}, {}, 0, "denied"),
        ({"mode": "never-ask", "allow": ["send_mail"]}, _ASKS, 0, "finished"),
        ({"mode": "bypass", "policy": {"ask": ["send_mail"]}}, {}, 1, "finished"),
        ({"mode": "bypass", "policy": {"deny": ["send_mail(b*)"]}}, {}, 0, "denied"),
        ({"policy": {"deny": ["send_mail"]}, "allow": ["send_mail"]}, {}, 0, "failed"),
        ({"policy": {"allow": ["send_mail"]}, "otherwise": "ask"}, {}, 0, "finished"),
    ],
)
async def test_levels_modes_and_facts_decide_a_call(
    settings: dict[str, Any], facts: dict[str, Any], asked: int, ends: str
) -> None:
    """The cases in which the user is asked, and the outcome after a yes.

    What is denied to everybody is not offered at all, so its call fails as unknown.
    """
    user = User(*[True] * 3)
    assert await outcome(settings, mail(**facts), user=user) == ends
    assert len(user.asked) == asked


@pytest.mark.parametrize(
    ("roles", "ends"),
    [
        ((), "finished"),
        (("guest",), "denied"),
        (("admin",), "finished"),
        (("admin", "guest"), "denied"),
    ],
)
async def test_roles_add_rules_of_their_own(roles: tuple[str, ...], ends: str) -> None:
    settings = {"roles": {"guest": {"deny": ["send_mail"]}, "admin": {"allow": ["*"]}}}
    context = replace(CONTEXT, roles=frozenset(roles))
    assert await outcome(settings, context=context) == ends


async def test_tool_with_roles_wants_one_of_them() -> None:
    made = mail(roles=("admin",))
    assert await outcome({"allow": ["*"]}, made) == "denied"
    admin = replace(CONTEXT, roles=frozenset({"admin"}))
    assert await outcome({}, made, context=admin) == "finished"


@pytest.mark.parametrize("answer", [RuntimeError("no chat"), False, PermissionAnswer(allow=False)])
async def test_anything_but_a_yes_is_a_no(answer: Any) -> None:
    assert await outcome({"ask": ["*"]}, user=User(answer)) == "denied"
    assert await outcome({"ask": ["*"]}) == "denied"


async def test_user_who_does_not_answer_has_said_no() -> None:
    async def ask(request: PermissionRequest) -> bool:
        await asyncio.Event().wait()
        return True

    settings = PermissionSettings(ask=("*",), ask_timeout_s=0.02)
    run = runner(mail(), options=CallOptions(permissions=Permissions(settings, ask=ask)))
    assert (await result(run, GOOD)).content.endswith("and no answer came.")


async def test_user_may_say_why_not() -> None:
    user = User(PermissionAnswer(allow=False, message="not on Sundays"))
    done = await result(bot({"ask": ["*"]}, user=user), GOOD)
    assert done.content == "The user did not allow send_mail: not on Sundays"


async def test_question_shows_the_call_and_what_may_be_granted() -> None:
    """The narrowest first: this argument, the tool, its server."""
    user = User()
    made = mail("post", kind="mcp", server="my mail")
    await result(bot({"ask": ["*"]}, made, user=user), ("post", {"to": "bo"}))
    (asked,) = user.asked
    assert (asked.tool.name, asked.arguments, asked.user) == ("post", {"to": "bo"}, "ann")
    assert asked.suggestions == (
        "mcp__my mail__post(to=bo)", "mcp__my mail__post", "mcp__my mail__*",
    )  # fmt: skip


@pytest.mark.parametrize(
    ("scope", "same", "elsewhere", "another"),
    [("once", 1, 1, 1), ("conversation", 0, 1, 1), ("always", 0, 0, 1)],
)
async def test_grant_holds_as_long_as_it_was_given_for(
    scope: Any, same: int, elsewhere: int, another: int
) -> None:
    """In the conversation or everywhere, and for the user who gave it."""
    places = [
        (CONTEXT, same),
        (replace(CONTEXT, conversation="other"), elsewhere),
        (replace(CONTEXT, user="eve"), another),
    ]
    for context, expected in places:
        user = User(PermissionAnswer(allow=True, scope=scope))
        run = bot({"ask": ["*"]}, user=user)
        assert (await result(run, GOOD)).outcome == "finished"
        before = len(user.asked)
        await result(run, GOOD, context)
        assert len(user.asked) - before == expected


async def test_grant_may_be_narrower_than_the_tool() -> None:
    user = User(PermissionAnswer(allow=True, scope="always", rule="send_mail(bo)"))
    run = bot({"ask": ["*"]}, user=user)
    outcomes = [
        (await result(run, ("send_mail", {"to": to}))).outcome for to in ("bo", "bo", "eve")
    ]
    assert outcomes == ["finished", "finished", "denied"]
    assert len(user.asked) == 2


async def test_grant_lifts_no_denial_and_no_policy() -> None:
    grants = GrantBook()
    await grants.add(Grant(rule="*", user="ann"))
    for settings in (
        {"deny": ["send_mail(b*)"]}, {"policy": {"ask": ["*"]}}, {"mode": "plan"},
    ):  # fmt: skip
        assert (await result(bot(settings, grants=grants), GOOD)).outcome == "denied"
    assert (await result(bot({"ask": ["*"]}, grants=grants), GOOD)).outcome == "finished"


async def test_being_found_or_called_before_grants_nothing() -> None:
    user = User(True, True)
    run = bot({"ask": ["*"]}, user=user)
    for _ in range(2):
        await result(run, GOOD)
    assert len(user.asked) == 2


async def test_grants_are_kept_in_the_store(tmp_path: Path) -> None:
    """They also count after a restart: a permanent one everywhere, another in its conversation."""
    user = User(
        PermissionAnswer(allow=True, scope="always"),
        PermissionAnswer(allow=True, scope="conversation"),
    )
    async with SQLiteStore(tmp_path / "store.db") as store:
        await result(bot({"ask": ["*"]}, user=user, grants=GrantBook(store)), GOOD)
        other = bot({"ask": ["*"]}, mail(), mail("post"), user=user, grants=GrantBook(store))
        await result(other, ("post", {"to": "bo"}))
    async with SQLiteStore(tmp_path / "store.db") as store:
        again = bot({"ask": ["*"]}, mail(), mail("post"), user=User(), grants=GrantBook(store))
        elsewhere = replace(CONTEXT, conversation="another")
        for context, outcomes in ((CONTEXT, ["finished"] * 2), (elsewhere, ["finished", "denied"])):
            made = [GOOD, ("post", {"to": "bo"})]
            assert [(await result(again, one, context)).outcome for one in made] == outcomes


async def test_grant_may_be_taken_back() -> None:
    book = GrantBook(MemoryStore())
    kept = Grant(rule="send_mail", user="ann")
    await book.add(kept)
    run = bot({"ask": ["*"]}, grants=book)
    assert (await result(run, GOOD)).outcome == "finished"
    await book.revoke(kept)
    assert (await result(run, GOOD)).outcome == "denied"


async def test_grants_of_an_older_versions_file_hold(tmp_path: Path) -> None:
    path = tmp_path / "grants.json"
    path.write_text('[{"rule": "send_mail", "user": "ann"}]')
    run = bot({"ask": ["*"], "grants": str(path)}, user=User())
    assert (await result(run, GOOD)).outcome == "finished"


@pytest.mark.parametrize("content", ["{", "5", '[{"rule": 5}]', "[5]", "[" * 9999, "\ud800"])
async def test_broken_file_of_grants_is_named_and_left_alone(
    tmp_path: Path, content: str, caplog: pytest.LogCaptureFixture
) -> None:
    path = tmp_path / "grants.json"
    path.write_bytes(content.encode("utf-8", "surrogatepass"))
    with pytest.raises(ConfigurationError, match=r"grants\.json"):
        await GrantFile(path).load()
    user = User(PermissionAnswer(allow=True, scope="always"))
    assert (await result(bot({"ask": ["*"], "grants": str(path)}, user=user), GOOD)).is_error is (
        False
    )
    assert "grants.json cannot be read as grants" in caplog.text
    assert path.read_bytes() == content.encode("utf-8", "surrogatepass")


async def test_questions_of_a_conversation_are_put_one_after_another() -> None:
    open_questions = 0
    most = 0

    async def ask(request: PermissionRequest) -> PermissionAnswer:
        nonlocal open_questions, most
        open_questions += 1
        most = max(most, open_questions)
        await asyncio.sleep(0.005)
        open_questions -= 1
        return PermissionAnswer(allow=True, scope="conversation")

    permissions = Permissions(PermissionSettings(ask=("*",)), ask=ask)
    made = mail(annotations={"concurrency_safe": True})
    run = runner(made, options=CallOptions(permissions=permissions))
    async with asyncio.timeout(PATIENCE_S):
        done = await run.results(calls(GOOD, GOOD, GOOD), CONTEXT)
    assert [one.outcome for one in done] == ["finished"] * 3
    assert most == 1


async def test_mode_is_the_conversations_own_and_can_be_changed() -> None:
    run = bot({})
    run.permissions.use_mode("plan", conversation="c")
    assert (await result(run, GOOD)).outcome == "denied"
    assert (await result(run, GOOD, replace(CONTEXT, conversation="d"))).outcome == "finished"
    await run.forget("c")
    assert (await result(run, GOOD)).outcome == "finished"


async def test_tool_may_ask_the_user_itself() -> None:
    async def clean(context: ToolContext) -> str:
        """Clean up."""
        return "gone" if await context.ask("Remove 3 files?") else "kept"

    user = User(True)
    run = runner(clean, options=CallOptions(permissions=Permissions(ask=user.ask)))
    assert (await result(run, "clean")).content == "gone"
    assert user.asked[0].question == "Remove 3 files?"
    assert (await result(runner(clean), "clean")).content == "kept"


_RULES = st.sampled_from(
    ["reader", "writer", "mcp__far__*", "*", "reader(a*)", "writer(to=a)", "far_writer"]
)
_LEVEL = st.fixed_dictionaries(
    {}, optional={kind: st.lists(_RULES, max_size=2) for kind in ("allow", "ask", "deny")}
)
_SETTINGS = st.builds(
    lambda level, more: {**level, **more},
    _LEVEL,
    st.fixed_dictionaries(
        {},
        optional={
            "mode": st.sampled_from(["default", "plan", "accept", "bypass", "never-ask"]),
            "otherwise": st.sampled_from(["allow", "ask", "deny"]),
            "policy": _LEVEL,
            "roles": st.fixed_dictionaries({"guest": _LEVEL}),
        },
    ),
)


@given(
    settings=_SETTINGS,
    can_ask=st.booleans(),
    guest=st.booleans(),
    granted=st.lists(_RULES, max_size=1),
    wants=st.sampled_from([None, True, False]),
)
def test_what_search_hides_cannot_be_called_and_what_it_shows_can(
    settings: dict[str, Any], can_ask: bool, guest: bool, granted: list[str], wants: bool | None
) -> None:
    """Invariant 8: one rule for both; a tool is shown if some call of it may succeed."""

    async def yes(request: PermissionRequest) -> bool:
        return True

    async def check() -> None:
        book = GrantBook()
        for rule in granted:
            await book.add(Grant(rule=rule, user="ann"))
        permissions = Permissions(
            PermissionSettings.model_validate(settings), ask=yes if can_ask else None, grants=book
        )
        context = replace(CONTEXT, roles=frozenset({"guest"} if guest else ()))
        tools = [
            mail("reader", annotations={"read_only": True}, needs_permission=wants),
            mail("writer", needs_permission=wants),
            mail("far_writer", kind="mcp", server="far", needs_permission=wants),
        ]
        for item in tools:
            shown = permissions.denial_reason(item.tool, context, item) is None
            tries = [
                await permissions.authorize(item.tool, {"to": to}, context, item)
                for to in ("a", "ab", "b")
            ]
            assert shown or all(tries), "a hidden tool could be called"
            narrowed = any("(" in str(level) for level in (settings, granted))
            assert narrowed or not shown or not all(tries), "a shown tool could not be called"

    asyncio.run(check())


async def test_search_of_a_session_hides_what_permissions_refuse() -> None:
    run = bot({"mode": "plan"}, mail(), mail("read_mail", annotations={"read_only": True}))
    why: Callable[[Tool], str | None] = run.denial_reason(lambda: CONTEXT)
    assert why(run.catalog["read_mail"]) is None
    assert "only reading is allowed" in str(why(run.catalog["send_mail"]))
    run.permissions.use_mode("default", conversation="c")
    assert why(run.catalog["send_mail"]) is None


def test_what_is_denied_to_everybody_is_offered_to_nobody() -> None:
    settings = {"deny": ["send_mail", "post(b*)"], "roles": {"guest": {"deny": ["post"]}}}
    made = [mail(name, kind="mcp", server="mail") for name in ("send_mail", "post", "read_mail")]
    catalog = bot(settings, *made).catalog
    assert [tool.name for tool in catalog.active] == ["post", "read_mail"]
    assert catalog.servers == {"mail": 1}


async def test_one_context_in_many_replies_sees_each_change() -> None:
    """Changes of mode, grants and tools: nothing of an earlier reply is remembered."""

    async def change() -> str:
        """Change."""
        return "changed"

    async def read() -> str:
        """Read."""
        return "read"

    run = runner(tool_from_function(change))
    assert (await result(run, "change")).content == "changed"
    run.permissions.use_mode("plan", conversation=CONTEXT.conversation)
    assert (await result(run, "change")).outcome == "denied"
    run.permissions.use_mode("default", conversation=CONTEXT.conversation)
    assert (await result(run, "change")).content == "changed"
    other = runner(tool_from_function(read))
    run.replace(other.catalog, FunctionExecutor([tool_from_function(read)]))
    assert (await result(run, "read")).content == "read"
    assert (await result(run, "change")).is_error


@pytest.mark.parametrize(
    ("server", "annotations", "read_only", "destructive", "safe"),
    [
        (None, {}, False, False, False),
        (None, {"read_only": True}, True, False, True),
        (None, {"read_only": True, "destructive": True}, False, True, False),
        (None, {"destructiveHint": True}, False, True, False),
        ("files", {}, False, True, False),
        ("files", {"readOnlyHint": True}, True, False, True),
        ("files", {"readOnlyHint": True, "destructiveHint": True}, False, True, False),
        ("files", {"destructiveHint": False}, False, False, False),
        ("other", {"readOnlyHint": True, "destructiveHint": False}, False, True, False),
        ("other", {"concurrency_safe": True}, False, True, True),
    ],
)
def test_hints_count_for_trusted_servers_alone(
    server: str | None,
    annotations: dict[str, Any],
    read_only: bool,
    destructive: bool,
    safe: bool,
) -> None:
    kind: Any = "mcp" if server else "plugin"
    made = Tool(name="x", server=server, kind=kind, annotations=annotations)
    hints = Permissions(PermissionSettings(trusted_servers=("files",))).hints(made)
    expected = (read_only, destructive, safe)
    assert (hints.read_only, hints.destructive, hints.concurrency_safe) == expected
