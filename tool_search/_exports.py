"""Names that a package exports, listed once: in the stub file of its `__init__`."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Mapping
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

__all__ = ["exports"]

_IMPORT = re.compile(
    r"^from (?P<home>[\w.]+) import (?:\((?P<many>[^)]*)\)|(?P<one>.+))$", re.MULTILINE
)
_NOT_LISTED = "# Reachable, not in `__all__`"


def exports(
    package: str, file: str, *, moved: Mapping[str, str] | None = None
) -> tuple[list[str], Callable[[str], Any]]:
    """Return `__all__` and `__getattr__` of a package, read from the stub beside its file.

    A module is imported when the first of its names is used. Names of the stub after the
    line "# Reachable, not in `__all__`" can be used and are not in `__all__`.

    Args:
        package: The package's `__name__`.
        file: Its `__file__`; the stub is the file beside it that ends in `.pyi`.
        moved: Names that left the package, and where each of them is now.
    """
    stub = Path(file).with_suffix(".pyi").read_text(encoding="utf-8")
    listed, _, reachable = stub.partition(_NOT_LISTED)
    homes = _homes(listed)
    return list(homes), _loader(package, {**homes, **_homes(reachable)}, moved or {})


def _homes(stub: str) -> dict[str, str]:
    """Return the module of each name that a stub imports, in the order of the stub."""
    found: dict[str, str] = {}
    for match in _IMPORT.finditer(stub):
        names = re.sub(r"#.*", "", match["many"] or match["one"]).split(",")
        found |= {name.split()[0]: match["home"] for name in names if name.strip()}
    return found


def _loader(
    package: str, homes: Mapping[str, str], moved: Mapping[str, str]
) -> Callable[[str], Any]:
    def load(name: str) -> Any:
        if name in homes:
            value = getattr(import_module(homes[name]), name)
            vars(import_module(package))[name] = value
            return value
        problem = f"module {package!r} has no attribute {name!r}{_hint(name, homes, moved)}"
        # `from package import name` replaces an AttributeError with a text of its own, so the
        # hint reaches its reader as an ImportError. A submodule is imported after the former.
        importer = sys._getframe(1).f_code.co_name  # noqa: SLF001 - documented for CPython
        if importer == "_handle_fromlist" and find_spec(f"{package}.{name}") is None:
            raise ImportError(problem, name=package)
        raise AttributeError(problem, name=name)

    return load


def _hint(name: str, homes: Mapping[str, str], moved: Mapping[str, str]) -> str:
    """Return where a name is now, or the names that are nearly the same."""
    if name in moved:
        return f": it is now {moved[name]}"
    if name.startswith("_"):
        return ""
    from difflib import get_close_matches  # noqa: PLC0415 - only a wrong name needs it

    near = get_close_matches(name, homes, n=3)
    return f"; did you mean {' or '.join(near)}?" if near else ""
