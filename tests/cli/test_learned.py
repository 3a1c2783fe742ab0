"""`tool-search learned` and `forget`: what a bot has learned in `chat`, shown and erased."""

from __future__ import annotations

import asyncio
import errno
import json
import sqlite3
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.cli.conftest import Command
from tests.cli.test_bad_input import is_refused
from tests.search.word_embedder import NotingEmbedder
from tests.stores.contents import record
from tool_search import (
    SearchSettings,
    SQLiteStore,
    Tool,
    ToolCatalog,
    ToolSearchSession,
    build_index,
)
from tool_search.core.services import Lesson
from tool_search.errors import UnreadableRecordError
from tool_search.runner.learning import Learning
from tool_search.search.learned import Evidence, with_votes
from tool_search.stores import Grant
from tool_search.stores.record import exported_history
from tool_search.testing import ModelCall, ModelReply, ScriptedModel, StandInServer

File = Callable[[str, str], Path]
SEARCH = ModelReply(calls=(ModelCall(name="tool_search", arguments={"query": "hex colour"}),))
CALL = ModelReply(calls=(ModelCall(name="hex_to_rgb", arguments={"color": "#ff8800"}),))


@pytest.fixture
def store(tmp_path: Path) -> Path:
    """Return a store with evidence for two tools, and two conversations."""
    path = tmp_path / "kept.db"

    async def fill() -> None:
        async with SQLiteStore(path) as opened:
            await opened.add_evidence(
                [
                    Evidence(tool="get_forecast", words=("天", "天气", "气"), at=4.0e9),
                    Evidence(tool="get_forecast", words=("umbrella",), at=4.0e9, strength=2.0),
                    Evidence(tool="send_mail", words=("mail", "[red]boss"), at=4.0e9),
                ]
            )
            await opened.save("group:1", record())
            await opened.save("group:2", record())
            await opened.add_grants(
                [
                    Grant(rule="send_mail", user="ann", fingerprint="f1"),
                    Grant(rule="run", user="bo", conversation="group:1"),
                ]
            )

    asyncio.run(fill())
    return path


def left(command: Command, store: Path) -> tuple[list[str], list[str]]:
    """Return the tools of the evidence and the conversations that are still there."""
    content = command("learned", "--store", store, "--json").json
    return [entry["tool"] for entry in content["evidence"]], content["conversations"]


def test_learned_shows_tools_words_and_strength(command: Command, store: Path) -> None:
    outcome = command("learned", "--store", store)
    lines = [line.split() for line in outcome.out.splitlines()]
    assert lines[1:3] == [
        ["get_forecast", "umbrella", "2.00", "2096-10-02"],
        ["get_forecast", "天气", "1.00", "2096-10-02"],
    ]
    assert "[red]boss" in outcome.out
    assert "3 entries for 2 tools; 2 conversations" in outcome.out


def test_learned_json_is_one_object(command: Command, store: Path) -> None:
    content = command("learned", "--store", store, "--tool", "get_forecast", "--json").json
    assert content == {
        "store": str(store),
        "evidence": [
            {
                "tool": "get_forecast",
                "words": ["umbrella"],
                "strength": 2.0,
                "at": "2096-10-02T07:06:40+00:00",
            },
            {
                "tool": "get_forecast",
                "words": ["天", "天气", "气"],
                "strength": 1.0,
                "at": "2096-10-02T07:06:40+00:00",
            },
        ],
        "conversations": ["group:1", "group:2"],
    }


@pytest.fixture
def shared(tmp_path: Path) -> Path:
    """Return a store with evidence of two users, in two conversations."""
    path = tmp_path / "shared.db"

    async def fill() -> None:
        async with SQLiteStore(path) as opened:
            learning = Learning(opened, clock=lambda: 4.0e9)
            lesson = Lesson(query="umbrella", tool="get_forecast")
            await learning.learn([lesson], user="ann", conversation="group:1")
            await learning.learn([lesson], user="bo", conversation="group:2")
            await learning.learn([Lesson(query="letter", tool="send_mail")])

    asyncio.run(fill())
    return path


def test_learned_counts_the_sources_of_words(command: Command, shared: Path) -> None:
    outcome = command("learned", "--store", shared)
    lines = [line.split() for line in outcome.out.splitlines()]
    assert lines[1:3] == [
        ["get_forecast", "umbrella", "2.00", "2", "2096-10-02"],
        ["send_mail", "letter", "1.00", "1", "2096-10-02"],
    ]
    evidence = command("learned", "--store", shared, "--json").json["evidence"]
    assert len({entry["source"] for entry in evidence[:2]}) == 2
    assert "source" not in evidence[2]
    assert b"ann" not in shared.read_bytes()


def test_learned_shows_what_a_map_moves_most(command: Command, tmp_path: Path, write: File) -> None:
    """Or that there is none."""
    tools = [Tool(name=f"get_{name}", description=f"Service of {name}.") for name in "abcd"]
    path, tail = tmp_path / "kept.db", "{embedder: 'tests.search.word_embedder:NotingEmbedder'}"
    settings = SearchSettings(engine="hybrid", vector_cache=None)

    async def fill(searches: int) -> None:
        async with SQLiteStore(path) as opened:
            learning = Learning(opened, keeps_vectors=True)
            index = build_index(tools, settings, embedder=NotingEmbedder())
            for number in range(searches):
                query = f"service wish{number % 2} {number}th thing{number}"
                with_votes(index, await learning.votes()).search(query, limit=5)
                await learning.learn([Lesson(query=query, tool=tools[number % 2].name)])

    catalog = write("tools.json", json.dumps([tool.to_dict() for tool in tools]))
    bot = write("bot.yaml", f"store: {{path: {path}}}\ntool_search:\n  search: {tail}\n")
    asyncio.run(fill(29))
    asked = ("learned", "--config", bot, "--catalog", catalog)
    assert command(*asked, "--json").json["moved"] == []
    assert "no map of meaning" in command(*asked).out
    asyncio.run(fill(40))
    moved = command(*asked, "--json").json["moved"]
    assert {each["tool"] for each in moved} == {"get_a", "get_b"}
    assert min(each["change"] for each in moved) > 0.05
    assert f"moves most: {moved[0]['tool']} +0." in command(*asked).out


@pytest.mark.parametrize("named", [("--user", "ann"), ("--conversation", "group:1")])
def test_forget_erases_and_exports_what_a_source_taught(
    command: Command, shared: Path, tmp_path: Path, named: tuple[str, str]
) -> None:
    before = command("learned", "--store", shared, "--json").json["evidence"]
    file = tmp_path / "export.json"
    outcome = command("forget", "--store", shared, *named, "--export", file)
    assert "erased 1 entries of what was learned" in outcome.out
    (exported,) = json.loads(file.read_text(encoding="utf-8"))["evidence"]
    after = command("learned", "--store", shared, "--json").json["evidence"]
    assert [entry["source"] for entry in before if entry not in after] == [exported["source"]]
    assert len(after) == 2


def test_learned_makes_no_store(command: Command, tmp_path: Path) -> None:
    outcome = command("learned", "--store", tmp_path / "none.db")
    assert "nothing was learned" in outcome.out
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("arguments", "said", "counts"),
    [
        (("--learned",), "erased 3 entries of what was learned:", (0, 2)),
        (("--tool", "get_forecast"), "erased 2 entries of what was learned:", (1, 2)),
        (("--tool", "get_forecast", "--tool", "send_mail"), "erased 3 entries", (0, 2)),
        (("--tool", "other"), "erased 0 entries of what was learned:", (3, 2)),
        (("--conversation", "group:1"), "erased 1 conversations and 1 grants:", (3, 1)),
        (
            ("--learned", "--conversation", "group:1"),
            "learned, 1 conversations and 1 grants:",
            (0, 1),
        ),
        (("--user", "ann"), "erased 1 grants:", (3, 2)),
        (
            ("--all",),
            "erased 3 entries of what was learned, 2 conversations and 2 grants:",
            (0, 0),
        ),
    ],
)
def test_forget_erases_what_is_named_and_says_so(
    command: Command,
    store: Path,
    arguments: tuple[str, ...],
    said: str,
    counts: tuple[int, int],
) -> None:
    outcome = command("forget", "--store", store, *arguments)
    assert outcome.status == 0
    assert said in outcome.out
    kept = left(command, store)
    assert (len(kept[0]), len(kept[1])) == counts


def test_forget_json_counts(command: Command, store: Path) -> None:
    outcome = command("forget", "--store", store, "--all", "--json")
    assert outcome.json == {
        "store": str(store),
        "evidence": 3,
        "conversations": 2,
        "grants": 2,
    }


def test_erased_words_are_not_left_in_the_file(command: Command, store: Path) -> None:
    assert b"umbrella" in store.read_bytes()
    command("forget", "--store", store, "--all")
    left_over = b"".join(path.read_bytes() for path in store.parent.iterdir())
    assert b"umbrella" not in left_over


def test_what_is_forgotten_is_exported_before(
    command: Command, store: Path, tmp_path: Path
) -> None:
    file = tmp_path / "export.json"
    wanted = ("--conversation", "group:1", "--conversation", "none", "--user", "ann")
    outcome = command("forget", "--store", store, *wanted, "--export", file, "--json")
    assert outcome.json["exported"] == str(file)
    assert file.stat().st_mode & 0o077 == 0
    content = json.loads(file.read_text(encoding="utf-8"))
    assert content["store"] == str(store)
    assert content["grants"] == [{"rule": "send_mail", "user": "ann", "fingerprint": "f1"}]
    assert content["evidence"] == []
    (kept,) = content["conversations"]
    assert kept["key"] == "group:1"
    assert kept["grants"] == [{"rule": "run", "user": "bo", "conversation": "group:1"}]
    assert [message["role"] for message in kept["history"]] == ["user"]
    assert kept["record"]["mode"] == "tool_search"
    assert left(command, store)[1] == ["group:2"]


def test_all_that_is_kept_can_be_exported(command: Command, store: Path, tmp_path: Path) -> None:
    other = sqlite3.connect(store)
    with other:
        other.execute("UPDATE conversation SET record = x'ff00' WHERE key = 'group:1'")
        other.execute("UPDATE conversation SET record = '{' WHERE key = 'group:2'")
    other.close()
    file = tmp_path / "export.json"
    assert command("forget", "--store", store, "--all", "--export", file).status == 0
    content = json.loads(file.read_text(encoding="utf-8"))
    assert [len(content[kind]) for kind in ("conversations", "grants", "evidence")] == [2, 2, 3]
    assert [kept["record"] for kept in content["conversations"]] == ["b'\\xff\\x00'", "{"]
    assert left(command, store) == ([], [])


@pytest.mark.parametrize("name", ["there.json", "none/export.json", ""])
def test_what_cannot_be_exported_is_not_erased(
    command: Command, store: Path, tmp_path: Path, name: str
) -> None:
    (tmp_path / "there.json").write_text("mine")
    outcome = command("forget", "--store", store, "--all", "--export", tmp_path / name)
    assert is_refused(outcome, "--export", "name a new file")
    assert (tmp_path / "there.json").read_text() == "mine"
    assert left(command, store)[1] == ["group:1", "group:2"]


def test_export_that_breaks_off_is_no_export(
    command: Command, store: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(_file: int) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr("os.fsync", fail)
    outcome = command("forget", "--store", store, "--all", "--export", tmp_path / "export.json")
    assert outcome.status == 1
    assert "nothing was erased" in outcome.err
    assert not (tmp_path / "export.json").exists()
    assert left(command, store)[1] == ["group:1", "group:2"]


def test_a_store_that_is_not_there_exports_nothing(command: Command, tmp_path: Path) -> None:
    file = tmp_path / "export.json"
    assert command("forget", "--store", tmp_path / "x.db", "--all", "--export", file).status == 0
    assert json.loads(file.read_text())["conversations"] == []
    assert not (tmp_path / "x.db").exists()


def test_forget_wants_to_know_what(command: Command, store: Path) -> None:
    assert is_refused(command("forget", "--store", store), "--learned", "--all")
    assert left(command, store)[1] == ["group:1", "group:2"]


def test_only_one_place_can_be_named(command: Command, store: Path) -> None:
    both = command("learned", "--store", store, "--config", store)
    assert is_refused(both, "give --config or --store, not both")


def test_a_bot_that_keeps_nothing_is_named(command: Command, write: File) -> None:
    bot = write("bot.yaml", "store: {type: memory}\n")
    assert is_refused(command("learned", "--config", bot), "store.type is 'memory'")


def test_a_file_that_is_no_store_is_named(command: Command, write: File) -> None:
    path = write("notes.txt", "no database" * 100)
    outcome = command("forget", "--store", path, "--all")
    assert outcome.status == 1
    assert "notes.txt is damaged or is not a store" in outcome.err
    assert path.read_text() == "no database" * 100


def test_what_a_chat_teaches_is_kept_beside_its_bot(
    command: Command, write: File, server: StandInServer
) -> None:
    modules = [
        f"tool_search.sources.toolbox.{name}" for name in ("quantities", "everyday", "words")
    ]
    bot = write(
        "bot.yaml",
        f"tools: {modules}\n"
        "store: {path: data/bot.db}\n"
        "providers:\n"
        "  - {id: gpt, type: openai_chat, model: gpt-5.4, api_key_env: null,\n"
        f"     base_url: '{server.openai_base_url}'}}\n",
    )
    server.reset(model=ScriptedModel([SEARCH, CALL, ModelReply(text="Orange.")]))
    assert command("chat", "--config", bot, typed="What is #ff8800?\n").status == 0
    content = command("learned", "--config", bot, "--json").json
    assert content["store"] == str(bot.parent / "data" / "bot.db")
    assert [(entry["tool"], entry["words"]) for entry in content["evidence"]] == [
        ("hex_to_rgb", ["colour", "hex"])
    ]
    assert content["conversations"] == []


def test_an_exported_conversation_is_adopted_again(
    command: Command, store: Path, tmp_path: Path
) -> None:
    file = tmp_path / "export.json"
    command("forget", "--store", store, "--conversation", "group:1", "--export", file)
    (kept,) = json.loads(file.read_text(encoding="utf-8"))["conversations"]
    messages = exported_history(kept)
    assert [message.role for message in messages] == ["user"]
    session = ToolSearchSession(ToolCatalog([Tool(name="get_forecast")]))
    session.adopt_history(messages)
    assert session.history == messages


@pytest.mark.parametrize(
    "history",
    [
        [{"role": "nobody", "content": ""}],
        "text",
        [{"role": "tool", "content": "", "tool_call_id": "x"}],
    ],
)
def test_an_export_that_was_changed_is_refused(history: object) -> None:
    with pytest.raises(UnreadableRecordError, match="the exported conversation 'a'"):
        exported_history({"key": "a", "history": history})
