"""Twenty typical mistakes, in YAML and in Python: what, value, where and remedy.

A row has words of the message that both must have; `where` is the key in the file and the
class or the argument in Python.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from typer.testing import CliRunner

import tool_search
from tool_search import (
    Bot,
    BotConfig,
    ProviderConfig,
    SearchSettings,
    Tool,
    ToolCatalog,
    ToolSearchConfig,
    ToolSearchError,
    ToolSearchSession,
    build_provider,
    open_bot,
    profile_for,
    tool_from_function,
)
from tool_search.cli.application import app
from tool_search.testing import Fault, StandInServer, ToolTrial

PROVIDER = "providers: [{{id: a, type: openai, model: gpt-5.4, {}}}]\n"
_NO_MODEL: Any = {"id": "a", "type": "openai"}
Wrong = Any  # mistakes that a type checker would refuse


class Foreign:
    """A type that is not JSON."""


def foreign(value: Foreign) -> str:
    """Use it."""
    return str(value)


def twice() -> str:
    """Do it."""
    return ""


class Mistake(NamedTuple):
    """One mistake, in both forms.

    Attributes:
        yaml: The file, or the file and its module of tools.
        python: The same in Python.
        both: What is wrong, its value and the remedy: words of both messages.
        key: The place in the file.
        place: The place in Python.
    """

    yaml: str | tuple[str, str]
    python: Callable[[], object]
    both: Sequence[str]
    key: str
    place: str


def _settings(**wrong: Wrong) -> Callable[[], object]:
    return lambda: ToolSearchConfig(**wrong)


def _provider(**wrong: Wrong) -> Callable[[], object]:
    given: Wrong = {"id": "a", "type": "openai", "model": "gpt-5.4", **wrong}
    return lambda: ProviderConfig(**given)


def _tools(source: str) -> tuple[str, str]:
    return (PROVIDER.format("api_key_env: null") + "tools: [bot_tools]\n", source)


MISTAKES = {
    "a key of settings": Mistake(
        "tool_search: {treshold: 3}\n", _settings(treshold=3),
        ("treshold is unknown", "known here: always_loaded_tools", "did you mean 'threshold'?"),
        "line 1: tool_search.treshold", "ToolSearchConfig: treshold"),
    "a text for a number": Mistake(
        "tool_search: {threshold: many}\n", _settings(threshold="many"),
        ("threshold is 'many'", "valid integer"),
        "line 1: tool_search.threshold", "ToolSearchConfig: threshold"),
    "a number out of range": Mistake(
        "max_steps: 0\n", lambda: BotConfig(max_steps=0),
        ("max_steps is 0", "greater than or equal to 1"),
        "line 1: max_steps", "BotConfig: max_steps"),
    "a mode": Mistake(
        "tool_schema_mode: always\n", _settings(tool_schema_mode="always"),
        ("tool_schema_mode is 'always'", "'tool_search', 'auto' or 'shadow'"),
        "line 1: tool_schema_mode", "ToolSearchConfig: tool_schema_mode"),
    "a text for a list": Mistake(
        "tool_search: {always_loaded_tools: send_mail}\n",
        _settings(always_loaded_tools="send_mail"),
        ("always_loaded_tools is 'send_mail'", "should be a list"),
        "line 1: tool_search.always_loaded_tools", "ToolSearchConfig: always_loaded_tools"),
    "an engine": Mistake(
        "tool_search: {search: {engine: bm26}}\n", lambda: SearchSettings(engine="bm26"),
        ("engine is 'bm26'", "there are bm25, rank_bm25"),
        "line 1: tool_search.search.engine", "SearchSettings: engine"),
    "a key of an inner section": Mistake(
        "tool_search: {search: {engin: bm25}}\n", _settings(search={"engin": "bm25"}),
        ("search.engin is unknown", "did you mean 'engine'?"),
        "line 1: tool_search.search.engin", "ToolSearchConfig: search.engin"),
    "a section": Mistake(
        "providors: []\n", lambda: open_bot({"providors": []}),
        ("providors is unknown", "did you mean 'providers'?"),
        "line 1: providors", "configuration: providors"),
    "a language": Mistake(
        "tool_search: {language: fr-FR}\n", _settings(language="fr-FR"),
        ("language is 'fr-FR'", "'zh-CN', 'en-US' or 'ru-RU'"),
        "line 1: tool_search.language", "ToolSearchConfig: language"),
    "a kind of provider": Mistake(
        "providers: [{id: a, type: antropic, model: m}]\n", _provider(type="antropic"),
        ("type is 'antropic'", "use one of anthropic", "did you mean 'anthropic'?"),
        "line 1: providers[0].type", "ProviderConfig: type"),
    "no model": Mistake(
        "providers: [{id: a, type: openai}]\n",
        lambda: ProviderConfig(**_NO_MODEL),
        ("model is missing",), "line 1: providers[0].model", "ProviderConfig: model"),
    "a key as a setting": Mistake(
        PROVIDER.format("api_key: sk-secret"), _provider(api_key="sk-secret"),
        ("api_key is unknown", "comes from the environment", "name it in api_key_env"),
        "line 1: providers[0].api_key", "ProviderConfig: api_key"),
    "a key for its variable": Mistake(
        PROVIDER.format("api_key_env: sk-secret"), _provider(api_key_env="sk-secret"),
        ("api_key_env is not allowed", "name of an environment variable"),
        "line 1: providers[0].api_key_env", "ProviderConfig: api_key_env"),
    "an address": Mistake(
        PROVIDER.format("base_url: localhost"), _provider(base_url="localhost"),
        ("base_url is not allowed", "must begin with http:// or https://"),
        "line 1: providers[0].base_url", "ProviderConfig: base_url"),
    "a strategy": Mistake(
        PROVIDER.format("api_key_env: null, strategy: claud"),
        lambda: profile_for("openai", "gpt-5.4", strategy="claud"),
        ("'claud'", "'claude'"), "strategy", "strategy"),
    "no variable of the key": Mistake(
        PROVIDER.format("api_key_env: NOT_SET"),
        lambda: build_provider(ProviderConfig(
            id="a", type="openai_chat", model="gpt-5.4", api_key_env="NOT_SET")),
        ("NOT_SET is not set", "set it to the API key"), "provider 'a'", "provider 'a'"),
    "no provider": Mistake(
        "providers: []\n", lambda: Bot([]),
        ("needs at least one provider", "such as 'anthropic:claude-sonnet-4-6'"),
        "providers is empty", "providers is empty"),
    "a type without a schema": Mistake(
        _tools("class Foreign: ...\ndef foreign(value: Foreign) -> str: ...\n"),
        lambda: tool_from_function(foreign),
        ("parameter 'value' of type 'Foreign'", "use str, int, float"),
        "tool 'foreign'", "tool 'foreign'"),
    "a definition for a function": Mistake(
        _tools("from tool_search import Tool\nTOOLS = [Tool(name='get')]\n"),
        lambda: ToolSearchSession(tools=[Tool(name="get")]),
        ("the definition 'get', which has no function", "give the function itself"),
        "module 'bot_tools'", "a tool must be a function"),
    "one name twice": Mistake(
        _tools("def twice() -> str:\n    'Do it.'\nTOOLS = [twice, twice]\n"),
        lambda: ToolSearchSession(tools=[twice, twice]),
        ("two tools", "'twice'", "rename one"), "", "two tools"),
}  # fmt: skip


@pytest.fixture(autouse=True)
def _without_keys(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    for name in ("OPENAI_API_KEY", "ANTHROPIC_API_KEY", "NOT_SET"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(sys, "path", [*sys.path])
    yield
    sys.modules.pop("bot_tools", None)


def test_there_are_twenty() -> None:
    assert len(MISTAKES) == 20


@pytest.mark.parametrize("name", MISTAKES)
def test_python_says_what_value_where_and_remedy(name: str) -> None:
    mistake = MISTAKES[name]
    with pytest.raises(ToolSearchError) as caught:
        mistake.python()
    said = str(caught.value)
    assert [words for words in (*mistake.both, mistake.place) if words not in said] == [], said
    assert "sk-secret" not in said
    assert "pydantic" not in said.replace("a pydantic model", "")


@pytest.mark.parametrize("name", MISTAKES)
def test_the_command_says_the_same_of_a_file(name: str, tmp_path: Path) -> None:
    mistake = MISTAKES[name]
    yaml, module = (mistake.yaml, "") if isinstance(mistake.yaml, str) else mistake.yaml
    file = tmp_path / "bot.yaml"
    file.write_text(yaml, encoding="utf-8")
    if module:
        (tmp_path / "bot_tools.py").write_text(module, encoding="utf-8")
    done = CliRunner().invoke(app, ["chat", "--config", str(file)], input="Hello\n")
    said = done.stderr
    assert (done.exit_code, done.stdout) == (2, ""), said
    assert said.startswith("error: ")
    assert [words for words in (*mistake.both, mistake.key) if words not in said] == [], said
    assert "Traceback" not in said
    assert "sk-secret" not in said


@pytest.mark.parametrize(
    ("given", "remedy"),
    [
        ([twice], "tool_from_function(function).tool"),
        ([tool_from_function(twice)], "item.tool for item in tools"),
        ({"name": "get"}, "tool_from_definition(definition)"),
        ("tools.json", "parse_tools(text)"),
        ([3], "Tool(name=..., description=..., parameters=...)"),
    ],
)
def test_a_catalog_of_something_else_says_how_to_make_one(given: Wrong, remedy: str) -> None:
    with pytest.raises(
        tool_search.InvalidToolError, match="a catalog holds Tool objects"
    ) as caught:
        ToolCatalog(given)
    assert remedy in str(caught.value)


@pytest.mark.parametrize("given", [twice, "twice", {"twice": twice}])
def test_tools_that_are_not_a_list_are_refused(given: Wrong) -> None:
    with pytest.raises(
        tool_search.InvalidToolError, match=r"must be a list.*write tools=\[\.\.\.\]"
    ):
        Bot("openai:gpt-5.4", tools=given)


def test_an_unknown_field_of_a_tool_names_the_nearest() -> None:
    with pytest.raises(tool_search.InvalidToolError, match="did you mean 'description'"):
        tool_from_function(twice, descripton="Do it.")


def test_settings_and_tools_of_an_index_are_checked() -> None:
    wrong: Wrong = "bm25"
    with pytest.raises(tool_search.ConfigurationError, match="write SearchSettings"):
        tool_search.build_index([Tool(name="get")], wrong)
    with pytest.raises(tool_search.InvalidToolError, match="tool_from_function"):
        tool_search.build_index([wrong])


class _Formless:
    pass


def _undocumented(a: int) -> int:
    return a


def _untyped(a, b: int = 1):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN202
    """Add."""
    return a + b


def test_what_a_model_will_see_is_one_warning_each(caplog: pytest.LogCaptureFixture) -> None:
    tool_from_function(_undocumented)
    tool_from_function(_untyped)
    for _ in range(2):
        profile_for("openai", "gpt-unheard-of")
    codes = [record.message.partition(":")[0] for record in caplog.records]
    assert codes == [
        "function_without_docstring", "parameters_without_types", "model_not_known",
    ]  # fmt: skip
    assert all("sees" in record.message for record in caplog.records)


async def test_a_result_without_a_form_is_one_warning(caplog: pytest.LogCaptureFixture) -> None:
    def make() -> object:
        """Make it."""
        return _Formless()

    trial = ToolTrial(make)
    for _ in range(2):
        assert "_Formless object" in (await trial.call()).content
    (record,) = caplog.records
    assert "a model sees '<_Formless object at" in record.message
    assert "give render=" in record.message


async def test_a_refused_key_names_its_variable_and_advises_no_repetition(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("MY_KEY", "sk-of-a-test")
    with StandInServer() as server:
        server.faults.add(Fault(dialect="openai_chat", status=401, times=None))
        config = ProviderConfig(
            id="a", type="openai_chat", model="m", api_key_env="MY_KEY",
            base_url=server.openai_base_url,
        )  # fmt: skip
        async with Bot([config], tools=[]) as bot:
            with pytest.raises(tool_search.AllProvidersFailedError) as caught:
                await bot.ask("Hello")
    said = str(caught.value)
    assert "the key in the environment variable MY_KEY is not accepted" in said
    assert said.endswith("correct the keys, then ask again")
    assert "try again" not in said
