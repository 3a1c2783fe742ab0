"""Variables in the values of a server's entry: `${VAR}`, `${VAR:-default}`, `${env:VAR}`.

Source: Claude Code, "Connect to tools via MCP", environment variable expansion (`${VAR}`,
`${VAR:-default}`); VS Code and Roo Code, `${env:VAR}`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from tool_search.errors import ConfigurationError

__all__ = ["expand"]

_VARIABLE = re.compile(r"\$\{([^{}]*)\}")
_NAME = re.compile(r"(?:env:)?([A-Za-z_][A-Za-z0-9_]*)(:-(.*))?", re.DOTALL)


def expand(value: Any, environment: Mapping[str, str], *, place: str) -> Any:
    """Return a JSON value with the variables in its texts replaced; keys stay as they are.

    Args:
        value: Text, or lists and mappings of values.
        environment: The variables.
        place: The place of the value in the configuration, for errors.

    Raises:
        ConfigurationError: A variable is not set, or its form is unknown; values are not
            in the message.

    >>> expand(["${HOME}/x", "${PORT:-80}"], {"HOME": "/me"}, place="args")
    ['/me/x', '80']
    """
    if isinstance(value, str):
        return _VARIABLE.sub(lambda found: _value(found, environment, place), value)
    if isinstance(value, Mapping):
        return {
            key: expand(item, environment, place=f"{place}.{key}") for key, item in value.items()
        }
    if isinstance(value, list | tuple):
        made = (expand(item, environment, place=f"{place}[{n}]") for n, item in enumerate(value))
        return type(value)(made)
    return value


def _value(found: re.Match[str], environment: Mapping[str, str], place: str) -> str:
    asked = _NAME.fullmatch(found[1])
    if asked is None:
        raise ConfigurationError(
            f"{place}: {found[0]!r} is not a variable; write ${{VAR}}, ${{VAR:-default}} or "
            "${env:VAR}"
        )
    name, has_default, default = asked.groups()
    given = environment.get(name)
    # As in a shell, `:-` also stands in for an empty variable.
    if has_default is not None:
        return given or str(default)
    if given is None:
        raise ConfigurationError(
            f"{place}: the environment variable {name} is not set; set it, or write "
            f"${{{name}:-default}}"
        )
    return given
