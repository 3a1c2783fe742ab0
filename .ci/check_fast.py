"""Check what changed since a commit: ruff, mypy, and the tests that are about it.

    python .ci/check_fast.py [COMMIT]

The commit is HEAD by default. Tests are those that changed, those of a changed module's own
folder, and those that import a changed module; at most 30 files, the nearest first.
"""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
MAX_FILES = 30
LINKED = ("adapters", "i18n")


def changed_files(commit: str) -> list[Path]:
    """Return the Python files that differ from a commit, new ones too."""
    commands = (
        ["git", "diff", "--name-only", "--diff-filter=d", commit],
        ["git", "ls-files", "--others", "--exclude-standard"],
    )
    names = (
        subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True).stdout  # noqa: S603
        for command in commands
    )
    listed = sorted({line for lines in names for line in lines.splitlines()})
    return [Path(name) for name in listed if name.endswith(".py")]


def module_name(path: Path) -> str:
    """Return the name by which a file of the package is imported."""
    parts = path.with_suffix("").parts
    package = ("tool_search",) if parts[0] in LINKED else ()
    return ".".join((*package, *parts)).removesuffix(".__init__")


def tests_about(changed: list[Path]) -> list[str]:
    """Return the test files to run, the nearest first."""
    modules = {module_name(p): p for p in changed if p.parts[0] in ("tool_search", *LINKED)}
    own = {Path("tests", *name.split(".")[1:-1]) for name in modules}
    ranked: list[tuple[int, str]] = []
    for path in sorted((ROOT / "tests").rglob("test_*.py")):
        place = path.relative_to(ROOT)
        if place in changed:
            ranked.append((0, str(place)))
        elif modules and not modules.keys().isdisjoint(imports(path)):
            ranked.append((1 if place.parent in own else 2, str(place)))
        elif place.parent in own:
            ranked.append((3, str(place)))
    return [name for _, name in sorted(ranked)][:MAX_FILES]


def imports(path: Path) -> Iterator[str]:
    """Yield the modules that a file imports, and the names in them."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield node.module
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def main() -> int:
    """Run the checks; return the exit status of the first that fails."""
    changed = changed_files(sys.argv[1] if len(sys.argv) > 1 else "HEAD")
    if not changed:
        print("nothing has changed")
        return 0
    files = [str(path) for path in changed]
    typed = [f for f in files if f.startswith(("tool_search", "adapters", "i18n", "tests"))]
    tests = tests_about(changed)
    quick = ["-q", "-x", "-m", "not long and not clients and not redis"]
    commands = [["ruff", "check", *files], ["ruff", "format", "--check", *files]]
    if typed:
        commands.append(["mypy", "--explicit-package-bases", "--follow-imports=silent", *typed])
    if tests:
        commands.append(["pytest", *quick, "-n", "2" if len(tests) > 4 else "0", *tests])
    for command in commands:
        status = subprocess.run([sys.executable, "-m", *command], cwd=ROOT, check=False).returncode  # noqa: S603
        if status:
            return status
    return 0


if __name__ == "__main__":
    sys.exit(main())
