"""The lock and the revision of all definitions: checks and the scorecards over them."""

from typing import Final

from factbook.storage import Transaction

# Held shared by whoever evaluates or grades, and alone by whoever changes for which definitions.
LOCK: Final = "check definitions"
REVISION: Final = "checks"


def take(transaction: Transaction) -> None:
    """Take the lock alone; to be called before anything else of the transaction is locked.

    Otherwise it and an evaluation, which holds the lock shared, might wait for each other. Locks of
    the catalog's writes may be held: who has this one waits for none of those.
    """
    transaction.lock_patiently(LOCK)


def share(transaction: Transaction) -> None:
    """Keep published definitions; to be called first, too, by what evaluates in the end.

    Drafts are saved so: what they refer to stays, and locks of definitions come after this one.
    """
    transaction.lock(LOCK, shared=True)
