"""Consistency of the search rows with the documents, on a sample of the entities."""

from typing import Final

from factbook.catalog.store.derived import Derived
from factbook.catalog.store.documents import DOCUMENT
from factbook.operations.doctor.findings import Finding, ok, problem
from factbook.storage import Database
from factbook.storage.database import ReadSnapshot

TOPIC: Final = "search"
_SAMPLE: Final = 50


async def check(database: Database) -> Finding:
    """Derive the rows of some entities anew, and look for them."""
    [low, high] = await database.one("SELECT MIN(id), MAX(id) FROM entities") or (None, None)
    if low is None:
        return ok(TOPIC, "There are no entities yet.")
    step = max(1, (high - low) // _SAMPLE)
    # At one moment: a push changes documents and rows together.
    async with database.moment() as moment:
        ids, refs, documents = await moment.columns(_SAMPLED, (list(range(low, high + 1, step)),))
        rows = list(zip(ids or (), refs or (), documents or (), strict=True))
        wrong = [ref for id_, ref, document in rows if not await _found(moment, id_, ref, document)]
    if wrong:
        what = f"Filters do not find {len(wrong)} of {len(rows)} entities as they are: {wrong[0]}."
        advice = "Push their sets again with another content, or report it: that is a bug."
        return problem(TOPIC, what, advice)
    return ok(TOPIC, f"Filters agree with the documents of {len(rows)} entities.")


async def _found(moment: ReadSnapshot, id_: int, ref: str, document: str) -> bool:
    """Whether every row that the document gives rise to is there: each is looked up by its key."""
    for row in Derived.of(ref, document).search:
        [stored] = await moment.columns(_STORED, (*row, id_))
        if not stored:
            return False
    return True


_SAMPLED: Final = f"""
SELECT LIST_OF(e.id), LIST_OF(e.ref), LIST_OF({DOCUMENT}) FROM entities e WHERE e.id IN LIST(?)
"""  # noqa: S608
_STORED: Final = """
SELECT LIST_OF(s.entity_id) FROM search s JOIN search_keys k ON k.id = s.key_id
WHERE k.key = ? AND s.value = ? AND s.original = ? AND s.entity_id = ?
"""
