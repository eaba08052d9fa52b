"""`factbook distribute` and `factbook partition`: the layout of large tables."""

from collections.abc import Sequence
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
    steps = layout.distribution_plan(settings) if plan else None
    count = _listed(steps) if steps is not None else layout.distribute(settings, _told)
    if not count:
        note("Facts are distributed, and the catalog is on every machine.")


def partition(plan: Plan = False, database_url: DatabaseUrl = None) -> None:
    """Partition history and the audit by month, on PostgreSQL, while the service runs.

    What is there becomes the first partition as it is, so little disk and no pause is needed. From
    then on the housekeeping creates the coming months, and drops those of which nothing is kept. A
    command that was ended goes on where it was when it is run again.

    \b
    Examples:
      factbook partition --plan
      factbook partition --database-url postgresql://factbook@db/factbook
    """
    # See service.serve.
    from factbook.operations import layout

    settings = settings_from(database_url)
    steps = layout.partition_plan(settings) if plan else None
    count = _listed(steps) if steps is not None else layout.partition(settings, _told)
    if not count:
        note("History and the audit are partitioned by month.")


def _listed(steps: Sequence[object]) -> int:
    """Print the steps of a plan; returns their number."""
    for step in steps:
        say(str(step))
    return len(steps)


def _told(step: object) -> None:
    note(str(step))
