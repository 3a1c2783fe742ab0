"""Third-party text: without characters that a reader does not see, and keys of look-alikes.

All functions take time linear in their text.
"""

from __future__ import annotations

import json
import re
import unicodedata
from collections.abc import Callable, Mapping
from functools import lru_cache, partial
from typing import Any, Literal

__all__ = [
    "clean_line",
    "clean_name",
    "clean_schema",
    "clean_text",
    "cut_schema",
    "cut_text",
    "look_alike_keys",
    "loose_key",
    "named",
    "quoted",
]

# Keys under which names that look alike are equal.
#
# Sources: Unicode Technical Standard 39, "Unicode Security Mechanisms", section 4
# (confusable detection) and its `confusables.txt`, of which `_LOOK_ALIKES` has the letters
# of scripts that are written like Latin; Unicode Standard Annex 15 (NFKC).
# A package with the whole of that file exists, but has had no release since January 2024,
# weighs 1 MB, and gives lists of look-alikes, not keys that can be compared.


# Small Cyrillic and Greek letters that UTS 39 pairs with small capitals (`к`, `м`, `т`) are with
# the letters that a reader takes them for.
_LOOK_ALIKES = {
    "-": "˗‐‒–⁃−Ⲻ",
    "2": "ƧϨꙄꝚ",
    "3": "ƷȜЗзӠⳌꝪꞫ",
    "4": "Ꮞ",
    "5": "Ƽ",
    "6": "бᏮⳒ",
    "8": "Ȣȣ",
    "9": "ⳊꝮ",
    "A": "ΑАᎪꓮ",
    "B": "ΒВᏴꓐꞴ",
    "C": "ΣСᏟⲤꓚ𐐕",
    "D": "Ꭰꓓ",
    "E": "ΕЕᎬꓰ",
    "F": "ϜꓝꞘ",
    "G": "ԌᏀᏳꓖ",
    "H": "ΗНᎻⲎꓧ",
    "I": "ƖǀΙІӀⲒꓲ",
    "J": "ͿЈᎫꓙꞲ",
    "K": "ΚКᏦⲔꓗ",
    "L": "ᏞⳐꓡ𐐛",
    "M": "ΜϺМᎷⲘꓟ",
    "N": "ΝⲚꓠ",
    "O": "ΟОՕⲞꓳ𐐄",
    "P": "ΡРᏢⲢꓑ",
    "R": "ƦᎡᏒꓣ",
    "S": "ЅՏᏕᏚꓢ𐐠",
    "T": "ΤТᎢⲦꓔ",
    "U": "Սꓴ",
    "V": "ѴᏙꓦ",
    "W": "ԜᎳᏔꓪ",
    "X": "ΧХⲬꓫꞳ",
    "Y": "ΥУҮᎩᎽⲨꓬ",
    "Z": "ΖᏃꓜ",
    "a": "ɑαа",
    "b": "вƄЬᏏ",
    "c": "ςсᴄⲥꮯ𐐽",
    "d": "ԁᏧꓒ",
    "e": "еҽꬲ",
    "f": "քẝꞙꬵ",
    "g": "ƍɡցᶃ",
    "h": "нһհᏂ",
    "i": "ıɩɪιіӏᎥꙇꭵ",
    "j": "ϳј",
    "k": "кκ",
    "m": "м",
    "n": "ոռ",
    "o": "οσоօჿᴏᴑⲟꬽ𐐬",
    "p": "ρрⲣ",
    "q": "ԛգզ",
    "r": "гᴦⲅꭇꭈꮁ",
    "s": "ƽѕꜱꮪ𐑈",
    "t": "тτ",
    "u": "ʋυսᴜꞟꭎꭒ",
    "v": "νѵᴠꮩ",
    "w": "ɯѡԝաᴡꮃ",
    "x": "х",
    "y": "ɣʏγуүყᶌỿꭚ",
    "z": "ᴢꮓ",
}
_AS_ASCII = {ord(char): ascii_ for ascii_, chars in _LOOK_ALIKES.items() for char in chars}
# Letters and digits that look alike within ASCII, in most fonts.
_LOOSE = str.maketrans({"0": "o", "1": "l", "i": "l"})


def look_alike_keys(name: str) -> tuple[str, ...]:
    """Return the keys of a name: two names that share one look alike.

    They differ at most in letter case, in compatibility forms such as full-width
    letters, or in letters of another script that look the same.

    >>> look_alike_keys("send_mаil")[0] == look_alike_keys("Send_Mail")[0]
    True
    """
    return (name.lower(),) if name.isascii() else _keys(name)


@lru_cache(maxsize=65_536)
def _keys(name: str) -> tuple[str, ...]:
    plain = unicodedata.normalize("NFKC", name)
    # A capital may look like another letter than its small form: Cyrillic В is like B.
    by_case = plain.casefold().translate(_AS_ASCII)
    as_seen = plain.translate(_AS_ASCII).casefold().translate(_AS_ASCII)
    return (by_case,) if by_case == as_seen else (by_case, as_seen)


def loose_key(name: str) -> str:
    """Return a key that names share even if only accents, 0 and o, 1, l and i, or rn and m differ.

    Honest tools of one server may have such names (`tool_1`, `tool_l`): compare those
    of different servers only.
    """
    key = look_alike_keys(name)[-1]
    if not key.isascii():
        parts = unicodedata.normalize("NFKD", key)
        key = "".join(char for char in parts if not unicodedata.combining(char))
    return key.translate(_LOOSE).replace("rn", "m").replace("vv", "w")


# Third-party text without the characters that a model sees and a reader does not.
#
# Tag characters, zero-width and bidirectional controls, variation selectors and terminal
# escapes carry instructions past the reader of a definition. All functions take time
# linear in their text.
#
# Sources: Unicode Character Database, `Default_Ignorable_Code_Point`; JSON Schema 2020-12,
# "Meta-Data Annotations" (`title`, `description`, `examples`).


_MAX_SERVER_CHARS = 100
# Of a text that is cut anyway: more than this many times its limit is not looked at.
_MAX_UNSEEN_SHARE = 8
_UNSEEN = frozenset(("Cc", "Cf", "Cn", "Co", "Cs"))
# Default_Ignorable_Code_Point outside those categories, and the blank Braille pattern.
_IGNORABLE = re.compile(
    "[\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180f\u2800\u3164\ufe00-\ufe0f\uffa0"
    "\U000e0000-\U000e0fff]"
)
_LINE_ENDS = re.compile("\r\n?|[\u2028\u2029\x85\x0b\x0c]")
_SPACES = re.compile(r"\s+")
_PLAIN_WORD = re.compile(rf"[\w.-]{{1,{_MAX_SERVER_CHARS}}}")
# Marks by which scripts join letters; in a value that a tool compares, they mean something.
_JOINERS = "\u200c\u200d"
_CONTROLS = re.compile(r"\\(?:u00|[bfr])")
# `names`: keys are a server's own words, values are schemas. `fixed`: others refer to it.
_Kind = Literal["schema", "names", "texts", "value", "example", "fixed"]
_KEYS_OF_KIND: Mapping[_Kind, str] = {
    "names": "properties patternProperties $defs definitions dependentSchemas",
    "value": "enum const default",
    "example": "example examples",
    "fixed": (
        "$ref $id id $anchor $dynamicRef $dynamicAnchor $recursiveRef $schema $vocabulary "
        "type required dependentRequired pattern format contentEncoding contentMediaType"
    ),
}
_KINDS = {key: kind for kind, keys in _KEYS_OF_KIND.items() for key in keys.split()}


def clean_text(text: str) -> str:
    r"""Return the text without control and invisible characters; lines stay.

    >>> clean_text("Reads\u200b a file.\x1b\r\nUTF-8.")
    'Reads a file.\nUTF-8.'
    """
    if text.isascii() and (text.isprintable() or text.replace("\n", "").isprintable()):
        return text
    text = _LINE_ENDS.sub("\n", text)
    return _without(text, _find_unseen(text, kept="\n\t"))


def clean_name(name: str) -> str:
    """Return the name without invisible characters; line ends and controls stay an error."""
    if name.isascii():
        return name
    unseen = [c for c in _find_unseen(name) if unicodedata.category(c) not in ("Cc", "Cs")]
    return _without(name, "".join(unseen)).strip() if unseen else name


def clean_line(text: str, limit: int) -> str:
    """Return the text as one clean line of at most `limit` characters."""
    line = _SPACES.sub(" ", clean_text(text[: limit * _MAX_UNSEEN_SHARE])).strip()
    return line if len(line) <= limit else f"{line[: limit - 1].rstrip()}…"


def cut_text(text: str, limit: int) -> str:
    """Return the text with at most `limit` characters, the last one an ellipsis if cut."""
    return text if len(text) <= limit else f"{text[: limit - 1].rstrip()}…"


def quoted(server: str) -> str:
    r"""Return a server's name for a sentence that a model reads: clean, cut, in quotes.

    >>> quoted('mail". Obey:\n')
    '"mail\\". Obey:"'
    """
    return json.dumps(clean_line(server, _MAX_SERVER_CHARS), ensure_ascii=False)


def named(server: str) -> str:
    """Return a server's name as it is if it is one plain word, in quotes otherwise."""
    return server if _PLAIN_WORD.fullmatch(server) else quoted(server)


def clean_schema(schema: dict[str, Any], text: str) -> bool:
    """Clean the texts and values of a JSON Schema in place; return True if one changed.

    Names of properties, patterns and references stay: others refer to them.

    Args:
        schema: The schema.
        text: The schema as JSON that is not escaped to ASCII.
    """
    has_controls = "\x7f" in text or _CONTROLS.search(text) is not None
    if not has_controls and (text.isascii() or not _find_unseen(text)):
        return False
    return _rewrite(schema, clean_text, _clean_value, _clean_value)


def cut_schema(schema: dict[str, Any], limit: int) -> bool:
    """Cut the texts of a JSON Schema in place; return True if one was too long.

    Args:
        schema: The schema.
        limit: Characters of one title, description, or text in an example.
    """
    cut = partial(cut_text, limit=limit)
    return _rewrite(schema, cut, str, cut)


_Rewriter = Callable[[str], str]


def _rewrite(schema: dict[str, Any], text: _Rewriter, value: _Rewriter, example: _Rewriter) -> bool:
    """Rewrite the strings of a schema in place, without recursion; True if one changed."""
    rewriters: Mapping[_Kind, _Rewriter] = {"texts": text, "value": value, "example": example}
    waiting: list[tuple[dict[str, Any] | list[Any], _Kind]] = [(schema, "schema")]
    changed = False
    while waiting:
        part, kind = waiting.pop()
        places: Any = part if isinstance(part, dict) else range(len(part))
        for key in places:
            inner = part[key]
            of_inner = _kind(key, inner, kind)
            if isinstance(inner, dict | list):
                waiting.append((inner, of_inner))
            elif isinstance(inner, str) and of_inner in rewriters:
                part[key] = written = rewriters[of_inner](inner)
                changed = changed or written != inner
    return changed


def _kind(key: str | int, inner: object, outer: _Kind) -> _Kind:
    """Return the kind of the value under a key of a part of this kind."""
    if outer in ("texts", "value", "example", "fixed"):
        return outer
    if outer == "names":
        return "schema"
    known = _KINDS.get(str(key))
    if known is None or (known == "names" and not isinstance(inner, dict)):
        # Of an unknown keyword, strings are texts: the model reads them too.
        return "texts" if isinstance(inner, str) else "schema"
    return known


def _clean_value(value: str) -> str:
    """Return the value with the joiners that Persian or emoji need."""
    if value.isascii() and value.isprintable():
        return value
    return _without(value, _find_unseen(value, kept=f"\n\t\r{_JOINERS}\ufe0e\ufe0f"))


def _find_unseen(text: str, *, kept: str = "") -> str:
    """Return the invisible characters of a text, each once."""
    return "".join(c for c in sorted(set(text)) if _is_unseen(c) and c not in kept)


@lru_cache(maxsize=4096)
def _is_unseen(char: str) -> bool:
    return unicodedata.category(char) in _UNSEEN or _IGNORABLE.match(char) is not None


def _without(text: str, unseen: str) -> str:
    return text.translate(dict.fromkeys(map(ord, unseen))) if unseen else text
