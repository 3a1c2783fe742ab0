"""A deterministic model that matches words, for demonstrations and random tests.

It uses tool search as a language model does, by counting shared words: it calls
a visible tool that fits, otherwise searches, calls the revealed tool, and answers
with its result.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from tool_search.i18n import language_of
from tool_search.i18n import text as sentence
from tool_search.testing.models.arguments import fill_arguments
from tool_search.testing.models.likeness import likeness, words
from tool_search.testing.models.scripted import ModelCall, ModelReply

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tool_search.testing.view import ModelView, ViewResult, VisibleTool

__all__ = ["KeywordModel"]

_ENOUGH = 2
_QUOTED_RESULT = 2_000


class KeywordModel:
    """A model that chooses tools by words shared with the user's last message.

    Words are compared by their first five letters, which joins the forms of
    one word in English and Russian, and Chinese by pairs of characters.
    The same view always gets the same reply.

    Attributes:
        search_tool: The name of the tool that finds tools.
        call_tool: The name of the tool that calls others by name.
        max_calls: Calls a user turn may take; after them it answers.
    """

    def __init__(
        self,
        *,
        search_tool: str = "tool_search",
        call_tool: str = "call_tool",
        max_calls: int = 4,
    ) -> None:
        self.search_tool = search_tool
        self.call_tool = call_tool
        self.max_calls = max_calls

    def reply(self, view: ModelView) -> ModelReply:
        """Return a tool call, or an answer in text."""
        forced = view.tool_choice.removeprefix("tool:") if ":" in view.tool_choice else None
        tool = view.tool(forced) if forced else None
        if tool is not None:
            return self._call(tool, view)
        searches = self._searches(view)
        answers = [result for result in view.results if result.name not in searches]
        if view.may_call and not answers and len(view.calls) < self.max_calls:
            chosen = self._next_call(view)
            if chosen is not None:
                return chosen
        return ModelReply(text=_answer(view, answers))

    def _searches(self, view: ModelView) -> set[str]:
        """Return the names that searching goes by: the given one, and the dialect's own."""
        return {self.search_tool, *(tool.name for tool in view.tools if tool.is_search)}

    def _next_call(self, view: ModelView) -> ModelReply | None:
        searches = self._searches(view)
        results = [result for result in view.results if result.name in searches]
        found = [match for result in results for match in _found_names(result)]
        if found:
            return self._call_of_found(found, view)
        if results:
            return None
        meta = {*searches, self.call_tool}
        ordinary = [tool for tool in view.tools if tool.name not in meta]
        best = _best(ordinary, view.last_user_text, enough=_ENOUGH)
        if best is not None:
            return self._call(best, view)
        search = next((tool for tool in view.tools if tool.name in searches), None)
        if search is not None:
            query = {"query": view.last_user_text or "tools"}
            return ModelReply(calls=(ModelCall(name=search.name, arguments=query),))
        return self._call(ordinary[0], view) if view.tool_choice == "any" else None

    def _call_of_found(self, found: list[Mapping[str, Any]], view: ModelView) -> ModelReply | None:
        names = [str(match["name"]) for match in found]
        shown = [tool for tool in map(view.tool, names) if tool is not None]
        if shown:
            best = _best(shown, view.last_user_text, enough=1)
            return self._call(best or shown[0], view)
        through = view.tool(self.call_tool)
        if through is None:
            return None
        schema = found[0].get("parameters") or found[0].get("input_schema") or {}
        arguments = {
            "name": names[0],
            "arguments": fill_arguments(schema, view.last_user_text),
        }
        return ModelReply(calls=(ModelCall(name=through.name, arguments=arguments),))

    def _call(self, tool: VisibleTool, view: ModelView) -> ModelReply:
        arguments = fill_arguments(tool.parameters, view.last_user_text)
        return ModelReply(calls=(ModelCall(name=tool.name, arguments=arguments),))


def _answer(view: ModelView, answers: list[ViewResult]) -> str:
    text = view.last_user_text
    if answers:
        return "\n".join(f"{result.name}: {result.text[:_QUOTED_RESULT]}" for result in answers)
    key = "stand_in.nothing" if view.results else "stand_in.said"
    return sentence(key, language_of(text), text=text)


def _found_names(result: ViewResult) -> Iterator[Mapping[str, Any]]:
    """Return the revealed names: references, or matches of a JSON result, best first."""
    yield from ({"name": name} for name in result.references)
    try:
        value = json.loads(result.text)
    except ValueError:
        return
    if not isinstance(value, Mapping):
        return
    for match in [*(value.get("matches") or ()), *(value.get("loaded") or ())]:
        if isinstance(match, str):
            yield {"name": match}
        elif isinstance(match, Mapping) and "name" in match:
            yield match


def _best(tools: list[VisibleTool], text: str, *, enough: int) -> VisibleTool | None:
    """Return the tool that shares most with a text; ties by order, None below `enough`."""
    asked = words(text)
    best, best_score = None, enough - 1
    for tool in tools:
        score = likeness(tool, asked)
        if score > best_score:
            best, best_score = tool, score
    return best
