"""Show the doctests of a docstring as code on the pages of the reference."""

from __future__ import annotations

from typing import Any

import griffe


class Doctests(griffe.Extension):
    """Fence each paragraph of a docstring that is a doctest."""

    def on_object(self, *, obj: griffe.Object, **_: Any) -> None:
        """Change the docstring before it is parsed."""
        if obj.docstring and ">>>" in obj.docstring.value:
            paragraphs = obj.docstring.value.split("\n\n")
            obj.docstring.value = "\n\n".join(map(_fenced, paragraphs))


def _fenced(paragraph: str) -> str:
    lines = paragraph.split("\n")
    if not lines[0].lstrip().startswith(">>>"):
        return paragraph
    indent = lines[0][: len(lines[0]) - len(lines[0].lstrip())]
    return "\n".join([f"{indent}```pycon", *lines, f"{indent}```"])
