"""The starter scorecard over HTTP: as documents, and adopted as drafts."""

from collections.abc import Sequence

from factbook.audit.trail import AuditEntry
from factbook.checks.definitions import definition_lock
from factbook.checks.submissions import starter
from factbook.checks.submissions.starter import Adoption, MissingFact
from factbook.facts.datasource import DataSource
from factbook.http import audit
from factbook.http.context import SourceContext
from factbook.http.requests import JsonReply, Request, reply
from factbook.schemas.checks import AdoptedStarter, StarterCheck, StarterDocuments
from factbook.storage import Transaction


async def get(request: Request, state: SourceContext) -> JsonReply[StarterDocuments]:
    """The checks and the scorecard of the starter, for the data sources that there are.

    Nothing is stored. `missing` has the checks that are left out, as no data source has their fact.
    """
    sources = await _sources(state)
    found = starter.documents(sources)
    checks, scorecards = (
        [one.document for one in found if one.kind == kind] for kind in ("check", "scorecard")
    )
    return reply(StarterDocuments(checks, scorecards, _shown(starter.missing(sources))))


async def adopt(request: Request, state: SourceContext) -> JsonReply[AdoptedStarter]:
    """Make drafts of the starter; what has one of its ids stays as it is.

    Nothing is evaluated before it is published.
    """
    sources, now = await _sources(state), state.clock()
    wanted = starter.documents(sources)
    [card] = [one.document["id"] for one in wanted if one.kind == "scorecard"]

    def work(transaction: Transaction) -> Adoption:
        definition_lock.take(transaction)
        return starter.adopt(transaction, wanted, request.actor, now)

    def about(adopted: Adoption) -> AuditEntry:
        return AuditEntry("scorecard.create", card, {"drafts": list(adopted.made)})

    adopted = await audit.writing(request, state, about)(work)
    missing = _shown(starter.missing(sources))
    return reply(AdoptedStarter(list(adopted.made), list(adopted.kept), missing))


async def _sources(state: SourceContext) -> list[DataSource]:
    return list((await state.registry.latest()).sources.values())


def _shown(missing: Sequence[MissingFact]) -> list[StarterCheck]:
    return [StarterCheck(*one) for one in missing]
