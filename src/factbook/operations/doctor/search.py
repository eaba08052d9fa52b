"""Consistency of the search rows with the documents, on a sample of the entities."""

from typing import Final

from factbook.catalog.store import index_rows
from factbook.operations.doctor.findings import Finding, ok, problem
from factbook.storage import Database

TOPIC: Final = "search"
_SAMPLE: Final = 50


async def check(database: Database) -> Finding:
    """Derive the search rows of some entities again, and look for them."""
    count, wrong = await index_rows.unfound(database, _SAMPLE)
    if wrong:
        what = f"Filters do not find {len(wrong)} of {count} entities as they are: {wrong[0]}."
        advice = "Push their sets again with another content, or report it: that is a bug."
        return problem(TOPIC, what, advice)
    if not count:
        return ok(TOPIC, "There are no entities yet.")
    return ok(TOPIC, f"Filters agree with the documents of {count} entities.")
