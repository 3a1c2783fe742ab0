"""The hooks that are installed in one AstrBot, which is loaded with the first of them."""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from typing import Any

from tool_search.adapters.astrbot.claude import ClaudeHook
from tool_search.adapters.astrbot.hooks import (
    KeptNamesHook,
    MethodHook,
    NativeHook,
    PrepareAgent,
    ResetHook,
)
from tool_search.adapters.astrbot.responses import ResponsesHook
from tool_search.adapters.astrbot.run import LIMITED
from tool_search.adapters.astrbot.settings import AstrBotSettings
from tool_search.adapters.astrbot.surface import HOOKED, READ, Part, missing_parts
from tool_search.core.profiles import ProviderProfile
from tool_search.i18n import Language, text

__all__ = ["HookState", "InstalledHooks"]

_UNEXPECTED = (
    "this AstrBot is not as expected: %s; %s is left as it is (providers get filtered lists, "
    "agents that no plugin sees get every tool)"
)
_MISSING = "this AstrBot lacks {part}, read in {release}: {cause}"
_REMOVED = "another plugin has removed a hook on {name}; it is in force again"
_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class HookState:
    """The state of a hook, or a part of AstrBot that was not found.

    Attributes:
        name: The class that is hooked, or the part.
        methods: The wrapped methods; empty for none.
        cause: The reason why it is not in force; empty if it is.
        loss: The loss by that.
        is_part: True for a part of AstrBot that is read, not hooked.
    """

    name: str
    methods: str = ""
    cause: str = ""
    loss: str = ""
    is_part: bool = False

    def said(self, language: Language) -> str:
        """Return the state in words; names and causes are AstrBot's."""
        if self.methods:
            return text("astrbot.hook", language, name=self.name, methods=self.methods)
        key = "astrbot.no_part" if self.is_part else "astrbot.no_hook"
        return text(key, language, name=self.name, cause=self.cause, loss=self.loss)


class InstalledHooks:
    """The hooks of one plugin.

    Args:
        prepare: Called when an agent starts, also one that no plugin sees.
    """

    def __init__(self, prepare: PrepareAgent) -> None:
        self._prepare = prepare
        self._hooks: list[MethodHook] = []
        self._report: dict[str, HookState] = {}

    @property
    def report(self) -> tuple[HookState, ...]:
        """Each hook, and each part of AstrBot that was not found."""
        return tuple(self._report.values())

    def install(self, settings: AstrBotSettings) -> None:
        """Install the hooks that the settings ask for; those of an earlier load are replaced.

        A hook that does not fit this AstrBot is left out, with a warning in the log.
        """
        self.remove()
        boundary = settings.config.boundary_text
        makers: dict[str, Callable[[Any], MethodHook]] = {
            "ProviderAnthropic": lambda owner: ClaudeHook(owner, boundary=boundary),
            "ProviderOpenAIOfficial": KeptNamesHook,
            "ProviderOpenAIResponses": ResponsesHook,
            "ToolLoopAgentRunner": lambda owner: ResetHook(owner, self._prepare),
        }
        places = {part.name.partition(".")[0]: part for part in HOOKED}
        for name, make in makers.items():
            self._install(name, places[name], make)
        for part, cause in missing_parts(READ):
            _log.warning("%s", _MISSING.format(part=part, cause=cause, release=part.read_in))
            self._report[str(part)] = HookState(
                name=str(part), cause=cause, loss=part.loss, is_part=True
            )

    def restore(self) -> None:
        """Install hooks again that another plugin has removed."""
        for hook in self._hooks:
            if hook.restore():
                _log.warning("%s", _REMOVED.format(name=hook.name))

    def remove(self) -> None:
        """Remove the hooks; AstrBot is as it was before."""
        self._report.clear()
        while self._hooks:
            self._hooks.pop().remove()

    def profile(self, provider: Any, settings: AstrBotSettings) -> ProviderProfile:
        """Return the profile of a provider, as far as it is known."""
        for hook in self._hooks:
            if isinstance(hook, NativeHook) and hook.is_for(provider):
                return hook.profile(provider, settings.native(hook.dialect))
        return LIMITED

    def _install(self, name: str, place: Part, make: Callable[[Any], MethodHook]) -> None:
        """Install one hook.

        Args:
            name: The name of AstrBot's class.
            place: A part of it.
            make: Makes the hook of the class.
        """
        try:
            hook = make(getattr(import_module(place.module), name))
            hook.install()
        except (ImportError, AttributeError) as exc:
            is_older = isinstance(exc, ModuleNotFoundError) and not [*missing_parts([place])]
            _log.log(logging.DEBUG if is_older else logging.WARNING, _UNEXPECTED, exc, name)
            self._report[name] = HookState(name=name, cause=str(exc), loss=place.loss)
        else:
            self._hooks.append(hook)
            methods = ", ".join(
                p.name.partition(".")[2] for p in HOOKED if p.module == place.module
            )
            self._report[name] = HookState(name=name, methods=methods)
