"""The structure of the source: folders, layers, and imports between them.

Run it for the figures: `python tests/project/structure.py`.
"""

from __future__ import annotations

import ast
import sys
from collections import defaultdict
from collections.abc import Iterator, Mapping
from functools import cache
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]

# Lowest first. A part imports parts of lower rows, and of its own row only if it is named there.
# A folder inside a part that has a row of its own is a part here.
LAYERS = (
    ("errors", "core.exports"),
    ("i18n",),
    ("core.values",),
    ("core",),
    ("catalog",),
    ("config",),
    ("providers",),
    ("runner.events",),
    ("search",),
    ("search.discovery",),
    ("stores",),
    ("runner.execution",),
    ("runner.session",),
    ("runner",),
    ("adapters.hosts",),
    ("sources",),
    ("sources.registry",),
    ("adapters",),
    ("bot",),
    ("serving",),
    ("serving.inspector",),
    (
        "serving.gateway",
        "serving.proxy",
        "testing",
        "adapters.compat",
        "sources.toolbox",
        "sources.workspace",
    ),
    ("cli",),
    ("__main__",),
)
ROWS = {part: row for row, parts in enumerate(LAYERS) for part in parts}
# The modules that hold a conversation: what they bring in is the core, docs/core.md.
CONVERSATION = ("tool_search.core.conversation.session", "tool_search.core.conversation.view")
SEARCH_LAYERS = ("text", "index", "vectors", "engines", "build")


def modules() -> dict[str, Path]:
    """Return the file of every module by its name, links not followed."""
    found = {}
    for top, package in (
        ("tool_search", "tool_search"),
        ("adapters", "tool_search.adapters"),
        ("i18n", "tool_search.i18n"),
    ):
        for path in sorted((ROOT / top).rglob("*.py")):
            parts = path.relative_to(ROOT / top).with_suffix("").parts
            name = ".".join((package, *parts)).removesuffix(".__init__")
            if not path.is_relative_to(ROOT / "tool_search" / "adapters") and not (
                path.is_relative_to(ROOT / "tool_search" / "i18n")
            ):
                found[name] = path
    return found


@cache
def _nodes(path: Path) -> tuple[ast.AST, ...]:
    return tuple(ast.walk(ast.parse(path.read_text(encoding="utf-8"))))


def imports(files: Mapping[str, Path]) -> dict[str, set[str]]:
    """Return the modules of the package that each module imports, in functions too."""
    return {name: set(_imported(path, files)) for name, path in files.items()}


def _imported(path: Path, files: Mapping[str, Path]) -> Iterator[str]:
    for node in _nodes(path):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names if alias.name in files)
        elif isinstance(node, ast.ImportFrom) and (node.module or "") in files:
            for alias in node.names:
                full = f"{node.module}.{alias.name}"
                yield full if full in files else str(node.module)


def string_imports(files: Mapping[str, Path]) -> dict[str, set[str]]:
    """Return the modules whose names stand as strings in each module that loads by name."""
    found: dict[str, set[str]] = {}
    for name, path in files.items():
        source = path.read_text(encoding="utf-8")
        named = {
            node.value.partition(":")[0]
            for node in _nodes(path)
            if isinstance(node, ast.Constant) and isinstance(node.value, str)
        }
        found[name] = (named & files.keys()) if "import_module" in source else set()
    return found


def closure(*roots: str) -> dict[str, int]:
    """Return the modules that importing some modules brings in, with their lines.

    Imports inside functions and names that are loaded by string count too.
    """
    files = modules()
    direct, by_name = imports(files), string_imports(files)
    seen: set[str] = set()
    waiting = list(roots)
    while waiting:
        name = waiting.pop()
        if name in seen:
            continue
        seen.add(name)
        parents = {name.rsplit(".", n)[0] for n in range(1, name.count(".") + 1)} & files.keys()
        waiting += direct[name] | by_name[name] | parents
    return {name: len(files[name].read_text(encoding="utf-8").splitlines()) for name in seen}


def runtime_imports(files: Mapping[str, Path]) -> dict[str, set[str]]:
    """Return the modules that importing each module imports: top level, no type checking."""
    found = {}
    for name, path in files.items():
        body = ast.parse(path.read_text(encoding="utf-8")).body
        plain = [node for node in body if isinstance(node, ast.Import | ast.ImportFrom)]
        tree = ast.Module(body=[*plain], type_ignores=[])
        found[name] = {
            full if (full := f"{node.module}.{alias.name}") in files else str(node.module)
            for node in tree.body
            if isinstance(node, ast.ImportFrom) and (node.module or "") in files
            for alias in node.names
        }
    return found


def upward_imports() -> list[str]:
    """Return each import of a module from a higher layer."""
    inner = {part: row for row, part in enumerate(SEARCH_LAYERS)}
    found = []
    for name, used in imports(modules()).items():
        for other in sorted(used):
            own, theirs = _layer(name), _layer(other)
            if own and theirs and own != theirs and ROWS[theirs] >= ROWS[own]:
                found.append(f"{name} -> {other}")
            if own == theirs == "search":
                low, high = inner.get(_part(name, 2)), inner.get(_part(other, 2))
                if low is not None and high is not None and high > low:
                    found.append(f"{name} -> {other}")
    return found


def upward_strings() -> list[str]:
    """Return each module of a higher layer that a module loads by its name."""
    return [
        f"{name} -> {other}"
        for name, used in string_imports(modules()).items()
        for other in sorted(used)
        if _layer(name) and _layer(other) and ROWS[_layer(other)] > ROWS[_layer(name)]
    ]


def cycle() -> list[str]:
    """Return the modules of a cycle of imports at run time, or nothing."""
    try:
        tuple(TopologicalSorter(runtime_imports(modules())).static_order())
    except CycleError as exc:
        return list(exc.args[1])
    return []


def folder_sizes() -> dict[str, int]:
    """Return the number of modules in each folder, its `__init__` not counted."""
    sizes: dict[str, int] = defaultdict(int)
    for name, path in modules().items():
        if path.name != "__init__.py":
            sizes[name.rpartition(".")[0]] += 1
    return dict(sizes)


def top_level() -> tuple[list[str], list[str]]:
    """Return the modules and the folders at the top of `tool_search/`."""
    entries = sorted((ROOT / "tool_search").iterdir())
    files = [path.name for path in entries if path.suffix == ".py"]
    # A folder that has moved leaves its bytecode in a clone.
    folders = [path.name for path in entries if any(path.glob("*.py")) or path.is_symlink()]
    return files, folders


def _layer(name: str) -> str:
    """Return the part of `LAYERS` that a module belongs to; `tool_search` itself has none."""
    inner = f"{_part(name)}.{_part(name, 2)}"
    return inner if inner in ROWS else _part(name)


def _part(name: str, place: int = 1) -> str:
    """Return a part of a module's name; `tool_search` itself has none."""
    parts = name.split(".")
    return parts[place] if len(parts) > place else ""


def _print_figures() -> None:
    files, folders = top_level()
    sizes = folder_sizes()
    edges = {
        (_part(name), _part(other))
        for name, used in imports(modules()).items()
        for other in used
        if _part(name) and _part(other) and _part(name) != _part(other)
    }
    rows = (
        ("modules", len(modules())),
        ("items at the top of tool_search/", len(files) + len(folders)),
        ("files at the top", len(files)),
        ("most files in a folder", max(sizes.values())),
        ("imports between top-level parts", len(edges)),
        ("upward imports", len(upward_imports())),
        ("upward imports by string", len(upward_strings())),
        ("modules of a conversation", len(core := closure(*CONVERSATION))),
        ("lines of a conversation", sum(core.values())),
        ("modules in a cycle", len(cycle())),
    )
    for what, figure in rows:
        sys.stdout.write(f"{what:36}{figure:6}\n")


if __name__ == "__main__":
    _print_figures()
