"""Scorecards and checks in a database, for tests of what is stored of them."""

from typing import Any

from factbook.checks.definitions import definition_versions, publications
from factbook.checks.definitions.definition_versions import StoredScorecard, scorecard_store
from factbook.storage import Database, Transaction
from tests.service import NOON

ACTOR = "user:default/tester"
COLUMNS = ("id", "draft", "version", "created_at", "created_by", "updated_at", "updated_by")


def document(id_: str = "readiness", **members: Any) -> dict[str, Any]:
    """A scorecard of two levels."""
    plain = {
        "id": id_,
        "title": id_.title(),
        "levels": ["bronze", "silver"],
        "entries": [{"check": "c1", "level": "bronze"}, {"check": "c2", "level": "silver"}, "c3"],
    }
    return {**plain, **members}


async def add_checks(database: Database, *ids: str) -> None:
    """Checks that nobody has published."""
    rows = [(id_, "{}", "0.0.0", 0, ACTOR, 0, ACTOR) for id_ in ids]
    await database.write(lambda tx: tx.insert("checks", COLUMNS, rows))


async def put(database: Database, given: dict[str, Any]) -> StoredScorecard:
    """A draft."""
    return await database.write(lambda tx: scorecard_store.put(tx, given, ACTOR, NOON))


async def publish(database: Database, id_: str = "readiness", now: int = NOON) -> StoredScorecard:
    """A publication that is pending."""
    return await database.write(lambda tx: scorecard_store.publish(tx, id_, ACTOR, now))


async def effect(database: Database) -> list[str]:
    """Put what is pending into effect."""

    def work(transaction: Transaction) -> list[str]:
        transaction.lock(publications.DEFINITIONS_LOCK)
        return definition_versions.put_grades_into_effect(transaction)

    return await database.write(work)


async def stored(database: Database, id_: str = "readiness") -> StoredScorecard:
    """The scorecard as it is now."""
    found = await scorecard_store.one(database, id_)
    assert found is not None
    return found
