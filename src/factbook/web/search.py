"""Search from any page: exact names first, then names that begin with the text, then words."""

import asyncio
import re
import unicodedata
from collections.abc import Callable, Iterable, Sequence
from typing import Final, NamedTuple, Protocol, TypeVar

from factbook.auth.permissions import CATALOG_READ, CHECK_READ, SOURCE_READ
from factbook.catalog.store import browse, entity_query
from factbook.catalog.store.browse import Filter
from factbook.checks.definitions.definition_versions import check_store, scorecard_store
from factbook.http.requests import Reply
from factbook.storage import Database
from factbook.web import catalog, fact_across, formats, help, pages
from factbook.web.catalog import CatalogQuery, EntityListRow
from factbook.web.pages import PageContext, PageRoute

T = TypeVar("T")

SAME: Final = 0
BEGINS: Final = 1
WORD: Final = 2
WITHIN: Final = 3

_BOUNDS = re.compile(r"[\W_]+|(?<=[a-z0-9])(?=[A-Z])")


def rank_names(text: str, names: Iterable[str]) -> int | None:
    """Rank of the name that best matches a lowercase text, 0 first; None without a match."""
    found = [one for name in names if (one := _rank_name(text, name)) is not None]
    return min(found, default=None)


def _rank_name(text: str, name: str) -> int | None:
    lowered = name.lower()
    if lowered == text:
        return SAME
    if lowered.startswith(text):
        return BEGINS
    if text not in lowered:
        return None
    # The rest of the name from each word on, such as `branch protection` and `protection`.
    suffixes = (name[bound.end() :] for bound in _BOUNDS.finditer(name))
    return WORD if any(suffix.lower().startswith(text) for suffix in suffixes) else WITHIN


def pick_best(
    text: str, items: Iterable[T], names: Callable[[T], Sequence[str]], most: int
) -> tuple[list[T], int]:
    """Up to `most` items with the text in a name, most relevant first, and the total."""
    found = [
        (fit, len(known[0]), known[0], item)
        for item in items
        if (fit := rank_names(text, known := names(item))) is not None
    ]
    found.sort(key=lambda one: one[:3])
    return [one[3] for one in found[:most]], len(found)


class DefinitionTitle(NamedTuple):
    """A scorecard or a check, by its title."""

    id: str
    title: str


class Definitions(NamedTuple):
    """All scorecard and check titles, at a revision."""

    revision: int
    scorecards: Sequence[DefinitionTitle]
    checks: Sequence[DefinitionTitle]


class _TitledDefinition(Protocol):
    @property
    def id(self) -> str: ...

    @property
    def current(self) -> dict[str, object]: ...


class _RememberedTitles:
    definitions: Definitions | None = None


async def list_definition_titles(database: Database) -> Definitions:
    """The current titles of scorecards and checks."""
    remembered = database.remembered.of(_RememberedTitles)
    revision = await check_store.revision(database)
    known = remembered.definitions
    if known is None or known.revision != revision:
        known = remembered.definitions = Definitions(
            revision,
            _make_definition_titles(await scorecard_store.everything(database)),
            _make_definition_titles(await check_store.everything(database)),
        )
    return known


def _make_definition_titles(found: Iterable[_TitledDefinition]) -> list[DefinitionTitle]:
    return [DefinitionTitle(one.id, str(one.current.get("title", one.id))) for one in found]


PATH: Final = "/search"
_LONGEST: Final = 200
_ENTITIES: Final = 12
_PEOPLE: Final = 6
_OTHERS: Final = 8
# Names to rank: more than are shown, because the shortest aren't always the most relevant.
_CANDIDATES: Final = 40
_PERSONAL: Final = frozenset({"user", "group"})
# People look for software first.
_KINDS: Final = ("component", "api", "system", "domain", "resource", "template")


class Hit(NamedTuple):
    """A search result that leads to a page of this service."""

    title: str
    path: str
    about: str = ""


class HitGroup(NamedTuple):
    """The most relevant results of one type, and the number of all."""

    title: str
    hits: Sequence[Hit]
    total: int


class EntityHits(NamedTuple):
    """Entities among the results, most relevant first."""

    rows: Sequence[EntityListRow]
    people: Sequence[EntityListRow]
    total: int


async def show_search(visit: PageContext) -> Reply:
    """Search results page."""
    shown = visit.query("q").replace("\0", "")[:_LONGEST]
    text = unicodedata.normalize("NFC", " ".join(shown.lower().split()))
    entities, groups = EntityHits((), (), 0), list[HitGroup]()
    if text:
        entities, *found = await asyncio.gather(
            _find_entity_hits(visit, text),
            _search_definitions(visit, text),
            _search_sources(visit, text),
        )
        groups = [group for part in found for group in part if group.hits]
        groups += [group for group in _search_pages(visit, text) if group.hits]
    return visit.page(
        "search.html",
        shown=shown,
        entities=entities,
        groups=groups,
        bound=entity_query.COUNT_BOUND,
        in_catalog=CatalogQuery(q=shown).address(),
    )


async def _find_entity_hits(visit: PageContext, text: str) -> EntityHits:
    """Entities whose names match, then those with the text elsewhere."""
    if not visit.may(CATALOG_READ):
        return EntityHits((), (), 0)
    database = visit.state.database
    by_name, by_text = await asyncio.gather(
        browse.find_names_beginning(database, text, _CANDIDATES),
        browse.browse_entities(database, Filter(text=text), "name", _CANDIDATES),
    )
    known = {one.ref: one for one in (*by_name, *by_text.page.items)}
    rows = sorted(map(catalog.make_list_row, known.values()), key=_make_row_order(text))
    return EntityHits(
        [row for row in rows if row.kind not in _PERSONAL][:_ENTITIES],
        [row for row in rows if row.kind in _PERSONAL][:_PEOPLE],
        by_text.total,
    )


def _make_row_order(text: str) -> Callable[[EntityListRow], tuple[int, int, int, str]]:
    def order(row: EntityListRow) -> tuple[int, int, int, str]:
        names = [row.title, row.name or "", formats.get_ref_name(row.ref), row.ref]
        fit = rank_names(text, names)
        kind = _KINDS.index(row.kind) if row.kind in _KINDS else len(_KINDS)
        return WITHIN + 1 if fit is None else fit, kind, len(row.title), row.ref

    return order


async def _search_definitions(visit: PageContext, text: str) -> list[HitGroup]:
    if not visit.may(CHECK_READ):
        return []
    found = await list_definition_titles(visit.state.database)
    return [
        _make_hit_group("Scorecards", text, found.scorecards, _make_definition_hit("/scorecards")),
        _make_hit_group("Checks", text, found.checks, _make_definition_hit("/checks")),
    ]


def _make_definition_hit(path: str) -> Callable[[DefinitionTitle], Hit]:
    def hit(one: DefinitionTitle) -> Hit:
        return Hit(one.title, f"{path}/{formats.quote_segment(one.id)}", one.id)

    return hit


async def _search_sources(visit: PageContext, text: str) -> list[HitGroup]:
    """Facts and their sources."""
    if not visit.may(SOURCE_READ):
        return []
    sources = (await visit.state.registry.current()).sources.values()
    facts = [(source, fact) for source in sources for fact in source.schema]
    return [
        _make_hit_group(
            "Facts",
            text,
            facts,
            lambda one: Hit(
                formats.get_fact_title(one[1]),
                fact_across.make_fact_path(one[0].id, one[1].name),
                f"{one[0].title}: {one[1].name}",
            ),
            lambda one: (formats.get_fact_title(one[1]), one[1].name),
        ),
        _make_hit_group(
            "Data sources",
            text,
            sources,
            lambda one: Hit(one.title, f"/data-sources/{formats.quote_segment(one.id)}", one.id),
        ),
    ]


def _search_pages(visit: PageContext, text: str) -> list[HitGroup]:
    """Sections that the person may see, and headings of the documentation."""
    sections = [
        Hit(section.title, section.path)
        for group in pages.list_sections(visit.request.path, visit.may)
        for section in group.sections
    ]
    headings = [
        Hit(heading.title, heading.address, heading.page) for heading in help.list_help_headings()
    ]
    return [
        _make_hit_group("Pages", text, sections, _keep_hit, lambda one: (one.title,)),
        _make_hit_group("Documentation", text, headings, _keep_hit, lambda one: (one.title,)),
    ]


def _keep_hit(hit: Hit) -> Hit:
    return hit


def _make_hit_group(
    title: str,
    text: str,
    items: Iterable[T],
    hit: Callable[[T], Hit],
    names: Callable[[T], Sequence[str]] | None = None,
) -> HitGroup:
    """The most relevant items by `names`, which default to the names of the hit."""
    found, total = pick_best(
        text, items, names or (lambda item: (hit(item).title, hit(item).about)), _OTHERS
    )
    return HitGroup(title, [hit(one) for one in found], total)


SEARCH: Final[Sequence[PageRoute]] = (PageRoute("GET", PATH, show_search),)
