"""Tool search in the loop of a bot that nobody has heard of, on two SDKs, with a swap between them.

The bot owns its history and runs its tools. It keeps one more thing: the names that were found.
Runs without a key: the stand-in server plays both providers.

Run: python examples/10_own_host.py
"""

import json
from typing import Any

from anthropic import Anthropic
from openai import OpenAI

from tool_search import SearchResult, ToolSearch, ToolView, append_instructions, profile_for
from tool_search.adapters import anthropic, openai_chat
from tool_search.sources.toolbox import TOOLBOX
from tool_search.testing import KeywordModel, StandInServer

FUNCTIONS = {function.__name__: function for function in TOOLBOX}
GPT, CLAUDE = profile_for("openai-chat", "gpt-5.4"), profile_for("anthropic", "claude-sonnet-4-6")
# The bot's own history: {"user"}, {"bot"} or {"id", "name", "arguments", "result"}.
Said = dict[str, Any]


def ask_gpt(client: OpenAI, view: ToolView, history: list[Said]) -> tuple[str, list[Said]]:
    """Return GPT's answer and calls."""
    system = append_instructions("You are a helpful bot.", view)
    messages: list[Any] = [{"role": "system", "content": system}]
    for said in history:
        if "name" in said:
            function = {"name": said["name"], "arguments": said["arguments"]}
            call = {"id": said["id"], "type": "function", "function": function}
            messages.append({"role": "assistant", "tool_calls": [call]})
            messages.append({"role": "tool", "tool_call_id": said["id"], "content": said["result"]})
        else:
            role = "user" if "user" in said else "assistant"
            messages.append({"role": role, "content": said.get("user") or said["bot"]})
    tools = json.loads(openai_chat.encode_tools(view.tools(GPT), GPT))
    reply = client.chat.completions.create(model=GPT.model, messages=messages, tools=tools)
    message = reply.choices[0].message
    calls: Any = message.to_dict().get("tool_calls") or []
    return message.content or "", [{"id": c["id"], **c["function"]} for c in calls]


def ask_claude(client: Anthropic, view: ToolView, history: list[Said]) -> tuple[str, list[Said]]:
    """Return Claude's answer and calls; what was found is references to deferred tools."""
    messages: list[Any] = []
    for said in history:
        if "name" in said:
            use = {"type": "tool_use", "id": said["id"], "name": said["name"]}
            use["input"] = json.loads(said["arguments"])
            found = SearchResult.from_json(said["result"])
            content = anthropic.encode_result(found, CLAUDE) if found else said["result"]
            result = {"type": "tool_result", "tool_use_id": said["id"], "content": content}
            messages.append({"role": "assistant", "content": [use]})
            messages.append({"role": "user", "content": [result]})
        else:
            role = "user" if "user" in said else "assistant"
            messages.append({"role": role, "content": said.get("user") or said["bot"]})
    reply = client.messages.create(
        model=CLAUDE.model,
        max_tokens=1_000,
        system=append_instructions("You are a helpful bot.", view),
        messages=messages,
        tools=json.loads(anthropic.encode_tools(view.tools(CLAUDE), CLAUDE)),
    )
    calls = [b for b in reply.content if b.type == "tool_use"]
    text = "".join(b.text for b in reply.content if b.type == "text")
    return text, [{"id": c.id, "name": c.name, "arguments": json.dumps(c.input)} for c in calls]


def run_call(view: ToolView, call: Said) -> str:
    """Return the result of a call, as the history keeps it."""
    if call["name"] == view.search_tool_name:
        return view.search(call["arguments"]).to_json()
    try:
        result = str(FUNCTIONS[call["name"]](**json.loads(call["arguments"])))
    except (KeyError, TypeError, ValueError) as exc:
        view.returned(call["name"], failed=True)
        return f"error: {exc!r}"
    view.returned(call["name"])  # the search that led to the tool has taught something
    return result


def main() -> None:
    """Three turns: GPT, Claude, GPT again; nothing is searched twice."""
    search = ToolSearch(TOOLBOX)
    history: list[Said] = []
    found: tuple[str, ...] = ()
    with StandInServer(model=KeywordModel()) as server:
        gpt = OpenAI(base_url=server.openai_base_url, api_key="unused")
        claude = Anthropic(base_url=server.anthropic_base_url, api_key="unused")
        for name in ("gpt", "claude", "gpt"):
            history.append({"user": 'Count the words of "to be or not to be".'})
            view = search.view(found, first_message=history[0]["user"])
            while True:
                if name == "gpt":
                    text, calls = ask_gpt(gpt, view, history)
                else:
                    text, calls = ask_claude(claude, view, history)
                if not calls:
                    break
                history += [{**call, "result": run_call(view, call)} for call in calls]
                print(f"{name}: {', '.join(call['name'] for call in calls)}")
            history.append({"bot": text})
            found = view.found  # all that the bot keeps
            print(f"{name}: {text[:60]} | lessons: {search.learn_now(view)}")
        print("violations:", server.violations)


if __name__ == "__main__":
    main()
