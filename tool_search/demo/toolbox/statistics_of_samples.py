"""Statistics: descriptions of samples, and probabilities of two distributions."""

# ruff: noqa: D415  (a tool's first line ends with a Chinese full stop)

from __future__ import annotations

import math
import statistics

from tool_search.demo.toolbox.arguments import (
    require_length,
    require_not_negative,
    require_positive,
    require_within,
)
from tool_search.demo.toolbox.rounding import tidy

_MAX_SIZE = 1e100


def describe_numbers(numbers: list[float]) -> dict[str, float]:
    """Summarise numbers: mean, median, deviation, range. 描述统计：均值、中位数、标准差。

    Args:
        numbers: The sample, 数据; the standard deviation is that of a sample (n-1).

    Returns:
        count, sum, mean, median, minimum, maximum, and standard_deviation from two numbers on.
    """
    _require_sample("numbers", numbers, 1)
    summary = {
        "count": len(numbers),
        "sum": tidy(math.fsum(numbers)),
        "mean": tidy(statistics.fmean(numbers)),
        "median": tidy(statistics.median(numbers)),
        "minimum": min(numbers),
        "maximum": max(numbers),
    }
    if len(numbers) > 1:
        summary["standard_deviation"] = tidy(statistics.stdev(numbers))
    return summary


def most_frequent_values(numbers: list[float]) -> list[float]:
    """Find the mode, the most frequent numbers. 求众数，即出现次数最多的数。

    Args:
        numbers: The sample, 数据.

    Returns:
        All values that occur most often, in the order they first occur.
    """
    _require_sample("numbers", numbers, 1)
    return statistics.multimode(numbers)


def percentile(numbers: list[float], percent: float) -> float:
    """Find a percentile or quartile of numbers. 求百分位数或四分位数。

    Args:
        numbers: The sample, 数据.
        percent: From 0 to 100, 百分位; between two numbers it interpolates linearly.
    """
    _require_sample("numbers", numbers, 1)
    require_within("percent", percent, 0, 100)
    ranked = sorted(numbers)
    position = percent / 100 * (len(ranked) - 1)
    low = math.floor(position)
    high = min(low + 1, len(ranked) - 1)
    return tidy(ranked[low] + (ranked[high] - ranked[low]) * (position - low))


def weighted_mean(numbers: list[float], weights: list[float]) -> float:
    """Compute a weighted average, as for grades with credits. 计算加权平均数。

    Args:
        numbers: The values, 数值.
        weights: The weight of each value, 权重; 0 or more, not all 0.
    """
    _require_sample("numbers", numbers, 1)
    _require_pairs(numbers, weights)
    require_not_negative("each weight", *weights)
    require_positive("the sum of the weights", math.fsum(weights))
    total = math.fsum(n * weight for n, weight in zip(numbers, weights, strict=True))
    return tidy(total / math.fsum(weights))


def moving_average(numbers: list[float], window: int) -> list[float]:
    """Smooth a series with a moving average. 计算移动平均值。

    Args:
        numbers: The series in order, 序列.
        window: How many neighbouring values each average takes, 窗口大小.
    """
    _require_sample("numbers", numbers, 1)
    require_within("window", window, 1, len(numbers))
    windows = (numbers[i : i + window] for i in range(len(numbers) - window + 1))
    return [tidy(statistics.fmean(values)) for values in windows]


def correlation(x: list[float], y: list[float]) -> float:
    """Compute Pearson's correlation of two series. 计算皮尔逊相关系数。

    Args:
        x: The first series, 第一组数据; at least two different values.
        y: The second series, 第二组数据, as long as the first.
    """
    _require_varied_pairs(x, y)
    _require_variation("y", y)
    return tidy(statistics.correlation(x, y))


def linear_regression(x: list[float], y: list[float]) -> dict[str, float]:
    """Fit a straight line y = slope*x + intercept. 一元线性回归，最小二乘拟合直线。

    Args:
        x: The independent values, 自变量; at least two different ones.
        y: The values that depend on them, 因变量, as many as x.
    """
    _require_varied_pairs(x, y)
    line = statistics.linear_regression(x, y)
    return {"slope": tidy(line.slope), "intercept": tidy(line.intercept)}


def binomial_probability(trials: int, successes: int, chance: float) -> float:
    """Compute the chance of exactly k successes in n trials. 计算二项分布概率。

    Args:
        trials: How often it is tried, 试验次数; at most 1000.
        successes: How many of the trials succeed, 成功次数.
        chance: The chance of success in one trial, 单次概率; 0 to 1.
    """
    require_within("trials", trials, 0, 1000)
    require_within("successes", successes, 0, trials)
    require_within("chance", chance, 0, 1)
    ways = math.comb(trials, successes)
    return tidy(ways * chance**successes * (1 - chance) ** (trials - successes))


def normal_probability(value: float, mean: float = 0.0, deviation: float = 1.0) -> float:
    """Compute the chance that a normal variable is at most a value. 正态分布累积概率。

    Args:
        value: The value asked about, 数值.
        mean: The mean of the distribution, 均值.
        deviation: Its standard deviation, 标准差; above 0.
    """
    require_positive("deviation", deviation)
    require_within("value", value, -_MAX_SIZE, _MAX_SIZE)
    require_within("mean", mean, -_MAX_SIZE, _MAX_SIZE)
    return tidy(math.erfc((mean - value) / deviation / math.sqrt(2)) / 2)


def _require_sample(name: str, numbers: list[float], low: int) -> None:
    require_length(name, numbers, low, 100_000)
    for number in numbers:
        require_within(f"each of {name}", number, -_MAX_SIZE, _MAX_SIZE)


def _require_pairs(x: list[float], y: list[float]) -> None:
    if len(x) != len(y):
        raise ValueError(f"both lists must be of one length, not {len(x)} and {len(y)}")


def _require_variation(name: str, numbers: list[float]) -> None:
    if min(numbers) == max(numbers):
        raise ValueError(f"{name} must hold two different values, not only {numbers[0]!r}")


def _require_varied_pairs(x: list[float], y: list[float]) -> None:
    _require_sample("x", x, 2)
    _require_sample("y", y, 2)
    _require_pairs(x, y)
    _require_variation("x", x)


TOOLS = (
    describe_numbers,
    most_frequent_values,
    percentile,
    weighted_mean,
    moving_average,
    correlation,
    linear_regression,
    binomial_probability,
    normal_probability,
)
