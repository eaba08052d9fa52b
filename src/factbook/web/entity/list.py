"""The catalog: search for entities by text, by what they have and by whose they are."""

import asyncio
import base64
from collections.abc import Sequence
from functools import partial
from typing import Final, NamedTuple

import msgspec

from factbook.auth.permissions import CATALOG_READ
from factbook.catalog.store import browse, filter_choices, overview, totals
from factbook.catalog.store.browse import Order
from factbook.catalog.store.filter_choices import FilterChoice
from factbook.catalog.store.sort_order import Place
from factbook.errors import InputError
from factbook.http.requests import Reply
from factbook.storage import Database
from factbook.web.entity import catalog_columns, catalog_filter, entity_rows
from factbook.web.entity.catalog_export import EXPORT
from factbook.web.entity.catalog_query import (
    DANGLING,
    EXACT,
    MOST_COLUMNS,
    OWNERSHIPS,
    PATH,
    CatalogQuery,
)
from factbook.web.site.endpoint import PageRoute
from factbook.web.site.page_context import PageContext

_ITEMS: Final = 40
_LONGEST_PLACE: Final = 4_000  # characters of a position in an address

_ORDERS: Final = (("name", "By name"), ("kind", "By kind"), ("updated", "Last changed first"))
_MOST_CHOICES: Final = 100


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


async def show(visit: PageContext) -> Reply:
    """Page of matching entities."""
    asked, database = await CatalogQuery.of(visit), visit.state.database
    order = next(order for order in browse.ORDERS if order == (asked.order or "name"))
    place, backward = _place(visit, order)
    cards = await catalog_filter.scorecards(visit)
    wanted, hints = await catalog_filter.of(visit, asked, cards)
    columns, unknown = await catalog_columns.chosen(visit, asked.column, cards)
    exact = asked.count == EXACT
    listed = browse.find(database, wanted, order, _ITEMS, place, backward=backward, exact=exact)
    found, choices = await asyncio.gather(listed, _choices(visit))
    values = await catalog_columns.values(database, columns, found.page.items)
    before, after = _beside(found.page.places, order, found.page.before, found.page.after)
    return visit.page(
        "catalog.html",
        asked=asked,
        rows=(rows := [entity_rows.row(each) for each in found.page.items]),
        columns=columns,
        cells=[
            catalog_columns.cells(columns, row, own)
            for row, own in zip(found.page.items, values, strict=True)
        ],
        column_choices=await catalog_columns.choices(visit, cards) if choices.is_asked else [],
        most_columns=MOST_COLUMNS,
        row_kinds=sorted({row.kind for row in rows}),
        found=found,
        bound=totals.BOUND,
        exactly=asked.address(count=EXACT),
        hints=[*hints, *unknown],
        export=asked.address(EXPORT),
        choices=choices,
        namespaces=_counted(choices.namespaces, asked.namespace, "Any namespace"),
        sets=_counted(choices.sets, asked.set, "Any set"),
        types=_plain(choices.types, asked.type.lower(), "Any type"),
        lifecycles=_plain(choices.lifecycles, asked.lifecycle.lower(), "Any"),
        levels=catalog_filter.level_choices(cards),
        ownerships=OWNERSHIPS,
        danglings=DANGLING,
        broken=await catalog_filter.broken(database, asked, found.page.items),
        orders=_ORDERS,
        order=order,
        order_of={name: asked.address(order=name) for name, _ in _ORDERS},
        before=before and asked.address(**before),
        after=after and asked.address(**after),
        server=visit.server,
        push_word=visit.state.settings.push_word,
    )


def _place(visit: PageContext, order: Order) -> tuple[Place | None, bool]:
    """Place in the address, and whether the page ends before it.

    Raises InputError for an invalid place in this order.
    """
    after, before = visit.query("after"), visit.query("before")
    if not after and not before:
        return None, False
    return _decoded(after or before, order), not after


def _beside(
    places: Sequence[Place], order: Order, before: bool, after: bool
) -> tuple[dict[str, str] | None, dict[str, str] | None]:
    """Parameters of the pages before and after one with these places; None for no page."""
    back = {"before": _encoded(places[0], order)} if places and before else None
    next_ = {"after": _encoded(places[-1], order)} if places and after else None
    return back, next_


def _encoded(place: Place, order: Order) -> str:
    text = msgspec.json.encode([order, *place])
    return base64.urlsafe_b64encode(text).decode().rstrip("=")


def _decoded(text: str, order: Order) -> Place:
    try:
        content = base64.b64decode(text[:_LONGEST_PLACE] + "=" * (-len(text) % 4), altchars=b"-_")
        found: list[str | int] = msgspec.json.decode(content, type=list[str | int])
    except (ValueError, msgspec.MsgspecError):
        raise _wrong() from None
    if found[:1] != [order] or not browse.is_place(found[1:], order):
        raise _wrong()
    return tuple(found[1:])


def _wrong() -> InputError:
    return InputError(
        "This address is of no page of the list. Open the catalog and go on from there."
    )


async def _choices(visit: PageContext) -> ListChoices:
    """The choices; none for the script, which takes only the results from the page."""
    if visit.request.header(b"sec-fetch-dest") == "empty":
        return ListChoices(is_asked=False)
    database = visit.state.database
    return await overview.kept(database, visit.now, "choices", partial(_read, database))


async def _read(database: Database) -> ListChoices:
    counted = asyncio.gather(
        filter_choices.namespaces(database, _MOST_CHOICES),
        filter_choices.owners(database, _MOST_CHOICES),
        filter_choices.tags(database, _MOST_CHOICES),
        filter_choices.sets(database, _MOST_CHOICES),
    )
    plain = asyncio.gather(
        filter_choices.values_from(database, "spec.type", "", _MOST_CHOICES),
        filter_choices.values_from(database, "spec.lifecycle", "", _MOST_CHOICES),
        filter_choices.systems_named(database, "", _MOST_CHOICES),
    )
    return ListChoices(*await counted, *await plain)


def _counted(choices: Sequence[FilterChoice], chosen: str, nothing: str) -> list[tuple[str, str]]:
    """Options of a select with their numbers, ordered by name, including the chosen one."""
    return _options(
        {each.value: f"{each.value} ({each.entities:,})" for each in choices}, chosen, nothing
    )


def _plain(values: Sequence[str], chosen: str, nothing: str) -> list[tuple[str, str]]:
    """The same of values without numbers."""
    return _options({value: value for value in values}, chosen, nothing)


def _options(options: dict[str, str], chosen: str, nothing: str) -> list[tuple[str, str]]:
    if chosen:
        options.setdefault(chosen, chosen)
    return [("", nothing), *sorted(options.items(), key=lambda option: option[0].casefold())]


CATALOG: Sequence[PageRoute] = (PageRoute("GET", PATH, show, (CATALOG_READ,)),)
