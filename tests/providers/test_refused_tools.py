"""The tool that a service means when it refuses a definition."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from tool_search import ProviderError, Tool, profile_for
from tool_search.core.messages import DeclaredTool
from tool_search.core.profiles import ProviderProfile
from tool_search.providers.errors import MAX_SET_ASIDE, ErrorAction, classify_error
from tool_search.providers.refusals import SentTools

CLAUDE = profile_for("anthropic", "claude-sonnet-4-6")
OPENAI = profile_for("openai_chat", "gpt-5.4")
RESPONSES = profile_for("openai_responses", "gpt-5.4")
GEMINI = profile_for(
    "openai_chat",
    "gemini-3-pro",
    base_url="https://generativelanguage.googleapis.com/v1beta/openai",
)
MOONSHOT = replace(
    profile_for("openai_chat", "kimi-k3", base_url="https://api.moonshot.ai/v1"),
    schema_rules="moonshot",
)
SEARCH = Tool(name="tool_search")
ROWS = {"type": "object", "properties": {"rows": {"type": "array", "items": {"anyOf": [{}, {}]}}}}
ODD = Tool(name="files.read", parameters=ROWS)
PLAIN = Tool(name="get_time", parameters={"type": "object", "properties": {}})
SENT = SentTools(
    listed=[DeclaredTool(tool) for tool in (PLAIN, SEARCH, ODD)], own=("tool_search", "call_tool")
)
WIRE = "files_read_601e4eb6"
KEYS = "Property keys should match pattern '^[a-zA-Z0-9_.-]{1,64}$'"


def verdict(
    detail: str, profile: ProviderProfile, sent: SentTools = SENT, status: int = 400
) -> ErrorAction:
    return classify_error(ProviderError(detail, provider="p", status=status), profile, sent)


REFUSALS: dict[str, ProviderProfile] = {
    f"tools.2.custom.input_schema.properties: {KEYS}": CLAUDE,
    f"tools.2.custom.input_schema.properties.name.properties: {KEYS}": CLAUDE,
    "tools.2.custom.input_schema: JSON schema is invalid. It must match JSON Schema draft 2020-12 "
    "(https://json-schema.org/draft/2020-12).": CLAUDE,
    "tools.2.custom.input_schema: input_schema does not support oneOf, allOf, or anyOf at the top "
    "level": CLAUDE,
    "The value at toolConfig.tools.2.toolSpec.inputSchema.json.type must be one of the following: "
    "object.": CLAUDE,
    f"Invalid schema for function '{WIRE}': In context=('properties', 'paths'), array schema "
    "missing items.": OPENAI,
    f"Invalid schema for function '{WIRE}': schema must have type 'object' and not have 'oneOf'/"
    "'anyOf'/'allOf'/'enum'/'not' at the top level.": RESPONSES,
    f"invalid JSON schema for tool {WIRE}, tools[2].function.parameters: 'required' present but "
    "'properties' is missing": OPENAI,
    "Invalid value at 'tools[2].function.parameters'": OPENAI,
    f"FunctionDeclaration '{WIRE}' in the request exceeds the maximum allowed nesting depth.":
        GEMINI,
    "Invalid JSON payload received. Unknown name \"const\" at 'tools[0].function_declarations[2]"
    ".parameters.properties[8].value': Cannot find field.": GEMINI,
    "Unknown name \"const\" at 'tools[2].function_declarations[0].parameters'": GEMINI,
    f"Invalid tool schema: {ROWS!r} is not valid under any of the given schemas": OPENAI,
    "tools.function.parameters is not a valid moonshot flavored json schema, details: <At path "
    "'properties.rows.items.anyOf[1]': type is not defined>": MOONSHOT,
}  # fmt: skip


@pytest.mark.parametrize(("detail", "profile"), REFUSALS.items())
@pytest.mark.parametrize("status", [400, 422])
def test_the_refused_tool_is_set_aside(profile: ProviderProfile, detail: str, status: int) -> None:
    said = verdict(detail, profile, status=status)
    assert (said.remedy, said.set_aside) == ("without_tool", (ODD,))
    assert said.profile == replace(profile, set_aside=frozenset({ODD.shown_fingerprint}))
    assert said.profile is not None
    assert said.profile.sets_aside(ODD)
    assert not said.profile.sets_aside(PLAIN)


def test_a_tool_that_a_message_brought_is_found_by_its_name() -> None:
    sent = SentTools(loaded=[ODD])
    said = verdict(f"Invalid schema for function '{WIRE}': no.", RESPONSES, sent)
    assert said.set_aside == (ODD,)


def test_all_tools_that_one_refusal_names_are_set_aside_at_once() -> None:
    detail = " ".join(f"Unknown name at 'tools[0].function_declarations[{n}]'." for n in (0, 1, 2))
    assert verdict(detail, GEMINI).set_aside == (PLAIN, ODD)


@pytest.mark.parametrize(
    "detail",
    [
        "tools.1.custom.input_schema: JSON schema is invalid.",
        "tools.9.custom.input_schema: JSON schema is invalid.",
        "Invalid schema for function 'tool_search': no.",
        "Invalid schema for function 'rename_file': no.",
        "tools[1].function_declarations[2]: no",
    ],
)
def test_a_tool_of_the_librarys_own_or_an_unknown_one_is_nobodys_to_set_aside(detail: str) -> None:
    for profile in (CLAUDE, OPENAI):
        assert verdict(detail, profile).remedy == "next_provider"


@pytest.mark.parametrize(
    ("profile", "detail", "remedy"),
    [
        (CLAUDE, "tools.2.custom.defer_loading: Extra inputs are not permitted",
         "generic_strategy"),
        (CLAUDE, "tools.2.custom.cache_control: Extra inputs are not permitted",
         "without_cache_marks"),
        (CLAUDE, "tools.2.custom.name: String should match pattern '^[a-zA-Z0-9_-]{1,128}$'",
         "within_limit"),
        (OPENAI, "Invalid 'tools': array too long. Expected an array with maximum length 128",
         "within_limit"),
        (OPENAI, "Invalid 'tools[2].function.name': string does not match pattern.",
         "within_limit"),
    ],
)  # fmt: skip
def test_a_refusal_of_something_else_at_a_tool_keeps_its_own_remedy(
    profile: ProviderProfile, detail: str, remedy: Any
) -> None:
    assert verdict(detail, profile).remedy == remedy


def test_a_tool_that_is_set_aside_already_is_not_set_aside_again() -> None:
    """Refused by name without having been sent, it would be for ever."""
    known = replace(OPENAI, set_aside=frozenset({ODD.shown_fingerprint}))
    assert verdict(f"Invalid schema for function '{WIRE}': no.", known).remedy == "next_provider"


def test_an_endpoint_that_refuses_ever_more_tools_is_left_alone() -> None:
    full = replace(OPENAI, set_aside=frozenset(f"t{n}" for n in range(MAX_SET_ASIDE)))
    assert verdict(f"Invalid schema for function '{WIRE}': no.", full).remedy == "next_provider"


def test_a_changed_definition_is_tried_again() -> None:
    aside = replace(OPENAI, set_aside=frozenset({ODD.shown_fingerprint}))
    assert not aside.sets_aside(replace(ODD, parameters={}))
    named = replace(OPENAI, set_aside=frozenset({"files.read"}))
    assert named.sets_aside(replace(ODD, parameters={}))
