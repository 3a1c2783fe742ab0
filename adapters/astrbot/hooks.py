"""Wrappers of methods of AstrBot's classes, for what its API does not offer.

The base classes do not know what a wrapper does. AstrBot is not loaded.
"""

from __future__ import annotations

import logging
from abc import ABC, abstractmethod
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Mapping
from contextlib import aclosing
from functools import wraps
from typing import Any, ClassVar, cast

from tool_search.adapters.astrbot.reports import MISTAKES
from tool_search.adapters.astrbot.settings import NativeChoice
from tool_search.adapters.astrbot.toolset import run_of
from tool_search.adapters.hosts.kept_names import KeptNames
from tool_search.core.profiles import ProviderProfile
from tool_search.core.settings import Dialect, StrategyChoice
from tool_search.errors import ProviderError, UnsupportedStrategyError
from tool_search.providers.errors import ErrorAction, classify_error
from tool_search.providers.profile_choice import profile_for

__all__ = [
    "KeptNamesHook",
    "MethodHook",
    "NativeHook",
    "PrepareAgent",
    "ResetHook",
    "SentNames",
    "Wrapper",
]

Wrapper = Callable[[Callable[..., Any]], Callable[..., Any]]
"""Makes a wrapper of a method."""
PrepareAgent = Callable[[Any, Any, Any, Any], Awaitable[None]]
"""Takes the event, the request, the runner and the first provider of a run that starts."""

_MARK = "_tool_search_original"
_log = logging.getLogger(__name__)


class MethodHook(ABC):
    """Wrappers around methods of one class.

    Args:
        owner: AstrBot's class.
    """

    def __init__(self, owner: Any) -> None:
        self._class = owner
        self._installed: dict[str, Any] = {}

    @property
    def name(self) -> str:
        """The name of the class."""
        return str(self._class.__name__)

    @property
    def is_installed(self) -> bool:
        """True if the wrappers are active."""
        return bool(self._installed)

    def install(self) -> None:
        """Wrap the methods; wrappers of an earlier load are replaced.

        Raises:
            AttributeError: The class lacks one of them; then none is wrapped.
        """
        wrappers = self._wrappers()
        methods = {name: getattr(self._class, name) for name in wrappers}
        for name, method in methods.items():
            original = _original_of(method)
            wrapper = wrappers[name](original)
            # `functools.wraps` copies the mark to another plugin's wrapper of ours.
            setattr(wrapper, _MARK, (wrapper, original))
            setattr(self._class, name, wrapper)
            self._installed[name] = wrapper

    def restore(self) -> bool:
        """Wrap a method again that someone else has put back; return True if there was one.

        Another plugin that ends may put back the method that it found when it started.
        """
        lost = False
        for name, wrapper in self._installed.items():
            if getattr(self._class, name, None) is _original_of(wrapper):
                setattr(self._class, name, wrapper)
                lost = True
        return lost

    def remove(self) -> None:
        """Restore the methods; a wrapper below another plugin's passes every call on."""
        installed, self._installed = self._installed, {}
        for name, wrapper in installed.items():
            if vars(self._class).get(name) is not wrapper:
                continue
            original = _original_of(wrapper)
            delattr(self._class, name)
            if getattr(self._class, name, None) is not original:  # it was not inherited
                setattr(self._class, name, original)

    @abstractmethod
    def _wrappers(self) -> Mapping[str, Wrapper]:
        """Return the wrappers by the names of their methods."""


def _original_of(method: Any) -> Any:
    """Return the method that a wrapper of ours replaces; any other method itself."""
    wrapper, original = getattr(method, _MARK, (None, None))
    return original if wrapper is method else method


class NativeHook(MethodHook):
    """Wrappers around a provider that may use its vendor's own tool search.

    Args:
        provider_class: AstrBot's class. Its subclasses are other vendors'.
    """

    dialect: ClassVar[Dialect]
    strategy: ClassVar[StrategyChoice]

    def __init__(self, provider_class: Any) -> None:
        super().__init__(provider_class)
        self._unable: set[str] = set()

    @abstractmethod
    def address(self, provider: Any) -> str:
        """Return the address of a provider's requests; empty if it has none."""

    def is_for(self, provider: Any) -> bool:
        """True if a provider is of the wrapped class or of a subclass."""
        return isinstance(provider, self._class)

    def profile(
        self, provider: Any, choice: NativeChoice = "auto", model: str | None = None
    ) -> ProviderProfile:
        """Return the profile of a provider of the wrapped class.

        Args:
            provider: The provider.
            choice: `auto` for native search at the vendor's own endpoint, `on` for native
                search at any endpoint, `off` for none.
            model: The model that is asked, if it is not the provider's own.
        """
        address = self.address(provider)
        name = str(model or provider.get_model())
        wanted: StrategyChoice = "generic"
        if type(provider) is self._class and address not in self._unable:
            wanted = {"auto": "auto", "on": self.strategy, "off": wanted}[choice]
        try:
            profile = profile_for(self.dialect, name, base_url=address or None, strategy=wanted)
        except UnsupportedStrategyError:
            return profile_for(self.dialect, name, base_url=address or None, strategy="generic")
        # AstrBot sends tool sets of its own making; only native search replaces them.
        return profile if profile.is_native else profile.generic()

    def request_profile(
        self, provider: Any, tools: Any, model: str | None = None
    ) -> ProviderProfile | None:
        """Return the profile for a request with a tool set of ours; None for other requests.

        Args:
            provider: The provider.
            tools: The tool set of the request.
            model: The model that is asked, if it is not the provider's own.
        """
        run = run_of(tools)
        if not self.is_installed or run is None:
            return None
        try:
            return self.profile(provider, run.settings.native(self.dialect), model)
        except MISTAKES:
            _log.exception("the abilities of %r are unknown: it gets a filtered list", provider)
            return None

    def should_filter(self, provider: Any, profile: ProviderProfile, exc: Exception) -> bool:
        """Return True if the request should be repeated with a filtered list.

        An endpoint that does not know tool search is remembered; a mistake of ours in one
        request is not.
        """
        if not profile.is_native:
            return False
        action = self._action(profile, exc)
        address = self.address(provider)
        if action.remedy == "generic_strategy":
            self._unable.add(address)
            _log.warning(
                "%s does not know tool search; it gets a filtered list from now on: %s",
                address,
                exc,
            )
            return True
        if action.references or action.remedy == "within_limit":
            _log.warning("%s gets this request with a filtered list: %s", address, exc)
            return True
        return False

    def _action(self, profile: ProviderProfile, exc: Exception) -> ErrorAction:
        status = cast("int | None", getattr(exc, "status_code", None))
        error = ProviderError(str(exc), provider=self.dialect, status=status)
        return classify_error(error, profile)


class SentNames:
    """A request of a provider with OpenAI's client, under the names that its service takes.

    Args:
        dialect: The dialect of the request.
        provider: AstrBot's provider.
        payloads: The request, which is not changed.
        tools: Its tool set; of one that is not ours, nothing is renamed.
    """

    def __init__(self, dialect: Dialect, provider: Any, payloads: Any, tools: Any) -> None:
        self._dialect, self._request = dialect, (provider, payloads, tools)
        self._kept: KeptNames | None = None

    def _rename(self) -> tuple[Any, Any, Any]:
        """Return the request under the names that its service is known to take."""
        provider, payloads, tools = self._request
        run = run_of(tools)
        if run is None:
            return self._request
        address = str(getattr(getattr(provider, "client", None), "base_url", "") or "")
        names = (run.search_tool_name, *run.executors)
        kept = KeptNames(self._dialect, str(payloads.get("model") or ""), address, names)
        self._kept = kept
        if not kept:
            return self._request
        part = "input" if "input" in payloads else "messages"
        written = [kept.instructed(each, run.search_tool_name) for each in payloads[part]]
        return provider, {**payloads, part: kept.sent(written)}, _RenamedTools(tools, kept)

    async def reply(self, original: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        """Send the request by AstrBot's method; return its response with the tools' own names."""
        while True:
            try:
                return self._own(await original(*self._rename(), *args, **kwargs))
            except Exception as exc:
                if self._kept is None or not self._kept.learn(exc):
                    raise

    async def chunks(
        self, original: Callable[..., Any], *args: Any, **kwargs: Any
    ) -> AsyncGenerator[Any, None]:
        """Yield the responses of a stream likewise."""
        while True:
            is_begun = False
            try:
                async with aclosing(original(*self._rename(), *args, **kwargs)) as chunks:
                    async for chunk in chunks:
                        is_begun = True
                        yield self._own(chunk)
            except Exception as exc:
                if is_begun or self._kept is None or not self._kept.learn(exc):
                    raise
            else:
                return

    def _own(self, response: Any) -> Any:
        """Return AstrBot's response with the tools' own names."""
        if self._kept is not None and response.tools_call_name:
            calls = [{"name": name} for name in response.tools_call_name]
            response.tools_call_name = [call["name"] for call in self._kept.own(calls)]
        return response


class _RenamedTools:
    """A tool set that writes other names."""

    def __init__(self, tools: Any, kept: KeptNames) -> None:
        self._tools, self._kept = tools, kept

    def __getattr__(self, name: str) -> Any:
        return getattr(self._tools, name)

    def __bool__(self) -> bool:
        return bool(self._tools)

    def openai_schema(self, *args: Any, **kwargs: Any) -> Any:
        """Return the list as AstrBot asks its sets for it."""
        return self._kept.sent(self._tools.openai_schema(*args, **kwargs))

    def get_func_desc_openai_style(self, *args: Any, **kwargs: Any) -> Any:
        """Return the same list, as older parts of AstrBot ask for it."""
        return self._kept.sent(self._tools.get_func_desc_openai_style(*args, **kwargs))


class KeptNamesHook(MethodHook):
    """The wrappers around AstrBot's `ProviderOpenAIOfficial`, for services that keep names."""

    def _wrappers(self) -> Mapping[str, Wrapper]:
        return {"_query": self._wrap, "_query_stream": self._wrap_stream}

    def _wrap(self, original: Callable[..., Any]) -> Callable[..., Any]:
        @wraps(original)
        async def query(provider: Any, payloads: Any, tools: Any, *args: Any, **kwargs: Any) -> Any:
            sent = SentNames("openai_chat", provider, payloads, tools)
            return await sent.reply(original, *args, **kwargs)

        return query

    def _wrap_stream(self, original: Callable[..., Any]) -> Callable[..., Any]:
        @wraps(original)
        async def query_stream(
            provider: Any, payloads: Any, tools: Any, *args: Any, **kwargs: Any
        ) -> AsyncIterator[Any]:
            sent = SentNames("openai_chat", provider, payloads, tools)
            async with aclosing(sent.chunks(original, *args, **kwargs)) as chunks:
                async for chunk in chunks:
                    yield chunk

        return query_stream


class ResetHook(MethodHook):
    """The wrapper around the start of an agent's run.

    Subagents and scheduled tasks, which no plugin sees, all start in this method.

    Args:
        runner_class: AstrBot's `ToolLoopAgentRunner`.
        prepare: Called with the event, the request, the runner and its first provider.
    """

    def __init__(self, runner_class: Any, prepare: PrepareAgent) -> None:
        super().__init__(runner_class)
        self._prepare = prepare

    def _wrappers(self) -> Mapping[str, Wrapper]:
        return {"reset": self._wrap}

    def _wrap(self, original: Callable[..., Any]) -> Callable[..., Any]:
        @wraps(original)
        async def reset(runner: Any, *args: Any, **kwargs: Any) -> Any:
            names = ("provider", "request", "run_context")
            given = {**dict(zip(names, args, strict=False)), **kwargs}
            provider, request, context = (given.get(name) for name in names)
            event = getattr(getattr(context, "context", None), "event", None)
            if self.is_installed and request is not None and event is not None:
                await self._prepare(event, request, runner, provider)
            return await original(runner, *args, **kwargs)

        return reset
