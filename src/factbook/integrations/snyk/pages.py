"""Reader of a paginated listing, whose next link does not mark the last page reliably."""

from collections.abc import Mapping
from datetime import date
from functools import lru_cache
from typing import Final
from urllib.parse import parse_qs, urlsplit

import msgspec
import structlog

from factbook.integrations.snyk.answers import Links, SnykLink, SnykPage, T
from factbook.outbound.client import HttpClient
from factbook.outbound.outcomes import UNUSABLE, Missing, report_too_many

log = structlog.get_logger("factbook.sources.snyk")

PAGE: Final = 100
MOST_PAGES: Final = 500
MOST_ROWS: Final = MOST_PAGES * PAGE
TOO_LARGE: Final = report_too_many(MOST_ROWS, "rows in one listing of Snyk")

HEADERS: Final = {"accept": "application/vnd.api+json"}
_CURSOR: Final = "starting_after"


async def read(
    client: HttpClient, target: str, query: Mapping[str, str], type_: type[SnykPage[T]]
) -> list[T] | Missing:
    """Every row of the listing, each once, or the reason that it is incomplete.

    Ends with the first page without new rows, as Snyk also links to pages after the last one.
    Only the cursor of a link is used, since the link may be relative to one of several bases. A
    listing of more than `MOST_PAGES` is not read to its end.
    """
    rows: dict[str, T] = {}
    place: dict[str, str] = {}
    for _ in range(MOST_PAGES):
        asked = {**query, "limit": str(PAGE), **place}
        answer = await client.get(target, query=asked, headers=HEADERS)
        if not answer.ok:
            return answer.missing
        _announced(client.host, query["version"], answer.headers)
        try:
            page = msgspec.convert(answer.data, type_)
            known = len(rows)
            for row in page.data:
                rows.setdefault(row.id, row)
            cursor = _cursor(page.links) if len(rows) > known else ""
        except (msgspec.ValidationError, ValueError):
            return UNUSABLE
        if not cursor:
            return list(rows.values())
        place = {_CURSOR: cursor}
    return TOO_LARGE


def _cursor(links: Links | None) -> str:
    """The cursor of the next page; empty if there is none. Raises ValueError for a bad link."""
    link = links.next if links else None
    address = link.href if isinstance(link, SnykLink) else link
    if not address:
        return ""
    query = parse_qs(urlsplit(address).query, keep_blank_values=True)
    if _CURSOR not in query:
        raise ValueError("A link to a next page without a cursor.")
    return query[_CURSOR][0]


def _announced(host: str, version: str, headers: Mapping[str, str]) -> None:
    """Log the end of the API version if an answer announces it."""
    if "deprecation" in headers or "sunset" in headers:
        _warn(host, version, _date(headers.get("deprecation")), _date(headers.get("sunset")))


@lru_cache(maxsize=64)
def _warn(host: str, version: str, deprecated: str, sunset: str) -> None:
    """Log a notice that every answer repeats once for each process."""
    log.warning(
        "snyk.version_ends", host=host, version=version, deprecated=deprecated, sunset=sunset
    )


def _date(text: str | None) -> str:
    """The date at the start of a header; the rest of it is dropped."""
    try:
        return date.fromisoformat((text or "")[:10]).isoformat()
    except ValueError:
        return "unknown"
