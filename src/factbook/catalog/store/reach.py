"""Reach of a plan: other entities whose relations, or whose owners, it may change."""

from typing import Final

from factbook.catalog.store.diff import WritePlan
from factbook.catalog.store.index_rows import Derived
from factbook.storage import Transaction


def others(transaction: Transaction, plan: WritePlan, most: int) -> int:
    """The number of other entities that added and updated ones name, or that name added ones.

    Counting ends soon after `most`. Entities that are named count whether they are there or not.
    """
    items = [*plan.added, *(item for item, _ in plan.updated)]
    own = {item.ref for item in items}
    named: set[str] = set()
    for item in items:
        named.update(target for _, target in Derived.of(item.ref, item.document).edges)
        if len(named) > most + len(own):
            break
    added = [item.ref for item in plan.added]
    [(naming,)] = transaction.all(_NAMING, (added, most + 1))
    return len(named - own) + int(naming)


_NAMING: Final = """
SELECT count(*) FROM (
    SELECT DISTINCT source_id FROM relations WHERE target_ref IN LIST(?) LIMIT ?
) AS naming
"""
