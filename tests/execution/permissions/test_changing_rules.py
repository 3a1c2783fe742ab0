"""Permission rules that change while a bot runs, and tools that ask for their permissions."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from tests.execution.calling import CONTEXT, result, runner, tool
from tool_search import (
    CallOptions,
    CallRunner,
    ConfigurationError,
    ExecutableTool,
    Permissions,
    PermissionSettings,
    ToolContext,
)
from tool_search.config.permissions import PermissionRules

SCHEMA = {"type": "object", "properties": {"to": {"type": "string"}}, "required": ["to"]}
SEND = ("send_mail", {"to": "bo"})


async def _done(**arguments: Any) -> str:
    return "done"


def mail(name: str = "send_mail", **more: Any) -> ExecutableTool:
    return tool(_done, name, parameters=SCHEMA, **more)


def bot(*tools: ExecutableTool, **settings: Any) -> CallRunner:
    permissions = Permissions(PermissionSettings.model_validate(settings))
    return runner(*tools, options=CallOptions(permissions=permissions))


@pytest.mark.parametrize(
    ("level", "role"), [("settings", None), ("policy", None), ("role", "guest")]
)
async def test_rules_of_each_level_come_and_go_while_a_bot_runs(
    level: Any, role: str | None
) -> None:
    run = bot(mail(), mail("read_mail"))
    context = replace(CONTEXT, roles=frozenset({"guest"}))
    why = run.denial_reason(lambda: context)
    send = run.catalog["send_mail"]
    rules = PermissionRules(deny=("send_mail",))
    for _ in range(2):
        assert (await result(run, SEND, context)).content == "done"
        assert why(send) is None
        run.permissions.change_rules(add=rules, level=level, role=role)
        assert (await result(run, SEND, context)).is_error
        assert why(send) == ""
        assert (await result(run, ("read_mail", {"to": "bo"}), context)).content == "done"
        run.permissions.change_rules(remove=rules, level=level, role=role)


async def test_a_denied_tool_leaves_the_catalog_and_comes_back() -> None:
    run = bot(mail(), deny=("send_mail",))
    assert not list(run.catalog.active)
    denied = PermissionRules(deny=("send_mail",))
    run.permissions.change_rules(remove=denied, add=PermissionRules(allow=("send_mail",)))
    assert [each.name for each in run.catalog.active] == ["send_mail"]
    assert run.permissions.settings.allow == ("send_mail",)
    assert (await result(run, SEND)).content == "done"


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            {"remove": PermissionRules(deny=("x",))},
            "'x' cannot be removed from deny",
        ),
        ({"remove": PermissionRules(ask=("x",))}, "no rule there"),
        ({"level": "role"}, "give a role"),
        ({"role": "guest"}, "give a role"),
    ],
)
def test_a_wrong_change_is_an_error_and_changes_nothing(
    change: dict[str, Any], message: str
) -> None:
    permissions = Permissions(PermissionSettings(deny=("send_mail",)))
    before = permissions.settings, permissions.state
    with pytest.raises(ConfigurationError, match=message):
        permissions.change_rules(**change)
    assert (permissions.settings, permissions.state) == before


@pytest.mark.parametrize(
    ("rule", "expected"),
    [
        ("send_mail(bo)", True),
        ("send_mail(to=bo)", True),
        ("SendMail(bo)", True),
        ("send_mail(al)", False),
        ("send_mail", False),
        ("read_mail", True),
        ("drop_mail", False),
        ("no_such_tool", False),
        ("for_the_boss", False),
        ("fails(bo)", False),
    ],
)
async def test_a_tool_asks_for_its_permissions(rule: str, expected: bool) -> None:
    """Kode's `hasPermission`, with the rules that its users write."""
    answers: list[bool] = []

    async def asking(context: ToolContext) -> str:
        """Ask for a permission."""
        answers.append(context.has_permission(rule))
        return "asked"

    def fails(_: object) -> bool:
        raise LookupError("broken")

    run = bot(
        tool(asking, "asking"),
        mail(aliases=["SendMail"]),
        mail("read_mail"),
        mail("drop_mail"),
        mail("for_the_boss", roles=["boss"]),
        mail("fails", needs_permission=fails),
        allow=("send_mail(bo)", "read_mail", "asking"),
        ask=("send_mail(al)", "drop_mail"),
        otherwise="ask",
    )
    assert (await result(run, "asking")).content == "asked"
    assert answers == [expected]


def test_a_context_without_rules_permits() -> None:
    assert CONTEXT.has_permission("send_mail(bo)")


async def test_a_raising_needs_permission_is_not_the_tools_failure() -> None:
    ran: list[str] = []

    async def runs(**arguments: Any) -> str:
        ran.append("ran")
        return "done"

    def needs(_: object) -> bool:
        raise LookupError("the rule file is gone")

    run = bot(tool(runs, "send_mail", needs_permission=needs))
    finished = await result(run, "send_mail")
    assert finished.is_error
    assert finished.outcome == "denied"
    assert "The permission for send_mail could not be checked" in finished.content
    assert "the rule file is gone" in finished.content
    assert ran == []
