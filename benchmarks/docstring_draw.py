"""Draw ten docstrings and show them before and after the last edit of all text.

The draw is seeded, so nobody has chosen what is shown. Old texts are read from git.

Run: python benchmarks/docstring_draw.py > benchmarks/docstrings.md
"""

from __future__ import annotations

import ast
import random
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
BEFORE = "63715db"  # the last commit before the edit
SEED = 12
DRAWN = 10
_FOLDERS = ("tool_search", "adapters", "i18n")
_LEFT_OUT = ("/demo/", "/testing/")
_DOCUMENTED = (ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)


def docstrings(source: str) -> Iterator[tuple[str, str]]:
    """Iterate over the qualified name and docstring of each class and function."""
    places: list[tuple[str, ast.AST]] = [("", ast.parse(source))]
    while places:
        prefix, node = places.pop()
        for child in ast.iter_child_nodes(node):
            if isinstance(child, _DOCUMENTED):
                name = f"{prefix}{child.name}"
                if text := ast.get_docstring(child):
                    yield name, text
                places.append((f"{name}.", child))


def _git(*arguments: str) -> str:
    command = ["git", *arguments]
    return subprocess.run(  # git, on our own repository
        command, cwd=ROOT, check=True, capture_output=True, text=True, encoding="utf-8"
    ).stdout


def _is_counted(path: str) -> bool:
    return path.endswith(".py") and not any(part in f"/{path}" for part in _LEFT_OUT)


def before() -> dict[str, list[tuple[str, str]]]:
    """Return the docstrings of the old commit: file and text by qualified name."""
    found: dict[str, list[tuple[str, str]]] = {}
    for path in sorted(_git("ls-tree", "-r", "--name-only", BEFORE, *_FOLDERS).splitlines()):
        if _is_counted(path):
            for name, text in docstrings(_git("show", f"{BEFORE}:{path}")):
                found.setdefault(name, []).append((path, text))
    return found


def after() -> dict[str, list[tuple[str, str]]]:
    """Return the docstrings of this checkout: file and text by qualified name."""
    found: dict[str, list[tuple[str, str]]] = {}
    paths = sorted(path for top in _FOLDERS for path in (ROOT / top).rglob("*.py"))
    for path in paths:
        name = path.relative_to(ROOT).as_posix()
        if _is_counted(name) and not path.parent.is_symlink():
            for qualified, text in docstrings(path.read_text(encoding="utf-8")):
                found.setdefault(qualified, []).append((name, text))
    return found


def page() -> str:
    """Return the page: the draw is among qualified names that are unique in both commits."""
    old, new = before(), after()
    names = sorted(name for name, found in old.items() if len(found) == 1)
    both = [name for name in names if len(new.get(name, ())) == 1]
    lines = [
        "# Ten docstrings, before and after",
        "",
        f"Drawn by `python benchmarks/docstring_draw.py` with seed {SEED} among the {len(both):,}",
        f"classes and functions that have a docstring and one unique name in commit `{BEFORE}`",
        "and now. Figures for all of them: [language](language.md).",
    ]
    for name in random.Random(SEED).sample(both, DRAWN):
        (old_path, old_text), (new_path, new_text) = old[name][0], new[name][0]
        lines += ["", f"## `{name}`", "", f"Before, in `{old_path}`:", "", "```", old_text, "```"]
        same = "the same text" if old_text == new_text else ""
        lines += ["", f"After, in `{new_path}`:{' ' if same else ''}{same}"]
        lines += [] if same else ["", "```", new_text, "```"]
    return "\n".join([*lines, ""])


if __name__ == "__main__":
    sys.stdout.write(page())
