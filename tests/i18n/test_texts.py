"""What models and people read, in three languages."""

from __future__ import annotations

import re
import string
from pathlib import Path

import pytest

from tool_search.i18n import LANGUAGES, Language, language_of, locale, text

ROOT = Path(__file__).resolve().parents[2]
KEYS = sorted({key for language in LANGUAGES for key in locale(language)})
SOURCES = {
    path: path.read_text(encoding="utf-8")
    for folder in ("tool_search", "adapters")
    for path in sorted((ROOT / folder).rglob("*.py"))
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
    """Under its whole key, or by its last word where a module has keys of one group."""
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
    script = {
        "zh-CN": r"[\u4e00-\u9fff]",
        "ru-RU": r"[а-яё]",
        "en-US": r"^[^\u0400-\u04ff\u4e00-\u9fff]*$",
    }
    for key, sentence in locale(language).items():
        assert re.search(script[language], sentence), key


def test_a_key_that_is_not_there_is_a_mistake_of_ours() -> None:
    with pytest.raises(KeyError):
        text("no.such.key", "en-US")
    with pytest.raises(KeyError):
        text("call.failed", "en-US")


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
def test_the_language_is_told_by_the_script(sample: str, language: Language) -> None:
    assert language_of(sample) == language
