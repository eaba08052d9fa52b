"""The schema of the database, compared with the migrations of this version."""

from typing import Final

from factbook import __version__
from factbook.errors import FactbookError
from factbook.operations.doctor.findings import Finding, ok, problem, warning
from factbook.storage import Database
from factbook.storage.migrations import has_record, names, pending

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
    applied = {name for (name,) in await database.all("SELECT name FROM schema_migrations")}
    if newer := sorted(applied - set(names())):
        what = f"A newer version has applied {', '.join(newer)}; this is {__version__}."
        return True, [warning(TOPIC, what, "It goes on working; update this machine, too.")]
    return True, [ok(TOPIC, f"All {len(applied)} are applied.")]
