"""The conversations of the snapshot."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from snapshot.script import (
    AGAIN,
    BASIC,
    FORECAST,
    Step,
    call,
    calling,
    changed_tools,
    odd_tools,
    say,
    search,
    some_tools,
    toolbox,
    use,
)
from snapshot.stage import KINDS, Case, Play

from tool_search import ImagePart, TextPart
from tool_search.adapters import anthropic, openai_chat, openai_responses
from tool_search.testing import Endpoint, Fault, ModelReply

MAIN = ("claude", "glm", "chat", "chat-bridge", "chat-kimi", "responses", "responses-kept")
LANGUAGES = ("en-US", "zh-CN", "ru-RU")
MODES = ("full", "skills_like", "auto", "tool_search")

_PICTURE = (
    "data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk"
    "YPhfDwAChwGA60e6kgAAAABJRU5ErkJggg=="
)
_CLAUDE_HISTORY: Sequence[Mapping[str, Any]] = (
    {"role": "user", "content": "Weather in Rome?"},
    {"role": "assistant", "content": [
        {"type": "thinking", "thinking": "Rome.", "signature": "c2lnbmF0dXJl"},
        {"type": "text", "text": "I'll search."},
        {"type": "server_tool_use", "id": "srvtoolu_1", "name": "tool_search_tool_bm25",
         "input": {"query": "weather"}},
        {"type": "tool_search_tool_result", "tool_use_id": "srvtoolu_1",
         "content": {"type": "tool_search_tool_search_result", "tool_references": [
             {"type": "tool_reference", "tool_name": "get_forecast"}]}},
        {"type": "tool_use", "id": "toolu_1", "name": "get_forecast", "input": {"city": "Rome"}},
    ]},
    {"role": "user", "content": [
        {"type": "tool_result", "tool_use_id": "toolu_1", "content": "Sunny."}]},
    {"role": "assistant", "content": "It is sunny."},
    {"role": "user", "content": [
        {"type": "document", "title": "Plan", "source": {"type": "text", "data": "Go north."}},
        {"type": "document", "source": {"type": "url", "url": "https://example.com/a.pdf"}},
        {"type": "image", "source": {"type": "url", "url": "https://example.com/a.png"}},
        {"type": "search_result", "title": "Rome", "source": "https://example.com",
         "content": [{"type": "text", "text": "A city."}]},
        {"type": "container_upload", "file_id": "file_1"}]},
    {"role": "assistant", "content": [
        {"type": "server_tool_use", "id": "srvtoolu_2", "name": "web_search",
         "input": {"query": "Rome"}},
        {"type": "web_search_tool_result", "tool_use_id": "srvtoolu_2", "content": []},
        {"type": "tool_use", "id": "toolu_2", "name": "find_tools", "input": {"pattern": "mail"}}]},
    {"role": "user", "content": [
        {"type": "tool_result", "tool_use_id": "toolu_2", "content": [
            {"type": "tool_reference", "tool_name": "send_mail"}]},
        {"type": "text", "text": "Tool loaded."}]},
    {"role": "assistant", "content": [{"type": "text", "text": "I have it."}]},
)  # fmt: skip
_CHAT_HISTORY: Sequence[Mapping[str, Any]] = (
    {"role": "system", "content": "You are another bot."},
    {"role": "user", "content": [{"type": "text", "text": "Write to Ann."}]},
    {"role": "assistant", "content": None, "reasoning_content": "Mail.", "tool_calls": [
        {"id": "call_1", "type": "function", "function": {
            "name": "tool_search", "arguments": '{"query": "mail"}'}}]},
    {"role": "tool", "tool_call_id": "call_1",
     "content": '{"query": "mail", "matches": [{"name": "send_mail"}]}'},
    {"role": "assistant", "content": "", "tool_calls": [
        {"id": "call_2", "type": "function", "function": {
            "name": "send_mail", "arguments": '{"to": "Ann", "text": "Hi"}'}}]},
    {"role": "tool", "tool_call_id": "call_2", "content": "Sent."},
    {"role": "assistant", "content": "Done."},
    {"role": "user", "content": [
        {"type": "image_url", "image_url": {"url": "https://example.com/b.png"}},
        {"type": "input_audio", "input_audio": {"data": "", "format": "wav"}},
        {"type": "file", "file": {"filename": "b.pdf"}}]},
    {"role": "system", "tools": [{"type": "function", "function": {"name": "convert_money"}}]},
    {"role": "assistant", "content": None, "function_call": {
        "name": "get_time", "arguments": "{}"}},
    {"role": "function", "name": "get_time", "content": "Noon."},
    {"role": "assistant", "content": None, "tool_calls": [
        {"id": "call_3", "type": "function", "function": {
            "name": "tool_search", "arguments": '{"q": ["train"]}'}}]},
    {"role": "tool", "tool_call_id": "call_3", "content": '{"tools": ["book_train"]}'},
    {"role": "assistant", "content": [{"type": "refusal", "refusal": "No."}]},
)  # fmt: skip
_RESPONSES_HISTORY: Sequence[Mapping[str, Any]] = (
    {"role": "user", "content": "Weather in Oslo?"},
    {"type": "tool_search_call", "id": "tsc_1", "call_id": None, "execution": "server",
     "status": "completed", "arguments": {"paths": ["get_forecast"]}},
    {"type": "tool_search_output", "id": "tso_1", "call_id": None, "execution": "server",
     "status": "completed", "tools": [{"type": "function", "name": "get_forecast",
                                       "parameters": {}, "defer_loading": True}]},
    {"type": "function_call", "id": "fc_1", "call_id": "call_9", "name": "get_forecast",
     "namespace": "get_forecast", "arguments": '{"city": "Oslo"}'},
    {"type": "function_call_output", "call_id": "call_9", "output": "Snow."},
    {"role": "assistant", "content": "It snows."},
    {"role": "user", "content": [
        {"type": "input_image", "image_url": "https://example.com/c.png"},
        {"type": "input_file", "filename": "c.pdf"}, {"type": "input_audio"}]},
    {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "c2VjcmV0"},
    {"type": "tool_search_call", "call_id": "call_10", "execution": "client",
     "status": "completed", "arguments": {"query": "mail"}},
    {"type": "tool_search_output", "call_id": "call_10", "execution": "client",
     "status": "completed", "tools": [{"type": "namespace", "name": "mail", "tools": [
         {"type": "function", "name": "send_mail", "parameters": {}}]}]},
    {"type": "additional_tools", "tools": [{"type": "function", "name": "convert_money"}]},
    {"type": "custom_tool_call", "call_id": "call_11", "name": "shell", "input": "ls"},
    {"type": "custom_tool_call_output", "call_id": "call_11", "output": "a b"},
    {"type": "message", "role": "assistant", "phase": "final_answer",
     "content": [{"type": "output_text", "text": "There."}]},
)  # fmt: skip
_HISTORIES: Mapping[str, tuple[Any, Sequence[Mapping[str, Any]]]] = {
    "anthropic": (anthropic.history_from_wire, _CLAUDE_HISTORY),
    "openai_chat": (openai_chat.history_from_wire, _CHAT_HISTORY),
    "openai_responses": (openai_responses.history_from_wire, _RESPONSES_HISTORY),
}

_FIRST: tuple[Step, ...] = (search("weather"), FORECAST, say("Sunny.", thinking="Hm."))
_NAMED_IN_PLAIN = {
    "en-US": "Weather forecast in Paris, please",
    "zh-CN": "帮我查一下巴黎的天气预报",
    "ru-RU": "Какая погода в Париже?",
}


async def basic(stage: Play) -> None:
    """Three turns; the last shows a picture."""
    await stage.say("Weather in Paris?", "And write to Ann.")
    await stage.say((TextPart("What is this?"), ImagePart(_PICTURE)))


async def two_turns(stage: Play) -> None:
    """The same question twice."""
    await stage.say("Weather forecast for Paris?", "And the forecast for Paris now?")


async def one_after_another(stage: Play) -> None:
    """A turn with each provider and one more with the first."""
    for kind in (*stage.case.kinds, stage.case.kinds[0]):
        stage.runner.use(kind, conversation="c")
        await stage.say(f"Weather in Paris? I ask {kind}.")


async def with_other_tools(stage: Play) -> None:
    """The tools change between turns, and change back."""
    await stage.say("Weather in Paris?")
    stage.runner.replace_tools(changed_tools())
    await stage.say("And now?")
    stage.runner.replace_tools(some_tools())
    await stage.say("And at last?")


async def restarted(stage: Play) -> None:
    """The process ends after each turn, and another one goes on."""
    for message in ("Weather in Paris?", "And now?", "Really?"):
        await stage.say(message)
        await stage.close()
        await stage.open()
    await stage.say("Good.")


async def imported(stage: Play) -> None:
    """The bot goes on with histories of three dialects, with and without their own blocks."""
    await stage.say("Hello")
    own = stage.profile(stage.case.kinds[0])
    histories = [
        message
        for is_own in (False, True)
        for dialect, (read, history) in _HISTORIES.items()
        for message in read(history, origin=own.origin if is_own and own.dialect == dialect else "")
    ]
    stage.session.adopt_history(histories)
    await stage.say("Weather in Paris?", "And now?")


async def with_roles(stage: Play) -> None:
    """A tool is for administrators only."""
    await stage.say("Delete Bob.", roles=("admin",))
    await stage.say("Delete Ann.")


async def with_role(stage: Play) -> None:
    """An administrator speaks."""
    await stage.say("Write to everybody.", roles=("admin",))


async def for_three_turns(stage: Play) -> None:
    """Three questions."""
    await stage.say("What time is it?", "Tell me more.", "Say it again.")


async def in_every_language(stage: Play) -> None:
    """The user writes three languages, the bot's own first."""
    own = stage.case.settings.get("tool_search", {}).get("language", "zh-CN")
    texts = [_NAMED_IN_PLAIN[own], *_NAMED_IN_PLAIN.values()]
    await stage.say(*texts)


async def for_long(stage: Play) -> None:
    """More turns than requests carry."""
    for number in range(8):
        await stage.say(f"Question {number}: {'weather ' * 200}")


def cases() -> Iterator[Case]:
    """Return every conversation; names differ."""
    for kind in KINDS:
        for streamed in (True, False):
            how = "streamed" if streamed else "whole"
            hosted = kind == "responses-hosted"
            yield Case(name=f"basic-{kind}-{how}", kinds=[kind], act=basic, streamed=streamed,
                       script=None if hosted else BASIC)  # fmt: skip
    yield from _swaps()
    yield from _failures()
    yield from _limits()
    yield from _modes()
    for kind in (*MAIN, "responses-hosted"):
        hosted = kind == "responses-hosted"
        script = (*_FIRST, *AGAIN, *AGAIN)
        yield Case(name=f"catalog-{kind}", kinds=[kind], act=with_other_tools,
                   script=None if hosted else (*_FIRST, *_CHANGED, *AGAIN))  # fmt: skip
        yield Case(name=f"restart-{kind}", kinds=[kind], act=restarted, is_kept=True,
                   script=None if hosted else (*script, say("Bye.")))  # fmt: skip
        yield Case(name=f"imported-{kind}", kinds=[kind], act=imported,
                   script=None if hosted else (say("Hi."), *AGAIN, *AGAIN))  # fmt: skip
        yield Case(name=f"roles-{kind}", kinds=[kind], act=with_roles,
                   script=None if hosted else _DELETED)  # fmt: skip
        yield Case(name=f"odd-{kind}", kinds=[kind], act=two_turns, tools=odd_tools)
        yield Case(name=f"long-{kind}", kinds=[kind], act=for_long,
                   settings={"history": {"keep_turns": 2, "longest_result": 200,
                                         "max_tokens": 2_000}})  # fmt: skip
        for language in (*LANGUAGES, "auto"):
            settings = {} if language == "auto" else {"tool_search": {"language": language}}
            yield Case(name=f"language-{language}-{kind}", kinds=[kind], act=in_every_language,
                       settings=settings)  # fmt: skip


_TIME = calling(call("get_time"))
_CHANGED: tuple[Step, ...] = (
    calling(call("send_mail", {"to": "Ann", "text": "Hi"}), call("get_forecast", {"city": "Rome"})),
    use("get_forecast", city="Rome", day="today"),
    say("Changed."),
)
_DELETED: tuple[Step, ...] = (
    search("delete user"),
    use("delete_user", name="Bob"),
    say("Gone."),
    search("delete user"),
    use("delete_user", name="Ann"),
    say("No."),
)


def _swaps() -> Iterator[Case]:
    """Return swaps at run time between every two of the main kinds, and one through all."""
    for first in MAIN:
        for second in MAIN:
            if first != second:
                yield Case(name=f"swap-{first}-{second}", kinds=[first, second],
                           act=one_after_another, script=(*_FIRST, *AGAIN, *AGAIN))  # fmt: skip
    everywhere = [kind for kind in KINDS if kind != "responses-hosted"]
    yield Case(name="swap-all", kinds=everywhere, act=one_after_another,
               script=(*_FIRST, *AGAIN * len(everywhere)))  # fmt: skip


def _failures() -> Iterator[Case]:
    """Return fallbacks after faults, and endpoints that refuse what is known of their models."""
    faults: Mapping[str, tuple[Fault, Sequence[ModelReply]]] = {
        "overload": (Fault(status=529, skip=1), ()),
        "limit": (Fault(status=429, headers={"retry-after": "3600"}), ()),
        "key": (Fault(status=401, skip=2), ()),
        "midway": (Fault(status=529, skip=2, after_events=4), (say("A half answer."),)),
        "broken": (Fault(broken=True), ()),
        "nonsense": (Fault(body=b"<html>", content_type="text/html", skip=1), ()),
    }
    pairs = (("claude", "chat"), ("chat", "responses"), ("responses", "claude"),
             ("chat-kimi", "glm"), ("responses-kept", "chat-bridge"))  # fmt: skip
    for name, (fault, lost) in faults.items():
        for first, second in pairs:
            script = (*_FIRST[:-1], *lost, _FIRST[-1], *AGAIN)
            yield Case(name=f"fallback-{name}-{first}-{second}", kinds=[first, second],
                       act=two_turns, script=script, faults=[fault], may_refuse=True)  # fmt: skip
    for kind in ("claude", "responses", "chat-kimi", "responses-additional"):
        yield Case(name=f"unknown-search-{kind}", kinds=[kind], act=two_turns, may_refuse=True,
                   script=(*_FIRST, *AGAIN),
                   endpoint=Endpoint(supports_tool_search=False))  # fmt: skip
    refused = frozenset({"get_forecast", "get_time"})
    for kind in MAIN:
        yield Case(name=f"refused-tool-{kind}", kinds=[kind], act=two_turns, may_refuse=True,
                   endpoint=Endpoint(refused_tools=refused))  # fmt: skip
    yield Case(name="blind-glm-claude", kinds=["glm", "claude"], act=basic, may_refuse=True,
               script=BASIC, endpoint=Endpoint(takes_pictures=False))  # fmt: skip


def _limits() -> Iterator[Case]:
    """Return ends of turns that are no answer, limits of lists, and permissions."""
    words = {
        "claude": ("max_tokens", "refusal"),
        "chat": ("length", "content_filter"),
        "responses": ("max_output_tokens", "content_filter"),
    }
    for kind, (length, refusal) in words.items():
        cut = ModelReply(
            text="Once", calls=(call("get_time", '{"zone": "Eur'),), stop_reason=length
        )
        script: tuple[Step, ...] = (cut, _TIME, ModelReply(text="Upon a", stop_reason=length),
                  ModelReply(text="No.", stop_reason=refusal), say("Yes."))  # fmt: skip
        yield Case(name=f"end-{kind}", kinds=[kind], act=for_three_turns, script=script)
        script = (_TIME, _TIME, say("Enough.")) * 3
        yield Case(name=f"steps-{kind}", kinds=[kind], act=for_three_turns, script=script,
                   settings={"max_steps": 2})  # fmt: skip
    for kind in MAIN:
        profile = {"match": {"host": "127.0.0.1"}, "max_tools": 6, "max_output_tokens": 512,
                   "name_rule": "identifier", "set_aside": ["get_time"]}  # fmt: skip
        if kind == "claude":
            profile |= {"max_deferred": 5, "max_tool_bytes": 3_000}
        yield Case(name=f"limits-{kind}", kinds=[kind], act=in_every_language, tools=toolbox,
                   settings={"profiles": {"small": profile}})  # fmt: skip
        rules = {"deny": ["send_mail(to=Bob)"], "ask": ["convert_money"], "hidden": "strict",
                 "policy": {"deny": ["delete_user"]}}  # fmt: skip
        script = (search("mail", "money", "delete user"), use("send_mail", to="Ann", text="Hi"),
                  use("send_mail", to="Bob", text="Hi"), use("convert_money", amount="1"),
                  use("delete_user", name="Ann"), say("Done."))  # fmt: skip
        yield Case(name=f"permissions-{kind}", kinds=[kind], act=with_role, script=script,
                   settings={"permissions": rules})  # fmt: skip


def _modes() -> Iterator[Case]:
    """Return every mode, with few and with many tools."""
    picked: tuple[Step, ...] = (
        calling(call("get_forecast"), text="I shall look."),
        calling(call("get_forecast", {"city": "Paris"})),
        say("Sunny."),
    )
    for kind in MAIN:
        for mode in MODES:
            chosen = {"tool_schema_mode": mode}
            script = picked * 2 if mode == "skills_like" else None
            yield Case(name=f"mode-{mode}-few-{kind}", kinds=[kind], act=two_turns,
                       settings=chosen, script=script)  # fmt: skip
            yield Case(name=f"mode-{mode}-many-{kind}", kinds=[kind], act=two_turns,
                       settings=chosen, tools=toolbox)  # fmt: skip
    for name, settings in _SETTINGS.items():
        for kind in MAIN:
            yield Case(name=f"setting-{name}-{kind}", kinds=[kind], act=two_turns,
                       settings={"tool_search": settings}, tools=toolbox)  # fmt: skip


_SETTINGS: Mapping[str, Mapping[str, Any]] = {
    "core": {"always_loaded_tools": ["convert_*", "days_between"], "max_results": 3},
    "boundary": {"boundary_text": False, "max_description_chars": 100},
    "oh-my-pi": {"search": {"preset": "oh-my-pi"}},
    "tooldiscovery": {"search": {"preset": "tooldiscovery"}},
}
