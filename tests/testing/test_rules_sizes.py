"""The stand-in server rejects long requests and unreadable pictures, as services do."""

from __future__ import annotations

import base64
from typing import Any

import pytest

from tool_search.testing import (
    Endpoint,
    check_anthropic,
    check_openai_chat,
    check_openai_responses,
)

PNG = b"\x89PNG\r\n\x1a\n\x00\x00"
JPEG = b"\xff\xd8\xff\xe0"


def anthropic(data: bytes, kind: str = "image/png") -> dict[str, Any]:
    """Return a request with a picture."""
    encoded = base64.b64encode(data).decode()
    source = {"type": "base64", "media_type": kind, "data": encoded}
    block = {"type": "image", "source": source}
    return {
        "model": "claude-sonnet-4-6",
        "max_tokens": 1,
        "messages": [{"role": "user", "content": [block]}],
    }


def chat(data: bytes) -> dict[str, Any]:
    """Return the violation in the Chat dialect."""
    url = f"data:image/png;base64,{base64.b64encode(data).decode()}"
    part = {"type": "image_url", "image_url": {"url": url}}
    return {"model": "gpt-5.4", "messages": [{"role": "user", "content": [part]}]}


def responses(data: bytes) -> dict[str, Any]:
    """Return the violation in the Responses dialect."""
    url = f"data:image/png;base64,{base64.b64encode(data).decode()}"
    part = {"type": "input_image", "image_url": url, "detail": "auto"}
    return {"model": "gpt-5.5", "input": [{"role": "user", "content": [part]}]}


def test_pictures_that_services_read_are_accepted() -> None:
    assert check_anthropic(anthropic(PNG)) is None
    assert check_anthropic(anthropic(JPEG, "image/jpeg")) is None
    assert check_openai_chat(chat(PNG)) is None
    assert check_openai_responses(responses(PNG)) is None


@pytest.mark.parametrize(
    ("violation", "said"),
    [
        (check_anthropic(anthropic(b"no picture")), "Could not process image"),
        (
            check_anthropic(anthropic(JPEG)),
            (
                "messages.0.content.0.image.source.base64: Image does not match the provided "
                "media type image/png"
            ),
        ),
        (
            check_anthropic(anthropic(PNG + bytes(5 * 1024 * 1024))),
            (
                "messages.0.content.0.image.source.base64: image exceeds 5 MB maximum: 5242890 "
                "bytes > 5242880 bytes"
            ),
        ),
        (check_openai_chat(chat(b"")), "You uploaded an unsupported image."),
        (check_openai_responses(responses(b"x")), "The image data you provided does not represent"),
    ],
)  # fmt: skip
def test_pictures_that_nobody_can_read_are_refused(violation: Any, said: str) -> None:
    assert violation.status == 400
    assert violation.message.startswith(said)


def test_model_that_sees_nothing_refuses_every_picture() -> None:
    blind = Endpoint(takes_pictures=False)
    said = check_openai_chat(chat(PNG), endpoint=blind)
    assert said is not None
    assert "unknown variant `image_url`, expected `text`" in said.message
    said = check_anthropic(anthropic(PNG), endpoint=blind)
    assert said is not None
    assert said.message == "claude-sonnet-4-6 is not a multimodal model"
