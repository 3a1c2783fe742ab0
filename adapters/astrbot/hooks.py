"""Methods of AstrBot's classes, wrapped and given back: all that its API does not offer.

Nothing here knows what a wrapper does. AstrBot is not loaded.
"""

from __future__ import annotations

import logging
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from typing import Any, ClassVar, cast

from tool_search.adapters.astrbot.settings import NativeChoice
from tool_search.adapters.astrbot.toolset import run_of
from tool_search.config.providers import Dialect, StrategyChoice
from tool_search.errors import ProviderError, UnsupportedStrategyError
from tool_search.providers.errors import ErrorAction, classify_error
from tool_search.providers.profiles import ProviderProfile, profile_for

__all__ = ["MethodHook", "NativeHook", "Wrapper"]

Wrapper = Callable[[Callable[..., Any]], Callable[..., Any]]
"""Makes a wrapper of a method."""

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
    def is_installed(self) -> bool:
        """Whether the wrappers do anything."""
        return bool(self._installed)

    def install(self) -> None:
        """Wraps the methods, in place of wrappers that an earlier load left behind.

        Raises:
            AttributeError: The class lacks one of them; then none is wrapped.
        """
        wrappers = self._wrappers()
        methods = {name: getattr(self._class, name) for name in wrappers}
        for name, method in methods.items():
            original = getattr(method, _MARK, method)
            wrapper = wrappers[name](original)
            setattr(wrapper, _MARK, original)
            setattr(self._class, name, wrapper)
            self._installed[name] = wrapper

    def remove(self) -> None:
        """Puts the methods back; under a wrapper of someone else's, ours lets all through."""
        installed, self._installed = self._installed, {}
        for name, wrapper in installed.items():
            if vars(self._class).get(name) is not wrapper:
                continue
            original = getattr(wrapper, _MARK)
            delattr(self._class, name)
            if getattr(self._class, name, None) is not original:  # it was not inherited
                setattr(self._class, name, original)

    @abstractmethod
    def _wrappers(self) -> Mapping[str, Wrapper]:
        """What is wrapped, by name."""


class NativeHook(MethodHook):
    """Wrappers around a provider that can be told of tools in its vendor's own way.

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
        """Where a provider's requests go; empty where it does not say."""

    def is_for(self, provider: Any) -> bool:
        """Whether a provider is of the wrapped class, or of a class made from it."""
        return isinstance(provider, self._class)

    def profile(
        self, provider: Any, choice: NativeChoice = "auto", model: str | None = None
    ) -> ProviderProfile:
        """What a provider of the wrapped class can do.

        Args:
            provider: The provider.
            choice: `auto`: its own way for models at the vendor's own endpoint; `on`: at
                any endpoint; `off`: nowhere.
            model: The model that is asked, where it is not the provider's own.
        """
        address = self.address(provider)
        name = str(model or provider.get_model())
        wanted: StrategyChoice = "generic"
        if type(provider) is self._class and address not in self._unable:
            wanted = {"auto": "auto", "on": self.strategy, "off": wanted}[choice]
        try:
            return profile_for(self.dialect, name, base_url=address or None, strategy=wanted)
        except UnsupportedStrategyError:
            return profile_for(self.dialect, name, base_url=address or None, strategy="generic")

    def asked(self, provider: Any, tools: Any, model: str | None = None) -> ProviderProfile | None:
        """The profile of a provider that gets a request of ours; None: the request passes.

        Args:
            provider: The provider.
            tools: The set that the request has.
            model: The model that is asked, where it is not the provider's own.
        """
        run = run_of(tools)
        if not self.is_installed or run is None:
            return None
        try:
            return self.profile(provider, run.settings.native(self.dialect), model)
        except Exception:  # noqa: BLE001  # a bot's turn must not end by a mistake of ours
            _log.exception("what %r can do is not known: its tools are filtered", provider)
            return None

    def gives_up(self, provider: Any, profile: ProviderProfile, exc: Exception) -> bool:
        """Whether an error says that the same request is to be sent as a filtered list.

        An endpoint that does not know tool search is remembered; what was our mistake in
        one request is not.
        """
        if not profile.is_native:
            return False
        verdict = self._verdict(profile, exc)
        address = self.address(provider)
        if verdict.remedy == "generic_strategy":
            self._unable.add(address)
            _log.warning(
                "%s does not know tool search; it gets a filtered list from now on: %s",
                address,
                exc,
            )
            return True
        if verdict.references or verdict.remedy == "within_limit":
            _log.warning("%s gets this request with a filtered list: %s", address, exc)
            return True
        return False

    def _verdict(self, profile: ProviderProfile, exc: Exception) -> ErrorAction:
        status = cast("int | None", getattr(exc, "status_code", None))
        error = ProviderError(str(exc), provider=self.dialect, status=status)
        return classify_error(error, profile)
