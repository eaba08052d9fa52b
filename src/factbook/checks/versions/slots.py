"""Slots: the places of checks in the states of an entity.

A slot that is not used any more keeps its bytes until they are cleared, and is given to no other
check before.
"""

from itertools import count

from factbook.checks.states import batch_order
from factbook.storage import Transaction


def free(transaction: Transaction) -> int:
    """A slot that nothing uses; the transaction holds the lock of the definitions alone."""
    used = {slot for (slot,) in transaction.all(_USED)}
    return next(slot for slot in count(1) if slot not in used)


def retire(transaction: Transaction, slot: int) -> None:
    """Take a slot from its check; its bytes are cleared later."""
    transaction.run("DELETE FROM check_counts WHERE slot = ?", (slot,))
    place = batch_order.first_place(transaction)
    transaction.run("INSERT INTO retired_slots (slot, cleared_up_to) VALUES (?, ?)", (slot, place))


def retired(transaction: Transaction) -> dict[int, int]:
    """The slots to clear, each with the place up to which it was cleared."""
    return dict(transaction.all("SELECT slot, cleared_up_to FROM retired_slots ORDER BY slot"))


def note_cleared(transaction: Transaction, slots: list[int], cleared_up_to: int) -> None:
    """Record the place up to which the slots were cleared."""
    transaction.run(
        "UPDATE retired_slots SET cleared_up_to = ? WHERE slot IN LIST(?)", (cleared_up_to, slots)
    )


def release(transaction: Transaction, slots: list[int]) -> None:
    """Give back slots that are cleared for every entity."""
    transaction.run("DELETE FROM retired_slots WHERE slot IN LIST(?)", (slots,))


_USED = """
SELECT slot FROM checks WHERE slot IS NOT NULL
UNION ALL SELECT pending_slot FROM checks WHERE pending_slot IS NOT NULL
UNION ALL SELECT slot FROM retired_slots
"""
