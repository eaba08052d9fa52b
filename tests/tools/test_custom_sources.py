"""The tools and what users define: discovered, counted, asked for by the names that they chose."""

from typing import Any

import pytest

from factbook.clock import SECOND
from factbook.facts.datasource import DataSource, Handler
from factbook.integrations import SOURCES
from tests.api import defining
from tests.api.defining import define, item, push, pushed
from tests.conftest import StartService
from tests.service import Service, component, resource
from tests.tools.checks import refusal, structured

DISCOVERY = "get-data-source-discovery"
ONE = "get-entity-facts"
ALL = "get-all-entities-facts"
PAYMENTS = "component:default/payments"
ORDERS = "component:default/orders"
SCHEMA = {
    "Code coverage": {"type": "float", "description": "Of the last build.", "unit": "percent"},
    "on-call.größe": {"type": "integer"},
    "checkedAt": {"type": "datetime"},
}
QUALITY = pushed("team-quality", title="Quality", schema=SCHEMA)
FACTS: dict[str, Any] = {"Code coverage": 82.5, "on-call.größe": 4}
LESS: dict[str, Any] = {"Code coverage": 7}


@pytest.fixture
async def filled(service: Service) -> Service:
    entities = component("payments"), component("orders"), resource("account")
    answer = await service.push("first", *entities)
    assert answer.status_code == 200, answer.text
    return service


async def ask(service: Service, tool: str, **arguments: Any) -> dict[str, Any]:
    return structured(tool, await service.ask(tool, **arguments))


@pytest.mark.spec("tools.sources.counts", "tools.sources.lists-sources")
async def test_a_custom_source_is_discovered_and_counted_once_it_is_defined(
    filled: Service,
) -> None:
    await define(filled, QUALITY, publish=False)
    found = await ask(filled, DISCOVERY)
    assert (found["totalCount"], found["builtinCount"], found["customCount"]) == (4, 3, 1)
    shown = found["dataSources"][-1]
    assert (shown["id"], shown["title"], shown["draft"]) == ("team-quality", "Quality", True)
    assert shown["schema"] == {
        name: {**fact, "metadata": {"key": name}} for name, fact in SCHEMA.items()
    }
    handler = {"type": "push", "config": {"id": "team-quality"}}
    assert shown["handlerDefinition"] == handler
    await define(filled, QUALITY)
    shown = (await ask(filled, DISCOVERY))["dataSources"][-1]
    assert (shown["draft"], shown["version"]) == (False, "1.0.0")


@pytest.mark.spec("tools.sources.counts")
async def test_builtin_is_what_names_what_it_is_built_in_as(start: StartService) -> None:
    sources = [
        *SOURCES,
        DataSource(id="a", title="A", handler=Handler("builtin", "a", builtin_id="github")),
        DataSource(id="b", title="B", handler=Handler("builtin", "b")),
        DataSource(id="c", title="C"),
    ]
    found = await ask(await start(sources=sources), DISCOVERY, limit=1)
    assert (found["totalCount"], found["builtinCount"], found["customCount"]) == (6, 4, 2)


@pytest.mark.spec("tools.entities-facts.of-custom-sources", "sources.custom-facts-by-their-names")
async def test_its_facts_are_asked_for_by_the_names_that_its_author_gave(filled: Service) -> None:
    await define(filled, QUALITY)
    await push(filled, item(PAYMENTS, **FACTS), item(ORDERS, **LESS), to="team-quality")
    time = "2026-11-21T12:00:00.000+00:00"
    assert await ask(filled, ONE, dataSourceId="team-quality", name="payments") == {
        "dataSourceId": "team-quality",
        "dataSourceTitle": "Quality",
        "entityRef": PAYMENTS,
        "facts": FACTS,
        "timestamp": time,
        "unknownReasons": {"*": "not-sent"},
    }
    asked = {"dataSourceId": "team-quality", "facts": ["on-call.größe"], "kind": "*"}
    assert await ask(filled, ALL, **asked) == {
        "dataSourceId": "team-quality",
        "dataSourceTitle": "Quality",
        "entities": [
            {
                "entityRef": ORDERS,
                "facts": {},
                "timestamp": time,
                "unknownReasons": {"on-call.größe": "not-sent"},
            },
            {"entityRef": PAYMENTS, "facts": {"on-call.größe": 4}, "timestamp": time},
        ],
        "unknownEntities": {"count": 1, "reasons": {"never-collected": 1}},
    }
    [row] = (await ask(filled, "get-fact-history", name="payments", facts=["Code coverage"]))[
        "history"
    ]
    assert row["facts"] == {"Code coverage": 82.5}
    text = refusal(await filled.ask(ALL, dataSourceId="team-quality", facts=["coverage"]))
    assert "There are: Code coverage, on-call.größe, checkedAt." in text


@pytest.mark.spec("tools.entities-facts.of-custom-sources")
async def test_an_entity_of_which_nobody_said_anything_has_no_facts(filled: Service) -> None:
    await define(filled, QUALITY)
    found = await ask(filled, ONE, dataSourceId="team-quality", name="payments")
    assert found["facts"] == {}
    assert "timestamp" not in found
    assert (await ask(filled, ALL, dataSourceId="team-quality"))["entities"] == []


@pytest.mark.spec("sources.draft-facts-are-marked")
async def test_facts_of_a_draft_are_marked_until_it_is_published(filled: Service) -> None:
    await define(filled, QUALITY, publish=False)
    await push(filled, item(PAYMENTS, **FACTS), to="team-quality")
    asked = {"dataSourceId": "team-quality"}
    assert (await ask(filled, ONE, **asked, name="payments"))["draft"] is True
    assert (await ask(filled, ALL, **asked))["draft"] is True
    await define(filled, QUALITY)
    assert "draft" not in await ask(filled, ONE, **asked, name="payments")
    assert "draft" not in await ask(filled, ALL, **asked, limit=1)
    # What the pending draft of a published source says is not told yet.
    more = {**QUALITY, "title": "Better", "schema": {**SCHEMA, "extra": {"type": "string"}}}
    await define(filled, more, publish=False)
    found = await ask(filled, ONE, **asked, name="payments")
    assert (found["dataSourceTitle"], found["facts"]) == ("Quality", FACTS)
    assert "has no fact extra" in refusal(await filled.ask(ALL, **asked, facts=["extra"]))


@pytest.mark.spec("tool-error.unknown-data-source")
async def test_a_deleted_source_is_unknown_to_every_tool(filled: Service) -> None:
    await define(filled, QUALITY)
    await push(filled, item(PAYMENTS, **FACTS), to="team-quality")
    answer = await filled.http.delete(f"{defining.SOURCES}/team-quality")
    assert answer.status_code == 204, answer.text
    asked = {"dataSourceId": "team-quality"}
    for tool, named in (
        (ONE, {"name": "payments"}),
        (ALL, {}),
        ("get-fact-history", {"name": "payments"}),
        ("get-changed-facts", {"since": "7d"}),
    ):
        text = refusal(await filled.ask(tool, **asked, **named))
        assert text.startswith('There is no data source "team-quality". There are: entity-metadata')
    assert (await ask(filled, "get-fact-history", name="payments"))["history"] == []
    assert (await ask(filled, DISCOVERY))["customCount"] == 0


@pytest.mark.spec("tools.sources.counts", "tool-error.unknown-data-source")
async def test_a_thousand_sources_are_counted_and_not_all_listed_in_a_refusal(
    start: StartService,
) -> None:
    many = [DataSource(id=f"team-{number:03}", title="T") for number in range(1_000)]
    service = await start(sources=[*SOURCES, *many])
    service.time.advance(SECOND)
    found = await ask(service, DISCOVERY, limit=2)
    assert (len(found["dataSources"]), found["totalCount"], found["customCount"]) == (2, 1003, 1000)
    text = refusal(await service.ask(ALL, dataSourceId="team-x"))
    assert "entity-metadata, entity-ownership, techdocs, team-000, " in text
    assert "team-016 and 983 more. Call get-data-source-discovery" in text
