"""The examination of a bot's configuration."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from tests.services.raw import JSON, RawService
from tool_search.cli.application import app
from tool_search.cli.doctor.findings import CODES
from tool_search.i18n import LANGUAGES
from tool_search.testing import Fault, KeywordModel, StandInServer

ROOT = Path(__file__).resolve().parents[2]
KEYS = {"ANTHROPIC_API_KEY": "key-of-claude", "OPENAI_API_KEY": "key-of-gpt"}
CLEAN = """\
tool_schema_mode: auto
tool_search:
  threshold: 5
  always_loaded_tools: [loan_payment]
system_prompt: You are a helpful assistant.
providers:
  - {id: claude, type: anthropic, model: claude-sonnet-4-6}
  - {id: gpt, type: openai, model: gpt-5.4}
permissions:
  deny: ["delete_*"]
tools: [clean_tools]
store: {type: sqlite, path: chats.db}
"""
# A comment names the fault of its line.
FAULTY = """\
tool_schema_mode: tool_search                   # search_costs_more
tool_search:
  treshold: 30                                  # setting_wrong
  preload_score: 0.9                            # setting_idle
  always_loaded_tools: [send_letter, tool_O]    # always_loaded_unmatched
  max_results: many                             # setting_wrong
providers:
  - {id: claude, type: anthropic, model: claude-sonnet-4-6,
     api_key_env: NOT_SET}                      # key_missing
  - {id: gpt, type: openai, model: gpt-5.4}
  - {id: again, type: openai, model: gpt-5.4}   # provider_repeated
  - {id: bare, type: openai-chat, model: qwen3, api_key_env: OPENAI_API_KEY,
     base_url: "http://llm.example.com/v1"}     # address_plain
  - {id: old, type: anthropic, model: claude-3-opus,
     strategy: claude}                          # strategy_refused
permissions:
  deny: [send_leter]                            # rule_unmatched
  allow: [send_letter]                          # rule_overruled
  ask:
    - "send_letter(colour=red)"                 # rule_unmatched
  policy:
    deny: [send_letter]
tools:
  - faulty_tools
  - no_such_module                              # module_failed
mcpServers:
  mail:
    command: no-such-program-anywhere           # server_command_missing
  notes:                                        # server_variable_missing
    url: "https://${NO_SUCH_VARIABLE}/mcp"
profiles:
  unused:                                       # profile_unmatched
    match: {host: nobody.example.com}
    max_tools: 64
store: {path: "bot.yaml/chats.db"}              # store_unusable
"""
TOOLS = """
from tool_search import ExecutableTool, Tool

def run(**_):
    return "ok"

def tool(name, description="Send a letter to a person, by its address.", **more):
    return ExecutableTool(tool=Tool(name=name, description=description, **more), function=run)

TOOLS = [
    tool("send_letter", parameters={"type": "object", "properties": {"to": {"type": "string"}}}),
    tool("post_letter"),
    tool("mystery", ""),
    tool("thing", "Does things."),
    tool("wetter", "Zeigt das Wetter an einem Ort und die Vorhersage der Woche mit dem Wind."),
    tool("files.read.all", "Read every file of a folder, and return the text of each."),
    tool("typed", "Count the rows of a table that have a value.",
         parameters={"type": "object", "properties": {"rows": {"type": "array"}}}),
    *(tool(f"tool_{n}", f"Measure the {word} of a room in a building.") for n, word in enumerate(
        "warmth height width depth light noise dust smell colour damp echo age price".split())),
    *(tool(f"count_{word}", f"Count the {word} that were sold in a shop on a day of the week.")
      for word in "books lamps chairs".split()),
]
"""
CLEAN_TOOLS = '''
def loan_payment(amount: float, rate: float, months: int) -> str:
    """Return the monthly payment of a loan with a fixed rate of interest."""

def delete_folder(path: str) -> str:
    """Delete a folder with all its files from the disk."""

def bird_song(name: str) -> str:
    """Describe the song of a bird, and the months in which it is heard."""

def train_times(start: str, end: str) -> str:
    """List the trains between two stations, with their platforms and delays."""

def translate_recipe(text: str) -> str:
    """Translate a recipe of a dish into English, with its weights in grams."""

def star_map(day: str) -> str:
    """Draw a map of the stars and planets over a garden in the evening."""

def exchange_money(amount: float, currency: str) -> str:
    """Convert an amount of money into another currency, at the rate of the bank."""

def water_plants(room: str) -> str:
    """Water the plants in a room, and report how dry the earth was."""

def book_table(restaurant: str, guests: int, hour: str) -> str:
    """Book a table in a restaurant for some guests in the evening, near a window if one is free."""

def print_photo(file: str, size: str, copies: int) -> str:
    """Print a photograph on glossy paper, in one of four sizes, with a white border around it."""

def park_car(garage: str, hours: int, plate: str) -> str:
    """Reserve a place for a car in a garage, and pay the fee by the hour with a credit card."""

def sew_button(colour: str, cloth: str) -> str:
    """Explain how to sew a button on a coat or a shirt, with the length of thread that it takes."""

def tune_piano(pitch: float, room: str) -> str:
    """Report which strings of a piano are flat or sharp, and by how many cents of a semitone."""

def melt_metal(metal: str, mass: float) -> str:
    """Compute the heat that melts a mass of copper, iron or lead, from a room's temperature."""
'''
IN_TOOLS = {
    "description_repeats": "post_letter",
    "description_empty": "mystery",
    "description_short": "thing",
    "description_foreign": "wetter",
    "name_changed": "files.read.all",
    "schema_changed": "typed",
}


def doctor(*arguments: object, env: Mapping[str, str] = KEYS) -> tuple[Any, int]:
    result = CliRunner().invoke(app, ["doctor", *map(str, arguments), "--json"], env=dict(env))
    if result.exception and not isinstance(result.exception, SystemExit):
        raise result.exception
    return json.loads(result.stdout), result.exit_code


@pytest.fixture
def bot(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(sys, "path", [*sys.path])
    monkeypatch.delitem(sys.modules, "faulty_tools", raising=False)
    (tmp_path / "faulty_tools.py").write_text(TOOLS, encoding="utf-8")
    path = tmp_path / "bot.yaml"
    path.write_text(FAULTY, encoding="utf-8")
    return path


@pytest.fixture
def clean(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(sys, "path", [*sys.path])
    monkeypatch.delitem(sys.modules, "clean_tools", raising=False)
    (tmp_path / "clean_tools.py").write_text(CLEAN_TOOLS, encoding="utf-8")
    path = tmp_path / "bot.yaml"
    path.write_text(CLEAN, encoding="utf-8")
    return path


def planted() -> set[tuple[str, int]]:
    lines = enumerate(FAULTY.splitlines(), 1)
    return {(line.partition("# ")[2], number) for number, line in lines if "# " in line}


def test_each_planted_fault_is_found_with_its_code_and_its_line(bot: Path) -> None:
    found, status = doctor("--config", bot)
    assert status == 1
    places = {(each["code"], each["line"]) for each in found["findings"]}
    assert len(planted()) >= 15
    assert planted() <= places
    for code, tool in IN_TOOLS.items():
        named = [each for each in found["findings"] if each["code"] == code]
        assert [each["values"]["tool"] for each in named] == [tool], code
        assert all(each["key"] == "tools[0]" for each in named)


def test_nothing_is_found_that_was_not_planted(bot: Path) -> None:
    found, _ = doctor("--config", bot)
    # The environment of this test may lack the SDK of servers.
    codes = {each["code"] for each in found["findings"]} - {"sdk_missing"}
    assert codes == {code for code, _ in planted()} | set(IN_TOOLS)


def test_nothing_is_found_in_a_clean_configuration(clean: Path) -> None:
    found, status = doctor("--config", clean)
    assert found["findings"] == []
    assert status == 0
    assert not clean.with_name("chats.db").exists()


def test_the_example_of_the_documentation_has_no_warning() -> None:
    found, status = doctor("--config", ROOT / "examples" / "bot.yaml")
    assert status == 0
    assert {each["severity"] for each in found["findings"]} <= {"note"}


def test_the_first_request_of_each_provider_is_compared_with_full_mode() -> None:
    found, _ = doctor("--config", ROOT / "examples" / "bot.yaml")
    claude, gpt = found["providers"]
    for cost in (claude, gpt):
        assert cost["mode"] == "tool_search"
        assert cost["tokens"] < cost["full_tokens"] / 10
        assert 1 < cost["break_even_tools"] < found["tools"]
        assert cost["break_even_searches"] > 1
        assert cost["cached_tokens"] > 0
        assert cost["is_native"]
    assert (claude["strategy"], gpt["strategy"]) == ("claude", "openai_responses")


def test_fix_corrects_what_is_mechanical_and_nothing_else(clean: Path) -> None:
    faults = {
        "  threshold: 5": "  treshold: 5  # tools",
        "[loan_payment]": "[loan_paymnt, bird_song]",
        'deny: ["delete_*"]': "{deny: [delete_foldr], allow: [bird_sing]}",
    }
    wrong = CLEAN
    for right, fault in faults.items():
        wrong = wrong.replace(right, fault)
    wrong = wrong.replace("permissions:\n  {", "permissions: {")
    clean.write_text(wrong, encoding="utf-8")
    found, _ = doctor("--config", clean, "--fix")
    assert sorted(each["code"] for each in found["fixed"]) == [
        "always_loaded_unmatched",
        "rule_unmatched",
        "setting_wrong",
    ]
    after = clean.read_text(encoding="utf-8")
    expected = wrong.replace("treshold", "threshold").replace("paymnt", "payment")
    # A rule that allows is never guessed: it would allow more than was written.
    assert after == expected.replace("delete_foldr", "delete_folder")
    assert [each["code"] for each in found["findings"]] == ["rule_unmatched"]
    again, _ = doctor("--config", clean, "--fix")
    assert again["fixed"] == []
    assert clean.read_text(encoding="utf-8") == after


@pytest.mark.parametrize(
    ("content", "line"),
    [
        ("tools: [a\n", 2),
        ("store:\n\ttype: memory\n", 2),
        ("max_steps: 3\nmax_steps: 4\n", 2),
        ("- a\n- b\n", None),
    ],
)
def test_a_file_that_is_no_configuration_is_one_finding(
    content: str, line: int | None, tmp_path: Path
) -> None:
    path = tmp_path / "bot.yaml"
    path.write_text(content, encoding="utf-8")
    found, status = doctor("--config", path)
    assert [each["code"] for each in found["findings"]] == ["file_unreadable"]
    assert found["findings"][0]["line"] == line
    assert status == 1


def test_a_password_in_an_address_is_found_and_never_shown(clean: Path) -> None:
    address = "https://user:hunter2@llm.example.com/v1"
    clean.write_text(
        CLEAN.replace("model: gpt-5.4", f'model: gpt-5.4, base_url: "{address}"'), encoding="utf-8"
    )
    found, _ = doctor("--config", clean)
    assert "address_secret" in {each["code"] for each in found["findings"]}
    assert "hunter2" not in json.dumps(found)


def test_one_search_is_explained(clean: Path) -> None:
    found, status = doctor("--config", clean, "--query", "song of a bird")
    first = found["search"]["matches"][0]
    assert first["name"] == "bird_song"
    assert {word["word"] for word in first["explanation"]["words"]} == {"song", "bird"}
    assert status == 0
    found, _ = doctor("--config", clean, "--query", "payment of a loan")
    assert found["search"]["core"] == ["loan_payment"]
    found, status = doctor("--config", clean, "--query", "xyzzy plugh")
    assert [each["code"] for each in found["findings"]] == ["query_finds_nothing"]
    assert status == 3


def test_queries_with_known_answers_name_what_they_miss(tmp_path: Path) -> None:
    catalog, queries = tmp_path / "tools.jsonl", tmp_path / "queries.jsonl"
    tools = [
        {"name": "get_forecast", "description": "Return the weather of the next days at a place."},
        {"name": "send_mail", "description": "Send an electronic letter to several people."},
    ]
    catalog.write_text("\n".join(map(json.dumps, tools)), encoding="utf-8")
    queries.write_text('{"query": "umbrella tomorrow", "relevant": ["get_forecast"]}\n')
    found, status = doctor("--catalog", catalog, "--queries", queries)
    (finding,) = found["findings"]
    assert (finding["code"], finding["line"], status) == ("description_misses", 1, 3)
    assert "umbrella" in finding["remedy"]
    assert found["worst_described"] == ["get_forecast"]


def test_live_asks_each_provider_with_the_tools_of_the_bot(clean: Path) -> None:
    with StandInServer(model=KeywordModel()) as server:
        local = f'base_url: "{server.anthropic_base_url}"'
        clean.write_text(
            CLEAN.replace("model: claude-sonnet-4-6", f"model: claude-sonnet-4-6, {local}")
            .replace("  - {id: gpt, type: openai, model: gpt-5.4}\n", "")
            .replace("id: claude,", "id: claude, strategy: claude,"),
            encoding="utf-8",
        )
        good, status = doctor("--config", clean, "--live")
        assert (good["findings"], status) == ([], 0)
        assert len(server.requests) == 1
        names = [tool["name"] for tool in server.requests[0].body["tools"]]
        assert {"loan_payment", "bird_song"} <= set(names)
        server.faults.add(Fault(status=401, message="invalid x-api-key"))
        bad, status = doctor("--config", clean, "--live")
    (finding,) = bad["findings"]
    assert (finding["code"], finding["key"], finding["line"]) == (
        "provider_refused",
        "providers[0]",
        7,
    )
    assert "invalid x-api-key" in finding["message"]
    assert status == 1


def test_form_that_a_service_refuses_in_unknown_words_is_found_live(tmp_path: Path) -> None:
    def rule(body: JSON) -> str | None:
        return "Nein (E-4711)." if "stream_options" in body else None

    with RawService(rule=rule, streams=True).running() as service:
        path = tmp_path / "bot.yaml"
        ring = "def ring_bell(tone: str) -> str:\n    'Ring a bell in a tone.'\n    return tone\n"
        (tmp_path / "odd_tools.py").write_text(ring, encoding="utf-8")
        path.write_text(
            "tools: [odd_tools]\nproviders:\n  - {id: odd, type: openai-chat, "
            f"model: m, api_key_env: null, base_url: '{service.url}/v1'}}\n",
            encoding="utf-8",
        )
        found, _ = doctor("--config", path, "--live")
        assert len(service.refused) == 1
    (finding,) = [each for each in found["findings"] if each["code"] == "form_refused"]
    assert "without optional parts" in finding["message"]
    assert "E-4711" in finding["message"]


@pytest.mark.skipif(find_spec("mcp") is None, reason="needs the SDK of MCP servers")
def test_a_server_that_does_not_answer_is_found_live(tmp_path: Path) -> None:
    path = tmp_path / "bot.yaml"
    path.write_text('mcpServers:\n  gone:\n    url: "http://127.0.0.1:9/mcp"\n', encoding="utf-8")
    found, _ = doctor("--config", path, "--live")
    silent = [each for each in found["findings"] if each["code"] == "server_silent"]
    assert [(each["key"], each["line"]) for each in silent] == [("mcpServers.gone", 2)]


@pytest.mark.parametrize("language", LANGUAGES)
def test_people_read_it_in_their_language(language: str, bot: Path) -> None:
    env = {**KEYS, "LC_ALL": language.replace("-", "_") + ".UTF-8"}
    result = CliRunner().invoke(app, ["doctor", "--config", str(bot)], env=env)
    assert result.exit_code == 1
    assert "key_missing" in result.stdout
    own = {"zh-CN": "缺少 claude 的密钥", "en-US": "key of claude is missing", "ru-RU": "Нет ключа"}
    assert own[language] in result.stdout


def test_every_code_is_explained_in_the_documentation() -> None:
    page = (ROOT / "docs" / "doctor.md").read_text(encoding="utf-8")
    headings = [line.removeprefix("### ") for line in page.splitlines() if line.startswith("### ")]
    assert sorted(headings) == sorted(CODES)


def with_redis(clean: Path, store: str) -> None:
    clean.write_text(CLEAN.replace("{type: sqlite, path: chats.db}", store), encoding="utf-8")


def test_a_server_of_redis_is_asked_only_live(clean: Path) -> None:
    with_redis(clean, '{type: redis, url: "redis://127.0.0.1:1/0"}')
    found, _ = doctor("--config", clean)
    missing = [] if find_spec("redis") else ["store_unusable"]
    assert [each["code"] for each in found["findings"]] == missing


@pytest.mark.skipif(find_spec("redis") is None, reason="needs redis-py")
def test_a_password_in_the_address_of_a_store_is_found_and_never_shown(clean: Path) -> None:
    with_redis(clean, '{type: redis, url: "redis://:hunter2@redis.example.com/0"}')
    found, status = doctor("--config", clean)
    line = len(CLEAN.splitlines())
    assert [(each["code"], each["key"], each["line"]) for each in found["findings"]] == [
        ("store_plain", "store.url", line),
        ("store_secret", "store.url", line),
    ]
    assert status == 3
    assert "hunter2" not in json.dumps(found)


@pytest.mark.skipif(find_spec("redis") is None, reason="needs redis-py")
def test_an_address_in_the_environment_is_no_finding(clean: Path) -> None:
    with_redis(clean, "{type: redis}")
    address = {"REDIS_URL": "rediss://:hunter2@redis.example.com/0"}
    found, _ = doctor("--config", clean, env={**KEYS, **address})
    assert found["findings"] == []
    found, _ = doctor("--config", clean, env={**KEYS, "REDIS_URL": ""})
    assert [each["code"] for each in found["findings"]] == ["store_unusable"]
    address = {"REDIS_URL": "redis://:hunter2/3@redis.example.com"}
    found, _ = doctor("--config", clean, env={**KEYS, **address})
    assert [each["code"] for each in found["findings"]] == ["store_unusable"]
    assert "hunter" not in json.dumps(found)


@pytest.mark.parametrize("language", LANGUAGES)
def test_every_code_has_a_problem_and_a_remedy_in_every_language(language: str) -> None:
    texts = json.loads((ROOT / "i18n" / "locales" / f"{language}.json").read_text("utf-8"))
    wanted = {f"{kind}.{code}" for kind in ("doctor", "remedy") for code in CODES}
    assert wanted <= {key for key, words in texts.items() if words}
