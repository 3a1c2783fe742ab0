"""Every row of the tables of refusals, against a server that refuses in the row's words."""

from __future__ import annotations

from collections.abc import Iterator
from typing import get_args

import pytest

from tests.services.request_rules import ALL_RULES as RULES
from tests.services.rules import bot_of
from tool_search.config.providers import Dialect
from tool_search.providers.refusals import Answer, answers_in


def rows() -> Iterator[tuple[Dialect, Answer]]:
    """Yield each row that names its rule, in the first dialect of both."""
    seen: set[int] = set()
    for dialect in get_args(Dialect):
        for row in answers_in(dialect):
            if row.rule and dialect in RULES[row.rule].dialects and id(row) not in seen:
                seen.add(id(row))
                yield dialect, row


ROWS = [
    pytest.param(dialect, row, id=f"{row.service}: {row.words}"[:80]) for dialect, row in rows()
]


@pytest.mark.parametrize(("dialect", "row"), ROWS)
async def test_refusal_ends_no_turn(dialect: Dialect, row: Answer) -> None:
    """The first model's bot answers every turn, and is refused as rarely as the rule allows."""
    rule = RULES[row.rule]
    # The words alone must do: the table of facts knows no host on loopback.
    async with bot_of(rule, dialect, rule.model, words=row.words, status=row.status) as bot:
        await rule.talk(bot)
        bot.check(rule)
        if rule.refusals:
            assert bot.service.refused, "the rule was never broken: the row is not tried"
