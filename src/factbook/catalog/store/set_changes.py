"""Changes of some entities of a set, decided on in the transaction that makes them."""

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from typing import TypeVar

from factbook.catalog import people_trust, sets
from factbook.catalog.push_rules import PushRules
from factbook.catalog.sets import Prepared
from factbook.catalog.store import apply, diff, locks
from factbook.catalog.store.apply import Actor
from factbook.catalog.store.diff import Guards
from factbook.catalog.store.locks import WriteLocks
from factbook.storage import Transaction, Write

T = TypeVar("T")


@dataclass(frozen=True)
class SetChange:
    """Entities to add or update, and references to remove."""

    wanted: Sequence[Prepared] = ()
    gone: Collection[str] = ()


async def change(
    write: Write,
    name: str,
    decide: Callable[[Transaction], tuple[SetChange, T]],
    actor: Actor,
    rules: PushRules,
    *,
    kept: int,
) -> T:
    """Make the change that `decide` makes up its mind for, and return its other result.

    It is called when nobody else writes the set, and again if the transaction begins anew. Raises
    ConflictError if another owner has a wanted entity, PayloadTooLargeError if the set is full.
    """
    held = WriteLocks({locks.owner(name, ""): False})

    def work(transaction: Transaction) -> T:
        held.begin(transaction)
        wanted, result = decide(transaction)
        plan = diff.addition(transaction, name, wanted.wanted, Guards(), wanted.gone)
        if plan.set is not None and plan.added:
            sets.check_size(plan.set.item_count + len(plan.added) - len(plan.removed), rules)
        apply.apply(transaction, plan, actor, held, kept=kept)
        return result

    return await write(work)


def foreign_owners(transaction: Transaction, name: str, refs: Collection[str]) -> dict[str, str]:
    """The references that belong to others than this set, each with its owner.

    Those that the set takes from others, as it outranks them, are left out.
    """
    found = diff.owners(transaction, list(refs))
    return {
        ref: owner or diff.OUTSIDE
        for ref, (_, owner) in found.items()
        if owner != name and not people_trust.outranks(name, owner, ref)
    }


def owned(transaction: Transaction, name: str, refs: Collection[str]) -> set[str]:
    """The references of entities that are in this set."""
    found = diff.owners(transaction, list(refs))
    return {ref for ref, (_, owner) in found.items() if owner == name}


def size(transaction: Transaction, name: str) -> int:
    """The number of entities in a set."""
    return diff.set_row(transaction, name).item_count
