"""Entities to evaluate: their documents and facts, read for many at a time."""

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any, NamedTuple

from factbook.catalog.store import collectable
from factbook.checks.levels.entity_place import EntityPlace, place_of
from factbook.checks.maintenance import latest_facts
from factbook.checks.maintenance.check_set import CheckSelection, MatchingChecks
from factbook.checks.rules.checked_entity import CheckedEntity
from factbook.checks.states.state_store import EntityStates
from factbook.facts import entity_filter
from factbook.facts.entity_filter import EntityFilter, Matcher
from factbook.facts.freshness import Latest
from factbook.storage import Transaction

_NOTHING: Mapping[str, Any] = {}


class Subject(NamedTuple):
    """An entity with what a selection of checks reads; `matching` are those that are about it.

    `matching` and `owner` are None where the document was not read, and `place` unless all of it
    was.
    """

    entity: CheckedEntity
    owner: str | None
    matching: MatchingChecks | None
    place: EntityPlace | None = None


Stored = Mapping[int, EntityStates]
_NONE_STORED: Stored = {}
# Brings those of the entities that exist, given the states that are stored of them.
Read = Callable[[Transaction, CheckSelection, Sequence[int], Stored], dict[int, Subject]]


def with_documents(
    transaction: Transaction,
    selection: CheckSelection,
    entity_ids: Sequence[int],
    stored: Stored = _NONE_STORED,
) -> dict[int, Subject]:
    """Those of the entities that exist, by id, whatever is known of them so far."""
    rows = transaction.all(*collectable.among(collectable.EVERYTHING, list(entity_ids)))
    facts = latest_facts.among(transaction, selection.sources, entity_ids)
    return {
        id_: _with_document(selection, ref, document, facts.get(id_, {}))
        for id_, ref, document in collectable.read(rows)
    }


def without_documents(
    transaction: Transaction, selection: CheckSelection, entity_ids: Sequence[int]
) -> dict[int, Subject]:
    """Entities of which the documents are as they were when their states were written.

    Documents are read where checks of the selection read more than which entities they are about.
    """
    facts = latest_facts.among(transaction, selection.sources, entity_ids)
    documents: Mapping[int, Mapping[str, Any]] = {}
    if selection.reads_entity:
        rows = transaction.all(*collectable.among(collectable.EVERYTHING, list(entity_ids)))
        documents = {id_: document for id_, _, document in collectable.read(rows)}
    return {
        id_: Subject(
            CheckedEntity("", documents.get(id_, _NOTHING), facts.get(id_, {})), None, None
        )
        for id_ in entity_ids
    }


def by_filters(
    transaction: Transaction, selection: CheckSelection, entity_ids: Sequence[int], stored: Stored
) -> dict[int, Subject]:
    """Those of the entities that exist, without a look at their documents.

    The catalog's index tells which checks are about which: quicker where few filters do.
    """
    ids = list(entity_ids)
    # States are removed with their entity, and those that are stored are locked.
    known = {id_ for id_ in ids if id_ in stored and stored[id_].states}
    new = [id_ for id_ in ids if id_ not in known]
    owners: dict[int, str | None] = dict.fromkeys(known)
    if new:
        owners |= collectable.owners(transaction, new)
    ids = list(owners)
    matching = [meeting(transaction, one, ids) for one in selection.filters.values()]
    facts = latest_facts.among(transaction, selection.sources, ids)
    return {
        id_: Subject(
            CheckedEntity("", _NOTHING, facts.get(id_, {})),
            owner,
            selection.by_matches(tuple(id_ in found for found in matching)),
        )
        for id_, owner in owners.items()
    }


def meeting(
    transaction: Transaction, filter_: EntityFilter | None, ids: list[int]
) -> Collection[int]:
    """Those of the entities that a filter lets through; without one all of them."""
    if filter_ is None:
        return frozenset(ids)
    return collectable.meeting(transaction, entity_filter.where(filter_), ids)


def _with_document(
    selection: CheckSelection,
    ref: str,
    document: dict[str, Any],
    facts: Mapping[str, Latest],
) -> Subject:
    matcher = Matcher(document)
    place = place_of(ref, document, matcher)
    entity = CheckedEntity(ref, document, facts)
    return Subject(entity, place.owner, selection.matching(matcher), place)
