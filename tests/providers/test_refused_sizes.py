"""Requests that are too long and contents that are refused, in the words of the services."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.conversations import CLAUDE, OPENAI
from tool_search import ProviderError, profile_for
from tool_search.core.conversation.record import OmissionReason
from tool_search.providers.errors import ErrorAction, classify_error

PROFILES = {
    "anthropic": CLAUDE,
    "openai_chat": OPENAI,
    "openai_responses": profile_for("openai_responses", "gpt-5.5"),
}
COUNTED = {
    "prompt is too long: 400000 tokens > 200000 maximum": 0.375,
    "input length and `max_tokens` exceed context limit: 199900 + 32000 > 200000, decrease input "
    "length or `max_tokens` and try again": 0.63,
    "This model's maximum context length is 128000 tokens. However, your messages resulted in "
    "256000 tokens. Please reduce the length of the messages.": 0.375,
    "This model's maximum context length is 65536 tokens. However, you requested 131072 tokens "
    "(120000 in the messages, 11072 in the completion). Please reduce the length of the messages "
    "or completion.": 0.375,
    "This model's maximum context length is 128000 tokens. However, you requested 130000 tokens "
    "(120000 in the messages, 10000 in the functions).": 0.738,
    "This endpoint's maximum context length is 131072 tokens. However, you requested about 262144 "
    "tokens (250000 of text input, 12144 in the output).": 0.375,
    "Invalid request: Your request exceeded model token limit: 262144 (requested: 524288)": 0.375,
    "The input token count (1048575) exceeds the maximum number of tokens allowed (524288).": 0.375,
    "This model's maximum prompt length is 131072 but the request contains 524288 tokens.": 0.188,
    "Prompt contains 65536 tokens and 0 draft tokens, too large for model with 32768 maximum "
    "context length": 0.375,
    "prompt token count of 256000 exceeds the limit of 128000": 0.375,
    "The input (400 tokens) is longer than the model's context length (200 tokens).": 0.375,
    "Request too large for model `llama-3.1-8b-instant` in organization `org_1` service tier "
    "`on_demand` on tokens per minute (TPM): Limit 6000, Requested 12000, please reduce your "
    "message size and try again.": 0.375,
}
UNCOUNTED = [
    "Range of input length should be [1, 983616]",
    "<400> InternalError.Algo.InvalidParameter: Range of input length should be [1, 202745]",
    "Your input exceeds the context window of this model. Please adjust your input and try again.",
    "the request exceeds the available context size. try increasing the context size",
    "The number of tokens to keep from the initial prompt is greater than the context length",
    "prompt too long; exceeded max context length by 17 tokens",
    "Input is too long for requested model.",
    "invalid params, context window exceeds limit (2013)",
    "Please reduce the length of the messages or completion.",
    "Prompt 超长",
    "Prompt exceeds max length",
    "`inputs` tokens + `max_new_tokens` must be <= 4096. Given: 5000 `inputs` tokens",
    "This model's maximum context length is 4096 tokens.",
]
TOO_MANY_BYTES = [
    "Request exceeds the maximum size",
    "Request Entity Too Large",
    "Payload Too Large",
    (
        "Invalid 'messages[1].content': string too long. Expected a string with maximum length "
        "10485760, but got a string with length 10485761 instead."
    ),
    "A maximum of 100 PDF pages may be provided.",
]
CONTENTS: dict[str, OmissionReason] = {
    "Could not process image": "picture_refused",
    "messages.46.content.9.image.source.base64: image exceeds 5 MB maximum: 6096280 bytes > "
    "5242880 bytes": "picture_refused",
    "messages.84.content.1.image.source.base64.data: At least one of the image dimensions exceed "
    "max allowed size for many-image requests: 2000 pixels": "too_many_pictures",
    "Image does not match the provided media type image/png": "picture_refused",
    "The image data you provided does not represent a valid image. Please check your input and try "
    "again with one of the supported image formats: ['image/jpeg']": "picture_refused",
    "You uploaded an unsupported image. Please make sure your image has of one the following "
    "formats: ['png', 'jpeg', 'gif', 'webp'].": "picture_refused",
    "Error while downloading https://example.com/a.png.": "picture_refused",
    "<400> InternalError.Algo.InvalidParameter: Failed to download multimodal content":
        "picture_refused",
    "invalid image input": "picture_refused",
    "Provided image is not valid.": "picture_refused",
    "Unable to process input image. Please retry or report": "picture_refused",
    "Invalid value at 'contents[0].parts[2].inline_data.data' (TYPE_BYTES), Base64 decoding "
    "failed": "picture_refused",
    "Failed to deserialize the JSON body into the target type: messages[1]: unknown variant "
    "`image_url`, expected `text` at line 1 column 679289": "pictures_unknown",
    "Failed to deserialize the JSON body into the target type: messages[2]: invalid type: "
    "sequence, expected a string at line 1 column 2901": "pictures_unknown",
    "DeepSeek-V4-Flash-0731 is not a multimodal model": "pictures_unknown",
    "No endpoints found that support image input": "pictures_unknown",
    "Invalid content type. image_url is only supported by certain models.": "pictures_unknown",
    "This model does not support image inputs": "pictures_unknown",
    "The provided messages input is invalid. The error info is [Unexpected item type in content.]":
        "pictures_unknown",
    "Input data may contain inappropriate content.": "message_refused",
    "The response was filtered due to the prompt triggering Azure OpenAI's content management "
    "policy.": "message_refused",
    "Content Exists Risk": "message_refused",
}  # fmt: skip
DIALECTS = pytest.mark.parametrize("dialect", PROFILES)


def verdict(
    detail: str, dialect: str, *, status: int = 400, code: str | None = None
) -> ErrorAction:
    """Return the action on a refusal."""
    error = ProviderError(detail, provider="p", status=status, code=code)
    return classify_error(error, PROFILES[dialect])


@DIALECTS
@pytest.mark.parametrize("detail", COUNTED)
def test_request_that_is_too_long_is_shortened_by_the_numbers_that_the_service_names(
    detail: str, dialect: str
) -> None:
    """With a margin: tokens are estimated, and the conversation goes on."""
    found = verdict(detail, dialect)
    assert (found.remedy, round(found.share, 3)) == ("shorten", COUNTED[detail])
    assert found.measure == "tokens"


@DIALECTS
@pytest.mark.parametrize("detail", UNCOUNTED)
def test_request_that_is_too_long_by_an_unknown_measure_is_made_shorter(
    detail: str, dialect: str
) -> None:
    assert verdict(detail, dialect) == ErrorAction(remedy="shorten", share=0.7)


@DIALECTS
@pytest.mark.parametrize("detail", TOO_MANY_BYTES)
def test_request_of_too_many_bytes_is_halved_in_bytes(detail: str, dialect: str) -> None:
    wanted = ErrorAction(remedy="shorten", share=0.5, measure="bytes")
    assert verdict(detail, dialect) == wanted


@DIALECTS
def test_status_413_says_enough(dialect: str) -> None:
    wanted = ErrorAction(remedy="shorten", share=0.5, measure="bytes")
    assert verdict("<html>413</html>", dialect, status=413) == wanted


@DIALECTS
def test_code_says_enough(dialect: str) -> None:
    found = verdict("Something else.", dialect, code="context_length_exceeded")
    assert found.remedy == "shorten"


@DIALECTS
def test_more_than_a_whole_minute_may_have_is_shortened_and_not_waited_for(dialect: str) -> None:
    detail = (
        "Request too large for gpt-5.4 in organization org-1 on tokens per min (TPM): Limit 30000, "
        "Requested 60000. The input or output tokens must be reduced in order to run successfully."
    )
    assert verdict(detail, dialect, status=429) == ErrorAction(remedy="shorten", share=0.375)
    assert verdict("Rate limit reached", dialect, status=429).remedy == "next_provider"


@DIALECTS
@pytest.mark.parametrize("detail", CONTENTS)
def test_refused_content_is_left_out(detail: str, dialect: str) -> None:
    found = verdict(detail, dialect)
    assert (found.remedy, found.left_out) == ("leave_out", CONTENTS[detail])
    blind = replace(PROFILES[dialect], takes_pictures=False)
    assert found.profile == (blind if found.left_out == "pictures_unknown" else None)
