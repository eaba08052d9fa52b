"""Badges of public scorecards, for everyone: the level of an entity as an image, or for shields.io.

Who asks has no token, so a scorecard that is not public, one that is unknown and an entity that is
unknown are told alike.
"""

import hashlib
from typing import Any, Final

import msgspec

from factbook.api.checks.parameters import SCORECARD_ID
from factbook.catalog import ref as refs
from factbook.catalog.store import collectable
from factbook.checks.levels import level_store
from factbook.checks.levels.grader import decoded
from factbook.checks.results import result_age
from factbook.checks.scorecards import badge, scorecard_figures
from factbook.checks.scorecards.badge import Badge
from factbook.clock import minute
from factbook.errors import InputError, NotFoundError
from factbook.http.context import HandlerContext
from factbook.http.requests import JsonReply, Request
from factbook.schemas.results import ShieldsBadge

SVG: Final = "image/svg+xml"
# Proxies of images ask again after so many seconds.
_CACHED: Final = "public, max-age=300"


async def image(request: Request, state: HandlerContext) -> JsonReply[str]:
    """The level of an entity as an image."""
    text = badge.svg(await _badge(request, state)).encode()
    return _answer(request, text, f"{SVG}; charset=utf-8".encode())


async def shields(request: Request, state: HandlerContext) -> JsonReply[ShieldsBadge]:
    """The level of an entity in the form that shields.io reads from an endpoint."""
    found = await _badge(request, state)
    shown = ShieldsBadge(1, found.label, found.message, found.color)
    return _answer(request, msgspec.json.encode(shown), b"application/json")


async def _badge(request: Request, state: HandlerContext) -> Badge:
    missing = NotFoundError("There is no such badge.")
    parts = (request.parameter(name) for name in ("kind", "namespace", "name"))
    try:
        ref = str(refs.parse("{}:{}/{}".format(*parts)))
        given = await scorecard_figures.in_effect(state.database, SCORECARD_ID.of(request))
    except (InputError, NotFoundError):
        raise missing from None
    entity_id = await collectable.id_of(state.database, ref) if given.card.public else None
    if entity_id is None:
        raise missing
    levels = await level_store.of_entity(state.database, entity_id)
    found = badge.of_level(given.card, decoded(levels, given.slot))
    age = await result_age.of_checks(state.database, given.card.checks, state.clock())
    # A badge that is current is as old as caches let it be.
    is_old = bool(age.stale_sources)
    return (
        found._replace(message=f"{found.message}, as of {minute(age.as_of)}") if is_old else found
    )


def _answer(request: Request, body: bytes, content_type: bytes) -> JsonReply[Any]:
    tag = f'"{hashlib.blake2b(body, digest_size=12).hexdigest()}"'
    headers = {"etag": tag, "cache-control": _CACHED}
    given = request.header(b"if-none-match") or ""
    if tag in (one.strip().removeprefix("W/") for one in given.split(",")):
        return JsonReply(b"", 304, headers, content_type)
    return JsonReply(body, 200, headers, content_type)
