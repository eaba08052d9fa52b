"""The terms of a push: what its query and If-Match header ask for."""

import re
from collections.abc import Callable
from typing import NamedTuple

from factbook.api.requests import Request
from factbook.catalog.store.planning import Guards
from factbook.errors import InputError

_PERCENT = re.compile(r"(\d{1,3}(?:\.\d+)?)%")


class Terms(NamedTuple):
    """On which terms a set is replaced."""

    guards: Guards
    dry_run: bool


def terms_of(request: Request) -> Terms:
    """The terms in the query of a push; raises InputError for what is none."""
    request.allow_only("dryRun", "onConflict", "maxRemovals")
    return Terms(guards_of(request), request.flag("dryRun"))


def guards_of(request: Request) -> Guards:
    """The guards in the query and the If-Match header; raises InputError for what is none."""
    conflict = request.get("onConflict")
    if conflict not in (None, "take"):
        raise InputError(f'onConflict has to be "take" when it is given, not "{conflict}".')
    return Guards(
        if_match=request.header(b"if-match"),
        max_removals=_max_removals(request.get("maxRemovals")),
        take=conflict == "take",
    )


def _max_removals(text: str | None) -> Callable[[int], int] | None:
    if text is None:
        return None
    if text.isascii() and text.isdigit() and len(text) < 12:
        number = int(text)
        return lambda count: number
    match = _PERCENT.fullmatch(text)
    if match and (percent := float(match[1])) <= 100:
        return lambda count: int(count * percent / 100)
    raise InputError(f'maxRemovals has to be a number or a percentage such as 10%, not "{text}".')
