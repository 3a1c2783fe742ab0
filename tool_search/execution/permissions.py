"""Who may call what: rules, modes, grants, and the question to the user.

A call is decided in this order:

1. A rule that denies it, of whichever level, denies it in every mode.
2. `plan` denies what may change something.
3. A rule of the operator's policy that asks, asks: no grant, hook or mode lifts it.
4. `bypass` allows.
5. A grant, or a hook that allows, allows; a hook that asks, asks.
6. The other rules: ask over allow.
7. What no rule names: a tool that wants permission is asked about, unless the call
   changes nothing; then `otherwise` decides, and `accept` asks only before what is
   marked destructive.

Where the answer is to ask, and the mode is `never-ask` or nobody can be asked, the
answer is no. Being discovered is no step of this: it grants nothing.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Collection, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal

from tool_search.catalog import Tool, ToolCatalog
from tool_search.execution.context import ToolContext
from tool_search.execution.functions import ExecutableTool
from tool_search.execution.grants import Grant, GrantBook, GrantFile, Scope
from tool_search.execution.permission_rules import (
    RuleSet,
    Verdict,
    mcp_name,
    suggested_rules,
)
from tool_search.execution.tasks import answer_of
from tool_search.i18n import Language, text
from tool_search.permission_settings import (
    PermissionMode,
    PermissionRules,
    PermissionSettings,
)

__all__ = ["AskUser", "PermissionAnswer", "PermissionRequest", "Permissions"]

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class PermissionRequest:
    """A question to the user.

    Attributes:
        tool: What would be called.
        arguments: With what.
        conversation: Where.
        language: What the user reads.
        user: Who is asked.
        question: What a tool asks by itself while it runs; empty: whether it may run.
        suggestions: Rules that an answer for longer may grant, the narrowest first.
    """

    tool: Tool
    arguments: Mapping[str, Any]
    conversation: str
    language: Language
    user: str | None = None
    question: str = ""
    suggestions: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class PermissionAnswer:
    """The user's answer.

    Attributes:
        allow: Whether the call is made.
        scope: How long a yes holds.
        rule: What a yes for longer grants; default: the tool, whatever the arguments.
        message: What the model is told with a no.
    """

    allow: bool
    scope: Scope = "once"
    rule: str | None = None
    message: str = ""


AskUser = Callable[[PermissionRequest], Awaitable[PermissionAnswer | bool]]
Refusal = Literal[
    "denied", "denied_plan", "denied_unasked", "denied_by_user", "denied_because",
    "denied_unanswered",
]  # fmt: skip


class Permissions:
    """The permissions of a bot, for all its conversations.

    Args:
        settings: The rules.
        ask: Asks the user; without it, ask means no.
        grants: What users have granted; default: kept in the bot's store.
    """

    def __init__(
        self,
        settings: PermissionSettings | None = None,
        *,
        ask: AskUser | None = None,
        grants: GrantBook | None = None,
    ) -> None:
        self.settings = settings or PermissionSettings()
        self._ask = ask
        file = GrantFile(self.settings.grants) if self.settings.grants else None
        self.grants = grants or GrantBook(file=file)
        self._modes: dict[str, PermissionMode] = {}
        self._changes = 0
        self._is_open = self.settings.rules_nothing
        self._policy = RuleSet((self.settings.policy,))
        self._common = RuleSet((self.settings.policy, self.settings))
        self._questions: dict[str, asyncio.Lock] = {}

    def use_mode(self, mode: PermissionMode, *, conversation: str) -> None:
        """Sets a conversation's mode, from its next call on."""
        self._changes += 1
        self._modes[conversation] = mode

    def mode(self, conversation: str) -> PermissionMode:
        """A conversation's mode."""
        return self._modes.get(conversation, self.settings.mode)

    async def forget(self, conversation: str) -> None:
        """Drops a conversation's mode and grants."""
        self._changes += 1
        self._modes.pop(conversation, None)
        self._questions.pop(conversation, None)
        await self.grants.forget(conversation)

    @property
    def state(self) -> tuple[int, int]:
        """Changes whenever an answer to `refusal` may have changed."""
        return self._changes, self.grants.changes

    def offered(self, catalog: ToolCatalog) -> ToolCatalog:
        """A catalog without what the rules deny everybody, whatever the arguments.

        What they deny to some is marked, so that no count or description speaks of it.
        """
        if self._is_open:
            return catalog
        denied = [tool.name for tool in catalog.active if self._common.says("deny", tool)]
        some = RuleSet(tuple(self.settings.roles.values()))
        restricted = [tool.name for tool in catalog.active if some.says("deny", tool)]
        offered = catalog.deactivated(denied) if denied else catalog
        return offered.restricting(restricted) if restricted else offered

    def refusal(
        self, tool: Tool, context: ToolContext, item: ExecutableTool | None = None
    ) -> str | None:
        """Why no call of a tool is possible here, as the model reads it; None: some is.

        What this refuses, a search does not return.
        """
        if self.let_everything(item):
            return None
        rules = self._rules(context.roles)
        mode = self.mode(context.conversation)
        say = partial(text, language=context.language, name=tool.name)
        if rules.says("deny", tool):
            return say("call.denied")
        if mode == "plan" and not _may_read_only(tool, item):
            return say("call.denied_plan")
        can_ask = self._ask is not None and mode != "never-ask"
        verdict = self._best_verdict(tool, context, item, rules, can_ask=can_ask)
        if verdict == "deny":
            return say("call.denied")
        return say("call.denied_unasked") if verdict == "ask" and not can_ask else None

    def _best_verdict(
        self,
        tool: Tool,
        context: ToolContext,
        item: ExecutableTool | None,
        rules: RuleSet,
        *,
        can_ask: bool,
    ) -> Verdict:
        """What becomes of the call of a tool that fares best."""
        if self._policy.says("ask", tool):
            return "ask"
        granted = self._granted(context)
        bypassed = self.mode(context.conversation) == "bypass"
        if bypassed or (granted and granted.says("allow", tool, of_some=True)):
            return "allow"
        if rules.says("ask", tool):
            return "ask"
        if rules.says("allow", tool, of_some=True):
            return "allow"
        if can_ask and rules.says("ask", tool, of_some=True):
            return "ask"
        if item is not None and (callable(item.needs_permission) or item.is_read_only):
            return "allow"  # it depends on arguments that nobody has yet
        return self._unnamed(tool, {}, context, item)

    def verdict(
        self,
        tool: Tool,
        arguments: Mapping[str, Any],
        context: ToolContext,
        item: ExecutableTool | None = None,
        wish: Literal["allow", "ask"] | None = None,
    ) -> Verdict:
        """What becomes of a call: `ask` means that the user has to be asked.

        Args:
            tool: What is called.
            arguments: With what.
            context: Where, and by whom.
            item: What the tool's author knows of it.
            wish: What a hook wants.
        """
        mode = self.mode(context.conversation)
        if mode == "plan" and not _is_read_only(tool, arguments, item):
            return "deny"
        return self._verdict(tool, arguments, context, item, wish)

    def _verdict(
        self,
        tool: Tool,
        arguments: Mapping[str, Any],
        context: ToolContext,
        item: ExecutableTool | None,
        wish: Literal["allow", "ask"] | None,
    ) -> Verdict:
        subjects = item.subjects if item else None
        ruled = self._rules(context.roles).verdict(tool, arguments, subjects)
        if ruled == "deny":
            return "deny"
        if self._policy.verdict(tool, arguments, subjects) == "ask":
            return "ask"
        if self.mode(context.conversation) == "bypass":
            return "allow"
        if wish == "ask":
            return "ask"
        granted = self._granted(context)
        if wish == "allow" or (granted and granted.verdict(tool, arguments, subjects)):
            return "allow"
        return ruled or self._unnamed(tool, arguments, context, item)

    def _unnamed(
        self,
        tool: Tool,
        arguments: Mapping[str, Any],
        context: ToolContext,
        item: ExecutableTool | None,
    ) -> Verdict:
        """What becomes of a call that no rule names."""
        otherwise = self.settings.otherwise
        if otherwise == "deny":
            return "deny"
        wanted = item.needs_permission if item else None
        if callable(wanted):
            wanted = wanted(arguments)
        if wanted is None:
            wanted = otherwise == "ask" and not _is_read_only(tool, arguments, item)
        if wanted and self.mode(context.conversation) == "accept":
            wanted = tool.annotations.get("destructive") is True
        return "ask" if wanted else "allow"

    async def refused(
        self,
        tool: Tool,
        arguments: Mapping[str, Any],
        context: ToolContext,
        item: ExecutableTool | None = None,
        wish: Literal["allow", "ask"] | None = None,
    ) -> str | None:
        """Decides a call, asking the user where it takes that; None: it may be made.

        Returns:
            Why it may not, as the model reads it.
        """
        if wish != "ask" and self.let_everything(item):
            return None
        await self.grants.read()
        verdict = self.verdict(tool, arguments, context, item, wish)
        if verdict == "ask":
            async with self._questions.setdefault(context.conversation, asyncio.Lock()):
                # While it waited, it may have been granted with another call, or revoked.
                await self.grants.read()
                verdict = self.verdict(tool, arguments, context, item, wish)
                if verdict == "ask":
                    return await self._asked(tool, arguments, context, item)
        if verdict == "allow":
            return None
        in_plan = self.mode(context.conversation) == "plan"
        ruled = self._rules(context.roles).verdict(tool, arguments, item.subjects if item else None)
        key: Refusal = "denied_plan" if in_plan and ruled != "deny" else "denied"
        return _said(key, tool, context)

    async def ask(
        self, tool: Tool, arguments: Mapping[str, Any], context: ToolContext, question: str
    ) -> bool:
        """Asks the user what a tool wants to know while it runs; no answer is a no."""
        async with self._questions.setdefault(context.conversation, asyncio.Lock()):
            return await self._asked(tool, arguments, context, question=question) is None

    async def _asked(
        self,
        tool: Tool,
        arguments: Mapping[str, Any],
        context: ToolContext,
        item: ExecutableTool | None = None,
        *,
        question: str = "",
    ) -> str | None:
        if self._ask is None or self.mode(context.conversation) == "never-ask":
            return _said("denied_unasked", tool, context)
        request = PermissionRequest(
            tool=tool,
            arguments=arguments,
            conversation=context.conversation,
            language=context.language,
            user=context.user,
            question=question,
            suggestions=suggested_rules(tool, arguments, item.subjects if item else None),
        )
        try:
            async with asyncio.timeout(self.settings.ask_timeout_s):
                answer = await answer_of(self._ask, request)
        except TimeoutError:
            return _said("denied_unanswered", tool, context)
        except Exception:  # noqa: BLE001  # the bot's own: no answer is a no
            _log.exception("asking for permission to call %r failed; taken for a no", tool.name)
            return _said("denied_unasked", tool, context)
        if not isinstance(answer, PermissionAnswer):
            answer = PermissionAnswer(allow=answer is True)
        if not answer.allow:
            key: Refusal = "denied_because" if answer.message else "denied_by_user"
            return _said(key, tool, context, message=answer.message)
        if answer.scope != "once" and not question:
            await self._grant(answer, tool, context)
        return None

    async def _grant(self, answer: PermissionAnswer, tool: Tool, context: ToolContext) -> None:
        lasting = answer.scope == "always"
        await self.grants.add(
            Grant(
                rule=answer.rule or mcp_name(tool) or tool.name,
                user=context.user,
                conversation=None if lasting else context.conversation,
            )
        )

    def let_everything(self, item: ExecutableTool | None) -> bool:
        """Whether nothing anywhere could stand against a call: the way of most bots.

        Args:
            item: What the tool's author knows of it.
        """
        wanted = item is not None and item.needs_permission is not None
        return self._is_open and not self._modes and not wanted

    def _granted(self, context: ToolContext) -> RuleSet | None:
        """What the user has granted here, where it is anything."""
        rules = self.grants.rules(user=context.user, conversation=context.conversation)
        return RuleSet((PermissionRules(allow=rules),)) if rules else None

    def _rules(self, roles: Collection[str]) -> RuleSet:
        named = self.settings.roles
        if not named or not roles:
            return self._common
        levels = (named[role] for role in sorted(roles) if role in named)
        return RuleSet((self.settings.policy, self.settings, *levels))


def _said(key: Refusal, tool: Tool, context: ToolContext, **values: object) -> str:
    return text(f"call.{key}", context.language, name=tool.name, **values)


def _is_read_only(tool: Tool, arguments: Mapping[str, Any], item: ExecutableTool | None) -> bool:
    if item is not None and item.is_read_only is not None:
        return item.is_read_only(arguments)
    return tool.annotations.get("read_only") is True


def _may_read_only(tool: Tool, item: ExecutableTool | None) -> bool:
    """Whether some call of a tool may change nothing."""
    asks = item is not None and item.is_read_only is not None
    return asks or tool.annotations.get("read_only") is True
