"""A data source whose facts tests write themselves, and how they do it."""

from collections.abc import Mapping
from typing import Any

from factbook.catalog.store import stored_entities
from factbook.facts import store
from factbook.facts.datasource import DataSource, Handler
from factbook.facts.freshness import Observation
from factbook.facts.schema import Fact
from tests.service import Service
from tests.storage.evaluating import evaluating

DELIVERIES = DataSource(
    id="deliveries",
    title="Deliveries",
    description="How often a component is delivered.",
    cadence="0 * * * *",
    handler=Handler("http", "deliveries"),
    version="2.1.0",
    entity_filter=[{"kind": ["component"]}],
    schema=(
        Fact("deployments", "integer", "In the last seven days."),
        Fact("leadTime", "float", "From commit to production.", "hours"),
        Fact("failureRate", "float", "", "percent, 0 to 100"),
        Fact("restoreTime", "float", "", "seconds"),
        Fact("lastDeployment", "datetime"),
        Fact("onCall", "boolean"),
        Fact("pipeline", "string"),
        Fact("regions", "set"),
        Fact("settings", "object"),
        Fact("codehost.pullRequests.total", "integer", "All pull requests."),
        Fact("codehost.pullRequests.merged", "integer"),
        Fact("slashed/name", "integer"),
    ),
)
ANNOTATED = DataSource(
    id="annotated",
    title="Annotated",
    cadence="0 6 * * *",
    handler=Handler("http", "annotated"),
    entity_filter=[
        {"kind": ["component"], "metadata.annotations.acme.example/id": {"exists": True}}
    ],
    schema=(Fact("found", "boolean"),),
)
SOURCES = (DELIVERIES, ANNOTATED)


async def write(
    service: Service,
    ref: str,
    values: Mapping[str, Any],
    *,
    source: DataSource = DELIVERIES,
    reasons: Mapping[str, str] | None = None,
    passing: frozenset[str] = frozenset(),
) -> None:
    """Store what a collection brought for an entity at this moment."""
    entity_id = await stored_entities.read_entity_id(service.state.database, ref)
    assert entity_id is not None
    observation = Observation(entity_id, values, reasons or {}, passing)
    now = service.time()
    await service.state.database.write(
        evaluating(lambda transaction: store.record_facts(transaction, source, [observation], now))
    )
