"""The backends of a registered tool, which run its calls."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, get_args

from tool_search.core.values.json import shown
from tool_search.errors import InvalidBackendError

__all__ = ["Backend", "BackendKind", "default_backend"]

BackendKind = Literal["local", "provider", "mcp"]
"""`local`: in this process; `provider`: a service of tools; `mcp`: an MCP server."""

_KINDS = get_args(BackendKind)


@dataclass(frozen=True, slots=True)
class Backend:
    """One place that can run a tool; made by `local`, `provider` and `mcp`.

    Two backends are the same one if their kinds and names are; a provider's also has its name
    for the tool. The identity of a local backend without a name is its executor.

    Attributes:
        kind: The kind of place.
        name: The server, the provider's id, or the name of the local handler.
        tool: The tool's name there; None: the name under which it is registered.
        executor: What runs a local tool: a `ToolExecutor`, an `ExecutableTool` or a function.
    """

    kind: BackendKind
    name: str = ""
    tool: str | None = None
    executor: Any = field(default=None, repr=False)

    @classmethod
    def local(cls, executor: Any, *, name: str = "") -> Backend:
        """Return a backend in this process.

        Args:
            executor: A `ToolExecutor`, an `ExecutableTool`, or a sync or async function.
            name: The handler's name: a later executor of the same name replaces this one.
        """
        return _check(cls("local", name, None, executor))

    @classmethod
    def provider(cls, provider: str, tool: str) -> Backend:
        """Return a backend of a service, which runs the tool under its own name for it."""
        return _check(cls("provider", provider, tool))

    @classmethod
    def mcp(cls, server: str, *, tool: str | None = None) -> Backend:
        """Return a backend of an MCP server.

        Args:
            server: The server's name.
            tool: The name under which the server's executor runs the tool, if it is another.
        """
        return _check(cls("mcp", server, tool))

    @property
    def key(self) -> tuple[object, ...]:
        """The identity of the backend among those of one tool."""
        if self.kind == "provider":
            return self.kind, self.name, self.tool
        if self.kind == "local" and not self.name:
            return self.kind, id(self.executor)
        return self.kind, self.name

    def __str__(self) -> str:
        named = self.name or (type(self.executor).__name__ if self.kind == "local" else "")
        return f"{self.kind} {named!r}" + (f" (tool {self.tool!r})" if self.tool else "")


def default_backend(backends: Sequence[Backend]) -> Backend:
    """Return the first local backend, or else the first of a provider, or else the first."""
    return min(backends, key=lambda backend: _KINDS.index(backend.kind))


def check_backend(backend: object) -> Backend:
    """Return a backend that is complete.

    Raises:
        InvalidBackendError: It is not a `Backend`, or a name or an executor is missing.
    """
    if not isinstance(backend, Backend):
        raise InvalidBackendError(
            "a backend must be Backend.local(executor), Backend.provider(id, tool) or "
            f"Backend.mcp(server), not {shown(backend)}"
        )
    return _check(backend)


def _check(backend: Backend) -> Backend:
    if backend.kind not in _KINDS:
        raise InvalidBackendError(
            f"unknown kind of backend {shown(backend.kind)}; there are {', '.join(_KINDS)}"
        )
    for part in (backend.name, backend.tool):
        if part is not None and not isinstance(part, str):
            raise InvalidBackendError(
                f"a name in a backend of kind {backend.kind} must be a string, not {shown(part)}"
            )
    if backend.kind == "local":
        if not (callable(backend.executor) or _is_executor(backend.executor)):
            raise InvalidBackendError(
                "a local backend needs an executor: a ToolExecutor, an ExecutableTool or a "
                f"function, not {shown(backend.executor)}"
            )
    elif not backend.name:
        named = "a server's name" if backend.kind == "mcp" else "the provider's id"
        raise InvalidBackendError(f"a backend of kind {backend.kind} needs {named}, not ''")
    elif backend.kind == "provider" and not backend.tool:
        raise InvalidBackendError(
            f"a backend of the provider {backend.name!r} needs the tool's id there, "
            f"not {shown(backend.tool)}"
        )
    return backend


def _is_executor(value: object) -> bool:
    # An `ExecutableTool` has a function, every other executor runs calls.
    return callable(getattr(value, "run", None) or getattr(value, "function", None))
