"""Records from elsewhere: tampered with, cut off, or of a later version."""

from __future__ import annotations

import asyncio
import copy
import json
import random
import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.conversations import BOUND, CLAUDE, OPENAI, Chat, tool, toolbox
from tool_search import (
    ConversationRecord,
    Message,
    RequestPlan,
    ToolCatalog,
    ToolSearchSession,
    profile_for,
)
from tool_search.adapters.anthropic import to_wire as to_anthropic
from tool_search.adapters.openai_chat import to_wire as to_openai_chat
from tool_search.adapters.openai_responses import to_wire as to_openai_responses
from tool_search.core.messages import ImagePart, NativeReply, TextPart, user_message
from tool_search.core.profiles import ProviderProfile
from tool_search.errors import UnreadableRecordError
from tool_search.stores import SQLiteStore

KEY = "group:../../42"
RESPONSES = profile_for("openai_responses", "gpt-5.5")
WRITERS: list[tuple[ProviderProfile, Callable[[RequestPlan, ProviderProfile], object]]] = [
    (CLAUDE, to_anthropic),
    (BOUND, to_anthropic),
    (OPENAI, to_openai_chat),
    (RESPONSES, to_openai_responses),
]


def _records() -> list[dict[str, Any]]:
    """Records of conversations with all that one may have."""
    chat = Chat(toolbox(9, core=1))
    chat.begin()
    chat.find("tool_003")
    chat.call("tool_003", {"count": 1})
    chat.answer()
    chat.turn(BOUND)
    blocks = ({"type": "thinking", "thinking": "Hm.", "signature": "x"}, {"type": "text"})
    chat.begin(BOUND)
    reply = Message(role="assistant", content="Hi.", native=NativeReply(BOUND.origin, blocks))
    chat.session.accept(reply)
    parts = user_message([TextPart("Look"), ImagePart("https://example.com/a.png")])
    chat.session.adopt_history([parts, Message(role="assistant", content="Nice.")])
    chat.begin(CLAUDE, "And now?")
    chat.calls(("tool_005", {"count": 2}), ("nobody", "{"))
    chat.answer()
    full = Chat(toolbox(2), {"tool_schema_mode": "full"})
    full.turn()
    made = [chat.session.record().to_dict(), full.session.record().to_dict()]
    assert made[0]["anchors"]
    return [json.loads(json.dumps(record)) for record in made]


RECORDS = _records()
CATALOG = ToolCatalog([*toolbox(9, core=1), tool("late")])
_DEEP = "in its place come many brackets"
_VALUES: list[Any] = [
    None, True, False, 0, -1, 10**30, 1.5, "", "x", "\ud800", "../../etc/passwd", "\0", [], {},
    [[]], {"": ""}, {"a": None}, _DEEP, [1, "2"], "tool", "assistant", "x" * 5000,
]  # fmt: skip


def _places(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    yield path
    if isinstance(value, dict | list) and len(path) < 12:
        inner = value.items() if isinstance(value, dict) else enumerate(value)
        for key, part in inner:
            yield from _places(part, (*path, key))


def _mutated(chance: random.Random) -> str:
    """The text of a record, with a change that nobody made by accident."""
    record = copy.deepcopy(chance.choice(RECORDS))
    for _ in range(chance.choice((1, 1, 1, 2, 4))):
        path = chance.choice(list(_places(record))[1:] or [()])
        if not path:
            return json.dumps(chance.choice(_VALUES))
        holder = record
        for step in path[:-1]:
            holder = holder[step]
        _change(holder, path[-1], chance)
    depth = chance.choice((50, 390, 900, 50_000))
    text = json.dumps(record).replace(json.dumps(_DEEP), "[" * depth + "]" * depth)
    return text if chance.random() > 0.1 else _damaged(text, chance)


def _change(holder: Any, key: Any, chance: random.Random) -> None:
    change = chance.randrange(4)
    if change == 0:
        del holder[key]
    elif change == 1 and isinstance(holder, list):
        holder.insert(chance.randrange(len(holder) + 1), copy.deepcopy(holder[key]))
    elif change == 1:
        holder[chance.choice(("new", "is_error", "version", "kind", "parameters"))] = holder[key]
    elif change == 2 and isinstance(holder, list):
        chance.shuffle(holder)
    else:
        holder[key] = copy.deepcopy(chance.choice(_VALUES))


def _damaged(text: str, chance: random.Random) -> str:
    place = chance.randrange(len(text))
    return chance.choice((text[:place], text[:place] + "\x00" + text[place + 1 :], text + text))


def _goes_on(record: ConversationRecord) -> None:
    """A conversation from an accepted record, with any content, makes its next requests."""
    session = ToolSearchSession(CATALOG, record=record)
    for profile, to_wire in WRITERS:
        session.begin_turn("Go on", profile=profile)
        to_wire(session.plan(profile), profile)
        session.accept(Message(role="assistant", content="Done."))
    ConversationRecord.from_dict(json.loads(json.dumps(session.record().to_dict())))


@pytest.mark.parametrize("count", [250, pytest.param(20_000, marks=pytest.mark.long)])
async def test_a_mutated_record_is_refused_by_name_or_goes_on(tmp_path: Path, count: int) -> None:
    """It causes no other error, and the next conversation of that key can be saved."""
    path = tmp_path / "store.db"
    refused: list[str] = []
    slowest = 0.0, 0
    async with SQLiteStore(path) as store:
        await store.save(KEY, ConversationRecord.from_dict(RECORDS[0]))
        other = sqlite3.connect(path, isolation_level=None)
        for seed in range(count):
            text = _mutated(random.Random(seed))
            other.execute("UPDATE conversation SET record = ?", (text,))
            began = time.thread_time()
            try:
                record = await store.load(KEY)
            except UnreadableRecordError as exc:
                refused.append(str(exc))
            else:
                assert record is not None
                _goes_on(record)
            slowest = max(slowest, (time.thread_time() - began, seed))
        other.close()
    assert [said for said in refused if repr(KEY) not in said] == []
    assert count * 0.1 < len(refused) < count * 0.9
    print(f"{count} records, {len(refused)} refused; slowest {slowest[0]:.3f} s, seed {slowest[1]}")  # noqa: T201


_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner),
    max_leaves=8,
)


@given(st.sampled_from(sorted(RECORDS[0])), _JSON)
@settings(max_examples=60)
def test_any_json_in_the_place_of_a_part_is_refused_by_name_or_goes_on(
    key: str, value: Any
) -> None:
    try:
        record = ConversationRecord.from_dict({**RECORDS[0], key: value})
    except UnreadableRecordError:
        return
    _goes_on(record)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"version": 2}, "it is of version 2, known is 1; update the library"),
        ({"version": "1"}, "it is of version '1'"),
        ({"version": True}, "it is of version True"),
        ({"mode": "telepathy"}, "mode: input should be 'full'"),
        ({"history": [{"role": "user"}]}, "history.0.content: field required"),
        ({"history": [{"role": "tool", "content": "", "tool_call_id": "x"}]}, "history.0: it is"),
        ({"search_tool": {"name": ""}}, "its name is empty"),
        ({"roster": None}, "roster"),
        ({"history": 5, "anchors": 5, "language": 5, "mode": 5}, "and 1 more"),
    ],
)  # fmt: skip
def test_what_is_wrong_with_a_record_is_named(change: dict[str, Any], said: str) -> None:
    with pytest.raises(UnreadableRecordError) as caught:
        ConversationRecord.from_dict({**RECORDS[0], **change})
    assert said in str(caught.value)


def test_additions_of_a_later_version_are_passed_over() -> None:
    record = ConversationRecord.from_dict({**RECORDS[0], "mood": "good"})
    assert record == ConversationRecord.from_dict(RECORDS[0])


async def test_a_discovery_that_cannot_be_read_is_refused_by_name(tmp_path: Path) -> None:
    path = tmp_path / "store.db"
    async with SQLiteStore(path) as store:
        await store.save(KEY, ConversationRecord.from_dict(RECORDS[0]))
        other = sqlite3.connect(path, isolation_level=None)
        for tool_text in (
            "{", "[]", '{"name": 5}', '{"name": "a", "kind": "x"}', "[" * 99_999, b"{}", 5,
        ):  # fmt: skip
            other.execute("UPDATE discovery SET tool = ?", (tool_text,))
            with pytest.raises(UnreadableRecordError, match="group:"):
                await store.load(KEY)
            with pytest.raises(UnreadableRecordError, match="group:"):
                await store.append_discoveries(KEY, ())
        other.close()


@pytest.mark.parametrize("content", [b"\xff\x00", 5, 1.5, "CAST(x'ff22' AS TEXT)"])
@pytest.mark.parametrize("column", ["record", "content"])
async def test_what_is_no_text_is_refused_by_name(
    tmp_path: Path, column: str, content: object
) -> None:
    path = tmp_path / "store.db"
    table = "conversation" if column == "record" else "message"
    async with SQLiteStore(path) as store:
        await store.save(KEY, ConversationRecord.from_dict(RECORDS[0]))
        other = sqlite3.connect(path, isolation_level=None)
        value = content if isinstance(content, str) and "CAST" in content else "?"
        bound = () if value != "?" else (content,)
        other.execute(f"UPDATE {table} SET {column} = {value}", bound)  # noqa: S608  # the test's
        other.close()
        with pytest.raises(UnreadableRecordError, match="group:"):
            await store.load(KEY)
        await store.set_aside(KEY)
        assert await store.load(KEY) is None


async def test_keys_that_are_no_text_are_erased_with_all(tmp_path: Path) -> None:
    """Nobody can name them."""
    path = tmp_path / "store.db"
    async with SQLiteStore(path) as store:
        await store.save("a", ConversationRecord.from_dict(RECORDS[0]))
        other = sqlite3.connect(path, isolation_level=None)
        for key in ("x'ff'", "CAST(x'ff22' AS TEXT)"):
            other.execute(f"INSERT INTO conversation VALUES ({key}, 'planted')")  # noqa: S608
        other.close()
        assert len(await store.conversations()) == 3
        assert await store.forget_conversations() == 3
        assert await store.conversations() == ()
    assert b"planted" not in path.read_bytes()


OPENED = """
import asyncio, json, sys
from pathlib import Path
from tests.conversations import CLAUDE, toolbox
from tool_search import ToolCatalog, ToolSearchSession
from tool_search.adapters.anthropic import to_wire
from tool_search.stores import SQLiteStore

opened = []
sys.addaudithook(lambda event, args: opened.append(repr(args)) if event in
    ("open", "os.mkdir", "os.rename", "os.remove", "sqlite3.connect", "import") else None)

async def main(path, key):
    async with SQLiteStore(path) as store:
        record = await store.load(key)
        session = ToolSearchSession(ToolCatalog(toolbox(9)), record=record)
        session.begin_turn("Go on", profile=CLAUDE)
        to_wire(session.plan(CLAUDE), CLAUDE)
        session.close_open_calls()
        await store.save(key, session.record())
        await store.append_discoveries(key, record.discoveries)
        await store.forget(key)

asyncio.run(main(sys.argv[1], sys.argv[2]))
print(json.dumps(opened))
"""


def test_nothing_of_a_record_becomes_a_path(tmp_path: Path) -> None:
    """Neither its key nor any text in it: no file is opened or made under such a name."""
    planted = "../../../planted"
    content = json.loads(
        json.dumps(RECORDS[0])
        .replace("tool_003", planted)
        .replace("Common", planted)
        .replace("https://example.com/a.png", f"file:///{planted}")
        .replace("hello", f"/{planted}")
    )
    path = tmp_path / "a" / "b" / "store.db"

    async def fill() -> None:
        async with SQLiteStore(path) as store:
            await store.save(planted, ConversationRecord.from_dict(content))

    asyncio.run(fill())
    command = [sys.executable, "-c", OPENED, str(path), planted]
    done = subprocess.run(command, check=True, capture_output=True, timeout=60)  # noqa: S603
    opened = json.loads(done.stdout)
    assert any("store.db" in one for one in opened)
    assert [one for one in opened if "planted" in one] == []
