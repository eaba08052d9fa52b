"""Start positions of pages in a list, as text for addresses."""

import base64
from collections.abc import Sequence

import msgspec

from factbook.catalog.store import browse
from factbook.catalog.store.browse import Order
from factbook.catalog.store.sort_order import Place
from factbook.errors import InputError
from factbook.web.site.page_context import PageContext

_LONGEST = 4_000


def of(visit: PageContext, order: Order) -> tuple[Place | None, bool]:
    """Place in the address, and whether the page ends before it.

    Raises InputError for an invalid place in this order.
    """
    after, before = visit.query("after"), visit.query("before")
    if not after and not before:
        return None, False
    return _decoded(after or before, order), not after


def beside(
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
        content = base64.b64decode(text[:_LONGEST] + "=" * (-len(text) % 4), altchars=b"-_")
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
