"""`factbook doctor`: diagnosis of an installation."""

from typing import TYPE_CHECKING, Annotated, Any

import typer

from factbook.cli.failures import REFUSED
from factbook.cli.local import DatabaseUrl
from factbook.cli.output import Json, print_json, progress, say, say_coloured

if TYPE_CHECKING:
    from factbook.operations.doctor.findings import Finding

_COLOURS = {"ok": "green", "warning": "yellow", "problem": "red"}


def doctor(
    quick: Annotated[
        bool, typer.Option("--quick", help="Do not read a SQLite file to its end.")
    ] = False,
    database_url: DatabaseUrl = None,
    as_json: Json = False,
) -> None:
    """Check configuration, database, credentials, clocks and disk, and say what to do.

    Prints a line for each check: ok, warning or problem. Nothing is changed. Hosts of
    integrations get few requests: what a credential may read, and the facts of one entity. Exits
    with 1 when there is a problem; warnings alone exit with 0.

    \b
    Examples:
      factbook doctor
      factbook doctor --quick --json
    """
    import asyncio

    from factbook.operations.doctor.examination import examine
    from factbook.telemetry import logs

    found: list[Finding] = []

    async def work() -> None:
        with logs.silence_logs(), progress("Looking") as show:
            async for finding in examine({"database_url": database_url}, show, quick=quick):
                found.append(finding)
                if not as_json:
                    _show(finding)

    asyncio.run(work())
    states = [finding.state for finding in found]
    if as_json:
        print_json({"ok": "problem" not in states, "checks": [_as_json(one) for one in found]})
    else:
        say(f"{states.count('problem')} problems, {states.count('warning')} warnings.")
    if "problem" in states:
        raise typer.Exit(REFUSED)


def _show(finding: "Finding") -> None:
    advice = f" {finding.advice}" if finding.advice else ""
    line = f"{finding.state:<8} {finding.topic}: {finding.what}{advice}"
    say_coloured(line.replace("\n", " "), _COLOURS[finding.state])


def _as_json(finding: "Finding") -> dict[str, Any]:
    shown = {"topic": finding.topic, "state": finding.state, "what": finding.what}
    return shown | ({"advice": finding.advice} if finding.advice else {})
