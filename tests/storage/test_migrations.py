"""Migrations: each once, in order, whoever starts first."""

import asyncio
import subprocess
from pathlib import Path

import pytest

from factbook.settings import Settings
from factbook.storage.database import translate_schema
from factbook.storage.database_url import open_database
from factbook.storage.migrations import list_migrations, migrate
from tests.processes import FACTBOOK, clean_environment
from tests.service import component, started
from tests.storage import first_schema

_DIALECTS = ("sqlite", "postgresql")


async def test_migrations_apply_once_and_are_remembered(database_url: str) -> None:
    database = await open_database(database_url, connections=3)
    assert await migrate(database, 7) == list_migrations()
    assert await migrate(database, 8) == []
    rows = await database.all("SELECT name, applied_at FROM schema_migrations ORDER BY name")
    assert rows == [(name, 7) for name in list_migrations()]
    await database.close()


async def test_two_who_start_at_once_apply_them_once(database_url: str) -> None:
    databases = [await open_database(database_url, connections=3) for _ in range(3)]
    found = await asyncio.gather(*(migrate(database, 7) for database in databases))
    assert sorted(found) == [[], [], list_migrations()]
    for database in databases:
        await database.close()


@pytest.mark.slow
def test_two_processes_that_start_at_once_on_a_new_file_apply_them_once(tmp_path: Path) -> None:
    url = f"--database-url=sqlite:///{tmp_path}/facts.db"
    starters = [
        subprocess.Popen(
            [FACTBOOK, "migrate", url],
            env=clean_environment(),
            cwd=tmp_path,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for _ in range(2)
    ]
    printed = [starter.communicate(timeout=60) for starter in starters]
    assert [starter.returncode for starter in starters] == [0, 0], printed
    assert sorted(out.split() for out, _ in printed) == [[], list_migrations()]


async def test_a_migration_that_fails_leaves_the_schema_as_it_was(database_url: str) -> None:
    database = await open_database(database_url, connections=3)
    await database.write(lambda tx: tx.run("CREATE TABLE leases (mine TEXT)"))
    with pytest.raises(Exception, match=r"(?i)leases.* already exists"):
        await migrate(database, 7)
    with pytest.raises(Exception, match=r"(?i)entities"):
        await database.all("SELECT * FROM entities")
    await database.close()


def test_names_are_numbered_without_gaps() -> None:
    assert [int(name.split("_")[0]) for name in list_migrations()] == list(
        range(1, len(list_migrations()) + 1)
    )


def test_a_migration_is_written_in_the_words_of_each_database() -> None:
    text = """
    CREATE TABLE a (  -- a comment; with a semicolon
        id INTEGER PRIMARY KEY, name SORTED_TEXT NOT NULL, body BLOB
    ) WITHOUT ROWID;

    CREATE INDEX b ON a (name);
    """
    sqlite, postgresql = translate_schema(text, "sqlite"), translate_schema(text, "postgresql")
    assert len(sqlite) == len(postgresql) == 2
    assert "id INTEGER PRIMARY KEY, name TEXT NOT NULL, body BLOB" in sqlite[0]
    assert sqlite[0].endswith("WITHOUT ROWID")
    assert 'id BIGINT PRIMARY KEY, name TEXT COLLATE "C" NOT NULL, body BYTEA' in postgresql[0]
    assert "ROWID" not in postgresql[0]
    assert "comment" not in sqlite[0] + postgresql[0]


def test_what_is_for_one_database_alone_is_kept_from_the_other() -> None:
    text = """
    CREATE TABLE a (id INTEGER);
    -- On sqlite:
    CREATE TRIGGER b BEFORE UPDATE ON a
        BEGIN
            SELECT RAISE(ABORT, 'no');
        END;
    -- On postgresql:
    CREATE FUNCTION c() RETURNS trigger LANGUAGE plpgsql AS $$
        BEGIN
            RETURN NULL;
        END $$;
    -- On both:
    CREATE TABLE d (id INTEGER)
    """
    first = {name: [each.split()[1] for each in translate_schema(text, name)] for name in _DIALECTS}
    assert first == {
        "sqlite": ["TABLE", "TRIGGER", "TABLE"],
        "postgresql": ["TABLE", "FUNCTION", "TABLE"],
    }
    assert translate_schema(text, "sqlite")[1].endswith("END")


@pytest.mark.slow
async def test_a_catalog_of_the_first_schema_is_found_after_the_upgrade(database_url: str) -> None:
    await first_schema.make(database_url)
    async with started(
        Settings(database_url=database_url, token_key="a key of tests, long enough to be one")
    ) as service:
        found = await service.http.get(
            "/api/catalog/entities/by-query", params={"filter": "spec.type=service"}
        )
        assert found.json()["totalItems"] == 1
        facets = await service.http.get("/api/catalog/entity-facets", params={"facet": "spec.type"})
        assert facets.json() == {"facets": {"spec.type": [{"value": "Service", "count": 1}]}}
        pushed = await service.push("mine", component("new"), onConflict="take")
        assert pushed.status_code == 200
