"""Arithmetic: a calculator, percentages, whole numbers, fractions and equations."""

# ruff: noqa: D415  (a tool's first line ends with a Chinese full stop)

from __future__ import annotations

import ast
import math
import operator
import re
from fractions import Fraction
from typing import TYPE_CHECKING

from tool_search.demo.toolbox.arguments import require_finite, require_length, require_within
from tool_search.demo.toolbox.rounding import tidy

if TYPE_CHECKING:
    from collections.abc import Callable

    _Number = int | float

_MAX_BITS = 4096
_DIGITS = "0123456789abcdefghijklmnopqrstuvwxyz"
_CONSTANTS = {"pi": math.pi, "e": math.e, "tau": math.tau}
_FUNCTIONS: dict[str, Callable[..., _Number]] = {
    "sqrt": math.sqrt, "abs": abs, "round": round, "floor": math.floor, "ceil": math.ceil,
    "exp": math.exp, "ln": math.log, "log": math.log10, "log2": math.log2, "sin": math.sin,
    "cos": math.cos, "tan": math.tan, "asin": math.asin, "acos": math.acos, "atan": math.atan,
    "degrees": math.degrees, "radians": math.radians,
}  # fmt: skip
_OPERATORS: dict[type[ast.operator], Callable[[_Number, _Number], _Number]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
    ast.Pow: operator.pow,
}
# Anything else, such as 1if or a quote, would make Python's parser warn on standard error.
_WRITABLE = re.compile(r"(?!.*\d(?![eE][+-]?\d)[a-zA-Z_])[\w+\-*/%().\s]+", re.ASCII)
_SIGNS = str.maketrans({"×": "*", "÷": "/", "−": "-", "（": "(", "）": ")", "，": ","})


def calculate(expression: str) -> float:
    """Evaluate an arithmetic expression. 计算算式，支持四则运算、乘方和常用函数。

    Args:
        expression: Such as "2*(3+4)^2" or "sqrt(2)*sin(pi/6)", 算式; at most 200 characters.
            ln is the natural logarithm, log the decimal one, angles are in radians.
    """
    require_length("expression", expression, 1, 200)
    python = expression.translate(_SIGNS).replace("^", "**").strip()
    if not _WRITABLE.fullmatch(python):
        raise ValueError(f"expression {expression!r} is not arithmetic; write it like 2*(3+4)^2")
    try:
        value = _evaluate(ast.parse(python, mode="eval").body)
    except SyntaxError:
        raise ValueError(f"expression {expression!r} is not complete arithmetic") from None
    except (ArithmeticError, RecursionError) as error:
        raise ValueError(f"expression {expression!r} has no value: {error}") from None
    return value if isinstance(value, int) else tidy(value)


def _evaluate(node: ast.expr) -> _Number:
    match node:
        case ast.Constant(value=int() | float() as value) if not isinstance(value, bool):
            return _bounded(value)
        case ast.Name(id=name) if name in _CONSTANTS:
            return _CONSTANTS[name]
        case ast.UnaryOp(op=ast.USub(), operand=operand):
            return -_evaluate(operand)
        case ast.UnaryOp(op=ast.UAdd(), operand=operand):
            return _evaluate(operand)
        case ast.BinOp(left=left, op=sign, right=right) if type(sign) in _OPERATORS:
            return _combine(type(sign), _evaluate(left), _evaluate(right))
        case ast.Call(func=ast.Name(id=name), args=[argument], keywords=[]) if name in _FUNCTIONS:
            return _apply(name, _evaluate(argument))
    raise ValueError(
        f"{ast.unparse(node)!r} is not allowed; use numbers, + - * / // % ^, pi, e, tau "
        f"and {', '.join(_FUNCTIONS)}"
    )


def _apply(name: str, value: _Number) -> _Number:
    try:
        return _bounded(_FUNCTIONS[name](value))
    except (ValueError, OverflowError) as error:
        raise ValueError(f"{name}({value}) has no value: {error}") from None


def _combine(sign: type[ast.operator], left: _Number, right: _Number) -> _Number:
    whole = isinstance(left, int) and isinstance(right, int)
    # Refused before it is computed: 9^9^9^9 would never end.
    if sign is ast.Pow and whole and abs(right) * max(1, int(left).bit_length()) > _MAX_BITS:
        raise ValueError(f"{left}^{right} is too large; stay under {_MAX_BITS} bits")
    return _bounded(_OPERATORS[sign](left, right))


def _bounded(value: _Number | complex) -> _Number:
    if isinstance(value, complex):
        raise ValueError("a root of a negative number is not real")  # noqa: TRY004 - a bad value
    if isinstance(value, int) and value.bit_length() > _MAX_BITS:
        raise ValueError(f"a number in the expression has more than {_MAX_BITS} bits")
    return value


def percentage_of(part: float, whole: float) -> float:
    """Say what percentage one number is of another. 求一个数占另一个数的百分之几。

    Args:
        part: The part, 部分.
        whole: The whole it belongs to, 总数; not 0.
    """
    require_finite("part and whole", part, whole)
    if whole == 0:
        raise ValueError(f"whole must not be 0 (part is {part!r})")
    return tidy(part / whole * 100)


def percentage_change(old: float, new: float) -> float:
    """Compute the growth or fall from one value to another in percent. 计算涨跌幅百分比。

    Args:
        old: The value before, 原值; not 0.
        new: The value after, 新值.
    """
    require_finite("old and new", old, new)
    if old == 0:
        raise ValueError(f"old must not be 0 (new is {new!r}): a change from 0 has no percentage")
    return tidy((new - old) / abs(old) * 100)


def greatest_common_divisor(numbers: list[int]) -> int:
    """Find the greatest common divisor of whole numbers. 求最大公约数。

    Args:
        numbers: Two or more whole numbers, 整数列表.
    """
    require_length("numbers", numbers, 2, 1000)
    return math.gcd(*numbers)


def least_common_multiple(numbers: list[int]) -> int:
    """Find the least common multiple of whole numbers. 求最小公倍数。

    Args:
        numbers: Two to twenty whole numbers of at most a million million, 整数列表.
    """
    require_length("numbers", numbers, 2, 20)
    for number in numbers:
        require_within("each number", number, -(10**12), 10**12)
    return math.lcm(*numbers)


def prime_factors(number: int) -> list[int]:
    """Split a whole number into its prime factors. 分解质因数。

    Args:
        number: From 2 to a million million, 整数.
    """
    require_within("number", number, 2, 10**12)
    factors = []
    divisor = 2
    while divisor * divisor <= number:
        while number % divisor == 0:
            factors.append(divisor)
            number //= divisor
        divisor += 1
    return [*factors, number] if number > 1 else factors


def is_prime(number: int) -> bool:
    """Test whether a whole number is prime. 判断一个整数是否为质数。

    Args:
        number: A whole number up to a million million, 整数.
    """
    require_within("number", number, -(10**12), 10**12)
    return number > 1 and prime_factors(number) == [number]


def combinations_count(total: int, chosen: int, ordered: bool = False) -> int:
    """Count the ways to choose some of many things. 计算组合数或排列数。

    Args:
        total: How many things there are, 总数; at most 1000.
        chosen: How many are chosen, 选取数.
        ordered: True if the order counts (permutations, 排列), false if not (组合).
    """
    require_within("total", total, 0, 1000)
    require_within("chosen", chosen, 0, total)
    return math.perm(total, chosen) if ordered else math.comb(total, chosen)


def convert_number_base(number: str, from_base: int, to_base: int) -> str:
    """Convert a whole number between bases such as binary and hex. 进制转换。

    Args:
        number: The digits, 数字, such as "ff" or "-1010"; at most 500 characters.
        from_base: The base it is written in, 原进制; 2 to 36.
        to_base: The base wanted, 目标进制; 2 to 36.
    """
    require_length("number", number, 1, 500)
    require_within("from_base", from_base, 2, 36)
    require_within("to_base", to_base, 2, 36)
    try:
        value = int(number, from_base)
    except ValueError:
        raise ValueError(f"number {number!r} is not a whole number in base {from_base}") from None
    digits = []
    rest = abs(value)
    while rest:
        rest, digit = divmod(rest, to_base)
        digits.append(_DIGITS[digit])
    return ("-" if value < 0 else "") + ("".join(reversed(digits)) or "0")


def simplify_fraction(numerator: int, denominator: int) -> str:
    """Reduce a fraction to lowest terms. 约分，把分数化为最简分数。

    Args:
        numerator: The number above the line, 分子.
        denominator: The number below the line, 分母; not 0.
    """
    if denominator == 0:
        raise ValueError(f"denominator must not be 0 (numerator is {numerator!r})")
    fraction = Fraction(numerator, denominator)
    return f"{fraction.numerator}/{fraction.denominator}"


def solve_quadratic(a: float, b: float, c: float) -> list[float]:
    """Solve the equation ax²+bx+c=0 in real numbers. 解一元二次方程的实数根。

    Args:
        a: The coefficient of x squared, 二次项系数; not 0.
        b: The coefficient of x, 一次项系数.
        c: The constant term, 常数项.

    Returns:
        No, one or two roots, the smaller first.
    """
    require_finite("a, b and c", a, b, c)
    if a == 0:
        raise ValueError(f"a must not be 0: {b!r}x + {c!r} = 0 is not quadratic")
    discriminant = b * b - 4 * a * c
    require_finite("b²-4ac", discriminant)
    if discriminant < 0:
        return []
    # The sum of two numbers of one sign: no digits cancel.
    sum_ = -(b + math.copysign(math.sqrt(discriminant), b)) / 2
    roots = {tidy(sum_ / a), tidy(c / sum_) if sum_ else 0.0}
    return sorted(roots)


def solve_linear_equations(coefficients: list[list[float]], constants: list[float]) -> list[float]:
    """Solve a system of linear equations. 解线性方程组。

    Args:
        coefficients: One row of numbers an equation, 系数矩阵; as many rows as unknowns, up to 20.
        constants: The right-hand side of each equation, 常数项.
    """
    size = len(constants)
    require_length("constants", constants, 1, 20)
    if len(coefficients) != size or any(len(row) != size for row in coefficients):
        raise ValueError(f"coefficients must be {size} rows of {size} numbers: {coefficients!r}")
    require_finite("constants", *constants)
    for row in coefficients:
        require_finite("coefficients", *row)
    # Fractions: exact, so a singular system is seen as one.
    rows = [[Fraction(x) for x in (*row, constants[i])] for i, row in enumerate(coefficients)]
    for column in range(size):
        pivot = next((i for i in range(column, size) if rows[i][column]), None)
        if pivot is None:
            raise ValueError(f"the equations have no single solution: {coefficients!r}")
        rows[column], rows[pivot] = rows[pivot], rows[column]
        rows[column] = [x / rows[column][column] for x in rows[column]]
        for i in range(size):
            if i != column:
                factor = rows[i][column]
                rows[i] = [x - factor * y for x, y in zip(rows[i], rows[column], strict=True)]
    try:
        return [tidy(float(row[-1])) for row in rows]
    except OverflowError:
        raise ValueError(f"a solution is too large to represent: {coefficients!r}") from None


TOOLS = (
    calculate,
    percentage_of,
    percentage_change,
    greatest_common_divisor,
    least_common_multiple,
    prime_factors,
    is_prime,
    combinations_count,
    convert_number_base,
    simplify_fraction,
    solve_quadratic,
    solve_linear_equations,
)
