"""Conversations in every store."""

from __future__ import annotations

import asyncio

from tests.conversations import Chat, tool, toolbox
from tests.stores.conftest import Store
from tool_search import ConversationRecord, Discovery


def record(*found: str) -> ConversationRecord:
    """A conversation that found these tools."""
    chat = Chat(toolbox(9))
    chat.begin()
    chat.find(*found)
    return chat.session.record()


def discoveries(*names: str) -> list[Discovery]:
    """Discoveries of these tools."""
    return [Discovery(tool=tool(name)) for name in names]


async def loaded_names(store: Store, key: str) -> list[str]:
    """Return the discoveries of a stored conversation."""
    content = await store.load(key)
    assert content is not None
    return [entry.name for entry in content.discoveries]


async def test_a_new_conversation_is_not_there(store: Store) -> None:
    assert await store.load("a") is None
    await store.forget("a")


async def test_what_was_saved_is_loaded(store: Store) -> None:
    one, other = record("tool_003"), record()
    await store.save("a", one)
    await store.save("b", other)
    assert (await store.load("a"), await store.load("b")) == (one, other)


async def test_discoveries_are_added_behind_those_there_are(store: Store) -> None:
    await store.save("a", record("tool_003"))
    entries = await store.append_discoveries("a", discoveries("tool_005", "tool_003"))
    assert [entry.name for entry in entries] == ["tool_003", "tool_005"]
    assert await loaded_names(store, "a") == ["tool_003", "tool_005"]


async def test_saving_keeps_what_was_appended_meanwhile(store: Store) -> None:
    before = record("tool_003")
    await store.save("a", before)
    await store.append_discoveries("a", discoveries("tool_005"))
    await store.save("a", before)
    assert await loaded_names(store, "a") == ["tool_003", "tool_005"]


async def test_discoveries_before_the_first_save_are_kept(store: Store) -> None:
    """They are committed with their search result, the record at the end of the turn."""
    await store.append_discoveries("a", discoveries("tool_005"))
    await store.save("a", record("tool_003"))
    assert await loaded_names(store, "a") == ["tool_005", "tool_003"]


async def test_saving_keeps_the_newest_definitions(store: Store) -> None:
    """They replace tools of a server that disconnects."""
    await store.append_discoveries("a", [Discovery(tool=tool("tool_003", description="Old."))])
    await store.save("a", record("tool_003"))
    content = await store.load("a")
    assert content is not None
    assert content.discoveries[0].tool.description == "Common tool_003."


async def test_a_forgotten_conversation_is_gone_with_all_it_found(store: Store) -> None:
    await store.save("a", record("tool_003"))
    await store.forget("a")
    assert await store.load("a") is None
    assert await store.append_discoveries("a", discoveries("tool_005")) == tuple(
        discoveries("tool_005")
    )


async def test_a_forgotten_conversation_takes_no_other_with_it(store: Store) -> None:
    await store.save("a", record("tool_003"))
    await store.save("b", record("tool_005"))
    await store.forget("a")
    assert await loaded_names(store, "b") == ["tool_005"]


async def test_discoveries_of_several_tasks_are_all_kept(store: Store) -> None:
    names = [f"tool_{number:03}" for number in range(20)]
    orders = await asyncio.gather(
        *(store.append_discoveries("a", discoveries(name)) for name in names)
    )
    whole = max(orders, key=len)
    assert {entry.name for entry in whole} == set(names)
    assert all(order == whole[: len(order)] for order in orders)


async def test_any_text_is_a_key(store: Store) -> None:
    for key in ("", "群聊:42", "a'b\"c", "x\ny", "🙂"):
        await store.save(key, record("tool_003"))
        assert await loaded_names(store, key) == ["tool_003"]
