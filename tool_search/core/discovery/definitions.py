"""Parts of every search tool: the instructions, the texts of matches, and `call_tool`."""

from __future__ import annotations

from dataclasses import replace

from tool_search.core.catalog.tool import Tool
from tool_search.core.results import SearchMatch
from tool_search.core.values.clean_text import clean_line
from tool_search.i18n import Language, text

__all__ = [
    "CALL_TOOL_NAME",
    "call_tool_definition",
    "clean_description",
    "clean_match",
    "instructed",
]

CALL_TOOL_NAME = "call_tool"

_MAX_DESCRIPTION_CHARS = 300
_MAX_SERVER_CHARS = 100


def clean_description(description: str) -> str:
    """Return a third party's text in a form that may enter a prompt.

    One line without control and invisible characters, of at most 300 characters.
    """
    return clean_line(description, _MAX_DESCRIPTION_CHARS)


def clean_match(match: SearchMatch) -> SearchMatch:
    """Return a match as a model reads it: its description and its server clean and short."""
    server = clean_line(match.server, _MAX_SERVER_CHARS) if match.server else None
    return replace(match, description=clean_description(match.description), server=server)


def instructed(prompt: str, search_tool: str, language: Language) -> str:
    """Return a system prompt that has the instructions how to search, once.

    Args:
        prompt: The system prompt of the bot's owner.
        search_tool: The search tool's name.
        language: The language of the instructions.
    """
    instructions = text("system.instructions", language, search_tool=search_tool)
    if instructions in prompt:
        return prompt
    return f"{prompt.rstrip()}\n\n{instructions}" if prompt.strip() else instructions


def call_tool_definition(language: Language, *, name: str = CALL_TOOL_NAME) -> Tool:
    """Return the tool that calls tools for which a provider's list has no room."""
    return Tool(
        name=name,
        kind="builtin",
        description=text("call_tool.description", language),
        parameters={
            "type": "object",
            "properties": {
                "name": {"type": "string", "description": text("call_tool.name", language)},
                "arguments": {
                    "type": "object",
                    "description": text("call_tool.arguments", language),
                },
            },
            "required": ["name", "arguments"],
        },
    )
