"""The package as its users see it: names, documentation, what an import costs."""

from __future__ import annotations

import ast
import doctest
import importlib
import importlib.util
import json
import pkgutil
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import tool_search

# What was public before the list was cut down to what documents name.
FORMER = [
    "AllProvidersFailedError", "AnsweredCall", "BotConfig", "BridgeToolSearchStrategy",
    "CachePlan", "CallBatch", "CallDecision", "CallLimits", "CallOptions", "CallOutcome",
    "CallPartial", "CallProgress", "CallResult", "CallRunner", "Cancellation", "CatalogError",
    "ChatProvider", "ClaudeToolSearchStrategy", "ConfigurationError", "ContentLeftOut",
    "Conversation", "ConversationRecord", "ConversationStore", "CorePolicy", "Discovery",
    "DiscoveryState", "Done", "DuplicateToolError", "Embedder", "EvidenceStore",
    "ExecutableTool", "ExecutionResult", "FunctionExecutor", "GenericToolSearchStrategy",
    "HistorySettings", "HookAnswer", "HookedCall", "ImagePart", "InvalidToolError",
    "LateToolsToolSearchStrategy", "MemoryStore", "Message", "ModeDecision", "Notice",
    "OpenAIResponsesToolSearchStrategy", "PermissionAnswer", "PermissionRequest",
    "PermissionSettings", "Permissions", "ProfileSettings", "ProviderConfig", "ProviderError",
    "ProviderProfile", "ProviderSwitched", "ReferencePart", "RequestPlan", "RunCall",
    "RunnerEvent", "SQLiteStore", "SearchError", "SearchMatch", "SearchResult",
    "SearchSettings", "SessionError", "StoreError", "TextDelta", "TextPart", "Tool", "ToolCall",
    "ToolCallError", "ToolCallStarted", "ToolCatalog", "ToolContext", "ToolError",
    "ToolExecution", "ToolExecutor", "ToolFinished", "ToolHook", "ToolPartial", "ToolProgress",
    "ToolSearchConfig", "ToolSearchError", "ToolSearchIndex", "ToolSearchRunner",
    "ToolSearchSession", "ToolSearchStrategy", "ToolSearchTool", "ToolsAssembler",
    "ToolsDiscovered", "UnreadableRecordError", "UnsupportedStrategyError", "Usage",
    "VectorCache", "VectorStore", "Warning", "build_index", "cache_plan", "estimate_tokens",
    "load_config", "profile_for", "resolve_mode", "stateful_tool", "tool_from_function",
]  # fmt: skip
HEAVY = {"anthropic", "jieba", "numpy", "openai", "rank_bm25", "redis", "rich", "typer"}
# Frameworks are in environments of their own: `make test-frameworks`.
FRAMEWORKS = {
    "tool_search.adapters.fastmcp": "fastmcp",
    "tool_search.adapters.langchain": "langchain",
    "tool_search.adapters.litellm": "litellm",
    "tool_search.adapters.openai_agents": "agents",
    "tool_search.adapters.pydantic_ai": "pydantic_ai",
    **{
        f"tool_search.adapters.mcp.{name}": "mcp"
        for name in ("connection", "http", "oauth", "protocol", "source", "stdio", "watching")
    },
    **{
        f"tool_search.serving.gateway.{name}": "mcp" for name in ("http.app", "http.bare", "server")
    },
    **dict.fromkeys(("tool_search.stores.redis", "tool_search.stores.redis.store"), "redis"),
}
MODULES = sorted(
    module.name
    for module in pkgutil.walk_packages(tool_search.__path__, "tool_search.")
    if not module.name.endswith("__main__")
    and importlib.util.find_spec(FRAMEWORKS.get(module.name, "tool_search"))
)
ROOT = Path(__file__).resolve().parents[2]
PUBLIC: list[str] = vars(tool_search)["__all__"]


def source_of(name: str) -> str:
    """The text of a module, which is not imported for it."""
    spec = importlib.util.find_spec(name)
    assert spec is not None
    assert spec.origin is not None
    return Path(spec.origin).read_text(encoding="utf-8")


def loaded_by(statement: str) -> set[str]:
    """The top-level modules that a fresh interpreter has after a statement."""
    code = f"{statement}\nimport json, sys\nprint(json.dumps([*sys.modules]))"
    # Outside the checkout, as an installed package is imported.
    done = subprocess.run(  # noqa: S603
        [sys.executable, "-c", code], capture_output=True, check=True, text=True, cwd=ROOT.parent
    )
    return {name.partition(".")[0] for name in json.loads(done.stdout)}


def test_importing_the_package_loads_nothing_heavy() -> None:
    assert not loaded_by("import tool_search") & HEAVY


def test_using_every_public_name_loads_no_sdk() -> None:
    names = ", ".join(PUBLIC)
    assert not loaded_by(f"from tool_search import {names}") & (HEAVY - {"numpy"})


def test_each_public_name_is_listed_once_and_found_by_dir() -> None:
    assert len(PUBLIC) == len(set(PUBLIC))
    assert set(PUBLIC) <= set(dir(tool_search))


@pytest.mark.parametrize(
    "name",
    [
        "AllProvidersFailedError", "ChatProvider", "ClaudeToolSearchStrategy", "ConfigurationError",
        "DiscoveryState", "Discovery", "Message", "PermissionSettings", "SearchMatch",
        "ToolSearchTool", "ToolsAssembler", "ToolExecutor", "ToolList", "Usage", "Warning",
    ],
)  # fmt: skip
def test_a_name_that_programs_use_is_reachable(name: str) -> None:
    assert getattr(tool_search, name) is not None


def test_names_of_the_stub_are_public_up_to_those_that_are_only_reachable() -> None:
    stub = Path(tool_search.__file__).with_suffix(".pyi").read_text(encoding="utf-8")
    listed, _, reachable = stub.partition("# Reachable")
    assert re.findall(r"\bas (\w+)", listed) == PUBLIC
    assert not set(PUBLIC) & set(re.findall(r"\bas (\w+)", reachable))
    assert {"Tool", "ToolSearchRunner", "ToolSearchSession", "ToolSearchError"} <= set(PUBLIC)


@pytest.mark.parametrize(
    ("name", "hint"),
    [
        ("ToolError", "it is now tool_search.runner.execution.ToolFailure"),
        ("open_runner", "it is now tool_search.open_bot"),
        ("ToolSerchRunner", "did you mean ToolSearchRunner"),
    ],
)
def test_a_name_that_is_not_there_says_the_one_to_use(name: str, hint: str) -> None:
    with pytest.raises(AttributeError, match=hint):
        getattr(tool_search, name)
    with pytest.raises(ImportError, match=hint):
        exec(f"from tool_search import {name}")  # noqa: S102


def test_a_moved_name_is_where_its_error_says() -> None:
    source = Path(tool_search.__file__).read_text(encoding="utf-8")
    homes = re.findall(r'": "(tool_search\.[\w.]+)"', source)
    assert homes
    for home in homes:
        module, _, name = home.rpartition(".")
        assert hasattr(importlib.import_module(module), name), home


def test_every_name_that_a_package_lists_is_there() -> None:
    stubs = sorted(Path(tool_search.__file__).parent.rglob("__init__.pyi"))
    assert stubs
    for stub in stubs:
        package = ".".join(stub.parent.relative_to(Path(tool_search.__file__).parents[1]).parts)
        listed = re.findall(r"\bas (\w+)", stub.read_text(encoding="utf-8"))
        missing = [n for n in listed if not hasattr(importlib.import_module(package), n)]
        assert (package, missing) == (package, [])


@pytest.mark.parametrize("name", FORMER)
def test_a_name_that_was_public_is_reachable_or_says_its_place(name: str) -> None:
    try:
        assert getattr(tool_search, name) is not None
    except AttributeError as exc:
        home = str(exc).partition(": it is now ")[2]
        module, _, moved = home.rpartition(".")
        assert hasattr(importlib.import_module(module), moved)


@pytest.mark.parametrize("name", ["adapters", "i18n"])
def test_a_checkout_without_links_says_how_to_get_them(tmp_path: Path, name: str) -> None:
    """Git writes a link as a text file where `core.symlinks` is off, as on Windows."""
    source, copy = ROOT / "tool_search", tmp_path / "tool_search"
    copy.mkdir()
    (copy / "core").mkdir()
    for file in ("__init__.py", "__init__.pyi", "core/__init__.py", "core/exports.py"):
        shutil.copy(source / file, copy / file)
    for link in ("adapters", "i18n"):
        (copy / link).write_text(f"../{link}")
    done = subprocess.run(  # noqa: S603
        # Without site-packages, where an installed copy would be found.
        [sys.executable, "-S", "-c", f"import tool_search\nimport tool_search.{name}.openai_chat"],
        capture_output=True, check=False, text=True, cwd=tmp_path,
    )  # fmt: skip
    assert done.returncode == 1
    assert f"ModuleNotFoundError: No module named 'tool_search.{name}'" in done.stderr
    assert "git config core.symlinks true" in done.stderr
    assert "pip install -e ." in done.stderr


def test_a_submodule_is_imported_by_its_name() -> None:
    from tool_search import catalog  # noqa: PLC0415

    assert catalog.__name__ == "tool_search.catalog"


def test_every_public_name_can_be_imported_and_is_documented() -> None:
    """Type aliases have no docstring of their own; everything else has."""
    for name in PUBLIC:
        value = getattr(tool_search, name)
        assert value is not None, name
        if isinstance(value, type) or hasattr(value, "__code__"):
            assert (value.__doc__ or "").strip(), name


def test_every_public_definition_has_a_docstring() -> None:
    """Modules, classes, functions and methods; what a decorator or protocol repeats too."""
    bare = []
    for folder in ("tool_search", "adapters", "i18n"):
        for path in sorted((ROOT / folder).rglob("*.py")):
            tree = ast.parse(path.read_text(encoding="utf-8"))
            bare += [f"{path.name}: {where}" for where in _undocumented(tree, "module")]
    assert bare == []


def _undocumented(node: ast.AST, name: str) -> list[str]:
    """The public definitions of a module or class that say nothing of themselves."""
    kinds = (ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
    found = [] if ast.get_docstring(node) else [name]  # type: ignore[arg-type]
    for inner in getattr(node, "body", ()):
        if not isinstance(inner, kinds) or inner.name.startswith("_") or _is_overload(inner):
            continue
        if inner.name.startswith("test_"):
            continue  # a test's name says what holds
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            continue  # inside a function nothing is public
        found += _undocumented(inner, f"{name}.{inner.name}")
    return found


def _is_overload(node: ast.AST) -> bool:
    decorators = getattr(node, "decorator_list", ())
    return any(isinstance(one, ast.Name) and one.id == "overload" for one in decorators)


def test_every_module_can_be_imported() -> None:
    assert all(importlib.import_module(name) for name in MODULES)


@pytest.mark.parametrize("name", [name for name in MODULES if ">>>" in source_of(name)])
def test_the_examples_in_docstrings_work(name: str) -> None:
    result = doctest.testmod(importlib.import_module(name), raise_on_error=False)
    assert (result.failed, result.attempted > 0) == (0, True)


def test_the_examples_of_the_package_work() -> None:
    result = doctest.testmod(tool_search)
    assert (result.failed, result.attempted > 0) == (0, True)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("messages", "core.messages"),
        ("conversation.session", "core.conversation.session"),
        ("conversation.search_services", "search.discovery.search_services"),
        ("catalog.tool", "core.catalog.tool"),
        ("strategies.claude", "core.strategies.claude"),
        ("values.frozen", "core.values.json"),
        ("catalog.ids", "core.catalog.naming"),
        ("demo.toolbox", "sources.toolbox"),
        ("proxy", "serving.proxy"),
        ("search.index.protocol", "core.services"),
        ("config.values", "core.settings"),
    ],
)
def test_a_module_that_has_moved_is_found_by_its_former_name_with_one_warning(
    old: str, new: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in (old, old.partition(".")[0]):
        monkeypatch.delitem(sys.modules, f"tool_search.{name}", raising=False)
    with pytest.warns(DeprecationWarning, match="has moved: it is tool_search") as warned:
        found = importlib.import_module(f"tool_search.{old}")
    # A folder that has moved says it for its modules.
    assert len(warned) == 1
    assert found is importlib.import_module(f"tool_search.{new}")
    assert found is importlib.import_module(f"tool_search.{old}")
    with pytest.raises(ModuleNotFoundError, match=r"conversation\.nothing"):
        importlib.import_module("tool_search.conversation.nothing")


@pytest.mark.parametrize(
    ("module", "name"),
    [
        ("conversation.session", "ToolSearchSession"),
        ("conversation.view", "ToolView"),
        ("profiles", "profile_for"),
    ],
)
def test_a_name_that_has_moved_works_from_its_old_place_with_a_warning(
    module: str, name: str
) -> None:
    old = importlib.import_module(f"tool_search.core.{module}")
    with pytest.warns(DeprecationWarning, match=f"from tool_search import {name}") as warned:
        found = getattr(old, name)
    assert found is getattr(tool_search, name)
    assert [each.filename for each in warned] == [__file__]
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        assert old.nothing
