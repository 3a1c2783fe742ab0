"""Body and sport: published formulas, for information and not a diagnosis."""

# ruff: noqa: D415  (a tool's first line ends with a Chinese full stop)

from __future__ import annotations

from datetime import timedelta
from typing import Literal

from tool_search.demo.toolbox.arguments import choose, parse_date, require_within
from tool_search.demo.toolbox.rounding import tidy

Sex = Literal["male", "female"]
Activity = Literal["sedentary", "light", "moderate", "active", "very_active"]
GlucoseUnit = Literal["mmol/L", "mg/dL"]

_SEX_TERM: dict[Sex, int] = {"male": 5, "female": -161}
_ACTIVITY: dict[Activity, float] = {
    "sedentary": 1.2,
    "light": 1.375,
    "moderate": 1.55,
    "active": 1.725,
    "very_active": 1.9,
}
# Milligrams of glucose a decilitre, for one of the unit (molar mass 180.16 g/mol).
_GLUCOSE: dict[GlucoseUnit, float] = {"mmol/L": 18.016, "mg/dL": 1}
_ADULT_CLASSES = ((18.5, "underweight"), (25, "normal"), (30, "overweight"))


def bmi(weight_kg: float, height_cm: float) -> dict[str, float | str]:
    """Compute the body mass index of an adult. 计算成人的身体质量指数（BMI）。

    Args:
        weight_kg: The weight in kilograms, 体重（公斤）.
        height_cm: The height in centimetres, 身高（厘米）.

    Returns:
        The index to one decimal, and the class of the WHO for adults.
    """
    _require_body(weight_kg, height_cm)
    index = weight_kg / (height_cm / 100) ** 2
    name = next((name for top, name in _ADULT_CLASSES if index < top), "obese")
    return {"bmi": round(index, 1), "who_class": name}


def basal_metabolic_rate(weight_kg: float, height_cm: float, age_years: int, sex: Sex) -> float:
    """Estimate the calories a body needs at rest (BMR). 估算基础代谢率（千卡）。

    Args:
        weight_kg: The weight in kilograms, 体重（公斤）.
        height_cm: The height in centimetres, 身高（厘米）.
        age_years: The age in years, 年龄; 10 to 120.
        sex: For the formula of Mifflin and St Jeor (1990), 性别.
    """
    _require_body(weight_kg, height_cm)
    require_within("age_years", age_years, 10, 120)
    rate = 10 * weight_kg + 6.25 * height_cm - 5 * age_years + choose("sex", sex, _SEX_TERM)
    return tidy(rate)


def daily_calories(
    weight_kg: float, height_cm: float, age_years: int, sex: Sex, activity: Activity
) -> float:
    """Estimate the calories needed a day at a level of activity. 估算每日所需热量。

    Args:
        weight_kg: The weight in kilograms, 体重（公斤）.
        height_cm: The height in centimetres, 身高（厘米）.
        age_years: The age in years, 年龄; 10 to 120.
        sex: For the formula of Mifflin and St Jeor, 性别.
        activity: How active the days are, 活动水平.
    """
    rate = basal_metabolic_rate(weight_kg, height_cm, age_years, sex)
    return round(rate * choose("activity", activity, _ACTIVITY), 1)


def running_pace(distance_km: float, minutes: float) -> dict[str, str | float]:
    """Compute running pace and speed from distance and time. 计算跑步配速和速度。

    Args:
        distance_km: The distance in kilometres, 距离（公里）.
        minutes: The time in minutes, 用时（分钟）.
    """
    require_within("distance_km", distance_km, 0.001, 100_000)
    require_within("minutes", minutes, 0.001, 10_000_000)
    whole, seconds = divmod(round(minutes * 60 / distance_km), 60)
    return {
        "pace_per_km": f"{whole}:{seconds:02d}",
        "km_per_hour": tidy(distance_km / minutes * 60),
    }


def heart_rate_zones(age_years: int) -> dict[str, list[int]]:
    """List training heart rate zones by age. 按年龄计算运动心率区间。

    Args:
        age_years: The age in years, 年龄; 10 to 110. The maximum is taken as 220 minus age.

    Returns:
        The lowest and highest beats a minute of five zones, from 50 to 100 percent.
    """
    require_within("age_years", age_years, 10, 110)
    top = 220 - age_years
    names = ("very_light", "light", "moderate", "hard", "maximum")
    return {
        name: [round(top * (50 + 10 * i) / 100), round(top * (60 + 10 * i) / 100)]
        for i, name in enumerate(names)
    }


def pregnancy_due_date(last_period: str) -> str:
    """Estimate a baby's due date from the last period. 根据末次月经推算预产期。

    Args:
        last_period: The first day of the last period, 末次月经第一天; 280 days are added.
    """
    try:
        return (parse_date("last_period", last_period) + timedelta(days=280)).isoformat()
    except OverflowError:
        raise ValueError(f"last_period {last_period!r} is too close to the year 9999") from None


def convert_blood_glucose(value: float, from_unit: GlucoseUnit, to_unit: GlucoseUnit) -> float:
    """Convert a blood sugar reading between units. 换算血糖单位 mmol/L 和 mg/dL。

    Args:
        value: The reading, 血糖值.
        from_unit: The unit it is in, 原单位.
        to_unit: The unit wanted, 目标单位.
    """
    require_within("value", value, 0, 10_000)
    milligrams = value * choose("from_unit", from_unit, _GLUCOSE)
    return tidy(milligrams / choose("to_unit", to_unit, _GLUCOSE))


def _require_body(weight_kg: float, height_cm: float) -> None:
    require_within("weight_kg", weight_kg, 1, 700)
    require_within("height_cm", height_cm, 30, 280)


TOOLS = (
    bmi,
    basal_metabolic_rate,
    daily_calories,
    running_pace,
    heart_rate_zones,
    pregnancy_due_date,
    convert_blood_glucose,
)
