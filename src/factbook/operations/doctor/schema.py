"""The schema, compared with this version's migrations; search rows, compared with documents."""

from collections.abc import AsyncIterator
from typing import Final

from factbook import __version__
from factbook.catalog.store import index_rows
from factbook.errors import FactbookError
from factbook.operations.doctor.findings import Finding, ok, problem, warning
from factbook.storage import Database, migrations, schema_check
from factbook.storage.migrations import has_record, pending

MIGRATIONS: Final = "migrations"
SEARCH: Final = "search"
_SAMPLE: Final = 50


async def applied(database: Database) -> tuple[bool, list[Finding]]:
    """Findings on the schema, and true if it can be examined further."""
    if not await has_record(database):
        return False, [warning(MIGRATIONS, "The database is empty.", "`factbook serve` fills it.")]
    try:
        missing = await pending(database)
    except FactbookError as error:
        return False, [
            problem(MIGRATIONS, error.message, "Install that version, or restore a backup.")
        ]
    if missing:
        advice = "Back up, then start `factbook serve` or run `factbook migrate`."
        what = f"{len(missing)} migrations are not applied: {', '.join(missing)}."
        return False, [warning(MIGRATIONS, what, advice)]
    return True, [finding async for finding in _differing(database)]


async def is_older(database: Database) -> bool:
    """True for a schema that only lacks migrations of this release."""
    try:
        return await has_record(database) and bool(await pending(database))
    except FactbookError:
        return False


async def _differing(database: Database) -> AsyncIterator[Finding]:
    """Findings on a schema that has no pending migrations."""
    if newer := await migrations.unknown(database):
        what = f"A newer version has applied {', '.join(newer)}; this is {__version__}."
        yield warning(MIGRATIONS, what, "It goes on working; update this machine, too.")
        return
    fine = True
    if differing := await migrations.differing(database):
        what = f"Applied in another form than this release has: {', '.join(differing)}."
        yield problem(MIGRATIONS, what, schema_check.ADVICE)
        fine = False
    if found := await schema_check.deviations(database):
        yield problem(MIGRATIONS, schema_check.told(found), schema_check.ADVICE)
        fine = False
    if fine:
        yield ok(
            MIGRATIONS, f"All {len(migrations.names())} are applied, and the schema is theirs."
        )


async def search_rows(database: Database) -> Finding:
    """Derive the search rows of some entities again, and look for them."""
    count, wrong = await index_rows.unfound(database, _SAMPLE)
    if wrong:
        what = f"Filters do not find {len(wrong)} of {count} entities as they are: {wrong[0]}."
        advice = "Push their sets again with another content, or report it: that is a bug."
        return problem(SEARCH, what, advice)
    if not count:
        return ok(SEARCH, "There are no entities yet.")
    return ok(SEARCH, f"Filters agree with the documents of {count} entities.")
