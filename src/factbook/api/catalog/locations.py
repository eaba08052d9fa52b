"""Locations, which other catalogs read entities from. Entities are pushed here: there are none."""

from typing import Annotated, Any

from msgspec import UNSET, Meta, Struct, UnsetType

from factbook.errors import NotFoundError, UnsupportedError
from factbook.http.context import HandlerContext
from factbook.http.requests import JsonReply, Reply, Request, reply
from factbook.schemas.catalog import PageInfo
from factbook.schemas.common import Wire

_PUSH = (
    "This catalog does not read entities from locations: push them with "
    "PUT /api/catalog/{word}-entities/sets/{{set_id}}."
)


class Location(Wire):
    """A place that a catalog reads entities from."""

    id: str
    type: str
    target: str


class ListedLocation(Wire):
    """A location in the list of all."""

    data: Location


class LocationQuery(Struct, forbid_unknown_fields=True):
    """The body of a query for locations."""

    query: dict[str, Any] | UnsetType = UNSET
    limit: Annotated[int, Meta(ge=0, le=10_000)] = 1000
    cursor: str | UnsetType = UNSET


class LocationPage(Wire):
    """A page of locations."""

    items: list[Location]
    total_items: int
    page_info: PageInfo


async def list_locations(
    request: Request, state: HandlerContext
) -> JsonReply[list[ListedLocation]]:
    """Every location: none, as entities are pushed."""
    return reply([])


async def query_locations(request: Request, state: HandlerContext) -> JsonReply[LocationPage]:
    """Every location that a query finds: none, as entities are pushed."""
    await request.json(LocationQuery)
    return reply(LocationPage([], 0, PageInfo()))


async def get_location(request: Request, state: HandlerContext) -> Reply:
    """One location by its id: there is none."""
    raise NotFoundError(f"Found no location with ID {request.parameter('id')}")


async def get_location_of_entity(request: Request, state: HandlerContext) -> Reply:
    """The location that an entity was read from: there is none."""
    raise NotFoundError("No entity of this catalog was read from a location: they are pushed.")


async def refuse(request: Request, state: HandlerContext) -> Reply:
    """Writing and analyzing locations is not offered."""
    raise UnsupportedError(_PUSH.format(word=state.settings.push_word))
