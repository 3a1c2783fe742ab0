"""Known values of validation, networks, colours and geography."""

from __future__ import annotations

import pytest

from tests.demo.test_toolbox import Case, answer
from tool_search.demo.toolbox.colors import (
    contrast_ratio,
    hex_to_rgb,
    hsl_to_rgb,
    mix_colors,
    rgb_to_cmyk,
    rgb_to_hex,
    rgb_to_hsl,
)
from tool_search.demo.toolbox.countries import countries
from tool_search.demo.toolbox.geography import (
    compass_bearing,
    countries_of_continent,
    countries_using_currency,
    countries_with_calling_code,
    country_info,
    country_of_capital,
    currency_info,
    flag_emoji,
    great_circle_distance,
)
from tool_search.demo.toolbox.networks import (
    describe_ip_address,
    explain_file_mode,
    http_status,
    ip_in_network,
    ip_subnet,
    parse_url,
    transfer_time,
    well_known_port,
)
from tool_search.demo.toolbox.validation import (
    validate_barcode,
    validate_card_number,
    validate_chinese_id,
    validate_email,
    validate_iban,
    validate_isbn,
    validate_social_credit_code,
)

BEIJING_TO_SHANGHAI = {
    "start_latitude": 39.9042,
    "start_longitude": 116.4074,
    "end_latitude": 31.2304,
    "end_longitude": 121.4737,
}
EASTWARD = {"start_latitude": 0, "start_longitude": 0, "end_latitude": 0, "end_longitude": 90}

VALIDATION = [
    Case(validate_isbn, {"isbn": "978-0-306-40615-7"}, {"valid": True, "kind": "ISBN-13"}),
    Case(validate_isbn, {"isbn": "0-306-40615-2"}, {"valid": True, "isbn13": "9780306406157"}),
    Case(validate_isbn, {"isbn": "080442957X"}, {"valid": True}),
    Case(validate_isbn, {"isbn": "9780306406158"}, {"valid": False}),
    Case(validate_barcode, {"barcode": "4006381333931"}, True),
    Case(validate_barcode, {"barcode": "036000291452"}, True),
    Case(validate_barcode, {"barcode": "4006381333932"}, False),
    Case(validate_iban, {"iban": "GB82 WEST 1234 5698 7654 32"}, {"valid": True, "country": "GB"}),
    Case(validate_iban, {"iban": "DE89370400440532013000"}, {"valid": True}),
    Case(validate_iban, {"iban": "GB82WEST12345698765433"}, {"valid": False}),
    Case(
        validate_iban, {"iban": "DE8937040044053201300"}, {"reason": "DE has 22 characters, not 21"}
    ),
    Case(validate_card_number, {"number": "4111 1111 1111 1111"}, {"valid": True, "brand": "Visa"}),
    Case(validate_card_number, {"number": "378282246310005"}, {"brand": "American Express"}),
    Case(validate_card_number, {"number": "4111111111111112"}, {"valid": False}),
    # The examples of GB 11643.
    Case(
        validate_chinese_id,
        {"id_number": "11010519491231002X"},
        {"valid": True, "birth_date": "1949-12-31", "sex": "female"},
    ),
    Case(validate_chinese_id, {"id_number": "440524188001010014"}, {"valid": True, "sex": "male"}),
    Case(validate_chinese_id, {"id_number": "110105194912310021"}, {"valid": False}),
    Case(validate_social_credit_code, {"code": "91350100M000100Y43"}, True),
    Case(validate_social_credit_code, {"code": "91350100M000100Y44"}, False),
    Case(validate_email, {"address": "first.last+tag@example.co.uk"}, True),
    Case(validate_email, {"address": "two..dots@example.com"}, False),
    Case(validate_email, {"address": "no-at.example.com"}, False),
]

NETWORKS = [
    Case(
        ip_subnet,
        {"network": "192.168.1.10/26"},
        {"network": "192.168.1.0", "netmask": "255.255.255.192", "usable_hosts": 62},
    ),
    Case(ip_subnet, {"network": "10.0.0.0/31"}, {"usable_hosts": 2}),
    Case(ip_in_network, {"address": "10.1.2.3", "network": "10.0.0.0/8"}, True),
    Case(ip_in_network, {"address": "11.1.2.3", "network": "10.0.0.0/8"}, False),
    Case(describe_ip_address, {"address": "::1"}, {"version": 6, "loopback": True}),
    Case(describe_ip_address, {"address": "8.8.8.8"}, {"private": False}),
    Case(
        parse_url,
        {"url": "https://example.com:8443/a%20b?q=1&q=2#top"},
        {"host": "example.com", "port": 8443, "path": "/a b", "query": {"q": ["1", "2"]}},
    ),
    Case(http_status, {"code": 404}, {"phrase": "Not Found", "kind": "client error"}),
    Case(well_known_port, {"port": 5432}, "PostgreSQL"),
    Case(transfer_time, {"size": 1, "unit": "GB", "megabits_per_second": 100}, 80),
    Case(explain_file_mode, {"mode": "755"}, {"letters": "rwxr-xr-x", "group": "read, execute"}),
    Case(explain_file_mode, {"mode": "rw-r-----"}, {"octal": "640", "others": "nothing"}),
]

COLORS = [
    Case(hex_to_rgb, {"color": "#ff8800"}, [255, 136, 0]),
    Case(hex_to_rgb, {"color": "f80"}, [255, 136, 0]),
    Case(rgb_to_hex, {"red": 255, "green": 136, "blue": 0}, "#ff8800"),
    Case(rgb_to_hsl, {"red": 255, "green": 0, "blue": 0}, [0, 100, 50]),
    Case(hsl_to_rgb, {"hue": 240, "saturation": 100, "lightness": 50}, [0, 0, 255]),
    Case(hsl_to_rgb, {"hue": 120, "saturation": 100, "lightness": 25}, [0, 128, 0]),
    Case(rgb_to_cmyk, {"red": 255, "green": 0, "blue": 0}, [0, 100, 100, 0]),
    Case(rgb_to_cmyk, {"red": 0, "green": 0, "blue": 0}, [0, 0, 0, 100]),
    Case(contrast_ratio, {"foreground": "#000", "background": "#fff"}, {"ratio": 21}),
    Case(
        contrast_ratio,
        {"foreground": "#777", "background": "#fff"},
        {"ratio": 4.48, "passes_aa": False},
    ),
    Case(mix_colors, {"first": "#ff0000", "second": "#0000ff"}, "#800080"),
]

GEOGRAPHY = [
    Case(country_info, {"country": "Japan"}, {"capital": "Tokyo", "currency": "JPY"}),
    Case(country_info, {"country": "巴西"}, {"code": "BR", "calling_code": "+55"}),
    Case(country_info, {"country": "uk"}, {"chinese_name": "英国", "chinese_capital": "伦敦"}),
    Case(country_of_capital, {"city": "brasilia"}, {"code": "BR"}),
    Case(country_of_capital, {"city": "堪培拉"}, {"name": "Australia"}),
    Case(countries_with_calling_code, {"calling_code": "+7"}, ["Kazakhstan", "Russia"]),
    Case(countries_with_calling_code, {"calling_code": "0086"}, ["China"]),
    Case(countries_using_currency, {"currency": "chf"}, ["Switzerland", "Liechtenstein"]),
    Case(currency_info, {"currency": "人民币"}, {"code": "CNY", "symbol": "¥"}),
    Case(currency_info, {"currency": "JPY"}, {"decimals": 0}),
    Case(flag_emoji, {"country": "China"}, "🇨🇳"),
    Case(great_circle_distance, EASTWARD, 10007.557),
    Case(compass_bearing, EASTWARD, {"degrees": 90, "direction": "E", "chinese": "东"}),
    Case(compass_bearing, BEIJING_TO_SHANGHAI, {"direction": "SE"}),
]

REFUSED = [
    Case(ip_subnet, {"network": "300.1.1.1/8"}, "'300.1.1.1/8'"),
    Case(http_status, {"code": 299}, "299"),
    Case(explain_file_mode, {"mode": "999"}, "like 755"),
    Case(hex_to_rgb, {"color": "red"}, "'red'.*hex colour"),
    Case(country_info, {"country": "Atlantis"}, "'Atlantis'"),
    Case(countries_of_continent, {"continent": "Atlantis"}, "'Atlantis'.*Africa, Asia"),
    Case(great_circle_distance, EASTWARD | {"end_latitude": 91}, "end_latitude.*not 91"),
]

KNOWN = [*VALIDATION, *NETWORKS, *COLORS, *GEOGRAPHY]


@pytest.mark.parametrize("case", KNOWN, ids=str)
async def test_tool_gives_the_known_value(case: Case) -> None:
    await case.check()


@pytest.mark.parametrize("case", REFUSED, ids=str)
async def test_bad_input_is_refused_with_its_value(case: Case) -> None:
    with pytest.raises(ValueError, match=case.expected):
        await answer(case.tool, case.arguments)


def test_distance_from_beijing_to_shanghai_is_that_of_the_atlas() -> None:
    assert great_circle_distance(**BEIJING_TO_SHANGHAI) == pytest.approx(1067, abs=3)


def test_country_table_is_whole() -> None:
    rows = countries()
    assert len({row.code for row in rows}) == len(rows) == 199
    assert all(all(row) for row in rows)
    assert len(countries_of_continent("South America")) == 12
