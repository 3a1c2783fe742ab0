"""The hooks that are installed in one AstrBot, which is loaded with the first of them."""

from __future__ import annotations

import logging
from collections.abc import Callable
from importlib import import_module
from typing import Any

from tool_search.adapters.astrbot.claude import ClaudeHook
from tool_search.adapters.astrbot.hooks import MethodHook, NativeHook, PrepareAgent, ResetHook
from tool_search.adapters.astrbot.responses import ResponsesHook
from tool_search.adapters.astrbot.run import LIMITED
from tool_search.adapters.astrbot.settings import AstrBotSettings
from tool_search.providers.profiles import ProviderProfile

__all__ = ["InstalledHooks"]

_SOURCES = "astrbot.core.provider.sources"
_CLAUDE = f"{_SOURCES}.anthropic_source", "ProviderAnthropic"
_RESPONSES = f"{_SOURCES}.openai_responses_source", "ProviderOpenAIResponses"
_RUNNER = "astrbot.core.agent.runners.tool_loop_agent_runner", "ToolLoopAgentRunner"
_UNEXPECTED = (
    "this AstrBot is not as expected: %s; %s is left as it is (providers get filtered lists, "
    "agents that no plugin sees get every tool)"
)
_log = logging.getLogger(__name__)


class InstalledHooks:
    """The hooks of one plugin.

    Args:
        prepare: Called when an agent starts, also one that no plugin sees.
    """

    def __init__(self, prepare: PrepareAgent) -> None:
        self._prepare = prepare
        self._hooks: list[MethodHook] = []

    def install(self, settings: AstrBotSettings) -> None:
        """Install the hooks that the settings ask for; those of an earlier load are replaced.

        A hook that does not fit this AstrBot is left out, with a warning in the log.
        """
        self.remove()
        boundary = settings.config.boundary_text
        self._install(_CLAUDE, lambda owner: ClaudeHook(owner, boundary=boundary))
        self._install(_RESPONSES, ResponsesHook, may_lack=True)
        self._install(_RUNNER, lambda owner: ResetHook(owner, self._prepare))

    def remove(self) -> None:
        """Remove the hooks; AstrBot is as it was before."""
        while self._hooks:
            self._hooks.pop().remove()

    def profile(self, provider: Any, settings: AstrBotSettings) -> ProviderProfile:
        """Return the profile of a provider, as far as it is known."""
        for hook in self._hooks:
            if isinstance(hook, NativeHook) and hook.is_for(provider):
                return hook.profile(provider, settings.native(hook.dialect))
        return LIMITED

    def _install(
        self,
        place: tuple[str, str],
        make: Callable[[Any], MethodHook],
        *,
        may_lack: bool = False,
    ) -> None:
        """Install one hook.

        Args:
            place: The module and the name of AstrBot's class.
            make: Makes the hook of the class.
            may_lack: True if some releases have no such module.
        """
        module, name = place
        try:
            hook = make(getattr(import_module(module), name))
            hook.install()
        except ModuleNotFoundError as exc:
            _log.log(logging.DEBUG if may_lack else logging.WARNING, _UNEXPECTED, exc, name)
        except (ImportError, AttributeError) as exc:
            _log.warning(_UNEXPECTED, exc, name)
        else:
            self._hooks.append(hook)
