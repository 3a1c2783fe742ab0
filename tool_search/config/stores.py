"""The sections `store` and `learning`: the storage of conversations and of learned queries."""

from __future__ import annotations

import hashlib
import os
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field

from tool_search.config.search import Settings

__all__ = ["LearningSettings", "StoreSettings", "StoreType", "data_folder", "default_store_path"]

StoreType = Literal["memory", "sqlite"]


class LearningSettings(Settings):
    """The `learning` section: searches that learn from later calls.

    Attributes:
        enabled: False: nothing is read, written or ranked by learning.
        shared: True if what several users' calls taught counts for others too; False: each
            user has only their own, and all without a name are one. Null: true in a bot,
            false in the proxy, whose users are credentials.
    """

    enabled: bool = True
    shared: bool | None = None


class StoreSettings(Settings):
    """The `store` section: the storage of conversations and of learned queries.

    Attributes:
        type: `memory` ends with the process; `sqlite` is a file.
        path: The file; null: one for each bot in the user's data folder.
        keep_days: Days after its last use that a conversation is kept; null: for ever.
        keep_conversations: The number of conversations that are kept, the last used ones;
            null: 2,000 in memory, all in a file.
        synchronous: The time at which a turn is on the disk, in case the power fails: `full`
            at once, `normal` some turns later, `off` whenever the system likes. The end
            of the process, however it comes, loses nothing in any of them.
    """

    type: StoreType = "sqlite"
    path: str | None = None
    keep_days: Annotated[float, Field(gt=0, le=36_500, allow_inf_nan=False)] | None = None
    keep_conversations: Annotated[int, Field(ge=1, le=1_000_000_000)] | None = None
    synchronous: Literal["full", "normal", "off"] = "normal"

    def file(self, source: Path | None = None) -> Path:
        """Return the file of the store.

        Args:
            source: The bot's configuration file: a relative path is relative to it.
        """
        if self.path is None:
            return default_store_path(source)
        folder = Path() if source is None else source.resolve().parent
        return folder / Path(self.path).expanduser()


def default_store_path(
    source: Path | None = None, *, environment: Mapping[str, str] | None = None
) -> Path:
    """Return the file of a bot in the user's data folder.

    Args:
        source: The bot's configuration file, whose name and place distinguish bots.
        environment: The variables that name the folder; default: this process's.
    """
    known = os.environ if environment is None else environment
    name = "bot"
    if source is not None:
        place = hashlib.sha256(os.fsencode(source.resolve())).hexdigest()[:8]
        name = f"{source.stem}-{place}"
    return data_folder(known) / "tool-search" / f"{name}.db"


def data_folder(environment: Mapping[str, str]) -> Path:
    """Return the user's data folder.

    Source: the XDG base directory specification, which allows absolute paths only.
    """
    named = environment.get("XDG_DATA_HOME", "")
    if named and Path(named).is_absolute():
        return Path(named)
    if sys.platform == "win32" and environment.get("LOCALAPPDATA"):
        return Path(environment["LOCALAPPDATA"])
    return Path.home() / ".local" / "share"
