"""Gaps of a run: missing facts, counted by place and reason."""

from collections.abc import Iterable, Mapping
from typing import Final, Literal, NamedTuple

from factbook.storage import Database, Transaction

# Reasons may name times and addresses; beyond so many of a run, only their first word is kept.
MOST: Final = 200


class RunGap(NamedTuple):
    """Missing facts at a place, with the reason; the place "" is everything about an entity.

    `passing`: they could not be requested, so the last values are kept for a while. `final`:
    according to the vendor they do not exist, or may not be read. `skipped`: the entity does not
    identify a target.
    """

    place: str
    reason: str
    kind: Literal["passing", "final", "skipped"]


class CountedGap(NamedTuple):
    """A gap with the number of entities that have it."""

    place: str
    reason: str
    kind: str
    entities: int


def add(transaction: Transaction, run_id: int, gaps: Mapping[RunGap, int]) -> None:
    """Add to the counts of a run's gaps."""
    if not gaps:
        return
    row = transaction.one("SELECT COUNT(*) FROM run_gaps WHERE run_id = ?", (run_id,))
    is_full = row is not None and row[0] + len(gaps) > MOST
    folded: dict[RunGap, int] = {}
    for gap, count in gaps.items():
        short = gap._replace(reason=gap.reason.partition(":")[0]) if is_full else gap
        folded[short] = folded.get(short, 0) + count
    # In one order everywhere, or two that write the same rows could wait for each other.
    transaction.many(_ADD, [(run_id, *gap, folded[gap]) for gap in sorted(folded)])


def of_run(transaction: Transaction, run_id: int) -> list[CountedGap]:
    """The gaps of a run, most frequent first."""
    return [CountedGap(*row) for row in transaction.all(_OF_RUN, (run_id,))]


async def listed(database: Database, run_id: int) -> list[CountedGap]:
    """The gaps of a run, most frequent first."""
    return [CountedGap(*row) for row in await database.all(_OF_RUN, (run_id,))]


def forget(transaction: Transaction, run_ids: list[int]) -> None:
    """Delete the gaps of these runs."""
    transaction.run("DELETE FROM run_gaps WHERE run_id IN LIST(?)", (run_ids,))


def commonest(gaps: Iterable[CountedGap], asked: int) -> str | None:
    """The main reason for the gaps of a run over `asked` entities; None if there is none.

    Facts that could not be requested come first, then rights that the credential lacks for every
    entity, then the vendor's refusals of single entities as a whole.
    """
    found = list(gaps)
    own = [gap for gap in found if gap.kind == "passing" or _is_refused_to_all(gap, asked)]
    whole = [gap for gap in found if gap.kind == "final" and not gap.place]
    worst = max(own or whole, key=lambda gap: (gap.entities, gap.reason), default=None)
    return None if worst is None else worst.reason


def _is_refused_to_all(gap: CountedGap, asked: int) -> bool:
    return gap.kind == "final" and gap.entities >= asked and gap.reason.startswith("forbidden")


_ADD = """
INSERT INTO run_gaps (run_id, place, reason, kind, entities) VALUES (?, ?, ?, ?, ?)
ON CONFLICT (run_id, place, reason, kind) DO UPDATE SET
    entities = run_gaps.entities + excluded.entities
"""

_OF_RUN = """
SELECT place, reason, kind, entities FROM run_gaps WHERE run_id = ?
ORDER BY entities DESC, reason, place
"""
