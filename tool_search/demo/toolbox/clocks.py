"""Times of day: now, time zones, Unix time, durations, and waiting."""

# ruff: noqa: D415  (a tool's first line ends with a Chinese full stop)

from __future__ import annotations

import asyncio
import re
from datetime import UTC, datetime, timedelta, timezone, tzinfo
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from tool_search.demo.toolbox.arguments import (
    parse_datetime,
    require_length,
    require_not_negative,
    require_within,
)

_OFFSET = re.compile(r"(?:UTC|GMT)?([+-])(\d{1,2})(?::?([0-5]\d))?", re.ASCII)
_ZONES = {
    "Asia/Shanghai": "beijing 北京 shanghai 上海 guangzhou 广州 shenzhen 深圳 china 中国",
    "Asia/Hong_Kong": "hong_kong 香港",
    "Asia/Taipei": "taipei 台北",
    "Asia/Tokyo": "tokyo 东京 osaka 大阪 japan 日本",
    "Asia/Seoul": "seoul 首尔",
    "Asia/Singapore": "singapore 新加坡",
    "Asia/Bangkok": "bangkok 曼谷",
    "Asia/Jakarta": "jakarta 雅加达",
    "Asia/Manila": "manila 马尼拉",
    "Asia/Kolkata": "delhi 德里 new_delhi 新德里 mumbai 孟买 india 印度",
    "Asia/Dubai": "dubai 迪拜",
    "Asia/Tehran": "tehran 德黑兰",
    "Asia/Almaty": "almaty 阿拉木图",
    "Asia/Novosibirsk": "novosibirsk 新西伯利亚",
    "Asia/Yekaterinburg": "yekaterinburg 叶卡捷琳堡",
    "Asia/Vladivostok": "vladivostok 符拉迪沃斯托克 海参崴",
    "Europe/Moscow": "moscow 莫斯科 saint_petersburg 圣彼得堡",
    "Europe/Istanbul": "istanbul 伊斯坦布尔",
    "Europe/London": "london 伦敦",
    "Europe/Paris": "paris 巴黎",
    "Europe/Berlin": "berlin 柏林 munich 慕尼黑 frankfurt 法兰克福",
    "Europe/Madrid": "madrid 马德里 barcelona 巴塞罗那",
    "Europe/Rome": "rome 罗马 milan 米兰",
    "Europe/Zurich": "zurich 苏黎世 geneva 日内瓦",
    "Europe/Athens": "athens 雅典",
    "Africa/Cairo": "cairo 开罗",
    "Africa/Johannesburg": "johannesburg 约翰内斯堡 cape_town 开普敦",
    "Africa/Nairobi": "nairobi 内罗毕",
    "Africa/Lagos": "lagos 拉各斯",
    "America/New_York": "new_york 纽约 boston 波士顿 washington 华盛顿 miami 迈阿密",
    "America/Chicago": "chicago 芝加哥 houston 休斯敦 dallas 达拉斯",
    "America/Denver": "denver 丹佛",
    "America/Los_Angeles": "los_angeles 洛杉矶 san_francisco 旧金山 seattle 西雅图",
    "America/Toronto": "toronto 多伦多",
    "America/Vancouver": "vancouver 温哥华",
    "America/Mexico_City": "mexico_city 墨西哥城",
    "America/Sao_Paulo": "sao_paulo 圣保罗 rio_de_janeiro 里约热内卢",
    "America/Argentina/Buenos_Aires": "buenos_aires 布宜诺斯艾利斯",
    "Australia/Sydney": "sydney 悉尼 canberra 堪培拉",
    "Australia/Perth": "perth 珀斯",
    "Pacific/Auckland": "auckland 奥克兰 wellington 惠灵顿",
    "Pacific/Honolulu": "honolulu 檀香山 hawaii 夏威夷",
}


def current_time(time_zone: str = "UTC") -> str:
    """Tell the current date and time in a time zone. 查询现在的日期和时间。

    Args:
        time_zone: An IANA zone such as Asia/Shanghai, an offset such as +08:00, or a big
            city such as Beijing or 北京, 时区或城市.
    """
    return datetime.now(_zone("time_zone", time_zone)).isoformat(timespec="seconds")


def convert_time_zone(time: str, from_zone: str, to_zone: str) -> str:
    """Convert a time from one time zone to another. 把时间从一个时区换算到另一个时区。

    Args:
        time: The local time there, 时间, such as 2024-07-01T09:00.
        from_zone: The zone it is in, 原时区: an IANA zone, an offset or a big city.
        to_zone: The zone wanted, 目标时区.
    """
    local = parse_datetime("time", time).replace(tzinfo=_zone("from_zone", from_zone))
    try:
        return local.astimezone(_zone("to_zone", to_zone)).isoformat()
    except OverflowError:
        raise ValueError(f"time {time!r} leaves the years 1 to 9999 in {to_zone!r}") from None


def time_zone_of_city(city: str) -> str:
    """Look up the IANA time zone of a big city. 查询大城市所在的时区。

    Args:
        city: Its name in English or Chinese, 城市名, such as New York or 纽约.
    """
    require_length("city", city, 1, 60)
    wanted = city.strip().lower().replace(" ", "_")
    for zone, cities in _ZONES.items():
        if wanted in cities.split():
            return zone
    raise ValueError(f"city {city!r} is not in the table; give an IANA zone such as Europe/Paris")


def unix_to_datetime(timestamp: float, time_zone: str = "UTC") -> str:
    """Turn a Unix timestamp into a date and time. 把 Unix 时间戳转换为日期时间。

    Args:
        timestamp: Seconds since 1970-01-01 UTC, 时间戳（秒）.
        time_zone: The zone to show it in, 时区: an IANA zone, an offset or a big city.
    """
    require_within("timestamp", timestamp, -62_135_500_000, 253_402_200_000)
    moment = datetime(1970, 1, 1, tzinfo=UTC) + timedelta(seconds=timestamp)
    return moment.astimezone(_zone("time_zone", time_zone)).isoformat()


def datetime_to_unix(time: str, time_zone: str = "UTC") -> float:
    """Turn a date and time into a Unix timestamp. 把日期时间转换为 Unix 时间戳。

    Args:
        time: Such as 2024-07-01T09:00, or with its own offset 2024-07-01T09:00+08:00, 时间.
        time_zone: The zone of a time without an offset, 时区.
    """
    moment = parse_datetime("time", time)
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=_zone("time_zone", time_zone))
    return (moment - datetime(1970, 1, 1, tzinfo=UTC)).total_seconds()


def humanize_seconds(seconds: float) -> str:
    """Write a number of seconds as days, hours, minutes. 把秒数写成天、小时、分、秒。

    Args:
        seconds: The duration in seconds, 秒数; up to 10^12, fractions are dropped.
    """
    require_not_negative("seconds", seconds)
    require_within("seconds", seconds, 0, 10**12)
    minutes, second = divmod(int(seconds), 60)
    hours, minute = divmod(minutes, 60)
    day, hour = divmod(hours, 24)
    parts = [(day, "d"), (hour, "h"), (minute, "min"), (second, "s")]
    return " ".join(f"{count} {unit}" for count, unit in parts if count) or "0 s"


async def wait_seconds(seconds: float) -> str:
    """Wait a short while, as a countdown timer. 等待几秒钟的倒计时。

    Args:
        seconds: How long to wait, 秒数; 0 to 60.
    """
    require_within("seconds", seconds, 0, 60)
    await asyncio.sleep(seconds)
    return f"{seconds} s have passed"


def _zone(name: str, text: str) -> tzinfo:
    require_length(name, text, 1, 60)
    offset = _OFFSET.fullmatch(text.strip())
    if offset:
        hours, minutes = int(offset[2]), int(offset[3] or 0)
        require_within(f"the hours of {name}", hours, 0, 23)
        shift = timedelta(hours=hours, minutes=minutes)
        return timezone(-shift if offset[1] == "-" else shift)
    if text.upper() == "UTC":
        return UTC
    key = text if "/" in text else time_zone_of_city(text)
    try:
        return ZoneInfo(key)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        raise ValueError(
            f"{name} {text!r} is not known here; use an IANA zone such as Asia/Shanghai, "
            "an offset such as +08:00, or a big city such as Beijing"
        ) from None


TOOLS = (
    current_time,
    convert_time_zone,
    time_zone_of_city,
    unix_to_datetime,
    datetime_to_unix,
    humanize_seconds,
    wait_seconds,
)
