"""`benchmarks/bench_model.py` on the stand-in: what it counts, keeps, and never writes."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

from tests.project.run_page import ROOT
from tool_search.testing import (
    Endpoint,
    Fault,
    KeywordModel,
    ModelCall,
    ModelReply,
    ModelView,
    StandInServer,
)

KEY = "sk-test-0123456789abcdef0123456789"
ARMS = ("all tools", "right tools")
TOOLS = (
    ("get_forecast", "Weather forecast for a city."),
    ("send_email", "Send an email to a person."),
    ("create_event", "Create an event in the calendar."),
)
REQUESTS = (
    ("w", "Show the weather forecast for the city Paris.", ["get_forecast"]),
    ("e", "Send an email to the person Ann.", ["send_email"]),
    ("c", "Create an event in the calendar.", ["create_event"]),
)


class Bench:
    """The program, with a set of three tasks and one that needs no tool."""

    def __init__(self, main: Any, folder: Path) -> None:
        self._main = main
        self.out = folder / "out"
        self.tasks = folder / "model_queries"
        self.tasks.mkdir()
        (folder / "small").mkdir()
        lines = [{"set": "small", "id": i, "request": r, "relevant": w} for i, r, w in REQUESTS]
        lines.append({"set": "none", "id": "n", "request": "Qwzx!", "relevant": []})
        write(self.tasks / "queries.jsonl", lines)
        tools = [{"name": name, "description": text, "parameters": {}} for name, text in TOOLS]
        write(folder / "small" / "tools.jsonl", tools)

    def run(self, server: StandInServer, *options: str, arms: Sequence[str] = ARMS) -> int:
        where = ("--base-url", server.openai_base_url, "--model", "m", "--key-env", "BENCH_KEY")
        named = ("--tasks", str(self.tasks), "--out", str(self.out), "--arms", ";".join(arms))
        status: int = self._main([*where, *named, *options])
        return status

    @property
    def result(self) -> Any:
        return json.loads((self.out / "result.json").read_text("utf-8"))

    @property
    def written(self) -> str:
        return "".join(path.read_text("utf-8") for path in self.out.iterdir())


def write(path: Path, lines: Sequence[Any]) -> None:
    path.write_text("".join(json.dumps(line) + "\n" for line in lines), "utf-8")


@pytest.fixture
def bench(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Bench:
    monkeypatch.syspath_prepend(str(ROOT / "benchmarks"))
    monkeypatch.setenv("BENCH_KEY", KEY)
    return Bench(import_module("bench_model").main, tmp_path)


@pytest.fixture
def server() -> Iterator[StandInServer]:
    with StandInServer(model=KeywordModel(), endpoint=Endpoint(max_tools=None)) as opened:
        yield opened


def test_run_counts_right_tools_and_needless_calls(bench: Bench, server: StandInServer) -> None:
    search = next(name for name in known_arms() if name.startswith("search"))
    assert bench.run(server, arms=(*ARMS, search)) == 0
    result = bench.result
    assert [arm["arm"] for arm in result["arms"]] == [*ARMS, search]
    assert [arm["name"] for arm in result["plan"]["arms"]] == [*ARMS, search]
    for arm in result["arms"]:
        assert (arm["done"], arm["right tool called"]["value"]) == (4, 1.0)
        assert arm["right tool called"]["n"] == 3
        assert arm["right tool called"]["low"] < 1.0 == arm["right tool called"]["high"]
    by_arm = {arm["arm"]: arm for arm in result["arms"]}
    assert by_arm["all tools"]["needless"]["value"] == 0.0
    assert by_arm[search]["never searched"]["value"] == 0.0
    assert by_arm["all tools"]["never searched"] is None
    assert by_arm[search]["requests"]["value"] > by_arm["all tools"]["requests"]["value"]
    assert result["requests"] == len(server.requests)
    assert "<svg" in bench.written


OKAPI = "search of rank_bm25"


def test_peers_search_is_an_arm_whose_version_is_in_the_result(
    bench: Bench, server: StandInServer, capsys: pytest.CaptureFixture[str]
) -> None:
    server.reset(model=PeerModel())
    assert bench.run(server, "--peers", arms=("right tools",)) == 0
    result = bench.result
    by_name = {arm["name"]: arm for arm in result["plan"]["arms"]}
    assert by_name[OKAPI]["package"].startswith("rank-bm25 ")
    for name in {"search of FastMCP"} - by_name.keys():
        reason = "the package fastmcp is not installed"
        assert result["plan"]["left_out"] == {name: reason}
        assert f"the arm {name!r} is left out: {reason}" in capsys.readouterr().err
    for arm in result["arms"][1:]:
        assert (arm["done"], arm["refused"]) == (4, 0)
        assert arm["right tool called"]["value"] == 1.0
        assert arm["never searched"]["value"] == 0.0
        assert arm["requests"]["value"] == 3.0
    asked = [r for r in server.requests if "search_tools" in r.tool_names]
    assert {frozenset(r.tool_names) for r in asked} == {frozenset(("search_tools", "call_tool"))}


class PeerModel(KeywordModel):
    """A model that searches with the user's words, and calls the first tool that it reads."""

    def reply(self, view: ModelView) -> ModelReply:
        if view.tool("search_tools") is None:
            return super().reply(view)
        results = view.messages[-1].results
        if not view.calls:
            calls = [ModelCall(name="search_tools", arguments={"query": view.last_user_text})]
        elif view.calls[-1].name == "search_tools":
            text = results[-1].text  # FastMCP's of no match is empty, which a runner says in words
            found = json.loads(text) if text.startswith("[") else []
            name = found[0]["name"] if found else "nothing"
            calls = [ModelCall(name="call_tool", arguments={"name": name, "arguments": {}})]
        else:
            return ModelReply(text="Done.")
        return ModelReply(calls=tuple(calls))


def test_arms_of_absent_packages_alone_are_an_error(
    bench: Bench, server: StandInServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    peers = import_module("model.peers")
    absent = peers.Peer(package="no-such-package", open=peers.PEERS[OKAPI].open)
    monkeypatch.setattr(import_module("model.arms"), "PEERS", {OKAPI: absent})
    with pytest.raises(SystemExit, match="the package no-such-package is not installed"):
        bench.run(server, arms=(OKAPI,))
    assert server.requests == ()


def known_arms() -> list[str]:
    return [arm.name for arm in import_module("model.arms").known_arms()]


def test_run_after_a_failure_goes_on_with_what_is_missing(
    bench: Bench, server: StandInServer, capsys: pytest.CaptureFixture[str]
) -> None:
    server.faults.add(Fault(status=401, message=f"Incorrect key {KEY}", skip=5, times=None))
    assert bench.run(server) == 1
    said = capsys.readouterr().err
    assert "the same command goes on from there" in said
    kept = bench.result["records"]
    assert 0 < len(kept) < 8
    assert "HTTP 401" in bench.result["stopped"]
    server.faults.clear()
    before = len(server.requests)
    assert bench.run(server) == 0
    records = bench.result["records"]
    assert records[: len(kept)] == kept
    assert len({(record["arm"], record["task"]) for record in records}) == len(records) == 8
    assert len(server.requests) - before == sum(r["requests"] for r in records[len(kept) :])
    assert KEY not in bench.written + said


def test_half_a_line_of_a_killed_run_is_asked_again(bench: Bench, server: StandInServer) -> None:
    assert bench.run(server) == 0
    file = bench.out / "records.jsonl"
    whole = file.read_text("utf-8")
    file.write_text(whole[:-20], "utf-8")
    assert bench.run(server) == 0
    assert len(bench.result["records"]) == 8


@pytest.mark.parametrize("most", [2, 5, 9])
def test_run_never_asks_more_than_its_budget(
    bench: Bench, server: StandInServer, most: int
) -> None:
    assert bench.run(server, "--max-requests", str(most)) == 1
    assert 0 < len(server.requests) <= most
    assert "the budget is spent" in bench.result["stopped"]


def test_run_ends_when_its_money_is_spent(bench: Bench, server: StandInServer) -> None:
    assert bench.run(server, "--max-usd", "0.0003", "--price", "1,1,1,1") == 1
    spent = bench.result["usd"]
    assert spent >= 0.0003
    assert len(bench.result["records"]) < 8
    assert bench.run(server, "--max-usd", "10", "--price", "1,1,1,1") == 0
    assert bench.result["arms"][0]["usd"]["value"] > 0


def test_list_that_the_endpoint_cuts_is_not_all_tools(bench: Bench) -> None:
    with StandInServer(model=KeywordModel(), endpoint=Endpoint(max_tools=2)) as small:
        assert bench.run(small, arms=("all tools",)) == 0
    assert bench.result["arms"][0]["refused"] == 4
    assert bench.result["arms"][0]["right tool called"] is None


def test_folder_of_another_plan_is_refused(bench: Bench, server: StandInServer) -> None:
    assert bench.run(server, "--limit", "1") == 0
    with pytest.raises(SystemExit, match="the plan of another run"):
        bench.run(server, "--limit", "2")


@pytest.mark.parametrize(
    ("line", "says"),
    [
        ('{"set": "nowhere", "id": 1, "request": "x", "relevant": []}', "no catalog of the set"),
        ('{"set": "small"}', "cannot be read as tasks"),
        ("{", "cannot be read as tasks"),
    ],
)
def test_wrong_tasks_are_an_error_that_names_the_file(
    bench: Bench, server: StandInServer, line: str, says: str
) -> None:
    (bench.tasks / "queries.jsonl").write_text(line, "utf-8")
    with pytest.raises(SystemExit, match=f"queries.jsonl: {says}"):
        bench.run(server)


def test_arm_that_is_not_known_is_an_error_with_the_known_ones(
    bench: Bench, server: StandInServer
) -> None:
    with pytest.raises(SystemExit, match="no arm is named 'al tools'; known: all tools"):
        bench.run(server, arms=("al tools",))


@pytest.mark.usefixtures("bench")
def test_own_tasks_name_tools_of_the_toolbox() -> None:
    tasks = import_module("model.tasks").read_tasks()
    names = {tool.name for tool in tasks.catalogs["toolbox"]}
    assert {name for task in tasks.tasks for name in task.relevant} <= names
    assert sum(not task.relevant for task in tasks.tasks) >= 5


@pytest.mark.usefixtures("bench")
@pytest.mark.parametrize(
    ("hits", "n", "low", "high"), [(8, 10, 0.4902, 0.9433), (0, 5, 0, 0.4345), (5, 5, 0.5655, 1)]
)
def test_interval_of_a_share_is_wilsons(hits: int, n: int, low: float, high: float) -> None:
    figure = import_module("model.summary").wilson(hits, n)
    assert (figure.low, figure.high) == (low, high)
