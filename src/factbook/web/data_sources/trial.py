"""Trial of a definition on one entity, for the editor."""

from typing import Any, NamedTuple

import msgspec

from factbook.datasources import trial
from factbook.datasources.custom.definition import CustomSourceDefinition
from factbook.datasources.trial import TrialResponse
from factbook.errors import InputError
from factbook.facts import schema
from factbook.facts.freshness import find_reason
from factbook.facts.schema import Fact
from factbook.web.site.page_context import PageContext


class FactTrial(NamedTuple):
    """Result of one fact: a value as JSON, or the reason for none, and its meaning."""

    fact: Fact
    value: str | None
    reason: str
    meaning: str


class DefinitionTrial(NamedTuple):
    """Result of a trial; `whole` is the reason that there is no value at all."""

    ref: str
    request: Any
    answer: TrialResponse | None
    brought: list[FactTrial]
    whole: str

    @property
    def meaning(self) -> str:
        """Meaning of the reason for no value at all."""
        return schema.REASONS[schema.reason_word(self.whole)]

    @property
    def found(self) -> int:
        """Number of facts with a value."""
        return sum(one.value is not None for one in self.brought)


async def tried(
    visit: PageContext, definition: CustomSourceDefinition, entity: str
) -> DefinitionTrial:
    """Collect for the entity, and store nothing.

    Raises InputError for an invalid reference and for a connection that does not allow it,
    NotFoundError for an unknown entity.
    """
    if not entity:
        raise InputError("Name an entity to try it on.")
    state = visit.state
    ref, found = await trial.try_definition(
        state.database, state.registry, state.connect, definition, entity
    )
    brought = [_brought(fact, found.facts, found.reasons) for fact in definition.source.schema]
    return DefinitionTrial(ref, found.request, found.answer, brought, found.reasons.get("", ""))


def _brought(fact: Fact, facts: Any, reasons: Any) -> FactTrial:
    if fact.name in facts:
        return FactTrial(fact, msgspec.json.encode(facts[fact.name]).decode(), "", "")
    reason = find_reason(fact.name, reasons) or reasons.get("") or schema.NEVER_COLLECTED
    return FactTrial(fact, None, reason, schema.REASONS[schema.reason_word(reason)])
