"""Rules for every tool of the example toolbox, and checks of known values."""

from __future__ import annotations

import contextlib
import inspect
import json
import re
import typing
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tool_search.demo.toolbox import TOOLBOX

if TYPE_CHECKING:
    from collections.abc import Callable

SYNCHRONOUS = [tool for tool in TOOLBOX if not inspect.iscoroutinefunction(tool)]
JSON_TYPES = (str, int, float, bool, list, dict)


@dataclass(frozen=True, slots=True)
class Case:
    """A tool, its arguments, and a value from an independent source.

    Of an expected dict only the keys that it names are compared.
    """

    tool: Callable[..., Any]
    arguments: dict[str, Any]
    expected: Any

    def __str__(self) -> str:
        values = ",".join(str(value) for value in self.arguments.values())
        return f"{self.tool.__name__}({values[:40]!a})"

    async def check(self) -> None:
        """Call the tool and compare its result."""
        result = await answer(self.tool, self.arguments)
        json.dumps(result, allow_nan=False)
        if isinstance(self.expected, dict):
            result = {key: result[key] for key in self.expected}
        if result != self.expected:
            assert result == pytest.approx(self.expected, rel=1e-9, abs=1e-9)


async def answer(tool: Callable[..., Any], arguments: dict[str, Any]) -> Any:
    """Return the result of a tool, sync or async."""
    result = tool(**arguments)
    return await result if inspect.isawaitable(result) else result


def parameters_of(tool: Callable[..., Any]) -> dict[str, Any]:
    """Return the resolved types of a tool's parameters."""
    hints = typing.get_type_hints(tool)
    return {name: hints[name] for name in inspect.signature(tool).parameters}


def test_toolbox_holds_enough_tools() -> None:
    assert len(TOOLBOX) >= 110
    assert sum(inspect.iscoroutinefunction(tool) for tool in TOOLBOX) >= 6


def test_tool_names_are_unique() -> None:
    names = [tool.__name__ for tool in TOOLBOX]
    assert len(set(names)) == len(names)
    assert all(re.fullmatch(r"[a-z][a-z0-9_]{2,63}", name) for name in names)


def test_description_is_bilingual() -> None:
    for tool in TOOLBOX:
        first = (inspect.getdoc(tool) or "").split("\n\n")[0]
        assert re.search(r"[A-Za-z]{3}.*\. ", first), tool
        assert re.search(r"[\u4e00-\u9fff]{2}", first), tool


def test_every_parameter_is_documented_and_typed() -> None:
    for tool in TOOLBOX:
        described = re.findall(r"^    (\w+): \S", inspect.getdoc(tool) or "", flags=re.MULTILINE)
        assert described == list(parameters_of(tool)), tool


def test_result_type_is_json() -> None:
    for tool in TOOLBOX:
        result = typing.get_type_hints(tool)["return"]
        assert (typing.get_origin(result) or result) in JSON_TYPES, tool


@pytest.mark.parametrize("tool", SYNCHRONOUS, ids=lambda tool: tool.__name__)
@settings(
    max_examples=15,
    deadline=None,
    derandomize=True,
    database=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
@given(data=st.data())
def test_any_arguments_give_json_or_a_value_error(
    tool: Callable[..., Any], data: st.DataObject
) -> None:
    types = parameters_of(tool)
    arguments = data.draw(
        st.fixed_dictionaries({name: st.from_type(hint) for name, hint in types.items()})
    )
    result = None
    # A ValueError is a refusal; anything else fails the test.
    with contextlib.suppress(ValueError):
        result = tool(**arguments)
    json.dumps(result, allow_nan=False)
