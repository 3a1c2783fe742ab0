"""Web pages as text.

Pages are parsed in a process of its own, which is ended when its time is over: what
parsers need for a hostile page grows with the square of its length (100 KB of `<a ` keeps
Python's busy for eight minutes, 1 MB of `<div>` kept lexbor's for over nine).
"""

from __future__ import annotations

import subprocess
import sys

from tool_search.workspace.workspace import WorkspaceError

__all__ = ["html_text"]

_SECONDS = 10.0
_PROGRAM = r"""
import re, sys
from html.parser import HTMLParser

SKIPPED = {"script", "style", "noscript", "template", "svg", "iframe", "canvas", "object"}
BLOCKS = set(
    "address article aside blockquote br dd div dl dt fieldset figcaption figure footer form h1 h2 "
    "h3 h4 h5 h6 header hr li main nav ol p pre section table tbody tfoot thead title tr ul".split()
)
SIGNS = {"li": "- ", "td": " | ", "th": " | ", "title": "# "}
SIGNS.update((f"h{level}", "#" * level + " ") for level in range(1, 7))

class Text(HTMLParser):
    def __init__(self):
        super().__init__(convert_charrefs=True)
        self.pieces, self.links, self.skipping = [], [], 0

    def handle_starttag(self, tag, attributes):
        if tag in SKIPPED:
            self.skipping += 1
        if self.skipping:
            return
        self.pieces.append(("\n" if tag in BLOCKS else "") + SIGNS.get(tag, ""))
        if tag == "a":
            self.links.append((dict(attributes).get("href") or "").strip())

    def handle_startendtag(self, tag, attributes):
        if tag in BLOCKS and not self.skipping:
            self.pieces.append("\n")

    def handle_endtag(self, tag):
        if tag in SKIPPED:
            self.skipping = max(0, self.skipping - 1)
        elif not self.skipping:
            link = self.links.pop() if tag == "a" and self.links else ""
            if link.startswith(("http:", "https:", "/")):
                self.pieces.append(f" ({link})")
            self.pieces.append("\n" if tag in BLOCKS else "")

    def handle_data(self, data):
        if not self.skipping:
            self.pieces.append(re.sub(r"\s+", " ", data))

parser = Text()
parser.feed(sys.stdin.buffer.read().decode("utf-8", "replace"))
parser.close()
text = re.sub(r"[^\S\n]+", " ", "".join(parser.pieces))
text = re.sub(r" ?\n ?", "\n", text)
sys.stdout.buffer.write(re.sub(r"\n{3,}", "\n\n", text).strip().encode("utf-8", "replace"))
"""


def html_text(page: str) -> str:
    """What a page says: headings, lists and tables marked, addresses of links in brackets.

    Raises:
        WorkspaceError: It takes too long to read.
    """
    try:
        done = subprocess.run(  # noqa: S603  # our own program
            [sys.executable, "-I", "-S", "-c", _PROGRAM],
            input=page.encode("utf-8", "replace"),
            capture_output=True,
            timeout=_SECONDS,
            check=False,
            env={},
        )
    except subprocess.TimeoutExpired as exc:
        raise WorkspaceError(f"the page took longer than {_SECONDS:g} s to read") from exc
    if done.returncode:
        said = done.stderr[-200:].decode("utf-8", "replace")
        raise WorkspaceError(f"the page cannot be read: {said}")
    return done.stdout.decode("utf-8", "replace")
