"""Write the AstrBot plugin as a folder that can be pushed as a repository, and its zip.

    python .ci/astrbot_release.py --url https://github.com/OWNER/NAME --author OWNER

Repository and author are those given, or those that `make release` has written into
`pyproject.toml`. Nothing is invented: without them nothing is written. A folder that is a clone
keeps its `.git`.
"""

from __future__ import annotations

import argparse
import re
import shutil
import sys
import tomllib
from collections.abc import Mapping
from pathlib import Path
from urllib.parse import urlsplit

import yaml
from astrbot_plugin import NAME, ROOT, build, contents

# "AstrBot plugin market JSON specification", 2026-06-27, sections 5 and 7.1:
# https://docs.astrbot.app/en/dev/plugin-market/2026-06-27.html
MARKET_URL = re.compile(
    r"https://github\.com/(?P<home>[A-Za-z0-9_-]+/[A-Za-z0-9_-]+)"
    r"(\.git|/tree/(?P<branch>[A-Za-z0-9_-]+))?"
)
# https://docs.astrbot.app/en/dev/star/plugin-publish.html: the market refuses larger zips.
MAX_BYTES = 16 * 1024 * 1024


def written_project(root: Path) -> tuple[str, str]:
    """Return the address and the author that `make release` has written; empty if it has not."""
    described = tomllib.loads((root / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    author = next((each["name"] for each in described.get("authors", ())), "")
    return described.get("urls", {}).get("Source", ""), author


def library_version() -> str:
    """Return the library's version, which is the plugin's."""
    text = (ROOT / "tool_search" / "__init__.py").read_text(encoding="utf-8")
    (version,) = re.findall(r'^__version__ = "([^"]+)"$', text, re.MULTILINE)
    return str(version)


def released_metadata(text: str, *, url: str, author: str, version: str) -> str:
    """Return `metadata.yaml` with the address, the author and the version of a release.

    Raises:
        ValueError: The address or the author is not usable.
    """
    parts = urlsplit(url)
    if parts.scheme != "https" or not parts.netloc or not parts.path.strip("/"):
        raise ValueError(f"URL={url!r} is not the address of a repository: https://host/owner/name")
    name = author.partition("<")[0].strip()
    if not name or "/" in name or any(ord(char) < 32 or ord(char) == 127 for char in name):
        raise ValueError(f"AUTHOR={author!r} is not a name without a slash, or a name and <mail>")
    values = {"repo": url.rstrip("/"), "author": name, "version": version}
    for key, value in values.items():
        line = yaml.safe_dump({key: value}, allow_unicode=True, width=1_000).strip()
        text, count = re.subn(
            rf"^{key}:.*$", lambda _, line=line: line, text, count=1, flags=re.MULTILINE
        )
        if not count:
            raise ValueError(f"metadata.yaml has no line {key!r} to write")
    return text


def with_addresses(text: str, url: str) -> str:
    """Return a page whose relative links lead to a repository of GitHub.

    AstrBot shows README.md in its WebUI, where relative links and pictures lead nowhere.
    """
    found = MARKET_URL.fullmatch(url.rstrip("/"))
    if found is None:
        return text
    place = f"{found['home'].removesuffix('.git')}/{{}}{found['branch'] or 'HEAD'}/"
    raw = "https://raw.githubusercontent.com/" + place.format("")
    page = "https://github.com/" + place.format("blob/")
    text = re.sub(r"(!\[[^\]]*\]\()([^):]+\))", rf"\g<1>{raw}\g<2>", text)
    return re.sub(r"((?<!!)\[[^\]]*\]\()([^):]+\))", rf"\g<1>{page}\g<2>", text)


def released_texts(url: str, author: str) -> dict[str, str]:
    """Return the files that a release changes, by place."""
    folder = ROOT / "examples" / NAME
    metadata = (folder / "metadata.yaml").read_text(encoding="utf-8")
    return {
        "metadata.yaml": released_metadata(
            metadata, url=url, author=author, version=library_version()
        ),
        **{
            page.name: with_addresses(page.read_text(encoding="utf-8"), url)
            for page in folder.glob("README*.md")
        },
    }


def write_folder(folder: Path, changed: Mapping[str, str]) -> int:
    """Write the plugin's files as the content of a folder; return their number.

    Args:
        folder: The folder.
        changed: Texts that replace those of files, by place.

    Raises:
        ValueError: The folder holds something else.
    """
    if folder.exists():
        others = [each for each in folder.iterdir() if each.name != ".git"]
        if others and not (folder / "metadata.yaml").is_file():
            raise ValueError(f"{folder} holds something else than the plugin: empty it first")
        for each in others:
            shutil.rmtree(each) if each.is_dir() else each.unlink()
    files = list(contents())
    for source, place in files:
        target = folder / place
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(source, target)
    for place, text in changed.items():
        (folder / place).write_text(text, encoding="utf-8")
    return len(files)


def main() -> None:
    """Write the folder and the zip."""
    parser = argparse.ArgumentParser(description="Write the AstrBot plugin for its release.")
    parser.add_argument("--url", default="", help="the repository that the plugin is pushed to")
    parser.add_argument("--author", default="", help="a name, or a name and <mail>")
    parser.add_argument("--root", type=Path, default=ROOT, help="the checkout with the project")
    parser.add_argument("--dist", type=Path, default=ROOT / "dist", help="the folder to write to")
    given = parser.parse_args()
    written_url, written_author = written_project(given.root)
    url, author = given.url or written_url, given.author or written_author
    folder, archive = given.dist / NAME, given.dist / f"{NAME}-{library_version()}.zip"
    try:
        changed = released_texts(url, author)
        count = write_folder(folder, changed)
    except ValueError as exc:
        sys.exit(f"{exc}\nmake astrbot-release URL=https://github.com/owner/name AUTHOR=owner")
    build(archive, changed)
    size = archive.stat().st_size
    print(f"{folder}: {count} files\n{archive}: {size:,} bytes")
    if not MARKET_URL.fullmatch(url.rstrip("/")):
        print(f"note: AstrBot's market takes repositories of github.com alone, not {url!r}")
    if size > MAX_BYTES:
        sys.exit(f"{archive} is larger than the {MAX_BYTES:,} bytes that AstrBot's market takes")


if __name__ == "__main__":
    main()
