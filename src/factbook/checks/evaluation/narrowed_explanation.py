"""Explanation of a result by some of the facts, for who may see no others."""

from collections.abc import Callable, Mapping
from typing import Any

from factbook.catalog.ref import DEFAULT_NAMESPACE
from factbook.checks.definitions.check import Check
from factbook.checks.evaluation import explanation
from factbook.checks.evaluation.explanation import Evidence, Explanation
from factbook.checks.rules.checked_entity import CheckedEntity
from factbook.checks.rules.fact_reference import CHECKS, FactReference
from factbook.facts.freshness import Latest

Counts = Callable[[FactReference], bool]


def explain(
    check: Check, entity: CheckedEntity, document: Mapping[str, Any], counts: Counts, now: int
) -> Explanation:
    """The result by what the document says and by the facts that count.

    The others are unknown, also in its texts, and comparisons of them are left out. Without them
    the state may be another one.
    """
    metadata = {"namespace": DEFAULT_NAMESPACE, **document["metadata"]}
    facts = {source: _narrowed(source, latest, counts) for source, latest in entity.facts.items()}
    states = {id_: entity.states[id_] for id_ in entity.states if counts(_check(id_))}
    known = CheckedEntity(entity.ref, {**document, "metadata": metadata}, facts, states)
    found = explanation.explain(check, known, now)
    return found._replace(because=[one for one in found.because if _counts(one, counts)])


def _narrowed(source: str, latest: Latest, counts: Counts) -> Latest:
    facts = {
        name: value for name, value in latest.facts.items() if counts(FactReference(source, name))
    }
    return latest._replace(facts=facts, reasons={})


def _check(id_: str) -> FactReference:
    return FactReference(CHECKS, id_)


def _counts(one: Evidence, counts: Counts) -> bool:
    other = one.leaf.value
    facts = [one.leaf.fact, *([other] if isinstance(other, FactReference) else [])]
    return all(map(counts, facts))
