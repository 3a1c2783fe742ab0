"""The plugin's files in its data folder, which outlive a reload or a restart of the bot.

A folder that cannot be read or written costs only what is kept: the bot goes on, and a warning
has the cause.
"""

from __future__ import annotations

import json
import logging
from collections import OrderedDict
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, cast

from tool_search.core.values.files import replace_file
from tool_search.i18n import LANGUAGES, Language

__all__ = ["ConversationId", "JsonFile", "KeptConversation", "KeptConversations"]

ConversationId = tuple[str, str]
"""AstrBot's `unified_msg_origin`, and the id of the conversation in it."""

_MAX_CONVERSATIONS = 500
_VERSION = 1
_log = logging.getLogger(__name__)


class JsonFile:
    """A small JSON object in a file.

    Args:
        path: The file; None to keep nothing.
    """

    def __init__(self, path: Path | None) -> None:
        self._path = path

    def read(self) -> Mapping[str, Any]:
        """Return the object; empty if there is none, or none of this version."""
        try:
            text = self._path.read_text(encoding="utf-8") if self._path is not None else "{}"
            content = json.loads(text)
        except FileNotFoundError:
            return {}
        except (OSError, ValueError) as exc:
            _log.warning("%s cannot be read, and is left out: %s", self._path, exc)
            return {}
        is_ours = isinstance(content, dict) and content.get("version") == _VERSION
        return content if is_ours else {}

    def write(self, content: Mapping[str, Any]) -> None:
        """Replace the object, whole or not at all."""
        if self._path is None:
            return
        try:
            written = json.dumps({"version": _VERSION, **content}, ensure_ascii=True)
            replace_file(self._path, written.encode())
        except OSError as exc:
            _log.warning("%s cannot be written: %s", self._path, exc)


@dataclass(frozen=True, slots=True, kw_only=True)
class KeptConversation:
    """The found tools and the language of a conversation.

    Attributes:
        found: The names of the found tools, in their order.
        language: The language of its texts; None: of its first message.
        dropped: The ids of searches that `/tool_search reset` has dropped.
    """

    found: tuple[str, ...] = ()
    language: Language | None = None
    dropped: tuple[str, ...] = ()


class KeptConversations:
    """The kept conversations, at most 500, those that were used last.

    Args:
        path: Their file; None for this process alone.
    """

    def __init__(self, path: Path | None = None) -> None:
        self._file = JsonFile(path)
        self._kept: OrderedDict[ConversationId, KeptConversation] = OrderedDict()
        for entry in _entries(self._file.read().get("conversations")):
            self._kept[str(entry.get("place")), str(entry.get("id"))] = _conversation(entry)

    def __len__(self) -> int:
        return len(self._kept)

    def get(self, key: ConversationId) -> KeptConversation:
        """Return a conversation; an empty one if it is not known."""
        return self._kept.get(key) or KeptConversation()

    def put(self, key: ConversationId, conversation: KeptConversation) -> None:
        """Keep a conversation; the one that was not used for longest may leave."""
        self._kept[key] = conversation
        self._kept.move_to_end(key)
        while len(self._kept) > _MAX_CONVERSATIONS:
            self._kept.popitem(last=False)

    def remove(self, key: ConversationId) -> None:
        """Forget a conversation, if it is known."""
        self._kept.pop(key, None)

    def save(self) -> None:
        """Write the file."""
        entries = [
            {"place": place, "id": cid, **asdict(kept)} for (place, cid), kept in self._kept.items()
        ]
        self._file.write({"conversations": entries})


def _entries(content: Any) -> Iterable[Mapping[str, Any]]:
    return [each for each in content if isinstance(each, dict)] if isinstance(content, list) else ()


def _conversation(entry: Mapping[str, Any]) -> KeptConversation:
    language = entry.get("language")
    return KeptConversation(
        found=_texts(entry.get("found")),
        language=cast("Language", language) if language in LANGUAGES else None,
        dropped=_texts(entry.get("dropped")),
    )


def _texts(content: Any) -> tuple[str, ...]:
    listed = content if isinstance(content, list) else ()
    return tuple(each for each in listed if isinstance(each, str))
