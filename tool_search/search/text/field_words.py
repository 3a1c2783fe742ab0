"""The words of a definition's fields, as an index counts them.

Whole catalogs are read here, and most of their words come again and again. So ASCII
text is cut at what can stand in no word, by C, and what each stretch between is made
of is made once and kept.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from string import ascii_letters, digits
from typing import TypeAlias

from tool_search.search.text.cache import RecentValues
from tool_search.search.text.cjk import has_cjk
from tool_search.search.text.tokenizer import (
    LONGEST_WORD,
    Piece,
    Segmenter,
    chunks_of,
    mixed_pieces,
    piece_of,
    pieces,
)

__all__ = ["Words", "field_words", "name_words"]

_END_SIGN = "\x01"
# What can stand in a chunk of ASCII text, or in a contraction.
_KEPT = f"{ascii_letters}{digits}-_.'{_END_SIGN}"
_SPACED = bytes(code if chr(code) in _KEPT else ord(" ") for code in range(256))
_MOST_KNOWN = 40_000
# Characters and bigrams together are about four terms for each Chinese word of two
# characters; half of that is taken, as Chinese says the same in fewer words.
_CJK_LENGTH = 0.5


Words: TypeAlias = tuple[tuple[str, ...], tuple[str, ...], float, str]
"""What a stretch of text gives an index; a plain tuple, as catalogs have tens of thousands.

The terms that are counted: words, and compounds that repeat several as one; of function
words nothing. The same words before stemming, without compounds. How much longer it makes
its field, in words. All words in their order with a space between, Chinese by characters.
"""

_TEXT_END: Words = ((), (), 0, "\n")


def field_words(
    texts: Sequence[str], *, longest: int, segmenter: Segmenter | None = None
) -> list[Words]:
    """The words of several texts together, a line's end in the sequence between two texts.

    Args:
        texts: In any language and script.
        longest: How many characters are looked at; the rest is passed over.
        segmenter: Cuts Chinese; without one it becomes characters and bigrams.
    """
    text = f" {_END_SIGN} ".join(texts)[:longest]
    if text.isascii():
        stretches = text.encode("ascii").translate(_SPACED).decode("ascii").split()
        return list(map(_known.__getitem__, stretches))
    return list(_cut(text, segmenter))


def name_words(name: str, *, longest: int, segmenter: Segmenter | None = None) -> list[Words]:
    """The words of a tool's name, function words too: it may have no others, as `What to do`."""
    return [
        _words(piece._replace(is_function=False))
        for piece in pieces(name, longest=longest, segmenter=segmenter)
    ]


def _cut(text: str, segmenter: Segmenter | None) -> Iterator[Words]:
    for number, part in enumerate(text.split(_END_SIGN)):
        if number:
            yield _TEXT_END
        for chunk in chunks_of(part):
            if has_cjk(chunk):
                yield from map(_words, mixed_pieces(chunk, segmenter))
            else:
                yield _known[chunk]


def _words(piece: Piece) -> Words:
    _, words, forms, compounds, is_function, is_cjk = piece
    sequence = words[0] if len(words) == 1 and not is_cjk else piece.sequence
    if is_function:
        return (), (), 0, sequence
    length = len(words) * (_CJK_LENGTH if is_cjk else 1)
    return words + compounds, forms, length, sequence


def _read(stretch: str) -> Words:
    """The words of a stretch without spaces.

    Of ASCII it may be of several words, or have a dot at its end; any other is a chunk,
    as `chunks_of` cuts them, without Chinese.
    """
    if not stretch.isascii() or stretch.isalpha():
        return _words(piece_of(stretch))
    if stretch == _END_SIGN:
        return _TEXT_END
    chunks = chunks_of(stretch)
    if len(chunks) == 1:
        chunk = chunks[0]
        return _words(piece_of(chunk)) if chunk == stretch else _known[chunk]
    found = [_known[chunk] for chunk in chunks]
    return (
        tuple([term for words in found for term in words[0]]),
        tuple([form for words in found for form in words[1]]),
        sum([words[2] for words in found]),
        " ".join([words[3] for words in found if words[3]]),
    )


_known = RecentValues(_read, most=_MOST_KNOWN, longest=LONGEST_WORD)
