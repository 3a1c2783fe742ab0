"""The answer of a stand-in server to one request."""

from __future__ import annotations

import hashlib
import json
import re
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, NoReturn

from tool_search.testing.models.scripted import ModelCall, ModelReply
from tool_search.testing.server.dialect import Answer, AnswerCall
from tool_search.testing.server.usage import input_tokens, reply_usage
from tool_search.testing.view import read_arguments
from tool_search.testing.violations import Violation, context_violation

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tool_search.testing.server.captured import CapturedRequest
    from tool_search.testing.server.dialect import Dialect
    from tool_search.testing.server.faults import Fault
    from tool_search.testing.server.state import ServerState
    from tool_search.testing.view import ModelView

__all__ = ["Asked", "Counted", "outcome", "parsed_body"]

_MAX_SEARCHES = 16
_MAX_BODY = 32 * 1024 * 1024
_SURROGATE = re.compile(rb"\\u[dD][89a-fA-F]")


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """One request in progress, with its state and its fault."""

    state: ServerState
    dialect: Dialect
    request: CapturedRequest
    fault: Fault

    @property
    def request_id(self) -> str:
        """The id that the answer carries."""
        return f"req_{self.request.number:024d}"

    def faulty(self, status: int) -> Violation:
        """Return the documented error of a status, as the fault words it."""
        documented = self.dialect.documented_error(status)
        return replace(
            documented,
            message=documented.message if self.fault.message is None else self.fault.message,
            error_type=self.fault.error_type or documented.error_type,
            code=self.fault.code or documented.code,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Counted:
    """The answer to a request that only counts tokens."""

    body: Mapping[str, Any]


def outcome(asked: Asked) -> Answer | Counted | Violation:
    """Return the model's reply, or the error in its place."""
    fault, request, dialect = asked.fault, asked.request, asked.dialect
    if fault.status is not None and (fault.after_events is None or not request.stream):
        return asked.faulty(fault.status)
    conversation = _accept(asked)
    if isinstance(conversation, Violation):
        asked.state.record_violation(request.number, conversation)
        return conversation
    view = dialect.view(conversation)
    limit, tokens = asked.state.endpoint.context_tokens, input_tokens(view)
    if limit is not None and tokens > limit and request.path != dialect.count_path:
        violation = context_violation(dialect.name, tokens, limit)
        asked.state.record_violation(request.number, violation)
        return violation
    if request.path == dialect.count_path:
        return Counted(body=dialect.count_body(tokens))
    return _reply(asked, conversation, view)


def parsed_body(raw: bytes) -> dict[str, Any]:
    """Return the JSON object in a request's body.

    Raises:
        ValueError: It is not one; `NaN`, infinities and half a surrogate pair are not
            JSON either.
    """
    try:
        value = json.loads(raw, parse_constant=_refuse_constant)
        if _SURROGATE.search(raw):
            json.dumps(value, ensure_ascii=False).encode()
    except RecursionError as exc:
        raise ValueError("the body is nested too deeply") from exc
    if not isinstance(value, dict):
        raise ValueError("the body is not an object")  # noqa: TRY004 - the wire's value is wrong, no argument's type
    return value


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not JSON")


def _accept(asked: Asked) -> Mapping[str, Any] | Violation:
    """Return the request with the kept part of its conversation, or a violation."""
    dialect, request = asked.dialect, asked.request
    violation = dialect.check_headers(request.headers)
    if violation is not None:
        return violation
    if len(request.raw_body) > _MAX_BODY:
        return dialect.documented_error(413)
    try:
        body = parsed_body(request.raw_body)
    except ValueError as exc:
        return dialect.unreadable_body(str(exc))
    counting = request.path == dialect.count_path
    violation = dialect.check(body, asked.state.endpoint, counting=counting)
    if violation is not None:
        return violation
    conversation = dialect.recall(body, asked.state.memory)
    if isinstance(conversation, Violation) or conversation is body:
        return conversation
    violation = dialect.check(conversation, asked.state.endpoint, counting=counting)
    return conversation if violation is None else violation


def _digest(raw: bytes, conversation: Mapping[str, Any]) -> str:
    """Return the digest that a reply's ids are made of.

    Equal requests in a conversation that the service keeps have different replies.
    """
    items = conversation.get("input")
    place = b" %d" % len(items) if b'"conversation"' in raw and isinstance(items, list) else b""
    return hashlib.sha256(raw + place).hexdigest()


def _reply(asked: Asked, conversation: Mapping[str, Any], view: ModelView) -> Answer | Violation:
    fault, request = asked.fault, asked.request
    digest = _digest(request.raw_body, conversation)
    searches: list[Mapping[str, Any]] = []
    known = conversation
    while True:
        reply = _ask_model(asked, view)
        if isinstance(reply, Violation):
            return reply
        search = next((call for call in reply.calls if _is_hosted(call, view)), None)
        if search is None or len(searches) >= _MAX_SEARCHES:
            break
        made = f"{digest[:20]}{len(searches):02d}"
        arguments = read_arguments(_text(search))
        known, items = asked.dialect.run_search(known, arguments, made=made)
        searches += items
        view = asked.dialect.view(known)
    calls = [call for call in reply.calls if not _is_hosted(call, view)]
    answer = Answer(
        body=request.body,
        conversation=conversation,
        digest=digest,
        text=reply.text,
        calls=tuple(_call(call, view, fault) for call in calls),
        thinking=reply.thinking,
        stop_reason=reply.stop_reason,
        usage=reply_usage(view, reply, asked.state.cache),
        searches=tuple(searches),
        reasoning_field=asked.state.endpoint.reasoning_field,
    )
    asked.dialect.remember(answer, asked.state.memory)
    return answer


def _ask_model(asked: Asked, view: ModelView) -> ModelReply | Violation:
    """Return the model's reply to its view, or an error if no model could give it."""
    try:
        reply = ModelReply() if asked.fault.empty else asked.state.model.reply(view)
    except Exception as exc:  # noqa: BLE001 - the client gets any error of a test's model
        return _script_error(f"{type(exc).__name__}: {exc}")
    for call in reply.calls:
        impossible = _why_impossible(call, view)
        if impossible:
            return _script_error(impossible)
    return reply


def _is_hosted(call: ModelCall, view: ModelView) -> bool:
    tool = view.tool(call.name)
    return tool is not None and tool.is_hosted


def _call(call: ModelCall, view: ModelView, fault: Fault) -> AnswerCall:
    tool = view.declared(call.name)
    return AnswerCall(
        name=call.name,
        arguments=fault.broken_arguments(_text(call)),
        namespace=tool.namespace if tool else None,
        is_search=tool.is_search if tool else False,
    )


def _script_error(message: str) -> Violation:
    return Violation(status=500, error_type="stand_in_error", message=f"stand-in model: {message}")


def _why_impossible(call: ModelCall, view: ModelView) -> str | None:
    """Return the reason why a real model cannot make a call, or None."""
    if call.hidden:
        return None
    if not view.may_call:
        return f"it calls {call.name!r}, but this request lets it call no tool"
    if view.tool(call.name) is None:
        shown = ", ".join(tool.name for tool in view.tools)[:500]
        return (
            f"it calls {call.name!r}, which it is not shown (it sees: {shown}); "
            "say ModelCall(hidden=True) if that is meant"
        )
    return None


def _text(call: ModelCall) -> str:
    if isinstance(call.arguments, str):
        return call.arguments
    return json.dumps(dict(call.arguments), ensure_ascii=False)
