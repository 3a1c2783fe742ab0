"""Names that a package exports, listed once: in the stub file of its `__init__`."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from importlib import import_module
from pathlib import Path
from typing import Any

__all__ = ["exports"]

_IMPORT = re.compile(
    r"^from (?P<home>[\w.]+) import (?:\((?P<many>[^)]*)\)|(?P<one>.+))$", re.MULTILINE
)
_NOT_LISTED = "# Reachable, not in `__all__`"


def exports(package: str, file: str) -> tuple[list[str], Callable[[str], Any]]:
    """Return `__all__` and `__getattr__` of a package, read from the stub beside its file.

    A module is imported when the first of its names is used. Names of the stub after the
    line "# Reachable, not in `__all__`" can be used and are not in `__all__`.

    Args:
        package: The package's `__name__`.
        file: Its `__file__`; the stub is the file beside it that ends in `.pyi`.
    """
    stub = Path(file).with_suffix(".pyi").read_text(encoding="utf-8")
    listed, _, reachable = stub.partition(_NOT_LISTED)
    homes = _homes(listed)
    return sorted(homes), _loader(package, {**homes, **_homes(reachable)})


def _homes(stub: str) -> dict[str, str]:
    """Return the module of each name that a stub imports."""
    found: dict[str, str] = {}
    for match in _IMPORT.finditer(stub):
        names = re.sub(r"#.*", "", match["many"] or match["one"]).split(",")
        found |= {name.split()[0]: match["home"] for name in names if name.strip()}
    return found


def _loader(package: str, homes: Mapping[str, str]) -> Callable[[str], Any]:
    def load(name: str) -> Any:
        if name not in homes:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        value = getattr(import_module(homes[name]), name)
        vars(import_module(package))[name] = value
        return value

    return load
