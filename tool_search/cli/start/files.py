"""The files of `tool-search init`."""

from __future__ import annotations

from collections.abc import Mapping

import yaml

from tool_search.cli.terminal.language import spoken

__all__ = ["MODELS", "bot_tools", "bot_yaml"]

MODELS: Mapping[str, str] = {
    "anthropic": "claude-sonnet-4-6",
    "openai-responses": "gpt-5.4",
    "openai-chat": "gpt-5.4",
}
"""A current model of each kind of provider."""

_TOOLS = '''"""{module}"""

from datetime import date


def convert_temperature(celsius: float) -> str:
    """{temperature}

    Args:
        celsius: {celsius}
    """
    return f"{temperature_result}"


def days_until_new_year() -> str:
    """{days}"""
    today = date.today()
    days = (date(today.year + 1, 1, 1) - today).days
    return f"{days_result}"
'''
# What the functions return: a sentence of the person's language around these expressions.
_RESULTS = {
    "temperature_result": {
        "given": "{celsius:g}",
        "result": "{celsius * 9 / 5 + 32:g}",
    },
    "days_result": {"days": "{days}", "year": "{today.year + 1}"},
}

_BOT = """\
# {about}
# tool-search chat --config bot.yaml

# {mode}
tool_schema_mode: tool_search

# {providers}
providers:
  - id: main
    type: {kind}
    model: {model}
    # {key}
    api_key_env: {variable}
    # {address}
    # base_url: http://localhost:11434/v1

# {tools}
tools: [bot_tools]

# {prompt}
system_prompt: {system_prompt}
"""
_PARTS = ("about", "mode", "providers", "key", "address", "tools", "prompt", "system_prompt")


def bot_yaml(kind: str, model: str) -> str:
    """Return a bot's file, with comments in the person's language."""
    variable = "ANTHROPIC_API_KEY" if kind == "anthropic" else "OPENAI_API_KEY"
    comments = {part: spoken(f"init.{part}") for part in _PARTS}
    # A model may have any name: as YAML writes it, not as it came.
    written = yaml.safe_dump(model, allow_unicode=True).removesuffix("...\n").strip()
    return _BOT.format(kind=kind, model=written, variable=variable, **comments)


def bot_tools() -> str:
    """Return a module of two tools, whose texts are in the person's language."""
    texts = {part: spoken(f"init.{part}") for part in ("module", "temperature", "celsius", "days")}
    results = {part: spoken(f"init.{part}", **values) for part, values in _RESULTS.items()}
    return _TOOLS.format(**texts, **results)
