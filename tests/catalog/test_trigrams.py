"""Texts that few entities have: found through indexes of trigrams as without them."""

import random
from typing import Any

import pytest

from factbook.catalog.store import browse
from factbook.catalog.store.conditions import AllOf, Contains
from factbook.storage import Database
from factbook.storage.database import Transaction
from tests.api.querying import page
from tests.service import Service
from tests.soak import seeds

ON_POSTGRESQL = pytest.mark.parametrize("database_url", ["postgresql"], indirect=True)
FIELDS = ("metadata.name", "metadata.title", "metadata.description", "metadata.tags")
# Letters whose lower case is longer, is shared, or is ASCII; wildcards; what nobody sees.
PIECES = (
    *("pay", "Pay", "ledger", "a", "B", "1", "42", " ", "-", ".", "_", "%", "\\", "'", '"', "é"),
    *("e\u0301", "\u0130", "I", "ß", "ẞ", "\u017f", "\u212a", "Σ", "ς", "日本語", "🦊", "\u200b"),
    *("\u00ad", "\ufeff", "{", "}", ",", "$$", "\x01", "?"),
)


def text(chance: random.Random, most: int) -> str:
    return "".join(chance.choice(PIECES) for _ in range(chance.randint(1, most)))


def entity(number: int, chance: random.Random) -> dict[str, Any]:
    """An entity with random texts; the name has no character that a name may not have."""
    name = "".join(piece for piece in text(chance, 5) if piece.isprintable() and piece not in "/:")
    metadata: dict[str, Any] = {"name": f"{name.strip()}n{number}"}
    if chance.random() < 0.5:
        metadata["title"] = text(chance, 8)
    if chance.random() < 0.5:
        metadata["description"] = text(chance, chance.choice((10, 120)))
    if chance.random() < 0.5:
        metadata["tags"] = [text(chance, 4) for _ in range(chance.randint(1, 3))]
    return {"apiVersion": "v1", "kind": "Component", "metadata": metadata}


def part_of(chance: random.Random, items: list[dict[str, Any]]) -> str:
    """Some characters of a text of an entity, in another case."""
    values = [chance.choice(items)["metadata"].get(key) for key in ("name", "title", "description")]
    whole = chance.choice([value for value in values if value])
    start = chance.randrange(len(whole))
    found: str = whole[start : start + chance.choice((1, 2, 3, 5, 9))]
    return chance.choice((found, found.upper(), found.lower()))


async def is_offered(database: Database) -> bool:
    sql = "SELECT 1 FROM pg_available_extensions WHERE name = 'pg_trgm'"
    return database.dialect == "postgresql" and await database.one(sql) is not None


async def indexed(database: Database) -> None:
    """Make the indexes, or on a server without the extension others of their names."""
    if database.dialect != "postgresql" or await browse.build_trigram_indexes(database, least=1):
        return
    keys = await database.all(
        "SELECT id FROM search_keys WHERE key IN LIST(?)", (list(FIELDS[1:]),)
    )
    ids = ",".join(str(id_) for [id_] in keys)

    def create(transaction: Transaction) -> None:
        transaction.run("CREATE INDEX entities_ref_trgm ON entities (ref)")
        transaction.run(
            "CREATE INDEX search_texts_trgm ON search (value) "
            f"WHERE key_id = ANY ('{{{ids}}}'::bigint[])"
        )

    await database.write(create)


@pytest.mark.slow
@pytest.mark.spec("catalog.by-query")
@pytest.mark.parametrize("seed", seeds(1, soak=3))
async def test_every_text_finds_what_it_finds_without_indexes(service: Service, seed: int) -> None:
    chance = random.Random(seed)
    items = [entity(number, chance) for number in range(300)]
    pushed = await service.push("all", *items)
    assert pushed.status_code == 200, pushed.text
    texts = [part_of(chance, items) for _ in range(60)] + [text(chance, 3) for _ in range(20)]
    asked = [
        {"fullTextFilterTerm": term.replace("\0", ""), "limit": 1_000, "fullTextFilterFields": each}
        for term in texts
        for each in (",".join(FIELDS[:2]), ",".join(chance.sample(FIELDS, chance.randint(1, 4))))
    ]
    plain = [await page(service, **question) for question in asked]
    await indexed(service.state.database)
    assert [await page(service, **question) for question in asked] == plain
    assert any(0 < found["totalItems"] < 5 for found in plain)
    assert any(found["totalItems"] > 50 for found in plain)


@ON_POSTGRESQL
async def test_a_text_of_few_is_looked_up_and_one_of_many_is_not(service: Service) -> None:
    names = [*(f"ledger-{number}" for number in range(20)), "payments"]
    items = [{"apiVersion": "v1", "kind": "API", "metadata": {"name": name}} for name in names]
    items.append(
        {"apiVersion": "v1", "kind": "API", "metadata": {"name": "x", "title": "Payments"}}
    )
    await service.push("all", *items)
    database = service.state.database
    few, many = (AllOf([Contains(FIELDS, text)]) for text in ("payment", "ledger"))
    assert await browse.look_up_text(database, few) == few
    await indexed(database)
    match await browse.look_up_text(database, few):
        case AllOf([browse.Among(ids)]):
            assert len(ids) == 2
        case other:
            pytest.fail(f"not looked up: {other}")
    others = [
        Contains(FIELDS, "pa"),
        Contains(["metadata.uid"], "payment"),
        Contains([], "payment"),
    ]
    for same in (many, *(AllOf([one]) for one in others)):
        assert await browse.look_up_text(database, same) == same


async def test_indexes_are_made_where_the_extension_can_be_had(service: Service) -> None:
    database = service.state.database
    item = {"apiVersion": "v1", "kind": "API", "metadata": {"name": "one"}}
    assert await browse.build_trigram_indexes(database, least=1) == []
    await service.push("all", item)
    both = ["entities_ref_trgm", "search_texts_trgm"] if await is_offered(database) else []
    assert await browse.build_trigram_indexes(database) == []
    assert await browse.build_trigram_indexes(database, least=1) == both[:1]
    titled = {**item, "metadata": {"name": "two", "title": "A ledger"}}
    await service.push("others", titled)
    found = await page(service, fullTextFilterTerm="ledge")
    assert found["totalItems"] == 1  # before the index has titles
    assert await browse.build_trigram_indexes(database, least=1) == both[1:]
    assert await browse.build_trigram_indexes(database, least=1) == []
    assert (await page(service, fullTextFilterTerm="ledge"))["totalItems"] == 1
