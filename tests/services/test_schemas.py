"""Five turns against services that enforce one rule on schemas, with a swap in the middle."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any

import pytest

from tests.services.raw import JSON, RawService, Rule, google_error, vendor_error
from tests.services.rules import RULES, bot_of
from tool_search import ExecutableTool, ProviderConfig, Tool, ToolSearchConfig, ToolSearchRunner
from tool_search.adapters import build_provider
from tool_search.core.settings import Dialect
from tool_search.runner.events import Done, RunnerWarning

KEY = re.compile(r"^[a-zA-Z0-9_.-]{1,64}$")
TEXT = {"text": {"type": "string"}}
SCHEMAS: dict[str, dict[str, Any]] = {
    "read_invoice": {"$filter": {"type": "string"}, "año": {"type": "int"}},
    "water_plants": {"box": {"type": "array", "items": [{"type": "number"}]}, "名字": {}},
    "book_flight": {"seats": {"minimum": 0, "exclusiveMinimum": True}, "tags": {"type": "array"}},
    "tune_piano": {"where": {"$ref": "#/definitions/none"}, "keys": {"type": "gadget"}},
    "bake_bread": {"rows": {"items": {"properties": {"user id": {}}, "required": ["user id"]}}},
}
TOOLS = tuple(SCHEMAS)


def functions(body: JSON) -> Iterator[tuple[str, JSON]]:
    """Yield the name and the schema of each definition in a request, in its order."""
    brought = [item for item in body.get("input", ()) if "tools" in item]
    for tool in [*body.get("tools", ()), *(tool for item in brought for tool in item["tools"])]:
        for each in tool["tools"] if tool.get("type") == "namespace" else [tool]:
            named = each.get("function", each)
            schema = named.get("input_schema", named.get("parameters"))
            if schema is not None:
                yield named.get("name", ""), schema


def parts(schema: Any) -> Iterator[JSON]:
    """Yield all objects in a schema."""
    if isinstance(schema, dict):
        yield schema
        for inner in schema.values():
            yield from parts(inner)
    elif isinstance(schema, list):
        for inner in schema:
            yield from parts(inner)


def property_keys(body: JSON) -> str | None:
    for index, (_, schema) in enumerate(functions(body)):
        named = [part["properties"] for part in parts(schema) if "properties" in part]
        if not all(KEY.match(key) for keys in named for key in keys):
            return (
                f"tools.{index}.custom.input_schema.properties: Property keys should match pattern "
                "'^[a-zA-Z0-9_.-]{1,64}$'"
            )
    return None


def draft_2020_12(body: JSON) -> str | None:
    types = {"string", "number", "integer", "boolean", "object", "array", "null", None}
    for index, (_, schema) in enumerate(functions(body)):
        for part in parts(schema):
            kinds = part.get("type")
            is_schema = not isinstance(kinds, dict)
            is_known = not is_schema or types.issuperset(kinds if type(kinds) is list else [kinds])
            old = isinstance(part.get("items"), list) or part.get("exclusiveMinimum") is True
            if old or not is_known or "none" in str(part.get("$ref")):
                return (
                    f"tools.{index}.custom.input_schema: JSON schema is invalid. It must match "
                    "JSON Schema draft 2020-12"
                )
    return None


def array_items(body: JSON) -> str | None:
    for name, schema in functions(body):
        if any(part.get("type") == "array" and "items" not in part for part in parts(schema)):
            return (
                f"Invalid schema for function '{name}': In context=('properties', 'tags'), array "
                "schema missing items."
            )
    return None


def by_place(name: str, text: str) -> Rule:
    """Return an unknown fault, which the service reports by the tool's place."""

    def rule(body: JSON) -> str | None:
        names = [known for known, _ in functions(body)]
        return text.format(names.index(name)) if name in names else None

    return rule


def by_name(name: str, text: str) -> Rule:
    def rule(body: JSON) -> str | None:
        return text.format(name) if name in [known for known, _ in functions(body)] else None

    return rule


@dataclass(frozen=True, kw_only=True)
class Case:
    """A service with a rule.

    Attributes:
        type: The dialect.
        model: The model.
        rule: What it refuses.
        learned: How many requests it may refuse until the bot knows.
        wrap: Makes the body of a refusal.
    """

    type: str
    model: str
    rule: Rule
    learned: int = 0
    wrap: Callable[[str], object] = vendor_error


UNKNOWN = "JSON schema is invalid. It must match JSON Schema draft 2020-12"
CASES = {
    "claude, keys": Case(type="anthropic", model="claude-sonnet-4-6", rule=property_keys),
    "claude, draft": Case(type="anthropic", model="claude-sonnet-4-6", rule=draft_2020_12),
    "openai, items": Case(type="openai_chat", model="gpt-5.4", rule=array_items),
    "responses, items": Case(type="openai_responses", model="gpt-5.5", rule=array_items),
    "claude, unknown": Case(
        type="anthropic", model="claude-sonnet-4-6", learned=1,
        rule=by_place("bake_bread", "tools.{}.custom.input_schema: " + UNKNOWN),
    ),
    "openai, unknown": Case(
        type="openai_chat", model="gpt-5.4", learned=1,
        rule=by_name("bake_bread", "Invalid schema for function '{}': no."),
    ),
    "responses, unknown": Case(
        type="openai_responses", model="gpt-5.5", learned=1,
        rule=by_name("bake_bread", "Invalid schema for function '{}': no."),
    ),
    "groq, unknown": Case(
        type="openai_chat", model="llama-4", learned=1,
        rule=by_name("bake_bread", "invalid JSON schema for tool {}, tools[9].function.parameters"),
    ),
    "gemini, unknown": Case(
        type="openai_chat", model="gemini-3-pro", learned=1, wrap=google_error,
        rule=by_place(
            "bake_bread", "Unknown name \"x\" at 'tools[0].function_declarations[{}].parameters'"
        ),
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("always", [True, False], ids=["core", "deferred"])
async def test_a_rule_on_schemas_costs_no_turn(name: str, always: bool) -> None:
    """At most one request is refused, and only the tool that is at fault is missed."""
    case, ran = CASES[name], []

    def executable(tool: str) -> ExecutableTool:
        async def run(**arguments: Any) -> str:
            ran.append((tool, arguments))
            return "done"

        schema = {"type": "object", "properties": {**TEXT, **SCHEMAS[tool]}}
        words = tool.replace("_", " ")
        made = Tool(
            name=tool, description=f"Really {words}.", parameters=schema, always_load=always
        )
        return ExecutableTool(tool=made, function=run)

    with ExitStack() as servers:
        service = servers.enter_context(RawService(rule=case.rule, wrap=case.wrap).running())
        other = servers.enter_context(RawService().running())
        providers = {
            "one": _provider("one", case.type, case.model, service),
            "two": _provider("two", "openai_chat", "gpt-5.4", other),
        }
        runner = ToolSearchRunner(
            providers=providers,
            tools=[executable(tool) for tool in TOOLS],
            config=ToolSearchConfig(tool_schema_mode="tool_search"),
        )
        events = []
        for tool, used in zip(TOOLS, ("one", "one", "two", "one", "one"), strict=True):
            runner.use(used)
            events += [event async for event in runner.run(f"Please use {tool}")]
        for made in providers.values():
            await made.aclose()
    answers = [event.answer for event in events if isinstance(event, Done)]
    assert len(answers) == len(TOOLS)
    assert all(answer.startswith("answer") for answer in answers)
    assert len(service.refused) == case.learned, service.refused
    assert not other.refused
    aside = [e for e in events if isinstance(e, RunnerWarning) and e.code == "tool_set_aside"]
    assert len(aside) == case.learned
    expected = TOOLS[:-1] if case.learned else TOOLS
    assert [tool for tool, _ in ran] == list(expected)


def _provider(name: str, kind: str, model: str, service: RawService) -> Any:
    base = service.url if kind == "anthropic" else f"{service.url}/v1"
    settings = {"id": name, "type": kind, "model": model, "base_url": base, "api_key_env": None}
    native = {"anthropic": "claude", "openai_responses": "openai_responses"}
    settings["strategy"] = native.get(kind, "auto")
    return build_provider(
        ProviderConfig.model_validate(settings), api_key="sk-test-123456", fallbacks=True
    )


@pytest.mark.parametrize("dialect", ["openai_chat", "anthropic", "openai_responses"])
@pytest.mark.parametrize(
    ("model", "rule"),
    [
        ("muse-spark-1.3", "no schema is recursive"),
        ("muse-spark-1.3", "no schema has more than 10 levels"),
        ("grok-4.5", "no schema is recursive"),
    ],
)
async def test_limits_of_known_models_are_kept_from_the_first_request_on(
    model: str, rule: str, dialect: Dialect
) -> None:
    async with bot_of(RULES[rule], dialect, model, words="no") as made:
        await made.ask(TOOLS[0])
        made.check(RULES[rule])
    assert made.service.refused == []
