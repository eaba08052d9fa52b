"""Trial of entities as documents have them, such as those of a pull request: results as they
would be, and whether the documents alone decide them. Nothing of it stays.

Each entity is evaluated where it is: in its set, whoever pushes or imports that, with the
annotations that an importer has added and with what is known of it. What is known is told of the
entities of the set that is named, as documents of strangers may name any entity.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple

import msgspec

from factbook.catalog import sets
from factbook.catalog.push_rules import PushRules
from factbook.catalog.sets import Prepared
from factbook.catalog.store import apply, collectable, diff, locks, reach
from factbook.catalog.store.apply import Actor
from factbook.catalog.store.diff import Existing, WritePlan
from factbook.catalog.store.locks import WriteLocks
from factbook.checks import state
from factbook.checks.rules import explanation
from factbook.checks.rules.check_definition import Check
from factbook.checks.rules.checked_entity import CheckedEntity
from factbook.checks.rules.explanation import Explanation
from factbook.checks.rules.language import ENTITY, FactReference
from factbook.checks.rules.rule_evaluation import PartialEvaluation
from factbook.checks.trials.write_trial import EvaluatedTrial, ResultDifference, WriteTrial
from factbook.errors import InputError
from factbook.facts import store
from factbook.facts.datasource import DataSource
from factbook.facts.freshness import Latest, Observation
from factbook.integrations import catalog
from factbook.storage import Transaction

Values = Mapping[str, object]

# A trial keeps other writes waiting, and who asks for it may be somebody who cannot write.
_MOST_OTHERS: Final = 2_000
# Results that are explained; further ones are only counted.
MOST_EXPLAINED: Final = 500
# Names of annotations that say where an imported entity is from: importers add them.
_PLACES: Final = ("/source-location", "/view-url", "/edit-url")
_HOSTED: Final = ("/project-slug", "/project-id", "/instance")
_NOTHING: Final = Latest({}, {}, "", 0)


class GivenFacts(NamedTuple):
    """Facts of a source about an entity that are known as they would be, with the documents."""

    source: DataSource
    values: Values


# The facts given of an entity, from its document; None if there are none.
Given = Callable[[Mapping[str, Any]], GivenFacts | None]


class EntityChange(NamedTuple):
    """Fate of an entity of the documents: `added`, `updated` or `unchanged`."""

    ref: str
    change: str


class TriedEntityResult(NamedTuple):
    """A result that would be another one; `is_decided` by the documents, whatever else is known.

    `explanation` is None where the check is no longer about the entity, for entities that are not
    among the documents, and where it would tell what may not be told of them.
    """

    difference: ResultDifference
    check: Check
    is_decided: bool
    is_new_failure: bool
    explanation: Explanation | None


class EntityTrial:
    """A trial of some entities by an actor, at one time."""

    def __init__(
        self,
        trial: WriteTrial,
        rules: PushRules,
        actor: Actor,
        named_set: str | None = None,
    ) -> None:
        """Stored values of the entities in `named_set` may be told, those of no others."""
        self._named_set = named_set
        self._trial = trial
        self._rules = rules
        self._actor = actor
        self._now = actor.now
        self._facts: dict[str, GivenFacts] = {}
        self._own: dict[str, Mapping[str, Any]] = {}
        self._in_named_set: set[str] = set()
        self.changes: list[EntityChange] = []
        self.results: list[TriedEntityResult] = []

    async def run(self, documents: Sequence[msgspec.Raw], given: Given) -> None:
        """Try the documents, with the facts given of each entity.

        Raises InvalidItemsError as a push does, and InputError if they reach too many others.
        """
        refs = [one.ref for one in sets.prepare(documents, None, self._rules).items]
        self._own = {
            ref: msgspec.json.decode(raw) for ref, raw in zip(refs, documents, strict=True)
        }
        held = WriteLocks({})

        def work(transaction: Transaction) -> None:
            held.begin(transaction)
            owners = diff.owners(transaction, refs)
            names = {ref: owners[ref][1] if ref in owners else None for ref in refs}
            if self._named_set is not None:
                self._in_named_set = {ref for ref in refs if names[ref] == self._named_set}
            # Where they are, and outside of any set, where the trial has them.
            places = [*names.items(), *((ref, None) for ref in refs)]
            held.require({locks.owner(name, ref) for ref, name in places})
            plan = self._plan(transaction, dict(zip(refs, documents, strict=True)), owners)
            _check_reach(transaction, plan)
            apply.apply(transaction, plan, self._actor, held, kept=1)
            self._record(transaction, refs, given)

        await self._trial.write(work, self._explain)

    def _plan(
        self,
        transaction: Transaction,
        documents: Mapping[str, msgspec.Raw],
        owners: Mapping[str, tuple[Existing, str | None]],
    ) -> WritePlan:
        """The plan that writes the documents where their entities are."""
        plan, self.changes = WritePlan(None), []
        stored = _read_stored_documents(
            transaction, [existing.id for existing, _ in owners.values()]
        )
        for ref, document in documents.items():
            if ref not in owners:
                plan.added.append(self._prepared(document, None))
                self.changes.append(EntityChange(ref, "added"))
                continue
            existing, name = owners[ref]
            given = _add_places(document, stored[ref], self._rules.annotator.domain)
            item = self._prepared(given, name)
            is_same = item.etag == existing.etag
            if not is_same:
                plan.updated.append((item, existing))
            self.changes.append(EntityChange(ref, "unchanged" if is_same else "updated"))
        return plan

    def _prepared(self, document: msgspec.Raw, set_name: str | None) -> Prepared:
        [item] = sets.prepare_one(document, set_name, self._rules).items
        return item

    def _record(self, transaction: Transaction, refs: Sequence[str], given: Given) -> None:
        """Write the facts given of entities, beside the others of their source."""
        self._facts = {}
        ids = collectable.ids_of(transaction, refs)
        for ref, document in _read_stored_documents(transaction, list(ids.values())).items():
            if found := given(document):
                self._facts[ref] = found
                seen = _observe_facts(transaction, ids[ref], found)
                store.record_facts(transaction, found.source, [seen], self._now)

    def _explain(self, found: EvaluatedTrial) -> None:
        """Note what would change, that of the documents' own entities first."""
        ordered = sorted(found.differences, key=lambda one: (one.ref not in self._own, *one[:2]))
        self.results = list(self._explained(found, ordered))

    def _explained(
        self, found: EvaluatedTrial, differences: Sequence[ResultDifference]
    ) -> Iterator[TriedEntityResult]:
        checks = {one.id: one.compiled for one in found.known.checks if not one.is_pending}
        entities = found.entities
        partial = {
            ref: PartialEvaluation(checks, entities[ref], self._counted(ref), self._now)
            for ref in {one.ref for one in differences}
        }
        for position, one in enumerate(differences):
            found.budget.check()
            check, ref = checks[one.check_id].check, one.ref
            is_decided = partial[ref].state(check.id) is not None
            fails = one.after == "fail" != one.before and check.severity == "required"
            told = None
            # What entities change for others may be thousands of results, of other people's facts.
            is_shown = position < MOST_EXPLAINED and ref in self._own
            if is_shown and one.after in ("pass", "fail", "unknown"):
                told = self._told(check, entities[ref], partial[ref])
                told = told if told and state.name_state(told.state) == one.after else None
            counts = fails and is_decided and check.is_effective(self._now)
            yield TriedEntityResult(one, check, is_decided, counts, told)

    def _told(self, check: Check, entity: CheckedEntity, partial: PartialEvaluation) -> Explanation:
        if entity.ref in self._in_named_set:
            return explanation.explain_check(check, entity, self._now)
        document = self._own[entity.ref]
        return explanation.explain_narrowed(check, entity, document, partial.is_given, self._now)

    def _counted(self, ref: str) -> Callable[[FactReference], bool]:
        """The facts that the catalog or the documents know."""
        given = self._facts.get(ref)

        def counts(fact: FactReference) -> bool:
            if fact.source == ENTITY or catalog.answers(fact.source):
                return True
            return given is not None and (
                given.source.id == fact.source and fact.fact in given.values
            )

        return counts


def _check_reach(transaction: Transaction, plan: WritePlan) -> None:
    """Raise InputError if the results of very many other entities may change."""
    if reach.others(transaction, plan, _MOST_OTHERS) > _MOST_OTHERS:
        raise InputError(
            f"The items name, or are named by, more than {_MOST_OTHERS:,} other entities, and a "
            "preview evaluates no more; send fewer at once."
        )


def _observe_facts(transaction: Transaction, entity_id: int, given: GivenFacts) -> Observation:
    rows = transaction.all(*store.latest_among([given.source.id], [entity_id]))
    latest = store.group_latest(rows).get(entity_id, {}).get(given.source.id, _NOTHING)
    reasons = {at: why for at, why in latest.reasons.items() if at not in given.values}
    return Observation(entity_id, {**latest.facts, **given.values}, reasons)


def _read_stored_documents(transaction: Transaction, ids: list[int]) -> dict[str, dict[str, Any]]:
    rows = transaction.all(*collectable.among(collectable.EVERYTHING, ids))
    return {ref: document for _, ref, document in collectable.read(rows)}


def _add_places(document: msgspec.Raw, stored: Mapping[str, Any], domain: str) -> msgspec.Raw:
    """A document with what the importer of its entity has added, where it says nothing else."""
    before = stored["metadata"].get("annotations", {})
    if f"{domain}/import-origin" not in before:
        return document
    entity = msgspec.json.decode(document)
    own = entity["metadata"].get("annotations") or {}
    added = {
        name: value
        for name, value in before.items()
        if name.startswith(f"{domain}/") or name.endswith((*_PLACES, *_HOSTED))
    }
    # In the order of an import, as one in another order is another document.
    entity["metadata"]["annotations"] = {
        **{
            name: own.get(name, value) for name, value in before.items() if name in {**added, **own}
        },
        **own,
    }
    return msgspec.Raw(msgspec.json.encode(entity))
