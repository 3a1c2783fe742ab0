"""The text of `/tool_search status`."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from tool_search.adapters.astrbot.installation import HookState
from tool_search.adapters.astrbot.preferences import provider_id
from tool_search.adapters.astrbot.reports import Savings
from tool_search.adapters.astrbot.run import AstrBotConversation, SentRequest, tokens_of
from tool_search.adapters.astrbot.settings import AstrBotSettings, SettingProblem
from tool_search.core.catalog.catalog import CorePolicy, ToolCatalog
from tool_search.i18n import Language, text

__all__ = ["Status", "status_text", "unmatched_patterns"]

_MAX_NAMES = 40
_MAX_QUERY_CHARS = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class Status:
    """The facts of one status.

    Attributes:
        language: The language of the text.
        conversation: The conversation; None: it had no request since the start.
        settings: The settings at its place.
        catalog: All active tools.
        providers: The strategy that each configured provider gets next, by its name.
        switched_off: The tools that an operator has switched off.
        savings: The tokens that were saved.
        problems: The settings that are not as they were written.
        hooks: The hooks in force, and those that are not, with the loss.
        warnings: The last warnings.
    """

    language: Language
    conversation: AstrBotConversation | None
    settings: AstrBotSettings
    catalog: ToolCatalog
    providers: dict[str, str]
    switched_off: tuple[str, ...]
    savings: Savings
    problems: tuple[SettingProblem, ...]
    hooks: tuple[HookState, ...]
    warnings: tuple[str, ...]


def status_text(status: Status) -> str:
    """Return the lines of a status."""
    language, conversation = status.language, status.conversation
    view = None if conversation is None else conversation.view
    catalog = status.catalog if view is None else view.catalog
    lines = [text("astrbot.status_title", language)]
    if status.settings.skills_like:
        lines.append(text("astrbot.status_skills_like", language))
    elif view is None:
        lines.append(text("astrbot.status_new", language))
    else:
        mode = view.mode
        lines.append(text("astrbot.status_mode", language, mode=mode.mode, reason=mode.reason))
    sent = None if conversation is None else conversation.last_request
    if conversation is not None and sent is not None:
        lines += _sent_lines(language, conversation, sent)
    lines += _tool_lines(status, catalog)
    if conversation is not None:
        lines += _found_lines(status, conversation)
    lines += _bot_lines(status, catalog)
    return "\n".join(lines)


def unmatched_patterns(patterns: Iterable[str], catalog: ToolCatalog) -> tuple[str, ...]:
    """Return the patterns of `always_loaded_tools` that match no tool."""
    tools = [tool for tool in catalog.active if tool.kind != "handoff" and not tool.always_load]
    return tuple(
        pattern
        for pattern in patterns
        if not any(
            map(
                CorePolicy(always_loaded_tools=(pattern,), auto_always_load_builtin=False).is_core,
                tools,
            )
        )
    )


def _sent_lines(
    language: Language, conversation: AstrBotConversation, sent: SentRequest
) -> list[str]:
    full, now = conversation.full_tokens, tokens_of(sent, conversation)
    config = getattr(sent.provider, "provider_config", None)
    return [
        text("astrbot.status_strategy", language, strategy=sent.profile.strategy),
        text(
            "astrbot.status_sent",
            language,
            provider=provider_id(sent.provider) or sent.profile.dialect,
            model=(config or {}).get("model") or sent.profile.model,
            count=len(sent.tools.names),
            now=now,
            full=full,
            saved=max(0, round(100 * (1 - now / full))) if full else 0,
        ),
    ]


def _tool_lines(status: Status, catalog: ToolCatalog) -> list[str]:
    language = status.language
    lines = [
        text(
            "astrbot.status_tools",
            language,
            total=len(catalog.active),
            core=len(catalog.core),
            deferred=len(catalog.deferred),
        ),
        text(
            # AstrBot adds its own tools to a request, and they are in no list before.
            "astrbot.status_core" if status.conversation else "astrbot.status_core_new",
            language,
            names=_names((tool.name for tool in catalog.core), language),
        ),
    ]
    if status.switched_off:
        off = _names(status.switched_off, language)
        lines.append(text("astrbot.status_off", language, names=off))
    return lines


def _found_lines(status: Status, conversation: AstrBotConversation) -> list[str]:
    language = status.language
    found = conversation.view.discoveries.names
    lines = [text("astrbot.status_found", language, names=_names(found, language))]
    sent = conversation.last_request
    if sent is not None:
        declared = _names(sent.tools.names, language)
        lines.append(text("astrbot.status_declared", language, names=declared))
    last = conversation.last_search
    if last is not None:
        names = _names(dict.fromkeys((*last.names, *last.loaded)), language)
        query = " ".join(last.query.split())[:_MAX_QUERY_CHARS]
        lines.append(text("astrbot.status_search", language, query=query, names=names))
    return lines


def _bot_lines(status: Status, catalog: ToolCatalog) -> list[str]:
    language, savings = status.language, status.savings
    lines = [
        text("astrbot.status_provider", language, provider=name, strategy=strategy)
        for name, strategy in status.providers.items()
    ]
    lines.append(
        text(
            "astrbot.status_savings",
            language,
            total=savings.total,
            requests=savings.requests,
            today=savings.today,
        )
    )
    patterns = unmatched_patterns(status.settings.config.always_loaded_tools, catalog)
    if patterns:
        lines.append(text("astrbot.status_patterns", language, names=", ".join(patterns)))
    for key, said in (
        ("astrbot.status_problems", [each.said(language) for each in status.problems]),
        ("astrbot.status_hooks", [each.said(language) for each in status.hooks]),
        ("astrbot.status_warnings", status.warnings),
    ):
        if said:
            lines += [text(key, language), *(f"- {line}" for line in said)]
    return lines


def _names(names: Iterable[str], language: Language) -> str:
    listed = list(names)
    shown = ", ".join(listed[:_MAX_NAMES])
    if len(listed) > _MAX_NAMES:
        return text("astrbot.more", language, names=shown, count=len(listed) - _MAX_NAMES)
    return shown or text("astrbot.found_none", language)
