"""Replies that a provider keeps, by the ids that clients know.

A reply of several steps has the id of the first, which the provider knows as another reply.
Source: OpenAI, "Retrieve a model response", "Delete a model response", "List input items".
"""

from __future__ import annotations

import logging
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from tool_search.proxy.dialects.base import JSON, CallAnswers, VisibleCall
from tool_search.proxy.dialects.openai_responses import OpenAIResponses
from tool_search.proxy.history import Exchange, conversation_id

__all__ = ["StoredReply", "answers_of", "stored_answers", "stored_reply", "warn_of_lost_result"]

_PATH = re.compile(r"(?:/v1)?/responses/(?P<id>[^/]+)(?P<rest>/input_items|/cancel)?")
_DIALECT = OpenAIResponses()
# "No tool output found for function call call_...", of OpenAI's Responses.
_UNANSWERED = b"No tool output found"
_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class StoredReply:
    """A request about a reply that a provider keeps.

    Attributes:
        reply_id: The id that the client knows.
        rest: The path after it.
    """

    reply_id: str
    rest: str

    def paths(self, method: str, exchange: Exchange) -> list[str]:
        """Return the paths of the provider's replies that a request is about, in order."""
        is_of_all = not self.rest and method in ("GET", "DELETE")
        ids = exchange.steps if is_of_all else exchange.steps[-1:]
        return [f"/v1/responses/{each}{self.rest}" for each in ids]

    def visible(self, replies: Sequence[JSON], exchange: Exchange) -> JSON:
        """Return the provider's answers as the one that the client gets."""
        last, answers = replies[-1], answers_of(exchange)
        if self.rest == "/input_items":
            items = [item for item in last.get("data") or () if not _is_hidden(item, answers)]
            return {**last, "data": items}
        if "output" in last and not self.rest:
            return _DIALECT.merged([_DIALECT.received(each, {}) for each in replies], answers)
        return {**last, "id": self.reply_id}


def stored_reply(path: str) -> StoredReply | None:
    """Return the reply that a path is about; None for any other path."""
    found = _PATH.fullmatch(path)
    return StoredReply(found["id"], found["rest"] or "") if found else None


def stored_answers(answers: CallAnswers) -> dict[str, list[str | None] | None]:
    """Return the calls that a client sees in another form as a store keeps them."""
    return {
        call_id: None if call is None else [call.name, call.arguments, call.namespace]
        for call_id, call in answers.items()
    }


def warn_of_lost_result(upstream: str, body: JSON, refusal: bytes) -> None:
    """Log the refusal of a request whose kept history may have a search without its result."""
    is_continued = body.get("previous_response_id") or conversation_id(body)
    if is_continued and _UNANSWERED in refusal:
        _log.warning(
            "upstream %s: a call in the kept history has no result; if it is a search, this "
            "proxy has lost its state: the client has to begin anew, or to send the history",
            upstream,
        )


def answers_of(exchange: Exchange) -> dict[str, VisibleCall | None]:
    """Return the calls that a client sees in another form."""
    return {
        call_id: None if call is None else VisibleCall(str(call[0]), str(call[1]), call[2])
        for call_id, call in exchange.answers.items()
    }


def _is_hidden(item: JSON, answers: Mapping[str, VisibleCall | None]) -> bool:
    call_id = str(item.get("call_id"))
    return call_id in answers and answers[call_id] is None
