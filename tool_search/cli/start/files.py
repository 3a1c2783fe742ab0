"""The files of `tool-search init`."""

from __future__ import annotations

from collections.abc import Mapping

import yaml

from tool_search.cli.terminal.language import spoken

__all__ = ["MODELS", "TOOLS", "bot_yaml"]

MODELS: Mapping[str, str] = {
    "anthropic": "claude-sonnet-4-6",
    "openai-responses": "gpt-5.4",
    "openai-chat": "gpt-5.4",
}
"""A current model of each kind of provider."""

TOOLS = '''"""The tools of the bot: every public function of this module is one."""

from datetime import date


def convert_temperature(celsius: float) -> str:
    """Convert a temperature from Celsius to Fahrenheit.

    Args:
        celsius: The temperature in degrees Celsius.
    """
    return f"{celsius:g} °C are {celsius * 9 / 5 + 32:g} °F"


def days_until_new_year() -> str:
    """Count the days until the next New Year."""
    today = date.today()
    days = (date(today.year + 1, 1, 1) - today).days
    return f"{days} days until {today.year + 1}"
'''

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
system_prompt: You are a helpful assistant.
"""
_PARTS = ("about", "mode", "providers", "key", "address", "tools", "prompt")


def bot_yaml(kind: str, model: str) -> str:
    """Return a bot's file, with comments in the person's language."""
    variable = "ANTHROPIC_API_KEY" if kind == "anthropic" else "OPENAI_API_KEY"
    comments = {part: spoken(f"init.{part}") for part in _PARTS}
    # A model may have any name: as YAML writes it, not as it came.
    written = yaml.safe_dump(model, allow_unicode=True).removesuffix("...\n").strip()
    return _BOT.format(kind=kind, model=written, variable=variable, **comments)
