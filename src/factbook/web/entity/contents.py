"""Contents of a team, system or domain: entities with levels, checks and findings."""

from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple

import msgspec

from factbook.auth.permissions import CATALOG_READ, SOURCE_READ
from factbook.catalog.store import entity_query, related_entities
from factbook.catalog.store.related_entities import Belonging, BelongingEntity
from factbook.checks.definitions.scorecard import Scorecard
from factbook.checks.results import level_store, result_queries
from factbook.checks.results.grader import GroupHierarchy, decode_level
from factbook.checks.results.result_queries import FailingCounts
from factbook.checks.scorecard_figures import ScorecardInEffect
from factbook.errors import InputError, NotFoundError
from factbook.facts import store
from factbook.facts.schema import Fact
from factbook.facts.store import KeyValue
from factbook.http.requests import Reply, run_offloaded
from factbook.storage import Database
from factbook.web.entity import page, team_scorecards
from factbook.web.entity.page import EntityView
from factbook.web.shares import make_filter_address
from factbook.web.site import fact_display, formats
from factbook.web.site.endpoint import PageRoute
from factbook.web.site.formats import segment
from factbook.web.site.page_context import PageContext

ON_PAGE: Final = 50
_SCORECARDS: Final = 3  # that have a column
_LONGEST: Final = 1_000  # characters of a place in an address
# Facts with a column, if a data source has them: what goes on, and what was found.
_FACTS: Final = (
    "incident.incidentMetrics.monthlyIncidents",
    "security.scannerIssues.critical",
    "security.scannerIssues.high",
    "security.dependencyAlerts.open",
)


class ShownLevel(NamedTuple):
    """The title of a level, "" below the first; where a scorecard has none, the score."""

    title: str
    score: int | None = None


class ContentsRow(NamedTuple):
    """An entity with its levels, the numbers of its checks, and its figures with their paths.

    A level is None where nothing of a scorecard counts. A figure is None where
    no data source tells of the entity, and its text "" where it is unknown.
    """

    ref: str
    title: str
    kind: str
    levels: list[ShownLevel | None]
    counts: FailingCounts | None
    figures: list[tuple[str, str] | None]


class ContentsTable(NamedTuple):
    """A page of rows; `total` counts those of all pages, `after` is the place of the next one."""

    scorecards: list[Scorecard]
    figures: list[str]
    rows: list[ContentsRow]
    total: int
    after: str | None


async def contained(database: Database, found: EntityView) -> Belonging | None:
    """The entities that belong to one with all below it; None for a kind that holds nothing."""
    kind = found.ref.partition(":")[0]
    if kind == "group":
        tree = GroupHierarchy(await related_entities.read_group_parents(database))
        return Belonging("ownedBy", sorted(tree.within(found.ref)))
    if kind == "domain":
        domains = await related_entities.read_system_domains(database)
        systems = [system for system, domain in domains.items() if domain == found.ref]
        return Belonging("partOf", [found.ref, *sorted(systems)])
    return Belonging("partOf", [found.ref]) if kind == "system" else None


async def table(
    visit: PageContext, about: Belonging, limit: int, after: str | None = None, level: str = ""
) -> ContentsTable:
    """Up to `limit` of the entities after a reference, of those at a `scorecard/level` if given.

    Raises InputError for a level that is none.
    """
    database = visit.state.database
    cards = await team_scorecards.in_effect(database)
    also = [await team_scorecards.build_level_condition(database, cards, level)] if level else []
    found = await related_entities.page_belonging(database, about, after, limit, also)
    shown = await of_entities(visit, found.entities, cards[:_SCORECARDS])
    return shown._replace(
        total=found.total, after=found.entities[-1].ref if found.has_more else None
    )


async def of_entities(
    visit: PageContext, entities: Sequence[BelongingEntity], cards: Sequence[ScorecardInEffect]
) -> ContentsTable:
    """The rows of these entities, in their order, with a column for each scorecard."""
    database = visit.state.database
    ids = [one.id for one in entities]
    levels = await level_store.read_levels_of(database, ids) if cards else {}
    counts = await result_queries.count_failing(database, ids)
    facts = await _facts(visit, ids)
    rows = [
        ContentsRow(
            one.ref,
            title,
            one.ref.partition(":")[0],
            [_level(card, levels.get(one.id, b""), slot) for card, slot in cards],
            counts.get(one.id),
            [_figure(one, name, facts[name].get(one.id)) for name in facts],
        )
        for one, title in zip(entities, await run_offloaded(_titles, entities), strict=True)
    ]
    return ContentsTable(
        [card for card, _ in cards],
        [fact_display.title(Fact(name, "integer")) for name in facts],
        rows,
        len(rows),
        None,
    )


async def show(visit: PageContext, found: EntityView) -> Reply:
    """Page of everything that an entity owns or contains."""
    about = await contained(visit.state.database, found)
    if about is None:
        raise NotFoundError("Only groups, systems and domains have this page.")
    after = visit.query("after")
    if len(after) > _LONGEST or "\0" in after:
        raise InputError("The address of this page is incomplete.")
    level = visit.query("level")
    if level and found.ref.startswith("domain:"):
        # Levels of a domain are those of what its systems contain.
        about = about._replace(targets=about.targets[1:])
    shown = await table(visit, about, ON_PAGE, after or None, level)
    address = make_filter_address(visit, f"{found.path}/contents", ("level",))
    return visit.page(
        "entity-contents.html",
        **page.frame(found, page.CONTENTS[found.ref.partition(":")[0]]),
        contents=shown,
        most=entity_query.COUNT_BOUND,
        first=address.to() if after else None,
        next=shown.after and address.to(after=shown.after),
        level=level,
        age=await result_queries.read_age_of_checks(visit.state.database, None, visit.now),
        all_path=address.path,
    )


async def _facts(visit: PageContext, ids: Sequence[int]) -> Mapping[str, Mapping[int, KeyValue]]:
    """The values by entity of the facts with a column that a source has."""
    known = (await visit.state.registry.current()).sources
    having = {
        name: [id_ for id_, one in known.items() if any(fact.name == name for fact in one.schema)]
        for name in _FACTS
    }
    wanted = {name: sources for name, sources in having.items() if sources}
    return await store.list_key_values(visit.state.database, wanted, ids)


def _level(card: Scorecard, levels: bytes, slot: int) -> ShownLevel | None:
    graded = decode_level(levels, slot)
    if graded is None or graded.coverage is None:
        return None
    if not card.levels:
        return ShownLevel("", graded.score)
    return ShownLevel(card.levels[graded.level - 1].title if graded.level else "")


def _figure(one: BelongingEntity, name: str, found: KeyValue | None) -> tuple[str, str] | None:
    if found is None:
        return None
    path = f"{formats.entity_path(one.ref)}/facts/{segment(found.source)}/{segment(name)}"
    if found.value is None:
        return "", path
    text = fact_display.in_words(Fact(name, "float"), found.value)
    return f"{text} (stale)" if found.stale else text, path


def _titles(items: Sequence[BelongingEntity]) -> list[str]:
    found = []
    for one in items:
        metadata = msgspec.json.decode(one.document)["metadata"]
        found.append(metadata.get("title") or metadata["name"])
    return found


ENTITY_CONTENTS: Sequence[PageRoute] = (
    PageRoute("GET", f"{page.PATH}/contents", page.of_entity(show), (CATALOG_READ, SOURCE_READ)),
)
