"""The ranking of committed queries by each engine."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from snapshot.files import write_lines
from snapshot.script import toolbox

from tool_search import BotConfig, Tool, ToolSearchIndex, build_index

SETS = Path(__file__).resolve().parent.parent / "sets"
LISTED = ("russian", "chinese")
_FOUND = 20
_POINTLESS = (
    "asdkjh qweoiu", "🦄🍕🎸🌵", "f47ac10b-58cc-4372-a567-0e02b2c3d479", "?!?!... ### @@@",
    "龘靐齉爩麤", "的了着过吗呢吧", "йцукен фывапр", "play some jazz in the living room",
    "给我放一首周杰伦的歌", "红楼梦的作者是谁", "с", "", "   ",
)  # fmt: skip
_WRITTEN: Sequence[str] = (
    "How many miles is a marathon of 42.195 kilometres?",
    "贷款 100 万元，年利率 3.9%，30 年还清，每月要还多少？",
    "从 2026 年 11 月 21 日到 2027 年春节还有多少天？",
    "сколько дней между двумя датами",
    "convert_length",
    "ＣＯＮＶＥＲＴ_length",
    "+loan -schedule",
    "name:convert",
    "name:convert_length description:unit",
    'parameter:months "monthly payment"',
    "select:convert_length,loan_payment",
    "/convert_.*/",
    "convert.*(length|mass)",
    "colour hex rgb",
    "convertLength",
    "贷款 月供 等额本息",
    "農曆 日期",
    *_POINTLESS,
)


class CharacterEmbedder:
    """An embedder without a model: texts with pairs of characters in common are similar."""

    dimensions = 512
    identity = "pairs of characters"

    def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Return a row for each text."""
        rows = np.zeros((len(texts), self.dimensions), np.float32)
        for row, text in zip(rows, texts, strict=True):
            lowered = text.lower()
            for first, second in pairwise(lowered):
                row[_place(first + second) % self.dimensions] += 1.0
        return rows


@cache
def _place(pair: str) -> int:
    digest = hashlib.blake2b(pair.encode("utf-8", "surrogatepass"), digest_size=4).digest()
    return int.from_bytes(digest, "big")


def engines() -> Mapping[str, Mapping[str, Any]]:
    """Return the `search` section of each ranking, by name."""
    meaning = {"embedder": f"{__name__}:CharacterEmbedder", "vector_cache": None}
    return {
        "bm25": {"engine": "bm25"},
        "bm25-no-floor": {"engine": "bm25", "min_relevance": 0.0},
        "bm25-jieba": {"engine": "bm25", "segmenter": "jieba"},
        "rank_bm25": {"engine": "rank_bm25"},
        "lexical": {"engine": "lexical"},
        "regex": {"engine": "regex"},
        "semantic": {"engine": "semantic", **meaning},
        "hybrid": {"engine": "hybrid", **meaning},
        "hybrid-weights": {"engine": "hybrid", "hybrid": {"fusion": "weights"}, **meaning},
        "hybrid-rrf": {
            "engine": "hybrid",
            "hybrid": {"fusion": "rrf"},
            "preset": "tooldiscovery",
            "min_relevance": 0.1,
            **meaning,
        },
        "preset-oh-my-pi": {"preset": "oh-my-pi"},
        "preset-tooldiscovery": {"preset": "tooldiscovery"},
        "preset-tooldiscovery-lexical": {"preset": "tooldiscovery", "engine": "lexical"},
        "preset-astrbot": {"preset": "astrbot"},
    }


@cache
def _rows(name: str) -> Sequence[Mapping[str, Any]]:
    return [json.loads(line) for line in (SETS / name).read_text("utf-8").splitlines()]


@cache
def tools(name: str) -> Sequence[Tool]:
    """Return the tools of a set."""
    if name == "toolbox":
        return [item.tool for item in toolbox()]
    return [
        Tool(
            name=row["name"],
            description=row["description"],
            parameters=row["parameters"],
            server=row["server"],
            kind="mcp",
        )
        for row in _rows(f"{name}_tools.jsonl")
    ]


@cache
def queries(name: str) -> Sequence[str]:
    """Return the queries of a set; for the toolbox also the first line of each description."""
    if name == "toolbox":
        return [*_WRITTEN, *(tool.description.splitlines()[0] for tool in tools(name))]
    files = [f"{name}_queries.jsonl", f"{name}_traps.jsonl"]
    rows = [row for file in files if (SETS / file).exists() for row in _rows(file)]
    return [*(row["query"] for row in rows), *_WRITTEN]


def write_rankings(target: Path) -> None:
    """Write names and scores for each query, by set and engine."""
    for engine, section in engines().items():
        settings = BotConfig.model_validate({"tool_search": {"search": section}})
        for name in ("toolbox", *LISTED):
            index = build_index(tools(name), settings.tool_search.search)
            lines = [_ranked(index, query) for query in queries(name)]
            write_lines(target / "rankings" / f"{name}-{engine}.jsonl", lines)
        # A catalog that has changed is not indexed anew.
        gone = [tool.name for tool in tools("toolbox")[::3]]
        index = build_index(tools("toolbox"), settings.tool_search.search)
        index = index.updated(added=tools("chinese")[:60], removed=gone)
        lines = [_ranked(index, query) for query in queries("toolbox")[:80]]
        write_lines(target / "rankings" / f"changed-{engine}.jsonl", lines)


def _ranked(index: ToolSearchIndex, query: str) -> Mapping[str, Any]:
    result = index.search(query, limit=_FOUND)
    return {
        "query": query,
        "found": [[match.name, match.score] for match in result.matches],
        "total_found": result.total_found,
        "unmatched": list(result.unmatched),
    }
