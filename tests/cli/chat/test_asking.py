"""The person at the terminal is asked whether a tool may be called."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from tool_search import Tool
from tool_search.cli.chat.asking import AskingPerson
from tool_search.cli.chat.plain import PlainScreen
from tool_search.i18n import Language
from tool_search.runner.execution import PermissionRequest

MAIL = PermissionRequest(
    tool=Tool(name="send_mail"),
    arguments={"to": "bo@example.com"},
    conversation="c",
    language="en-US",
)


async def _answer(typed: str, request: PermissionRequest = MAIL) -> tuple[bool, str]:
    async def read() -> str:
        return typed

    answer = await AskingPerson(PlainScreen(), read=read)(request)
    return answer.allow, answer.scope


@pytest.mark.parametrize(
    ("language", "typed", "answer"),
    [
        ("en-US", "y\n", (True, "once")),
        ("en-US", " YES \n", (True, "once")),
        ("en-US", "c\n", (True, "conversation")),
        ("en-US", "a\n", (True, "always")),
        ("en-US", "n\n", (False, "once")),
        ("en-US", "yes please\n", (False, "once")),
        ("en-US", "\n", (False, "once")),
        ("en-US", "", (False, "once")),
        ("ru-RU", "Да\n", (True, "once")),
        ("ru-RU", "б\n", (True, "conversation")),
        ("ru-RU", "всегда\n", (True, "always")),
        ("ru-RU", "нет\n", (False, "once")),
        ("zh-CN", "是\n", (True, "once")),
        ("zh-CN", "本次\n", (True, "conversation")),
        ("zh-CN", "总是\n", (True, "always")),
        ("zh-CN", "否\n", (False, "once")),
    ],
)
async def test_answer_is_understood_in_the_conversations_language(
    language: Language, typed: str, answer: tuple[bool, str]
) -> None:
    assert await _answer(typed, replace(MAIL, language=language)) == answer


async def test_yes_for_longer_grants_the_narrowest_rule_and_says_so(
    capsys: pytest.CaptureFixture[str],
) -> None:
    async def read() -> str:
        return "a\n"

    request = replace(MAIL, suggestions=("send_mail(bo@example.com)", "send_mail"))
    answer = await AskingPerson(PlainScreen(), read=read)(request)
    assert answer.rule == "send_mail(bo@example.com)"
    assert "c and a allow: send_mail(bo@example.com)" in capsys.readouterr().err


async def test_question_of_a_tools_own_is_shown_and_grants_nothing(
    capsys: pytest.CaptureFixture[str],
) -> None:
    question = replace(MAIL, question="Overwrite it?")
    assert await _answer("a\n", question) == (True, "once")
    assert "send_mail asks: Overwrite it?" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "shown"),
    [
        ({"to": "bo@example.com"}, '{"to": "bo@example.com"}'),
        ({"x": "a" * 1_500 + "; rm -rf /"}, "aaa; rm -rf /"),
        ({"x": "\u202egpj.exe"}, '"\\u202egpj.exe"'),
        ({"x": "\x1b[2J"}, '"\\u001b[2J"'),
        ({"кому": "боб"}, '{"кому": "боб"}'),
        ({"x": "b" * 5_000 + "end"}, "…[3012]…"),
    ],
)
async def test_question_hides_nothing_of_the_arguments(
    arguments: dict[str, Any], shown: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """A cut or an invisible mark must not hide what is allowed."""
    await _answer("n\n", replace(MAIL, arguments=arguments))
    assert shown in capsys.readouterr().err
