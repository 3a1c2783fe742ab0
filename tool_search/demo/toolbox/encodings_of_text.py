"""Encodings of text: Base64, URLs, HTML, Morse, Caesar, Unicode, compression."""

# ruff: noqa: D415  (a tool's first line ends with a Chinese full stop)

from __future__ import annotations

import asyncio
import base64
import binascii
import html
import unicodedata
import urllib.parse
import zlib

from tool_search.demo.toolbox.arguments import require_length, require_within

_MAX_CHARS = 100_000
_MORSE = {
    "A": ".-", "B": "-...", "C": "-.-.", "D": "-..", "E": ".", "F": "..-.", "G": "--.",
    "H": "....", "I": "..", "J": ".---", "K": "-.-", "L": ".-..", "M": "--", "N": "-.",
    "O": "---", "P": ".--.", "Q": "--.-", "R": ".-.", "S": "...", "T": "-", "U": "..-",
    "V": "...-", "W": ".--", "X": "-..-", "Y": "-.--", "Z": "--..", "0": "-----",
    "1": ".----", "2": "..---", "3": "...--", "4": "....-", "5": ".....", "6": "-....",
    "7": "--...", "8": "---..", "9": "----.", ".": ".-.-.-", ",": "--..--", "?": "..--..",
    "'": ".----.", "/": "-..-.", "(": "-.--.", ")": "-.--.-", ":": "---...", "=": "-...-",
    "+": ".-.-.", "-": "-....-", '"': ".-..-.", "@": ".--.-.",
}  # fmt: skip
_LETTERS = {code: letter for letter, code in _MORSE.items()}


def base64_encode(text: str, url_safe: bool = False) -> str:
    """Encode a text as Base64. 把文本编码为 Base64。

    Args:
        text: The text, 文本; encoded as UTF-8 first.
        url_safe: True for the alphabet with - and _ instead of + and /.
    """
    require_length("text", text, 0, _MAX_CHARS)
    encode = base64.urlsafe_b64encode if url_safe else base64.b64encode
    return encode(_utf8(text)).decode()


def base64_decode(encoded: str) -> str:
    """Decode Base64 to text. 把 Base64 解码为文本。

    Args:
        encoded: The Base64 text, 编码; either alphabet, padding may be missing.
    """
    require_length("encoded", encoded, 0, _MAX_CHARS * 2)
    return _decoded("encoded", encoded, _base64_bytes(encoded))


def url_encode(text: str) -> str:
    """Percent-encode a text for a URL. 对文本做 URL 编码。

    Args:
        text: The text, 文本; everything but letters, digits and -._~ is encoded.
    """
    require_length("text", text, 0, _MAX_CHARS)
    return urllib.parse.quote_from_bytes(_utf8(text), safe="")


def url_decode(encoded: str) -> str:
    """Decode a percent-encoded text. 对文本做 URL 解码。

    Args:
        encoded: The encoded text, 编码, such as "%E4%BD%A0"; a plus sign stays one.
    """
    require_length("encoded", encoded, 0, _MAX_CHARS)
    return _decoded("encoded", encoded, urllib.parse.unquote_to_bytes(_utf8(encoded)))


def html_escape(text: str) -> str:
    """Escape a text for HTML. 转义 HTML 特殊字符。

    Args:
        text: The text, 文本; &, <, > and quotes are escaped.
    """
    require_length("text", text, 0, _MAX_CHARS)
    return html.escape(text)


def html_unescape(text: str) -> str:
    """Replace HTML entities by their characters. 还原 HTML 实体。

    Args:
        text: The text, 文本, such as "&lt;b&gt;".
    """
    require_length("text", text, 0, _MAX_CHARS)
    return html.unescape(text)


def hex_encode(text: str) -> str:
    """Write the UTF-8 bytes of a text in hexadecimal. 把文本转成十六进制字节。

    Args:
        text: The text, 文本.
    """
    require_length("text", text, 0, _MAX_CHARS)
    return _utf8(text).hex()


def hex_decode(encoded: str) -> str:
    """Read hexadecimal bytes as UTF-8 text. 把十六进制字节还原成文本。

    Args:
        encoded: Pairs of hexadecimal digits, 十六进制; spaces may stand between them.
    """
    require_length("encoded", encoded, 0, _MAX_CHARS * 2)
    try:
        data = bytes.fromhex(encoded)
    except ValueError as error:
        raise ValueError(f"encoded {encoded[:80]!r} is not hexadecimal: {error}") from None
    return _decoded("encoded", encoded, data)


def morse_encode(text: str) -> str:
    """Write a text in Morse code. 把文本编成摩尔斯电码。

    Args:
        text: Latin letters, digits and common signs, 文本; words are parted by " / ".
    """
    require_length("text", text, 0, _MAX_CHARS)
    unknown = sorted({c for c in text.upper() if c not in _MORSE and not c.isspace()})
    if unknown:
        raise ValueError(f"text {text[:80]!r} holds what Morse code lacks: {unknown!r}")
    return " / ".join(" ".join(_MORSE[c] for c in word) for word in text.upper().split())


def morse_decode(code: str) -> str:
    """Read Morse code as text. 把摩尔斯电码译成文本。

    Args:
        code: Dots and dashes, 电码; a space between letters, a slash between words.
    """
    require_length("code", code, 0, _MAX_CHARS)
    words = [word.split() for word in code.split("/")]
    unknown = sorted({letter for word in words for letter in word if letter not in _LETTERS})
    if unknown:
        raise ValueError(f"code {code[:80]!r} holds no Morse letters: {unknown!r}")
    return " ".join("".join(_LETTERS[letter] for letter in word) for word in words)


def caesar_shift(text: str, shift: int) -> str:
    """Shift Latin letters along the alphabet (Caesar, ROT13). 凯撒密码移位加密或解密。

    Args:
        text: The text, 文本; other characters stay.
        shift: How many letters to move on, 移位; negative undoes it, 13 is ROT13.
    """
    require_length("text", text, 0, _MAX_CHARS)
    require_within("shift", shift, -1000, 1000)

    def moved(character: str) -> str:
        if not ("a" <= character.lower() <= "z"):
            return character
        base = ord("a") if character.islower() else ord("A")
        return chr((ord(character) - base + shift) % 26 + base)

    return "".join(moved(character) for character in text)


def describe_characters(text: str) -> list[dict[str, str]]:
    """Name the Unicode characters of a text. 查询字符的 Unicode 编码和名称。

    Args:
        text: Up to 100 characters, 字符.
    """
    require_length("text", text, 1, 100)
    return [
        {
            "character": character,
            "code_point": f"U+{ord(character):04X}",
            "name": unicodedata.name(character, "(no name)"),
            "category": unicodedata.category(character),
        }
        for character in text
    ]


async def compress_text(text: str) -> dict[str, str | int]:
    """Compress a text with zlib, as Base64. 用 zlib 压缩文本并输出 Base64。

    Args:
        text: The text, 文本.

    Returns:
        The compressed text, and the bytes before and after (without Base64).
    """
    require_length("text", text, 0, _MAX_CHARS)
    data = _utf8(text)
    packed = await asyncio.to_thread(zlib.compress, data, 9)
    encoded = base64.b64encode(packed).decode()
    return {"compressed": encoded, "bytes_before": len(data), "bytes_after": len(packed)}


async def decompress_text(compressed: str) -> str:
    """Decompress a text that was compressed with zlib. 解压 zlib 压缩的 Base64 文本。

    Args:
        compressed: The Base64 text, 压缩文本; what it holds may have at most 400000 bytes.
    """
    require_length("compressed", compressed, 0, _MAX_CHARS * 2)
    unpacker = zlib.decompressobj()
    try:
        data = await asyncio.to_thread(
            unpacker.decompress, _base64_bytes(compressed), _MAX_CHARS * 4
        )
    except zlib.error as error:
        raise ValueError(f"compressed {compressed[:80]!r} is not zlib data: {error}") from None
    if not unpacker.eof:
        raise ValueError(f"compressed {compressed[:80]!r} is cut off, or larger than 400000 bytes")
    return _decoded("compressed", compressed, data)


def _utf8(text: str) -> bytes:
    try:
        return text.encode()
    except UnicodeEncodeError as error:
        raise ValueError(f"text cannot be written in UTF-8: {error.reason}") from None


def _base64_bytes(encoded: str) -> bytes:
    plain = "".join(encoded.split()).translate(str.maketrans("-_", "+/")).rstrip("=")
    try:
        return base64.b64decode(plain + "=" * (-len(plain) % 4), validate=True)
    except (binascii.Error, ValueError) as error:
        raise ValueError(f"{encoded[:80]!r} is not Base64: {error}") from None


def _decoded(name: str, encoded: str, data: bytes) -> str:
    try:
        return data.decode()
    except UnicodeDecodeError:
        raise ValueError(f"{name} {encoded[:80]!r} does not hold UTF-8 text") from None


TOOLS = (
    base64_encode,
    base64_decode,
    url_encode,
    url_decode,
    html_escape,
    html_unescape,
    hex_encode,
    hex_decode,
    morse_encode,
    morse_decode,
    caesar_shift,
    describe_characters,
    compress_text,
    decompress_text,
)
