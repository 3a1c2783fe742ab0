"""Refusals of the content of messages: pictures, and what filters do not let pass."""

from __future__ import annotations

import re

from tool_search.providers.refusals import Answer

__all__ = ["CONTENTS"]

CONTENTS: tuple[Answer, ...] = (
    Answer(
        r"(?:too much media|too many images and documents): .{0,80}> (?P<most>\d+)",
        "too_many_pictures",
        "claude-code 23392, 24541; an older one: `too many images and documents: 104 + 1 > 100`",
        service="Anthropic",
        words="Too much media: 0 document pages + 104 images > 100",
        rule="at most 100 pictures",
        date="2026-01",
    ),
    Answer(
        r"exceed max allowed size for many-image requests",
        "too_many_pictures",
        "claude-code 34120, 52220, 61284",
        service="Anthropic",
        words="messages.0.content.0.image.source.base64.data: At least one of the image "
        "dimensions exceed max allowed size for many-image requests: 2000 pixels",
        rule="no large picture among more than 20",
        date="2026-03",
    ),
    *(
        Answer(
            pattern,
            "pictures_unknown",
            source,
            service=service,
            words=words,
            rule="no pictures",
            date="2026",
            status=500 if service == "llama.cpp" else 400,
        )
        for service, words, pattern, source in (
            (
                "Volcano Ark",
                "Model do not support image input. Request id: 0217",
                r"\bdo not support image",
                "models.dev 5560",
            ),
            (
                "llama.cpp",
                (
                    "image input is not supported - hint: if this is unexpected, you may need to "
                    "provide the mmproj"
                ),
                r"image input is not supported",
                "llama.cpp without mmproj: public code",
            ),
            (
                "Alibaba",
                "input content must be a string.",
                r"input content must be a string",
                "Alibaba Cloud, error codes",
            ),
            (
                "SambaNova",
                "Invalid 'content' type. Expected one of: ['str'], got list.",
                r"invalid 'content' type\. expected one of: \['str'\]",
                "dyad 1353",
            ),
            (
                "Cloudflare Workers AI",
                (
                    "AiError: Bad input: Error: Type mismatch of '/messages/1/content', 'string' "
                    "not in 'array'"
                ),
                r"/content', 'string' not in 'array'",
                "claude-code-router 965",
            ),
            (
                "a host of GLM-5.1",
                "message[3].content[2] has invalid field(s): text",
                r"message\[\d+\]\.content\[\d+\] has invalid field",
                "CodexPlusPlus 329",
            ),
        )
    ),
    *(
        Answer(
            re.escape(words),
            "picture_refused",
            "Alibaba Cloud, error codes",
            service="Alibaba",
            words=f"<400> InternalError.Algo.InvalidParameter: {words}",
            rule="no pictures",
            date="2026",
        )
        for words in (
            "The image length and width do not meet the model restrictions",
            "Failed to decode the image during the data inspection",
            "Exceeded limit on max bytes per data-uri item",
            "Multimodal file size is too large",
            "The provided URL does not appear to be valid",
            "Download the media resource timed out",
            "Unable to download the media resource",
        )
    ),
    Answer(
        r"in function_response\.response does not match to a display_name",
        "content_refused",
        "litellm 38223: a result that has `$ref` in it",
        service="Vertex AI",
        models=("gemini-3.7-flash",),
        words="The referenced name `#/$defs/humanScalar` in function_response.response does not "
        "match to a display_name in the function_response.parts.",
        rule="no result says what is forbidden",
        date="2026-08",
    ),
    *(
        Answer(
            re.escape(words),
            "content_refused",
            "PyRIT 1463, strix 1162: code `invalid_prompt`, which malformed requests have too",
            service="OpenAI",
            models=("gpt-5.2",),
            words=f"Invalid prompt: {words}",
            rule="no result says what is forbidden",
            date="2026-03",
        )
        for words in (
            "we've limited access to this content for safety reasons",
            "your prompt was flagged as potentially violating our usage policy",
        )
    ),
)
"""The rows, in the order in which they are tried."""
