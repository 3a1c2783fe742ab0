"""Texts for models and people, in each language."""

from __future__ import annotations

import re
import string
from pathlib import Path

import pytest

from tool_search import ConfigurationError, ToolSearchConfig
from tool_search.i18n import (
    LANGUAGES,
    Language,
    language_of,
    language_of_locale,
    locale,
    script_of,
    text,
)

ROOT = Path(__file__).resolve().parents[2]
KEYS = sorted({key for language in LANGUAGES for key in locale(language)})
SOURCES = {
    path: path.read_text(encoding="utf-8")
    for folder in ("tool_search", "adapters")
    for pattern in ("*.py", "*.html")
    for path in sorted((ROOT / folder).rglob(pattern))
}


def placeholders(sentence: str) -> set[str]:
    """The names between braces."""
    return {name for _, name, _, _ in string.Formatter().parse(sentence) if name is not None}


@pytest.mark.parametrize("language", LANGUAGES)
def test_every_language_says_everything(language: Language) -> None:
    assert sorted(locale(language)) == KEYS
    assert all(sentence.strip() for sentence in locale(language).values())


def test_a_sentence_has_the_same_placeholders_in_every_language() -> None:
    for key in KEYS:
        first, *others = (placeholders(locale(language)[key]) for language in LANGUAGES)
        assert all(other == first for other in others), key


def test_every_sentence_is_used() -> None:
    """By its whole key, or by its last word in a module with keys of one group."""
    everything = "".join(SOURCES.values())
    unused = []
    for key in KEYS:
        group, _, word = key.partition(".")
        in_its_group = f'f"{group}.{{' in everything and f'"{word}"' in everything
        if f'"{key}"' not in everything and not in_its_group:
            unused.append(key)
    assert unused == []


@pytest.mark.parametrize("language", LANGUAGES)
def test_every_sentence_can_be_filled(language: Language) -> None:
    for key in KEYS:
        values = dict.fromkeys(placeholders(locale(language)[key]) - {"key", "language"}, "{x}")
        assert text(key, language, **values).count("{x}") >= len(values), key


@pytest.mark.parametrize("language", LANGUAGES)
def test_a_language_is_written_in_its_script(language: Language) -> None:
    own = script_of(language)
    if own is None:
        pytest.skip("it shares its letters with another language")
    others = {script_of(each) for each in LANGUAGES} - {own, script_of("en-US"), None}
    for key, sentence in locale(language).items():
        assert re.search(own, sentence), key
        assert not any(re.search(other, sentence) for other in others if other), key


def test_every_locale_is_a_language_and_has_a_file() -> None:
    files = {path.stem for path in (ROOT / "i18n" / "locales").glob("*.json")}
    assert set(LANGUAGES) == files


@pytest.mark.parametrize("language", LANGUAGES)
def test_settings_take_every_language(language: Language) -> None:
    assert ToolSearchConfig(language=language).language == language
    assert language_of_locale(language.replace("-", "_") + ".UTF-8") == language


@pytest.mark.parametrize("name", ["", "C", "C.UTF-8", "POSIX", "zhuang", "fr_FR.UTF-8"])
def test_another_locale_is_answered_in_english(name: str) -> None:
    assert language_of_locale(name) == "en-US"


def test_settings_refuse_an_unknown_language() -> None:
    *others, last = map(repr, ("auto", *LANGUAGES))
    with pytest.raises(ConfigurationError, match=f"{', '.join(others)} or {last}"):
        ToolSearchConfig(language="fr-FR")


def test_a_key_that_is_not_there_is_a_mistake_of_ours() -> None:
    with pytest.raises(KeyError):
        text("no.such.key", "en-US")
    with pytest.raises(KeyError):
        text("call.failed", "en-US")
    with pytest.raises(ConfigurationError, match="no language 'fr-FR'; known are zh-CN, en-US"):
        text("call.failed", "fr-FR")


@pytest.mark.parametrize(
    ("sample", "language"),
    [
        ("帮我查一下明天北京的天气", "zh-CN"),
        ("帮我 check 一下 weather", "zh-CN"),
        ("请翻译：hello", "zh-CN"),
        ("天气", "zh-CN"),
        ("Какая завтра погода?", "ru-RU"),
        ("Что такое API и SDK, скажи", "ru-RU"),
        ("Їжак", "ru-RU"),
        ("What is the weather?", "en-US"),
        ("Translate the word 天气 for me, please", "en-US"),
        ("明日の天気は？", "en-US"),
        ("내일 날씨 어때", "en-US"),
        ("¿Qué tiempo hace?", "en-US"),
        ("", "en-US"),
        ("123 ?!", "en-US"),
        ("👍", "en-US"),
        ("\ud800", "en-US"),
    ],
)
def test_the_script_decides_the_language(sample: str, language: Language) -> None:
    assert language_of(sample) == language
