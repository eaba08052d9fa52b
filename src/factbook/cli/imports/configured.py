"""`factbook import run`: the importers that the service runs by itself."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Annotated

import typer

from factbook.cli.imports.report import Plan, check_reports, print_report, report_json, reports
from factbook.cli.local import DatabaseUrl
from factbook.cli.output import Json, print_json

if TYPE_CHECKING:
    from factbook.backend import Backend
    from factbook.importers.single_import import ImportReport

ImporterName = Annotated[
    str | None,
    typer.Argument(metavar="NAME", help="Id of an importer, e.g. github-internal. All without it."),
]


def run(
    name: ImporterName = None,
    *,
    plan: Plan = False,
    database_url: DatabaseUrl = None,
    as_json: Json = False,
) -> None:
    """Import with the importers of the settings, and with those made in the browser, now.

    The table [importers.github.internal] has the id github-internal, and [importers.github.default]
    the id github.

    \b
    Examples:
      factbook import run --plan
      factbook import run github
    """
    from factbook.operations import imports

    async def work(backend: "Backend", show: Callable[[str], None]) -> "list[ImportReport]":
        return await imports.import_configured(backend, name, plan=plan, show=show)

    found = reports(work, database_url)
    if as_json:
        print_json([report_json(one, plan=plan) for one in found])
    else:
        for one in found:
            print_report(one, plan=plan)
    check_reports(found)
