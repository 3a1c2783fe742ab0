"""Write the project's public address and author into its files, before a release is built.

Run: python .ci/release.py --url https://github.com/OWNER/NAME --author "Name <mail>"

Nothing is invented: without both the files stay as they are. Running it again replaces what an
earlier run has written.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
import tomllib
from pathlib import Path
from urllib.parse import urlsplit

ROOT = Path(__file__).resolve().parents[1]
_MARK = "# Written by `make release`."
_LINK = re.compile(r"(?P<image>!?)\[(?P<text>[^\]]*)\]\((?P<target>[^)\s]+)\)")
_ABSOLUTE = re.compile(r"[a-z]+:|#")
_PAGES = ("README.md", "README.zh-CN.md")
_AUTHOR = re.compile(r"(?P<name>[^<>]+?)(?:\s*<(?P<mail>[^<>@\s]+@[^<>@\s]+)>)?")


def project_urls(url: str) -> dict[str, str]:
    """Return the links of the package's page, as GitHub, Gitea and Gitee spell their paths."""
    return {
        "Source": url,
        "Issues": f"{url}/issues",
        "Changelog": f"{url}/blob/main/CHANGELOG.md",
        "Documentation": f"{url}/tree/main/docs",
    }


def with_project(text: str, url: str, author: str) -> str:
    """Return `pyproject.toml` with `authors` and `[project.urls]`.

    Raises:
        ValueError: The address or the author is not usable.
    """
    parts = urlsplit(url)
    if parts.scheme != "https" or not parts.netloc or not parts.path.strip("/"):
        raise ValueError(f"URL={url!r} is not the address of a repository: https://host/owner/name")
    named = _AUTHOR.fullmatch(author.strip())
    if named is None:
        raise ValueError(f"AUTHOR={author!r} is not a name, or a name and <mail>")
    text = re.sub(rf"{re.escape(_MARK)}\n(?:.+\n)+\n?", "", text)
    fields = {"name": named["name"], "email": named["mail"]}
    pairs = ", ".join(f"{key} = {json.dumps(value)}" for key, value in fields.items() if value)
    head = f"{_MARK}\nauthors = [{{{pairs}}}]\n\n"
    links = "".join(
        f"{name} = {json.dumps(link)}\n" for name, link in project_urls(url.rstrip("/")).items()
    )
    before, table, after = text.partition("[project.optional-dependencies]")
    if not table:
        raise ValueError("pyproject.toml has no [project.optional-dependencies] to write before")
    return f"{before}{head}{_MARK}\n[project.urls]\n{links}\n{table}{after}"


def with_site(text: str, url: str) -> str:
    """Return `mkdocs.yml` with the address of the repository."""
    text = re.sub(r"^repo_url: .*\n", "", text, flags=re.MULTILINE)
    return re.sub(
        r"^(docs_dir: )", rf"repo_url: {url.rstrip('/')}\n\1", text, count=1, flags=re.MULTILINE
    )


def with_links(text: str, url: str, earlier: str | None = None) -> str:
    """Return a page whose links lead to the repository, for a package index shows it alone.

    Args:
        text: The page.
        url: The address of the repository.
        earlier: The address that an earlier release has written.
    """

    def absolute(link: re.Match[str]) -> str:
        target = link["target"]
        for kind in ("blob", "raw") if earlier else ():
            target = target.removeprefix(f"{earlier}/{kind}/main/")
        if not _ABSOLUTE.match(target):
            target = f"{url.rstrip('/')}/{'raw' if link['image'] else 'blob'}/main/{target}"
        return f"{link['image']}[{link['text']}]({target})"

    return _LINK.sub(absolute, text)


def main() -> None:
    """Write the files."""
    parser = argparse.ArgumentParser(description="Write the public address and the author.")
    parser.add_argument("--url", required=True)
    parser.add_argument("--author", required=True)
    parser.add_argument("--root", type=Path, default=ROOT, help="the checkout to write to")
    given = parser.parse_args()
    project, site = given.root / "pyproject.toml", given.root / "mkdocs.yml"
    written = tomllib.loads(project.read_text("utf-8"))["project"].get("urls", {})
    try:
        described = with_project(project.read_text("utf-8"), given.url, given.author)
    except ValueError as exc:
        sys.exit(f"{exc}\nmake release URL=https://host/owner/name AUTHOR='Name <mail>'")
    project.write_text(described, encoding="utf-8")
    site.write_text(with_site(site.read_text("utf-8"), given.url), encoding="utf-8")
    for page in map(given.root.joinpath, _PAGES):
        linked = with_links(page.read_text("utf-8"), given.url, written.get("Source"))
        page.write_text(linked, encoding="utf-8")


if __name__ == "__main__":
    main()
