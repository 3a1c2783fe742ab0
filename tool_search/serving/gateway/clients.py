"""The clients of a gateway: what each is shown, has found, and has taught."""

from __future__ import annotations

import itertools
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

from tool_search.core.services import Lesson
from tool_search.search.discovery.search_services import SearchTrail
from tool_search.serving.gateway.exposure import ExposedTools, ExposureSettings
from tool_search.serving.gateway.offer import Offer
from tool_search.sources.base import ListKind

__all__ = ["GatewayClient", "GatewayClients"]

# More than the sessions that the transport keeps, which end by themselves.
_MAX_CLIENTS = 2_000


@dataclass(slots=True, eq=False)
class GatewayClient:
    """One client that can be told apart from the others, or all that cannot.

    Attributes:
        key: The name of its session.
        exposed: What it is shown.
        can_follow: True if its list follows its searches.
        user: The authenticated client; None: unknown.
        notify: Sends the message that a list of it has changed, apart from any request of its.
        trail: Its searches and calls, from which searches learn.
        has_called: True if a tool was called since its last search.
        listeners: The transport's own object for its subscriptions.
        watched: The ends of its subscriptions to resources, by address.
        is_closed: True if its session is over.
    """

    key: str
    exposed: ExposedTools
    can_follow: bool = True
    user: str | None = None
    notify: Callable[[ListKind], Awaitable[None]] | None = None
    trail: SearchTrail = field(default_factory=SearchTrail, repr=False)
    has_called: bool = False
    listeners: Any = field(default=None, repr=False)
    watched: dict[str, Callable[[], None]] = field(default_factory=dict, repr=False)
    is_closed: bool = False

    def drain_lessons(self) -> tuple[Lesson, ...]:
        """Return what its searches have taught since the last call of this method."""
        return self.trail.drain_lessons()

    def close(self) -> None:
        """End its subscriptions."""
        self.is_closed = True
        while self.watched:
            self.watched.popitem()[1]()


class GatewayClients:
    """All clients of a gateway; the one that was away the longest is forgotten first.

    Args:
        settings: What clients are shown.
    """

    def __init__(self, settings: ExposureSettings) -> None:
        self._settings = settings
        self._known: OrderedDict[str, GatewayClient] = OrderedDict()
        self._numbers = itertools.count(1)
        self._others: GatewayClient | None = None
        self._model: tuple[Offer, ExposedTools] | None = None

    def __iter__(self) -> Iterator[GatewayClient]:
        yield from tuple(self._known.values())
        if self._others is not None:
            yield self._others

    def __len__(self) -> int:
        return len(self._known)

    def open_session(self, offer: Offer, *, user: str | None = None) -> GatewayClient:
        """Return the client of a new session."""
        return self._new(f"session-{next(self._numbers)}", offer, user)

    def of_user(self, user: str, offer: Offer) -> GatewayClient:
        """Return an authenticated client of the protocol without sessions."""
        return self._get(f"user-{user}", offer, user)

    def of_process(self, offer: Offer) -> GatewayClient:
        """Return the one client of a process."""
        return self._get("process", offer, None)

    def others(self, offer: Offer) -> GatewayClient:
        """Return what all clients share that cannot be told apart."""
        if self._others is None:
            exposed = ExposedTools(self._settings, offer.offered, can_follow=False)
            self._others = GatewayClient("others", exposed, can_follow=False)
        return self._others

    def close(self, client: GatewayClient) -> None:
        """Forget a client whose session is over."""
        self._known.pop(client.key, None)
        client.close()

    def _get(self, key: str, offer: Offer, user: str | None) -> GatewayClient:
        known = self._known.get(key)
        if known is not None:
            self._known.move_to_end(key)
            return known
        return self._new(key, offer, user)

    def _new(self, key: str, offer: Offer, user: str | None) -> GatewayClient:
        if self._model is None or self._model[0] is not offer:
            self._model = offer, ExposedTools(self._settings, offer.offered)
        client = GatewayClient(key, self._model[1].fresh(), user=user)
        self._known[key] = client
        while len(self._known) > _MAX_CLIENTS:
            self._known.popitem(last=False)[1].close()
        return client
