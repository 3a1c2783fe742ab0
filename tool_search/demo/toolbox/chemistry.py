"""Chemistry: elements, molar masses, solutions, decay."""

# ruff: noqa: D415  (a tool's first line ends with a Chinese full stop)

from __future__ import annotations

import math
import re

from tool_search.demo.toolbox.arguments import require_length, require_positive, require_within
from tool_search.demo.toolbox.elements import elements
from tool_search.demo.toolbox.rounding import tidy

_TOKEN = re.compile(r"([A-Z][a-z]?|\(|\))(\d{0,6})", re.ASCII)


def element_info(element: str) -> dict[str, str | int | float]:
    """Look up a chemical element. 查询化学元素的符号、原子序数和原子量。

    Args:
        element: Symbol, English or Chinese name, or atomic number, 元素, such as Fe, Iron, 铁, 26.
    """
    require_length("element", element, 1, 30)
    wanted = element.strip()
    for row in elements():
        names = (str(row.number), row.symbol.lower(), row.name.lower(), row.chinese_name)
        if wanted.lower() in names:
            return {
                "number": row.number,
                "symbol": row.symbol,
                "name": row.name,
                "chinese_name": row.chinese_name,
                "atomic_weight": row.weight,
            }
    raise ValueError(f"element {element!r} is not known; use a symbol, a name, or 1 to 118")


def molar_mass(formula: str) -> float:
    """Compute the molar mass of a chemical formula in g/mol. 计算化学式的摩尔质量。

    Args:
        formula: Such as H2O, Ca(OH)2 or CuSO4·5H2O, 化学式.
    """
    require_length("formula", formula, 1, 200)
    weights = {row.symbol: row.weight for row in elements()}
    parts = re.split(r"[·*.]", formula.replace(" ", ""))
    return tidy(round(sum(_part_mass(part, weights, formula) for part in parts), 6))


def ph_of_solution(hydrogen_ions: float) -> float:
    """Compute the pH from the concentration of hydrogen ions. 由氢离子浓度计算 pH 值。

    Args:
        hydrogen_ions: The concentration in moles a litre, 氢离子浓度（mol/L）; 1e-20 to 100.
    """
    require_within("hydrogen_ions", hydrogen_ions, 1e-20, 100)
    return tidy(-math.log10(hydrogen_ions))


def dilution_volume(
    stock_concentration: float, final_concentration: float, final_volume: float
) -> dict[str, float]:
    """Compute how to dilute a stock solution (C1V1=C2V2). 计算溶液稀释所需的体积。

    Args:
        stock_concentration: The concentration of the stock, 原液浓度.
        final_concentration: The concentration wanted, in the same unit, 目标浓度.
        final_volume: The volume wanted, 目标体积.

    Returns:
        The volumes of stock and of solvent, in the unit of the final volume.
    """
    require_positive("concentrations", stock_concentration, final_concentration)
    require_positive("final_volume", final_volume)
    if final_concentration > stock_concentration:
        raise ValueError(
            f"final_concentration {final_concentration!r} must not be above "
            f"stock_concentration {stock_concentration!r}"
        )
    stock = final_concentration / stock_concentration * final_volume
    return {"stock_volume": tidy(stock), "solvent_volume": tidy(final_volume - stock)}


def half_life_remaining(amount: float, half_life: float, elapsed: float) -> float:
    """Compute what is left after radioactive decay. 按半衰期计算剩余量。

    Args:
        amount: The amount at first, 初始量.
        half_life: The half-life, 半衰期.
        elapsed: The time since then, in the unit of the half-life, 经过时间.
    """
    require_positive("amount", amount)
    require_positive("half_life", half_life)
    require_within("elapsed", elapsed, 0, 1e300)
    return tidy(amount * 0.5 ** (elapsed / half_life))


def _part_mass(part: str, weights: dict[str, float], formula: str) -> float:
    """Return the mass of a part between two dots; a number in front multiplies it."""
    times = re.match(r"\d{0,6}", part, re.ASCII)
    position = times.end() if times else 0
    factor = int(part[:position] or 1)
    totals = [0.0]
    last = 0.0
    wrong = f"formula {formula!r} is not like H2O, Ca(OH)2 or CuSO4·5H2O"
    if position == len(part):
        raise ValueError(wrong)
    while position < len(part):
        token = _TOKEN.match(part, position)
        if token is None:
            raise ValueError(f"{wrong}: see {part[position:]!r}")
        symbol, count = token[1], int(token[2] or 1)
        if symbol == "(":
            totals.append(0.0)
        elif symbol == ")" and len(totals) > 1:
            last = totals.pop()
            totals[-1] += last * count
        elif symbol in weights:
            totals[-1] += weights[symbol] * count
        else:
            raise ValueError(f"{wrong}: {symbol!r} is no element or closes nothing")
        position = token.end()
    if len(totals) > 1:
        raise ValueError(f"{wrong}: a bracket is not closed")
    return totals[0] * factor


TOOLS = (element_info, molar_mass, ph_of_solution, dilution_volume, half_life_remaining)
