"""Texts that mean nothing, in three scripts: a yardstick for embedders.

What is as near to these as to any tool is no wish: keys hit at random, hashes, made-up
words. Written without a look at any query that is measured.
"""

from __future__ import annotations

__all__ = ["NONSENSE"]

_ROWS = """
asdf jkl qwer uiop
qwertyuiop
zxcvbnm asdfghjkl
hjkl yuio bnm
xq zv wk jj
kjsdhf skdjfh wieury
flurp blumf dwex
snorgle wumpty grimbax
lkjasd oiuqwe mnxzcv
a1b2c3d4e5f6
3f2504e0-4f89-11d3-9a0c-0305e82c3301
aGVsbG8gd29ybGQgZm9v
фыва олдж
йцукенгшщзхъ
ждлор пави
хрумзя пырк бдыщ
сяпала калуша по напушке
ыгъ эщю
шмырк фтуц
жзщ фцх
咕噜叽里呱啦
嘟哒噗嗒噗
哦哦嗯嗯啊
锹擦窟帧逾
囧槑烎嫑
蔫厥沓戳辙榫
鑫淼焱垚
噫吁嚱欸
"""

NONSENSE: tuple[str, ...] = tuple(_ROWS.strip().split("\n"))
"""Of each script the common kinds."""
