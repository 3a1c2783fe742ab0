"""The bound of all evidence, with a number that a test can reach exactly."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.stores.conftest import Store
from tests.stores.contents import NOW, kept_in, success
from tool_search.search import learned
from tool_search.search.learned import HALF_LIFE_S
from tool_search.stores import evidence as stored_evidence


async def test_the_whole_store_is_shared_between_sources(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    for module in (learned, stored_evidence):
        monkeypatch.setattr(module, "MAX_EVIDENCE", 4)
    honest = replace(success("t", "letter", at=NOW - HALF_LIFE_S), source="ann")
    await store.add_evidence([honest])
    for n in range(8):
        await store.add_evidence([replace(success(f"t{n}", "w", at=NOW + n), source="bob")])
    left = await kept_in(store)
    assert honest in left
    assert {entry.tool for entry in left - {honest}} == {"t5", "t6", "t7"}
