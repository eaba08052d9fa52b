"""The schema of the database, compared with the migrations of this version."""

from collections.abc import AsyncIterator
from typing import Final

from factbook import __version__
from factbook.errors import FactbookError
from factbook.operations.doctor.findings import Finding, ok, problem, warning
from factbook.storage import Database, migrations, schema_check
from factbook.storage.migrations import has_record, pending

TOPIC: Final = "migrations"


async def check(database: Database) -> tuple[bool, list[Finding]]:
    """Findings on the schema, and true if it can be examined further."""
    if not await has_record(database):
        return False, [warning(TOPIC, "The database is empty.", "`factbook serve` fills it.")]
    try:
        missing = await pending(database)
    except FactbookError as error:
        return False, [problem(TOPIC, error.message, "Install that version, or restore a backup.")]
    if missing:
        advice = "Back up, then start `factbook serve` or run `factbook migrate`."
        what = f"{len(missing)} migrations are not applied: {', '.join(missing)}."
        return False, [warning(TOPIC, what, advice)]
    return True, [finding async for finding in _applied(database)]


async def _applied(database: Database) -> AsyncIterator[Finding]:
    """Findings on a schema that has no pending migrations."""
    if newer := await migrations.unknown(database):
        what = f"A newer version has applied {', '.join(newer)}; this is {__version__}."
        yield warning(TOPIC, what, "It goes on working; update this machine, too.")
        return
    fine = True
    if differing := await migrations.differing(database):
        what = f"Applied in another form than this release has: {', '.join(differing)}."
        yield problem(TOPIC, what, schema_check.ADVICE)
        fine = False
    if found := await schema_check.deviations(database):
        yield problem(TOPIC, schema_check.told(found), schema_check.ADVICE)
        fine = False
    if fine:
        yield ok(TOPIC, f"All {len(migrations.names())} are applied, and the schema is theirs.")
