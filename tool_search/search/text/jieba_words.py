"""Chinese words by jieba, for whoever selects it.

jieba would read a marshal file that any user of the machine can write in the
shared temporary directory; the dictionary is loaded here without that cache.
"""

from __future__ import annotations

import warnings
from functools import cache

from tool_search.search.text.tokenizer import Segmenter

__all__ = ["jieba_segmenter"]


@cache
def jieba_segmenter() -> Segmenter:
    """Cuts Chinese into words as `jieba.cut_for_search` does; loads jieba once."""
    with warnings.catch_warnings():
        # Its sources have invalid escapes and use pkg_resources.
        warnings.simplefilter("ignore")
        import jieba  # noqa: PLC0415 - half a second that only this engine needs

        tokenizer = jieba.Tokenizer()
        tokenizer.FREQ, tokenizer.total = tokenizer.gen_pfdict(tokenizer.get_dict_file())
    tokenizer.initialized = True

    def words(run: str) -> list[str]:
        return [str(word) for word in tokenizer.cut_for_search(run)]

    return words
