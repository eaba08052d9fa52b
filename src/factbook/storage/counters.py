"""Named counters in the database, which all processes share and every room may have."""

from typing import Final

from factbook.storage.database import Database, Transaction

VALUE: Final = "SELECT value FROM counters WHERE name = ?"


def expression(name: str) -> str:
    """The value of a counter as an expression of SQL, for statements that compare with it."""
    return f"({VALUE.replace('?', repr(name))})"


async def value(database: Database, name: str) -> int:
    """The value of a counter; 0 without one."""
    row = await database.one(VALUE, (name,))
    return int(row[0]) if row else 0


async def last_value(database: Database, name: str) -> int:
    """The same as of the last refresh of finds, which costs next to nothing."""
    row = await database.find(_FOUND, name, small=True)
    return int(row[1]) if row else 0


def value_within(transaction: Transaction, name: str) -> int:
    """The value of a counter within a transaction; 0 without one."""
    row = transaction.one(VALUE, (name,))
    return int(row[0]) if row else 0


def put(transaction: Transaction, name: str, number: int) -> None:
    """Set a counter, which others may not count up meanwhile."""
    transaction.run("UPDATE counters SET value = ? WHERE name = ?", (number, name))


def lift(transaction: Transaction, name: str, number: int) -> None:
    """Raise a counter to a number, unless it is higher already."""
    transaction.run(
        "UPDATE counters SET value = ? WHERE name = ? AND value < ?", (number, name, number)
    )


def take(transaction: Transaction, name: str, count: int = 1) -> range:
    """Count up, and return `count` consecutive integers that were never used before."""
    if count == 0:
        return range(0)
    row = transaction.one(_TAKE, (count, name))
    assert row is not None
    return range(row[0] - count + 1, row[0] + 1)


def take_aside(transaction: Transaction, name: str, count: int) -> range:
    """The same for a transaction that may take long, while others count up, too.

    The integers of a transaction that fails are never used.
    """
    if count == 0:
        return range(0)
    with transaction.aside() as aside:
        return take(aside, name, count)


_FOUND: Final = "SELECT name, value FROM counters WHERE name IN LIST(?)"

_TAKE = "UPDATE counters SET value = value + ? WHERE name = ? RETURNING value"
