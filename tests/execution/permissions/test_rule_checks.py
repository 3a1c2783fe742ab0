"""Rules that can never match are named when the tools are known."""

from __future__ import annotations

import logging
from typing import Any

import pytest

from tool_search import (
    CallOptions,
    CallRunner,
    ConfigurationError,
    ExecutableTool,
    Permissions,
    PermissionSettings,
    Tool,
)

SCHEMA = {
    "type": "object",
    "properties": {
        "to": {"type": "string"},
        "mode": {"enum": ["fast", "slow"]},
        "message": {"$ref": "#/$defs/message"},
        "extra": {"type": "object"},
        "tags": {"type": "array", "items": {"const": "new"}},
    },
    "$defs": {"message": {"properties": {"body": {"type": "string"}}}},
    "required": ["to"],
}
TOOLS = [
    Tool(name="send_mail", parameters=SCHEMA),
    Tool(name="get_time"),
    Tool(name="post", kind="mcp", server="my.chat", parameters=SCHEMA),
]


def warnings(*tools: Tool, **settings: Any) -> tuple[str, ...]:
    """Return the warnings of a bot with these settings and tools at its start."""

    async def run(**arguments: Any) -> str:
        return "done"

    permissions = Permissions(PermissionSettings.model_validate(settings))
    made = [ExecutableTool(tool=tool, function=run) for tool in tools or TOOLS]
    CallRunner(made, options=CallOptions(permissions=permissions))
    return permissions.warnings


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        (
            {"deny": ["send_mial"]},
            "permissions.deny: the rule 'send_mial' names no tool; known: 'send_mail'",
        ),
        ({"deny": ["Send_Mail"]}, "upper and lower case differ; known: 'send_mail'"),
        (
            {"ask": ["mcp__my_chat__*"]},
            "permissions.ask: the rule 'mcp__my_chat__*' names no tool; known: 'mcp__my.chat__",
        ),
        ({"ask": ["mcp__my.chat"]}, "names no tool; known: 'mcp__my.chat__"),
        ({"policy": {"deny": ["mcp__my.chat__past"]}}, "permissions.policy.deny: the rule"),
        ({"roles": {"guest": {"deny": ["nothing"]}}}, "permissions.roles.guest.deny: the rule"),
        ({"allow": ["post"]}, "must name with their server; known: 'mcp__my.chat__post'"),
        (
            {"allow": ["mcp__my.chat__post(bo)"]},
            "must name the argument, as in mcp__my.chat__post(to=bo)",
        ),
        (
            {"deny": ["send_mail(too=bo)"]},
            "names 'too', which is not an argument of 'send_mail'; known: 'to'",
        ),
        (
            {"deny": ["send_mail(To=bo)"]},
            "names 'To', which is not an argument of 'send_mail'; known: 'to'",
        ),
        (
            {"deny": ["mcp__*(message.text=x)"]},
            "names 'message.text', which is not an argument of 'post'",
        ),
        (
            {"deny": ["send_mail(mode=Fast)"]},
            "'mode' of 'send_mail' has other values; known: 'fast', 'slow'",
        ),
        ({"deny": ["send_mail(tags=old)"]}, "has other values; known: 'new'"),
        ({"deny": ["send_mail(to = bo)"]}, "has a space next to =, so it names no argument"),
        ({"trusted_servers": ["my_chat"]}, "no tool is from a server 'my_chat'; known: 'my.chat'"),
    ],
)
def test_rule_that_can_never_match_is_named_with_what_there_is(
    settings: dict[str, Any], said: str
) -> None:
    (warning,) = warnings(**settings)
    assert said in warning


@pytest.mark.parametrize(
    "settings",
    [
        {"allow": ["*", "get_*", "send_mail(to=*@x.org)", "send_mail(bo)"]},
        {
            "allow": [
                "mcp__*",
                "mcp__my.chat__*",
                "mcp__my.chat__p*(to=bo)",
                "mcp__my.chat__post(*)",
            ]
        },
        {"deny": ["*", "post", "p*", "mcp__my.chat__post(bo)", "send_mail(message.body=x)"]},
        {"deny": ["send_mail(mode=f*)", "send_mail(extra.anything=x)", "send_mail(tags=new)"]},
        {"deny": ["get_time(any=thing)", "send_mail(A=1 make)", "mcp__my.chat__post(tags=n*)"]},
        {"trusted_servers": ["my.chat"]},
    ],
)
def test_rule_that_may_match_is_not_warned_of(settings: dict[str, Any]) -> None:
    assert warnings(**settings) == ()


def test_each_rule_is_warned_of_once_and_by_the_log(caplog: pytest.LogCaptureFixture) -> None:
    """A new listing repeats no warning; a late server removes the cause of one."""
    permissions = Permissions(PermissionSettings(deny=("mcp__late__*",)))
    runner = CallRunner(options=CallOptions(permissions=permissions))
    late = [Tool(name="x", kind="mcp", server="late")]
    with caplog.at_level(logging.WARNING):
        for tools in ([], TOOLS, TOOLS, [*TOOLS, *late]):
            permissions.offered(CallRunner(_executable(tools)).catalog)
    assert runner.catalog == {}
    assert [record.message for record in caplog.records] == [
        f"rule_never_matches: {permissions.warnings[0]}"
    ]


def _executable(tools: list[Tool]) -> list[ExecutableTool]:
    return [ExecutableTool(tool=tool, function=lambda: "done") for tool in tools]


@pytest.mark.parametrize(
    "pattern",
    [
        "domain:",
        "domain:*",
        "domain:x.org:80",
        "domain:0x7f.1",
        "domain:*.127.0.0.1",
        "domain:x*.org",
        "url=domain:https://x.org",
        "to=email:x.org",
        "to=email:@x.org",
        "to=email:a@b@c",
        "email:*@*.1",
    ],
)
def test_pattern_of_no_host_and_no_mail_address_is_refused(pattern: str) -> None:
    with pytest.raises(ConfigurationError, match="cannot be read"):
        PermissionSettings(deny=(f"fetch({pattern})",))


def test_reference_to_a_name_with_a_tilde_is_followed_as_a_json_pointer() -> None:
    """RFC 6901, section 4: `~01` is `~1`, and not `/`."""
    schema = {
        "properties": {"message": {"$ref": "#/$defs/a~01b"}},
        "$defs": {"a~1b": {"properties": {"body": {}}}, "a/b": {"properties": {"other": {}}}},
    }
    (warning,) = warnings(
        Tool(name="send", parameters=schema), deny=["send(message.text=x)", "send(message.body=x)"]
    )
    assert "message.text" in warning
