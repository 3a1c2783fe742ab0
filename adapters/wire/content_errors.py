"""Refusals of what a message holds, in the words of any service: gateways pass them on.

A pattern is searched in "code message".
"""

from __future__ import annotations

from tool_search.providers.refusals import Answer

__all__ = ["CONTENTS"]

CONTENTS = (
    Answer(
        r"unknown variant .{0,3}(?:image|input_image)\w*.{0,3}, expected"
        r"|invalid type: sequence, expected a string|unexpected item type in content",
        "pictures_unknown",
        "DeepSeek: ``messages[1]: unknown variant `image_url`, expected `text` `` (rikkahub 1433, "
        "hermes-webui 2297); an older one: `invalid type: sequence, expected a string` (chatbox "
        "1740); DashScope: `Unexpected item type in content.` (oh-my-pi 1861)",
    ),
    Answer(
        r"is not a multimodal model|no endpoints found that support image"
        r"|image_url is only supported by certain models|only text content type is supported"
        r"|images?(?: inputs?| content)? (?:is|are) not supported|input tag 'image'"
        r"|does(?: not|n't) support (?:images?|vision|multi-?modal)",
        "pictures_unknown",
        "vLLM: `... is not a multimodal model`; OpenRouter: `No endpoints found that support image "
        "input`; OpenAI: `Invalid content type. image_url is only supported by certain models.`",
    ),
    Answer(
        r"could not process (?:image|pdf)|image does not match the provided media"
        r"|image exceeds \d+ ?mb maximum|image dimensions? exceeds? max allowed size"
        r"|\.image\.source\.",
        "picture_refused",
        "Anthropic: `Could not process image` (claude-code 46127, 29080); `messages.46.content.9."
        "image.source.base64: image exceeds 5 MB maximum: 6096280 bytes > 5242880 bytes`; `Image "
        "does not match the provided media type`",
    ),
    Answer(
        r"\b(?:invalid_image\w*|invalid_base64_image|image_too_(?:large|small)|image_parse_error"
        r"|image_file_\w+|unsupported_image_media_type|empty_image_file|failed_to_download_image"
        r"|image_content_policy_violation)\b",
        "picture_refused",
        "OpenAI, `ResponseError.code`",
    ),
    Answer(
        r"does not represent a valid image|uploaded an unsupported image|\binvalid image\b"
        r"|expected a base64-encoded data url with an image"
        r"|(?:failed to|error while|unable to) download\w*.{0,40}(?:image|multimodal|file|http)",
        "picture_refused",
        "OpenAI: `The image data you provided does not represent a valid image.`, `You uploaded an "
        "unsupported image.`; DashScope: `Failed to download multimodal content` (agentscope-java "
        "2700); Ollama: `invalid image input` (ollama 7247)",
    ),
    Answer(
        r"provided image is not valid|unable to process input image|multimodal data is corrupted"
        r"|inline_data\.data.{0,80}(?:base64|invalid)|base64 decoding failed",
        "picture_refused",
        "Gemini: `Provided image is not valid.` (gemini-cli 27244), `Unable to process input "
        "image`; Xiaomi: `Multimodal data is corrupted or cannot be processed`",
    ),
    Answer(
        r"data_?inspection_?failed|may contain inappropriate content|content_policy_violation"
        r"|content management policy|content exists risk|sensitive_words_detected"
        r"|不安全或敏感内容",
        "content_refused",
        "DashScope: `data_inspection_failed` (owl 432), without end in openclaw 32622; Azure "
        "OpenAI: `content management policy`; DeepSeek: `Content Exists Risk`; Zhipu: code 1301",
    ),
)
"""The rows, in the order in which they are tried."""
