"""Known values of dates, clocks, cron, the Chinese calendar, money and health."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta

import pytest

from tests.demo.test_toolbox import Case, answer
from tool_search.demo.toolbox.chinese_calendar import (
    chinese_new_year,
    chinese_zodiac,
    lunar_date,
    sexagenary_year,
    solar_term_on,
    solar_terms,
)
from tool_search.demo.toolbox.clocks import (
    convert_time_zone,
    current_time,
    datetime_to_unix,
    humanize_seconds,
    time_zone_of_city,
    unix_to_datetime,
    wait_seconds,
)
from tool_search.demo.toolbox.cron import explain_cron, next_cron_times
from tool_search.demo.toolbox.dates import (
    add_business_days,
    add_to_date,
    age_on_date,
    business_days_between,
    day_of_year,
    days_between,
    easter_date,
    is_leap_year,
    iso_week,
    month_calendar,
    star_sign,
    weekday_of_date,
)
from tool_search.demo.toolbox.health import (
    basal_metabolic_rate,
    bmi,
    convert_blood_glucose,
    daily_calories,
    heart_rate_zones,
    pregnancy_due_date,
    running_pace,
)
from tool_search.demo.toolbox.investments import (
    compound_interest,
    internal_rate_of_return,
    net_present_value,
    regular_savings,
    savings_goal_deposit,
    simple_interest,
    years_to_double,
)
from tool_search.demo.toolbox.loans import (
    affordable_loan,
    effective_annual_rate,
    equal_principal_loan,
    loan_payment,
    loan_schedule,
)
from tool_search.demo.toolbox.prices import (
    add_sales_tax,
    break_even_units,
    china_income_tax,
    discount_price,
    exchange_currency,
    profit_margin,
    remove_sales_tax,
    split_bill,
)

DATES = [
    Case(days_between, {"start": "2024-01-01", "end": "2025-01-01"}, 366),
    Case(days_between, {"start": "2000-01-01", "end": "1999-12-31"}, -1),
    Case(add_to_date, {"start": "2024-01-31", "months": 1}, "2024-02-29"),
    Case(add_to_date, {"start": "2024-02-29", "years": 1, "days": 1}, "2025-03-01"),
    Case(add_to_date, {"start": "2024-01-15", "months": -1, "weeks": -1}, "2023-12-08"),
    Case(weekday_of_date, {"day": "1969-07-20"}, {"english": "Sunday", "iso_number": 7}),
    Case(weekday_of_date, {"day": "2008-08-08"}, {"chinese": "星期五"}),
    Case(business_days_between, {"start": "2024-01-01", "end": "2024-02-01"}, 23),
    Case(
        business_days_between,
        {"start": "2024-09-30", "end": "2024-10-08", "holidays": ["2024-10-01", "2024-10-05"]},
        5,
    ),
    Case(add_business_days, {"start": "2024-06-28", "days": 1}, "2024-07-01"),
    Case(add_business_days, {"start": "2024-07-01", "days": -1}, "2024-06-28"),
    Case(
        add_business_days,
        {"start": "2024-12-24", "days": 1, "holidays": ["2024-12-25"]},
        "2024-12-26",
    ),
    Case(iso_week, {"day": "2021-01-03"}, "2020-W53"),
    Case(iso_week, {"day": "2024-12-30"}, "2025-W01"),
    Case(day_of_year, {"day": "2024-12-31"}, {"day": 366, "quarter": 4, "days_left": 0}),
    Case(day_of_year, {"day": "2023-03-01"}, {"day": 60, "quarter": 1}),
    Case(is_leap_year, {"year": 1900}, False),
    Case(is_leap_year, {"year": 2000}, True),
    Case(
        age_on_date,
        {"birth_date": "2000-02-29", "on_date": "2024-02-28"},
        {"years": 23, "months": 11, "days": 30},
    ),
    Case(
        age_on_date, {"birth_date": "1990-05-17", "on_date": "2024-05-17"}, {"years": 34, "days": 0}
    ),
    Case(easter_date, {"year": 2024}, "2024-03-31"),
    Case(easter_date, {"year": 1981}, "1981-04-19"),
    Case(easter_date, {"year": 2038}, "2038-04-25"),
    Case(star_sign, {"day": "2000-03-21"}, {"english": "Aries"}),
    Case(star_sign, {"day": "2000-12-31"}, {"chinese": "摩羯座"}),
]

CLOCKS = [
    Case(
        convert_time_zone,
        {"time": "2024-07-01T09:00", "from_zone": "Asia/Shanghai", "to_zone": "America/New_York"},
        "2024-06-30T21:00:00-04:00",
    ),
    Case(
        convert_time_zone,
        {"time": "2024-01-15T12:00", "from_zone": "London", "to_zone": "+05:30"},
        "2024-01-15T17:30:00+05:30",
    ),
    Case(time_zone_of_city, {"city": "New York"}, "America/New_York"),
    Case(time_zone_of_city, {"city": "北京"}, "Asia/Shanghai"),
    Case(unix_to_datetime, {"timestamp": 1_000_000_000}, "2001-09-09T01:46:40+00:00"),
    Case(
        unix_to_datetime,
        {"timestamp": 0, "time_zone": "+8"},
        "1970-01-01T08:00:00+08:00",
    ),
    Case(datetime_to_unix, {"time": "2038-01-19T03:14:07"}, 2**31 - 1),
    Case(datetime_to_unix, {"time": "1970-01-01T08:00+08:00"}, 0),
    Case(humanize_seconds, {"seconds": 93_784}, "1 d 2 h 3 min 4 s"),
    Case(humanize_seconds, {"seconds": 0.4}, "0 s"),
    Case(wait_seconds, {"seconds": 0}, "0 s have passed"),
    Case(
        explain_cron,
        {"expression": "*/15 9-11 * * mon-fri"},
        {
            "minute": "every 15 from 0: 0, 15, 30, 45",
            "hour": "9, 10, 11",
            "day of week": "1, 2, 3, 4, 5",
        },
    ),
    Case(explain_cron, {"expression": "0 0 1 jan 7"}, {"month": "1", "day of week": "0"}),
    Case(
        next_cron_times,
        {"expression": "30 17 * * 5", "after": "2024-06-28T17:30", "count": 1},
        ["2024-07-05T17:30:00"],
    ),
    Case(
        next_cron_times,
        {"expression": "0 0 29 2 *", "after": "2024-03-01T00:00", "count": 2},
        ["2028-02-29T00:00:00", "2032-02-29T00:00:00"],
    ),
    # Day of month or day of week, as cron has it: Friday the 5th, 12th, and 13 July.
    Case(
        next_cron_times,
        {"expression": "0 0 13 * 5", "after": "2024-07-01T00:00", "count": 3},
        ["2024-07-05T00:00:00", "2024-07-12T00:00:00", "2024-07-13T00:00:00"],
    ),
]

CHINESE_CALENDAR = [
    Case(chinese_zodiac, {"year": 2024}, {"english": "Dragon", "chinese": "龙"}),
    Case(chinese_zodiac, {"year": 1900}, {"english": "Rat"}),
    Case(sexagenary_year, {"year": 1984}, "甲子年"),
    Case(sexagenary_year, {"year": 1898}, "戊戌年"),
    Case(chinese_new_year, {"year": 1949}, "1949-01-29"),
    Case(chinese_new_year, {"year": 2000}, "2000-02-05"),
    Case(chinese_new_year, {"year": 2024}, "2024-02-10"),
    Case(chinese_new_year, {"year": 2025}, "2025-01-29"),
    Case(chinese_new_year, {"year": 2033}, "2033-01-31"),
    # Mid-Autumn, Dragon Boat and New Year's Eve.
    Case(lunar_date, {"day": "2024-09-17"}, {"month": 8, "day": 15, "text": "甲辰年八月十五"}),
    Case(lunar_date, {"day": "2023-06-22"}, {"month": 5, "day": 5, "leap_month": False}),
    Case(lunar_date, {"day": "2024-02-09"}, {"year": 2023, "month": 12, "day": 30}),
    # The leap months of 2020, 2023, 2025, and the famous one of 2033.
    Case(lunar_date, {"day": "2020-05-23"}, {"month": 4, "day": 1, "leap_month": True}),
    Case(lunar_date, {"day": "2023-03-22"}, {"month": 2, "day": 1, "leap_month": True}),
    Case(lunar_date, {"day": "2025-07-25"}, {"month": 6, "day": 1, "leap_month": True}),
    Case(lunar_date, {"day": "2033-12-22"}, {"month": 11, "day": 1, "leap_month": True}),
    Case(solar_term_on, {"day": "2024-04-04"}, {"chinese": "清明", "days_ago": 0}),
    Case(solar_term_on, {"day": "2024-01-01"}, {"chinese": "冬至", "date": "2023-12-22"}),
]

# Published by the Hong Kong and the Purple Mountain observatories, Beijing time.
TERM_TIMES = [
    (2021, "冬至", "2021-12-21T23:59"),
    (2024, "立春", "2024-02-04T16:27"),
    (2024, "春分", "2024-03-20T11:06"),
    (2024, "夏至", "2024-06-21T04:51"),
    (2024, "秋分", "2024-09-22T20:44"),
    (2025, "冬至", "2025-12-21T23:03"),
]

MONEY = [
    Case(
        loan_payment,
        {"principal": 1_000_000, "annual_rate": 4.9, "months": 360},
        {"monthly_payment": 5307.27, "total_interest": 910616.19},
    ),
    Case(
        loan_payment,
        {"principal": 100_000, "annual_rate": 6, "months": 360},
        {"monthly_payment": 599.55},
    ),
    Case(
        loan_payment, {"principal": 1200, "annual_rate": 0, "months": 12}, {"monthly_payment": 100}
    ),
    Case(
        equal_principal_loan,
        {"principal": 1_000_000, "annual_rate": 4.9, "months": 360},
        {"first_payment": 6861.11, "total_interest": 737041.67},
    ),
    Case(affordable_loan, {"monthly_payment": 599.55, "annual_rate": 6, "months": 360}, 99999.91),
    Case(effective_annual_rate, {"nominal_rate": 12, "periods_per_year": 12}, 12.6825030132),
    Case(
        simple_interest,
        {"principal": 1000, "annual_rate": 5, "years": 2},
        {"interest": 100, "final_amount": 1100},
    ),
    Case(
        compound_interest,
        {"principal": 1000, "annual_rate": 5, "years": 10},
        {"final_amount": 1628.89},
    ),
    Case(
        compound_interest,
        {"principal": 1500, "annual_rate": 4.3, "years": 6, "periods_per_year": 4},
        {"final_amount": 1938.84},
    ),
    Case(
        regular_savings,
        {"monthly_deposit": 100, "annual_rate": 12, "months": 12},
        {"paid_in": 1200, "final_amount": 1268.25},
    ),
    Case(savings_goal_deposit, {"goal": 1200, "annual_rate": 0, "months": 12}, 100),
    Case(savings_goal_deposit, {"goal": 1268.25, "annual_rate": 12, "months": 12}, 100),
    Case(years_to_double, {"annual_rate": 100}, 1),
    Case(net_present_value, {"rate": 10, "cash_flows": [-1000, 500, 500, 500]}, 243.43),
    Case(internal_rate_of_return, {"cash_flows": [-100, 110]}, 10),
    Case(internal_rate_of_return, {"cash_flows": [-123400, 36200, 54800, 48100]}, 5.961638),
    Case(exchange_currency, {"amount": 100, "rate": 7.25, "fee_percent": 1}, 717.75),
    Case(split_bill, {"bill": 100, "people": 3, "tip_percent": 15}, {"total": 115, "each": 38.34}),
    Case(split_bill, {"bill": 90, "people": 3}, {"tip": 0, "each": 30}),
    Case(discount_price, {"price": 299, "percent_off": 20}, {"price": 239.2, "saved": 59.8}),
    Case(add_sales_tax, {"net_price": 100, "tax_percent": 13}, {"tax": 13, "gross_price": 113}),
    Case(remove_sales_tax, {"gross_price": 113, "tax_percent": 13}, {"tax": 13, "net_price": 100}),
    Case(profit_margin, {"cost": 80, "price": 100}, {"margin_percent": 20, "markup_percent": 25}),
    Case(break_even_units, {"fixed_costs": 1000, "unit_price": 15, "unit_cost": 5}, 100),
    Case(break_even_units, {"fixed_costs": 1001, "unit_price": 15, "unit_cost": 5}, 101),
    Case(china_income_tax, {"taxable_income": 36_000}, {"tax": 1080, "rate_percent": 3}),
    Case(china_income_tax, {"taxable_income": 100_000}, {"tax": 7480, "rate_percent": 10}),
    Case(china_income_tax, {"taxable_income": 1_000_000}, {"tax": 268080, "rate_percent": 45}),
]

HEALTH = [
    Case(bmi, {"weight_kg": 70, "height_cm": 175}, {"bmi": 22.9, "who_class": "normal"}),
    Case(bmi, {"weight_kg": 100, "height_cm": 170}, {"bmi": 34.6, "who_class": "obese"}),
    Case(
        basal_metabolic_rate,
        {"weight_kg": 70, "height_cm": 175, "age_years": 30, "sex": "male"},
        1648.75,
    ),
    Case(
        daily_calories,
        {"weight_kg": 60, "height_cm": 165, "age_years": 30, "sex": "female", "activity": "light"},
        1815.3,
    ),
    Case(
        running_pace, {"distance_km": 10, "minutes": 50}, {"pace_per_km": "5:00", "km_per_hour": 12}
    ),
    Case(heart_rate_zones, {"age_years": 20}, {"very_light": [100, 120], "maximum": [180, 200]}),
    Case(pregnancy_due_date, {"last_period": "2024-01-01"}, "2024-10-07"),
    Case(convert_blood_glucose, {"value": 5.5, "from_unit": "mmol/L", "to_unit": "mg/dL"}, 99.088),
]

REFUSED = [
    Case(days_between, {"start": "2023-02-29", "end": "2024-01-01"}, "'2023-02-29'"),
    Case(add_to_date, {"start": "9999-12-31", "days": 1}, "1 to 9999"),
    Case(age_on_date, {"birth_date": "2024-01-02", "on_date": "2024-01-01"}, "before birth_date"),
    Case(convert_time_zone, {"time": "noon", "from_zone": "UTC", "to_zone": "UTC"}, "'noon'"),
    Case(current_time, {"time_zone": "Mars/Base"}, "'Mars/Base'.*Asia/Shanghai"),
    Case(time_zone_of_city, {"city": "Atlantis"}, "'Atlantis'"),
    Case(explain_cron, {"expression": "* * * *"}, "five fields, not 4"),
    Case(explain_cron, {"expression": "61 * * * *"}, "'61'.*0 to 59"),
    Case(next_cron_times, {"expression": "0 0 31 2 *", "after": "2024-01-01T00:00"}, "never runs"),
    Case(chinese_new_year, {"year": 1800}, "from 1930 to 2080, not 1800"),
    Case(loan_payment, {"principal": -1, "annual_rate": 5, "months": 12}, "not -1"),
    Case(internal_rate_of_return, {"cash_flows": [100, 100]}, "no single rate"),
    Case(break_even_units, {"fixed_costs": 1, "unit_price": 5, "unit_cost": 5}, "above unit_cost"),
    Case(bmi, {"weight_kg": 70, "height_cm": 1.75}, "height_cm.*not 1.75"),
    Case(wait_seconds, {"seconds": 61}, "0 to 60, not 61"),
]

KNOWN = [*DATES, *CLOCKS, *CHINESE_CALENDAR, *MONEY, *HEALTH]


@pytest.mark.parametrize("case", KNOWN, ids=str)
async def test_tool_gives_the_known_value(case: Case) -> None:
    await case.check()


@pytest.mark.parametrize("case", REFUSED, ids=str)
async def test_bad_input_is_refused_with_its_value(case: Case) -> None:
    with pytest.raises(ValueError, match=case.expected):
        await answer(case.tool, case.arguments)


@pytest.mark.parametrize(("year", "name", "published"), TERM_TIMES)
def test_solar_terms_agree_with_the_observatories(year: int, name: str, published: str) -> None:
    row = next(row for row in solar_terms(year) if row["chinese"] == name)
    computed = datetime.fromisoformat(f"{row['date']}T{row['time']}")
    assert abs(computed - datetime.fromisoformat(published)) <= timedelta(minutes=1)
    assert row["date"] == published[:10]


def test_solar_terms_are_in_order() -> None:
    dates = [row["date"] for row in solar_terms(2024)]
    assert len(dates) == 24
    assert dates == sorted(dates)


def test_loan_schedule_ends_at_zero() -> None:
    first = loan_schedule(100_000, 6, 360, count=1)[0]
    assert first == {"month": 1, "interest": 500, "principal": 99.55, "balance": 99900.45}
    assert loan_schedule(100_000, 6, 360, first_month=360)[-1]["balance"] == 0


def test_month_calendar_starts_on_the_right_weekday() -> None:
    lines = month_calendar(2024, 2).splitlines()
    assert lines[2].split() == ["1", "2", "3", "4"]
    assert lines[-1].split() == ["26", "27", "28", "29"]


def test_current_time_is_now_in_its_zone() -> None:
    told = datetime.fromisoformat(current_time("+08:00"))
    assert abs(told - datetime.now(UTC)) < timedelta(minutes=1)
    assert re.search(r"\+08:00$", current_time("Beijing"))
