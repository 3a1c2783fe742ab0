"""Savings and investments: interest, plans, present value, return."""

# ruff: noqa: D415  (a tool's first line ends with a Chinese full stop)

from __future__ import annotations

import math

from tool_search.demo.toolbox.arguments import (
    require_length,
    require_not_negative,
    require_positive,
    require_within,
)
from tool_search.demo.toolbox.rounding import cents, tidy

_MAX_MONEY = 1e15


def simple_interest(principal: float, annual_rate: float, years: float) -> dict[str, float]:
    """Compute simple interest, without interest on interest. 计算单利利息。

    Args:
        principal: The sum invested, 本金.
        annual_rate: The yearly rate in percent, 年利率（%）.
        years: How many years, 年数; up to 200.
    """
    _require_growth(principal, annual_rate, years)
    interest = principal * annual_rate / 100 * years
    return {"interest": cents(interest), "final_amount": cents(principal + interest)}


def compound_interest(
    principal: float, annual_rate: float, years: float, periods_per_year: int = 1
) -> dict[str, float]:
    """Compute compound interest on an investment. 计算复利本息。

    Args:
        principal: The sum invested, 本金.
        annual_rate: The yearly rate in percent, 年利率（%）.
        years: How many years, 年数; up to 200.
        periods_per_year: How often a year interest is added, 每年计息次数; 1 to 366.
    """
    _require_growth(principal, annual_rate, years)
    require_within("periods_per_year", periods_per_year, 1, 366)
    growth = (1 + annual_rate / 100 / periods_per_year) ** (periods_per_year * years)
    final = principal * growth
    return {"interest": cents(final - principal), "final_amount": cents(final)}


def regular_savings(monthly_deposit: float, annual_rate: float, months: int) -> dict[str, float]:
    """Compute what regular monthly deposits grow to. 计算每月定投的终值。

    Args:
        monthly_deposit: What is paid in at the end of each month, 每月存入.
        annual_rate: The yearly rate in percent, added monthly, 年利率（%）.
        months: How many months, 月数; 1 to 1200.
    """
    require_not_negative("monthly_deposit", monthly_deposit)
    require_within("monthly_deposit", monthly_deposit, 0, _MAX_MONEY)
    paid = monthly_deposit * months
    final = monthly_deposit * _growth_of_deposits(annual_rate, months)
    return {"paid_in": cents(paid), "interest": cents(final - paid), "final_amount": cents(final)}


def savings_goal_deposit(goal: float, annual_rate: float, months: int) -> float:
    """Compute the monthly deposit that reaches a savings goal. 为达到储蓄目标每月应存多少。

    Args:
        goal: The sum wanted at the end, 目标金额.
        annual_rate: The yearly rate in percent, added monthly, 年利率（%）.
        months: How many months, 月数; 1 to 1200.
    """
    require_positive("goal", goal)
    require_within("goal", goal, 0, _MAX_MONEY)
    return cents(goal / _growth_of_deposits(annual_rate, months))


def years_to_double(annual_rate: float) -> float:
    """Compute how many years money takes to double. 计算资金翻倍所需年数。

    Args:
        annual_rate: The yearly rate in percent, compounded yearly, 年利率（%）; 0.001 to 1000.
    """
    require_within("annual_rate", annual_rate, 0.001, 1000)
    return tidy(math.log(2) / math.log1p(annual_rate / 100))


def net_present_value(rate: float, cash_flows: list[float]) -> float:
    """Compute the net present value of cash flows. 计算净现值 NPV。

    Args:
        rate: The discount rate a period in percent, 折现率（%）; above -99.
        cash_flows: The flows in order, the first now and not discounted, 现金流.
    """
    require_within("rate", rate, -99, 1000)
    _require_flows(cash_flows)
    return cents(_present_value(rate / 100, cash_flows))


def internal_rate_of_return(cash_flows: list[float]) -> float:
    """Compute the internal rate of return in percent. 计算内部收益率 IRR。

    Args:
        cash_flows: The flows in order, the first now, 现金流; some negative, some positive.

    Returns:
        The rate a period in percent, from -99 to 1000.
    """
    _require_flows(cash_flows)
    low, high = -0.99, 10.0
    rising = _present_value(low, cash_flows) < 0
    if rising == (_present_value(high, cash_flows) < 0):
        raise ValueError(f"cash_flows {cash_flows!r} have no single rate from -99 to 1000 percent")
    for _ in range(200):
        middle = (low + high) / 2
        if (_present_value(middle, cash_flows) < 0) == rising:
            low = middle
        else:
            high = middle
    return round(low * 100, 6)


def _require_growth(principal: float, annual_rate: float, years: float) -> None:
    require_not_negative("principal", principal)
    require_within("principal", principal, 0, _MAX_MONEY)
    require_within("annual_rate", annual_rate, -100, 100)
    require_within("years", years, 0, 200)


def _require_flows(cash_flows: list[float]) -> None:
    require_length("cash_flows", cash_flows, 1, 100)
    for flow in cash_flows:
        require_within("each cash flow", flow, -_MAX_MONEY, _MAX_MONEY)


def _growth_of_deposits(annual_rate: float, months: int) -> float:
    require_within("annual_rate", annual_rate, 0, 100)
    require_within("months", months, 1, 1200)
    rate = annual_rate / 1200
    # Below this a float cannot tell the growth from 1.
    return months if rate < 1e-12 else ((1 + rate) ** months - 1) / rate


def _present_value(rate: float, cash_flows: list[float]) -> float:
    return sum(flow / (1 + rate) ** period for period, flow in enumerate(cash_flows))


TOOLS = (
    simple_interest,
    compound_interest,
    regular_savings,
    savings_goal_deposit,
    years_to_double,
    net_present_value,
    internal_rate_of_return,
)
