"""The Chinese calendar: zodiac, stems and branches, solar terms, lunar dates.

The rules are those of GB/T 33661-2017, in Beijing time: a month begins on the day of a
new moon, the winter solstice lies in month 11, and where thirteen months lie between two
solstices, the first without a principal term is the leap month. The rotation of the
Earth cannot be predicted well enough for every date after 2080, so the tools end there.
"""

# ruff: noqa: D415  (a tool's first line ends with a Chinese full stop)

from __future__ import annotations

import itertools
from datetime import UTC, date, datetime, timedelta, timezone

from tool_search.demo.toolbox.arguments import parse_date, require_within
from tool_search.demo.toolbox.astronomy import lunation_near, new_moon, sun_reaches

_BEIJING = timezone(timedelta(hours=8))
_FIRST_YEAR, _LAST_YEAR = 1930, 2080
_STEMS = "甲乙丙丁戊己庚辛壬癸"
_BRANCHES = "子丑寅卯辰巳午未申酉戌亥"
_ANIMALS = (
    ("Rat", "鼠"), ("Ox", "牛"), ("Tiger", "虎"), ("Rabbit", "兔"), ("Dragon", "龙"),
    ("Snake", "蛇"), ("Horse", "马"), ("Goat", "羊"), ("Monkey", "猴"), ("Rooster", "鸡"),
    ("Dog", "狗"), ("Pig", "猪"),
)  # fmt: skip
# From the Sun's longitude of 285 degrees on, in steps of 15: the order of the civil year.
_TERMS = (
    ("小寒", "Minor Cold"), ("大寒", "Major Cold"), ("立春", "Start of Spring"),
    ("雨水", "Rain Water"), ("惊蛰", "Awakening of Insects"), ("春分", "Spring Equinox"),
    ("清明", "Pure Brightness"), ("谷雨", "Grain Rain"), ("立夏", "Start of Summer"),
    ("小满", "Grain Buds"), ("芒种", "Grain in Ear"), ("夏至", "Summer Solstice"),
    ("小暑", "Minor Heat"), ("大暑", "Major Heat"), ("立秋", "Start of Autumn"),
    ("处暑", "End of Heat"), ("白露", "White Dew"), ("秋分", "Autumn Equinox"),
    ("寒露", "Cold Dew"), ("霜降", "Frost Descent"), ("立冬", "Start of Winter"),
    ("小雪", "Minor Snow"), ("大雪", "Major Snow"), ("冬至", "Winter Solstice"),
)  # fmt: skip
_MONTH_NAMES = "正二三四五六七八九十冬腊"
_DIGITS = "一二三四五六七八九十"


def chinese_zodiac(year: int) -> dict[str, str]:
    """Tell the Chinese zodiac animal of a year. 查询某年的生肖属相。

    Args:
        year: The year, 年份; it starts at the Chinese New Year of that year.
    """
    require_within("year", year, 1, 9999)
    english, chinese = _ANIMALS[(year - 4) % 12]
    return {"english": english, "chinese": chinese}


def sexagenary_year(year: int) -> str:
    """Name a year by heavenly stem and earthly branch. 查询某年的天干地支。

    Args:
        year: The year, 年份; it starts at the Chinese New Year of that year.
    """
    require_within("year", year, 1, 9999)
    return f"{_STEMS[(year - 4) % 10]}{_BRANCHES[(year - 4) % 12]}年"


def solar_terms(year: int) -> list[dict[str, str]]:
    """List the 24 solar terms of a year with their times. 列出某年二十四节气的时间。

    Args:
        year: From 1930 to 2080, 年份.

    Returns:
        For each term its names, date and time of day (Beijing time, to about a minute).
    """
    _require_year(year)
    listed = []
    for index, (chinese, english) in enumerate(_TERMS):
        moment = _term(year, index)
        day, time = moment.date().isoformat(), f"{moment:%H:%M}"
        listed.append({"chinese": chinese, "english": english, "date": day, "time": time})
    return listed


def solar_term_on(day: str) -> dict[str, str | int]:
    """Tell which solar term a date lies in. 查询某天处于哪个节气。

    Args:
        day: A date from 1930-01-10 to 2080-12-31, 日期.

    Returns:
        The names of the last term begun, its date, and how many days ago it was.
    """
    wanted = parse_date("day", day)
    _require_year(wanted.year)
    begun = [
        (started, names)
        for index, names in enumerate(_TERMS)
        if (started := _term(wanted.year, index).date()) <= wanted
    ]
    # The first days of January still belong to the winter solstice.
    started, names = begun[-1] if begun else (_term(wanted.year - 1, 23).date(), _TERMS[23])
    chinese, english = names
    days = (wanted - started).days
    return {"chinese": chinese, "english": english, "date": started.isoformat(), "days_ago": days}


def chinese_new_year(year: int) -> str:
    """Find the date of the Chinese New Year (Spring Festival). 查询某年春节的公历日期。

    Args:
        year: From 1930 to 2080, 年份.
    """
    _require_year(year)
    return next(
        day for day, number, leap in _months(year) if (number, leap) == (1, False)
    ).isoformat()


def lunar_date(day: str) -> dict[str, str | int | bool]:
    """Convert a date to the Chinese lunar calendar. 公历转农历（阴历）。

    Args:
        day: A Gregorian date from 1930-02-01 to 2080-12-31, 公历日期.

    Returns:
        The lunar year, month, day, whether the month is a leap one (闰月), and the Chinese text.
    """
    wanted = parse_date("day", day)
    _require_year(wanted.year)
    # A date after the winter solstice lies in the sui of the next year.
    months = _months(wanted.year) + _months(wanted.year + 1)
    start, number, leap = max(month for month in months if month[0] <= wanted)
    # Months 11 and 12 before the New Year belong to the lunar year before.
    year = start.year - 1 if number > 10 and start.month < 3 else start.year
    ordinal = (wanted - start).days + 1
    text = (
        f"{sexagenary_year(year)}{'闰' if leap else ''}{_MONTH_NAMES[number - 1]}月{_day(ordinal)}"
    )
    return {"year": year, "month": number, "day": ordinal, "leap_month": leap, "text": text}


def _require_year(year: int) -> None:
    require_within("year", year, _FIRST_YEAR, _LAST_YEAR)


def _term(year: int, index: int) -> datetime:
    """The moment of a solar term of a civil year, Beijing time, rounded to the minute."""
    near = datetime(year, 1, 6, tzinfo=UTC) + timedelta(days=index * 365.2422 / 24)
    return sun_reaches((285 + 15 * index) % 360, near).astimezone(_BEIJING)


def _months(year: int) -> list[tuple[date, int, bool]]:
    """The months between the winter solstices of last year and this: start, number, leap."""
    first, last = (_month_of(_term(y, 23).date()) for y in (year - 1, year))
    starts = [_month_start(lunation) for lunation in range(first, last + 1)]
    has_leap = last - first == 13
    principal = {_term(y, index).date() for y in (year - 1, year) for index in range(1, 24, 2)}
    months: list[tuple[date, int, bool]] = []
    number, leap_found = 10, False
    for start, end in itertools.pairwise(starts):
        empty = not any(start <= term < end for term in principal)
        leap = has_leap and not leap_found and empty
        leap_found = leap_found or leap
        number = number if leap else number % 12 + 1
        months.append((start, number, leap))
    return months


def _month_of(day: date) -> int:
    """The lunation in whose month a day lies."""
    lunation = lunation_near(datetime(day.year, day.month, day.day, tzinfo=UTC)) + 1
    while _month_start(lunation) > day:
        lunation -= 1
    return lunation


def _month_start(lunation: int) -> date:
    return new_moon(lunation).astimezone(_BEIJING).date()


def _day(number: int) -> str:
    tens, ones = divmod(number, 10)
    if ones == 0:
        return {1: "初十", 2: "二十", 3: "三十"}[tens]
    return ("初", "十", "廿")[tens] + _DIGITS[ones - 1]


TOOLS = (
    chinese_zodiac,
    sexagenary_year,
    solar_terms,
    solar_term_on,
    chinese_new_year,
    lunar_date,
)
