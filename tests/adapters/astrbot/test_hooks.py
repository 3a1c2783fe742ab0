"""The hooks on AstrBot's classes and its preferences of a place, without AstrBot."""

from __future__ import annotations

import sys
from functools import wraps
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

from tool_search.adapters.astrbot.claude import ClaudeHook
from tool_search.adapters.astrbot.installation import InstalledHooks
from tool_search.adapters.astrbot.preferences import (
    PlaceSettings,
    is_switched_off,
    restricted_tools,
)
from tool_search.adapters.astrbot.responses import ResponsesHook
from tool_search.adapters.astrbot.settings import (
    PLACE_SETTINGS,
    place_value,
    read_settings,
    usable_engines,
)
from tool_search.core.catalog.tool import Tool


class Provider:
    """As AstrBot's Responses provider, in what the hook touches."""

    def __init__(self, address: str = "https://api.openai.com/v1", model: str = "gpt-5.4") -> None:
        self.client = SimpleNamespace(base_url=address)
        self._model = model

    def get_model(self) -> str:
        """Return the model."""
        return self._model

    async def _query(self, payloads: Any, tools: Any) -> Any:
        return payloads, tools

    async def _query_stream(self, payloads: Any, tools: Any) -> Any:
        yield payloads, tools

    async def _parse_response(self, response: Any, tools: Any) -> Any:
        return response, tools


class Vendor(Provider):
    """Somebody else's, made from the same class."""


class RefusedError(Exception):
    """As the SDK raises it."""

    status_code = 400


@pytest.mark.parametrize("method", ["text_chat", "text_chat_stream"])
def test_a_class_that_lacks_a_method_is_not_touched(method: str) -> None:
    """Otherwise half a hook would remain."""
    kept = {"text_chat": lambda: 1, "text_chat_stream": lambda: 2}
    del kept[method]
    owner = type("ProviderAnthropic", (), dict(kept))
    hook = ClaudeHook(owner)
    with pytest.raises(AttributeError, match=method):
        hook.install()
    assert not hook.is_installed
    assert {name: vars(owner)[name] for name in kept} == kept


def test_an_inherited_method_is_inherited_again() -> None:
    owner = type("Own", (Provider,), {})
    hook = ResponsesHook(owner)
    hook.install()
    assert "_query" in vars(owner)
    hook.remove()
    assert not any(name.startswith("_query") for name in vars(owner))


def test_a_wrapper_of_someone_elses_is_left_alone() -> None:
    owner = type("Own", (Provider,), {})
    hook = ResponsesHook(owner)
    hook.install()
    theirs = vars(owner)["_query"].__get__
    owner._query = theirs  # type: ignore[attr-defined]
    hook.remove()
    assert vars(owner)["_query"] == theirs


async def test_a_wrapper_around_ours_stays_when_ours_is_loaded_again() -> None:
    """`functools.wraps` gives it the attributes of ours."""
    owner, seen = type("Own", (Provider,), {}), []
    first = ResponsesHook(owner)
    first.install()
    ours = owner._query  # type: ignore[attr-defined]

    @wraps(ours)
    async def theirs(provider: Any, *args: Any) -> Any:
        seen.append(args)
        return await ours(provider, *args)

    owner._query = theirs  # type: ignore[attr-defined]
    first.remove()
    second = ResponsesHook(owner)
    second.install()
    assert await owner()._query({}, None) == ({}, None)
    assert seen == [({}, None)]
    second.remove()
    assert vars(owner)["_query"] is theirs


def test_a_hook_that_another_plugin_removes_at_its_end_comes_back() -> None:
    owner = type("Own", (Provider,), {})
    hook = ResponsesHook(owner)
    hook.install()
    ours = vars(owner)["_query"]
    assert not hook.restore()
    owner._query = Provider._query  # type: ignore[attr-defined]
    assert hook.restore()
    assert vars(owner)["_query"] is ours
    hook.remove()
    assert owner._query is Provider._query  # type: ignore[attr-defined]


async def test_requests_of_others_pass_the_hook() -> None:
    hook = ResponsesHook(Provider)
    hook.install()
    try:
        assert await Provider()._query({"input": []}, None) == ({"input": []}, None)
        assert [c async for c in Provider()._query_stream({}, None)] == [({}, None)]
        assert await Provider()._parse_response("reply", None) == ("reply", None)
    finally:
        hook.remove()


@pytest.mark.parametrize(
    ("native", "provider", "strategy", "form"),
    [
        ("auto", Provider(), "openai_responses", "client"),
        ("auto", Provider(model="gpt-5.1"), "openai_responses", "additional"),
        ("auto", Provider(model="gpt-4o"), "generic", "client"),
        ("on", Provider(model="gpt-4o"), "generic", "client"),
        ("auto", Provider("https://proxy.example/v1"), "generic", "client"),
        ("on", Provider("https://proxy.example/v1"), "openai_responses", "client"),
        ("off", Provider(), "generic", "client"),
        ("on", Vendor(), "generic", "client"),
    ],
)
def test_openais_own_search_is_for_openai(
    native: Any, provider: Provider, strategy: str, form: str
) -> None:
    profile = ResponsesHook(Provider).profile(provider, native)
    assert (profile.strategy, profile.search_form) == (strategy, form)


def test_an_endpoint_that_does_not_know_tool_search_is_remembered() -> None:
    hook = ResponsesHook(Provider)
    profile = hook.profile(Provider())
    assert hook.should_filter(Provider(), profile, RefusedError("Unknown parameter: tool_search"))
    assert not hook.profile(Provider()).is_native
    assert hook.profile(Provider("https://other.example"), "on").is_native


@pytest.mark.parametrize(
    "said",
    [
        "Missing namespace for function_call 'send_mail'. It does not exist",
        "Invalid 'tools': array too long. Expected an array with maximum length 128",
    ],
)
def test_a_mistake_of_ours_is_sent_otherwise_once(said: str) -> None:
    hook = ResponsesHook(Provider)
    profile = hook.profile(Provider())
    assert hook.should_filter(Provider(), profile, RefusedError(said))
    assert hook.profile(Provider()).is_native


def test_any_other_error_is_astrbots() -> None:
    hook = ResponsesHook(Provider)
    profile = hook.profile(Provider())
    assert not hook.should_filter(Provider(), profile, RefusedError("the model is overloaded"))
    assert not hook.should_filter(
        Provider(), profile.generic(), RefusedError("Unknown: tool_search")
    )


async def test_a_provider_that_cannot_be_looked_at_is_filtered(
    caplog: pytest.LogCaptureFixture,
) -> None:
    hook = ResponsesHook(Provider)
    hook.install()
    try:
        run = SimpleNamespace(settings=None)
        tools = SimpleNamespace(tool_search_run=run)
        assert hook.request_profile(Provider(), tools) is None
    finally:
        hook.remove()


def test_an_astrbot_without_its_classes_has_no_hook(caplog: pytest.LogCaptureFixture) -> None:
    async def prepare(*_given: Any) -> None:
        """Never called."""

    InstalledHooks(prepare).install(read_settings({}))
    assert caplog.text.count("this AstrBot is not as expected") == 3
    assert "ProviderAnthropic" in caplog.text
    assert "ToolLoopAgentRunner" in caplog.text
    assert "ProviderOpenAIOfficial" in caplog.text


class Preferences:
    """As AstrBot's, in memory."""

    def __init__(self, **kept: Any) -> None:
        self.kept: dict[tuple[str, str], Any] = {("global", key): kept[key] for key in kept}

    async def session_get(self, umo: str | None, key: str, default: Any = None) -> Any:
        """One place's value, or those of all places."""
        if umo is None:
            return [
                SimpleNamespace(scope_id=place, value={"val": value})
                for (place, each), value in self.kept.items()
                if each == key
            ]
        return self.kept.get((umo, key), default)

    async def session_put(self, umo: str, key: str, value: Any) -> None:
        """Keep it."""
        self.kept[umo, key] = value

    async def session_remove(self, umo: str, key: str) -> None:
        """Forget it."""
        del self.kept[umo, key]

    async def global_get(self, key: str, default: Any) -> Any:
        """Everybody's value."""
        return await self.session_get("global", key, default)


@pytest.fixture
def preferences(monkeypatch: pytest.MonkeyPatch) -> Preferences:
    """AstrBot's preferences, at the import path that the adapter uses."""
    made = Preferences(tool_permissions={"_default": {"alpha": "admin"}})
    core = ModuleType("astrbot.core")
    core.sp = made  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "astrbot", ModuleType("astrbot"))
    monkeypatch.setitem(sys.modules, "astrbot.core", core)
    return made


async def test_settings_of_a_place_are_kept_and_taken_back(
    preferences: Preferences, tmp_path: Path
) -> None:
    places = PlaceSettings(tmp_path / "places.json")
    await places.save("here", {"threshold": 3, "cover_subagents": False})
    again = PlaceSettings(tmp_path / "places.json")
    assert await again.load("here") == {"threshold": 3}
    assert await again.load("there") == {}
    await again.save("here", {})
    assert await again.load("here") == {}
    assert await PlaceSettings(tmp_path / "places.json").load("here") == {}


async def test_settings_in_astrbots_preferences_are_moved(
    preferences: Preferences, tmp_path: Path
) -> None:
    preferences.kept["there", "tool_search_settings"] = {"threshold": 4}
    places = PlaceSettings(tmp_path / "places.json")
    assert await places.load("there") == {"threshold": 4}
    assert ("there", "tool_search_settings") not in preferences.kept
    assert await PlaceSettings(tmp_path / "places.json").load("there") == {"threshold": 4}


def guarded(name: str) -> Any:
    """Return a tool in AstrBot's guard."""
    return SimpleNamespace(name=name, _wrapped=SimpleNamespace(name=name))


DEFINITIONS = {name: Tool(name=name, kind="mcp", server="s") for name in ("alpha", "beta")}
GUARDED = {name: guarded(name) for name in DEFINITIONS}


async def test_tools_for_administrators_are_read(preferences: Preferences) -> None:
    members = SimpleNamespace(_default_permission=lambda _: "member")
    assert await restricted_tools(members, DEFINITIONS, GUARDED) == {"alpha"}
    admins = SimpleNamespace(_default_permission=lambda _: "admin")
    assert await restricted_tools(admins, DEFINITIONS, GUARDED) == {"alpha", "beta"}


async def test_without_a_guard_there_are_no_permissions(
    caplog: pytest.LogCaptureFixture,
) -> None:
    plain = {name: SimpleNamespace(name=name) for name in DEFINITIONS}
    assert not await restricted_tools(SimpleNamespace(), DEFINITIONS, plain)
    assert not caplog.text


@pytest.mark.parametrize("kept", ["no mapping", {"_default": "no mapping"}])
async def test_permissions_that_cannot_be_read_are_left_to_the_guard(
    preferences: Preferences, kept: Any, caplog: pytest.LogCaptureFixture
) -> None:
    preferences.kept["global", "tool_permissions"] = kept
    manager = SimpleNamespace(_default_permission=lambda _: "member")
    assert not await restricted_tools(manager, DEFINITIONS, GUARDED)
    assert "permissions cannot be read" in caplog.text


async def test_a_manager_without_permissions_is_left_to_the_guard(
    preferences: Preferences, caplog: pytest.LogCaptureFixture
) -> None:
    assert not await restricted_tools(SimpleNamespace(), DEFINITIONS, GUARDED)
    assert "_default_permission" in caplog.text


@pytest.mark.parametrize(
    ("plugins", "off"), [(["other"], True), (["mine", "other"], False), ([], True)]
)
async def test_a_configurations_list_of_plugins_counts(
    plugins: list[str], off: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Manager:
        @staticmethod
        def is_plugin_enabled_for_session(_umo: str, _plugin: str) -> bool:
            return True

    module = ModuleType("astrbot.core.star.session_plugin_manager")
    module.SessionPluginManager = Manager  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, module.__name__, module)
    event = SimpleNamespace(plugins_name=plugins, unified_msg_origin="here")
    assert await is_switched_off(event, "mine") is off


@pytest.mark.parametrize(
    ("setting", "written", "value"),
    [
        ("tool_schema_mode", "full", "full"),
        ("tool_schema_mode", "skills_like", None),
        ("threshold", "40", 40),
        ("threshold", "-1", None),
        ("threshold", "many", None),
        ("max_results", "0", None),
        ("native_openai", "on", "on"),
    ],
)
def test_a_value_is_read_as_it_is_written(setting: str, written: str, value: Any) -> None:
    assert place_value(setting, written) == value


def test_every_setting_of_a_place_is_one_of_the_plugins() -> None:
    for setting, choices in PLACE_SETTINGS.items():
        for choice in choices or ("7",):
            value = place_value(setting, choice)
            assert read_settings({setting: value}) is not None
            # An engine without its package is refused, and the refusal names the others.
            assert (value is not None) is (setting != "engine" or choice in usable_engines())
