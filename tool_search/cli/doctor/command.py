"""`tool-search doctor`: what would stop a bot, or cost too much."""

from __future__ import annotations

import asyncio
import json
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.text import Text

from tool_search.cli.doctor.costs import ProviderCost
from tool_search.cli.doctor.examine import Examination, examine_bot, examine_catalog
from tool_search.cli.doctor.findings import Finding, Place
from tool_search.cli.doctor.fixes import write_corrections
from tool_search.cli.doctor.queries import ExplainedSearch
from tool_search.cli.exits import FAILED, result_console, say
from tool_search.cli.files import is_standard_input, read_catalog, read_judged_queries
from tool_search.cli.options import JsonOption
from tool_search.cli.search import explanation_lines
from tool_search.cli.terminal.language import spoken_language, wrong_use
from tool_search.cli.terminal.tables import indented, print_figures
from tool_search.core.values.json import encodable
from tool_search.i18n import Language, text
from tool_search.search import JudgedQuery
from tool_search.search.discovery.search_tool import clean_description
from tool_search.search.explained import explanation_object

__all__ = ["doctor_command"]

_MAX_OF_A_KIND = 5
# 2 is for wrong use of the command.
_STATUS: Mapping[str | None, int] = {"error": FAILED, "warning": 3}
_STYLES = {"error": "bold red", "warning": "yellow", "note": "cyan"}
_NAME = re.compile(r'"name"\s*:\s*("(?:[^"\\]|\\.)*")')


_ConfigOption = Annotated[Path | None, typer.Option("--config", help="The bot's YAML file.")]
_CatalogOption = Annotated[
    Path | None,
    typer.Option("--catalog", help="A file of tools, to examine without a bot."),
]
_LiveOption = Annotated[
    bool,
    typer.Option(
        "--live",
        help="Ask each provider and each server once: a request of the bot's tools, which "
        "costs as much as any.",
    ),
]
_FixOption = Annotated[
    bool,
    typer.Option("--fix", help="Correct in the file what is mechanical, then examine it."),
]
_QueryOption = Annotated[
    str | None, typer.Option("--query", help="Explain one search of the bot's tools.")
]
_QueriesOption = Annotated[
    Path | None,
    typer.Option(
        "--queries",
        help='Queries with known answers, {"query": ..., "relevant": [names]} a line: name '
        "the tools that they miss.",
    ),
]
_WorstOption = Annotated[
    int,
    typer.Option("--worst", min=1, max=1_000, help="How many worst descriptions to name."),
]


def doctor_command(
    *,
    config: _ConfigOption = None,
    catalog: _CatalogOption = None,
    live: _LiveOption = False,
    fix: _FixOption = False,
    query: _QueryOption = None,
    queries: _QueriesOption = None,
    worst: _WorstOption = 10,
    as_json: JsonOption = False,
) -> None:
    """Say what would stop a bot, make it worse, or cost too much, and what to do.

    The status is 1 if there is an error, 3 if there are only warnings, and 0 otherwise. Each
    finding has a code; docs/doctor.md explains each.
    """
    if (config is None) == (catalog is None):
        raise wrong_use("use.one_of", first="--config", second="--catalog")
    if catalog is not None and (live or fix):
        raise wrong_use("use.only_with", options="--live, --fix", option="--config")
    judged = () if queries is None else read_judged_queries(queries)
    fixed: tuple[Finding, ...] = ()
    if config is None:
        found = _examine_catalog(Path(str(catalog)), query=query, judged=judged, worst=worst)
    else:
        examine = partial(examine_bot, config, live=live, query=query, judged=judged, worst=worst)
        found = asyncio.run(examine())
        if fix and (fixed := write_corrections(config, found.findings)):
            found = asyncio.run(examine())
    file = str(config or catalog)
    if as_json:
        typer.echo(encodable(json.dumps(_as_object(file, found, fixed), ensure_ascii=False)))
    else:
        _print(file, found, fixed, spoken_language())
    if found.severity in _STATUS:
        raise typer.Exit(_STATUS[found.severity])


def _examine_catalog(
    path: Path, *, query: str | None, judged: Sequence[JudgedQuery], worst: int
) -> Examination:
    """Examine the tools of a file; the place of each is the line that has its name."""
    catalog = read_catalog(path)
    lines: dict[str, int] = {}
    # Standard input has been read.
    written = "" if is_standard_input(path) else path.read_text("utf-8", errors="replace")
    for number, line in enumerate(written.splitlines(), 1):
        for name in _NAME.findall(line):
            lines.setdefault(json.loads(name), number)
    origins = {tool.name: ("tools", tool.source[1]) for tool in catalog.values()}
    found = examine_catalog(
        catalog.values(), origins=origins, query=query, judged=judged, worst=worst
    )
    return replace(found, findings=tuple(_in_catalog(each, lines) for each in found.findings))


def _in_catalog(finding: Finding, lines: Mapping[str, int]) -> Finding:
    tool = finding.values.get("tool")
    if tool is None:
        return finding
    return replace(finding, place=Place(key=str(tool), line=lines.get(tool)))


def _as_object(file: str, found: Examination, fixed: Iterable[Finding]) -> dict[str, Any]:
    content: dict[str, Any] = {
        "file": file,
        "severity": found.severity,
        "findings": [each.to_dict() for each in found.findings],
        "fixed": [each.to_dict() for each in fixed],
        "tools": len(found.catalog.active),
        "providers": [cost.to_dict() for cost in found.costs],
        "worst_described": list(found.worst),
    }
    if found.search is not None:
        content["search"] = _search_object(found.search)
    return content


def _search_object(found: ExplainedSearch) -> dict[str, Any]:
    return {
        "query": found.result.query,
        "matches": [
            {
                "name": match.name,
                "score": round(match.score, 6),
                **(
                    {"explanation": explanation_object(found.reasons[match.name])}
                    if match.name in found.reasons
                    else {}
                ),
            }
            for match in found.result.matches
        ],
        "total_found": found.result.total_found,
        "unmatched": list(found.result.unmatched),
        "core": list(found.core),
    }


def _print(file: str, found: Examination, fixed: Iterable[Finding], language: Language) -> None:
    console = result_console()
    for each in fixed:
        words = {"code": each.code, "old": each.wrong, "new": each.instead}
        say(text("examined.fixed", language, **words))
    shown: Counter[str] = Counter()
    for finding in found.findings:
        shown[finding.code] += 1
        if shown[finding.code] <= _MAX_OF_A_KIND:
            _print_finding(console, file, finding, language)
    for code, count in shown.items():
        if count > _MAX_OF_A_KIND:
            more = text("examined.more", language, count=count - _MAX_OF_A_KIND)
            console.print(Text(f"{code}: {more}", style="dim"))
    if found.search is not None:
        _print_search(console, found.search, language)
    if found.costs:
        console.print(Text(text("examined.costs", language), style="italic"))
        _print_costs(console, found.costs, language)
    if found.worst:
        console.print(Text(text("examined.worst", language, names=", ".join(found.worst))))
    console.print(Text(_summary(found, language), style="bold"))


def _print_finding(console: Console, file: str, finding: Finding, language: Language) -> None:
    place = finding.place
    where = file
    if place.line is not None:
        where = text("examined.line", language, file=file, line=place.line)
    named = f": {place.key}" if place.key else ""
    severity = finding.severity
    # As Text, because names and problems must not be read as markup.
    console.print(
        Text.assemble(
            (text(f"examined.{severity}", language), _STYLES[severity]),
            f" {finding.code}  {where}{named}",
        )
    )
    message = clean_description(finding.message(language))
    console.print(Text(indented(message, console.width)))
    remedy = clean_description(finding.remedy(language))
    console.print(Text(indented(remedy, console.width), style="green"))


def _print_search(console: Console, found: ExplainedSearch, language: Language) -> None:
    result = found.result
    head = {
        "query": result.query,
        "shown": len(result.matches),
        "found": result.total_found,
        "tools": result.total_tools,
    }
    console.print(Text(text("examined.search", language, **head), style="bold"))
    for match in result.matches:
        console.print(Text(f"  {match.score:.3f} {match.name}"))
        reason = found.reasons.get(match.name)
        for line in () if reason is None else explanation_lines(reason):
            console.print(Text(f"        {line}", style="dim"))
    if found.core:
        console.print(Text(text("examined.core", language, names=", ".join(found.core))))


def _print_costs(console: Console, costs: Iterable[ProviderCost], language: Language) -> None:
    columns = ("provider", "strategy", "mode", "limit", "tools", "tokens", "full", "pays")
    headings = [text(f"examined.{key}", language) for key in (*columns, "searches", "cache")]
    rows = [
        (
            f"{cost.provider} ({cost.model})",
            cost.strategy,
            cost.mode,
            _number(cost.max_tools),
            str(cost.tools_declared),
            _number(cost.tokens),
            _number(cost.full_tokens),
            _number(cost.break_even_tools),
            _number(cost.break_even_searches),
            _number(cost.cached_tokens),
        )
        for cost in costs
    ]
    print_figures(console, headings, rows, texts=3)


def _number(value: int | None) -> str:
    return "-" if value is None else f"{value:,}"


def _summary(found: Examination, language: Language) -> str:
    tools = len(found.catalog.active)
    if not found.findings:
        return text("examined.nothing", language, tools=tools, providers=len(found.costs))
    counts = Counter(finding.severity for finding in found.findings)
    return text(
        "examined.count",
        language,
        errors=counts["error"],
        warnings=counts["warning"],
        notes=counts["note"],
        tools=tools,
    )
