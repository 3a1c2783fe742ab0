"""Dates of the Gregorian calendar: differences, working days, weeks, ages, feasts."""

# ruff: noqa: D415  (a tool's first line ends with a Chinese full stop)

from __future__ import annotations

import calendar
from datetime import date, timedelta

from tool_search.demo.toolbox.arguments import parse_date, require_length, require_within

_WEEKDAYS = (
    ("Monday", "星期一"),
    ("Tuesday", "星期二"),
    ("Wednesday", "星期三"),
    ("Thursday", "星期四"),
    ("Friday", "星期五"),
    ("Saturday", "星期六"),
    ("Sunday", "星期日"),
)
# The last day of each sign, as month * 100 + day.
_SIGNS = (
    (119, "Capricorn", "摩羯座"), (218, "Aquarius", "水瓶座"), (320, "Pisces", "双鱼座"),
    (419, "Aries", "白羊座"), (520, "Taurus", "金牛座"), (621, "Gemini", "双子座"),
    (722, "Cancer", "巨蟹座"), (822, "Leo", "狮子座"), (922, "Virgo", "处女座"),
    (1023, "Libra", "天秤座"), (1122, "Scorpio", "天蝎座"), (1221, "Sagittarius", "射手座"),
    (1231, "Capricorn", "摩羯座"),
)  # fmt: skip


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


def business_days_between(start: str, end: str, holidays: list[str] | None = None) -> int:
    """Count working days (Monday to Friday) between dates. 计算两个日期之间的工作日数。

    Args:
        start: The first date, counted if it is a working day, 开始日期.
        end: The date after the last one, not counted, 结束日期.
        holidays: Dates that are free too, 节假日, such as ["2024-10-01"].
    """
    first, last = parse_date("start", start), parse_date("end", end)
    if last < first:
        raise ValueError(f"end {end!r} must not be before start {start!r}")
    weeks, rest = divmod((last - first).days, 7)
    weekdays = sum((first.weekday() + i) % 7 < 5 for i in range(rest))
    free = _holidays(holidays)
    return weeks * 5 + weekdays - sum(first <= d < last and d.weekday() < 5 for d in free)


def add_business_days(start: str, days: int, holidays: list[str] | None = None) -> str:
    """Find the date some working days later. 推算若干个工作日之后的日期。

    Args:
        start: The date to count from, 起始日期.
        days: How many working days to add, 工作日数; negative goes back, at most 10000.
        holidays: Dates that are free too, 节假日.
    """
    current = parse_date("start", start)
    require_within("days", days, -10_000, 10_000)
    free = _holidays(holidays)
    step = timedelta(days=1 if days > 0 else -1)
    left = abs(days)
    while left:
        try:
            current += step
        except OverflowError:
            raise ValueError(f"the result is not in the years 1 to 9999 ({start!r})") from None
        left -= current.weekday() < 5 and current not in free
    return current.isoformat()


def iso_week(day: str) -> str:
    """Give the ISO week number of a date. 查询某天是一年中的第几周（ISO 周）。

    Args:
        day: The date, 日期.

    Returns:
        Year and week such as 2020-W53; the year is the one the week belongs to.
    """
    year, week, _ = parse_date("day", day).isocalendar()
    return f"{year}-W{week:02d}"


def day_of_year(day: str) -> dict[str, int]:
    """Tell the day number, quarter and days left of the year. 查询某天是当年第几天和第几季度。

    Args:
        day: The date, 日期.
    """
    parsed = parse_date("day", day)
    number = parsed.timetuple().tm_yday
    length = 366 if calendar.isleap(parsed.year) else 365
    return {"day": number, "quarter": (parsed.month + 2) // 3, "days_left": length - number}


def is_leap_year(year: int) -> bool:
    """Tell whether a year has 366 days. 判断是否闰年。

    Args:
        year: The Gregorian year, 公历年份.
    """
    return calendar.isleap(year)


def age_on_date(birth_date: str, on_date: str) -> dict[str, int]:
    """Compute an age in years, months and days. 计算到某天的周岁年龄。

    Args:
        birth_date: The date of birth, 出生日期.
        on_date: The date to tell the age for, 计算日期.
    """
    born, today = parse_date("birth_date", birth_date), parse_date("on_date", on_date)
    if today < born:
        raise ValueError(f"on_date {on_date!r} must not be before birth_date {birth_date!r}")
    months = (today.year - born.year) * 12 + today.month - born.month - (today.day < born.day)
    anniversary = date.fromisoformat(add_to_date(birth_date, months=months))
    return {"years": months // 12, "months": months % 12, "days": (today - anniversary).days}


def month_calendar(year: int, month: int) -> str:
    """Draw the calendar of a month as text. 以文本显示某月的月历。

    Args:
        year: The year, 年; 1 to 9999.
        month: The month, 月; 1 to 12.
    """
    require_within("year", year, 1, 9999)
    require_within("month", month, 1, 12)
    return calendar.TextCalendar().formatmonth(year, month).rstrip()


def easter_date(year: int) -> str:
    """Find the date of Western Easter Sunday. 计算复活节的日期。

    Args:
        year: A Gregorian year from 1583 to 9999, 年份.
    """
    require_within("year", year, 1583, 9999)
    # The anonymous Gregorian computus (Meeus, Astronomical Algorithms, chapter 8).
    century, year_of_century = divmod(year, 100)
    golden = year % 19
    moon_shift = (8 * century + 13) // 25
    epact = (19 * golden + century - century // 4 - moon_shift + 15) % 30
    weekday = (
        32 + 2 * (century % 4) + 2 * (year_of_century // 4) - epact - year_of_century % 4
    ) % 7
    correction = (golden + 11 * epact + 22 * weekday) // 451
    month, day = divmod(epact + weekday - 7 * correction + 114, 31)
    return date(year, month, day + 1).isoformat()


def star_sign(day: str) -> dict[str, str]:
    """Tell the Western zodiac sign of a birthday. 根据生日查询星座。

    Args:
        day: The date of birth, 生日; signs start on the dates that are usually printed.
    """
    parsed = parse_date("day", day)
    key = parsed.month * 100 + parsed.day
    english, chinese = next((e, c) for last, e, c in _SIGNS if key <= last)
    return {"english": english, "chinese": chinese}


def _holidays(holidays: list[str] | None) -> set[date]:
    days = holidays or []
    require_length("holidays", days, 0, 1000)
    return {parse_date("holiday", day) for day in days}


TOOLS = (
    days_between,
    add_to_date,
    weekday_of_date,
    business_days_between,
    add_business_days,
    iso_week,
    day_of_year,
    is_leap_year,
    age_on_date,
    month_calendar,
    easter_date,
    star_sign,
)
