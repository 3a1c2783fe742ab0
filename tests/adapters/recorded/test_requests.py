"""Every recorded request of our dialects: our session sends it too, or there is a reason.

A run of requests is led: its first history is imported, the recorded replies are read by
the adapter, and the recorded results committed. The allowed differences are in `sessions`.
"""

from __future__ import annotations

from typing import Literal

import pytest

from tests.adapters.recorded.sessions import Led, Way, comparable, recordings
from tests.adapters.recorded.traffic import REASON, RECORDED

needs_recordings = pytest.mark.skipif(not RECORDED.is_dir(), reason=REASON)

Runs = dict[str, tuple[Way, tuple[tuple[int, ...], ...]]]
_MATRIX = "test_tool_availability_portability_matrix"
_TO_GOOGLE = "[openai-responses-gpt-5.4-google-gemini-3-flash-preview]"
_TO_CLAUDE = "[google-gemini-3-flash-preview-anthropic-claude-sonnet-4-5]"
_MODELS = ("fable-5", "haiku-4-5", "opus-5", "sonnet-4-6", "sonnet-5")

EQUAL: Runs = {
    # Claude, our own search
    "test_anthropic_custom_callable_round_trip": ("auto", ((0, 1, 2),)),
    "test_anthropic_explicit_tool_search_keeps_search_surface": ("auto", ((0, 1, 2),)),
    # OpenAI Chat
    "test_tool_search_eval[openai-chat]": ("auto", ((0, 1, 2), (3, 4, 5), (6,), (7,))),
    f"{_MATRIX}[R1-T6-local-search]": ("auto", ((0,),)),
    f"{_MATRIX}[R2-T6-local-search]": ("auto", ((0,),)),
    # OpenAI Responses
    "test_openai_execution_client_round_trip": ("deferred", ((0, 1, 2),)),
    "test_openai_client_tool_search_streaming": ("deferred", ((0, 1, 2),)),
    "test_openai_hosted_tool_search_stateless_continuation": ("hosted", ((0, 1, 2),)),
    "test_openai_native_tool_search_round_trip": ("hosted", ((0,),)),
    "test_openai_native_tool_search_streaming": ("hosted", ((0,),)),
    "test_openai_native_tool_search_with_deferred_capability": ("hosted", ((0, 1),)),
    "test_openai_native_tool_search_with_deferred_capability_gpt_5_6_sol": ("hosted", ((0, 1),)),
    "test_live_tool_search_handoff_anthropic_to_openai": ("hosted", ((2, 3),)),
    "test_openai_live_delta_preserves_the_warmed_cache_prefix": ("hosted", ((0,),)),
    f"test_cross_provider_capability_replay{_TO_GOOGLE}": ("auto", ((0,),)),
    "test_openai_deferred_capability_runs_on_model_without_native_tool_search":
        ("generic", ((0,), (1, 2))),
    f"{_MATRIX}[R1-T3-native-search]": ("hosted", ((0,),)),
    f"{_MATRIX}[R2-T3-native-search]": ("hosted", ((0,),)),
    f"{_MATRIX}[R1-T4-local-search-additional-tools]": ("auto", ((0,),)),
    f"{_MATRIX}[R2-T4-local-search-additional-tools]": ("auto", ((0,),)),
}  # fmt: skip
"""Which requests of a recording are ours too: how they are told, and the runs."""

EQUAL_BUT_FOR_THE_SEARCH_TOOL: Runs = {
    # Claude's own search is declared where we declare ours
    "test_anthropic_native_tool_search_regex_strategy": ("auto", ((0,),)),
    "test_anthropic_native_tool_search_round_trip": ("auto", ((0,),)),
    "test_anthropic_native_tool_search_streaming": ("auto", ((0,),)),
    "test_live_tool_search_handoff_anthropic_to_openai": ("auto", ((0,),)),
    "test_anthropic_lazy_advertisement_live": ("auto", ((0,),)),
    "test_anthropic_fable_5_lazy_advertisement_live": ("auto", ((0,),)),
    "test_anthropic_to_google_deferred_capability_history_replay": ("auto", ((0,), (1, 2))),
    f"{_MATRIX}[R1-T1-native-search]": ("auto", ((0,),)),
    f"{_MATRIX}[R1-T2-native-search]": ("auto", ((0,),)),
    f"{_MATRIX}[R4-T2-native-search]": ("auto", ((0,),)),
    # nothing is declared that searches; what is deferred, the application brings in
    f"test_cross_provider_capability_replay{_TO_CLAUDE}": ("auto", ((3, 4),)),
    "test_anthropic_deferred_capability_tool_callable_without_tool_search":
        ("auto", ((0,), (1, 2))),
    **{
        "test_anthropic_deferred_capability_without_tool_search_across_models"
        f"[claude-{model}]": ("auto", ((0,), (1, 2)))
        for model in _MODELS
    },
}  # fmt: skip
"""The same, where a list has another search tool than ours, or none."""

_ADDED = "an application brings tools in by items of their own; here they come by a search"
_ADDITION = "tools are added by a system message (beta); here they come by a search"
_SERVED = "Claude's own search, told by its own blocks; here the client searches"
_ANNOUNCED = "a system message in mid-conversation announces what the list has; here a search does"
OTHERS = {
    "test_anthropic_native_tool_search-0": "Claude's own search; each tool says its default type",
    "test_anthropic_native_tool_search_round_trip-1": _SERVED,
    "test_anthropic_native_tool_search_streaming-1": _SERVED,
    "test_live_tool_search_handoff_anthropic_to_openai-1": _SERVED,
    f"{_MATRIX}[R2-T1-native-search]-0": _SERVED,
    f"{_MATRIX}[R2-T2-native-search]-0": _SERVED,
    "test_anthropic_live_delta_preserves_the_warmed_cache_prefix-0":
        "an object schema without properties: ours always name them, since OpenAI refuses it",
    "test_anthropic_live_delta_preserves_the_warmed_cache_prefix-1": _ADDITION,
    "test_anthropic_lazy_advertisement_live-1": _ADDITION,
    "test_anthropic_lazy_advertisement_live-2": _ADDITION,
    "test_anthropic_fable_5_lazy_advertisement_live-1": _ADDITION,
    "test_anthropic_fable_5_lazy_advertisement_live-2": _ADDITION,
    "test_native_tool_availability_delta-0": _ADDITION,
    f"{_MATRIX}[R4-T1-tool-addition]-0": _ADDITION,
    f"{_MATRIX}[R4-T6-announcement]-0": _ANNOUNCED,
    "test_unsupported_model_calls_the_tool_the_announcement_revealed-0": _ANNOUNCED,
    "test_openai_native_tool_search_round_trip-1": "leaves the service's search output out",
    "test_openai_native_tool_search_streaming-1": "leaves the service's search output out",
    "test_openai_native_tool_search_with_deferred_capability-2": _ADDED,
    "test_openai_native_tool_search_with_deferred_capability-3": _ADDED,
    "test_openai_native_tool_search_with_deferred_capability_gpt_5_6_sol-2": _ADDED,
    "test_openai_native_tool_search_with_deferred_capability_gpt_5_6_sol-3": _ADDED,
    f"test_cross_provider_capability_replay{_TO_GOOGLE}-1": _ADDED,
    f"test_cross_provider_capability_replay{_TO_GOOGLE}-2": _ADDED,
    "test_openai_live_delta_preserves_the_warmed_cache_prefix-1": _ADDED,
    "test_supported_model_calls_additional_tool-0": _ADDED,
    f"{_MATRIX}[R4-T3-additional-tools]-0": _ADDED,
    f"{_MATRIX}[R4-T4-additional-tools]-0": _ADDED,
    "test_openai_native_tool_search-0":
        "a namespace with a function that is shown from the start: ours are declared plainly",
    "test_openai_promotes_local_search_history_round_trip-0":
        "a search found another definition than is declared; here both are the catalog's",
    "test_openai_promotes_local_search_history_round_trip-1":
        "a search found another definition than is declared; here both are the catalog's",
}  # fmt: skip
"""The requests that are not ours, with the reason."""

EXCHANGES = dict(recordings()) if RECORDED.is_dir() else {}
Run = tuple[str, Way, tuple[int, ...]]


def runs_of(table: Runs) -> list[Run]:
    """Return each run by itself."""
    return [(name, way, run) for name, (way, runs) in table.items() for run in runs]


def check_run(run: Run, *, search: bool) -> None:
    """Leads a run, and compares each request with the recorded one."""
    name, way, numbers = run
    exchanges = [EXCHANGES[name][number] for number in numbers]
    led = Led.over(exchanges, way)
    for place, exchange in enumerate(exchanges):
        plan, body = led.next_request(exchange.request)
        assert comparable(exchange.dialect, body, search=search) == comparable(
            exchange.dialect, exchange.request, search=search
        ), f"{name}-{numbers[place]}"
        end = exchange.read(plan, led.profile)
        if place + 1 < len(exchanges):
            led.go_on(end, exchanges[place + 1].history)


@needs_recordings
@pytest.mark.parametrize("run", runs_of(EQUAL), ids=lambda run: f"{run[0]}-{run[2][0]}")
def test_session_sends_what_was_recorded(run: Run) -> None:
    check_run(run, search=True)


@needs_recordings
@pytest.mark.parametrize(
    "run", runs_of(EQUAL_BUT_FOR_THE_SEARCH_TOOL), ids=lambda run: f"{run[0]}-{run[2][0]}"
)
def test_session_sends_what_was_recorded_but_for_the_search_tool(run: Run) -> None:
    """All else is equal, in old history too."""
    check_run(run, search=False)


@needs_recordings
@pytest.mark.parametrize("dialect", ["anthropic", "openai_chat", "openai_responses"])
def test_every_recorded_request_is_compared_or_has_a_reason(
    dialect: Literal["anthropic", "openai_chat", "openai_responses"],
) -> None:
    recorded = {
        f"{name}-{number}"
        for name, found in EXCHANGES.items()
        for number, exchange in found.items()
        if exchange.dialect == dialect
    }
    runs = runs_of(EQUAL) + runs_of(EQUAL_BUT_FOR_THE_SEARCH_TOOL)
    compared = {f"{name}-{number}" for name, _, numbers in runs for number in numbers}
    assert recorded <= compared | OTHERS.keys()
    assert not compared & OTHERS.keys()


@needs_recordings
def test_no_reason_outlives_its_recording() -> None:
    recorded = {f"{name}-{number}" for name, found in EXCHANGES.items() for number in found}
    assert OTHERS.keys() <= recorded
