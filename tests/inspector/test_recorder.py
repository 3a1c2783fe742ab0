"""Records in memory and in a file."""

from __future__ import annotations

import logging
import stat
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from tool_search.errors import ConfigurationError
from tool_search.serving.inspector.figures import figures
from tool_search.serving.inspector.log import RecordLog, read_log
from tool_search.serving.inspector.masking import Masker
from tool_search.serving.inspector.prompts import LastPrompts, SentPrompt
from tool_search.serving.inspector.recorder import Recorder
from tool_search.serving.inspector.records import (
    CatalogRecord,
    ClientSide,
    HitRecord,
    QueryRecord,
    RequestRecord,
    SearchRecord,
    StepRecord,
)

CATALOG = CatalogRecord(id="c", names=("count_words", "send_mail", "never"))


def record(number: int, *, body: str | None = None, calls: tuple[str, ...] = ()) -> RequestRecord:
    """Return a record with one search."""
    hits = (HitRecord(name="count_words", score=0.5), HitRecord(name="send_mail", score=0.4))
    query = QueryRecord(query="count words", hits=hits, total_found=2, total_tools=3)
    return RequestRecord(
        id=f"r{number}",
        at=1_000.0 + number,
        conversation="one",
        strategy="generic",
        searches=1,
        tokens=10,
        full_tokens=100,
        kept_bytes=50,
        total_bytes=100,
        own_seconds=number / 1_000,
        catalog="c",
        searched=(SearchRecord(queries=(query,)),),
        steps=(StepRecord(request_bytes=5, request=body, reply=body),),
        client_side=ClientSide(request=body, reply=body, calls=calls),
    )


def explain(query: str, names: Sequence[str]) -> Mapping[str, Mapping[str, Any]]:
    """Explain a ranking by the query itself."""
    return {name: {"fields": {"name": [query]}} for name in names}


def test_the_oldest_requests_leave_first() -> None:
    recorder = Recorder(keep_requests=3)
    for number in range(5):
        recorder.add(record(number))

    assert [number for number, _ in recorder.rows()] == [3, 4, 5]
    assert [number for number, _ in recorder.rows(after=4)] == [5]
    assert [number for number, _ in recorder.rows(limit=2)] == [4, 5]
    assert (recorder.get("r1"), recorder.last) == (None, 5)


def test_reasons_are_made_when_a_request_is_opened() -> None:
    asked: list[str] = []

    def counted(query: str, names: Sequence[str]) -> Mapping[str, Mapping[str, Any]]:
        asked.append(query)
        return explain(query, names)

    recorder = Recorder(keep_requests=3)
    recorder.add(record(1), explain=counted)
    assert asked == []

    opened = recorder.get("r1")

    assert asked == ["count words"]
    assert opened is not None
    reasons = [hit.reasons for hit in opened.searched[0].queries[0].hits]
    assert reasons == [{"fields": {"name": ["count words"]}}] * 2


def test_bodies_are_bounded_in_all(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tool_search.serving.inspector.recorder._MAX_BODY_CHARS", 1_000)
    recorder = Recorder(keep_requests=10)
    for number in range(6):
        recorder.add(record(number, body="x" * 100))

    kept, _ = recorder.all()

    assert [each.body_chars for each in kept] == [0, 0, 0, 0, 400, 400]


def test_a_log_gives_back_what_was_written(tmp_path: Path) -> None:
    path = tmp_path / "requests.jsonl"
    recorder = Recorder(3, RecordLog(path, 1_000_000))
    for number in range(4):
        recorder.add(record(number, body='{"a": "é"}'), catalog=CATALOG, explain=explain)

    kept = read_log(path, 3)

    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert [each.id for each in kept.requests] == ["r1", "r2", "r3"]
    assert kept.requests[-1] == recorder.get("r3")
    assert (kept.catalogs, kept.unread) == ((CATALOG,), 0)
    assert path.read_text(encoding="utf-8").count('"catalog":{') == 1


def test_a_log_begins_anew_at_its_size(tmp_path: Path) -> None:
    path = tmp_path / "requests.jsonl"
    log = RecordLog(path, 2_000)
    for number in range(10):
        log.write(record(number), CATALOG)

    assert path.stat().st_size < 4_000
    assert (tmp_path / "requests.jsonl.1").exists()
    assert read_log(path, 10).catalogs == (CATALOG,)


def test_a_log_that_cannot_be_written_costs_one_warning(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.WARNING)
    recorder = Recorder(3, RecordLog(tmp_path, 10_000_000))
    recorder.add(record(1))
    recorder.add(record(2))

    assert recorder.last == 2
    assert caplog.text.count("inspector.path") == 1


def test_a_half_written_line_is_passed_over(tmp_path: Path) -> None:
    path = tmp_path / "requests.jsonl"
    RecordLog(path, 1_000_000).write(record(1))
    with path.open("a") as file:
        file.write('{"request":{"id":"r2"')

    kept = read_log(path, 10)

    assert [each.id for each in kept.requests] == ["r1"]
    assert kept.unread == 1


@pytest.mark.parametrize("content", ["text\n", "[1]\n", '{"other": 1}\n', '{"request": 3}\n'])
def test_another_file_is_no_log(tmp_path: Path, content: str) -> None:
    path = tmp_path / "other.txt"
    path.write_text(content)
    with pytest.raises(ConfigurationError, match=r"inspector\.path"):
        read_log(path, 10)
    with pytest.raises(ConfigurationError, match="cannot be read"):
        read_log(tmp_path / "missing", 10)


def test_figures_of_requests() -> None:
    requests = [record(1), record(2, calls=("count_words",)), record(100)]

    found = figures(requests, [CATALOG])

    assert (found["tokens"], found["full_tokens"], found["searches"]) == (30, 300, 3)
    assert found["most_used"] == [{"name": "count_words", "count": 1}]
    assert found["found_not_called"] == [{"name": "send_mail", "count": 1}]
    assert (found["never_found"], found["never_found_total"]) == (["never"], 1)
    assert (found["own_ms_p50"], found["own_ms_p99"]) == (2.0, 100.0)
    assert sum(period["requests"] for period in found["periods"]) == 3


def test_figures_of_nothing() -> None:
    found = figures([], [])
    assert (found["requests"], found["own_ms_p50"], found["periods"]) == (0, None, [])


def test_prompts_are_bounded_by_size() -> None:
    prompts = LastPrompts()
    for number in range(5):
        prompts.keep([f"k{number}"], SentPrompt(f"r{number}", "c", b"x" * 10_000_000))

    assert prompts.find(["k1"]) is None
    found = prompts.find(["k1", "k4"])
    assert found is not None
    assert found.request_id == "r4"


def test_keys_are_masked_by_value_by_name_and_by_form() -> None:
    masker = Masker(["my-own-credential", "x"])
    body = {
        "max_tokens": 100,
        "password": "hunter2",
        "text": "it is my-own-credential, or sk-abcdefghijklmnop",
        "list": [{"api_key": "k"}, None, True, 1.5],
        "my-own-credential": 1,
    }

    assert masker.value(body) == {
        "max_tokens": 100,
        "password": "***",
        "text": "it is ***, or ***",
        "list": [{"api_key": "***"}, None, True, 1.5],
        "***": 1,
    }
    assert masker.text("say my-own-credential") == "say ***"
    assert len(masker.text("y" * 5_000)) == 1_000
