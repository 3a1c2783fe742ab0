"""The words of a refusal are found in each field that a service or a gateway puts them in."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.adapters.contract import KEY, Adapter, plan_of, reply_of
from tests.adapters.sdk.raw_server import DIALECTS, head_of, sends, serving
from tool_search.errors import ProviderError

RULE = "The reasoning_content in the thinking mode must be passed back to the API."
OWN = {"error": {"message": RULE, "type": "invalid_request_error", "code": "own_code"}}
INVALID = {"message": "Invalid value.", "type": "invalid_request_error"}


async def refused(adapter: Adapter, body: bytes, *, streamed: bool = False) -> ProviderError:
    """Return the error that an answer of 400 makes, or an event of a stream."""
    head = head_of() if streamed else head_of("application/json", status="400 Bad Request")
    async with serving(sends(body), head=head) as server:
        with pytest.raises(ProviderError) as caught:
            await reply_of(server.provider(adapter), plan_of())
    return caught.value


@pytest.fixture(params=list(DIALECTS.values()), ids=list(DIALECTS))
def adapter(request: pytest.FixtureRequest) -> Adapter:
    """Each dialect."""
    found: Adapter = request.param
    return found


@pytest.mark.parametrize(
    ("body", "said"),
    [
        # Xiaomi, quoted in new-api 4827.
        ({"error": {"code": "400", "message": "Param Incorrect", "param": RULE, "type": ""}},
         f"Param Incorrect ({RULE})"),
        # xAI, quoted in hermes-agent 95003.
        ({"code": "invalid-argument", "error": RULE}, RULE),
        # Cloudflare, quoted in TencentDB-Agent-Memory 1313.
        ({"errors": [{"message": RULE, "code": 5006}], "success": False, "result": {}}, RULE),
        ({"error": {"message": RULE, "internalCode": 5006}}, f"{RULE} (5006)"),
        # OpenRouter, quoted in AionUi 2746.
        ({"error": {"message": "Provider returned error", "code": 400,
                    "metadata": {"raw": json.dumps(OWN), "provider_name": "x"}}},
         f"Provider returned error: {RULE} (own_code)"),
        # new-api and LiteLLM: a string in a string.
        ({"error": {"message": f"{json.dumps(OWN)} (request id: 2026)", "type": "upstream_error"}},
         f"{RULE} (request id: 2026) (own_code)"),
        ({"error": {"message": f"OpenAIException - {json.dumps(json.dumps(OWN))}"}},
         f"OpenAIException: {RULE} (own_code)"),
        ({"error": {"message": json.dumps({"error": json.dumps({"message": json.dumps(OWN)})})}},
         f"{RULE} (own_code)"),
        # FastAPI, without the text that was refused.
        ({"detail": [{"loc": ["body", "messages", 2], "msg": RULE, "input": "my secret"}]},
         f"body.messages.2: {RULE}"),
        ({"detail": RULE}, RULE),
        # Azure, its `innererror`.
        ({"error": {"message": "Filtered", "innererror": {"message": RULE}}}, f"Filtered: {RULE}"),
        # Google's compatible endpoint.
        ([{"error": {"code": 400, "message": RULE, "status": "INVALID_ARGUMENT"}}], RULE),
        ({"error": "Bad Request", "message": [RULE], "statusCode": 400}, f"{RULE}: Bad Request"),
        ({"error": {**INVALID, "param": "tools[3].function.parameters"}},
         "Invalid value. (tools[3].function.parameters)"),
        ({"error": {"message": "Invalid 'tools[3].type'.", "param": "tools[3].type"}},
         "Invalid 'tools[3].type'."),
        ({"error": {**INVALID, "param": "messages[1].content"}},
         "Invalid value. (messages[1].content)"),
        ({"error": {**INVALID, "param": None}}, "Invalid value."),
        ({"error": {"message": 'Invalid tool schema: {"type": "object"} is not valid'}},
         'Invalid tool schema: {"type": "object"} is not valid'),
        ({"error": {"message": "推理内容必须传回", "param": "消息"}}, "推理内容必须传回 (消息)"),
    ],
)  # fmt: skip
async def test_a_refusal_is_read_whole(adapter: Adapter, body: Any, said: str) -> None:
    """Escaped as JSON writers do: the words of a table would not be found in that."""
    assert (await refused(adapter, json.dumps(body).encode())).detail == said


@pytest.mark.parametrize(
    ("body", "code"),
    [
        ({"code": "invalid-argument", "error": RULE}, "invalid-argument"),
        ({"errors": [{"message": RULE, "code": 5006}]}, "5006"),
        ([{"error": {"code": "own", "message": RULE}}], "own"),
    ],
)
async def test_a_code_is_found_beside_or_within_the_words(
    adapter: Adapter, body: Any, code: str
) -> None:
    assert (await refused(adapter, json.dumps(body).encode())).code == code


@pytest.mark.parametrize("prefix", ["data: ", "", ": comment\n\n"])
async def test_a_refusal_in_a_stream_is_read_whole(adapter: Adapter, prefix: str) -> None:
    error = {"message": "Param Incorrect", "code": "400", "param": RULE}
    sent = f"{prefix}{json.dumps({'error': error})}\n\n".encode()
    failed = await refused(adapter, sent, streamed=True)
    assert failed.detail == f"Param Incorrect ({RULE})"


async def test_a_long_refusal_keeps_what_it_says_last(adapter: Adapter) -> None:
    """The inmost error of a gateway's comes last."""
    body = {"error": {"message": "long " * 9_999, "metadata": {"raw": json.dumps(OWN)}}}
    failed = await refused(adapter, json.dumps(body).encode())
    assert len(failed.detail) == 1_000
    assert failed.detail.startswith("long ")
    assert failed.detail.endswith(f"{RULE} (own_code)")


async def test_a_refusal_of_2_mb_is_cut_and_shows_its_beginning(adapter: Adapter) -> None:
    body = {"error": {"message": RULE + "x" * 2_000_000}}
    failed = await refused(adapter, json.dumps(body).encode())
    assert RULE in failed.detail
    assert len(failed.detail) == 1_000


async def test_a_refusal_that_quotes_the_key_does_not_show_it(adapter: Adapter) -> None:
    quoted = json.dumps({"error": {"message": f"Incorrect API key: {KEY}", "param": KEY}})
    body = {"error": {"message": "x" * 650 + KEY, "metadata": {"raw": quoted}, "param": KEY}}
    failed = await refused(adapter, json.dumps(body).encode())
    assert KEY[:12] not in str(failed)
    assert KEY[-12:] not in str(failed)


async def test_a_refusal_of_nested_lists_is_read_in_bounds(adapter: Adapter) -> None:
    body = {"error": {"message": RULE, "errors": [[{"message": f"n{n}"}] for n in range(20_000)]}}
    assert (await refused(adapter, json.dumps(body)[:250_000].encode())).detail.count(RULE) == 1
