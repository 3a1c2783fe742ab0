"""The place of a bot's store."""

from __future__ import annotations

from pathlib import Path

import pytest

from tool_search import ConfigurationError, load_config
from tool_search.config.stores import StoreSettings, default_store_path


def test_a_bot_has_a_file_in_the_users_data_folder(tmp_path: Path) -> None:
    path = default_store_path(environment={"XDG_DATA_HOME": str(tmp_path)})
    assert path == tmp_path / "tool-search" / "bot.db"


@pytest.mark.parametrize("named", ["", "relative/folder"])
def test_a_folder_that_is_not_absolute_is_not_meant(named: str) -> None:
    path = default_store_path(environment={"XDG_DATA_HOME": named})
    assert path == Path.home() / ".local" / "share" / "tool-search" / "bot.db"


def test_bots_with_configuration_files_have_a_store_each(tmp_path: Path) -> None:
    files = [tmp_path / "a" / "bot.yaml", tmp_path / "b" / "bot.yaml", tmp_path / "a" / "x.yaml"]
    assert len({StoreSettings().file(source) for source in files}) == 3
    assert StoreSettings().file(files[0]) == StoreSettings().file(tmp_path / "a/../a/bot.yaml")


def test_a_path_is_relative_to_the_configuration(tmp_path: Path) -> None:
    source = tmp_path / "bot.yaml"
    assert StoreSettings(path="data/x.db").file(source) == tmp_path / "data" / "x.db"
    assert StoreSettings(path="/data/x.db").file(source) == Path("/data/x.db")
    assert StoreSettings(path="~/x.db").file(source) == Path.home() / "x.db"


@pytest.mark.parametrize(
    ("text", "messages"),
    [
        ("store: {type: redis9}\n", ("line 1: store.type", "'redis9'", "sqlite")),
        ("store: {keep_days: 0}\n", ("store.keep_days is 0", "greater than 0")),
        ("store: {keep_conversations: none}\n", ("store.keep_conversations is 'none'",)),
        ("store: {synchronous: extra}\n", ("store.synchronous is 'extra'", "'normal'")),
        (
            "store: {file: x}\n",
            ("store.file is unknown", "keep_days, path, prefix, synchronous, type"),
        ),
        ("store: {type: redis, prefix: 'a{b}'}\n", ("store.prefix is 'a{b}'",)),
        ("store: {type: redis, keep_conversations: 9}\n", ("keep_conversations", "keep_days")),
        ("store: {url: redis://localhost}\n", ("url is for type redis", "'sqlite'")),
        (
            "tool_search:\n  learning: {active: true}\n",
            ("line 2", "learning.active is unknown", "enabled"),
        ),
        ("tool_search:\n  learning: {enabled: maybe}\n", ("learning.enabled", "'maybe'")),
    ],
)
def test_a_wrong_setting_is_named(tmp_path: Path, text: str, messages: tuple[str, ...]) -> None:
    path = tmp_path / "bot.yaml"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(ConfigurationError) as caught:
        load_config(path)
    assert [message for message in messages if message not in str(caught.value)] == []


def test_settings_are_read_from_yaml(tmp_path: Path) -> None:
    path = tmp_path / "bot.yaml"
    path.write_text(
        "store: {type: memory}\ntool_search:\n  learning: {enabled: false}\n", encoding="utf-8"
    )
    config = load_config(path)
    assert config.store.type == "memory"
    assert not config.tool_search.learning.enabled


@pytest.mark.parametrize(
    "text",
    [
        "store: {type: sqlite, url: 'redis://:s3cret@host'}\n",
        "store: {type: redis, url: ['redis://:s3cret@host']}\n",
        "store: {type: redis, url: 'redis://:s3cret@host', keep_conversations: 3}\n",
    ],
)
def test_an_address_with_a_password_is_in_no_error(tmp_path: Path, text: str) -> None:
    path = tmp_path / "bot.yaml"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(ConfigurationError) as caught:
        load_config(path)
    assert "s3cret" not in str(caught.value)
    assert "s3cret" not in repr(caught.value.__cause__)
    assert "s3cret" not in repr(StoreSettings(type="redis", url="redis://:s3cret@host"))


def test_the_address_of_redis_is_in_the_settings_or_the_environment() -> None:
    known = {"REDIS_URL": "redis://b"}
    assert StoreSettings(type="redis", url="redis://a").address(known) == "redis://a"
    assert StoreSettings(type="redis").address(known) == "redis://b"
    with pytest.raises(ConfigurationError, match="REDIS_URL"):
        StoreSettings(type="redis").address({})
