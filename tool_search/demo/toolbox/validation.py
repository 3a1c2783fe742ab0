"""Validation of numbers with a check digit, and of addresses."""

# ruff: noqa: D415  (a tool's first line ends with a Chinese full stop)

from __future__ import annotations

import re
from datetime import date

from tool_search.demo.toolbox.arguments import require_length

_ID_WEIGHTS = (7, 9, 10, 5, 8, 4, 2, 1, 6, 3, 7, 9, 10, 5, 8, 4, 2)
_ID_CHECK = "10X98765432"
_CREDIT_ALPHABET = "0123456789ABCDEFGHJKLMNPQRTUWXY"
_CREDIT_WEIGHTS = (1, 3, 9, 27, 19, 26, 16, 17, 20, 29, 25, 13, 8, 24, 10, 30, 28)
# ISO 13616 lengths of the countries that use it most; others are checked by digits alone.
_IBAN_LENGTHS = {
    "AE": 23, "AT": 20, "BE": 16, "BG": 22, "CH": 21, "CY": 28, "CZ": 24, "DE": 22, "DK": 18,
    "EE": 20, "ES": 24, "FI": 18, "FR": 27, "GB": 22, "GE": 22, "GR": 27, "HR": 21, "HU": 28,
    "IE": 22, "IL": 23, "IS": 26, "IT": 27, "KZ": 20, "LI": 21, "LT": 20, "LU": 20, "LV": 21,
    "MC": 27, "MT": 31, "NL": 18, "NO": 15, "PL": 28, "PT": 25, "RO": 24, "RS": 22, "SA": 24,
    "SE": 24, "SI": 19, "SK": 24, "TR": 26, "UA": 29,
}  # fmt: skip
_CARD_BRANDS = (
    ("Visa", r"4(\d{12}|\d{15}|\d{18})"),
    ("Mastercard", r"(5[1-5]\d{2}|222[1-9]|22[3-9]\d|2[3-6]\d{2}|27[01]\d|2720)\d{12}"),
    ("American Express", r"3[47]\d{13}"),
    ("UnionPay", r"62\d{14,17}"),
    ("JCB", r"35(2[89]|[3-8]\d)\d{12}"),
    ("Mir", r"220[0-4]\d{12,15}"),
)
_EMAIL = (
    r"(?!\.)[A-Za-z0-9.!#$%&'*+/=?^_`{|}~-]{1,64}(?<!\.)@"
    r"((?:[A-Za-z0-9](?:[A-Za-z0-9-]{0,61}[A-Za-z0-9])?\.)+[A-Za-z]{2,63})"
)


def validate_isbn(isbn: str) -> dict[str, bool | str]:
    """Check the check digit of an ISBN-10 or ISBN-13. 校验图书 ISBN 号。

    Args:
        isbn: The number, ISBN 号; hyphens and spaces do not count.

    Returns:
        Whether it is valid, which kind it is, and the ISBN-13 of a valid one.
    """
    plain = _plain("isbn", isbn)
    if re.fullmatch(r"\d{9}[\dX]", plain, re.ASCII):
        digits = [10 if c == "X" else int(c) for c in plain]
        if sum(weight * d for weight, d in zip(range(10, 0, -1), digits, strict=True)) % 11:
            return {"valid": False, "kind": "ISBN-10"}
        body = f"978{plain[:9]}"
        return {"valid": True, "kind": "ISBN-10", "isbn13": body + _ean_check(body)}
    if re.fullmatch(r"97[89]\d{10}", plain, re.ASCII):
        valid = _ean_check(plain[:12]) == plain[12]
        if valid:
            return {"valid": True, "kind": "ISBN-13", "isbn13": plain}
        return {"valid": False, "kind": "ISBN-13"}
    return {"valid": False, "kind": "not an ISBN"}


def validate_barcode(barcode: str) -> bool:
    """Check the check digit of a product barcode (EAN, UPC). 校验商品条形码。

    Args:
        barcode: An EAN-8, UPC-A (12 digits) or EAN-13, 条形码.
    """
    plain = _plain("barcode", barcode)
    if not re.fullmatch(r"\d{8}|\d{12}|\d{13}", plain, re.ASCII):
        return False
    return _ean_check(plain[:-1]) == plain[-1]


def validate_iban(iban: str) -> dict[str, bool | str]:
    """Check the check digits of a bank account number (IBAN). 校验国际银行账号 IBAN。

    Args:
        iban: The number, 账号; spaces do not count.

    Returns:
        Whether it is valid, its country code, and the reason if it is not.
    """
    plain = _plain("iban", iban)
    if not re.fullmatch(r"[A-Z]{2}\d{2}[A-Z0-9]{11,30}", plain, re.ASCII):
        return {"valid": False, "country": "", "reason": "it is not two letters and digits"}
    country = plain[:2]
    if len(plain) != _IBAN_LENGTHS.get(country, len(plain)):
        reason = f"{country} has {_IBAN_LENGTHS[country]} characters, not {len(plain)}"
        return {"valid": False, "country": country, "reason": reason}
    number = int("".join(str(int(c, 36)) for c in plain[4:] + plain[:4]))
    if number % 97 != 1:
        return {"valid": False, "country": country, "reason": "the check digits are wrong"}
    return {"valid": True, "country": country}


def validate_card_number(number: str) -> dict[str, bool | str]:
    """Check a bank card number by Luhn and name its brand. 校验银行卡号并识别卡组织。

    Args:
        number: The number, 卡号; 8 to 19 digits, spaces and hyphens do not count.
    """
    plain = _plain("number", number)
    if not re.fullmatch(r"\d{8,19}", plain, re.ASCII):
        return {"valid": False, "brand": "unknown"}
    doubled = [int(digit) * (2 if i % 2 else 1) for i, digit in enumerate(reversed(plain))]
    valid = sum(d - 9 if d > 9 else d for d in doubled) % 10 == 0
    brand = next((name for name, form in _CARD_BRANDS if re.fullmatch(form, plain)), "unknown")
    return {"valid": valid, "brand": brand}


def validate_chinese_id(id_number: str) -> dict[str, bool | str]:
    """Check a Chinese resident ID number. 校验中国居民身份证号码。

    Args:
        id_number: The 18 characters, 身份证号 (GB 11643-1999).

    Returns:
        Whether it is valid; birth date and sex of a valid one, the reason of another.
    """
    plain = _plain("id_number", id_number)
    if not re.fullmatch(r"\d{17}[\dX]", plain, re.ASCII):
        return {"valid": False, "reason": "it is not 17 digits and a digit or X"}
    try:
        born = date(int(plain[6:10]), int(plain[10:12]), int(plain[12:14]))
    except ValueError:
        return {"valid": False, "reason": f"{plain[6:14]} is no date of birth"}
    total = sum(weight * int(c) for weight, c in zip(_ID_WEIGHTS, plain[:17], strict=True))
    if _ID_CHECK[total % 11] != plain[17]:
        return {"valid": False, "reason": "the check digit is wrong"}
    sex = "male" if int(plain[16]) % 2 else "female"
    return {"valid": True, "birth_date": born.isoformat(), "sex": sex, "region_code": plain[:6]}


def validate_social_credit_code(code: str) -> bool:
    """Check a Chinese company's unified social credit code. 校验统一社会信用代码。

    Args:
        code: The 18 characters, 统一社会信用代码 (GB 32100-2015).
    """
    plain = _plain("code", code)
    if len(plain) != 18 or any(c not in _CREDIT_ALPHABET for c in plain):
        return False
    values = [_CREDIT_ALPHABET.index(c) for c in plain]
    total = sum(weight * v for weight, v in zip(_CREDIT_WEIGHTS, values[:17], strict=True))
    return (31 - total % 31) % 31 == values[17]


def validate_email(address: str) -> bool:
    """Tell whether an e-mail address is well formed. 判断电子邮箱格式是否正确。

    Args:
        address: The address, 邮箱地址; nobody is asked whether it exists.
    """
    require_length("address", address, 1, 500)
    local, _, _ = address.partition("@")
    return len(address) <= 254 and ".." not in local and bool(re.fullmatch(_EMAIL, address))


def _plain(name: str, text: str) -> str:
    require_length(name, text, 1, 100)
    return re.sub(r"[\s-]", "", text).upper()


def _ean_check(digits: str) -> str:
    total = sum(int(d) * (3 if i % 2 == 0 else 1) for i, d in enumerate(reversed(digits)))
    return str(-total % 10)


TOOLS = (
    validate_isbn,
    validate_barcode,
    validate_iban,
    validate_card_number,
    validate_chinese_id,
    validate_social_credit_code,
    validate_email,
)
