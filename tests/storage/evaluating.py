"""Functions that run in a transaction, with the evaluation of what they touch."""

from collections.abc import Callable
from typing import TypeVar

from factbook.storage import Transaction

T = TypeVar("T")


def evaluating(work: Callable[[Transaction], T]) -> Callable[[Transaction], T]:
    """Do the work, then evaluate the checks that read what it touched."""

    def evaluated(transaction: Transaction) -> T:
        result = work(transaction)
        transaction.evaluate_checks()
        return result

    return evaluated
