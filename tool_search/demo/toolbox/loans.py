"""Loans: payments, schedules, and the loan that a payment can carry."""

# ruff: noqa: D415  (a tool's first line ends with a Chinese full stop)

from __future__ import annotations

from tool_search.demo.toolbox.arguments import require_positive, require_within
from tool_search.demo.toolbox.rounding import cents, tidy

_MAX_MONEY = 1e15


def loan_payment(principal: float, annual_rate: float, months: int) -> dict[str, float]:
    """Compute the equal monthly payment of a loan or mortgage. 等额本息贷款月供计算。

    Args:
        principal: The sum borrowed, 贷款本金.
        annual_rate: The yearly interest rate in percent, 年利率（%）, such as 4.9.
        months: How many monthly payments there are, 还款月数; 1 to 600.

    Returns:
        monthly_payment, total_paid and total_interest.
    """
    payment = _annuity(principal, annual_rate, months)
    total = payment * months
    return {
        "monthly_payment": cents(payment),
        "total_paid": cents(total),
        "total_interest": cents(total - principal),
    }


def loan_schedule(
    principal: float, annual_rate: float, months: int, first_month: int = 1, count: int = 12
) -> list[dict[str, float]]:
    """List interest, principal and balance of each loan payment. 列出等额本息还款计划。

    Args:
        principal: The sum borrowed, 贷款本金.
        annual_rate: The yearly interest rate in percent, 年利率（%）.
        months: How many monthly payments there are, 还款月数.
        first_month: The first payment to list, 起始期数.
        count: How many payments to list, 期数; 1 to 120.
    """
    payment = _annuity(principal, annual_rate, months)
    require_within("first_month", first_month, 1, months)
    require_within("count", count, 1, 120)
    rate = annual_rate / 1200
    balance = principal
    rows: list[dict[str, float]] = []
    for month in range(1, min(months, first_month + count - 1) + 1):
        interest = balance * rate
        balance -= payment - interest
        if month >= first_month:
            repaid = cents(payment - interest)
            left = abs(cents(max(balance, 0.0)))
            row = {
                "month": month,
                "interest": cents(interest),
                "principal": repaid,
                "balance": left,
            }
            rows.append(row)
    return rows


def equal_principal_loan(principal: float, annual_rate: float, months: int) -> dict[str, float]:
    """Compute a loan repaid in equal parts of principal. 等额本金贷款计算，月供逐月递减。

    Args:
        principal: The sum borrowed, 贷款本金.
        annual_rate: The yearly interest rate in percent, 年利率（%）.
        months: How many monthly payments there are, 还款月数; 1 to 600.

    Returns:
        first_payment, last_payment, monthly_decrease and total_interest.
    """
    _require_loan(principal, annual_rate, months)
    rate = annual_rate / 1200
    part = principal / months
    return {
        "first_payment": cents(part + principal * rate),
        "last_payment": cents(part * (1 + rate)),
        "monthly_decrease": cents(part * rate),
        "total_interest": cents(principal * rate * (months + 1) / 2),
    }


def affordable_loan(monthly_payment: float, annual_rate: float, months: int) -> float:
    """Compute how much can be borrowed for a monthly payment. 按月供反推可贷金额。

    Args:
        monthly_payment: What can be paid each month, 月供.
        annual_rate: The yearly interest rate in percent, 年利率（%）.
        months: How many monthly payments there are, 还款月数; 1 to 600.
    """
    return cents(monthly_payment / _annuity(1, annual_rate, months))


def effective_annual_rate(nominal_rate: float, periods_per_year: int) -> float:
    """Turn a nominal yearly rate into the effective one. 名义年利率换算为实际年利率。

    Args:
        nominal_rate: The nominal yearly rate in percent, 名义年利率（%）.
        periods_per_year: How often a year interest is added, 每年计息次数; 1 to 366.
    """
    require_within("nominal_rate", nominal_rate, -100, 1000)
    require_within("periods_per_year", periods_per_year, 1, 366)
    growth = (1 + nominal_rate / 100 / periods_per_year) ** periods_per_year
    return tidy(round((growth - 1) * 100, 10))


def _require_loan(principal: float, annual_rate: float, months: int) -> None:
    require_positive("principal", principal)
    require_within("principal", principal, 0, _MAX_MONEY)
    require_within("annual_rate", annual_rate, 0, 100)
    require_within("months", months, 1, 600)


def _annuity(principal: float, annual_rate: float, months: int) -> float:
    _require_loan(principal, annual_rate, months)
    rate = annual_rate / 1200
    # Below this a float cannot tell the growth from 1.
    if rate < 1e-12:
        return principal / months
    return principal * rate / (1 - (1 + rate) ** -months)


TOOLS = (
    loan_payment,
    loan_schedule,
    equal_principal_loan,
    affordable_loan,
    effective_annual_rate,
)
