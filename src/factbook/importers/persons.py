"""The accounts of a system that are people: one rule for every importer.

A person is somebody who can sign in. Service accounts, accounts that are disabled, and those of
people who left are in no part, in no group, and own nothing.
"""

from collections import Counter
from collections.abc import Iterable
from typing import Protocol, TypeVar


class HostAccount(Protocol):
    """Account as a system describes it."""

    @property
    def is_service(self) -> bool:
        """True for the account of a program."""

    @property
    def is_disabled(self) -> bool:
        """True for an account that nobody can sign in with."""


Account = TypeVar("Account", bound=HostAccount)


def is_person(account: HostAccount) -> bool:
    """True for the account of a person who can sign in."""
    return not (account.is_service or account.is_disabled)


def persons(accounts: Iterable[Account], left_out: Counter[str]) -> list[Account]:
    """The accounts of people; the others are counted in `left_out`."""
    found = []
    for one in accounts:
        if is_person(one):
            found.append(one)
        else:
            left_out["service accounts" if one.is_service else "disabled accounts"] += 1
    return found
