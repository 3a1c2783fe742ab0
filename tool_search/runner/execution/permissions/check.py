"""Permission checks of calls: rules, modes, grants, and questions to the user.

The first step that applies decides a call:

1. A rule of any level that denies the call, in every mode.
2. The mode `plan` denies calls that may change something.
3. A rule of the operator's policy that asks; no grant, hook or mode overrides it.
4. The mode `bypass` allows the call.
5. A hook that asks, then a grant or a hook that allows.
6. The other rules: ask before allow.
7. Without a rule: `otherwise: deny` denies. Else the tool's own `needs_permission` decides; if
   the tool does not say, `otherwise: ask` asks unless the call changes nothing. In the mode
   `accept`, only destructive calls ask.

If the decision is to ask, and the mode is `never-ask` or nobody can be asked, the call is
denied. A discovery grants nothing, and neither do a server's statements about its tools.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from functools import partial
from typing import Any, Literal
from weakref import WeakValueDictionary

from tool_search.config.permissions import (
    PermissionMode,
    PermissionRules,
    PermissionSettings,
)
from tool_search.core.catalog.catalog import ToolCatalog
from tool_search.core.catalog.tool import Tool
from tool_search.core.values.redaction import log_failure
from tool_search.errors import ConfigurationError
from tool_search.i18n import text
from tool_search.runner.execution.context import ToolContext
from tool_search.runner.execution.functions import ExecutableTool, received_arguments
from tool_search.runner.execution.permissions.argument_values import CallArguments
from tool_search.runner.execution.permissions.grants import Grant, GrantBook, GrantFile
from tool_search.runner.execution.permissions.hints import ToolHints, hints_of
from tool_search.runner.execution.permissions.modes import ConversationModes
from tool_search.runner.execution.permissions.pins import definition_pin
from tool_search.runner.execution.permissions.requests import (
    AskUser,
    PermissionAnswer,
    PermissionRequest,
)
from tool_search.runner.execution.permissions.rule_checks import unmatched_rules
from tool_search.runner.execution.permissions.rule_names import ToolsByRule, rule_of_tool, server_of
from tool_search.runner.execution.permissions.rules import (
    PermissionDecision,
    Rule,
    RuleSet,
    suggested_rules,
)
from tool_search.runner.execution.tasks import call_maybe_async

__all__ = ["AskUser", "PermissionAnswer", "PermissionRequest", "Permissions"]

# A granted rule may name many tools; the grant is pinned to the definitions of all of them.
_MAX_PINNED = 1_000
_log = logging.getLogger(__name__)

_DenialKey = Literal[
    "denied", "denied_plan", "denied_unasked", "denied_by_user", "denied_because",
    "denied_unanswered",
]  # fmt: skip


class Permissions:
    """The permissions of a bot, for all its conversations.

    Args:
        settings: The rules.
        ask: Asks the user; None: a call that needs a question is denied.
        grants: The users' grants; default: those in the bot's store.

    Attributes:
        settings: The rules.
        grants: The users' grants.
        warnings: A problem for each rule that no tool of the catalog can match.
    """

    def __init__(
        self,
        settings: PermissionSettings | None = None,
        *,
        ask: AskUser | None = None,
        grants: GrantBook | None = None,
    ) -> None:
        self._rule_changes = 0
        self._use_rules(settings or PermissionSettings())
        self._ask = ask
        file = GrantFile(self.settings.grants) if self.settings.grants else None
        self.grants = grants or GrantBook(file=file)
        self.warnings: tuple[str, ...] = ()
        self._modes = ConversationModes(self.settings.mode)
        self._trusted = frozenset(self.settings.trusted_servers)
        self._catalog = ToolCatalog()
        # A conversation's lock exists only while a question of it waits for an answer.
        self._questions: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()

    def _use_rules(self, settings: PermissionSettings) -> None:
        self.settings = settings
        self._is_open = settings.rules_nothing
        self._policy = RuleSet((settings.policy,))
        self._common = RuleSet((settings.policy, settings))

    def change_rules(
        self,
        *,
        add: PermissionRules | None = None,
        remove: PermissionRules | None = None,
        level: Literal["settings", "policy", "role"] = "settings",
        role: str | None = None,
    ) -> None:
        """Add and remove rules while the bot runs; they count from the next call on.

        Lists of tools follow with the next user turn. Nothing is written to a file.

        Args:
            add: The rules to add.
            remove: The rules to remove, as they are written.
            level: The level of the rules; `role` also needs the role's name.
            role: The name of the role.

        Raises:
            ConfigurationError: There is no such rule to remove, or the role is missing.
        """
        if (level == "role") != (role is not None):
            raise ConfigurationError(
                f"level is {level!r} and role is {role!r}: give a role with level 'role' alone"
            )
        settings = self.settings
        before: PermissionRules = settings
        if level == "policy":
            before = settings.policy
        elif role is not None:
            before = settings.roles.get(role, PermissionRules())
        changed = _changed_rules(before, add or PermissionRules(), remove or PermissionRules())
        if level == "policy":
            update: dict[str, Any] = {"policy": PermissionRules(**changed)}
        elif role is not None:
            update = {"roles": {**settings.roles, role: PermissionRules(**changed)}}
        else:
            update = dict(changed)
        self._use_rules(settings.model_copy(update=update))
        self._rule_changes += 1

    @property
    def rule_changes(self) -> int:
        """The number of times that rules were changed."""
        return self._rule_changes

    def has_permission(
        self,
        rule: str,
        context: ToolContext,
        find: Callable[[str], ExecutableTool | None],
    ) -> bool:
        """Return True if a call that a rule describes can run without a question.

        Args:
            rule: `tool`, `tool(value)` for its first argument, or `tool(argument=value)`; a
                tool's alias is a name too.
            context: The context of the caller.
            find: Returns a tool with its author's facts.
        """
        parsed = Rule.read(rule)
        named = (tool for tool in self._catalog.active if parsed.name in tool.aliases)
        tool = self._catalog.get(parsed.name) or next(named, None)
        if tool is None or (tool.roles and context.roles.isdisjoint(tool.roles)):
            return False
        arguments: dict[str, Any] = {}
        if parsed.pattern is not None:
            about = parsed.argument(tool)
            first = about[0] if about else CallArguments(tool, {}).first_argument
            if first is None:
                return False
            arguments[first] = about[1] if about else parsed.pattern
        item = find(tool.name)
        try:
            return self.decide(tool, arguments, context, item) == "allow"
        except Exception:  # noqa: BLE001  # the author's own functions, with few arguments
            log_failure(_log, "a permission function of tool %r failed", tool.name)
            return False

    def keep_in(self, store: object) -> None:
        """Keep grants and modes in a bot's store from now on, if the store supports them."""
        self.grants.keep_in(store)
        self._modes.keep_in(store)

    async def read(self, conversation: str) -> None:
        """Read the grants and the conversation's mode from the store."""
        await self.grants.read()
        await self._modes.read(conversation)

    def use_mode(self, mode: PermissionMode, *, conversation: str) -> None:
        """Set a conversation's mode from its next call on; a restart keeps it."""
        self._modes.use(conversation, mode)

    def mode(self, conversation: str) -> PermissionMode:
        """Return a conversation's mode."""
        return self._modes[conversation]

    async def forget(self, conversation: str) -> None:
        """Drop a conversation's mode and grants."""
        self._modes.forget(conversation)
        await self.grants.forget(conversation)

    async def aclose(self) -> None:
        """Write modes that the store does not have yet."""
        await self._modes.write()

    @property
    def state(self) -> tuple[int, int, int]:
        """A value that changes whenever the result of `denial_reason` may have changed."""
        return self._modes.changes, self.grants.changes, self._rule_changes

    def hints(self, tool: Tool) -> ToolHints:
        """Return the hints in a tool's annotations, if their author is trusted."""
        return hints_of(tool, self._trusted)

    def offered(self, catalog: ToolCatalog) -> ToolCatalog:
        """Return a catalog without the tools that the rules deny to everybody.

        Tools that are denied to some users are marked as restricted, so that counts and
        descriptions leave them out. Rules that no tool can match are logged.
        """
        self._catalog = catalog
        if not catalog or self.settings == PermissionSettings():
            return catalog
        tools = ToolsByRule(catalog.active)
        self._warn(map(str, unmatched_rules(self.settings, tools)))
        denied = set(self._find_denied(self._common, tools))
        restricted = set(self._find_denied(RuleSet(tuple(self.settings.roles.values())), tools))
        if self.settings.otherwise == "deny":
            restricted.update(self._find_unmentioned(catalog, tools))
        offered = catalog.deactivated(denied) if denied else catalog
        return offered.restricting(restricted) if restricted else offered

    @staticmethod
    def _find_denied(rules: RuleSet, tools: ToolsByRule) -> Iterator[str]:
        """Yield the names of tools that rules deny with any arguments."""
        for rule in rules.rules("deny"):
            if rule.pattern is None:
                yield from (tool.name for tool in tools.named(rule.name))

    def _find_unmentioned(self, catalog: ToolCatalog, tools: ToolsByRule) -> set[str]:
        """Return the names of tools that no rule for everybody allows or asks about."""
        named = {
            tool.name
            for decision in ("allow", "ask")
            for rule in self._common.rules(decision)
            for tool in tools.named(rule.name, allows=decision == "allow")
        }
        return {tool.name for tool in catalog.active} - named

    def _warn(self, problems: Iterable[str]) -> None:
        for problem in problems:
            if problem not in self.warnings:
                _log.warning("rule_never_matches: %s", problem)
                self.warnings = (*self.warnings, problem)

    def denial_reason(
        self, tool: Tool, context: ToolContext, item: ExecutableTool | None = None
    ) -> str | None:
        """Return why no call of a tool can be allowed here, or None if some call can.

        The model reads the text, and a search does not return the tool. An empty text hides
        the tool from this user: a call of it gets the answer of an unknown name.
        """
        if self.allows_everything(item):
            return None
        rules = self._rules(context.roles)
        mode = self.mode(context.conversation)
        say = partial(text, language=context.language, name=tool.name)
        if rules.says("deny", tool):
            return ""
        if mode == "plan" and not self._may_read_only(tool, item):
            return say("call.denied_plan")
        can_ask = self._ask is not None and mode != "never-ask"
        decision = self._best_decision(tool, context, item, rules, can_ask=can_ask)
        if decision == "deny":
            return ""
        return say("call.denied_unasked") if decision == "ask" and not can_ask else None

    def may_ask(self, tool: Tool, context: ToolContext, item: ExecutableTool | None = None) -> bool:
        """True if some call of a tool may ask the user here; grants are not counted."""
        if self.allows_everything(item):
            return False
        rules = self._rules(context.roles)
        if rules.says("ask", tool, of_some=True):
            return True
        if item is not None and (callable(item.needs_permission) or item.is_read_only is not None):
            return True  # depends on arguments that are not known yet
        if rules.says("allow", tool):
            return False
        return self._decide_without_rule(CallArguments(tool, {}), context, item) == "ask"

    def _best_decision(
        self,
        tool: Tool,
        context: ToolContext,
        item: ExecutableTool | None,
        rules: RuleSet,
        *,
        can_ask: bool,
    ) -> PermissionDecision:
        """Return the best decision that any call of a tool can get."""
        if self._policy.says("ask", tool):
            return "ask"
        granted = self._granted_rules(tool, context)
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
            return "allow"  # depends on arguments that are not known yet
        return self._decide_without_rule(CallArguments(tool, {}), context, item)

    def decide(
        self,
        tool: Tool,
        arguments: Mapping[str, Any],
        context: ToolContext,
        item: ExecutableTool | None = None,
        hook_permission: Literal["allow", "ask"] | None = None,
    ) -> PermissionDecision:
        """Decide a call without asking; `ask` means that the user has to be asked.

        Args:
            tool: The called tool.
            arguments: The call's arguments.
            context: The context with conversation, user and roles.
            item: The tool with its author's facts.
            hook_permission: The answer of a hook.
        """
        return self._decide_call(self._call(tool, arguments, item), context, item, hook_permission)

    @staticmethod
    def _call(
        tool: Tool, arguments: Mapping[str, Any], item: ExecutableTool | None
    ) -> CallArguments:
        if item is None:
            return CallArguments(tool, arguments)
        read = partial(received_arguments, item)
        return CallArguments(tool, arguments, subjects=item.subjects, read=read)

    def _decide_call(
        self,
        call: CallArguments,
        context: ToolContext,
        item: ExecutableTool | None,
        hook_permission: Literal["allow", "ask"] | None,
    ) -> PermissionDecision:
        if self._is_denied_by_plan(call, context, item):
            return "deny"
        ruled = self._rules(context.roles).decide(call)
        if ruled == "deny":
            return "deny"
        if self._policy.decide(call) == "ask":
            return "ask"
        if self.mode(context.conversation) == "bypass":
            return "allow"
        if hook_permission == "ask":
            return "ask"
        granted = self._granted_rules(call.tool, context)
        if hook_permission == "allow" or (granted and granted.decide(call)):
            return "allow"
        return ruled or self._decide_without_rule(call, context, item)

    def _is_denied_by_plan(
        self, call: CallArguments, context: ToolContext, item: ExecutableTool | None
    ) -> bool:
        in_plan = self.mode(context.conversation) == "plan"
        return in_plan and not self._is_read_only(call, item)

    def _decide_without_rule(
        self, call: CallArguments, context: ToolContext, item: ExecutableTool | None
    ) -> PermissionDecision:
        """Return the decision on a call that no rule matches."""
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

    async def authorize(
        self,
        tool: Tool,
        arguments: Mapping[str, Any],
        context: ToolContext,
        item: ExecutableTool | None = None,
        hook_permission: Literal["allow", "ask"] | None = None,
    ) -> str | None:
        """Decide a call, and ask the user if necessary.

        Returns:
            None if the call is allowed, or else the reason as the model reads it.
        """
        if hook_permission != "ask" and self.allows_everything(item):
            return None
        await self.grants.read()
        call = self._call(tool, arguments, item)
        decide = partial(self._decide_call, call, context, item, hook_permission)
        decision = decide()
        if decision == "ask":
            async with self._question_lock(context):
                # While this call waited, the user may have granted it with another one.
                decision = decide()
                if decision == "ask":
                    denial = await self._ask_user(tool, arguments, context, item)
                    # The mode may have changed during the question: a yes lifts no denial.
                    if denial is not None or decide() != "deny":
                        return denial
                    decision = "deny"
        if decision == "allow":
            return None
        ruled = self._rules(context.roles).decide(call)
        in_plan = ruled != "deny" and self._is_denied_by_plan(call, context, item)
        return _denial_text("denied_plan" if in_plan else "denied", tool, context)

    def _question_lock(self, context: ToolContext) -> asyncio.Lock:
        """Return the lock that keeps a conversation's questions in sequence."""
        return self._questions.setdefault(context.conversation, asyncio.Lock())

    async def ask(
        self, tool: Tool, arguments: Mapping[str, Any], context: ToolContext, question: str
    ) -> bool:
        """Ask the user a question of a running tool; no answer means False."""
        async with self._question_lock(context):
            return await self._ask_user(tool, arguments, context, question=question) is None

    async def _ask_user(
        self,
        tool: Tool,
        arguments: Mapping[str, Any],
        context: ToolContext,
        item: ExecutableTool | None = None,
        *,
        question: str = "",
    ) -> str | None:
        if self._ask is None or self.mode(context.conversation) == "never-ask":
            return _denial_text("denied_unasked", tool, context)
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
                answer = await call_maybe_async(self._ask, request)
        except TimeoutError:
            return _denial_text("denied_unanswered", tool, context)
        except Exception:  # noqa: BLE001  # the bot's own code: no answer means no
            log_failure(_log, "asking for permission to call %r failed; it is denied", tool.name)
            return _denial_text("denied_unasked", tool, context)
        if not isinstance(answer, PermissionAnswer):
            answer = PermissionAnswer(allow=answer is True)
        if not answer.allow:
            key: _DenialKey = "denied_because" if answer.message else "denied_by_user"
            return _denial_text(key, tool, context, message=answer.message)
        if answer.scope != "once" and not question:
            await self._grant(answer, tool, context, catalog)
        return None

    async def _grant(
        self, answer: PermissionAnswer, tool: Tool, context: ToolContext, catalog: ToolCatalog
    ) -> None:
        """Add a lasting grant, pinned to the definitions that the user was asked about."""
        written = answer.rule or rule_of_tool(tool)
        rule = Rule.read(written)
        others = (one for one in catalog.active if rule.may_allow(one))
        pins = dict.fromkeys(map(definition_pin, (tool, *others)))
        # A user without a name cannot be recognized elsewhere: it could be anybody.
        lasts = answer.scope == "always" and context.user is not None
        place = None if lasts else context.conversation
        await self.grants.add(
            *(
                Grant(rule=written, user=context.user, conversation=place, fingerprint=pin)
                for pin in list(pins)[:_MAX_PINNED]
            )
        )

    def allows_everything(self, item: ExecutableTool | None) -> bool:
        """Return True if no rule, mode or author can restrict a call, as in most bots.

        Args:
            item: The tool with its author's facts.
        """
        wanted = item is not None and item.needs_permission is not None
        return self._is_open and not self._modes and not wanted

    def _granted_rules(self, tool: Tool, context: ToolContext) -> RuleSet | None:
        """Return the rules that the user has granted for a tool here, or None."""
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
        """Return True if some call of the tool may be read-only."""
        asks = item is not None and item.is_read_only is not None
        return asks or self.hints(tool).read_only


def _changed_rules(
    before: PermissionRules, add: PermissionRules, remove: PermissionRules
) -> dict[str, tuple[str, ...]]:
    """Return the rules of each kind after a change."""
    changed: dict[str, tuple[str, ...]] = {}
    for kind in ("allow", "ask", "deny"):
        had, gone = getattr(before, kind), getattr(remove, kind)
        missing = [rule for rule in gone if rule not in had]
        if missing:
            raise ConfigurationError(
                f"the rule {missing[0]!r} cannot be removed from {kind}: this level has "
                f"{', '.join(map(repr, had)) or 'no rule there'}"
            )
        left = (rule for rule in had if rule not in gone)
        changed[kind] = tuple(dict.fromkeys((*left, *getattr(add, kind))))
    return changed


def _denial_text(key: _DenialKey, tool: Tool, context: ToolContext, **values: object) -> str:
    return text(f"call.{key}", context.language, name=tool.name, **values)
