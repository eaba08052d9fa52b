"""Events of a write: of the set as a whole, and of the entities that it changed."""

from collections.abc import Iterator, Sequence

from factbook.catalog.store.diff import Existing, SetRow, WritePlan
from factbook.catalog.store.index_rows import portions
from factbook.events import event
from factbook.events.event import Change, EventRow


def of_plan(
    target: SetRow | None, plan: WritePlan, by: str, restored: int | None
) -> Iterator[EventRow]:
    """Events for the set after the plan, if there is one, and for every entity that changed."""
    if target is not None:
        yield _of_set(target, plan, by, restored)
    name, revision = (target.name, target.revision) if target is not None else (None, 0)
    added = [item.ref for item in plan.added]
    removed = [item.ref for item in plan.removed]
    reused = set(added).intersection(removed)
    groups: tuple[tuple[Change, list[str]], ...] = (
        # The event of the new holder of a name follows that of the old one.
        ("removed", sorted(reused)),
        ("added", added),
        ("updated", [item.ref for item, _ in (*plan.updated, *plan.taken)]),
        ("removed", [ref for ref in removed if ref not in reused]),
    )
    for change, refs in groups:
        for some in portions(refs):
            yield event.of_entities(name, revision, by, {change: some})


def of_loss(target: SetRow, lost: Sequence[Existing], by: str) -> EventRow:
    """An event for a set that has lost entities to another one."""
    return _of_set(target, WritePlan(target, removed=list(lost)), by, None)


def _of_set(target: SetRow, plan: WritePlan, by: str, restored: int | None) -> EventRow:
    changes = plan.changes
    del changes["unchanged"]
    return event.of_set(
        target.name, target.revision, by, target.item_count, changes, restored=restored
    )
