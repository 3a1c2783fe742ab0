"""Countries, currencies, telephone codes, and distances on the globe."""

# ruff: noqa: D415  (a tool's first line ends with a Chinese full stop)

from __future__ import annotations

import math
import unicodedata
from typing import Literal

from tool_search.demo.toolbox.arguments import require_length, require_within
from tool_search.demo.toolbox.countries import Country, countries

Continent = Literal["Africa", "Asia", "Europe", "North America", "Oceania", "South America"]

_EARTH_RADIUS_KM = 6371.0088
_OTHER_NAMES = {
    "usa": "US", "america": "US", "uk": "GB", "great britain": "GB", "england": "GB",
    "uae": "AE", "turkey": "TR", "czech republic": "CZ", "ivory coast": "CI", "burma": "MM",
    "阿联酋": "AE", "香港": "HK", "澳门": "MO", "台湾": "TW", "波黑": "BA", "中华人民共和国": "CN",
    "россия": "RU", "китай": "CN", "сша": "US",
}  # fmt: skip
# ISO 4217: English name, Chinese name, symbol, decimals.
_CURRENCIES = {
    "AED": ("UAE dirham", "阿联酋迪拉姆", "د.إ", 2),
    "ARS": ("Argentine peso", "阿根廷比索", "$", 2),
    "AUD": ("Australian dollar", "澳大利亚元", "A$", 2),
    "BHD": ("Bahraini dinar", "巴林第纳尔", ".د.ب", 3),
    "BRL": ("Brazilian real", "巴西雷亚尔", "R$", 2),
    "BYN": ("Belarusian rouble", "白俄罗斯卢布", "Br", 2),
    "CAD": ("Canadian dollar", "加拿大元", "C$", 2),
    "CHF": ("Swiss franc", "瑞士法郎", "CHF", 2),
    "CLP": ("Chilean peso", "智利比索", "$", 0),
    "CNY": ("Chinese yuan", "人民币", "¥", 2),
    "COP": ("Colombian peso", "哥伦比亚比索", "$", 2),
    "CZK": ("Czech koruna", "捷克克朗", "Kč", 2),
    "DKK": ("Danish krone", "丹麦克朗", "kr", 2),
    "EGP": ("Egyptian pound", "埃及镑", "E£", 2),
    "EUR": ("Euro", "欧元", "€", 2),
    "GBP": ("Pound sterling", "英镑", "£", 2),
    "GEL": ("Georgian lari", "格鲁吉亚拉里", "₾", 2),
    "HKD": ("Hong Kong dollar", "港元", "HK$", 2),
    "HUF": ("Hungarian forint", "匈牙利福林", "Ft", 2),
    "IDR": ("Indonesian rupiah", "印度尼西亚盾", "Rp", 2),
    "ILS": ("Israeli new shekel", "以色列新谢克尔", "₪", 2),
    "INR": ("Indian rupee", "印度卢比", "₹", 2),
    "JPY": ("Japanese yen", "日元", "¥", 0),
    "KRW": ("South Korean won", "韩元", "₩", 0),
    "KWD": ("Kuwaiti dinar", "科威特第纳尔", "د.ك", 3),
    "KZT": ("Kazakhstani tenge", "哈萨克斯坦坚戈", "₸", 2),
    "MOP": ("Macanese pataca", "澳门元", "MOP$", 2),
    "MXN": ("Mexican peso", "墨西哥比索", "$", 2),
    "MYR": ("Malaysian ringgit", "马来西亚林吉特", "RM", 2),
    "NGN": ("Nigerian naira", "尼日利亚奈拉", "₦", 2),
    "NOK": ("Norwegian krone", "挪威克朗", "kr", 2),
    "NZD": ("New Zealand dollar", "新西兰元", "NZ$", 2),
    "PHP": ("Philippine peso", "菲律宾比索", "₱", 2),
    "PKR": ("Pakistani rupee", "巴基斯坦卢比", "₨", 2),
    "PLN": ("Polish zloty", "波兰兹罗提", "zł", 2),
    "RUB": ("Russian rouble", "俄罗斯卢布", "₽", 2),
    "SAR": ("Saudi riyal", "沙特里亚尔", "﷼", 2),
    "SEK": ("Swedish krona", "瑞典克朗", "kr", 2),
    "SGD": ("Singapore dollar", "新加坡元", "S$", 2),
    "THB": ("Thai baht", "泰铢", "฿", 2),
    "TRY": ("Turkish lira", "土耳其里拉", "₺", 2),
    "TWD": ("New Taiwan dollar", "新台币", "NT$", 2),
    "UAH": ("Ukrainian hryvnia", "乌克兰格里夫纳", "₴", 2),
    "USD": ("US dollar", "美元", "$", 2),
    "VND": ("Vietnamese dong", "越南盾", "₫", 0),
    "ZAR": ("South African rand", "南非兰特", "R", 2),
}
_COMPASS = (
    ("N", "北"), ("NE", "东北"), ("E", "东"), ("SE", "东南"),
    ("S", "南"), ("SW", "西南"), ("W", "西"), ("NW", "西北"),
)  # fmt: skip


def country_info(country: str) -> dict[str, str]:
    """Look up a country's capital, currency and codes. 查询国家的首都、货币和区号。

    Args:
        country: Its name in English or Chinese, or its ISO code, 国家名或代码.
    """
    found = _country(country)
    return {
        "code": found.code,
        "name": found.name,
        "chinese_name": found.chinese_name,
        "capital": found.capital,
        "chinese_capital": found.chinese_capital,
        "currency": found.currency,
        "calling_code": f"+{found.calling_code}",
        "continent": found.continent,
    }


def country_of_capital(city: str) -> dict[str, str]:
    """Find the country whose capital a city is. 查询某城市是哪国的首都。

    Args:
        city: The capital in English or Chinese, 首都.
    """
    wanted = _folded("city", city)
    for row in countries():
        if wanted in (_fold(row.capital), row.chinese_capital):
            return {"code": row.code, "name": row.name, "chinese_name": row.chinese_name}
    raise ValueError(f"city {city!r} is not a capital in the table; write it like Paris or 巴黎")


def countries_with_calling_code(calling_code: str) -> list[str]:
    """List the countries of a telephone code such as +86. 按国际电话区号查国家。

    Args:
        calling_code: The code, 国际区号; the plus sign or 00 may be missing.
    """
    require_length("calling_code", calling_code, 1, 10)
    digits = calling_code.strip().removeprefix("+").removeprefix("00")
    found = [row.name for row in countries() if row.calling_code == digits]
    if not found:
        raise ValueError(f"calling_code {calling_code!r} belongs to no country in the table")
    return found


def countries_using_currency(currency: str) -> list[str]:
    """List the countries that use a currency. 查询使用某种货币的国家。

    Args:
        currency: The ISO 4217 code, 货币代码, such as EUR.
    """
    require_length("currency", currency, 1, 10)
    found = [row.name for row in countries() if row.currency == currency.strip().upper()]
    if not found:
        raise ValueError(f"currency {currency!r} is no currency of the table; use a code like EUR")
    return found


def countries_of_continent(continent: Continent) -> list[str]:
    """List the countries of a continent. 列出某大洲的国家和地区。

    Args:
        continent: The continent, 大洲.
    """
    found = [row.name for row in countries() if row.continent == continent]
    if not found:
        allowed = ", ".join(dict.fromkeys(row.continent for row in countries()))
        raise ValueError(f"continent {continent!r} is not known; use one of: {allowed}")
    return found


def currency_info(currency: str) -> dict[str, str | int]:
    """Look up a currency's name, symbol and decimals. 查询货币的名称、符号和小数位数。

    Args:
        currency: The ISO 4217 code or the name in English or Chinese, 货币代码或名称.
    """
    wanted = _folded("currency", currency)
    for code, (english, chinese, symbol, decimals) in _CURRENCIES.items():
        if wanted in (code.lower(), _fold(english), chinese):
            return {
                "code": code,
                "name": english,
                "chinese_name": chinese,
                "symbol": symbol,
                "decimals": decimals,
            }
    codes = ", ".join(_CURRENCIES)
    raise ValueError(f"currency {currency!r} is not in the table; it holds: {codes}")


def flag_emoji(country: str) -> str:
    """Give the flag emoji of a country. 查询国家的国旗表情符号。

    Args:
        country: Its name in English or Chinese, or its ISO code, 国家名或代码.
    """
    return "".join(chr(ord(letter) + 0x1F1A5) for letter in _country(country).code)


def great_circle_distance(
    start_latitude: float, start_longitude: float, end_latitude: float, end_longitude: float
) -> float:
    """Compute the kilometres between two points on Earth. 计算地球上两点间的距离（公里）。

    Args:
        start_latitude: Degrees north of the equator, 起点纬度; south is negative.
        start_longitude: Degrees east of Greenwich, 起点经度; west is negative.
        end_latitude: The same for the other point, 终点纬度.
        end_longitude: The same for the other point, 终点经度.

    Returns:
        Kilometres on a sphere of the Earth's mean radius; the true figure is within 0.6 percent.
    """
    phi, end_phi, turn = _radians(start_latitude, start_longitude, end_latitude, end_longitude)
    # The haversine formula: exact for near points too.
    half = math.sin((end_phi - phi) / 2) ** 2
    half += math.cos(phi) * math.cos(end_phi) * math.sin(turn / 2) ** 2
    return round(2 * _EARTH_RADIUS_KM * math.asin(min(1.0, math.sqrt(half))), 3)


def compass_bearing(
    start_latitude: float, start_longitude: float, end_latitude: float, end_longitude: float
) -> dict[str, float | str]:
    """Compute the compass direction from one point to another. 计算从一点到另一点的方位角。

    Args:
        start_latitude: Degrees north of the equator, 起点纬度; south is negative.
        start_longitude: Degrees east of Greenwich, 起点经度; west is negative.
        end_latitude: The same for the other point, 终点纬度.
        end_longitude: The same for the other point, 终点经度.

    Returns:
        The initial bearing in degrees clockwise from north, and its direction in eighths.
    """
    phi, end_phi, turn = _radians(start_latitude, start_longitude, end_latitude, end_longitude)
    east = math.sin(turn) * math.cos(end_phi)
    north = math.cos(phi) * math.sin(end_phi)
    north -= math.sin(phi) * math.cos(end_phi) * math.cos(turn)
    degrees = round(math.degrees(math.atan2(east, north)) % 360, 2) % 360
    english, chinese = _COMPASS[round(degrees / 45) % 8]
    return {"degrees": degrees, "direction": english, "chinese": chinese}


def _country(country: str) -> Country:
    wanted = _folded("country", country)
    code = _OTHER_NAMES.get(wanted, wanted.upper())
    for row in countries():
        if code == row.code or wanted in (_fold(row.name), row.chinese_name):
            return row
    raise ValueError(
        f"country {country!r} is not in the table; use a code such as CN, or a name in English "
        "or Chinese"
    )


def _folded(name: str, text: str) -> str:
    require_length(name, text, 1, 60)
    return _fold(text.strip())


def _fold(text: str) -> str:
    """Lower case without accents: Brasília is also found as brasilia."""
    decomposed = unicodedata.normalize("NFD", text.casefold())
    if any("\u0400" <= character <= "\u04ff" for character in text):
        return text.casefold()
    return "".join(c for c in decomposed if not unicodedata.combining(c))


def _radians(
    start_latitude: float, start_longitude: float, end_latitude: float, end_longitude: float
) -> tuple[float, float, float]:
    for name, value in (("start_latitude", start_latitude), ("end_latitude", end_latitude)):
        require_within(name, value, -90, 90)
    for name, value in (("start_longitude", start_longitude), ("end_longitude", end_longitude)):
        require_within(name, value, -180, 180)
    turn = math.radians(end_longitude - start_longitude)
    return math.radians(start_latitude), math.radians(end_latitude), turn


TOOLS = (
    country_info,
    country_of_capital,
    countries_with_calling_code,
    countries_using_currency,
    countries_of_continent,
    currency_info,
    flag_emoji,
    great_circle_distance,
    compass_bearing,
)
