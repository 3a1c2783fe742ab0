"""Tools that a request leaves out, because this turn's user may not call them.

A list with every definition (`full`, `skills_like`, a search of the service's own) would
reveal tools to a user who may not know of them. So it has the tools that the user may
call, and those that the conversation refers to already. Each list is made once a turn, and
a change from the turn before is announced: it ends the prompt cache.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Literal

from tool_search.core.catalog.catalog import ToolCatalog
from tool_search.core.catalog.tool import Tool
from tool_search.core.discovery.modes import Mode
from tool_search.core.discovery.state import DiscoveryState
from tool_search.core.messages import Message
from tool_search.core.profiles import ProviderProfile
from tool_search.core.settings import HiddenTools

__all__ = ["LeftOut", "referred_names", "shown_tools"]

_Form = Literal["every tool", "what is shown"]


class LeftOut:
    """The tools that are left out in one conversation.

    Args:
        digests: As `digests` was when the conversation was stored.
    """

    def __init__(self, digests: Mapping[str, str] | None = None) -> None:
        self._digests = dict(digests or {})
        self._names: dict[_Form, frozenset[str]] = {}
        self._hidden: HiddenTools = "keep"

    @property
    def digests(self) -> Mapping[str, str]:
        """A digest of the left-out names for each form of list, as a store keeps it."""
        return dict(self._digests)

    def begin_turn(self, hidden: HiddenTools) -> None:
        """Begin a turn, in which the lists do not change."""
        self._names = {}
        self._hidden = hidden

    def names(
        self,
        profile: ProviderProfile,
        mode: Mode,
        *,
        catalog: ToolCatalog,
        shown: Callable[[], Iterable[Tool]],
        referred: Callable[[], Iterable[str]],
        denied: Callable[[Iterable[Tool]], frozenset[str]],
    ) -> tuple[frozenset[str], bool]:
        """Return the names that are left out, and True if the list is another than before.

        Args:
            profile: The provider.
            mode: The mode of the conversation.
            catalog: The tools.
            shown: Returns the tools that a filtered list shows the model.
            referred: Returns the names that the conversation refers to.
            denied: Returns the names of those tools that this turn's user may not call.
        """
        form = self._form(profile, mode)
        if form is None:
            return frozenset(), False
        if form in self._names:
            return self._names[form], False
        tools = [*shown(), *(catalog.active if form == "every tool" else ())]
        names = denied(tools)
        if names and self._hidden == "keep":
            names = names.difference(referred())
        self._names[form] = names
        digest = _digest(names)
        before = self._digests.get(form, digest)
        self._digests[form] = digest
        return names, before != digest

    def _form(self, profile: ProviderProfile, mode: Mode) -> _Form | None:
        """Return which list shows tools that this user may not call; None: none does."""
        searches_itself = profile.search_form == "hosted" and profile.is_native
        if mode != "tool_search" or searches_itself:
            return "every tool"
        return "what is shown" if self._hidden == "strict" else None


def _digest(names: frozenset[str]) -> str:
    written = "\0".join(sorted(names)).encode("utf-8", "replace")
    return hashlib.sha256(written).hexdigest()[:16] if names else ""


def referred_names(
    discoveries: DiscoveryState, history: Iterable[Message], catalog: ToolCatalog
) -> Iterator[str]:
    """Yield the tools that a conversation refers to: discovered, or called with success.

    A call that failed is not a reference: a user who guesses a hidden name would learn of it.
    """
    yield from discoveries.names
    for message in history:
        if message.role == "tool" and message.name and not message.is_error:
            tool = catalog.by_wire_name.get(message.name)
            yield message.name if tool is None else tool.name


def shown_tools(
    core: Iterable[str], discoveries: DiscoveryState, catalog: ToolCatalog
) -> Iterator[Tool]:
    """Yield the tools that a filtered list may have: the core and the discoveries."""
    yield from (catalog[name] for name in core if catalog.is_active(name))
    for entry in discoveries:
        yield catalog.get(entry.name) or entry.tool
