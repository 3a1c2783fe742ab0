"""Retrieval libraries: bm25s, tantivy and ratel-ai, each as its own documents show it.

bm25s and tantivy index what they are handed: name, description and the names and
descriptions of the parameters. ratel-ai takes definitions as they are.
"""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Mapping, Sequence
from typing import Any

import bm25s
import ratel_ai
import Stemmer
import tantivy
from ask import DEPTH, Build, Row, Search

_JOINT = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|_+")


def text_of(tool: Row) -> str:
    """Return a definition as one text, with its identifiers taken apart: few tokenizers do."""
    properties = (tool["parameters"] or {}).get("properties") or {}
    words = [str(tool["name"]), str(tool["description"] or "")]
    for name, schema in properties.items():
        words += [name, str(schema.get("description", "")) if isinstance(schema, dict) else ""]
    return _JOINT.sub(" ", " ".join(words))


def bm25s_with(backend: str) -> Build:
    """bm25s as in its quick start: English stop words, a stemmer, its usual BM25."""

    def build(tools: Sequence[Row]) -> Search:
        names = [str(tool["name"]) for tool in tools]
        stemmer = Stemmer.Stemmer("english")
        corpus = bm25s.tokenize(
            [text_of(tool) for tool in tools], stopwords="en", stemmer=stemmer, show_progress=False
        )
        engine = bm25s.BM25(backend=backend)
        engine.index(corpus, show_progress=False)

        def search(query: str) -> list[str]:
            words = bm25s.tokenize(query, stopwords="en", stemmer=stemmer, show_progress=False)
            if not any(words.ids):
                return []
            found, scores = engine.retrieve(words, k=min(DEPTH, len(names)), show_progress=False)
            pairs = zip(found[0], scores[0], strict=True)
            return [names[int(slot)] for slot, score in pairs if score > 0]

        return search

    return build


def tantivy_bm25(tools: Sequence[Row]) -> Search:
    """Return one English field over everything: the ranking of several fields is worse."""
    schema = tantivy.SchemaBuilder()
    schema.add_text_field("slot", stored=True, tokenizer_name="raw")
    schema.add_text_field("text", tokenizer_name="en_stem")
    index = tantivy.Index(schema.build())
    writer = index.writer(num_threads=1)
    for slot, tool in enumerate(tools):
        writer.add_document(tantivy.Document(slot=str(slot), text=text_of(tool)))
    writer.commit()
    index.reload()
    searcher = index.searcher()

    def search(query: str) -> list[str]:
        parsed, _ = index.parse_query_lenient(query, ["text"])
        hits = searcher.search(parsed, DEPTH).hits
        return [str(tools[int(searcher.doc(at)["slot"][0])]["name"]) for _, at in hits]

    return search


def ratel(tools: Sequence[Row]) -> Search:
    """ratel-ai's registry, by its default method."""
    registry = ratel_ai.ToolRegistry()
    asyncio.run(_registered(registry, [_ratel_tool(tool) for tool in tools]))

    def search(query: str) -> list[str]:
        return [hit.tool_id for hit in registry.search(query, DEPTH)]

    return search


async def _registered(registry: ratel_ai.ToolRegistry, tools: list[Any]) -> None:
    await registry.register(tools)


def _ratel_tool(tool: Row) -> Any:
    schema: Mapping[str, Any] = json.loads(json.dumps(tool["parameters"] or {"type": "object"}))
    return ratel_ai.Tool(
        id=str(tool["name"]),
        name=str(tool["name"]),
        description=str(tool["description"] or ""),
        input_schema=schema,
        output_schema={},
    )


SYSTEMS: dict[str, Build] = {
    "bm25s (numpy)": bm25s_with("numpy"),
    "bm25s (numba)": bm25s_with("numba"),
    "tantivy": tantivy_bm25,
    "ratel-ai": ratel,
}
