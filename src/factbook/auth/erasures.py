"""Erasures of people: those that have begun, and the account with everything that belongs to it."""

from collections.abc import Callable, Mapping
from typing import Final, NamedTuple, TypeVar

import msgspec

from factbook.auth import invitations, provider_accounts, sessions, tokens, users
from factbook.auth.oauth import consents
from factbook.storage import Transaction

T = TypeVar("T")


class Erasure(NamedTuple):
    """An erasure of a person that has begun, kept until nothing is left to do.

    `refs` are the references of the person, `texts` what else is replaced wherever it is found,
    and `names` what is replaced where only a person can be meant. `entities` are ids.
    """

    pseudonym: str
    refs: frozenset[str]
    texts: frozenset[str] = frozenset()
    names: frozenset[str] = frozenset()
    entities: frozenset[int] = frozenset()

    @property
    def ref(self) -> str:
        """The reference that takes the place of the person's."""
        return users.PREFIX + self.pseudonym


class ErasedAccount(NamedTuple):
    """Numbers of deleted rows by what they are, and the texts that identified the person."""

    deleted: Mapping[str, int]
    identifiers: frozenset[str]
    subject: str
    scim_ids: list[str]


class _Identifiers(NamedTuple):
    refs: frozenset[str]
    texts: frozenset[str]
    names: frozenset[str]


def unfinished(transaction: Transaction, ref: str) -> Erasure | None:
    """The erasure of this person that has begun and not ended."""
    row = transaction.one(_FIND, (ref,))
    if row is None:
        return None
    stored = msgspec.json.decode(row[1], type=_Identifiers)
    return Erasure(row[0], *stored, msgspec.json.decode(row[2], type=frozenset[int]))


def save(transaction: Transaction, person: str, erasure: Erasure, now: int) -> None:
    """Store an erasure, to be resumed with the same pseudonym if it is interrupted."""
    identifiers = msgspec.json.encode(erasure[1:4]).decode()
    entities = msgspec.json.encode(sorted(erasure.entities)).decode()
    transaction.run(_SAVE, (erasure.pseudonym, person, identifiers, entities, now))


def while_open(erasure: Erasure, work: Callable[[Transaction], T]) -> Callable[[Transaction], T]:
    """Wrap work so that the database lets it put the pseudonym into records of the audit."""

    def within(transaction: Transaction) -> T:
        transaction.run(_OPEN, (1, erasure.pseudonym))
        result = work(transaction)
        transaction.run(_OPEN, (0, erasure.pseudonym))
        return result

    return within


def finish(transaction: Transaction, erasure: Erasure) -> None:
    """Forget a finished erasure: from now on nothing leads from the pseudonym to the person."""
    transaction.run("DELETE FROM erasures WHERE pseudonym = ?", (erasure.pseudonym,))


def delete_account(transaction: Transaction, ref: str) -> ErasedAccount:
    """Delete an account and everything of it; also what is there without an account.

    Raises ConflictError if no administrator would be left.
    """
    account = users.lock_to_erase(transaction, ref)
    scim_ids = provider_accounts.linked_users(transaction, ref)
    deleted = {
        "sessions": sessions.end_all(transaction, ref),
        "invitations": invitations.erase(transaction, ref),
        "OAuth consents": consents.end_all(transaction, ref),
        "tokens": tokens.erase(transaction, ref),
        "account links": provider_accounts.erase(transaction, ref),
        "accounts": users.erase(transaction, ref),
    }
    return ErasedAccount(deleted, frozenset(account) - {""}, account.subject, scim_ids)


_FIND: Final = "SELECT pseudonym, identifiers, entities FROM erasures WHERE person = ?"

_SAVE: Final = """
INSERT INTO erasures (pseudonym, person, identifiers, entities, begun_at, is_open)
VALUES (?, ?, ?, ?, ?, 0)
ON CONFLICT (pseudonym) DO UPDATE SET identifiers = excluded.identifiers,
    entities = excluded.entities
"""

_OPEN: Final = "UPDATE erasures SET is_open = ? WHERE pseudonym = ?"
