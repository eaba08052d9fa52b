"""The filter language of the catalog API: `kind=component,spec.type=service`.

Source: the catalog API reference. Sets of conditions are OR'ed; within a set they are AND'ed; the
same key with several values matches any of them. Keys and values are compared in lower case.
"""

from collections.abc import Iterable

from factbook.catalog.store.conditions import EVERYTHING, AllOf, AnyOf, Condition, Has
from factbook.errors import InputError

# More would exceed what SQLite nests in one expression.
_MOST = 500


def parse(filters: Iterable[str]) -> Condition:
    """Parse all `filter` parameters into one condition; without any, it matches every entity.

    Raises InputError for a condition without a key, and for too many conditions.
    """
    sets = [found for text in filters if (found := _parse_one(text))]
    if sum(map(len, sets)) > _MOST:
        raise InputError(f"A filter can have {_MOST} conditions at most.")
    if not sets:
        return EVERYTHING
    alternatives = [AllOf([Has(key, values) for key, values in one.items()]) for one in sets]
    return alternatives[0] if len(alternatives) == 1 else AnyOf(alternatives)


def _parse_one(text: str) -> dict[str, list[str] | None]:
    """The values of each key; None means that the key exists."""
    found: dict[str, list[str] | None] = {}
    for part in text.replace("\0", "").split(","):  # as the index leaves it out
        if not part.strip():
            continue
        key, equals, value = (piece.strip() for piece in part.partition("="))
        if not key:
            raise InputError(f'The filter "{text}" has a condition without a key.')
        key = key.lower()
        values = found.setdefault(key, None)
        if equals and values is None:
            found[key] = [value.lower()]
        elif equals and values is not None:
            values.append(value.lower())
    return found
