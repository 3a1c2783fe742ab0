"""Names that a package exports, listed once: in the stub file of its `__init__`."""

from __future__ import annotations

import sys
from importlib import import_module

# `typing`, `re`, `pathlib` and `importlib.util` would take most of the time of
# `import tool_search`: 3 ms in a process that has not loaded them for itself.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any

__all__ = ["exports", "find_moved_modules", "moved_to_top"]

_TOP = "tool_search"
# Modules of folders that are in the core by the same name, and those that have another.
_INTO_CORE = {
    "catalog": "catalog ids naming names text_limits tokens tool",
    "conversation": "base calls denied_tools history session synthetic_searches thinking tools "
    "view",
    "discovery": "definitions modes state tool_order",
    "strategies": "arguments base claude generic history openai_responses plan_input planning "
    "registry tool_lists",
}
_GONE = "conversation"
_MOVED = {
    "config.kinds": "core.kinds",
    "config.strategies": "core.strategy_facts",
    "config.values": "core.settings",
    "conversation.preloading": "session.preloading",
    "conversation.record": "stores.record",
    "conversation.record_shape": "stores.record_shape",
    "conversation.search_services": "discovery.search_services",
    "conversation.search_trail": "discovery.search_trail",
    "conversation.sent_history": "session.sent_history",
    "discovery.missing_tool": "session.missing_tool",
    "discovery.services": "core.services",
    "messages": "core.messages",
    "providers.omissions": "session.omissions",
    "providers.profiles": "core.profiles",
    "search.index.protocol": "core.results",
}
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
        moved: Names that left the package, and the place where each is now.
    """
    # The loader reads from an archive too.
    loader: Any = import_module(package).__loader__
    stub = loader.get_data(f"{file.rpartition('.')[0]}.pyi").decode()
    listed, _, reachable = stub.replace("\r\n", "\n").partition(_NOT_LISTED)
    homes = _homes(listed)
    return list(homes), _loader(package, {**homes, **_homes(reachable)}, moved or {})


class _MovedModules:
    """Finds a module by the name that it had before the core had a folder."""

    def find_spec(self, name: str, _path: object = None, _target: object = None) -> Any:
        """Return the specification of a module that has moved; None for any other."""
        package, _, old = name.partition(".")
        is_folder, new = old == _GONE, _new_place(old)
        if package != _TOP or not (is_folder or new):
            return None
        from importlib.machinery import ModuleSpec  # noqa: PLC0415 - only an older import needs it

        loader: Any = self
        return ModuleSpec(name, loader, origin=new, is_package=is_folder)

    def create_module(self, spec: Any) -> None:
        """Return None: Python makes the module that `exec_module` replaces."""

    def exec_module(self, module: Any) -> None:
        """Put the module that has moved in the place of the one that is imported."""
        old, new = module.__spec__.name, module.__spec__.origin
        if new is None:
            return
        import warnings  # noqa: PLC0415 - only an older import needs it

        text = f"{old} has moved: it is {_TOP}.{new}"
        warnings.warn(text, DeprecationWarning, stacklevel=2)
        sys.modules[old] = import_module(f"{_TOP}.{new}")


def find_moved_modules() -> None:
    """Let Python find the modules of the core by their former names."""
    if not any(type(finder).__name__ == _MovedModules.__name__ for finder in sys.meta_path):
        sys.meta_path.append(_MovedModules())


def _new_place(old: str) -> str | None:
    """Return the place of a module of an older version, below the package; None: it is there."""
    if old in _MOVED:
        return _MOVED[old]
    folder, _, name = old.partition(".")
    return f"core.{old}" if name in _INTO_CORE.get(folder, "").split() else None


def moved_to_top(module: str, *names: str) -> Callable[[str], Any]:
    """Return `__getattr__` of a module whose names are now imported from `tool_search` alone."""

    def load(name: str) -> Any:
        if name not in names:
            raise AttributeError(f"module {module!r} has no attribute {name!r}", name=name)
        import warnings  # noqa: PLC0415 - only an older import needs it

        text = f"{module}.{name} has moved: use `from tool_search import {name}`"
        warnings.warn(text, DeprecationWarning, stacklevel=2)
        return getattr(import_module("tool_search"), name)

    return load


def _homes(stub: str) -> dict[str, str]:
    """Return the module of each name that a stub imports, in the order of the stub."""
    found: dict[str, str] = {}
    lines = "\n".join(line.partition("#")[0].rstrip() for line in stub.split("\n"))
    for statement in f"\n{lines}".split("\nfrom ")[1:]:
        home, _, rest = statement.partition(" import ")
        end = ")" if rest.startswith("(") else "\n"
        names = rest.partition(end)[0].lstrip("(").split(",")
        found |= {name.split()[0]: home for name in names if name.strip()}
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
        if importer == "_handle_fromlist" and not _is_submodule(package, name):
            raise ImportError(problem, name=package)
        raise AttributeError(problem, name=name)

    return load


def _is_submodule(package: str, name: str) -> bool:
    from importlib.util import find_spec  # noqa: PLC0415 - only a name that is not listed needs it

    return find_spec(f"{package}.{name}") is not None


def _hint(name: str, homes: Mapping[str, str], moved: Mapping[str, str]) -> str:
    """Return the place where a name is now, or the names that are nearly the same."""
    if name in moved:
        return f": it is now {moved[name]}"
    if name.startswith("_"):
        return ""
    from difflib import get_close_matches  # noqa: PLC0415 - only a wrong name needs it

    near = get_close_matches(name, homes, n=3)
    return f"; did you mean {' or '.join(near)}?" if near else ""
