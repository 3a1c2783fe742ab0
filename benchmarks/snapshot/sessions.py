"""Requests and search answers of the session alone, where no server is needed."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from snapshot.conversations import LANGUAGES
from snapshot.files import plain, write, write_lines
from snapshot.rankings import engines, queries
from snapshot.schemas import odd_schemas
from snapshot.script import some_tools, toolbox

from tool_search import (
    CallResult,
    Message,
    RunCall,
    ToolCall,
    ToolCatalog,
    ToolSearchConfig,
    ToolSearchSession,
    profile_for,
)
from tool_search.adapters import anthropic, openai_chat, openai_responses

_TO_WIRE: dict[str, Any] = {
    "anthropic": anthropic.to_wire,
    "openai_chat": openai_chat.to_wire,
    "openai_responses": openai_responses.to_wire,
}
_VENDORS: Sequence[tuple[Any, str, str | None]] = (
    ("anthropic", "claude-sonnet-4-6", None),
    ("anthropic", "claude-opus-5-5", None),
    ("anthropic", "claude-3-5-haiku-latest", None),
    ("anthropic", "anthropic.claude-sonnet-4-6", "https://bedrock-runtime.eu-west-1.amazonaws.com"),
    ("anthropic", "glm-5", "https://api.z.ai/api/anthropic"),
    ("anthropic", "deepseek-v4-flash", "https://api.deepseek.com/anthropic"),
    ("openai_chat", "gpt-5.4", None),
    ("openai_chat", "deepseek-v4-flash", "https://api.deepseek.com"),
    ("openai_chat", "kimi-k3", "https://api.moonshot.ai/v1"),
    ("openai_chat", "kimi-k2.5", "https://api.moonshot.ai/v1"),
    ("openai_chat", "glm-5", "https://api.z.ai/api/paas/v4"),
    ("openai_chat", "mistral-large-latest", "https://api.mistral.ai/v1"),
    ("openai_chat", "grok-4", "https://api.x.ai/v1"),
    ("openai_chat", "gemini-3-pro", "https://generativelanguage.googleapis.com/v1beta/openai"),
    ("openai_chat", "qwen3:8b", "http://localhost:11434/v1"),
    ("openai_responses", "gpt-5.5", None),
    ("openai_responses", "gpt-5.2", None),
    ("openai_responses", "gpt-5.4-nano", None),
    ("openai_responses", "gpt-4.1", None),
    ("openai_responses", "o3", None),
)
_SEARCHES: Sequence[str] = (
    '{"query": "weather forecast"}',
    '{"query": "weather forecast", "limit": 2}',
    '{"query": ["convert money", "convert_length"]}',
    '{"query": "+loan -schedule"}',
    '{"query": "name:convert"}',
    '{"query": "zzyzx qwfpg"}',
    '{"query": ""}',
    '{"query": 7, "limit": "many"}',
    "{}",
    '{"query": "cut off',
)
_SCHEMAS = 240
_AT_ONCE = 60


class _Loop:
    """A loop of one's own: each step is one call or the answer."""

    def __init__(self, catalog: ToolCatalog, config: ToolSearchConfig) -> None:
        self.session = ToolSearchSession(catalog, config=config, system_prompt="You help.")
        self._calls = 0

    def begin(self, text: str, profile: Any) -> None:
        """Begin a turn."""
        self.session.begin_turn(text, profile=profile)

    def call(self, name: str, arguments: str) -> str:
        """Let the model call a tool; return the result."""
        self._calls += 1
        wanted = ToolCall(id=f"call_{self._calls}", name=name, arguments=arguments)
        (made,) = self.session.accept(Message(role="assistant", tool_calls=(wanted,)))
        decision = self.session.decide(made)
        if isinstance(decision, RunCall):
            result = CallResult(decision=decision, content=f"{name} is done")
        else:
            result = CallResult(
                decision=decision, content=decision.content, is_error=decision.is_error
            )
        self.session.commit([result])
        return result.content

    def answer(self) -> None:
        """Let the model end the turn."""
        self.session.accept(Message(role="assistant", content="Done."))


def write_vendors(target: Path) -> None:
    """Write requests for services whose address decides their form."""
    catalog = ToolCatalog(item.tool for item in some_tools())
    config = ToolSearchConfig(tool_schema_mode="tool_search")
    profiles = {
        f"{model} {address or dialect}": profile_for(dialect, model, base_url=address)
        for dialect, model, address in _VENDORS
    }
    around = _Loop(catalog, config)
    written = []
    for name, profile in profiles.items():
        for loop in (_Loop(catalog, config), around):
            written += [(name, request) for request in _turn(loop, profile)]
    lines = [f"# {name}\n{_body(request)}\n" for name, request in written]
    write(target / "bodies" / "vendors.txt", "".join(lines).encode())


def write_schemas(target: Path) -> None:
    """Write schemas that few services take, in the form that each of them is sent."""
    tools = odd_schemas(_SCHEMAS)
    config = ToolSearchConfig(tool_schema_mode="full")
    for dialect, model, address in _VENDORS:
        profile = profile_for(dialect, model, base_url=address)
        lines = []
        for start in range(0, len(tools), _AT_ONCE):
            loop = _Loop(ToolCatalog(tools[start : start + _AT_ONCE]), config)
            loop.begin("Hello", profile)
            request = _TO_WIRE[dialect](loop.session.plan(profile), profile)
            lines += [*request["tools"], [notice.code for notice in loop.session.take_notices()]]
        name = f"schemas-{dialect}-{model.replace(':', '-')}-{bool(address)}.jsonl"
        write_lines(target / "bodies" / name, lines)


def _turn(loop: _Loop, profile: Any) -> Iterator[Any]:
    """Play a turn that searches, calls what it found and answers; yield its requests."""
    to_wire = _TO_WIRE[profile.dialect]
    loop.begin("Weather in Paris?", profile)
    yield to_wire(loop.session.plan(profile), profile)
    loop.call("tool_search", '{"query": "weather"}')
    yield to_wire(loop.session.plan(profile), profile, stream=False)
    loop.call("get_forecast", '{"city": "Paris"}')
    yield to_wire(loop.session.plan(profile), profile, extra_body={"temperature": 0})
    loop.answer()


def _body(request: Any) -> str:
    return json.dumps(request, ensure_ascii=False)


def write_answers(target: Path) -> None:
    """Write answers of the search tool, in each language and by each engine."""
    catalog = ToolCatalog(item.tool for item in toolbox())
    profile = profile_for("openai_chat", "gpt-5.4")
    for language in LANGUAGES:
        for engine, settings in engines().items():
            config = ToolSearchConfig.model_validate(
                {"tool_schema_mode": "tool_search", "language": language, "search": settings}
            )
            loop = _Loop(catalog, config)
            asked = [*_SEARCHES]
            asked += [json.dumps({"query": q}, ensure_ascii=False) for q in queries("toolbox")[:6]]
            answers = []
            for arguments in asked:
                loop.begin("Hello", profile)
                answers.append({"search": arguments, "answer": loop.call("tool_search", arguments)})
                loop.answer()
            answers.append({"discovered": plain(loop.session.discoveries.names)})
            write_lines(target / "answers" / f"search-{language}-{engine}.jsonl", answers)
