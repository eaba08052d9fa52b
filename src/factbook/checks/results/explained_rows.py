"""Results of one check for the entities of a page, each with what it rests on."""

from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple

from factbook.catalog.store import collectable
from factbook.checks import state
from factbook.checks.maintenance import latest_facts
from factbook.checks.maintenance.check_set import CheckCache
from factbook.checks.maintenance.state_update import SlotStates
from factbook.checks.results.result_queries import CheckedRow
from factbook.checks.rules import check_definition, language
from factbook.checks.rules.check_definition import Check
from factbook.checks.rules.checked_entity import CheckedEntity
from factbook.checks.rules.explanation import Explainer, Explanation
from factbook.checks.rules.language import CHECKS, ENTITY
from factbook.checks.states import change_store, state_store
from factbook.storage import Database

_NOTHING: Final[Mapping[str, Any]] = {}


class ExplainedRow(NamedTuple):
    """A result with the title of its entity, '' without one.

    `since` is None if it never changed; `explanation` is None if the check is not about the entity.
    """

    row: CheckedRow
    title: str
    since: int | None
    explanation: Explanation | None


async def of_rows(
    database: Database, check: Check, rows: Sequence[CheckedRow], now: int
) -> list[ExplainedRow]:
    """The rows explained, in their order; all are read at once."""
    ids = [row.entity_id for row in rows]
    found = collectable.read(await database.all(*collectable.among(collectable.EVERYTHING, ids)))
    documents = {id_: document for id_, _, document in found}
    facts = await latest_facts.of_entities(database, _sources(check), ids)
    known = await database.remembered.of(CheckCache).loaded(database)
    states = await state_store.of_entities(database, ids)
    times = await change_store.last_of_entities(database, check.id, ids)
    explained, explainer = [], Explainer(check)
    for row in rows:
        id_, document = row.entity_id, documents.get(row.entity_id, _NOTHING)
        entity = CheckedEntity(row.ref, document, facts.get(id_, {}))
        entity.most_steps = known.steps_per_check
        if id_ in states:
            entity.states = SlotStates(known.slots, states[id_].padded(known.width))
        is_about = row.state & ~state.EXEMPT not in (state.NONE, state.OUT)
        explanation = explainer.explained(entity, now) if is_about and document else None
        explained.append(ExplainedRow(row, _title(document), times.get(id_), explanation))
    return explained


def _sources(check: Check) -> list[str]:
    """The data sources that the rules and the texts of a check read."""
    facts = [one for _, rule in check.rules() for one in language.walk_references(rule)]
    facts += [
        one
        for _, text in check.templates()
        for one in check_definition.parse_template(text).facts()
    ]
    return sorted({one.source for one in facts} - {ENTITY, CHECKS})


def _title(document: Mapping[str, Any]) -> str:
    found = document.get("metadata", _NOTHING).get("title")
    return found if isinstance(found, str) else ""
