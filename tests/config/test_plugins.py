"""Search engines of other distributions, by entry point."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tool_search import SearchSettings, Tool, build_index, load_config
from tool_search.cli.engines import index_of
from tool_search.config.engines import installed_engines
from tool_search.errors import ConfigurationError, SearchError

MODULE = '''
from tool_search.search import SearchMatch, SearchResult


class Backwards:
    """Finds every tool, the last name first."""

    def __init__(self, tools, settings):
        self.names = sorted((tool.name for tool in tools), reverse=True)
        self.settings = settings

    def search(self, query, *, limit, allowed=None):
        matches = tuple(SearchMatch(name=name, score=0.5) for name in self.names[:limit])
        return SearchResult(query=query, matches=matches, total_found=len(self.names))

    def updated(self, *, added, removed):
        return self


def failing(tools, settings):
    raise OSError("no index server")


def nothing(tools, settings):
    return None
'''
ENTRIES = """
[tool_search.engines]
backwards = someones_search:Backwards
failing = someones_search:failing
nothing = someones_search:nothing
missing = someones_search:not_there
gone = someones_other_module:build
bm25 = someones_search:Backwards
"""
TOOLS = (Tool(name="get_weather"), Tool(name="send_mail"))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder in which a distribution with engines is installed."""
    (tmp_path / "someones_search.py").write_text(MODULE)
    info = tmp_path / "someones_search-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: someones-search\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(ENTRIES)
    return tmp_path


@pytest.fixture
def engines(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Install that distribution for this process."""
    monkeypatch.syspath_prepend(str(folder))
    monkeypatch.delitem(sys.modules, "someones_search", raising=False)


def test_engine_of_a_package_is_chosen_by_its_name(engines: None) -> None:
    index = build_index(TOOLS, SearchSettings(engine="backwards"))
    found = index.search("anything", limit=5)
    assert [match.name for match in found.matches] == ["send_mail", "get_weather"]


def test_engine_of_a_package_is_given_the_settings(engines: None) -> None:
    index = build_index(TOOLS, SearchSettings(engine="backwards", min_relevance=0.4))
    assert index.settings.min_relevance == 0.4  # type: ignore[attr-defined]


def test_configuration_names_an_engine_of_a_package(engines: None, tmp_path: Path) -> None:
    path = tmp_path / "bot.yaml"
    path.write_text("tool_search: {search: {engine: backwards}}\n")
    assert load_config(path).tool_search.search.engine == "backwards"


def test_command_line_takes_an_engine_of_a_package(engines: None) -> None:
    assert index_of(TOOLS, "backwards").search("anything", limit=1).matches[0].name == "send_mail"
    with pytest.raises(ConfigurationError, match=r"'forwards' must be one of .*hybrid, backwards"):
        index_of(TOOLS, "forwards")


def test_configuration_with_an_unknown_engine_lists_those_of_packages(
    engines: None, tmp_path: Path
) -> None:
    path = tmp_path / "bot.yaml"
    path.write_text("tool_search: {search: {engine: forwards}}\n")
    with pytest.raises(ConfigurationError, match=r"'forwards': there are bm25.*hybrid, backwards"):
        load_config(path)


def test_engine_of_a_package_that_is_gone_is_unknown(engines: None) -> None:
    settings = SearchSettings.model_construct(**{**dict(SearchSettings()), "engine": "uninstalled"})
    with pytest.raises(
        SearchError, match="no search engine 'uninstalled'; there are backwards, bm"
    ):
        build_index(TOOLS, settings)


def test_engine_of_this_package_is_never_replaced(engines: None) -> None:
    found = build_index(TOOLS, SearchSettings(engine="bm25")).search("mail", limit=5)
    assert [match.name for match in found.matches] == ["send_mail"]


@pytest.mark.parametrize(
    ("engine", "message"),
    [
        ("failing", "'failing' .someones_search:failing. cannot be built: OSError: no index"),
        ("missing", "cannot be built: AttributeError"),
        ("gone", "cannot be built: ModuleNotFoundError"),
        ("nothing", "built no ToolSearchIndex.*None"),
    ],
)
def test_broken_engine_of_a_package_gives_the_reason(
    engines: None, engine: str, message: str
) -> None:
    with pytest.raises(SearchError, match=message):
        build_index(TOOLS, SearchSettings(engine=engine))


def test_engines_of_packages_are_not_imported_before_they_are_chosen(engines: None) -> None:
    assert {"backwards", "gone"} <= installed_engines().keys()
    assert "someones_search" not in sys.modules
    with pytest.raises(ConfigurationError):
        SearchSettings(engine="forwards")
    assert "someones_search" not in sys.modules


def test_command_searches_with_an_engine_of_a_package(folder: Path) -> None:
    catalog = folder / "tools.jsonl"
    catalog.write_text('{"name": "get_weather"}\n{"name": "send_mail"}\n')
    done = subprocess.run(  # noqa: S603 - our own interpreter and code
        [
            sys.executable,
            "-c",
            "from tool_search.cli import main; main()",
            "search",
            "--catalog",
            str(catalog),
            "--query",
            "x",
            "--engine",
            "backwards",
            "--json",
        ],
        env={"PYTHONPATH": str(folder), "PATH": ""},
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.index("send_mail") < done.stdout.index("get_weather")
