"""Hashes, signatures, keys, tokens, passwords, identifiers."""

# ruff: noqa: D415  (a tool's first line ends with a Chinese full stop)

from __future__ import annotations

import asyncio
import base64
import binascii
import hashlib
import hmac
import itertools
import json
import math
import secrets
import string
import uuid
from typing import Literal

from tool_search.demo.toolbox.arguments import choose, require_length, require_within

HashName = Literal["md5", "sha1", "sha256", "sha384", "sha512", "sha3_256", "blake2b"]

_HASHES: dict[HashName, str] = {
    "md5": "md5", "sha1": "sha1", "sha256": "sha256", "sha384": "sha384",
    "sha512": "sha512", "sha3_256": "sha3_256", "blake2b": "blake2b",
}  # fmt: skip
_MAX_CHARS = 100_000
_COMMON_PASSWORDS = frozenset(
    (
        "123456", "password", "12345678", "qwerty", "123456789", "12345", "1234", "111111",
        "1234567", "dragon", "123123", "abc123", "football", "monkey", "letmein", "shadow",
        "master", "666666", "qwertyuiop", "123321", "654321", "superman", "admin", "iloveyou",
        "welcome", "password1", "1q2w3e4r", "000000", "888888", "woaini1314", "5201314",
    )
)  # fmt: skip
_STRENGTHS = ((28, "very weak"), (36, "weak"), (60, "fair"), (80, "strong"))


def hash_text(text: str, algorithm: HashName = "sha256") -> str:
    """Compute the hash or checksum of a text. 计算文本的哈希值，如 MD5 和 SHA-256。

    Args:
        text: The text, 文本; hashed as UTF-8.
        algorithm: The hash function, 算法; md5 and sha1 are for checksums only.
    """
    require_length("text", text, 0, _MAX_CHARS)
    name = choose("algorithm", algorithm, _HASHES)
    return hashlib.new(name, _utf8(text), usedforsecurity=False).hexdigest()


def sign_text(text: str, key: str) -> str:
    """Sign a text with a secret key (HMAC-SHA256). 用密钥对文本做 HMAC 签名。

    Args:
        text: The text, 文本.
        key: The secret key, 密钥; at least one character.
    """
    require_length("text", text, 0, _MAX_CHARS)
    require_length("key", key, 1, 1000)
    return hmac.new(_utf8(key), _utf8(text), hashlib.sha256).hexdigest()


async def derive_key(password: str, salt: str, iterations: int = 100_000) -> str:
    """Derive a key from a password (PBKDF2-SHA256). 由口令派生密钥。

    Args:
        password: The password, 口令.
        salt: The salt, 盐.
        iterations: How often it is hashed, 迭代次数; 1 to 1000000.

    Returns:
        The key of 32 bytes in hexadecimal.
    """
    require_length("password", password, 1, 1000)
    require_length("salt", salt, 1, 1000)
    require_within("iterations", iterations, 1, 1_000_000)
    # In a thread: a million rounds take a second, and other conversations wait.
    key = await asyncio.to_thread(
        hashlib.pbkdf2_hmac, "sha256", _utf8(password), _utf8(salt), iterations
    )
    return key.hex()


def decode_jwt(token: str) -> dict[str, object]:
    """Show what a JSON Web Token holds, without verifying it. 解析 JWT 内容（不验证签名）。

    Args:
        token: Three parts joined by dots, 令牌.

    Returns:
        Its header and payload.
    """
    require_length("token", token, 1, _MAX_CHARS)
    parts = token.strip().split(".")
    if len(parts) != 3:
        raise ValueError(f"token must have three parts joined by dots, not {len(parts)}")
    header, payload = (_jwt_part(part) for part in parts[:2])
    return {"header": header, "payload": payload, "signature_verified": False}


def password_strength(password: str) -> dict[str, float | str | list[str]]:
    """Rate how hard a password is to guess. 评估密码强度。

    Args:
        password: The password, 密码; it is not stored.

    Returns:
        Entropy in bits (an upper bound: length times the kinds of characters), a rating from
        very weak to very strong, and advice.
    """
    require_length("password", password, 1, 1000)
    kinds = (
        (26, any(c.islower() and c.isascii() for c in password), "add lower-case letters"),
        (26, any(c.isupper() and c.isascii() for c in password), "add upper-case letters"),
        (10, any(c.isdigit() and c.isascii() for c in password), "add digits"),
        (33, any(c in string.punctuation + " " for c in password), "add signs such as ! or -"),
        (100, not password.isascii(), ""),
    )
    alphabet = sum(size for size, present, _ in kinds if present) or 10
    advice = [text for _, present, text in kinds if text and not present]
    # A character that only repeats its neighbour adds nothing.
    changes = 1 + sum(a != b for a, b in itertools.pairwise(password))
    bits = changes * math.log2(alphabet)
    if len(password) < 12:
        advice.insert(0, "use at least 12 characters")
    if password.lower() in _COMMON_PASSWORDS:
        bits, advice = 0.0, ["it is among the most used passwords: choose another"]
    rating = next((name for top, name in _STRENGTHS if bits < top), "very strong")
    return {"entropy_bits": round(bits, 1), "rating": rating, "advice": advice}


def generate_password(length: int = 16, symbols: bool = True) -> str:
    """Generate a random password. 生成随机密码。

    Args:
        length: How many characters, 长度; 8 to 128.
        symbols: True to use signs beside letters and digits, 是否含符号.
    """
    require_within("length", length, 8, 128)
    groups = [string.ascii_lowercase, string.ascii_uppercase, string.digits]
    groups += ["!#$%&*+-=?@_"] if symbols else []
    characters = [secrets.choice(group) for group in groups]
    characters += [secrets.choice("".join(groups)) for _ in range(length - len(groups))]
    secrets.SystemRandom().shuffle(characters)
    return "".join(characters)


def generate_uuid(name: str | None = None) -> str:
    """Generate a UUID, random or from a name. 生成 UUID。

    Args:
        name: If given, the UUID (version 5, DNS namespace) that always belongs to this name, 名称.
    """
    if name is None:
        return str(uuid.uuid4())
    require_length("name", name, 1, 1000)
    _utf8(name)
    return str(uuid.uuid5(uuid.NAMESPACE_DNS, name))


def _utf8(text: str) -> bytes:
    try:
        return text.encode()
    except UnicodeEncodeError as error:
        raise ValueError(f"text cannot be written in UTF-8: {error.reason}") from None


def _jwt_part(part: str) -> dict[str, object]:
    try:
        padded = _utf8(part) + b"=" * (-len(part) % 4)
        value = json.loads(base64.b64decode(padded, altchars=b"-_", validate=True))
    except (binascii.Error, ValueError, RecursionError) as error:
        raise ValueError(f"token part {part[:80]!r} is not Base64 of JSON: {error}") from None
    if not isinstance(value, dict):
        raise ValueError(f"token part {part[:80]!r} holds no JSON object")  # noqa: TRY004 - a bad value
    return value


TOOLS = (
    hash_text,
    sign_text,
    derive_key,
    decode_jwt,
    password_strength,
    generate_password,
    generate_uuid,
)
