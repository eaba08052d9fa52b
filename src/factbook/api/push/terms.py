"""The terms of a push: what its query and If-Match header ask for."""

from collections.abc import Callable
from typing import NamedTuple

from factbook.api.openapi.parameters import DRY_RUN, IF_MATCH, MAX_REMOVALS, ON_CONFLICT
from factbook.catalog.store.diff import Guards
from factbook.http.requests import Request


class Terms(NamedTuple):
    """On which terms a set is replaced."""

    guards: Guards
    dry_run: bool


def terms_of(request: Request) -> Terms:
    """The terms in the query of a push; raises InputError for what is none."""
    return Terms(guards_of(request), DRY_RUN.of(request))


def guards_of(request: Request) -> Guards:
    """The guards in the query and the If-Match header; raises InputError for what is none."""
    take = ON_CONFLICT.of(request) == "take"
    return Guards(IF_MATCH.of(request), _max_removals(MAX_REMOVALS.of(request)), take)


def _max_removals(text: str | None) -> Callable[[int], int] | None:
    """From a set's item count to the most removals."""
    if text is None:
        return None
    if not text.endswith("%"):
        return lambda count: int(text)
    return lambda count: int(count * float(text[:-1]) / 100)
