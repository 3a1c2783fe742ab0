"""A bot on the stand-in server, and the files that one of its conversations leaves."""

from __future__ import annotations

import asyncio
import dataclasses
import json
import tempfile
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import aclosing
from pathlib import Path
from typing import Any

from snapshot.files import SnapshotError, plain, write, write_lines
from snapshot.script import Step, some_tools

from tool_search import (
    BotConfig,
    CallOptions,
    ExecutableTool,
    MemoryStore,
    Permissions,
    SQLiteStore,
    ToolSearchRunner,
    ToolSearchSession,
    load_config,
)
from tool_search.adapters import build_provider
from tool_search.testing import Endpoint, Fault, KeywordModel, ScriptedModel, StandInServer

Act = Callable[["Play"], Awaitable[None]]

KINDS: Mapping[str, Mapping[str, Any]] = {
    "claude": {"type": "anthropic", "model": "claude-sonnet-4-6", "strategy": "claude"},
    "claude-bound": {"type": "anthropic", "model": "claude-opus-5-5", "strategy": "claude"},
    "glm": {"type": "anthropic", "model": "glm-5"},
    "glm-bridge": {"type": "anthropic", "model": "glm-5", "strategy": "bridge"},
    "chat": {"type": "openai_chat", "model": "gpt-5.4"},
    "chat-bridge": {"type": "openai_chat", "model": "deepseek-chat", "strategy": "bridge"},
    "chat-kimi": {"type": "openai_chat", "model": "kimi-k3", "strategy": "late_tools"},
    "chat-deepseek": {"type": "openai_chat", "model": "deepseek-v4-flash"},
    "chat-mistral": {"type": "openai_chat", "model": "mistral-large-latest"},
    "responses": {
        "type": "openai_responses", "model": "gpt-5.5", "strategy": "openai_responses"
    },
    "responses-deferred": {
        "type": "openai_responses", "model": "gpt-5.5", "strategy": "openai_responses",
        "tool_search": "deferred",
    },
    "responses-kept": {
        "type": "openai_responses", "model": "gpt-5.5", "strategy": "openai_responses",
        "previous_response_id": True,
    },
    "responses-additional": {
        "type": "openai_responses", "model": "gpt-5.2", "strategy": "openai_responses"
    },
    "responses-generic": {
        "type": "openai_responses", "model": "gpt-5.5", "strategy": "generic"
    },
    "responses-bridge": {"type": "openai_responses", "model": "gpt-5.5", "strategy": "bridge"},
    "responses-hosted": {
        "type": "openai_responses", "model": "gpt-5.5", "strategy": "openai_responses",
        "tool_search": "hosted",
    },
}  # fmt: skip
"""The ways in which a provider learns of tools, by the settings that choose them."""

_PROFILES = {
    # What is known of api.mistral.ai, which the stand-in cannot be; it keeps Mistral's rules.
    "mistral": {
        "match": {"model": "mistral-*"}, "takes_stream_options": False, "returns_reasoning": False
    },
}  # fmt: skip

_KEY = "sk-of-the-snapshot-0123456789abcdef"
_PATIENCE_S = 60.0
_WORDING = ("message", "cause")


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """A conversation: its providers, its script and its events.

    Attributes:
        name: The name of its files.
        kinds: The providers, the first one primary, by keys of `KINDS`.
        act: The part of the user and of the operator.
        script: The replies of the model; None: a `KeywordModel` decides.
        settings: More of the bot's configuration.
        tools: Makes the tools.
        streamed: True if replies come piece by piece.
        faults: Failures of the service.
        endpoint: The rules of the service; None: the vendor's own.
        is_kept: True if conversations are kept in a file.
        may_refuse: True if the service is meant to refuse a request.
    """

    name: str
    kinds: Sequence[str]
    act: Act
    script: Sequence[Step] | None = None
    settings: Mapping[str, Any] = dataclasses.field(default_factory=dict)
    tools: Callable[[], list[ExecutableTool]] = some_tools
    streamed: bool = True
    faults: Sequence[Fault] = ()
    endpoint: Endpoint | None = None
    is_kept: bool = False
    may_refuse: bool = False


class Play:
    """A conversation while it is played.

    Args:
        case: The conversation.
        server: The stand-in server, which was reset for it.
        folder: An empty folder for files of the bot.

    Attributes:
        events: The events so far, as JSON values.
        words: Their texts for operators, kept apart: an edit may change them.
        runner: The bot.
    """

    runner: ToolSearchRunner

    def __init__(self, case: Case, server: StandInServer, folder: Path) -> None:
        self.case = case
        self.server = server
        self.events: list[Any] = []
        self.words: list[Any] = []
        self._folder = folder
        self._config = self._configured()
        self._providers: dict[str, Any] = {}
        self._store: Any = MemoryStore()

    async def open(self) -> None:
        """Start the bot."""
        if self.case.is_kept:
            self._store = SQLiteStore(self._folder / "bot.db")
        for entry in self._config.providers:
            self._providers[entry.id] = build_provider(
                entry, api_key=_KEY, fallbacks=True, profiles=self._config.profiles
            )
        self.runner = ToolSearchRunner(
            providers=self._providers,
            tools=self.case.tools(),
            config=self._config.tool_search,
            system_prompt=self._config.system_prompt,
            max_steps=self._config.max_steps,
            cooldown_s=3600,
            store=self._store,
            history=self._config.history,
            calls=CallOptions(permissions=Permissions(self._config.permissions)),
        )

    async def close(self) -> None:
        """End the bot."""
        await self.runner.aclose()
        for provider in self._providers.values():
            await provider.aclose()
        if isinstance(self._store, SQLiteStore):
            await self._store.aclose()

    async def say(self, *messages: Any, **options: Any) -> None:
        """Play a turn for each of the user's messages."""
        for message in messages:
            self.events.append({"user": plain(message)})
            async with asyncio.timeout(_PATIENCE_S):
                turn = self.runner.run(message, conversation="c", **options)
                async with aclosing(turn) as events:
                    async for event in events:
                        self._note(event)

    def _note(self, event: Any) -> None:
        """Keep an event, and apart from it the words that an edit of texts may change."""
        fields = plain(event)
        kind = {"event": type(event).__name__}
        words = {name: fields.pop(name) for name in _WORDING if name in fields}
        self.events.append({**kind, **fields})
        if words:
            self.words.append({**kind, **words})

    @property
    def session(self) -> ToolSearchSession:
        """The state of the conversation."""
        session = self.runner.session("c")
        if session is None:
            raise SnapshotError(f"{self.case.name}: the conversation has not begun")
        return session

    def profile(self, kind: str) -> Any:
        """Return the profile of a provider."""
        return self._providers[kind].profile

    def _configured(self) -> BotConfig:
        """Read the settings from a file, as a bot's are read."""
        settings: dict[str, Any] = {"tool_schema_mode": "tool_search", **self.case.settings}
        providers = []
        for kind in self.case.kinds:
            entry = {"id": kind, "api_key_env": None, **KINDS[kind]}
            is_claude = entry["type"] == "anthropic"
            server = self.server
            entry["base_url"] = server.anthropic_base_url if is_claude else server.openai_base_url
            if not self.case.streamed:
                entry["extra_body"] = {"stream": False}
            providers.append(entry)
        profiles = {**_PROFILES, **settings.pop("profiles", {})}
        common = {"system_prompt": "You help.", "providers": providers, "profiles": profiles}
        settings = {**common, **settings}
        path = self._folder / "bot.yaml"
        path.write_text(json.dumps(settings), "utf-8")  # each JSON text is YAML
        return load_config(path)


async def play(case: Case, server: StandInServer, target: Path) -> None:
    """Play a conversation and write its files.

    Raises:
        SnapshotError: It did not go as it should.
    """
    model = KeywordModel() if case.script is None else ScriptedModel(case.script)
    server.reset(model=model, endpoint=case.endpoint or Endpoint())
    server.faults.add(*case.faults)
    with tempfile.TemporaryDirectory() as folder:
        stage = Play(case, server, Path(folder))
        await stage.open()
        try:
            await case.act(stage)
            history = stage.session.history
        finally:
            await stage.close()
    if isinstance(model, ScriptedModel) and model.remaining:
        raise SnapshotError(f"{case.name}: {model.remaining} steps of the script were not asked")
    if server.violations and not case.may_refuse:
        raise SnapshotError(f"{case.name}: the service refused: {server.violations[0]}")
    if server.faults.waiting:
        raise SnapshotError(f"{case.name}: a fault has not struck: {server.faults.waiting[0]}")
    requests = [
        f"# {request.number} {request.path} {request.status}\n".encode() + request.raw_body + b"\n"
        for request in server.requests
    ]
    write(target / "bodies" / f"{case.name}.txt", b"".join(requests))
    write_lines(target / "events" / f"{case.name}.jsonl", stage.events)
    if stage.words:
        write_lines(target / "words" / f"{case.name}.jsonl", stage.words)
    results = [
        {"name": said.name, "id": said.tool_call_id, "error": said.is_error, "text": said.text}
        for said in history
        if said.role == "tool"
    ]
    write_lines(target / "answers" / f"{case.name}.jsonl", results)
