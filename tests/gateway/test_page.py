"""The page of the gateway has every setting, and MCProxy's own example is served."""

from __future__ import annotations

from pathlib import Path

import pytest

from tool_search.serving.gateway.config import (
    GatewayConfig,
    GatewayToolSearch,
    TransportSettings,
)

PAGE = (Path(__file__).parents[2] / "docs" / "gateway.md").read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("model", "place"), [(GatewayConfig, ""), (GatewayToolSearch, "tool_search.")]
)
def test_every_setting_is_on_the_page(model: type[GatewayConfig], place: str) -> None:
    keys = [f"{place}{field.alias or name}" for name, field in model.model_fields.items()]
    assert [key for key in keys if f"`{key}`" not in PAGE and f"`{key}." not in PAGE] == []


def test_every_key_of_the_transport_is_on_the_page() -> None:
    (line,) = [line for line in PAGE.splitlines() if line.startswith("| `transport` |")]
    assert [name for name in TransportSettings.model_fields if name not in line] == []
