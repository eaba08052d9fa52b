"""Values to choose from in the catalog, remembered for a while."""

import asyncio
from collections.abc import Sequence
from typing import Final, NamedTuple

from factbook.catalog.store import filter_choices
from factbook.catalog.store.filter_choices import FilterChoice
from factbook.clock import SECOND
from factbook.web.site.page_context import PageContext

_MOST: Final = 100
_KEPT: Final = 30 * SECOND


class ListChoices(NamedTuple):
    """The values by parameter, the most frequent or the first ones; none if they are not asked."""

    namespaces: Sequence[FilterChoice] = ()
    owners: Sequence[FilterChoice] = ()
    tags: Sequence[FilterChoice] = ()
    sets: Sequence[FilterChoice] = ()
    types: Sequence[str] = ()
    lifecycles: Sequence[str] = ()
    systems: Sequence[str] = ()
    is_asked: bool = True


class _Kept(NamedTuple):
    """Choices at a revision of the catalog, with the time they were read."""

    revision: tuple[int, int]
    at: int
    choices: ListChoices


class _RememberedChoices:
    """Cache of the last choices: suggestions that take longer to count than the search itself."""

    kept: _Kept | None = None


async def of(visit: PageContext) -> ListChoices:
    """The choices; none for the script, which takes only the results from the page."""
    if visit.request.header(b"sec-fetch-dest") == "empty":
        return ListChoices(is_asked=False)
    database, now = visit.state.database, visit.now
    revision = await filter_choices.revision(database)
    remembered = database.remembered.of(_RememberedChoices)
    kept = remembered.kept
    if kept is None or kept.revision != revision or not 0 <= now - kept.at < _KEPT:
        counted_ones = asyncio.gather(
            filter_choices.namespaces(database, _MOST),
            filter_choices.owners(database, _MOST),
            filter_choices.tags(database, _MOST),
            filter_choices.sets(database, _MOST),
        )
        plain_ones = asyncio.gather(
            filter_choices.values_from(database, "spec.type", "", _MOST),
            filter_choices.values_from(database, "spec.lifecycle", "", _MOST),
            filter_choices.systems_named(database, "", _MOST),
        )
        choices = ListChoices(*await counted_ones, *await plain_ones)
        kept = remembered.kept = _Kept(revision, now, choices)
    return kept.choices


def counted(choices: Sequence[FilterChoice], chosen: str, nothing: str) -> list[tuple[str, str]]:
    """Options of a select with their numbers, ordered by name, including the chosen one."""
    return _options(
        {each.value: f"{each.value} ({each.entities:,})" for each in choices}, chosen, nothing
    )


def plain(values: Sequence[str], chosen: str, nothing: str) -> list[tuple[str, str]]:
    """The same of values without numbers."""
    return _options({value: value for value in values}, chosen, nothing)


def _options(options: dict[str, str], chosen: str, nothing: str) -> list[tuple[str, str]]:
    if chosen:
        options.setdefault(chosen, chosen)
    return [("", nothing), *sorted(options.items(), key=lambda option: option[0].casefold())]
