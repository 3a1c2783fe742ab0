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

__all__ = ["current_name", "explain_missing_links", "exports", "find_moved_modules", "moved_to_top"]

_TOP = "tool_search"
# Where a module of an older version is now. Modules of folders that are in the core by the same
# name, single modules that have another name, and whole folders.
_INTO_CORE = {
    "catalog": "catalog ids naming names text_limits tokens tool",
    "conversation": "base calls denied_tools history session synthetic_searches thinking tools "
    "view",
    "discovery": "definitions modes state tool_order",
}
# Modules that are now one with another: the module that has them, by folder.
_JOINED = {
    "adapters": "anthropic.reply: anthropic.parts; opentelemetry.spans: opentelemetry.content "
    "opentelemetry.conventions; opentelemetry.telemetry: opentelemetry.metrics; "
    "sdk.reply_stream: sdk.reply_limits; wire.values: wire.arguments wire.names",
    "catalog.schema": "declared: plain soundness; graph: references; vocabulary: keys",
    "core": "catalog.naming: catalog.ids catalog.names; catalog.schemas: catalog.text_limits; "
    "catalog.tool: catalog.parameters catalog.tokens; "
    "conversation.record: conversation.denied_tools conversation.thinking; "
    "discoveries: discovery.modes discovery.state discovery.tool_order; "
    "services: discovery.definitions results; settings: kinds strategy_facts; "
    "strategies.base: strategies.planning strategies.registry; "
    "strategies.history: strategies.arguments strategies.plan_input; "
    "values.clean_text: values.look_alikes; values.json: values.arguments values.frozen",
    "providers": "refusals: refused_tools",
    "runner": "conversations: turn_lock turn_watch; refusals: endings; "
    "session.session: compaction session.missing_tool session.preloading; "
    "execution.functions: execution.function_executor; "
    "execution.hooks: execution.limits execution.replay",
    "search.discovery": "listing: catalog_language; search_services: search_trail; "
    "search_tool: queries",
    "stores": "conversations: erasure; keeping: backlog",
}
_JOINED_INTO = {
    f"{folder}.{old}": f"{folder}.{row.partition(':')[0].strip()}"
    for folder, rows in _JOINED.items()
    for row in rows.split(";")
    for old in row.partition(":")[2].split()
}
_GONE = ("conversation", "core.discovery", "demo")  # folders of which nothing is left
_MOVED = {
    "_checkout": "core.exports",
    "_exports": "core.exports",
    "adapters.anthropic.errors": "providers.words.anthropic",
    "adapters.openai_chat.errors": "providers.words.openai_chat",
    "adapters.openai_responses.errors": "providers.words.openai_responses",
    "adapters.wire.content_errors": "providers.words.contents",
    "adapters.wire.errors": "providers.words.shared",
    "adapters.wire.size_errors": "providers.words.sizes",
    "config.kinds": "core.kinds",
    "config.strategies": "core.strategy_facts",
    "config.values": "core.settings",
    "conversation.preloading": "runner.session.preloading",
    "conversation.record": "stores.record",
    "conversation.record_shape": "stores.record",
    "conversation.search_services": "search.discovery.search_services",
    "conversation.search_trail": "search.discovery.search_trail",
    "conversation.sent_history": "runner.session.sent_history",
    "discovery.missing_tool": "runner.session.missing_tool",
    "discovery.services": "core.services",
    "events": "runner.events",
    "execution.background": "core.values.aside",
    "hosts.chat_requests": "adapters.openai_chat.requests",
    "hosts.loop_thread": "core.values.aside",
    "inspector.access": "serving.door",
    "messages": "core.messages",
    "providers.omissions": "runner.session.omissions",
    "providers.profiles": "core.profiles",
    "runner.observers": "runner.execution.observers",
    "search.index.protocol": "core.results",
    "values.asgi": "serving.door",
}
_MOVED_FOLDERS = {
    "compat": "adapters.compat",
    "demo": "cli.demo",
    "demo.toolbox": "sources.toolbox",
    "demo.workspace_tools": "sources.workspace",
    "discovery": "search.discovery",
    "doctor": "cli.doctor",
    "execution": "runner.execution",
    "gateway": "serving.gateway",
    "hosts": "adapters.hosts",
    "inspector": "serving.inspector",
    "proxy": "serving.proxy",
    "registry": "sources.registry",
    "session": "runner.session",
    "strategies": "core.strategies",
    "values": "core.values",
    "workspace": "sources.workspace",
}
_LINKED = ("adapters", "i18n")
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
    """Finds a module by a name that it had in an older version.

    This finder is the first: the folder of a package that has moved is where Python would find
    the package's modules a second time.
    """

    def find_spec(self, name: str, _path: object = None, _target: object = None) -> Any:
        """Return the specification of a module that has moved; None for any other."""
        package, _, old = name.partition(".")
        is_folder, new = old in _GONE, _new_place(old)
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
        # A folder that has moved has said it for the modules that moved with it.
        folder, _, last = old.removeprefix(f"{_TOP}.").rpartition(".")
        if f"{_former_place(folder)}.{last}" != _former_place(old.removeprefix(f"{_TOP}.")):
            import warnings  # noqa: PLC0415 - only an older import needs it

            text = f"{old} has moved: it is {_TOP}.{new}"
            warnings.warn(text, DeprecationWarning, stacklevel=2)
        sys.modules[old] = import_module(f"{_TOP}.{new}")


class _MissingLinks:
    """The last finder: it says why a linked folder is not found.

    `tool_search/adapters` and `tool_search/i18n` link to folders at the top of the repository.
    Without `core.symlinks`, as on Windows, git writes a text file that holds the target of each
    link. Source: git-config documentation, `core.symlinks`.
    """

    @staticmethod
    def find_spec(name: str, *_: object) -> None:
        """Raise an error that says the remedy if the module is a linked folder."""
        if name.startswith(f"{_TOP}.") and name.partition(".")[2] in _LINKED:
            raise ModuleNotFoundError(
                f"No module named {name!r}: {name.replace('.', '/')} is a text file, because git "
                "checked its symbolic link out as one; run `git config core.symlinks true` and "
                "`git checkout -- tool_search`, or `pip install -e .`",
                name=name,
            )


def find_moved_modules() -> None:
    """Let Python find modules by their former names."""
    if not any(type(finder).__name__ == _MovedModules.__name__ for finder in sys.meta_path):
        sys.meta_path.insert(0, _MovedModules())


def explain_missing_links() -> None:
    """Have an import of a linked folder that is not found say why."""
    if not any(finder is _MissingLinks for finder in sys.meta_path):
        sys.meta_path.append(_MissingLinks)


def current_name(name: str) -> str | None:
    """Return the name that a module of an older version has now; None: it has not moved."""
    package, _, old = name.partition(".")
    new = _new_place(old) if package == _TOP else None
    return new and f"{_TOP}.{new}"


def _new_place(old: str) -> str | None:
    """Return the place of a module of an older version, below the package; None: it is there."""
    place = _former_place(old)
    return _JOINED_INTO.get(place or old, place)


def _former_place(old: str) -> str | None:
    if old in _MOVED or old in _GONE:
        return _MOVED.get(old)
    folder, _, name = old.partition(".")
    if name in _INTO_CORE.get(folder, "").split():
        return f"core.{old}"
    inner = f"{folder}.{name.partition('.')[0]}"
    folder = inner if inner in _MOVED_FOLDERS else folder
    now = _MOVED_FOLDERS.get(folder)
    return now and f"{now}{old.removeprefix(folder)}"


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
