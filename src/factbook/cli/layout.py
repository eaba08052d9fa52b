"""`factbook distribute` and `factbook partition`: the layout of large tables."""

from typing import Annotated

import typer

from factbook.cli.local import DatabaseUrl, settings_from
from factbook.cli.output import note, say

Plan = Annotated[
    bool, typer.Option("--plan", help="Change nothing: print the steps that are left to do.")
]


def distribute(plan: Plan = False, database_url: DatabaseUrl = None) -> None:
    """Spread facts and their history over the machines of a Citus cluster.

    The database is a coordinator of Citus that knows its workers. Facts are spread by entity, and
    the catalog is copied to every machine. Rows that are there are copied, and writes to a table
    wait while it is; a command that was ended goes on where it was when it is run again.

    \b
    Examples:
      factbook distribute --plan
      factbook distribute --database-url postgresql://factbook@coordinator/factbook
    """
    # See service.serve.
    from factbook.operations import layout

    settings = settings_from(database_url)
    steps = 0
    if plan:
        for step in layout.distribution_plan(settings):
            say(str(step))
            steps += 1
    else:
        steps = layout.distribute(settings, lambda step: note(str(step)))
    if not steps:
        note("Facts are distributed, and the catalog is on every machine.")
