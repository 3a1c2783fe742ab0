"""Actions on the errors of providers, and the order in which providers are asked."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, get_args

import pytest

from tool_search import ConfigurationError, ProviderError, Tool, profile_for
from tool_search.core.messages import DeclaredTool
from tool_search.providers.errors import (
    Action,
    ErrorAction,
    ProviderHealth,
    classify_error,
)
from tool_search.providers.refusals import SentTools, answers_in

CLAUDE = profile_for("anthropic", "claude-sonnet-4-6")
OPENAI = profile_for("openai_chat", "gpt-5.4")
RESPONSES = profile_for("openai_responses", "gpt-5.4")
KIMI = profile_for("openai_chat", "kimi-k3", base_url="https://api.moonshot.ai/v1")
PROFILES = {
    "claude": CLAUDE,
    "generic": CLAUDE.generic(),
    "openai": OPENAI,
    "responses": RESPONSES,
    "kimi": KIMI,
}

UNKNOWN_FEATURE = [
    (
        "messages.2.content.0.tool_result.content.0: Input tag 'tool_reference' found using 'type' "
        "does not match any of the expected tags: 'document', 'image', 'search_result', 'text'"
    ),
    "tools.3.custom.defer_loading: Extra inputs are not permitted",
    "defer_loading: Extra inputs are not permitted",
    "Unrecognized request argument supplied: defer_loading",
    "unknown field `defer_loading` at line 1 column 220",
    "The tool-search-tool beta feature is not currently supported on the Converse API",
    "Tool search is not available for this model",
    "Malformed input request: #/tools/0: extraneous key [defer_loading] is not permitted",
    "Invalid JSON payload received. Unknown name \"defer_loading\" at 'tools[0]'",
    (
        "[{'type': 'extra_forbidden', 'loc': ('body', 'tools', 0, 'defer_loading'), 'msg': 'Extra "
        "inputs are not permitted', 'input': True}]"
    ),
    "'claude-3-5-haiku' does not support tools with defer_loading=true.",
]
UNKNOWN_TO_RESPONSES = [
    "Tool 'tool_search' is not supported with gpt-5.4-nano.",
    "Invalid value: 'tool_search'. Supported values are: 'function' and 'custom'.",
    'tools.14: tool type "tool_search" is not supported',
    "Unsupported tool type: tool_search",
    'Only `type:"function"` tools are supported on this endpoint.',
    "The requested tool tool_search is not supported.",
    "Invalid value: 'tool_search_call'. Supported values are: 'message', 'reasoning'.",
    "Invalid value: 'additional_tools'. Supported values are: 'message', 'reasoning'.",
    "Invalid value: 'namespace'. Supported values are: 'function' and 'custom'.",
    "Unknown parameter: 'input[3].namespace'.",
    "Unknown parameter: 'tools[0].defer_loading'.",
    "Invalid Value: 'tools.defer_loading'. Deferred tools require tools.tool_search.",
    "Invalid Value: 'tools.tool_search'. tools.tool_search requires at least one deferred tool.",
    "Duplicate namespace name 'crm' in input[27].tools[0]. Namespace names must be unique.",
]
UNKNOWN_MARKS = [
    "cache_control: Extra inputs are not permitted",
    "tools.3.cache_control: Extra inputs are not permitted",
    "tools.3.custom.cache_control: Extra inputs are not permitted",
    "system.0.cache_control: Extra inputs are not permitted",
    "messages.13.content.0.thinking.cache_control: Extra inputs are not permitted",
    "Unknown parameter: 'system[0].cache_control'.",
    "Malformed input request: #/tools/0: extraneous key [cache_control] is not permitted",
    "This model does not support cache_control.",
]
NAMESPACES = {
    "Missing namespace for function_call 'create_widget'. It does not exist in the default "
    "namespace. Round-trip the model's function_call item with its namespace field included.":
        "create_widget",
    "Unknown namespace 'crm' for function_call 'get_orders': no tool of this request is in it.":
        "get_orders",
}  # fmt: skip
OWN_REPLIES = [
    "Encrypted content item_id did not match the target item id.",
    (
        "Duplicate item found with id tsc_077457e674332594006a606a565ac081a090a3f60cd0d63c21. "
        "Remove duplicate items from your input and try again."
    ),
    "Item 'rs_1' of type 'reasoning' was provided without its required following item.",
    (
        "Item 'fc_1' of type 'function_call' was provided without its required 'reasoning' item: "
        "'rs_1'."
    ),
    (
        "Item with id 'rs_1' not found. Items are not persisted when `store` is set to false. Try "
        "again with `store` set to true, or remove this item from your input."
    ),
    "Previous response with id 'resp_0f09a275409' not found.",
]
SIGNED_REPLIES = [
    "messages.3.content.0: Invalid `signature` in `thinking` block",
    (
        "messages.5.content.1: `thinking` or `redacted_thinking` blocks in the latest assistant "
        "message cannot be modified. These blocks must remain as they were in the original "
        "response."
    ),
    (
        "messages.1.content.0.type: Expected `thinking` or `redacted_thinking`, but found "
        "`tool_use`. When `thinking` is enabled, a final `assistant` message must start with a "
        "thinking block."
    ),
]
REASONING = [
    "The `reasoning_content` in the thinking mode must be passed back to the API.",
    "thinking is enabled but reasoning_content is missing in assistant tool call message at index 4",  # noqa: E501
    (
        "Error from provider: Provider returned error: thinking is enabled but reasoning_content "
        "is missing in assistant tool call message at index 2"
    ),
]
UNSIGNED = [
    (
        "Function call is missing a thought_signature in functionCall parts. This is required for "
        "tools to work correctly."
    ),
    (
        "Unable to submit request because function call `f` in the 2. content block is missing a "
        "`thought_signature`."
    ),
]
NO_REASONING = [
    "'messages.2' : property 'reasoning_content' is unsupported",
    "messages.2.assistant.reasoning_content: Extra inputs are not permitted",
    "Unknown parameter: 'messages[2].reasoning'.",
    "unknown field `reasoning_details` at line 1 column 220",
]
NO_STREAM_OPTIONS = (
    "{'detail': [{'type': 'extra_forbidden', 'loc': ['body', 'stream_options', 'include_usage'], "
    "'msg': 'Extra inputs are not permitted', 'input': True}]}"
)
NO_MOONSHOT_SCHEMA = (
    "Invalid request: tools.function.parameters is not a valid moonshot flavored json schema, "
    "details: <At path 'properties.skill': when using anyOf, type should be defined in anyOf items "
    "instead of the parent schema>"
)
REFERENCES = {
    "Tool reference 'get_time' not found in available tools": "get_time",
    "Tool reference 'get_time' has no corresponding tool definition": "get_time",
    "messages.4: Tool reference 'files_read_601e4eb6' not found in available tools":
        "files_read_601e4eb6",
    "tool_addition/tool_removal references unknown tool 'get_time'": "get_time",
}  # fmt: skip
TOO_MANY = {
    "Invalid 'tools': array too long. Expected an array with maximum length 128, but got an "
    "array with length 150 instead.": 128,
    "Invalid 'functions': array too long. Expected an array with maximum length 64, but got an "
    "array with length 150 instead.": 64,
    "'tools' : maximum number of items is 100": 100,
    "tools: List should have at most 128 items after validation, not 150": 128,
    "Too many tools. Maximum is 32": 32,
    "The maximum number of tools is 40, got 150": 40,
    "You may not use more than 20 tools": 20,
    "You may not include more than 128 tools in your request.": 128,
    "at most 512 function declarations are allowed": 512,
    "Too many functions": 64,
    "Maximum tools limit reached. 219 tools have been provided but the maximum is 200.": 200,
    "too many tools: at most 1,024 are allowed": 1024,
}
BAD_NAMES = [
    (
        "Invalid 'tools[0].function.name': string does not match pattern. Expected a string that "
        "matches the pattern '^[a-zA-Z0-9_-]+$'."
    ),
    "tools.0.custom.name: String should match pattern '^[a-zA-Z0-9_-]{1,128}$'",
    (
        "messages.1.content.0.tool_result.content.0.tool_reference.tool_name: String should have "
        "at most 64 characters"
    ),
    (
        "GenerateContentRequest.tools[0].function_declarations[0].name: Invalid function name. "
        "Must start with a letter or an underscore."
    ),
    "Invalid request: function name is invalid, must start with a letter",
    "Invalid 'tools[5].name': string too long. Expected a string with maximum length 64",
    "Invalid 'input[492].name': string does not match pattern. Expected a string that matches",
    "Invalid 'messages[2].tool_calls[0].function.name': string does not match pattern.",
    "messages.14.content.1.tool_use.name: String should have at most 200 characters",
    "tools.585.FrontendRemoteMcpToolDefinition.name: String should have at most 64 characters",
]
OTHERS = [
    "At least one tool must have defer_loading=false. All tools cannot be deferred.",
    (
        "Tool 'x' cannot have both defer_loading=true and cache_control set. Tools with "
        "defer_loading cannot use prompt caching."
    ),
    "messages.3: `tool_use` ids were found without `tool_result` blocks immediately after: t1",
    "messages: at least one message is required",
    (
        "Invalid schema for function 'rename_file': In context=('properties', 'x'), 'strin' is not "
        "valid under any of the given schemas."
    ),
    "messages with role 'tool' must be a response to a preceeding message with 'tool_calls'.",
    "max_tokens: 100000 > 64000, which is the maximum allowed number of output tokens",
    "Your credit balance is too low to access the Anthropic API.",
    "The model `gpt-9` does not exist",
    "No tool output found for function call call_30QT8TKHJVZ7ktawZDPtvzjf.",
    "No tool call found for function call output with call_id call_30QT8TKHJVZ7ktawZDPtvzjf.",
    "Invalid 'input[1].call_id': string too long. Expected a string with maximum length 64",
    "Tool choice 'web_search' not found in 'tools' parameter.",
    "",
]


def verdict(detail: str, profile: str, *, status: int | None = 400, code: str = "") -> ErrorAction:
    """Return the action on one message of a provider."""
    error = ProviderError(detail, provider="p", status=status, code=code or None)
    return classify_error(error, PROFILES[profile])


@pytest.mark.parametrize("detail", UNKNOWN_MARKS)
@pytest.mark.parametrize("strategy", ["claude", "generic", "bridge"])
def test_an_endpoint_that_refuses_cache_breakpoints_gets_none(detail: str, strategy: Any) -> None:
    """The endpoint's profile remembers it; where none was written, nothing is repeated."""
    profile = replace(CLAUDE, strategy=strategy)
    error = ProviderError(detail, provider="p", status=400)
    unmarked = replace(profile, cache="automatic")
    assert classify_error(error, profile) == ErrorAction(
        remedy="without_cache_marks", profile=unmarked
    )
    assert classify_error(error, unmarked) == ErrorAction(remedy="next_provider")


@pytest.mark.parametrize("detail", UNKNOWN_FEATURE)
@pytest.mark.parametrize("status", [400, 422])
def test_an_endpoint_that_knows_no_tool_search_gets_the_generic_strategy(
    detail: str, status: int
) -> None:
    said = verdict(detail, "claude", status=status)
    assert (said.remedy, said.cools_down) == ("generic_strategy", False)
    assert said.profile == CLAUDE.generic()


@pytest.mark.parametrize("detail", [*UNKNOWN_FEATURE, *UNKNOWN_TO_RESPONSES])
def test_a_responses_endpoint_that_knows_no_tool_search_gets_the_generic_strategy(
    detail: str,
) -> None:
    said = verdict(detail, "responses")
    assert said == ErrorAction(remedy="generic_strategy", profile=RESPONSES.generic())


@pytest.mark.parametrize(
    "detail",
    [
        "tokenization failed",
        "Unknown parameter: 'messages[4].tools'.",
        "messages.4.tools: Extra inputs are not permitted",
        "Invalid value for 'content': expected a string, got null.",
        "Missing required parameter: 'messages[4].content'.",
        "messages.4.content: Field required",
    ],
)
def test_an_endpoint_that_takes_no_tools_in_messages_gets_the_generic_strategy(
    detail: str,
) -> None:
    """Either it does not know `tools` there, or it wants the content that must not be."""
    assert verdict(detail, "kimi") == ErrorAction(remedy="generic_strategy", profile=KIMI.generic())
    assert verdict(detail, "openai") == ErrorAction(remedy="next_provider")


@pytest.mark.parametrize(("detail", "name"), NAMESPACES.items())
def test_a_wrong_namespace_is_repaired_by_the_name_of_its_tool(detail: str, name: str) -> None:
    said = verdict(detail, "responses")
    assert (said.remedy, said.references) == ("repair", (name,))


@pytest.mark.parametrize("detail", OWN_REPLIES)
def test_a_service_that_no_longer_knows_its_replies_is_sent_none_of_them(detail: str) -> None:
    assert verdict(detail, "responses") == ErrorAction(remedy="repair", replies=True)
    assert verdict(detail, "openai") == ErrorAction(remedy="next_provider")


@pytest.mark.parametrize("detail", SIGNED_REPLIES)
def test_refused_thinking_is_left_out(detail: str) -> None:
    """Signatures hold for one model and one prefix; the words go without them."""
    assert verdict(detail, "claude") == ErrorAction(remedy="repair", replies=True)
    assert verdict(detail, "generic") == ErrorAction(remedy="repair", replies=True)


@pytest.mark.parametrize("detail", REASONING)
def test_missing_reasoning_is_written_in_the_next_form_that_some_service_takes(
    detail: str,
) -> None:
    error = ProviderError(detail, provider="p", status=400)
    profile, forms = OPENAI, []
    while (said := classify_error(error, profile)).profile is not None:
        assert said.remedy == "with_reasoning"
        profile = said.profile
        forms.append((profile.missing_reasoning, profile.states_effort))
    assert forms == [("", False), (" ", False), (" ", True)]
    assert said == ErrorAction(remedy="next_provider")


@pytest.mark.parametrize("detail", UNSIGNED)
def test_calls_of_others_bear_the_documented_signature_where_one_is_wanted(detail: str) -> None:
    signing = replace(OPENAI, missing_signature="skip_thought_signature_validator")
    assert verdict(detail, "openai") == ErrorAction(remedy="with_signatures", profile=signing)
    error = ProviderError(detail, provider="p", status=400)
    assert classify_error(error, signing) == ErrorAction(remedy="next_provider")


@pytest.mark.parametrize(
    ("detail", "learned"),
    [
        (
            "Tool call id was call_1 but must be a-z, A-Z, 0-9, with a length of 9.",
            {"message_rules": "mistral"},
        ),
        ("Unexpected role 'user' after role 'tool'", {"message_rules": "mistral"}),
        (
            "Assistant message must have either content or tool_calls, but not both.",
            {"message_rules": "mistral"},
        ),
        (NO_MOONSHOT_SCHEMA, {"schema_rules": "moonshot"}),
        (NO_STREAM_OPTIONS, {"takes_stream_options": False}),
        ("Unrecognized request argument supplied: stream_options", {"takes_stream_options": False}),
        ("Tool choice must be auto", {"takes_tool_choice_none": False}),
    ],
)
def test_form_that_a_service_wants_is_learned_once(detail: str, learned: dict[str, Any]) -> None:
    known = replace(OPENAI, **learned)
    assert verdict(detail, "openai") == ErrorAction(remedy="in_its_form", profile=known)
    error = ProviderError(detail, provider="p", status=422)
    assert classify_error(error, known) == ErrorAction(remedy="next_provider")


def test_a_responses_endpoint_that_does_not_know_a_field_of_an_item_gets_no_items() -> None:
    silent = replace(RESPONSES, returns_reasoning=False)
    said = verdict("Unknown parameter: 'input[2].phase'.", "responses")
    assert said == ErrorAction(remedy="without_reasoning", profile=silent)


@pytest.mark.parametrize("detail", NO_REASONING)
def test_an_endpoint_that_takes_no_reasoning_gets_none(detail: str) -> None:
    silent = replace(OPENAI, returns_reasoning=False)
    assert verdict(detail, "openai") == ErrorAction(remedy="without_reasoning", profile=silent)
    error = ProviderError(detail, provider="p", status=400)
    assert classify_error(error, silent) == ErrorAction(remedy="next_provider")


@pytest.mark.parametrize("dialect", ["anthropic", "openai_chat", "openai_responses"])
def test_every_row_of_a_table_compiles_and_names_its_source(dialect: Any) -> None:
    rows = answers_in(dialect)
    assert all(row.source and row.match("") is None for row in rows)
    assert len({row.pattern for row in rows}) == len(rows)


@pytest.mark.parametrize(("detail", "name"), REFERENCES.items())
@pytest.mark.parametrize("code", ["invalid_request_error", "tool_reference_unresolved"])
def test_a_wrong_reference_is_repaired_by_name(detail: str, name: str, code: str) -> None:
    said = verdict(detail, "claude", code=code)
    assert (said.remedy, said.references) == ("repair", (name,))


def test_a_wrong_reference_without_a_name_leaves_all_of_them_out() -> None:
    """Sending the same request once more would not help."""
    said = verdict("unresolved", "claude", code="tool_reference_unresolved")
    assert said.remedy == "generic_strategy"


@pytest.mark.parametrize(
    "detail", [*UNKNOWN_FEATURE, *UNKNOWN_TO_RESPONSES, *REFERENCES, *NAMESPACES]
)
def test_what_the_generic_strategy_never_sent_is_no_reason_to_repeat(detail: str) -> None:
    assert verdict(detail, "generic").remedy == "next_provider"


@pytest.mark.parametrize(("detail", "most"), TOO_MANY.items())
def test_too_many_tools_are_rendered_within_the_named_limit(detail: str, most: int) -> None:
    said = verdict(detail, "openai")
    assert said.remedy == "within_limit"
    assert said.profile is not None
    assert said.profile.max_tools == most


def test_too_many_tools_across_the_bridge_are_rendered_within_the_limit() -> None:
    error = ProviderError("Too many tools. Maximum is 32", provider="p", status=400)
    said = classify_error(error, replace(OPENAI, strategy="bridge"))
    assert said.profile == replace(OPENAI, strategy="bridge", max_tools=32)


def test_too_much_that_claude_is_shown_is_filtered() -> None:
    said = verdict("too much", "claude", code="available_tools_limit_exceeded")
    assert said.remedy == "within_limit"
    assert said.profile == CLAUDE.generic()


@pytest.mark.parametrize(
    ("detail", "most"),
    [
        ("too much", 29),
        ("at most 20 tools may be deferred", 20),
        ("4,194,304 bytes of tools are the limit", 29),
    ],
)
def test_a_catalog_too_large_for_claude_teaches_how_large_one_may_be(
    detail: str, most: int
) -> None:
    """By the message, or else less than what was refused; a smaller one has references."""
    sent = SentTools(listed=[DeclaredTool(Tool(name=f"t{n}"), deferred=n > 0) for n in range(31)])
    error = ProviderError(detail, provider="p", status=400, code="available_tools_limit_exceeded")
    said = classify_error(error, CLAUDE, sent)
    assert said == ErrorAction(remedy="within_limit", profile=replace(CLAUDE, max_deferred=most))


def test_a_list_too_long_for_responses_is_filtered_within_the_limit() -> None:
    said = verdict("Too many tools. Maximum is 32", "responses")
    assert said.profile == replace(PROFILES["responses"].generic(), max_tools=32)


@pytest.mark.parametrize("detail", BAD_NAMES)
@pytest.mark.parametrize("profile", ["claude", "openai", "responses"])
def test_a_bad_name_is_written_by_the_strictest_rule(detail: str, profile: str) -> None:
    """Every provider takes such a name: no digit and no dash comes first."""
    said = verdict(detail, profile)
    assert said.remedy == "within_limit"
    assert said.profile is not None
    assert said.profile.name_rule.shape == "identifier"


@pytest.mark.parametrize("detail", OTHERS)
@pytest.mark.parametrize("profile", PROFILES)
def test_any_other_refusal_is_not_repeated_there(detail: str, profile: str) -> None:
    assert verdict(detail, profile) == ErrorAction(remedy="next_provider")


@pytest.mark.parametrize(
    "detail", ["Your credit balance is too low", "The model `gpt-9` does not exist", "余额不足"]
)
def test_no_form_of_a_request_is_tried_against_what_the_account_may_not(detail: str) -> None:
    assert not verdict(detail, "generic").is_unknown
    assert verdict("Field required: messages.0.colour", "generic").is_unknown


@pytest.mark.parametrize("status", [None, 401, 402, 403, 408, 409, 429, 500, 502, 503, 504, 529])
@pytest.mark.parametrize("detail", ["overloaded", UNKNOWN_FEATURE[0], *TOO_MANY])
def test_what_says_nothing_about_the_request_makes_the_provider_rest(
    status: int | None, detail: str
) -> None:
    """The message does not matter: another provider is asked, and this one cools down."""
    assert verdict(detail, "claude", status=status) == ErrorAction(
        remedy="next_provider", cools_down=True
    )


def test_every_verdict_has_a_remedy_of_the_table() -> None:
    details = [*UNKNOWN_FEATURE, *UNKNOWN_MARKS, *REFERENCES, *TOO_MANY, *BAD_NAMES, *OTHERS]
    remedies: set[Action] = {verdict(detail, "claude").remedy for detail in details}
    remedies |= {
        verdict(detail, "openai").remedy
        for detail in [*REASONING, *NO_REASONING, *UNSIGNED, NO_STREAM_OPTIONS, "tool_use_failed"]
    }
    too_much = ["prompt is too long: 2 tokens > 1 maximum", "Could not process image"]
    remedies |= {verdict(detail, "claude").remedy for detail in too_much}
    busy = ProviderError("busy", provider="p", status=429, retry_after_s=2.0)
    remedies.add(classify_error(busy, CLAUDE).remedy)
    odd = ProviderError("Invalid schema for function 'odd': no.", provider="p", status=400)
    sent = SentTools(listed=[DeclaredTool(Tool(name="odd"))])
    remedies.add(classify_error(odd, OPENAI, sent).remedy)
    assert remedies == set(get_args(Action))


@pytest.fixture
def health() -> ProviderHealth:
    """Three providers, the middle one quick to be tried again."""
    return ProviderHealth({"a": 60, "b": 10, "c": 60})


def test_providers_are_asked_in_the_configured_order(health: ProviderHealth) -> None:
    assert health.order(now=0) == ("a", "b", "c")


def test_a_preferred_provider_is_asked_first(health: ProviderHealth) -> None:
    assert health.order(now=0, preferred="c") == ("c", "a", "b")


def test_a_failed_provider_rests_until_its_cool_down_is_over(health: ProviderHealth) -> None:
    health.failed("a", now=100)
    assert health.order(now=159) == ("b", "c", "a")
    assert health.order(now=160) == ("a", "b", "c")


def test_a_resting_provider_is_not_preferred(health: ProviderHealth) -> None:
    health.failed("c", now=0)
    assert health.order(now=1, preferred="c") == ("a", "b", "c")


def test_when_all_rest_the_one_that_wakes_first_is_tried_first(health: ProviderHealth) -> None:
    for name in ("a", "b", "c"):
        health.failed(name, now=0)
    assert health.order(now=1) == ("b", "a", "c")


def test_an_answer_ends_the_rest(health: ProviderHealth) -> None:
    health.failed("a", now=0)
    health.succeeded("a")
    assert health.order(now=1) == ("a", "b", "c")


def test_a_bot_without_providers_is_a_configuration_error() -> None:
    with pytest.raises(ConfigurationError, match="providers is empty"):
        ProviderHealth({})
