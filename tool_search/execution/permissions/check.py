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
   destructive.

Where the answer is to ask, and the mode is `never-ask` or nobody can be asked, the
answer is no. Being discovered is no step of this: it grants nothing, and neither does what a
server says of its own tools.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Collection, Iterable, Iterator, Mapping
from functools import partial
from typing import Any, Literal
from weakref import WeakValueDictionary

from tool_search.catalog.catalog import ToolCatalog
from tool_search.catalog.tool import Tool
from tool_search.config.permissions import (
    PermissionMode,
    PermissionRules,
    PermissionSettings,
)
from tool_search.execution.context import ToolContext
from tool_search.execution.functions import ExecutableTool, received_arguments
from tool_search.execution.permissions.argument_values import CallArguments
from tool_search.execution.permissions.grants import Grant, GrantBook, GrantFile
from tool_search.execution.permissions.hints import ToolHints, hints_of
from tool_search.execution.permissions.modes import ConversationModes
from tool_search.execution.permissions.pins import definition_pin
from tool_search.execution.permissions.requests import (
    AskUser,
    PermissionAnswer,
    PermissionRequest,
)
from tool_search.execution.permissions.rule_checks import useless_rules
from tool_search.execution.permissions.rule_names import ToolsByRule, rule_of_tool, server_of
from tool_search.execution.permissions.rules import (
    PermissionDecision,
    Rule,
    RuleSet,
    suggested_rules,
)
from tool_search.execution.tasks import answer_of
from tool_search.i18n import text
from tool_search.values.redaction import log_failure

__all__ = ["AskUser", "PermissionAnswer", "PermissionRequest", "Permissions"]

# A rule may name many tools; whoever grants one for longer pins the definitions of all.
_MAX_PINNED = 1_000
_log = logging.getLogger(__name__)

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

    Attributes:
        settings: The rules.
        grants: What users have granted.
        warnings: Rules that no tool of the catalog can ever match, each said once.
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
        self.warnings: tuple[str, ...] = ()
        self._modes = ConversationModes(self.settings.mode)
        self._is_open = self.settings.rules_nothing
        self._trusted = frozenset(self.settings.trusted_servers)
        self._policy = RuleSet((self.settings.policy,))
        self._common = RuleSet((self.settings.policy, self.settings))
        self._catalog = ToolCatalog()
        # One for each conversation that waits for an answer, and no longer.
        self._questions: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()

    def keep_in(self, store: object) -> None:
        """Keep grants and modes in a bot's store from now on, as far as it keeps such."""
        self.grants.keep_in(store)
        self._modes.keep_in(store)

    async def read(self, conversation: str) -> None:
        """Follow the store: what was granted, and the conversation's mode."""
        await self.grants.read()
        await self._modes.read(conversation)

    def use_mode(self, mode: PermissionMode, *, conversation: str) -> None:
        """Set a conversation's mode, from its next call on and after a restart too."""
        self._modes.use(conversation, mode)

    def mode(self, conversation: str) -> PermissionMode:
        """Return a conversation's mode."""
        return self._modes[conversation]

    async def forget(self, conversation: str) -> None:
        """Drop a conversation's mode and grants."""
        self._modes.forget(conversation)
        await self.grants.forget(conversation)

    async def aclose(self) -> None:
        """Write what the store does not have yet."""
        await self._modes.write()

    @property
    def state(self) -> tuple[int, int]:
        """Changes whenever an answer to `refusal` may have changed."""
        return self._modes.changes, self.grants.changes

    def hints(self, tool: Tool) -> ToolHints:
        """Return what a tool's annotations say, as far as their author is trusted."""
        return hints_of(tool, self._trusted)

    def offered(self, catalog: ToolCatalog) -> ToolCatalog:
        """Return a catalog without what the rules deny everybody, whatever the arguments.

        What they deny to some is marked, so that no count or description speaks of it.
        Rules that none of its tools can ever match are warned of.
        """
        self._catalog = catalog
        if not catalog or self.settings == PermissionSettings():
            return catalog
        tools = ToolsByRule(catalog.active)
        self._warn(useless_rules(self.settings, tools))
        denied = set(self._denied(self._common, tools))
        restricted = set(self._denied(RuleSet(tuple(self.settings.roles.values())), tools))
        if self.settings.otherwise == "deny":
            restricted.update(self._unmentioned(catalog, tools))
        offered = catalog.deactivated(denied) if denied else catalog
        return offered.restricting(restricted) if restricted else offered

    @staticmethod
    def _denied(rules: RuleSet, tools: ToolsByRule) -> Iterator[str]:
        """Yield the names of the tools that rules deny, whatever the arguments."""
        for rule in rules.rules("deny"):
            if rule.pattern is None:
                yield from (tool.name for tool in tools.named(rule.name))

    def _unmentioned(self, catalog: ToolCatalog, tools: ToolsByRule) -> set[str]:
        """Return the names of the tools that no rule for everybody allows or asks about."""
        named = {
            tool.name
            for verdict in ("allow", "ask")
            for rule in self._common.rules(verdict)
            for tool in tools.named(rule.name, allows=verdict == "allow")
        }
        return {tool.name for tool in catalog.active} - named

    def _warn(self, problems: Iterable[str]) -> None:
        for problem in problems:
            if problem not in self.warnings:
                _log.warning("rule_never_matches: %s", problem)
                self.warnings = (*self.warnings, problem)

    def refusal(
        self, tool: Tool, context: ToolContext, item: ExecutableTool | None = None
    ) -> str | None:
        """Return why no call of a tool is possible here, as the model reads it; None: some is.

        What this refuses, a search does not return. Empty text means that the tool is
        none of this user's business: a call of it is answered like that of an unknown name.
        """
        if self.let_everything(item):
            return None
        rules = self._rules(context.roles)
        mode = self.mode(context.conversation)
        say = partial(text, language=context.language, name=tool.name)
        if rules.says("deny", tool):
            return ""
        if mode == "plan" and not self._may_read_only(tool, item):
            return say("call.denied_plan")
        can_ask = self._ask is not None and mode != "never-ask"
        verdict = self._best_verdict(tool, context, item, rules, can_ask=can_ask)
        if verdict == "deny":
            return ""
        return say("call.denied_unasked") if verdict == "ask" and not can_ask else None

    def _best_verdict(
        self,
        tool: Tool,
        context: ToolContext,
        item: ExecutableTool | None,
        rules: RuleSet,
        *,
        can_ask: bool,
    ) -> PermissionDecision:
        """Return what becomes of the call of a tool that fares best."""
        if self._policy.says("ask", tool):
            return "ask"
        granted = self._granted(tool, context)
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
        return self._unnamed(CallArguments(tool, {}), context, item)

    def verdict(
        self,
        tool: Tool,
        arguments: Mapping[str, Any],
        context: ToolContext,
        item: ExecutableTool | None = None,
        wish: Literal["allow", "ask"] | None = None,
    ) -> PermissionDecision:
        """Return what becomes of a call: `ask` means that the user has to be asked.

        Args:
            tool: What is called.
            arguments: With what.
            context: Where, and by whom.
            item: What the tool's author knows of it.
            wish: What a hook wants.
        """
        return self._decide(self._call(tool, arguments, item), context, item, wish)

    @staticmethod
    def _call(
        tool: Tool, arguments: Mapping[str, Any], item: ExecutableTool | None
    ) -> CallArguments:
        if item is None:
            return CallArguments(tool, arguments)
        read = partial(received_arguments, item)
        return CallArguments(tool, arguments, subjects=item.subjects, read=read)

    def _decide(
        self,
        call: CallArguments,
        context: ToolContext,
        item: ExecutableTool | None,
        wish: Literal["allow", "ask"] | None,
    ) -> PermissionDecision:
        if self._is_refused_by_plan(call, context, item):
            return "deny"
        ruled = self._rules(context.roles).decide(call)
        if ruled == "deny":
            return "deny"
        if self._policy.decide(call) == "ask":
            return "ask"
        if self.mode(context.conversation) == "bypass":
            return "allow"
        if wish == "ask":
            return "ask"
        granted = self._granted(call.tool, context)
        if wish == "allow" or (granted and granted.decide(call)):
            return "allow"
        return ruled or self._unnamed(call, context, item)

    def _is_refused_by_plan(
        self, call: CallArguments, context: ToolContext, item: ExecutableTool | None
    ) -> bool:
        in_plan = self.mode(context.conversation) == "plan"
        return in_plan and not self._is_read_only(call, item)

    def _unnamed(
        self, call: CallArguments, context: ToolContext, item: ExecutableTool | None
    ) -> PermissionDecision:
        """Return what becomes of a call that no rule names."""
        otherwise = self.settings.otherwise
        if otherwise == "deny":
            return "deny"
        wanted = item.needs_permission if item else None
        if callable(wanted):
            wanted = wanted(call.given)
        if wanted is None:
            wanted = otherwise == "ask" and not self._is_read_only(call, item)
        if wanted and self.mode(context.conversation) == "accept":
            wanted = self.hints(call.tool).destructive
        return "ask" if wanted else "allow"

    async def refused(
        self,
        tool: Tool,
        arguments: Mapping[str, Any],
        context: ToolContext,
        item: ExecutableTool | None = None,
        wish: Literal["allow", "ask"] | None = None,
    ) -> str | None:
        """Decide a call, asking the user where it takes that; None: it may be made.

        Returns:
            Why it may not, as the model reads it.
        """
        if wish != "ask" and self.let_everything(item):
            return None
        await self.grants.read()
        call = self._call(tool, arguments, item)
        decide = partial(self._decide, call, context, item, wish)
        verdict = decide()
        if verdict == "ask":
            async with self._turn_to_ask(context):
                # While it waited, the user may have granted it with another call.
                verdict = decide()
                if verdict == "ask":
                    why = await self._asked(tool, arguments, context, item)
                    # While the user thought, the mode may have changed: a yes lifts no denial.
                    if why is not None or decide() != "deny":
                        return why
                    verdict = "deny"
        if verdict == "allow":
            return None
        ruled = self._rules(context.roles).decide(call)
        in_plan = ruled != "deny" and self._is_refused_by_plan(call, context, item)
        return _said("denied_plan" if in_plan else "denied", tool, context)

    def _turn_to_ask(self, context: ToolContext) -> asyncio.Lock:
        """Return what makes a conversation's questions wait for each other."""
        return self._questions.setdefault(context.conversation, asyncio.Lock())

    async def ask(
        self, tool: Tool, arguments: Mapping[str, Any], context: ToolContext, question: str
    ) -> bool:
        """Ask the user what a tool wants to know while it runs; no answer is a no."""
        async with self._turn_to_ask(context):
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
        catalog = self._catalog
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
            log_failure(_log, "asking for permission to call %r failed; taken for a no", tool.name)
            return _said("denied_unasked", tool, context)
        if not isinstance(answer, PermissionAnswer):
            answer = PermissionAnswer(allow=answer is True)
        if not answer.allow:
            key: Refusal = "denied_because" if answer.message else "denied_by_user"
            return _said(key, tool, context, message=answer.message)
        if answer.scope != "once" and not question:
            await self._grant(answer, tool, context, catalog)
        return None

    async def _grant(
        self, answer: PermissionAnswer, tool: Tool, context: ToolContext, catalog: ToolCatalog
    ) -> None:
        """Take a yes for longer in, for the definitions that there were when it was asked for."""
        written = answer.rule or rule_of_tool(tool)
        rule = Rule.read(written)
        others = (one for one in catalog.active if rule.may_allow(one))
        pins = dict.fromkeys(map(definition_pin, (tool, *others)))
        # Whoever has no name is not known again elsewhere: it could be anybody.
        lasts = answer.scope == "always" and context.user is not None
        place = None if lasts else context.conversation
        await self.grants.add(
            *(
                Grant(rule=written, user=context.user, conversation=place, fingerprint=pin)
                for pin in list(pins)[:_MAX_PINNED]
            )
        )

    def let_everything(self, item: ExecutableTool | None) -> bool:
        """Whether nothing anywhere could stand against a call: the way of most bots.

        Args:
            item: What the tool's author knows of it.
        """
        wanted = item is not None and item.needs_permission is not None
        return self._is_open and not self._modes and not wanted

    def _granted(self, tool: Tool, context: ToolContext) -> RuleSet | None:
        """Return what the user has granted of a tool here, if it is anything."""
        held = self.grants.holding(user=context.user, conversation=context.conversation)
        if not held:
            return None
        pin, is_own = definition_pin(tool), server_of(tool) is None
        rules = (
            grant.rule
            for grant in held
            if grant.fingerprint == pin or (is_own and grant.fingerprint is None)
        )
        return RuleSet((PermissionRules.model_construct(allow=tuple(dict.fromkeys(rules))),))

    def _rules(self, roles: Collection[str]) -> RuleSet:
        named = self.settings.roles
        if not named or not roles:
            return self._common
        levels = (named[role] for role in sorted(roles) if role in named)
        return RuleSet((self.settings.policy, self.settings, *levels))

    def _is_read_only(self, call: CallArguments, item: ExecutableTool | None) -> bool:
        if item is not None and item.is_read_only is not None:
            return item.is_read_only(call.given)
        return self.hints(call.tool).read_only

    def _may_read_only(self, tool: Tool, item: ExecutableTool | None) -> bool:
        """Return True if some call of a tool may change nothing."""
        asks = item is not None and item.is_read_only is not None
        return asks or self.hints(tool).read_only


def _said(key: Refusal, tool: Tool, context: ToolContext, **values: object) -> str:
    return text(f"call.{key}", context.language, name=tool.name, **values)
