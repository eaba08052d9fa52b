"""Bodies and answers that checks and scorecards have in common."""

from collections.abc import Callable, Sequence
from typing import Any, Final, TypeVar

from factbook.catalog.store import totals
from factbook.checks.definition_writes import StoredDefinition
from factbook.clock import iso, iso_or_none
from factbook.datasources.definitions import DefinitionVersion
from factbook.http.requests import Request, decode
from factbook.schemas.checks import CheckPublication, DefinitionVersions, OneDefinitionVersion
from factbook.storage import Database, Transaction

LARGEST: Final = 256 * 1024
_PAGE: Final = 100
_MOST_VERSIONS: Final = 100

S = TypeVar("S", bound=StoredDefinition)
T = TypeVar("T")
Work = Callable[[Transaction], T]


async def body(request: Request, what: str) -> dict[str, Any]:
    """The document in the body."""
    found: dict[str, Any] = decode(await request.json_body(LARGEST, what), dict[str, Any])
    return found


def page(found: Sequence[S], cursor: str | None, limit: int | None) -> tuple[list[S], str | None]:
    """The definitions after the cursor, which may be gone, and the cursor of the next page."""
    rest = [one for one in found if cursor is None or one.id > cursor]
    shown = rest[: limit or _PAGE]
    return shown, shown[-1].id if len(rest) > len(shown) else None


def versions(found: Sequence[DefinitionVersion]) -> DefinitionVersions:
    """The newest of the versions."""
    return DefinitionVersions(
        [
            OneDefinitionVersion(one.version, iso(one.published_at), one.published_by)
            for one in found[:_MOST_VERSIONS]
        ]
    )


def unread(stored: StoredDefinition) -> dict[str, Any]:
    """The members of an answer to a token that may not read."""
    draft = stored.published is None and stored.pending is None
    return {"id": stored.id, "title": None, "version": stored.version, "draft": draft}


def shown(stored: StoredDefinition) -> dict[str, Any]:
    """The members of an answer: the document in effect, its times, and what is not published."""
    is_draft = stored.published is None and stored.pending is None
    members = {
        **stored.current,
        **unread(stored),
        "title": stored.current.get("title"),
        "createdAt": iso(stored.created_at),
        "createdBy": stored.created_by,
        "updatedAt": iso(stored.updated_at),
        "updatedBy": stored.updated_by,
        "publishedAt": iso_or_none(stored.published_at),
        "publishedBy": stored.published_by,
    }
    if stored.draft is not None and not is_draft:
        members["unpublished"] = stored.draft
    return {name: value for name, value in members.items() if value is not None}


async def publication(
    database: Database, stored: StoredDefinition, reached: int | None
) -> CheckPublication | None:
    """The publication that is under way, with the last entity that it reached."""
    if stored.pending_version is None or reached is None:
        return None
    evaluated, total = await totals.up_to(database, reached)
    return CheckPublication(stored.pending_version, evaluated, total)
