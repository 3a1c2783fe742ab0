"""A stand-in for the Gemini API with its rules for function calling.

It has `generateContent` alone, without streams: `google-genai` has no place for an adapter, and
this is for the loop that a bot writes on it.

Sources: Google, Gemini API, "Function calling" and "Thought signatures"; `FunctionDeclaration`
of google-genai; the errors as users reported them (kaitranntt/ccs #25, smarter-sh/smarter #537,
google-gemini/gemini-cli #4504 and #26486, nanbingxyz/5ire #405).
"""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Self

from tool_search.testing.models.keyword import KeywordModel
from tool_search.testing.models.scripted import ModelReply, StandInModel
from tool_search.testing.services.schemas import schema_faults
from tool_search.testing.view import ModelView, ViewCall, ViewMessage, ViewResult, VisibleTool

__all__ = ["GeminiServer", "check_gemini"]

JSON = Mapping[str, Any]

_PATH = re.compile(r"/v1(?:beta)?/models/([\w.-]+):generateContent")
# The recorded error says 64; google-genai's newest docstring says 128.
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_.:-]{0,63}")
_SIGNATURE = "c3RhbmQtaW4="


def check_gemini(body: JSON) -> Iterator[str]:
    """Yield the errors for which the service refuses a request."""
    declarations = _declarations(body)
    for index, declared in enumerate(declarations):
        where = f"tools[0].function_declarations[{index}]"
        if not _NAME.fullmatch(str(declared.get("name", ""))):
            yield (
                f"The GenerateContentRequest proto is invalid:\n  * {where}.name: [FIELD_INVALID] "
                "Invalid function name. Must start with a letter or an underscore. Must be a-z, "
                "A-Z, 0-9, or contain underscores (_), dots (.), colons (:), or dashes (-), with "
                "a maximum length of 64."
            )
        yield from _schema_errors(where, declared)
    names = [declared.get("name") for declared in declarations]
    for name in dict.fromkeys(name for name in names if names.count(name) > 1):
        yield f"Duplicate function declaration found: {name}"
    yield from _turn_errors(body.get("contents") or ())


def _schema_errors(where: str, declared: JSON) -> Iterator[str]:
    schema = _schema(declared)
    if schema is None:
        return
    if "parameters" in declared:
        yield f"{where}: parameters and parameters_json_schema must not both be set"
    elif not isinstance(schema, dict) or schema.get("type") != "object":
        yield f"{where}.parameters_json_schema: must describe an object"
    elif problem := schema_faults(schema).invalid:
        yield f"{where}.parameters_json_schema: {problem}"


def _turn_errors(contents: Sequence[JSON]) -> Iterator[str]:
    """Yield the errors of the order of calls and their results."""
    if not contents:
        yield "* GenerateContentRequest.contents: contents is not specified"
    open_calls: list[Any] = []
    for index, content in enumerate(contents):
        calls = _parts(content, "functionCall")
        results = _parts(content, "functionResponse")
        if results and len(results) != len(open_calls):
            yield (
                "Please ensure that the number of function response parts is equal to the number "
                "of function call parts of the function call turn."
            )
        elif open_calls and [result.get("name") for result in results] != open_calls:
            yield (
                "Please ensure that function response turn comes immediately after a function "
                "call turn."
            )
        if calls and (index == 0 or contents[index - 1].get("role") != "user"):
            yield (
                "Please ensure that function call turn comes immediately after a user turn or "
                "after a function response turn."
            )
        signed = [part for part in content.get("parts", ()) if "functionCall" in part]
        # Of parallel calls the first alone has a signature.
        if signed and signed[0].get("thoughtSignature") != _SIGNATURE:
            yield (
                "Function call is missing a thought_signature in functionCall parts. This is "
                "required for tools to work correctly, and missing thought_signature may lead to "
                f"degraded model performance. Additional data, function call "
                f"`default_api:{calls[0].get('name')}` , position {index + 1}."
            )
        open_calls = [call.get("name") for call in calls]


def _declarations(body: JSON) -> list[JSON]:
    tools = body.get("tools") or ()
    return [each for tool in tools for each in tool.get("functionDeclarations", ())]


def _schema(declared: JSON) -> Any:
    # The service reads both spellings of a field; google-genai sends its schemas in this one.
    return declared.get("parametersJsonSchema", declared.get("parameters_json_schema"))


def _parts(content: JSON, kind: str) -> list[JSON]:
    return [part[kind] for part in content.get("parts", ()) if kind in part]


def _text(content: JSON) -> str:
    return "\n".join(part["text"] for part in content.get("parts", ()) if "text" in part)


def _view_of(body: JSON, model: str) -> ModelView:
    messages = [ViewMessage(role="system", text=_text(body.get("systemInstruction") or {}))]
    for content in body["contents"]:
        calls = _parts(content, "functionCall")
        results = _parts(content, "functionResponse")
        messages.append(
            ViewMessage(
                role="assistant" if content.get("role") == "model" else "user",
                text=_text(content),
                calls=tuple(
                    ViewCall(id=call.get("id", ""), name=call["name"], arguments=call["args"])
                    for call in calls
                ),
                results=tuple(
                    ViewResult(
                        call_id=result.get("id", ""),
                        name=result["name"],
                        text=str(result["response"].get("result", result["response"])),
                        is_error="error" in result["response"],
                    )
                    for result in results
                ),
            )
        )
    return ModelView(
        dialect="gemini",
        model=model,
        tools=tuple(
            VisibleTool(
                name=each["name"],
                description=each.get("description", ""),
                parameters=_schema(each) or {},
            )
            for each in _declarations(body)
        ),
        tool_choice="auto",
        messages=tuple(messages),
    )


class GeminiServer:
    """A Gemini API on this computer, for `http_options.base_url` of google-genai.

    Args:
        model: The model that answers valid requests.

    Attributes:
        requests: The body of each request, in order.
        violations: The errors of refused requests.
    """

    def __init__(self, model: StandInModel | None = None) -> None:
        self.model: StandInModel = model or KeywordModel()
        self.requests: list[Any] = []
        self.violations: list[str] = []
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), _handler_of(self))
        self._thread = threading.Thread(target=self._server.serve_forever, daemon=True)

    @property
    def base_url(self) -> str:
        """The address for `http_options.base_url`."""
        return f"http://127.0.0.1:{self._server.server_port}"

    @property
    def declared(self) -> list[list[str]]:
        """The names that each request declares, in order."""
        return [[each["name"] for each in _declarations(body)] for body in self.requests]

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *exc: object) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    def answer(self, path: str, body: JSON) -> tuple[int, JSON]:
        """Return the status and the body of the answer to a request."""
        asked = _PATH.fullmatch(path.partition("?")[0])
        if asked is None:
            return 404, _error(404, "NOT_FOUND", f"no method at {path}")
        self.requests.append(body)
        errors = list(check_gemini(body))
        self.violations += errors
        if errors:
            return 400, _error(400, "INVALID_ARGUMENT", errors[0])
        return 200, _reply(self.model.reply(_view_of(body, asked.group(1))))


def _error(code: int, status: str, message: str) -> JSON:
    return {"error": {"code": code, "message": message, "status": status}}


def _reply(reply: ModelReply) -> JSON:
    parts: list[dict[str, Any]] = [{"text": reply.text}] if reply.text else []
    for index, call in enumerate(reply.calls):
        part: dict[str, Any] = {"functionCall": {"name": call.name, "args": call.arguments}}
        if index == 0:
            part["thoughtSignature"] = _SIGNATURE
        parts.append(part)
    content = {"role": "model", "parts": parts}
    return {"candidates": [{"content": content, "finishReason": "STOP", "index": 0}]}


def _handler_of(stand_in: GeminiServer) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        # One write a reply: the second of two would wait 40 ms for an acknowledgement.
        disable_nagle_algorithm = True
        wbufsize = -1
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["content-length"])))
            status, answer = stand_in.answer(self.path, body)
            content = json.dumps(answer).encode()
            self.send_response(status)
            self.send_header("content-type", "application/json")
            self.send_header("content-length", str(len(content)))
            self.end_headers()
            with suppress(ConnectionError):  # a client may have gone
                self.wfile.write(content)

        def log_message(self, format: str, *args: Any) -> None:  # noqa: A002  # the base's name
            """Write nothing: a test reads `violations`."""

    return Handler
