"""The protocol of a stand-in model, and the scripted model."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol

from tool_search.errors import ToolSearchError

if TYPE_CHECKING:
    from tool_search.testing.view import ModelView

__all__ = [
    "ModelCall",
    "ModelReply",
    "ScriptExhaustedError",
    "ScriptedModel",
    "StandInModel",
    "Step",
]


class ScriptExhaustedError(ToolSearchError):
    """A scripted model got more requests than its script has steps."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelCall:
    """A tool call that a stand-in model makes.

    Attributes:
        name: The tool's name on the wire.
        arguments: The arguments, or a string to send as it is, broken JSON too.
        hidden: True to call a tool outside the model's view on purpose: a
            deferred one without a reference, or an invented one.
    """

    name: str
    arguments: Mapping[str, Any] | str = field(default_factory=dict)
    hidden: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelReply:
    """One reply of a stand-in model.

    Attributes:
        text: Its text; empty for none.
        calls: The tool calls that follow the text.
        thinking: Its thinking, sent first; None for none.
        stop_reason: The dialect's own stop reason; None for the natural one.
    """

    text: str = ""
    calls: tuple[ModelCall, ...] = ()
    thinking: str | None = None
    stop_reason: str | None = None


class StandInModel(Protocol):
    """A model that answers the valid requests of a stand-in server.

    `reply` is called from the threads of the server, one a connection.
    """

    def reply(self, view: ModelView) -> ModelReply:
        """Return the model's reply to a request."""
        ...


Step = ModelReply | Callable[["ModelView"], ModelReply]


class ScriptedModel:
    """A model that answers each request with the next step of a script.

    Example:
        >>> from tool_search.testing import ModelCall, ModelReply, ScriptedModel
        >>> model = ScriptedModel(
        ...     [
        ...         ModelReply(calls=(ModelCall(name="get_time", arguments={"zone": "UTC"}),)),
        ...         lambda view: ModelReply(text=f"It is {view.results[-1].text}."),
        ...     ]
        ... )

    Attributes:
        steps: Replies, or functions from the model's view to a reply.
        turns: Scripts for turns whose user text contains the key; the first key
            that fits, in the mapping's order, is used.
    """

    def __init__(
        self, steps: Iterable[Step] = (), *, turns: Mapping[str, Iterable[Step]] | None = None
    ) -> None:
        self.steps = tuple(steps)
        self.turns = {key: tuple(script) for key, script in (turns or {}).items()}
        self._taken: dict[str | None, int] = {}
        self._lock = threading.Lock()

    @property
    def remaining(self) -> int:
        """The number of steps, of all scripts, that are not used yet."""
        with self._lock:
            taken = sum(self._taken.values())
        return len(self.steps) + sum(map(len, self.turns.values())) - taken

    def reply(self, view: ModelView) -> ModelReply:
        """Return the next step's reply.

        Raises:
            ScriptExhaustedError: The script has ended.
        """
        step = self._next_step(view.last_user_text)
        return step(view) if callable(step) else step

    def _next_step(self, text: str) -> Step:
        key = next((key for key in self.turns if key in text), None)
        script = self.steps if key is None else self.turns[key]
        with self._lock:
            taken = self._taken.get(key, 0)
            if taken < len(script):
                self._taken[key] = taken + 1
                return script[taken]
        named = "the script" if key is None else f"the script for {key!r}"
        raise ScriptExhaustedError(
            f"{named} of the stand-in model is exhausted: it has {len(script)} steps and "
            f"this is request {taken + 1}; the user's last text is {text[:200]!r}"
        )
