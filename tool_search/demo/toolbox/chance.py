"""Chance: dice, random numbers and choices, from the system's own randomness."""

# ruff: noqa: D415  (a tool's first line ends with a Chinese full stop)

from __future__ import annotations

import asyncio
import secrets
from collections import Counter

from tool_search.demo.toolbox.arguments import require_length, require_within
from tool_search.demo.toolbox.rounding import tidy

_ROLLS_BETWEEN_PAUSES = 2000


def roll_dice(count: int = 1, sides: int = 6) -> dict[str, int | list[int]]:
    """Roll dice. 掷骰子。

    Args:
        count: How many dice, 骰子数; 1 to 100.
        sides: How many sides each has, 面数; 2 to 1000.
    """
    require_within("count", count, 1, 100)
    require_within("sides", sides, 2, 1000)
    rolls = [secrets.randbelow(sides) + 1 for _ in range(count)]
    return {"rolls": rolls, "total": sum(rolls)}


def random_integer(low: int, high: int) -> int:
    """Draw a random whole number from a range. 在范围内取随机整数。

    Args:
        low: The smallest that may come, 最小值.
        high: The largest that may come, 最大值.
    """
    if high < low:
        raise ValueError(f"high must be at least low ({low!r}), not {high!r}")
    return low + secrets.randbelow(high - low + 1)


def pick_at_random(options: list[str], count: int = 1) -> list[str]:
    """Pick some of the given options, as in a lottery. 从选项中随机抽取，如抽签。

    Args:
        options: What may be picked, 选项.
        count: How many to pick, 抽取个数; none is picked twice.
    """
    require_length("options", options, 1, 10_000)
    require_within("count", count, 1, len(options))
    return secrets.SystemRandom().sample(options, count)


async def simulate_dice(count: int, sides: int = 6, rounds: int = 10_000) -> dict[str, float]:
    """Estimate how often each total of dice comes. 模拟掷骰子，估计各点数和的频率。

    Args:
        count: How many dice a round, 骰子数; 1 to 10.
        sides: How many sides each has, 面数; 2 to 20.
        rounds: How often they are rolled, 模拟次数; at most 100000.

    Returns:
        The share of the rounds that came to each total, lowest total first.
    """
    require_within("count", count, 1, 10)
    require_within("sides", sides, 2, 20)
    require_within("rounds", rounds, 1, 100_000)
    generator = secrets.SystemRandom()
    totals: Counter[int] = Counter()
    for done in range(rounds):
        # Other conversations run on the same loop.
        if done % _ROLLS_BETWEEN_PAUSES == 0:
            await asyncio.sleep(0)
        totals[sum(generator.choices(range(1, sides + 1), k=count))] += 1
    return {str(total): tidy(totals[total] / rounds) for total in sorted(totals)}


TOOLS = (roll_dice, random_integer, pick_at_random, simulate_dice)
