"""Filters of the pages of checks: owners, teams with all below them, states."""

import re
from collections.abc import Iterable, Sequence
from typing import Final

from factbook.catalog import ref as refs
from factbook.catalog.store import hierarchy
from factbook.checks import state
from factbook.checks.levels.group_hierarchy import GroupHierarchy
from factbook.datasources.fact_columns import NOTHING
from factbook.errors import InputError, NotFoundError
from factbook.schemas import patterns
from factbook.web.data_sources.fact_across import Address
from factbook.web.site.page_context import PageContext

STATES: Final = [
    ("", "Any"),
    *((word, word.replace("-", " ").capitalize()) for word in state.WORDS),
]
_LARGEST_PAGE: Final = 10_000


def definition_id(visit: PageContext, noun: str) -> str:
    """The id in the address; raises NotFoundError for what no check or scorecard is called."""
    text = visit.request.parameter("id")
    if not re.fullmatch(patterns.SOURCE_ID, text):
        raise NotFoundError(f"There is no {noun} of this name.")
    return text


def address(visit: PageContext, path: str, names: Iterable[str]) -> Address:
    """The address of a page with those of its parameters that are given."""
    return Address(path, {name: text for name in names if (text := visit.query(name))})


def team(visit: PageContext) -> str | None:
    """The team that is asked for; raises InputError for what is no reference."""
    text = visit.query("team")
    return refs.canonical(text, kind="group") if text else None


async def owners(visit: PageContext) -> Sequence[str]:
    """The owners that are asked for: one, or a team with all groups below it; all if empty.

    Raises InputError for what is no reference.
    """
    group, owner = team(visit), visit.query("owner")
    if group is not None:
        tree = GroupHierarchy(await hierarchy.group_parents(visit.state.database))
        return sorted(tree.within(group))
    if owner == NOTHING:
        return [""]
    return [refs.canonical(owner, kind="group")] if owner else []


def state_asked(visit: PageContext) -> str | None:
    """The state that is asked for; raises InputError for another word."""
    word = visit.query("state") or None
    if word is not None and word not in state.WORDS:
        raise InputError(f"A result is {', '.join(state.WORDS)}.")
    return word


def place(visit: PageContext) -> int:
    """The id of the entity that a page begins after; raises InputError."""
    return _number(visit.query("after"), 2**53, 0)


def page_number(visit: PageContext) -> int:
    """The number of a page of a list, from 1; raises InputError."""
    return max(1, _number(visit.query("page"), _LARGEST_PAGE, 1))


def _number(text: str, most: int, default: int) -> int:
    if not text:
        return default
    is_number = text.isascii() and text.isdigit() and len(text) <= len(str(most))
    if not is_number or int(text) > most:
        raise InputError("The address of this page is incomplete.")
    return int(text)
