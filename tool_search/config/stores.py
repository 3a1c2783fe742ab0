"""The `store` section: the storage of conversations and of learned queries."""

from __future__ import annotations

import hashlib
import os
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Literal, Self

from pydantic import ConfigDict, Field, model_validator

from tool_search.config.settings import Settings
from tool_search.errors import ConfigurationError

__all__ = ["StoreSettings", "StoreType", "data_folder", "default_store_path"]

StoreType = Literal["memory", "sqlite", "redis"]


class StoreSettings(Settings):
    """The `store` section: the storage of conversations and of learned queries.

    Attributes:
        type: `memory` ends with the process; `sqlite` is a file; `redis` is a server or a
            cluster that workers on several machines share.
        path: The file; null: one for each bot in the user's data folder.
        url: The address of Redis, such as `redis://:password@localhost:6379/0`; null: the
            environment variable `REDIS_URL`.
        prefix: The beginning of all keys in Redis; bots that share a server have different
            ones.
        keep_days: Days after its last use that a conversation is kept; null: for ever.
        keep_conversations: The number of conversations that are kept, the last used ones;
            null: 2,000 in memory, all in a file. Redis keeps all: it has `keep_days`.
        synchronous: The time at which a turn is on the disk, in case the power fails: `full`
            at once, `normal` some turns later, `off` whenever the system likes. The end
            of the process, however it comes, loses nothing in any of them.
    """

    # An address may have a password.
    model_config = ConfigDict(hide_input_in_errors=True)

    type: StoreType = "sqlite"
    path: str | None = None
    url: str | None = Field(default=None, repr=False)
    prefix: Annotated[str, Field(min_length=1, max_length=200, pattern=r"^[^{}]*$")] = "tool-search"
    keep_days: Annotated[float, Field(gt=0, le=36_500, allow_inf_nan=False)] | None = None
    keep_conversations: Annotated[int, Field(ge=1, le=1_000_000_000)] | None = None
    synchronous: Literal["full", "normal", "off"] = "normal"

    @model_validator(mode="after")
    def _check_type(self) -> Self:
        if self.type == "redis" and self.keep_conversations is not None:
            raise ValueError("keep_conversations is not for type redis; set keep_days instead")
        if self.type != "redis" and self.url is not None:
            raise ValueError(f"url is for type redis, and type is {self.type!r}")
        return self

    def address(self, environment: Mapping[str, str] | None = None) -> str:
        """Return the address of Redis, which may have a password.

        Args:
            environment: The variables; None: those of this process.

        Raises:
            ConfigurationError: There is none.
        """
        known = os.environ if environment is None else environment
        url = self.url or known.get("REDIS_URL", "")
        if not url.strip():
            raise ConfigurationError(
                "store.type is 'redis' and there is no address; set store.url, such as "
                "redis://localhost:6379/0, or the environment variable REDIS_URL"
            )
        return url.strip()

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
