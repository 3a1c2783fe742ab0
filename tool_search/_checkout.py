"""The remedy for a checkout whose symbolic links are text files, as git makes on Windows.

`tool_search/adapters` and `tool_search/i18n` link to folders at the top of the repository.
Without `core.symlinks`, git writes a text file that holds the target of each link.
Source: git-config documentation, `core.symlinks`.
"""

from __future__ import annotations

import sys

__all__ = ["explain_missing_links"]

_LINKED = ("tool_search.adapters", "tool_search.i18n")


class _MissingLinks:
    """The last finder: it is asked only if no other one has found a module."""

    @staticmethod
    def find_spec(name: str, *_: object) -> None:
        """Raise an error that says the remedy if the module is a linked folder."""
        if name in _LINKED:
            raise ModuleNotFoundError(
                f"No module named {name!r}: {name.replace('.', '/')} is a text file, because git "
                "checked its symbolic link out as one; run `git config core.symlinks true` and "
                "`git checkout -- tool_search`, or `pip install -e .`",
                name=name,
            )


def explain_missing_links() -> None:
    """Have an import of a linked folder that is not found say why."""
    if not any(finder is _MissingLinks for finder in sys.meta_path):
        sys.meta_path.append(_MissingLinks)
