"""The example toolbox: tools that work offline, on the standard library alone.

Each tool is a plain function. Its signature and docstring are all that a catalog needs: the
first line describes it in English and Chinese, `Args:` describes its parameters. Bad input
raises `ValueError`; results are JSON values. Near-duplicates (an equal-payment and an
equal-principal loan, a length and a height) are there on purpose: they make searching hard.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tool_search.demo.toolbox import (
    arithmetic,
    chance,
    chemistry,
    chinese_calendar,
    chinese_numerals,
    clocks,
    colors,
    cron,
    data_formats,
    dates,
    encodings_of_text,
    geography,
    geometry,
    health,
    investments,
    loans,
    networks,
    numerals,
    patterns,
    physical_units,
    physics,
    prices,
    security,
    statistics_of_samples,
    texts,
    units,
    validation,
)

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["TOOLBOX", "TOOLS"]

TOOLBOX: tuple[Callable[..., object], ...] = (
    *units.TOOLS,
    *physical_units.TOOLS,
    *arithmetic.TOOLS,
    *numerals.TOOLS,
    *chinese_numerals.TOOLS,
    *statistics_of_samples.TOOLS,
    *chance.TOOLS,
    *geometry.TOOLS,
    *physics.TOOLS,
    *chemistry.TOOLS,
    *dates.TOOLS,
    *clocks.TOOLS,
    *cron.TOOLS,
    *chinese_calendar.TOOLS,
    *loans.TOOLS,
    *investments.TOOLS,
    *prices.TOOLS,
    *health.TOOLS,
    *texts.TOOLS,
    *patterns.TOOLS,
    *encodings_of_text.TOOLS,
    *data_formats.TOOLS,
    *security.TOOLS,
    *validation.TOOLS,
    *networks.TOOLS,
    *colors.TOOLS,
    *geography.TOOLS,
)
"""Every tool, grouped by domain, in a fixed order."""

# The name that `tools:` of a bot's configuration looks for in a module.
TOOLS = TOOLBOX
