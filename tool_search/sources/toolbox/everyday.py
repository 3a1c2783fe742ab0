"""Everyday matters: dates, times, money, health."""

# ruff: noqa: D415  (a tool's first line ends with a Chinese full stop)

from __future__ import annotations

import calendar
import re
from datetime import UTC, date, datetime, timedelta, timezone, tzinfo
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from tool_search.sources.toolbox.arguments import (
    cents,
    parse_date,
    require_within,
)

_WEEKDAYS = (
    ("Monday", "星期一"),
    ("Tuesday", "星期二"),
    ("Wednesday", "星期三"),
    ("Thursday", "星期四"),
    ("Friday", "星期五"),
    ("Saturday", "星期六"),
    ("Sunday", "星期日"),
)
_ANIMALS = (
    ("Rat", "鼠"), ("Ox", "牛"), ("Tiger", "虎"), ("Rabbit", "兔"), ("Dragon", "龙"),
    ("Snake", "蛇"), ("Horse", "马"), ("Goat", "羊"), ("Monkey", "猴"), ("Rooster", "鸡"),
    ("Dog", "狗"), ("Pig", "猪"),
)  # fmt: skip
_FIRST_YEAR, _LAST_YEAR = 1930, 2080
# Of each year, the days after 20 January in base 36, by the rules of GB/T 33661-2017.
_NEW_YEARS = (
    "ash6pf4mbuj7qg5od2l9sh7pe4nbtj8qg5od1kash7qe3mbti8rg5odvk9sh7qf3lbui8rg4nc2k"
    "9ti6pe3lbuj8rg5nc2l9sh6oe3mbuj8qf4nc2lash6pd3mcuj8qf4nd1k9sg6pe3mbui7qg4nd2"
)
_OFFSET = re.compile(r"(?:UTC|GMT)?([+-])(\d{1,2})(?::?([0-5]\d))?", re.ASCII)
_CITIES = {
    "beijing": "Asia/Shanghai", "北京": "Asia/Shanghai", "shanghai": "Asia/Shanghai",
    "上海": "Asia/Shanghai", "tokyo": "Asia/Tokyo", "东京": "Asia/Tokyo",
    "singapore": "Asia/Singapore", "新加坡": "Asia/Singapore", "moscow": "Europe/Moscow",
    "莫斯科": "Europe/Moscow", "london": "Europe/London", "伦敦": "Europe/London",
    "paris": "Europe/Paris", "巴黎": "Europe/Paris", "new york": "America/New_York",
    "纽约": "America/New_York", "san francisco": "America/Los_Angeles",
    "旧金山": "America/Los_Angeles",
}  # fmt: skip
_MAX_MONEY = 1e12
_ADULT_CLASSES = ((18.5, "underweight"), (25, "normal"), (30, "overweight"))


def days_between(start: str, end: str) -> int:
    """Count the days from one date to another. 计算两个日期相差多少天。

    Args:
        start: The first date, 开始日期, such as 2024-01-31.
        end: The last date, 结束日期; the count is negative if it is earlier.
    """
    return (parse_date("end", end) - parse_date("start", start)).days


def add_to_date(start: str, days: int = 0, weeks: int = 0, months: int = 0, years: int = 0) -> str:
    """Find the date some days, weeks, months or years later. 推算若干天、月、年后的日期。

    Args:
        start: The date to count from, 起始日期, such as 2024-01-31.
        days: Days to add, 天; negative goes back.
        weeks: Weeks to add, 周.
        months: Months to add, 月; a day the month lacks becomes its last day.
        years: Years to add, 年.
    """
    first = parse_date("start", start)
    for name, count in (("days", days), ("weeks", weeks), ("months", months), ("years", years)):
        require_within(name, count, -4_000_000, 4_000_000)
    year, month = divmod(first.year * 12 + first.month - 1 + months + years * 12, 12)
    require_within("the year of the result", year, 1, 9999)
    last_day = calendar.monthrange(year, month + 1)[1]
    shifted = date(year, month + 1, min(first.day, last_day))
    try:
        return (shifted + timedelta(days=days, weeks=weeks)).isoformat()
    except OverflowError:
        raise ValueError(f"the result is not in the years 1 to 9999 (start {start!r})") from None


def weekday_of_date(day: str) -> dict[str, str | int]:
    """Tell which day of the week a date is. 查询某天是星期几。

    Args:
        day: The date, 日期, such as 2024-01-31.

    Returns:
        The name in English and Chinese, and its ISO number from 1 (Monday) to 7.
    """
    number = parse_date("day", day).weekday()
    english, chinese = _WEEKDAYS[number]
    return {"english": english, "chinese": chinese, "iso_number": number + 1}


def is_leap_year(year: int) -> bool:
    """Tell whether a year has 366 days. 判断是否闰年。

    Args:
        year: The Gregorian year, 公历年份.
    """
    return calendar.isleap(year)


def current_time(time_zone: str = "UTC") -> str:
    """Tell the current date and time in a time zone. 查询现在的日期和时间。

    Args:
        time_zone: An IANA zone such as Asia/Shanghai, an offset such as +08:00, or a big
            city such as Beijing or 北京, 时区或城市.
    """
    return datetime.now(_zone("time_zone", time_zone)).isoformat(timespec="seconds")


def chinese_zodiac(year: int) -> dict[str, str]:
    """Tell the Chinese zodiac animal of a year. 查询某年的生肖属相。

    Args:
        year: The year, 年份; it starts at the Chinese New Year of that year.
    """
    require_within("year", year, 1, 9999)
    english, chinese = _ANIMALS[(year - 4) % 12]
    return {"english": english, "chinese": chinese}


def chinese_new_year(year: int) -> str:
    """Find the date of the Chinese New Year (Spring Festival). 查询某年春节的公历日期。

    Args:
        year: From 1930 to 2080, 年份.
    """
    require_within("year", year, _FIRST_YEAR, _LAST_YEAR)
    days = int(_NEW_YEARS[year - _FIRST_YEAR], 36)
    return (date(year, 1, 20) + timedelta(days)).isoformat()


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


def split_bill(bill: float, people: int, tip_percent: float = 0.0) -> dict[str, float]:
    """Split a restaurant bill with a tip among people. 聚餐账单分摊，含小费。

    Args:
        bill: The bill before the tip, 账单金额.
        people: How many people pay, 人数; 1 to 1000.
        tip_percent: The tip in percent of the bill, 小费（%）; 0 to 100.

    Returns:
        tip, total, and what each pays, rounded up to the cent.
    """
    require_within("bill", bill, 0, _MAX_MONEY)
    require_within("people", people, 1, 1000)
    require_within("tip_percent", tip_percent, 0, 100)
    tip = cents(bill * tip_percent / 100)
    total = cents(bill + tip)
    # In whole cents: a float a hair above a cent must not cost another one.
    each = -(-round(total * 100) // people) / 100
    return {"tip": tip, "total": total, "each": each}


def bmi(weight_kg: float, height_cm: float) -> dict[str, float | str]:
    """Compute the body mass index of an adult. 计算成人的身体质量指数（BMI）。

    Args:
        weight_kg: The weight in kilograms, 体重（公斤）.
        height_cm: The height in centimetres, 身高（厘米）.

    Returns:
        The index to one decimal, and the class of the WHO for adults.
    """
    require_within("weight_kg", weight_kg, 1, 700)
    require_within("height_cm", height_cm, 30, 280)
    index = weight_kg / (height_cm / 100) ** 2
    name = next((name for top, name in _ADULT_CLASSES if index < top), "obese")
    return {"bmi": round(index, 1), "who_class": name}


def _require_loan(principal: float, annual_rate: float, months: int) -> None:
    require_within("principal", principal, 0.01, _MAX_MONEY)
    require_within("annual_rate", annual_rate, 0, 100)
    require_within("months", months, 1, 600)


def _annuity(principal: float, annual_rate: float, months: int) -> float:
    _require_loan(principal, annual_rate, months)
    rate = annual_rate / 1200
    # Below this a float cannot tell the growth from 1.
    if rate < 1e-12:
        return principal / months
    return principal * rate / (1 - (1 + rate) ** -months)


def _zone(name: str, text: str) -> tzinfo:
    offset = _OFFSET.fullmatch(text.strip())
    if offset:
        hours, minutes = int(offset[2]), int(offset[3] or 0)
        require_within(f"the hours of {name}", hours, 0, 23)
        shift = timedelta(hours=hours, minutes=minutes)
        return timezone(-shift if offset[1] == "-" else shift)
    if text.upper() == "UTC":
        return UTC
    key = _CITIES.get(text.strip().lower(), text)
    try:
        return ZoneInfo(key)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        raise ValueError(
            f"{name} {text!r} is not known here; use an IANA zone such as Asia/Shanghai, "
            "an offset such as +08:00, or a big city such as Beijing"
        ) from None
