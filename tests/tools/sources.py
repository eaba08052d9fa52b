"""Further data sources for tests, and facts in them."""

from collections.abc import Collection, Mapping

from factbook.facts import freshness, store
from factbook.facts.datasource import DataSource, Handler, Lifecycle
from factbook.facts.schema import Fact
from tests.service import Service
from tests.storage.evaluating import evaluating

COVERAGE = DataSource(
    id="coverage",
    title="Test coverage",
    description="Lines that the tests reach.",
    cadence="15 * * * *",
    lifecycle=Lifecycle(max_items=5),
    created_at=1_790_000_000_000,
    updated_at=1_790_000_000_001,
    handler=Handler("http", "coverage-http", config={"url": "https://vendor", "token": "s3cret"}),
    timeout={"minutes": 5},
    version="2.1.0-rc.1",
    entity_filter=[{"kind": ["component", "api"]}],
    schema=(
        Fact("lines", "integer", "Lines of code."),
        Fact("share", "float", "Share that is reached.", "percent"),
        Fact("tool", "string"),
        Fact("green", "boolean"),
        Fact("ranAt", "datetime"),
        Fact("branches", "set"),
        Fact("raw", "object"),
    ),
)
DRAFT = DataSource(id="draft", title="A draft", draft=True, schema=(Fact("lines", "integer"),))

TREE = DataSource(
    id="tree",
    title="Files",
    version="1.4.0",
    schema=(
        Fact("repo.files", "set"),
        Fact("repo.about", "string"),
        Fact("repo.owners", "object"),
        Fact("stars", "integer"),
    ),
)


async def record(
    service: Service,
    ref: str,
    values: Mapping[str, object],
    source: DataSource = COVERAGE,
    reasons: Mapping[str, str] | None = None,
    passing: Collection[str] = (),
) -> None:
    """Store facts about a pushed entity as a collection at this moment would."""
    database, now = service.state.database, service.time()
    found = await database.one("SELECT id FROM entities WHERE ref = ?", (ref,))
    assert found is not None, ref
    entity_id = found[0]
    brought = freshness.Observation(entity_id, values, reasons or {}, frozenset(passing))
    await database.write(evaluating(lambda tx: store.record_facts(tx, source, [brought], now)))
