"""The step of a loop of one's own that runs a call: decide, execute and commit.

A session executes nothing itself. `CallRunner`, which does, is in a higher layer: it is
loaded by its name, and only if a session is given functions.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Collection, Iterable, Mapping, Sequence, Sized
from contextlib import aclosing
from importlib import import_module
from typing import Any, Protocol, cast

from tool_search.catalog.catalog import ToolCatalog
from tool_search.conversation.calls import CallDecision, CallResult
from tool_search.errors import ConfigurationError, SessionError
from tool_search.i18n import Language
from tool_search.messages import ToolCall
from tool_search.values.json import compact_json

__all__ = ["LoopSession", "RunsCalls", "catalog_and_runner", "may_ask_of", "run_call"]

_CALL_RUNNER = "tool_search.execution.call_runner:CallRunner"
_CONVERSATION = "default"


Decide = Callable[[ToolCall], CallDecision | Awaitable[CallDecision]]
"""Decides a call, at once or in another thread."""


class RunsCalls(Protocol):
    """The part of a `CallRunner` that a session uses."""

    @property
    def catalog(self) -> ToolCatalog:
        """The definitions."""
        ...

    def batch(self, calls: Sequence[ToolCall], context: Any, *, decide: Decide) -> Any:
        """Return the calls of one reply, ready to run."""
        ...

    def may_ask(self, context: Callable[[], Any]) -> Callable[[Any], bool]:
        """Return a function that says if some call of a tool asks for permission."""
        ...

    def context(self, conversation: str, language: Language, *, roles: Collection[str]) -> Any:
        """Return the context that tools receive."""
        ...


class LoopSession(Protocol):
    """The part of a session that `run_call` drives."""

    @property
    def language(self) -> Language:
        """The language of the conversation."""
        ...

    def decide(self, call: ToolCall) -> CallDecision:
        """Decide how to handle a call."""
        ...

    def commit(self, results: Iterable[CallResult]) -> object:
        """Take results of calls into the history."""
        ...


def catalog_and_runner(
    catalog: ToolCatalog | None, tools: Iterable[Any]
) -> tuple[ToolCatalog, RunsCalls | None]:
    """Return a session's catalog, and what runs its calls if it is made of functions.

    Raises:
        ConfigurationError: A catalog and functions are given at the same time.
    """
    if catalog is not None:
        if not isinstance(tools, Sized) or len(tools):
            raise ConfigurationError(
                "a session takes a catalog or tools, not both: the catalog of tools is made of "
                "them; leave the catalog out"
            )
        return catalog, None
    module, _, name = _CALL_RUNNER.partition(":")
    runner = cast("RunsCalls", getattr(import_module(module), name)(tools))
    return runner.catalog, runner


def may_ask_of(
    runner: RunsCalls | None, language: Language, roles: Collection[str]
) -> Callable[[Any], bool]:
    """Return a function that says if some call of a tool asks for permission, by its runner."""
    if runner is None:
        return lambda _: False
    return runner.may_ask(lambda: runner.context(_CONVERSATION, language, roles=roles))


async def run_call(
    session: LoopSession,
    call: ToolCall,
    runner: RunsCalls | None,
    context: Any,
    *,
    roles: Collection[str],
    waits: bool = False,
) -> CallResult:
    """Decide, execute and commit a call; return its result.

    A decision that may wait for an embedder is made in another thread.

    A call that is cancelled is committed as such, so that the history stays valid.

    Raises:
        SessionError: Nothing runs calls, or the call has its result already.
    """
    if runner is None:
        raise SessionError(
            f"nothing can run the call of {call.name!r}: the session has a catalog of definitions "
            "alone; give it tools=[functions], or runner=CallRunner(...), or execute the call "
            "yourself with decide() and commit()"
        )
    if context is None:
        context = runner.context(_CONVERSATION, session.language, roles=roles)

    async def decide_aside(call: ToolCall) -> CallDecision:
        return await asyncio.to_thread(session.decide, call)

    decide: Decide = decide_aside if waits else session.decide
    batch = runner.batch((call,), context, decide=decide)
    committed: list[CallResult] = []
    try:
        async with aclosing(batch.events()) as events:
            async for event in events:
                if hasattr(event, "to_commit"):
                    committed.append(event.to_commit())
                    session.commit(committed)
    finally:
        session.commit(finished.to_commit() for finished in batch.undelivered())
    return committed[0]


def host_call(name: str, arguments: Mapping[str, Any] | str) -> ToolCall:
    """Return a call of a host's, whose own id only the host needs."""
    if isinstance(arguments, str):
        return ToolCall(id="host", name=name, arguments=arguments)
    try:
        written = compact_json(dict(arguments))
    except (TypeError, ValueError, RecursionError):
        written = repr(arguments)  # what is not JSON is answered as broken JSON
    return ToolCall(id="host", name=name, arguments=written)
