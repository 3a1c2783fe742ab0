"""A store over a few primitives: conversations, evidence, grants, and what erases all of it.

A store that runs a section whole erases exactly what it exported. In another one, a conversation
is erased only if it is still as it was exported.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from typing import Any, NamedTuple

from tool_search.errors import StoreError
from tool_search.search.learned import Evidence
from tool_search.stores.base import ConversationKey, Grant
from tool_search.stores.conversations import (
    Erased,
    Export,
    Selection,
    StoredConversations,
    evidence_object,
    select_learned,
)
from tool_search.stores.evidence import StoredEvidence
from tool_search.stores.grants import StoredGrants, read_grants

__all__ = ["StoreCore"]


class _Selected(NamedTuple):
    """Selected data at one moment.

    Attributes:
        places: The places of the conversations.
        grants: The grants, without those of conversations.
        of_conversations: The grants of the conversations.
        evidence: The evidence.
    """

    places: Sequence[Any]
    grants: Sequence[Grant]
    of_conversations: Sequence[Grant]
    evidence: Sequence[Evidence]


class StoreCore(StoredConversations, StoredEvidence, StoredGrants):
    """A store with all that one may keep, over its primitives; see `docs/extending/store.md`.

    It has every protocol of `tool_search.stores` but `TurnLockStore`, whose two methods are
    primitives themselves. A conversation has a place: what the store finds it by, which is its
    key if the store has nothing else.
    """

    def _place(self, key: ConversationKey) -> Any:
        """Return the place of a conversation."""
        return key

    @abstractmethod
    async def _list_places(self) -> Sequence[Any]:
        """Return the places of all conversations, with those that were set aside."""

    @abstractmethod
    async def _export_place(self, place: Any) -> tuple[object, dict[str, Any]]:
        """Return the state of a conversation, and all its data as JSON values, with its `key`."""

    @abstractmethod
    async def _erase_place(self, place: Any, state: object) -> int:
        """Erase a conversation and its mode; return the number of erased conversations.

        Args:
            place: Its place.
            state: The state that it must have; None: any. If it has another, -1 is returned.
        """

    async def _forget(self, key: ConversationKey) -> None:
        self._parts.pop(key, None)
        await self._erase_grants_that(lambda grant: grant.conversation == key)
        await self._erase_place(self._place(key), None)

    async def _erase_rest(self, selection: Selection) -> None:
        """Erase what cannot be read, of the kinds that are selected whole."""

    async def erase(self, selection: Selection, *, export: Export | None = None) -> Erased:
        """Erase all selected data; return the numbers of entries.

        Args:
            selection: The data to erase.
            export: Writes the data first. A conversation that goes on meanwhile is not erased,
                and a StoreError says so at the end.

        Raises:
            Exception: Any exception of `export`; then nothing was erased.
        """
        return await self._section(partial(self._erase, selection, export), "durable")

    async def _erase(self, selection: Selection, export: Export | None) -> Erased:
        selected = await self._select(selection)
        states: dict[Any, object] = {}
        if export is not None:
            await self._aside(export, self._parts_of(selected, states))
        counts = [
            await self._erase_place(place, states.get(place))
            for place in selected.places
            # What was not exported was not there.
            if export is None or place in states
        ]
        known, granted = set(selected.evidence), {*selected.grants, *selected.of_conversations}
        learned = await self._erase_evidence(lambda every: [e for e in every if e in known])
        grants = await self._erase_grants_that(lambda grant: grant in granted)
        await self._erase_rest(selection)
        if -1 in counts:
            raise StoreError(
                f"{counts.count(-1)} of the conversations went on while they were exported, and "
                "are not erased; the others are. Export these again, to another file",
                fault="locked",
            )
        return Erased(evidence=learned, conversations=sum(counts), grants=grants)

    async def _select(self, selection: Selection) -> _Selected:
        keys, users = selection.conversations, selection.users
        _, texts = await self._grants()
        grants = read_grants(texts).values()
        evidence: list[Evidence] = []
        if selection != Selection():
            # To erase all of it, no salt is needed.
            salt = None if selection.tools is None else await self._salt(None)
            rows = await self._evidence(None, 0.0)
            evidence = select_learned(rows.entries, selection, salt)
        return _Selected(
            places=await self._list_places()
            if keys is None
            else [self._place(key) for key in dict.fromkeys(keys)],
            grants=[grant for grant in grants if users is None or grant.user in users],
            of_conversations=[
                grant
                for grant in grants
                if grant.conversation is not None and (keys is None or grant.conversation in keys)
            ],
            evidence=evidence,
        )

    def _parts_of(
        self, selected: _Selected, states: dict[Any, object]
    ) -> dict[str, Iterable[dict[str, Any]]]:
        """Return what an export writes, and note the states of the conversations meanwhile."""
        ask = self._asking()

        def conversations() -> Iterator[dict[str, Any]]:
            of_place: dict[Any, list[Grant]] = {}
            for grant in selected.of_conversations:
                of_place.setdefault(self._place(str(grant.conversation)), []).append(grant)
            for place in selected.places:
                state, content = ask(self._export_place(place))
                grants = of_place.get(place, [])
                if content or grants:
                    states[place] = state
                    named = {"key": content.pop("key", None) or grants[0].conversation}
                    granted = {"grants": [grant.to_dict() for grant in grants]} if grants else {}
                    yield {**named, **content, **granted}

        return {
            "conversations": conversations(),
            "grants": (grant.to_dict() for grant in selected.grants),
            "evidence": map(evidence_object, selected.evidence),
        }
