"""Hooks of `mkdocs build`: pages that are outside `docs/`, and links that only GitHub needs."""

from __future__ import annotations

import re
import shutil
from pathlib import Path, PurePosixPath
from posixpath import normpath
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
OUTSIDE = (
    *("CHANGELOG.md", "CONTRIBUTING.md", "SECURITY.md", "LICENSE"),
    *("benchmarks", "benchmarks/peers", "examples"),
)
_SHOWN = {".md", ".png", ".py", ".svg", ".txt", ".yaml"}
_LINK = re.compile(r"(\]\()([^)#:\s]+)((?:#[^)\s]*)?\))")
# The site has a switch for languages; a page's own link to its translation is for GitHub.
_TRANSLATION = re.compile(
    r"^\[(?:中文|English)\]\([^)]*\)\n|\s*[(（]\[中文\]\([^)]*\)[)）]", re.MULTILINE
)


def on_config(config: Any) -> Any:
    """Build from a copy of `docs/` together with the pages of the repository that it links to."""
    staged = ROOT / "build" / "docs"
    shutil.rmtree(staged, ignore_errors=True)
    shutil.copytree(ROOT / "docs", staged)
    for name in OUTSIDE:
        path = ROOT / name
        for file in [path] if path.is_file() else sorted(path.glob("*")):
            if file.is_file() and (file.suffix in _SHOWN or file == path):
                target = staged / file.relative_to(ROOT)
                target.parent.mkdir(parents=True, exist_ok=True)
                shutil.copy2(file, target)
    config.docs_dir = str(staged)
    return config


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    """Return a page's text with its links as the site has them."""
    here = PurePosixPath(page.file.src_uri).parent

    def on_site(match: re.Match[str]) -> str:
        target = normpath((here / match[2]).as_posix())
        outside = target.removeprefix("../").removeprefix("docs/")
        if outside in {"README.md", "README.zh-CN.md"}:
            outside = "index.md"
        relative = "../" * len(here.parts) + outside.replace(".zh-CN.md", ".md")
        return f"{match[1]}{relative}{match[3]}"

    return _LINK.sub(on_site, _TRANSLATION.sub("", markdown))
