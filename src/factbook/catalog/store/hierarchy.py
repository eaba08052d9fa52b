"""Relations among the few entities that hold others: groups, and systems of a domain."""

from factbook.storage import Database, Transaction

_GROUPS = """
SELECT r.type, e.ref, r.target_ref FROM entities e JOIN relations r ON r.source_id = e.id
WHERE e.kind = 'group' AND r.type IN ('childOf', 'parentOf')
"""

_SYSTEMS = """
SELECT e.ref, MIN(r.target_ref) FROM entities e JOIN relations r ON r.source_id = e.id
WHERE e.kind = 'system' AND r.type = 'partOf' AND r.target_ref LIKE 'domain:%' GROUP BY e.ref
"""


async def group_parents(database: Database) -> dict[str, set[str]]:
    """The groups that each group is a child of, whichever of the two says so."""
    return _parents(await database.search(_GROUPS))


def group_parents_within(transaction: Transaction) -> dict[str, set[str]]:
    """The same within a transaction."""
    return _parents(transaction.all(_GROUPS))


async def system_domains(database: Database) -> dict[str, str]:
    """The domain that each system is part of: the first by its reference."""
    return dict(await database.search(_SYSTEMS))


def _parents(rows: list[tuple[str, str, str]]) -> dict[str, set[str]]:
    found: dict[str, set[str]] = {}
    for type_, source, target in rows:
        child, parent = (source, target) if type_ == "childOf" else (target, source)
        found.setdefault(child, set()).add(parent)
    return found
