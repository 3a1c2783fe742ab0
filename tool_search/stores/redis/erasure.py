"""Export and erasure of selected data in Redis.

Conversations are in different slots of a cluster, so there is no transaction over all of them.
A conversation is erased only if it is still as it was exported.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable, Coroutine, Iterable, Iterator
from typing import Any, NamedTuple, TypeVar

from tool_search.errors import StoreError
from tool_search.search.learned import Evidence
from tool_search.stores.base import Grant
from tool_search.stores.erasure import (
    Erased,
    Export,
    Selection,
    as_json,
    evidence_object,
    select_learned,
)
from tool_search.stores.redis.connection import RedisConnection
from tool_search.stores.redis.conversations import RedisConversations
from tool_search.stores.redis.evidence import RedisEvidence
from tool_search.stores.redis.grants import RedisGrants
from tool_search.stores.redis.keys import Keys, read_key
from tool_search.stores.redis.scripts import FORGET, Script

__all__ = ["RedisErasure"]

_PAGE_BYTES = 250_000
_REWRITE_S = 120.0
_PAUSE_S = 0.05
_ASIDE = re.compile(r"(\d+)\.(record|version|message|found)(?:\.(\d+))?")
_T = TypeVar("_T")

# Any change of the conversation changes this text: a save its revision, a discovery their number.
_STATE = """
local head, messages, found, mode, aside = KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5]
local function state()
    return table.concat({
        redis.call('HGET', head, 'revision') or '-', redis.call('HGET', head, 'at') or '-',
        redis.call('LLEN', messages), redis.call('HLEN', found), redis.call('HLEN', aside),
        redis.call('GET', mode) or '-',
    }, ' ')
end
"""
# Returns {state, written key, record, discoveries, mode, what was set aside, number of messages}.
_EXPORT = Script(
    _STATE
    + """
local kept = redis.call('HMGET', head, 'key', 'record')
return {
    state(), kept[1], kept[2], redis.call('HVALS', found), redis.call('GET', mode),
    redis.call('HGETALL', aside), redis.call('LLEN', messages),
}
""",
    flags="no-writes",
)
# ARGV: state, first message, bytes. Returns messages of about so many bytes; nil: it has changed.
_EXPORT_PAGE = Script(
    _STATE
    + """
if state() ~= ARGV[1] then return false end
local start, most, taken, size = tonumber(ARGV[2]), tonumber(ARGV[3]), {}, 0
while size < most do
    local some = redis.call('LRANGE', messages, start + #taken, start + #taken)
    if #some == 0 then break end
    taken[#taken + 1] = some[1]
    size = size + #some[1]
end
return taken
""",
    flags="no-writes",
)
# ARGV: state. Returns the number of conversations that were erased; -1: it has changed.
_FORGET_IF = Script(
    _STATE
    + """
if state() ~= ARGV[1] then return -1 end
return math.min(1, redis.call('UNLINK', unpack(KEYS)))
""",
    flags="allow-oom",
)


class _Selected(NamedTuple):
    """Selected data at one moment.

    Attributes:
        conversations: The keys in Redis of each conversation.
        grants: The grants, without those of conversations.
        of_conversations: The grants of the conversations.
        evidence: The evidence.
    """

    conversations: list[tuple[str, ...]]
    grants: list[Grant]
    of_conversations: list[Grant]
    evidence: list[Evidence]


class RedisErasure:
    """Erasure in one store.

    Args:
        connection: The connection.
        keys: The keys of the store.
        conversations: Its conversations.
        evidence: Its evidence.
        grants: Its grants.
    """

    def __init__(
        self,
        connection: RedisConnection,
        keys: Keys,
        *,
        conversations: RedisConversations,
        evidence: RedisEvidence,
        grants: RedisGrants,
    ) -> None:
        self._connection = connection
        self._keys = keys
        self._conversations = conversations
        self._evidence = evidence
        self._grants = grants

    async def erase(self, selection: Selection, export: Export | None) -> Erased:
        """Erase all selected data, after its export; return the numbers of entries."""
        selected = await self._select(selection)
        states: dict[tuple[str, ...], bytes] = {}
        if export is not None:
            # In a thread: it writes a file, and asks for one conversation after the other.
            await asyncio.to_thread(
                export, self._parts(selected, states, asyncio.get_running_loop())
            )
        changed = erased = 0
        for keys in selected.conversations:
            gone = await self._forget(keys, states.get(keys), is_exported=export is not None)
            changed += gone < 0
            erased += max(0, gone)
        await self._erase_staged({self._keys.tag(each[0]) for each in selected.conversations})
        known = set(selected.evidence)
        learned = await self._evidence.erase(lambda every: [e for e in every if e in known])
        granted = {*selected.grants, *selected.of_conversations}
        grants = await self._grants.erase(lambda grant: grant in granted)
        if selection.tools is None:
            await self._evidence.clear()
        if selection.users is None:
            await self._grants.clear()
        if changed:
            raise StoreError(
                f"{changed} of the conversations went on while they were exported, and are not "
                "erased; the others are. Export these again, to another file",
                fault="locked",
            )
        return Erased(evidence=learned, conversations=erased, grants=grants)

    async def rewrite(self) -> str:
        """Let the servers write their files anew, without erased data.

        Returns:
            The reason why erased data may be left in a file; empty if there is none.
        """
        try:
            async with asyncio.timeout(_REWRITE_S):
                saves = await self._connection.each_node("CONFIG", "GET", "save")
                if any(any(answer[1::2]) for answer in saves.values()):
                    await self._connection.each_node("BGSAVE", "SCHEDULE")
                    await self._wait("rdb_bgsave_in_progress")
                files = await self._connection.each_node("INFO", "persistence")
                if any(each.get("aof_enabled") for each in files.values()):
                    await self._connection.each_node("BGREWRITEAOF")
                    await self._wait("aof_rewrite_in_progress", "aof_rewrite_scheduled")
        except TimeoutError:
            return f"the server takes longer than {_REWRITE_S:g} s to write its files anew"
        except StoreError as exc:
            return str(exc)
        return ""

    async def _wait(self, *flags: str) -> None:
        """Wait until no node does this any more."""
        while True:
            files = await self._connection.each_node("INFO", "persistence")
            if not any(each.get(flag) for each in files.values() for flag in flags):
                return
            await asyncio.sleep(_PAUSE_S)

    async def _select(self, selection: Selection) -> _Selected:
        keys, users = selection.conversations, selection.users
        grants = (await self._grants.load()).entries
        evidence: list[Evidence] = []
        if selection != Selection():
            known = (await self._evidence.load()).entries
            # To erase all of it, no salt is needed.
            salt = None if selection.tools is None else await self._evidence.known_salt()
            evidence = select_learned(known, selection, salt)
        named = keys or ()
        heads = await self._conversations.list_heads() if keys is None else ()
        return _Selected(
            conversations=[self._keys.of_head(head.key) for head in heads]
            or [self._keys.conversation(key) for key in dict.fromkeys(named)],
            grants=[grant for grant in grants if users is None or grant.user in users],
            of_conversations=[
                grant
                for grant in grants
                if grant.conversation is not None and (keys is None or grant.conversation in named)
            ],
            evidence=evidence,
        )

    async def _forget(
        self, keys: tuple[str, ...], state: bytes | None, *, is_exported: bool
    ) -> int:
        if not is_exported:
            return int(await self._connection.run(FORGET, keys))
        if state is None:
            return 0  # nothing was there
        return int(await self._connection.run(_FORGET_IF, keys, state))

    async def _erase_staged(self, tags: set[str]) -> None:
        """Erase messages that a large save has sent, and has not yet added."""
        if not tags:
            return
        for key in await self._connection.matching(self._keys.staging):
            name = key.decode("utf-8", "replace")
            if self._keys.tag(name) in tags:
                await self._connection.run(FORGET, (name,))

    def _parts(
        self,
        selected: _Selected,
        states: dict[tuple[str, ...], bytes],
        loop: asyncio.AbstractEventLoop,
    ) -> dict[str, Iterable[dict[str, Any]]]:
        """Return what an export writes; called and read in another thread."""
        return {
            "conversations": self._exported(selected, states, loop),
            "grants": (grant.to_dict() for grant in selected.grants),
            "evidence": map(evidence_object, selected.evidence),
        }

    def _exported(
        self,
        selected: _Selected,
        states: dict[tuple[str, ...], bytes],
        loop: asyncio.AbstractEventLoop,
    ) -> Iterator[dict[str, Any]]:
        asked = _asking(loop)
        for keys in selected.conversations:
            state, content = asked(self._read(keys))
            grants = [
                grant.to_dict()
                for grant in selected.of_conversations
                if self._keys.conversation(str(grant.conversation)) == keys
            ]
            if content or grants:
                states[keys] = state
                named = {"key": content.pop("key", None) or grants[0]["conversation"]}
                yield {**named, **content, **({"grants": grants} if grants else {})}

    async def _read(self, keys: tuple[str, ...]) -> tuple[bytes, dict[str, Any]]:
        """Return the state of a conversation, and its stored data as JSON values."""
        while True:
            answer = await self._connection.run(_EXPORT, keys)
            state, name, record, found, mode, aside, count = answer
            messages: list[bytes] | None = []
            while messages is not None and len(messages) < count:
                page = await self._connection.run(
                    _EXPORT_PAGE, keys, state, len(messages), _PAGE_BYTES
                )
                messages = messages + page if page else None
            if messages is not None:
                break
        parts = {
            "record": None if record is None else _value(record),
            "history": [_value(message) for message in messages],
            "discoveries": _found(found),
            "set_aside": _set_aside(aside),
            "permission_mode": None if mode is None else mode.decode("utf-8", "replace"),
        }
        content = {kind: part for kind, part in parts.items() if part}
        return state, {"key": read_key(name), **content} if name is not None else content


def _asking(loop: asyncio.AbstractEventLoop) -> Callable[[Coroutine[Any, Any, _T]], _T]:
    """Return a function for another thread that runs a coroutine in a loop."""
    return lambda work: asyncio.run_coroutine_threadsafe(work, loop).result()


def _value(content: bytes) -> Any:
    return as_json(content.decode("utf-8", "replace"))


def _found(entries: Iterable[bytes]) -> list[Any]:
    """Return the tools of discoveries in order; those that cannot be read as text."""
    parts = (entry.split(b" ", 2) for entry in entries)
    placed = [
        (int(part[0]), _value(part[2]))
        if len(part) > 2 and part[0].isdigit()
        else (-1, _value(b" ".join(part)))
        for part in parts
    ]
    return [tool for _, tool in sorted(placed, key=lambda pair: pair[0])]


def _set_aside(flat: list[bytes]) -> list[dict[str, Any]]:
    """Return the data that was set aside, as an export of SQLite has it."""
    kept: dict[int, dict[str, Any]] = {}
    named = {key.decode("utf-8", "replace"): value for key, value in _pairs(flat)}
    for name, value in sorted(named.items(), key=lambda pair: _place(pair[0])):
        parts = _ASIDE.fullmatch(name)
        if parts is None:
            continue
        one = kept.setdefault(int(parts[1]), {})
        if parts[2] == "message":
            one.setdefault("history", []).append(_value(value))
        elif parts[2] == "found":
            one.setdefault("discoveries", []).extend(_found([value]))
        elif parts[2] == "record":
            one["record"] = _value(value)
    return [kept[number] for number in sorted(kept)]


def _pairs(flat: list[bytes]) -> Iterator[tuple[bytes, bytes]]:
    return zip(flat[::2], flat[1::2], strict=True)


def _place(name: str) -> int:
    number = name.rpartition(".")[2]
    return int(number) if number.isdigit() else 0
