"""First page of an entity: what it is, how it stands, and what is known of it."""

from collections.abc import Sequence
from typing import Final

from factbook.auth.permissions import CATALOG_READ, SOURCE_READ
from factbook.http.requests import Reply
from factbook.web.data_sources import source_labels
from factbook.web.entity import (
    check_results,
    contents,
    facts,
    page,
    relation_list,
    revisions,
    team_scorecards,
)
from factbook.web.entity.about import about
from factbook.web.entity.facts import Facts
from factbook.web.entity.key_figures import KeyFigure, key_figures
from factbook.web.entity.page import EntityView
from factbook.web.entity.relation_list import RelationGroup
from factbook.web.site import formats
from factbook.web.site.endpoint import PageRoute
from factbook.web.site.page_context import PageContext

_CHANGES: Final = 5
_WAITING: Final = 5
_CONTENTS: Final = 10


async def show(visit: PageContext, found: EntityView) -> Reply:
    """Page of an entity."""
    database = visit.state.database
    known_facts = await facts.of_entity(visit, found.shown.id, found.ref, found.entity)
    changes = await revisions.latest(database, found, _CHANGES)
    people = [found.shown.updated_by, *(each.revision.created_by for each in changes)]
    head = page.frame(found, "Overview")
    belonging = await contents.contained(database, found)
    has_parts = belonging is not None
    return visit.page(
        "entity.html",
        **head,
        about=about(found.shown, found.entity, {link.href for link in found.links}),
        figures=await _figures(visit, found, known_facts),
        checks=await check_results.of_entity(database, found.ref, visit.now),
        facts=known_facts,
        cadence=source_labels.cadence,
        relations=await _relations(visit, found, head["owner_ref"]),
        contents=belonging and await contents.table(visit, belonging, _CONTENTS),
        standing=await team_scorecards.of_entity(database, found.ref, visit.now)
        if has_parts
        else None,
        changes=changes,
        live=_topics(found, known_facts),
        known=await visit.known(people),
    )


def _topics(found: EntityView, known: Facts) -> list[str]:
    """Topics of the page: the entity, and sources that have not collected it yet.

    The first facts of an entity change nothing, so that no event tells of them.
    """
    waiting = known.waiting[:_WAITING]
    topics = [("entity", found.ref), *(("source", each.source.id) for each in waiting)]
    # A reference may hold blanks, which stand between topics.
    return [f"{word}/{formats.segment(id_)}" for word, id_ in topics]


async def _figures(visit: PageContext, found: EntityView, known: Facts) -> list[KeyFigure]:
    state = visit.state
    wanted = state.settings.key_figures
    return await key_figures(
        state.database, found.shown.id, found.path, known.sources, known.latest, wanted, visit.now
    )


async def _relations(
    visit: PageContext, found: EntityView, owner: str | None
) -> list[RelationGroup]:
    """The relations but for the owner that the head of the page names."""
    told = ("ownedBy", owner)
    others = [one for one in found.relations if (one.type, one.target_ref) != told]
    return await relation_list.groups(visit.state.database, others, f"{found.path}/relations")


ENTITY_SUMMARY: Sequence[PageRoute] = (
    PageRoute("GET", page.PATH, page.of_entity(show), (CATALOG_READ, SOURCE_READ)),
)
