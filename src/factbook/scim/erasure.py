"""Users of the identity provider whose data is deleted with a person's."""

from collections.abc import Iterator, Sequence
from typing import Any, Final

from factbook.auth import users
from factbook.errors import ConflictError
from factbook.scim import entities, store
from factbook.scim.store import ScimRow
from factbook.storage import Transaction


def delete_users(
    transaction: Transaction, ref: str, linked: Sequence[str], subject: str
) -> list[ScimRow]:
    """Delete the SCIM users that are this person, and return them.

    Raises ConflictError if one is active, as the identity provider would push it again, or if
    several have the person's name.
    """
    found = _users(transaction, ref, linked, subject)
    for row in found:
        if row.active:
            raise ConflictError(
                f"The SCIM user {row.name} is active. Remove the person at the identity provider "
                "first, or it pushes the data again."
            )
        store.delete(transaction, row.id)
    return found


def texts(value: Any) -> Iterator[str]:
    """The texts in the attributes of a user that name the person."""
    if isinstance(value, dict):
        for name, inner in value.items():
            if name in _NAMING:
                yield from texts(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from texts(inner)
    elif isinstance(value, str):
        yield value


def _users(
    transaction: Transaction, ref: str, linked: Sequence[str], subject: str
) -> list[ScimRow]:
    proven = list(store.rows_of(transaction, linked).values())
    proven += store.users_of_subject(transaction, subject)
    proven += store.users_disabled_with(transaction, ref)
    called = store.users_called(transaction, ref, ref.removeprefix(users.PREFIX))
    proven += [row for row in called if row.ref == ref]
    if proven:
        return list({row.id: row for row in proven}.values())
    named = [row for row in called if not row.ref and _first_ref(row) == ref]
    if len(named) > 1:
        names = ", ".join(row.name for row in named)
        raise ConflictError(
            f"Several inactive SCIM users have this name: {names}. Delete the person's at the "
            "identity provider first."
        )
    return named


def _first_ref(row: ScimRow) -> str:
    return entities.references("User", row.name, row.id, strict=False)[0]


_NAMING: Final = frozenset(
    {
        *("userName", "displayName", "nickName", "name", "formatted", "externalId", "profileUrl"),
        *("emails", "phoneNumbers", "addresses", "value"),
    }
)
