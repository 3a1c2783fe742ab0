"""`tool-search inspect-log`: the inspector's page over requests that a file has kept."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from tool_search.cli.exits import say
from tool_search.cli.start.serving import serve_until_interrupted, take_address
from tool_search.cli.terminal.language import spoken
from tool_search.errors import ConfigurationError
from tool_search.serving.door import Access
from tool_search.serving.inspector.figures import figures
from tool_search.serving.inspector.log import KeptLog, read_log
from tool_search.serving.inspector.recorder import Recorder

__all__ = ["inspect_log_command"]

_MISSING = (
    "tool-search inspect-log needs {name}: "
    "pip install 'tool-search-middleware[proxy]'; in a clone: pip install '.[proxy]'"
)
_HOST = "127.0.0.1"
# An open page would hold the end of the process.
_CLOSE_S = 1


def inspect_log_command(
    *,
    file: Annotated[
        Path,
        typer.Argument(metavar="FILE", help="The file of `inspector.path`.", show_default=False),
    ],
    port: Annotated[
        int,
        typer.Option(
            metavar="PORT", min=0, max=65_535, help="The port of the page; 0: any free one."
        ),
    ] = 8788,
    last: Annotated[
        int, typer.Option(metavar="N", min=1, max=100_000, help="The newest requests to show.")
    ] = 1_000,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print the figures as JSON, and open no page.")
    ] = False,
) -> None:
    """Show the requests that a proxy has kept in a file, on a page of this machine."""
    kept = read_log(file, last)
    if kept.unread:
        say(spoken("inspected.unread", count=kept.unread, file=repr(str(file))))
    if as_json:
        typer.echo(json.dumps(figures(kept.requests, kept.catalogs), ensure_ascii=False))
        return
    _serve(kept, port, last)


def _serve(kept: KeptLog, port: int, last: int) -> None:
    try:
        import uvicorn  # noqa: F401, PLC0415  # of the extra proxy
        from starlette.applications import Starlette  # noqa: PLC0415

        from tool_search.serving.inspector.app import InspectorApp, inspector_routes  # noqa: PLC0415
    except ModuleNotFoundError as exc:
        raise ConfigurationError(_MISSING.format(name=exc.name)) from exc
    recorder = Recorder(last)
    catalogs = {catalog.id: catalog for catalog in kept.catalogs}
    for record in kept.requests:
        recorder.add(record, catalog=catalogs.get(record.catalog))
    app = InspectorApp(recorder, Access(), is_kept=True)
    sockets, port = take_address(_HOST, port)
    typer.echo(f"{len(kept.requests)} requests: http://{_HOST}:{port}/inspector/")
    serve_until_interrupted(Starlette(routes=inspector_routes(app)), sockets, close_s=_CLOSE_S)
