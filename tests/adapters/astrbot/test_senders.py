"""The user that AstrBot names, to whom learned searches belong."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from tool_search.adapters.astrbot.preferences import user_of

GROUP = "qq:GroupMessage:7"


@pytest.mark.parametrize(
    ("event", "user"),
    [
        (SimpleNamespace(unified_msg_origin=GROUP, get_sender_id=lambda: "42"), "qq:42"),
        (SimpleNamespace(unified_msg_origin="qq:F:42", get_sender_id=lambda: 42), "qq:42"),
        (SimpleNamespace(unified_msg_origin=GROUP, get_sender_id=lambda: ""), GROUP),
        (SimpleNamespace(unified_msg_origin=GROUP, get_sender_id=lambda: None), GROUP),
        (SimpleNamespace(unified_msg_origin=GROUP), GROUP),
    ],
)
def test_a_user_is_the_sender_on_a_platform_or_else_the_place(
    event: SimpleNamespace, user: str
) -> None:
    assert user_of(event) == user
