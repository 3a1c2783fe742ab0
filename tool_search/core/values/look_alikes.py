"""Keys under which names that look alike are equal.

Sources: Unicode Technical Standard 39, "Unicode Security Mechanisms", section 4
(confusable detection) and its `confusables.txt`, of which `_LOOK_ALIKES` has the letters
of scripts that are written like Latin; Unicode Standard Annex 15 (NFKC).
A package with the whole of that file exists, but has had no release since January 2024,
weighs 1 MB, and gives lists of look-alikes, not keys that can be compared.
"""

from __future__ import annotations

import unicodedata
from functools import lru_cache

__all__ = ["look_alike_keys", "loose_key"]

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
