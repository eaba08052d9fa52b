"""The catalog: search for entities by text, kind, namespace, owner, tag and set."""

import asyncio
import base64
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any, NamedTuple
from urllib.parse import quote, urlencode

import msgspec

from factbook.auth.permissions import CATALOG_READ
from factbook.catalog import ref as refs
from factbook.catalog.store import browse, filter_choices, totals
from factbook.catalog.store.browse import BrowseResult, EntityRow, Filter, Order
from factbook.catalog.store.entity_query import ResultPage
from factbook.catalog.store.filter_choices import FilterChoice
from factbook.catalog.store.sort_order import Place
from factbook.clock import SECOND
from factbook.errors import InputError
from factbook.http.requests import Reply
from factbook.web.site import formatting
from factbook.web.site.endpoint import PageRoute
from factbook.web.site.page_context import PageContext

PATH = "/catalog"
_ITEMS = 40
_CHOICES = 100
_CHOICES_KEPT = 30 * SECOND
_LONGEST = 300  # characters of what is looked for; no value that the index has is longer
_LONGEST_PLACE = 4_000  # characters of a position in an address
_EXACT = "exact"
_TAGS = 4  # of an entity in the list

_ORDERS = (("name", "By name"), ("kind", "By kind"), ("updated", "Last changed first"))


@dataclass(frozen=True)
class CatalogQuery:
    """Search parameters of the address, as typed."""

    q: str = ""
    kind: str = ""
    namespace: str = ""
    owner: str = ""
    tag: str = ""
    set: str = ""
    order: str = ""
    count: str = ""

    @classmethod
    def of(cls, visit: PageContext) -> "CatalogQuery":
        """Parameters in the query of a request; raises InputError for unknown words."""
        # No entity has the character NUL, and PostgreSQL takes no text that does.
        found = {
            name: visit.query(name).replace("\0", "")[:_LONGEST] for name in cls.__annotations__
        }
        if found["order"] not in ("", *browse.ORDERS):
            raise InputError(f"The order is one of {', '.join(browse.ORDERS)}.")
        if found["count"] not in ("", _EXACT):
            raise InputError(f"The count is {_EXACT}, or left out.")
        return cls(**found)

    @property
    def narrowed(self) -> bool:
        """True if it asks for less than every entity."""
        return any((self.q, self.kind, self.namespace, self.owner, self.tag, self.set))

    def address(self, **others: str) -> str:
        """Address with other values for some parameters; empty ones are left out."""
        given = {name: value for name, value in {**asdict(self), **others}.items() if value}
        query = urlencode(given, quote_via=quote)
        return f"{PATH}?{query}" if query else PATH

    def filter(self) -> Filter:
        """Filter for the store; raises InputError for an owner that is no reference."""
        owner = str(refs.parse(self.owner, kind="group")) if self.owner else ""
        return Filter(
            kind=self.kind.lower(),
            namespace=self.namespace.lower(),
            owner=owner,
            tag=self.tag.lower(),
            set=self.set,
            text=self.q.lower(),
        )


class EntityListRow(NamedTuple):
    """An entity in the list."""

    ref: str
    kind: str
    title: str
    name: str | None  # beside a title that is different
    type: str
    owner: str
    owner_ref: str | None
    tags: list[str]
    more_tags: int
    description: str
    updated_at: int


async def show(visit: PageContext) -> Reply:
    """Page of matching entities."""
    asked = CatalogQuery.of(visit)
    order = next(order for order in browse.ORDERS if order == (asked.order or "name"))
    place, backward = _place(visit, order)
    try:
        wanted, owner_problem = asked.filter(), ""
    except InputError:
        wanted, owner_problem = None, "That is no name or reference of an owner."
    choices = _choices(visit)
    if wanted is None:
        found = BrowseResult(ResultPage([], [], False, False), {}, 0)
        namespaces, owners, tags, sets = await choices
    else:
        exact = asked.count == _EXACT
        listed = browse.find(
            visit.state.database, wanted, order, _ITEMS, place, backward=backward, exact=exact
        )
        found, (namespaces, owners, tags, sets) = await asyncio.gather(listed, choices)
    before, after = _beside(found.page.places, order, found.page.before, found.page.after)
    return visit.page(
        "catalog.html",
        asked=asked,
        rows=(rows := [_row(each) for each in found.page.items]),
        row_kinds=sorted({row.kind for row in rows}),
        found=found,
        bound=totals.BOUND,
        exactly=asked.address(count=_EXACT),
        namespaces=_options(namespaces, asked.namespace, "Any namespace"),
        owners=owners,
        owner_problem=owner_problem,
        tags=tags,
        sets=_options(sets, asked.set, "Any set"),
        orders=_ORDERS,
        order=order,
        before=before and asked.address(**before),
        after=after and asked.address(**after),
        server=visit.server,
        push_word=visit.state.settings.push_word,
    )


class _Choices(NamedTuple):
    """Choices at a revision of the catalog, with the time they were read."""

    revision: tuple[int, int]
    at: int
    values: Sequence[list[FilterChoice]]


class _Remembered:
    """Cache of the last choices: suggestions that take longer to count than the search itself."""

    choices: _Choices | None = None


async def _choices(visit: PageContext) -> Sequence[list[FilterChoice]]:
    """Values to choose from: namespaces, owners, tags and sets.

    Empty for the script, which takes only the results from the page.
    """
    if visit.request.header(b"sec-fetch-dest") == "empty":
        return [], [], [], []
    database, now = visit.state.database, visit.now
    revision = await filter_choices.revision(database)
    remembered = database.remembered.of(_Remembered)
    known = remembered.choices
    if known is None or known.revision != revision or not 0 <= now - known.at < _CHOICES_KEPT:
        values = await asyncio.gather(
            filter_choices.namespaces(database, _CHOICES),
            filter_choices.owners(database, _CHOICES),
            filter_choices.tags(database, _CHOICES),
            filter_choices.sets(database, _CHOICES),
        )
        known = remembered.choices = _Choices(revision, now, values)
    return known.values


def _options(choices: Sequence[FilterChoice], chosen: str, nothing: str) -> list[tuple[str, str]]:
    """Options of a select, ordered by name, including the chosen one."""
    options = {each.value: f"{each.value} ({each.entities:,})" for each in choices}
    if chosen:
        options.setdefault(chosen, chosen)
    return [("", nothing), *sorted(options.items(), key=lambda option: option[0].casefold())]


class _RowMetadata(msgspec.Struct):
    name: str = ""
    title: str = ""
    description: str = ""
    tags: list[str] = []


class _Spec(msgspec.Struct):
    type: Any = None
    owner: Any = None


class _RowDocument(msgspec.Struct):
    metadata: _RowMetadata
    spec: _Spec = msgspec.field(default_factory=_Spec)


_read = msgspec.json.Decoder(_RowDocument).decode


def _row(listed: EntityRow) -> EntityListRow:
    metadata, spec = (document := _read(listed.document)).metadata, document.spec
    kind, _, rest = listed.ref.partition(":")
    owner = spec.owner if isinstance(spec.owner, str) else ""
    owner_ref = formatting.reference(owner, "group", rest.partition("/")[0])
    return EntityListRow(
        listed.ref,
        kind,
        metadata.title or metadata.name,
        metadata.name if metadata.title and metadata.title != metadata.name else None,
        spec.type if isinstance(spec.type, str) else "",
        formatting.short_owner(owner_ref) if owner_ref else owner,
        owner_ref,
        metadata.tags[:_TAGS],
        max(0, len(metadata.tags) - _TAGS),
        _one_line(metadata.description),
        listed.updated_at,
    )


def _one_line(text: str, longest: int = 200) -> str:
    """Start of a text, without line breaks."""
    line = " ".join(text[: 4 * longest].split())
    return line if len(line) <= longest else f"{line[:longest].rstrip()}…"


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


CATALOG: Sequence[PageRoute] = (PageRoute("GET", PATH, show, (CATALOG_READ,)),)
