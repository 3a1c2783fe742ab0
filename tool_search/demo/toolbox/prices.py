"""Prices: exchange at a given rate, bills, discounts, taxes, margins."""

# ruff: noqa: D415  (a tool's first line ends with a Chinese full stop)

from __future__ import annotations

import math

from tool_search.demo.toolbox.arguments import (
    require_not_negative,
    require_positive,
    require_within,
)
from tool_search.demo.toolbox.rounding import cents, tidy

_MAX_MONEY = 1e15
# Upper end of the taxable income, percent, quick deduction: 个人所得税法 (2018), table 1.
_CHINA_BRACKETS = (
    (36_000, 3, 0),
    (144_000, 10, 2_520),
    (300_000, 20, 16_920),
    (420_000, 25, 31_920),
    (660_000, 30, 52_920),
    (960_000, 35, 85_920),
    (math.inf, 45, 181_920),
)


def exchange_currency(amount: float, rate: float, fee_percent: float = 0.0) -> float:
    """Convert money at an exchange rate you give. 按给定汇率换算货币金额。

    Args:
        amount: The sum to convert, 金额.
        rate: What one unit of the old currency costs in the new one, 汇率; nothing looks it up.
        fee_percent: The fee in percent that is taken off, 手续费（%）; 0 to 100.
    """
    _require_money("amount", amount)
    require_positive("rate", rate)
    require_within("rate", rate, 0, 1e12)
    require_within("fee_percent", fee_percent, 0, 100)
    return cents(amount * rate * (1 - fee_percent / 100))


def split_bill(bill: float, people: int, tip_percent: float = 0.0) -> dict[str, float]:
    """Split a restaurant bill with a tip among people. 聚餐账单分摊，含小费。

    Args:
        bill: The bill before the tip, 账单金额.
        people: How many people pay, 人数; 1 to 1000.
        tip_percent: The tip in percent of the bill, 小费（%）; 0 to 100.

    Returns:
        tip, total, and what each pays, rounded up to the cent.
    """
    _require_money("bill", bill)
    require_within("people", people, 1, 1000)
    require_within("tip_percent", tip_percent, 0, 100)
    tip = cents(bill * tip_percent / 100)
    total = cents(bill + tip)
    # In whole cents: a float a hair above a cent must not cost another one.
    each = -(-round(total * 100) // people) / 100
    return {"tip": tip, "total": total, "each": each}


def discount_price(price: float, percent_off: float) -> dict[str, float]:
    """Compute a sale price after a discount. 计算打折后的价格。

    Args:
        price: The price before, 原价.
        percent_off: The discount in percent, 减免百分比; 打八折 (80 % of the price) is 20.
    """
    _require_money("price", price)
    require_within("percent_off", percent_off, 0, 100)
    final = cents(price * (1 - percent_off / 100))
    return {"price": final, "saved": cents(price - final)}


def add_sales_tax(net_price: float, tax_percent: float) -> dict[str, float]:
    """Add sales tax or VAT to a net price. 在不含税价上加税，求含税价。

    Args:
        net_price: The price without tax, 不含税价.
        tax_percent: The tax rate in percent, 税率（%）.
    """
    _require_money("net_price", net_price)
    require_within("tax_percent", tax_percent, 0, 1000)
    tax = cents(net_price * tax_percent / 100)
    return {"tax": tax, "gross_price": cents(net_price + tax)}


def remove_sales_tax(gross_price: float, tax_percent: float) -> dict[str, float]:
    """Take sales tax or VAT out of a gross price. 从含税价中拆出税额和不含税价。

    Args:
        gross_price: The price with tax, 含税价.
        tax_percent: The tax rate in percent, 税率（%）.
    """
    _require_money("gross_price", gross_price)
    require_within("tax_percent", tax_percent, 0, 1000)
    net = cents(gross_price / (1 + tax_percent / 100))
    return {"tax": cents(gross_price - net), "net_price": net}


def profit_margin(cost: float, price: float) -> dict[str, float]:
    """Compute profit, margin and markup of a sale. 计算利润、毛利率和加价率。

    Args:
        cost: What it cost, 成本; above 0.
        price: What it is sold for, 售价; above 0.
    """
    _require_money("cost", cost)
    _require_money("price", price)
    require_within("cost", cost, 0.001, _MAX_MONEY)
    require_within("price", price, 0.001, _MAX_MONEY)
    profit = price - cost
    return {
        "profit": cents(profit),
        "margin_percent": tidy(profit / price * 100),
        "markup_percent": tidy(profit / cost * 100),
    }


def break_even_units(fixed_costs: float, unit_price: float, unit_cost: float) -> int:
    """Compute how many units must be sold to break even. 计算盈亏平衡销量。

    Args:
        fixed_costs: Costs that do not depend on sales, 固定成本.
        unit_price: The price of one unit, 单价.
        unit_cost: The variable cost of one unit, 单位成本; below the price.
    """
    for name, value in (
        ("fixed_costs", fixed_costs),
        ("unit_price", unit_price),
        ("unit_cost", unit_cost),
    ):
        _require_money(name, value)
    if unit_price - unit_cost < 0.0001:
        raise ValueError(f"unit_price {unit_price!r} must be above unit_cost {unit_cost!r}")
    return math.ceil(tidy(fixed_costs / (unit_price - unit_cost)))


def china_income_tax(taxable_income: float) -> dict[str, float]:
    """Compute Chinese yearly income tax on comprehensive income. 中国综合所得个人所得税计算。

    Args:
        taxable_income: The year's taxable income in yuan, after all deductions, 应纳税所得额
            (the 60,000 yuan allowance, insurance and special deductions are already taken off).

    Returns:
        tax in yuan, the marginal rate in percent, and the quick deduction (速算扣除数).
    """
    _require_money("taxable_income", taxable_income)
    rate, deduction = next((r, d) for top, r, d in _CHINA_BRACKETS if taxable_income <= top)
    tax = cents(taxable_income * rate / 100 - deduction)
    return {"tax": tax, "rate_percent": rate, "quick_deduction": deduction}


def _require_money(name: str, amount: float) -> None:
    require_not_negative(name, amount)
    require_within(name, amount, 0, _MAX_MONEY)


TOOLS = (
    exchange_currency,
    split_bill,
    discount_price,
    add_sales_tax,
    remove_sales_tax,
    profit_margin,
    break_even_units,
    china_income_tax,
)
