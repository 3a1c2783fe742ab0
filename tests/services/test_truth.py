"""Every row of the tables of refusals and facts, against a server that keeps its rule."""

from __future__ import annotations

import pytest

from tests.services.table import Row, all_rows, rule_named, served

ROWS = [pytest.param(row, id=row.key[:80]) for row in all_rows() if row.rule]


@pytest.mark.parametrize("row", ROWS)
async def test_refusal_ends_no_turn(row: Row) -> None:
    """A bot answers every turn, and is refused as rarely as the rule allows, or never."""
    rule = rule_named(row.rule)
    async with served(row) as bot:
        await rule.talk(bot)
        bot.check(rule)
        if row.host:
            assert not bot.service.refused
        elif rule.refusals:
            assert bot.service.refused, "the rule was never broken: the row is not tried"
