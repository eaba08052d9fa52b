"""The schema of a database against the one that this release expects."""

import itertools
from collections.abc import Collection

import pytest
import structlog

from factbook.errors import UnavailableError
from factbook.settings import Settings
from factbook.storage import Database
from factbook.storage.database_url import open_database
from factbook.storage.migrations import (
    SCHEMA_DIGESTS,
    Deviation,
    Schema,
    compute_expected_schema,
    digest_migration,
    digest_schema,
    get_migration_texts,
    introspect_schema,
    list_deviations,
    migrate,
    verify_schema,
)
from tests.processes import TOKEN_KEY
from tests.service import NOON, started
from tests.storage.landed import EARLIER
from tests.storage.snapshots import apply

# The newest migration that a database had, and which were applied in their first form.
FORMS = [
    (until, [name for name, is_first in zip(EARLIER, first, strict=True) if is_first])
    for until in (1, 2, 12)
    for first in itertools.product((False, True), repeat=3)
    if not (until < 5 and first[2]) and not (until < 2 and first[1])
]


async def fresh(database: Database) -> Schema:
    """The schema of a new database of the same kind."""
    return compute_expected_schema(database.dialect)


async def test_a_new_database_is_as_expected(database: Database) -> None:
    assert await introspect_schema(database) == await fresh(database)
    assert await digest_schema(database) == SCHEMA_DIGESTS[database.dialect]
    with structlog.testing.capture_logs() as told:
        await verify_schema(database)
    assert told == []


@pytest.mark.slow
@pytest.mark.spec("upgrades.every-form-of-a-migration")
@pytest.mark.parametrize(("until", "first"), FORMS)
async def test_whatever_forms_of_migrations_were_applied_the_schema_becomes_the_same(
    empty_database_url: str, until: int, first: Collection[str]
) -> None:
    database = await open_database(empty_database_url, connections=3)
    await apply(database, until, first, NOON)
    await migrate(database, NOON)
    assert await introspect_schema(database) == await fresh(database)
    assert await list_deviations(database) == []
    await database.close()


async def test_the_checksum_of_each_migration_is_kept(database: Database) -> None:
    rows = await database.all("SELECT name, sha256 FROM schema_migrations")
    assert dict(rows) == {
        name: digest_migration(text) for name, text in get_migration_texts().items()
    }


@pytest.mark.spec("upgrades.the-schema-is-compared")
async def test_a_start_tells_what_differs_and_goes_on(
    database: Database, database_url: str
) -> None:
    await database.write(lambda tx: tx.run("DROP INDEX entities_by_set"))
    await database.write(
        lambda tx: tx.run("UPDATE schema_migrations SET sha256 = 'x' WHERE name = '0007_audit.sql'")
    )
    with structlog.testing.capture_logs() as told:
        async with started(Settings(database_url=database_url, token_key=TOKEN_KEY)) as service:
            assert (await service.http.get("/readyz")).status_code == 200
    named = {each["event"]: each for each in told}
    assert named["schema.differs"]["names"] == ["index entities_by_set"]
    assert named["migrations.differ"]["migrations"] == ["0007_audit.sql"]


async def test_an_upgrade_does_not_renew_the_checksum_of_an_edited_migration(
    database: Database,
) -> None:
    edited = "SELECT sha256 FROM schema_migrations WHERE name = '0007_audit.sql'"
    await database.write(
        lambda tx: tx.run("UPDATE schema_migrations SET sha256 = 'x' WHERE name = '0007_audit.sql'")
    )
    newer = {**get_migration_texts(), "9000_more.sql": "CREATE TABLE more (id INTEGER);"}
    assert await migrate(database, NOON, known=newer) == ["9000_more.sql"]
    assert await database.all(edited) == [("x",)]


async def test_the_triggers_of_the_audit_are_missed(database: Database) -> None:
    table = " ON audit" if database.dialect == "postgresql" else ""
    await database.write(lambda tx: tx.run(f"DROP TRIGGER audit_is_kept{table}"))
    found = await list_deviations(database)
    assert found == [Deviation("trigger audit_is_kept", missing=True)]


async def test_what_a_newer_release_has_changed_is_left_to_it(database: Database) -> None:
    newer = {**get_migration_texts(), "9000_less.sql": "-- Works from: 0014\nDROP TABLE memories;"}
    await migrate(database, NOON, known=newer)
    assert await list_deviations(database) == []


@pytest.mark.spec("upgrades.the-schema-is-compared")
async def test_a_start_without_a_table_or_a_column_is_refused(
    database: Database, database_url: str
) -> None:
    await database.write(lambda tx: tx.run("ALTER TABLE runs RENAME COLUMN calls TO asked"))
    with pytest.raises(UnavailableError, match=r"column runs\.calls \(missing\)"):
        async with started(Settings(database_url=database_url, token_key=TOKEN_KEY)):
            pass
