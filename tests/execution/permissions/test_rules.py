"""The calls that a rule matches, and the precedence of rules."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tool_search import ConfigurationError, PermissionSettings, Tool
from tool_search.config.permissions import PermissionRules
from tool_search.runner.execution.permissions.argument_values import CallArguments, Subjects
from tool_search.runner.execution.permissions.rules import (
    PermissionDecision,
    Rule,
    RuleSet,
    suggested_rules,
)

MAIL = Tool(
    name="send_mail",
    parameters={
        "type": "object",
        "properties": {"subject": {"type": "string"}, "to": {"type": "string"}},
        "required": ["to"],
    },
)
RUN = Tool(
    name="run",
    parameters={
        "type": "object",
        "properties": {"command": {"type": "string"}, "where": {"type": "object"}},
        "required": ["command"],
    },
)
FETCH = Tool(
    name="fetch",
    parameters={"type": "object", "properties": {"url": {"type": "string"}}},
)
GREETING = Tool(
    name="send_mail",
    parameters={
        "type": "object",
        "properties": {
            "to": {"type": "string", "default": "eve"},
            "subject": {"type": "string", "default": "hello"},
        },
    },
)
FORECAST = Tool(name="get_forecast", kind="mcp", server="my weather")
PREFIXED = Tool(name="mcp__git__status", kind="mcp", server="git")
IMPOSTOR = Tool(name="mcp__git__push", kind="mcp", server="evil")


def decision(
    rules: RuleSet, tool: Tool, arguments: dict[str, Any], subjects: Subjects | None = None
) -> PermissionDecision | None:
    return rules.decide(CallArguments(tool, arguments, subjects=subjects))


@pytest.mark.parametrize(
    ("rule", "tool", "names"),
    [
        ("send_mail", MAIL, True),
        ("send", MAIL, False),
        ("send_*", MAIL, True),
        ("*", MAIL, True),
        ("*", PREFIXED, True),
        ("get_forecast", FORECAST, True),
        ("mcp__my weather__get_forecast", FORECAST, True),
        ("mcp__my weather__*", FORECAST, True),
        ("mcp__my weather__get_*", FORECAST, True),
        ("mcp__my_weather__*", FORECAST, False),
        ("mcp__my weather", FORECAST, False),
        ("mcp__my__*", FORECAST, False),
        ("mcp__other__*", FORECAST, False),
        ("mcp__*", FORECAST, True),
        ("mcp__git__*", PREFIXED, True),
        ("mcp__git__status", PREFIXED, True),
        ("mcp__git__*", IMPOSTOR, False),
        ("mcp__git__push", IMPOSTOR, False),
        ("mcp__evil__*", IMPOSTOR, True),
        ("mcp__git__*", MAIL, False),
    ],
)
def test_rule_names_a_tool_by_its_name_or_its_server(rule: str, tool: Tool, names: bool) -> None:
    """A server's name alone matches nothing, and no server can name its tools as another's."""
    assert Rule.read(rule).names(tool) is names


@pytest.mark.parametrize("rule", ["*", "get_*", "get_forecast", "?et_forecast"])
def test_plain_name_allows_no_servers_tool(rule: str) -> None:
    read = Rule.read(rule)
    own = Tool(name="get_forecast")
    assert (read.names(own), read.names(own, allows=True)) == (True, True)
    assert (read.names(FORECAST), read.names(FORECAST, allows=True)) == (True, False)
    assert Rule.read("mcp__*").names(FORECAST, allows=True)


@pytest.mark.parametrize(
    ("server", "name", "rule", "of_server"),
    [
        ("a__b", "x", "mcp__a_%5Fb__x", "mcp__a_%5Fb__*"),
        ("a", "b__x", "mcp__a__b__x", "mcp__a__*"),
        ("a_", "x", "mcp__a%5F__x", "mcp__a%5F__*"),
        ("a", "_x", "mcp__a___x", "mcp__a__*"),
        ("my.server", "x", "mcp__my.server__x", "mcp__my.server__*"),
        ("a*", "x(y)", "mcp__a%2A__x%28y%29", "mcp__a%2A__*"),
        (None, "mcp__a__x", "%6Dcp__a__x", None),
        (None, "100%[a]", "100%25%5Ba%5D", None),
    ],
)
def test_each_tool_has_a_rule_that_names_it_alone(
    server: str | None, name: str, rule: str, of_server: str | None
) -> None:
    tool = Tool(name=name, kind="mcp" if server else "plugin", server=server)
    expected = [rule, of_server] if of_server else [rule]
    assert list(suggested_rules(tool, {})) == expected
    pairs: list[tuple[str | None, str]] = [
        ("a__b", "x"),
        ("a", "b__x"),
        ("a_", "x"),
        ("a", "_x"),
        ("my.server", "x"),
    ]
    pairs += [("my_server", "x"), ("a*", "x(y)"), ("ab", "x(y)"), (None, "mcp__a__x")]
    for other_server, other_name in pairs:
        other = Tool(name=other_name, kind="mcp" if other_server else "plugin", server=other_server)
        is_same = (other_server, other_name) == (server, name)
        assert Rule.read(rule).names(other) is is_same
        if of_server:
            assert Rule.read(of_server).names(other) is (other_server == server)


@pytest.mark.parametrize(
    ("rule", "tool", "arguments", "matches"),
    [
        ("send_mail", MAIL, {}, True),
        ("send_mail(to=bo@x.org)", MAIL, {"to": "bo@x.org"}, True),
        ("send_mail(to=*@x.org)", MAIL, {"to": "bo@x.org"}, True),
        ("send_mail(to=*@x.org)", MAIL, {"to": "bo@x.org.evil"}, False),
        ("send_mail(*@x.org)", MAIL, {"to": "bo@x.org", "subject": "no"}, True),
        ("send_mail(subject=hi*)", MAIL, {"to": "bo"}, False),
        ("send_mail(to=*)", MAIL, {}, False),
        ("run(git *)", RUN, {"command": "git status"}, True),
        ("run(git:*)", RUN, {"command": "git"}, True),
        ("run(git:*)", RUN, {"command": "git push"}, True),
        ("run(git:*)", RUN, {"command": "gitk"}, False),
        ("run(A=1 make)", RUN, {"command": "A=1 make"}, True),
        ("run(where.host=x*)", RUN, {"command": "ls", "where": {"host": "x1"}}, True),
        ("run(where.host=x*)", RUN, {"command": "ls", "where": "x1"}, False),
        ("run(where.n=5)", RUN, {"command": "ls", "where": {"n": 5}}, True),
        ("fetch(domain:x.org)", FETCH, {"url": "https://X.org:8/a"}, True),
        ("fetch(domain:x.org)", FETCH, {"url": "https://x.org.evil.net/"}, False),
        ("fetch(domain:x.org)", FETCH, {"url": "https://x.org@evil.net/"}, False),
        ("fetch(domain:x.org)", FETCH, {"url": "https://www.x.org/"}, False),
        ("fetch(domain:*.x.org)", FETCH, {"url": "https://www.x.org./"}, True),
        ("fetch(domain:*.x.org)", FETCH, {"url": "https://evilx.org/"}, False),
        ("fetch(domain:x.org)", FETCH, {"url": "x.org/a"}, True),
        ("fetch(domain:x.org)", FETCH, {"url": "https://Ｘ．ｏｒｇ/"}, True),
        ("fetch(domain:x.org)", FETCH, {"url": "https://x。org/"}, True),
        ("fetch(domain:пример.рф)", FETCH, {"url": "https://xn--e1afmkfd.xn--p1ai/"}, True),
        ("fetch(domain:*.xn--p1ai)", FETCH, {"url": "https://ПРИМЕР.рф/"}, True),
        ("send_mail(subject=hello)", GREETING, {"to": "bo"}, True),
        ("send_mail(subject=hello)", GREETING, {"to": "bo", "subject": "bye"}, False),
        ("send_mail(eve)", GREETING, {}, True),
    ],
)
def test_pattern_is_held_against_an_argument(
    rule: str, tool: Tool, arguments: dict[str, Any], matches: bool
) -> None:
    read = Rule.read(rule)
    assert read.covers(CallArguments(tool, arguments), every=True) is matches
    assert read.covers(CallArguments(tool, arguments), every=False) is matches


@pytest.mark.parametrize(
    "address",
    ["http://[broken", "https://evil.net\\@x.org/", "https:x.org", f"https://{'a' * 64}.org", ""],
)
def test_address_that_cannot_be_read_for_certain_is_denied_and_never_allowed(address: str) -> None:
    """The final reader of the address may reach another host than the rule."""
    read = Rule.read("fetch(domain:x.org)")
    assert read.covers(CallArguments(FETCH, {"url": address}), every=False)
    assert not read.covers(CallArguments(FETCH, {"url": address}), every=True)


def test_rule_that_allows_must_match_every_value_and_one_that_denies_any() -> None:
    levels = PermissionRules(allow=("send_mail(to=*@x.org)",), deny=("send_mail(to=eve*)",))
    rules = RuleSet((levels,))
    assert decision(rules, MAIL, {"to": ["a@x.org", "b@x.org"]}) == "allow"
    assert decision(rules, MAIL, {"to": ["a@x.org", "b@y.org"]}) is None
    assert decision(rules, MAIL, {"to": ["a@x.org", "eve@x.org"]}) == "deny"
    assert decision(rules, MAIL, {"to": []}) is None


def test_tool_says_itself_what_its_calls_are_about() -> None:
    """A shell's command has parts that a rule must each allow."""

    def parts(arguments: Any) -> list[str]:
        return [part.strip() for part in arguments["command"].split("&&")]

    rules = RuleSet((PermissionRules(allow=("run(git:*)",), deny=("run(rm:*)",)),))
    assert decision(rules, RUN, {"command": "git add . && git push"}, parts) == "allow"
    assert decision(rules, RUN, {"command": "git add . && make"}, parts) is None
    assert decision(rules, RUN, {"command": "git add . && rm -r x"}, parts) == "deny"


_KINDS = ("allow", "ask", "deny")


@given(st.lists(st.tuples(st.sampled_from(_KINDS), st.sampled_from(["send_mail", "send_*"]))))
def test_deny_wins_over_ask_and_ask_over_allow(given_rules: list[tuple[str, str]]) -> None:
    levels = tuple(PermissionRules.model_validate({kind: [rule]}) for kind, rule in given_rules)
    kinds = [kind for kind, _ in given_rules]
    expected = max(kinds, key=_KINDS.index, default=None)
    assert decision(RuleSet(levels), MAIL, {"to": "bo"}) == expected
    assert decision(RuleSet(levels[::-1]), MAIL, {"to": "bo"}) == expected


@pytest.mark.parametrize("rule", ["", " run", "(x)", "run(", "run()", "run(x", "run(x) "])
def test_rule_that_cannot_be_read_is_refused(rule: str) -> None:
    with pytest.raises(ConfigurationError, match="rule"):
        PermissionSettings(deny=(rule,))
