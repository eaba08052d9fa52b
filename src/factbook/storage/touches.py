"""Record of what a transaction touched, and the functions that run in it before it commits.

A room that writes tells what it touched and need not know who derives something from that. What is
derived is part of the same transaction: both are committed, or neither is.
"""

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from factbook.storage.database import Transaction

T = TypeVar("T")

# What was touched, the most general word first: ("facts", "github").
Topic = tuple[str, ...]
Touched = dict[Topic, set[int]]


class Touching:
    """The part of a transaction that collects the ids it touched, by topic."""

    touched: Touched

    def touch(self, topic: Topic, ids: Iterable[int]) -> None:
        """Add ids to those that were touched."""
        new = set(ids)
        if new:
            self.touched.setdefault(topic, set()).update(new)


class BeforeCommit:
    """The `functions` of an open database that run before a transaction commits."""

    def __init__(self) -> None:
        self.functions: list[Callable[[Transaction], object]] = []

    def add(self, function: "Callable[[Transaction], object]") -> None:
        """Run a function at the end of every transaction that touched something.

        It may raise RestartError. It has to take its locks in an order that suits all others, as
        the transaction holds those of its own work by then.
        """
        self.functions.append(function)

    def complete(self, work: "Callable[[Transaction], T]", transaction: "Transaction") -> T:
        """Do the work of a transaction and run the functions; returns the result of the work."""
        result = work(transaction)
        if transaction.touched:
            for function in self.functions:
                function(transaction)
        return result
