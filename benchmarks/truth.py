"""Try every row on refusals against a server that keeps its rule, and print the rows by age.

Run: make truth; with ARGS="--write" it writes truth.md as well

A row's outcome is `a` (no request is refused), `b` with the number of refused requests of a
conversation, in which each turn has its answer, `c` (a turn has none), or `-` (the words of the
refusal are not stored). To try the rows with older code: `--export ROWS` here, then in a checkout
of that code, with this checkout's `tests/services`, `--rows ROWS --outcomes FILE`.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import logging
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path

from tests.services.table import Row, all_rows, outcome_of

FOLDER = Path(__file__).parent
BEFORE = FOLDER / "truth_before.json"
"""The outcomes of the commit before refusals in unknown words ended no turn (6bc61d8)."""
HEAD = """\
# Refusals of services, tried

`make truth` tries each row of `providers/words/*.py` (a refusal, in the service's words) and of
`known.py` (a fact, by which a request keeps the rule) against a server of that one rule.
[Adding a row](../docs/extending/refusal.md) takes minutes.

- **a**: no request is refused; **b**: so many are in a conversation, and each turn has its answer;
  **c**: a turn ends without an answer; **-**: the service's words are not stored.
- `before`: the same rows against the code at 6bc61d8.

"""


def in_order(rows: Iterable[Row]) -> list[Row]:
    """Return rows by age, the newest first; those without a date come last."""
    return sorted(rows, key=lambda row: (row.date, row.service), reverse=True)


async def outcomes_of(rows: Sequence[Row]) -> dict[str, str]:
    """Return the outcome of each row, by its key."""
    return {row.key: await outcome_of(row) for row in rows}


def table(rows: Sequence[Row], before: Mapping[str, str], now: Mapping[str, str]) -> str:
    """Return the rows as a table."""
    lines = ["| source of | service | words, or the fact that is known | rule | before | now |"]
    lines.append("|---|---|---|---|---|---|")
    for row in rows:
        said = (row.words or f"{row.remedy}").replace("|", "\\|")
        said = f"`{said[:120].replace('`', chr(39))}{'…' if len(said) > 120 else ''}`"
        cells = (row.date or "?", row.service, said, row.rule or "?")
        lines.append(f"| {' | '.join(cells)} | {before.get(row.key, '')} | {now[row.key]} |")
    return "\n".join(lines) + "\n"


def main() -> None:
    """Try the rows."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument(
        "--only", default="", help="rows with this word in the service or the words"
    )
    parser.add_argument("--write", action="store_true", help="write truth.md")
    parser.add_argument("--export", type=Path, help="write the rows into a file, and try none")
    parser.add_argument("--rows", type=Path, help="try the rows of such a file")
    parser.add_argument("--outcomes", type=Path, help="write the outcomes into a file")
    options = parser.parse_args()
    logging.disable(logging.WARNING)
    found = (
        all_rows()
        if options.rows is None
        else (
            Row(**{**row, "models": tuple(row["models"])})
            for row in json.loads(options.rows.read_text("utf-8"))
        )
    )
    rows = in_order(row for row in found if options.only in row.key)
    if options.export is not None:
        options.export.write_text(json.dumps([asdict(row) for row in rows]), "utf-8")
        return
    now = asyncio.run(outcomes_of(rows))
    if options.outcomes is not None:
        options.outcomes.write_text(json.dumps(now, indent=1, ensure_ascii=False) + "\n", "utf-8")
    written = table(rows, json.loads(BEFORE.read_text("utf-8")) if BEFORE.exists() else {}, now)
    year = str(datetime.now(UTC).year)
    old = [row for row in rows if not row.date.startswith(year)]
    written += f"\n{len(old)} of {len(rows)} rows have no source that is known to be of {year}.\n"
    print(written)
    for row in old:
        print(f"no source of {year}: {row.key[:100]} ({row.source})")
    if options.write:
        (FOLDER / "truth.md").write_text(HEAD + written, "utf-8")
    failed = [row.key for row in rows if now[row.key] == "c"]
    if failed:
        raise SystemExit(f"{len(failed)} rows end a turn without an answer: {failed}")


if __name__ == "__main__":
    main()
