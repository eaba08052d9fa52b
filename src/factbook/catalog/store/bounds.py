"""Limits of what a narrowed token changes, checked in the transaction that changes it."""

from collections.abc import Iterable

from factbook.auth.token_reach import SETS, Narrowing


def check_refs(narrowing: Narrowing | None, refs: Iterable[str]) -> None:
    """Raise NotAllowedError for an entity outside of the namespaces."""
    if narrowing is not None:
        narrowing.check_refs(refs)


def check_owners(narrowing: Narrowing | None, sets: Iterable[str | None]) -> None:
    """Raise NotAllowedError for another set, and for none, where the sets are named."""
    if narrowing is None or narrowing.sets is None:
        return
    for name in sets:
        if name is None:
            raise narrowing.refusal(SETS)
        narrowing.check(SETS, [name])
