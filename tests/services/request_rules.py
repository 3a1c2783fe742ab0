"""Rules on sizes, definitions, fields, references and reasoning, which many services share."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from functools import partial
from typing import Any

from tests.services.raw import JSON
from tests.services.rules import (
    RULES,
    TOOLS,
    Bot,
    ServiceRule,
    each_tool,
    five_turns,
)
from tool_search.core.messages import TextPart
from tool_search.core.settings import Dialect

ALL_RULES: dict[str, ServiceRule] = dict(RULES)
"""Every rule, by its name."""

_EVERYWHERE: tuple[Dialect, ...] = ("openai_chat", "anthropic", "openai_responses")
_NATIVE: Mapping[Dialect, str] = {"anthropic": "claude", "openai_responses": "openai_responses"}
_REPORT = "One line of a long report, about nothing at all. " * 100
_TOKENS, _BYTES, _WINDOW = 4_000, 16_000, 200_000
_ODD = "tune_piano"
_DIGIT = "3d_print"
_SEARCH_FIELDS = ("defer_loading", "tool_reference", "additional_tools", "tool_search_output")


def _messages(body: JSON) -> Any:
    return body["messages"] if "messages" in body else body["input"]


def _has_many_tokens(_: Dialect, body: JSON) -> Mapping[str, object]:
    sent = len(json.dumps(_messages(body))) // 4
    return {"sent": sent, "limit": _TOKENS} if sent > _TOKENS else {}


def _has_many_bytes(_: Dialect, body: JSON) -> bool:
    return len(json.dumps(_messages(body))) > _BYTES


def _asks_for_a_long_reply(most: int, _: Dialect, body: JSON) -> Mapping[str, object]:
    figures = {"most": most, "input": _WINDOW - 2 * most}
    return figures if body.get("max_tokens", 0) > most else {}


def replies_of(most: int) -> ServiceRule:
    """Return the rule that no reply may be longer."""
    return ServiceRule(
        is_broken=partial(_asks_for_a_long_reply, most), dialects=("anthropic",), talk=five_turns
    )


def _says_what_is_filtered(_: Dialect, body: JSON) -> bool:
    return "forbidden" in json.dumps(body)


async def _forbidden_then_text(bot: Bot) -> None:
    await bot.ask(TOOLS[0], TextPart("Something forbidden."))
    await bot.ask(TOOLS[1])
    await bot.ask(TOOLS[2])


def _definitions(body: JSON) -> Iterator[tuple[str, JSON]]:
    """Yield each name and schema of a request's list, and then of what was loaded."""
    loaded = (item.get("tools", ()) for item in _messages(body))
    for tool in [*body.get("tools", ()), *(tool for tools in loaded for tool in tools)]:
        for each in tool["tools"] if tool.get("type") == "namespace" else [tool]:
            named = each.get("function", each)
            yield str(named.get("name")), named.get("input_schema", named.get("parameters"))


def _has_the_odd_definition(_: Dialect, body: JSON) -> Mapping[str, object]:
    for index, (name, schema) in enumerate(_definitions(body)):
        if name == _ODD:
            return {"index": index, "name": name, "schema": schema, "path": "properties.odd"}
    return {}


def _has_a_tool_search(_: Dialect, body: JSON) -> bool:
    kinds = {tool.get("type", "function") for tool in body.get("tools", ())}
    fields = any(f'"{name}"' in json.dumps(body) for name in _SEARCH_FIELDS)
    return fields or bool(kinds & {"tool_search", "namespace"})


def _has_cache_marks(_: Dialect, body: JSON) -> bool:
    return '"cache_control"' in json.dumps(body)


def _has_many_tools(most: int, _: Dialect, body: JSON) -> Mapping[str, object]:
    count = len(body.get("tools", ()))
    return {"most": most, "count": count} if count > most else {}


def at_most_tools(most: int) -> ServiceRule:
    """Return the rule that no list has more tools, and a bot with a few more."""
    return ServiceRule(
        is_broken=partial(_has_many_tools, most),
        dialects=_EVERYWHERE,
        talk=five_turns,
        tools=(*TOOLS, *(f"other_{n}" for n in range(most + 6))),
        config={"always_loaded_tools": ["other_*"]},
    )


def _has_a_name_with_a_digit_first(_: Dialect, body: JSON) -> bool:
    return any(name[0].isdigit() for name, _ in _definitions(body))


def _refers_to_a_tool(_: Dialect, body: JSON) -> Mapping[str, object]:
    wrong = f'"tool_name": "{TOOLS[2]}"' in json.dumps(body)
    return {"name": TOOLS[2]} if wrong else {}


def _calls_what_it_does_not_define(_: Dialect, body: JSON) -> Mapping[str, object]:
    known = {name for name, _ in _definitions(body)}
    called = (str(item.get("name")) for item in body["input"] if "arguments" in item)
    wrong = next((name for name in called if name not in {*known, "None"}), None)
    return {"name": wrong} if wrong else {}


def _thinks(step: str, body: JSON) -> dict[str, Any]:
    """Return what a model of a body's dialect thinks, signed with the step."""
    if "input" in body:
        return {"type": "reasoning", "id": f"rs_{step}", "summary": [], "encrypted_content": step}
    if "max_tokens" in body:
        return {"type": "thinking", "thinking": f"On {step}.", "signature": step}
    return {"reasoning_content": f"On {step}."}


def _has_thoughts_of_the_first_turn(_: Dialect, body: JSON) -> bool:
    """Hold that keys are changed after the first turn: what was signed before is refused."""
    turns = sum(message.get("role") == "user" for message in _messages(body))
    signed = re.search(r'"(?:signature|encrypted_content)": "1_', json.dumps(body))
    return signed is not None and "answer 1_" in json.dumps(body) and turns > 1


def _has_calls_without_thoughts(_: Dialect, body: JSON) -> bool:
    for message in body["messages"]:
        blocks = message["content"] if isinstance(message["content"], list) else []
        kinds = {block.get("type") for block in blocks}
        thought = "thinking" in kinds or message.get("reasoning_content") is not None
        if (message.get("tool_calls") or "tool_use" in kinds) and not thought:
            return True
    return False


def _has_thoughts(_: Dialect, body: JSON) -> bool:
    return any(message.get("reasoning_content") is not None for message in body["messages"])


def _makes_a_broken_call(_: Dialect, body: JSON) -> bool:
    return bool(body["messages"][-1]["role"] == "user")


def _has_unsigned_calls(_: Dialect, body: JSON) -> bool:
    users = [n for n, message in enumerate(body["messages"]) if message["role"] == "user"]
    for message in body["messages"][users[-1] :]:
        for call in message.get("tool_calls", ())[:1]:
            if not ((call.get("extra_content") or {}).get("google") or {}).get("thought_signature"):
                return True
    return False


def _has_long_ids(_: Dialect, body: JSON) -> bool:
    for message in body["messages"]:
        ids = [call["id"] for call in message.get("tool_calls") or ()]
        for each in (*ids, *filter(None, [message.get("tool_call_id")])):
            if not re.fullmatch("[a-zA-Z0-9]{9}", each):
                return True
    return False


def _has_a_type_beside_any_of(_: Dialect, body: JSON) -> bool:
    return any('"type": "object", "anyOf"' in json.dumps(s) for _, s in _definitions(body))


def _has_stream_options(_: Dialect, body: JSON) -> bool:
    return "stream_options" in body


def _names_a_kept_reply(_: Dialect, body: JSON) -> bool:
    return bool(body.get("previous_response_id"))


def _has_a_phase(_: Dialect, body: JSON) -> bool:
    return any("phase" in item for item in body["input"])


_WITH_A_DIGIT = (*TOOLS[:2], _DIGIT, *TOOLS[2:])

ALL_RULES |= {
    "a context of few tokens": ServiceRule(
        is_broken=_has_many_tokens, dialects=_EVERYWHERE, talk=five_turns, refusals=6,
        result=_REPORT,
    ),
    "a request of few bytes": ServiceRule(
        is_broken=_has_many_bytes, dialects=_EVERYWHERE, talk=five_turns, refusals=6,
        result=_REPORT,
    ),
    "nothing that a filter knows": ServiceRule(
        is_broken=_says_what_is_filtered, dialects=_EVERYWHERE, talk=_forbidden_then_text,
        lost=TOOLS[:1],
    ),
    "no definition but plain ones": ServiceRule(
        is_broken=_has_the_odd_definition, dialects=_EVERYWHERE, talk=five_turns, lost=(_ODD,),
        properties={_ODD: {"odd": {"description": "Odd."}}},
    ),
    "no tool search": ServiceRule(
        is_broken=_has_a_tool_search, dialects=("anthropic", "openai_responses"),
        talk=five_turns, strategies=_NATIVE,
    ),
    "no cache marks": ServiceRule(
        is_broken=_has_cache_marks, dialects=("anthropic",), talk=five_turns
    ),
    "names begin with a letter": ServiceRule(
        is_broken=_has_a_name_with_a_digit_first, dialects=_EVERYWHERE,
        talk=partial(each_tool, _WITH_A_DIGIT), tools=_WITH_A_DIGIT,
    ),
    "each reference names a tool": ServiceRule(
        is_broken=_refers_to_a_tool, dialects=("anthropic",), talk=five_turns,
        strategies=_NATIVE,
    ),
    "each call is of a tool that is defined": ServiceRule(
        is_broken=_calls_what_it_does_not_define, dialects=("openai_responses",),
        talk=five_turns, strategies=_NATIVE, refusals=0,
    ),
    "no reasoning of earlier replies": ServiceRule(
        is_broken=_has_thoughts_of_the_first_turn, dialects=("anthropic", "openai_responses"),
        talk=five_turns, reasoning=_thinks,
    ),
    "reasoning comes back": ServiceRule(
        is_broken=_has_calls_without_thoughts, dialects=("openai_chat", "anthropic"),
        talk=five_turns,
    ),
    "no reasoning comes back": ServiceRule(
        is_broken=_has_thoughts, talk=five_turns, reasoning=_thinks
    ),
    "the model's call can be read": ServiceRule(
        is_broken=_makes_a_broken_call, talk=five_turns, once=True, refusals=len(TOOLS)
    ),
    "each call has a signature": ServiceRule(is_broken=_has_unsigned_calls, talk=five_turns),
    "ids of nine characters": ServiceRule(is_broken=_has_long_ids, talk=five_turns),
    "no type beside anyOf": ServiceRule(
        is_broken=_has_a_type_beside_any_of, talk=five_turns,
        properties={
            _ODD: {"odd": {"type": "object", "anyOf": [{"required": ["a"]}, {"required": ["b"]}]}}
        },
    ),
    "no stream_options": ServiceRule(is_broken=_has_stream_options, talk=five_turns),
    "no reply is kept": ServiceRule(
        is_broken=_names_a_kept_reply, dialects=("openai_responses",), talk=five_turns,
        facts={"keeps_replies": True},
    ),
    "no phase": ServiceRule(
        is_broken=_has_a_phase, dialects=("openai_responses",), talk=five_turns
    ),
}  # fmt: skip
