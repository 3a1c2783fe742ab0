"""Builds the AstrBot plugin's zip, the library inside: nothing needs publishing.

    python .ci/astrbot_plugin.py dist/astrbot_plugin_tool_search.zip

The same sources give the same bytes.
"""

import re
import sys
import zipfile
from collections.abc import Iterator, Mapping
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PLUGIN = ROOT / "examples" / "astrbot_plugin_tool_search"
NAME = PLUGIN.name
# What no bot's process runs.
LEFT_OUT = ("cli", "demo", "testing", "workspace")
FIRST_DAY = (1980, 1, 1, 0, 0, 0)


def library_files() -> Iterator[tuple[Path, str]]:
    """Every file of the library, and where it stands once installed."""
    library = ROOT / "tool_search"
    # `adapters` and `i18n` are links, which `rglob` does not follow.
    for folder in (library, library / "adapters", library / "i18n"):
        for source in sorted(folder.rglob("*")):
            place = source.relative_to(library)
            is_part = place.parts[0] not in LEFT_OUT and "__pycache__" not in place.parts
            if is_part and source.is_file():
                yield source, f"library/tool_search/{place.as_posix()}"


def plugin_files() -> Iterator[tuple[Path, str]]:
    """The plugin's own files."""
    for source in sorted(PLUGIN.rglob("*")):
        if source.is_file() and "__pycache__" not in source.parts:
            yield source, source.relative_to(PLUGIN).as_posix()


def _readmes_without_pictures() -> dict[str, str]:
    return {
        source.name: re.sub(
            r"^!\[.*\n\n", "", source.read_text(encoding="utf-8"), flags=re.MULTILINE
        )
        for source in PLUGIN.glob("README*.md")
    }


def contents() -> Iterator[tuple[Path, str]]:
    """All files of the plugin, and their places in its folder."""
    yield from plugin_files()
    yield ROOT / "LICENSE", "LICENSE"
    yield from library_files()


def build(target: Path, changed: Mapping[str, str] | None = None) -> int:
    """Write the zip; return the number of its files.

    Args:
        target: The zip.
        changed: Texts that replace those of files, by place; by default, the READMEs without
            pictures: AstrBot shows a picture that has no address as a broken one.
    """
    changed = _readmes_without_pictures() if changed is None else changed
    target.parent.mkdir(parents=True, exist_ok=True)
    files = list(contents())
    with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as archive:
        for source, place in files:
            entry = zipfile.ZipInfo(f"{NAME}/{place}", FIRST_DAY)
            entry.compress_type = zipfile.ZIP_DEFLATED
            entry.external_attr = 0o644 << 16
            text = changed.get(place)
            archive.writestr(entry, source.read_bytes() if text is None else text.encode())
    return len(files)


if __name__ == "__main__":
    written = Path(sys.argv[1] if len(sys.argv) > 1 else ROOT / "dist" / f"{NAME}.zip")
    print(f"{written}: {build(written)} files, {written.stat().st_size:,} bytes")
