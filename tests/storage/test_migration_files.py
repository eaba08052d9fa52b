"""Every migration leaves the release before working, and none is edited after it has landed."""

import re
from pathlib import Path

import pytest

import factbook
from factbook import __version__
from factbook.storage.database import translate_schema
from factbook.storage.migrations import digest_migration, find_first_working, get_migration_texts
from tests.storage.landed import EARLIER, EDITED, LANDED, earlier_text

# The first of these were made before anybody had to upgrade.
FIRST_WITH_RULES = 11
# What adds, and takes nothing from who knows nothing of it. A column that has to have a value has a
# default, as the release before gives none; an index on a table that exists comes CONCURRENTLY.
EXPANDING = (
    r"CREATE TABLE (?!IF)",
    # Some databases have it from 0005, others not.
    r"CREATE TABLE IF NOT EXISTS history_trims ",
    r"CREATE (UNIQUE )?INDEX CONCURRENTLY \w+ ON ",
    r"ALTER TABLE \w+ ADD COLUMN \w+ \w+( NOT NULL DEFAULT \S+| DEFAULT \S+)?$",
    # How full pages are made from now on.
    r"ALTER TABLE \w+ SET \(fillfactor = \d+\)$",
    r"INSERT INTO ",
    r"CREATE (OR REPLACE )?FUNCTION ",
    r"CREATE TRIGGER ",
    # Another follows that refuses whatever the release before does.
    r"DROP TRIGGER audit_is_not_changed$",
    # Triggers of partitions.
    r"DO \$\$ ",
)
NEW_TABLE = r"CREATE TABLE (\w+)"
INDEX = r"CREATE (?:UNIQUE )?INDEX \w+\s+ON (\w+)"


def problems(name: str, text: str) -> list[str]:
    """What in a migration could break the release before."""
    if find_first_working(text) is not None:
        return _contracting(name, text)
    statements = [
        re.sub(r"\s+", " ", each)
        for dialect in ("sqlite", "postgresql")
        for each in translate_schema(text, dialect)
    ]
    tables = {found[1] for each in statements if (found := re.match(NEW_TABLE, each))}
    return [
        each
        for each in statements
        if not any(re.match(form, each) for form in EXPANDING)
        and not ((found := re.match(INDEX, each)) and found[1] in tables)
        and not ("CONCURRENTLY" in text and re.match(r"CREATE (UNIQUE )?INDEX ", each))
    ]


def _contracting(name: str, text: str) -> list[str]:
    """What it takes away has to be superfluous since a release that came out before this one."""
    since = find_first_working(text)
    known = {int(each.name[:4]): each.release for each in LANDED}
    release = known.get(int(name[:4]), __version__)
    if since in known and known[since] != release:
        return []
    return [f"{name}: nothing needs it since {since}, which no earlier release had"]


def test_no_migration_was_edited_after_it_landed() -> None:
    texts = get_migration_texts()
    assert {each.name: each.sha256 for each in LANDED} == {
        name: digest_migration(text) for name, text in texts.items()
    }, "a landed file never changes; `python -m tests.storage.landed` prints the row of a new one"


def test_the_first_forms_of_edited_migrations_are_kept_as_they_were() -> None:
    assert {name: digest_migration(earlier_text(name)) for name in EARLIER} == EARLIER
    assert {file.name for file in EDITED.iterdir()} == set(EARLIER)


def test_every_migration_leaves_the_release_before_working() -> None:
    found = {
        name: wrong
        for name, text in get_migration_texts().items()
        if int(name[:4]) >= FIRST_WITH_RULES and (wrong := problems(name, text))
    }
    assert found == {}


def test_what_only_adds_is_let_through(subtests: pytest.Subtests) -> None:
    texts = [
        "CREATE TABLE a (id INTEGER PRIMARY KEY); CREATE INDEX b ON a (id);",
        "ALTER TABLE entities ADD COLUMN a TEXT;",
        "ALTER TABLE entities ADD COLUMN a INTEGER NOT NULL DEFAULT 0;",
        "INSERT INTO counters (name, value) VALUES ('a', 0);",
        "CREATE INDEX CONCURRENTLY a ON entities (etag);",
        "-- On postgresql:\nALTER TABLE entities SET (fillfactor = 80);",
    ]
    for text in texts:
        with subtests.test(text=text):
            assert problems("9000_a.sql", text) == []


def test_what_could_break_the_release_before_is_found(subtests: pytest.Subtests) -> None:
    texts = [
        "DROP TABLE entities;",
        "DROP INDEX entities_by_kind;",
        "ALTER TABLE entities DROP COLUMN etag;",
        "ALTER TABLE entities RENAME COLUMN etag TO tag;",
        "ALTER TABLE entities RENAME TO things;",
        "ALTER TABLE entities ADD COLUMN a TEXT NOT NULL;",
        "ALTER TABLE entities ALTER COLUMN etag TYPE BLOB;",
        "ALTER TABLE entities ADD CONSTRAINT a CHECK (id > 0);",
        "UPDATE entities SET etag = '';",
        "DELETE FROM audit;",
        "CREATE INDEX a ON entities (etag);",
        "CREATE UNIQUE INDEX a ON entities (etag);",
        "-- Works from: 9000\nDROP TABLE entities;",
        "-- Works from: 0010\nDROP TABLE entities;",
        "-- On postgresql:\nDROP TABLE entities;",
    ]
    for text in texts:
        with subtests.test(text=text):
            assert problems("9000_a.sql", text) != []


def test_statements_name_their_columns_so_that_a_new_one_changes_nothing_for_them() -> None:
    """A row with one more column would surprise them, and PostgreSQL refuses a plan it has kept."""
    source = Path(factbook.__file__).parent
    wrong = {
        f"{file.relative_to(source)}: {found}"
        for file in source.rglob("*.py")
        for found in re.findall(
            r"SELECT (?:\w+\.)?\* FROM \w+|RETURNING \*|INSERT INTO \w+ VALUES", file.read_text()
        )
    }
    assert wrong == set()
