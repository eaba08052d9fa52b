"""What the catalog keeps for reads, compared with a rebuild from the documents."""

import json
from collections import Counter
from typing import Any, NamedTuple

from factbook.catalog import kinds
from factbook.catalog.store.conditions import flatten_document
from factbook.storage import Database


class StoredRow(NamedTuple):
    """A row of the entities, with the name of its set."""

    id: int
    ref: str
    uid: str
    etag: str
    kind: str
    namespace: str
    name: str
    document: str
    relations: str
    compliance: int
    set: str | None


async def verify(database: Database) -> list[StoredRow]:
    """The entities, after every table beside them was found to be as a rebuild would make it."""
    entities = [StoredRow(*row) for row in await database.all(_ENTITIES)]
    documents: dict[int, Any] = {row.id: json.loads(row.document) for row in entities}
    edges = {
        row.id: kinds.derive_relations(row.kind, row.namespace, documents[row.id]["spec"])[0]
        for row in entities
    }
    both = {row.ref: set(edges[row.id]) for row in entities}
    for row in entities:
        for type_, target in edges[row.id]:
            if target in both:
                both[target].add((kinds.REVERSE_RELATIONS[type_], row.ref))
    for row in entities:
        assert f"{row.kind}:{row.namespace}/{row.name}" == row.ref
        assert row.relations == kinds.render_relations(both[row.ref]), row.ref
        own = kinds.compute_document_bits(documents[row.id]["metadata"], documents[row.id]["spec"])
        assert row.compliance == kinds.replace_relation_bits(own, both[row.ref])
    assert sorted(await database.all(_SEARCH)) == sorted(
        (*row, id_) for id_, document in documents.items() for row in flatten_document(document)
    )
    assert sorted(
        await database.all("SELECT source_id, type, target_ref FROM relations")
    ) == sorted((id_, *edge) for id_, stated in edges.items() for edge in stated)
    counts: dict[str, int] = dict(await database.all("SELECT name, item_count FROM sets"))
    assert Counter(counts) == Counter(row.set for row in entities if row.set is not None)
    for name in counts:
        assert sorted(await order(database, name)) == sorted(
            row.ref for row in entities if row.set == name
        )
    return entities


async def order(database: Database, name: str) -> list[str]:
    """The references of a set in their order."""
    return [row[0] for row in await database.all(_ORDER, (name,))]


_ENTITIES = """
SELECT e.id, e.ref, e.uid, e.etag, e.kind, e.namespace, e.name, e.head || e.body || '}',
    e.relations, e.compliance, s.name
FROM entities e LEFT JOIN sets s ON s.id = e.set_id
"""

_SEARCH = """
SELECT k.key, s.value, s.original, s.entity_id FROM search s JOIN search_keys k ON k.id = s.key_id
"""

_ORDER = """
SELECT e.ref FROM set_items i JOIN sets s ON s.id = i.set_id
    JOIN entities e ON e.id = i.entity_id
WHERE s.name = ? ORDER BY i.position
"""
