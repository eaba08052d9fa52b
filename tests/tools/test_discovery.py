"""get-data-source-discovery."""

import re

import pytest

from factbook.facts.schema import TYPES
from factbook.integrations import SOURCES
from factbook.scheduling import schedule
from tests.conftest import StartService
from tests.service import Service, component
from tests.tools.checks import TIME, structured
from tests.tools.sources import COVERAGE, DRAFT, record

DISCOVERY = "get-data-source-discovery"
OWN = ["entity-metadata", "entity-ownership", "techdocs"]


@pytest.fixture
async def wider(start: StartService) -> Service:
    """A service with two data sources of a user's own."""
    return await start(sources=[*SOURCES, COVERAGE, DRAFT])


@pytest.mark.spec(
    "tools.sources.takes-nothing",
    "tools.sources.lists-sources",
    "sources.the-catalogs-three",
    "sources.unconfigured-are-not-listed",
)
async def test_the_catalogs_own_three_sources_are_there_and_no_unconfigured_one(
    service: Service,
) -> None:
    found = structured(DISCOVERY, await service.ask(DISCOVERY))
    assert [source["id"] for source in found["dataSources"]] == OWN
    assert (found["totalCount"], found["builtinCount"], found["customCount"]) == (3, 3, 0)
    assert {source["id"]: list(source["schema"]) for source in found["dataSources"]} == {
        "entity-metadata": ["hasTitle", "hasDescription", "hasTags", "hasOwner"],
        "entity-ownership": ["hasOwner", "hasGroupOwner", "hasRelationships", "ownerExists"],
        "techdocs": ["hasTechdocsRef"],
    }


@pytest.mark.spec("tools.sources.lists-sources", "source.id", "source.title", "source.schema")
async def test_every_listed_source_is_described_as_the_seed_says(wider: Service) -> None:
    found = await wider.facts(DISCOVERY)
    for source in found["dataSources"]:
        assert source["id"]
        assert source["title"]
        assert isinstance(source["draft"], bool)
        assert re.fullmatch(r"\d+\.\d+\.\d+.*", source["version"])
        if "cadence" in source:
            schedule.parse_cadence(source["cadence"])
        for name, fact in source["schema"].items():
            assert fact["type"] in TYPES
            assert fact["metadata"]["key"] == name


@pytest.mark.spec(
    "source.handler-definition-hides-the-rest", "source.handler-definition", "source.timeout"
)
async def test_a_source_is_shown_whole_but_for_what_its_handler_keeps(wider: Service) -> None:
    result = await wider.ask(DISCOVERY)
    found = structured(DISCOVERY, result)
    [shown] = [source for source in found["dataSources"] if source["id"] == "coverage"]
    assert shown == {
        "id": "coverage",
        "title": "Test coverage",
        "description": "Lines that the tests reach.",
        "cadence": "15 * * * *",
        "lifecycle": {"maxItems": 5},
        "createdAt": "2026-09-21T14:13:20.000+00:00",
        "updatedAt": "2026-09-21T14:13:20.001+00:00",
        "handlerDefinition": {"type": "http", "config": {"id": "coverage-http"}},
        "timeout": {"minutes": 5},
        "draft": False,
        "version": "2.1.0-rc.1",
        "entityFilter": [{"kind": ["component", "api"]}],
        "schema": {fact.name: fact.descriptor() for fact in COVERAGE.schema},
    }
    assert re.fullmatch(TIME, shown["createdAt"])
    assert "s3cret" not in str(result)


@pytest.mark.spec("tools.sources.counts")
async def test_the_counts_tell_builtin_sources_from_custom_ones(wider: Service) -> None:
    found = await wider.facts(DISCOVERY)
    assert (found["totalCount"], found["builtinCount"], found["customCount"]) == (5, 3, 2)
    assert found["totalCount"] == len(found["dataSources"])


@pytest.mark.spec("tools.sources.limit")
async def test_a_limit_shortens_the_list_and_leaves_the_counts(wider: Service) -> None:
    everything = await wider.facts(DISCOVERY)
    for limit in (1, 4, 5, 2**70):
        found = structured(DISCOVERY, await wider.ask(DISCOVERY, limit=limit))
        assert found["dataSources"] == everything["dataSources"][:limit]
        assert (found["totalCount"], found["builtinCount"], found["customCount"]) == (5, 3, 2)


@pytest.mark.spec("tools.sources.ids-work-elsewhere")
async def test_every_discovered_id_is_taken_by_both_fact_tools(wider: Service) -> None:
    await wider.push("first", component("payments"))
    ref = "component:default/payments"
    for source in (COVERAGE, DRAFT):
        await record(wider, ref, {"lines": 1}, source)
    for source in (await wider.facts(DISCOVERY))["dataSources"]:
        one = await wider.facts("get-entity-facts", dataSourceId=source["id"], name="payments")
        every = await wider.facts("get-all-entities-facts", dataSourceId=source["id"])
        assert one["dataSourceId"] == every["dataSourceId"] == source["id"]
        assert one["dataSourceTitle"] == every["dataSourceTitle"] == source["title"]
        assert [entity["facts"] for entity in every["entities"]] == [one["facts"]]
        assert one["facts"].keys() <= source["schema"].keys()
