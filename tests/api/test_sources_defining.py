"""`/api/tech-insights/v1/data-sources`: defining, listing and deleting sources."""

import pytest

from tests.api.defining import (
    LINES,
    SOURCES,
    TOOL,
    WEB,
    define,
    history,
    item,
    latest,
    of_entities,
    push,
    pushed,
    shown,
)
from tests.service import Service, component

ON_SQLITE = pytest.mark.parametrize("database_url", ["sqlite"], indirect=True)


@pytest.mark.spec("sources.defined-by-users", "sources.draft-until-published")
async def test_a_source_is_defined_read_published_and_deleted(service: Service) -> None:
    made = await service.http.post(SOURCES, json=pushed(description="How much is tested"))
    assert made.status_code == 201, made.text
    assert made.json() == await shown(service)
    facts = {
        "lines": {**LINES, "metadata": {"key": "lines"}},
        "tool": {**TOOL, "metadata": {"key": "tool"}},
    }
    time = "2026-11-21T12:00:00.000+00:00"
    assert made.json() == {
        "id": "coverage",
        "title": "Coverage",
        "description": "How much is tested",
        "createdAt": time,
        "updatedAt": time,
        "handlerDefinition": {"type": "push", "config": {"id": "coverage"}},
        "draft": True,
        "version": "0.0.0",
        "schema": facts,
        "origin": "custom",
        "definition": {
            "pending": True,
            "createdBy": "user:default/tester",
            "updatedBy": "user:default/tester",
            "versions": [],
            "draft": pushed(description="How much is tested"),
            "published": None,
        },
    }
    published = await service.http.post(f"{SOURCES}/coverage/publish", json={})
    assert published.status_code == 200, published.text
    found = published.json()
    assert (found["draft"], found["version"]) == (False, "1.0.0")
    assert found["definition"] | {"versions": []} == {
        **made.json()["definition"],
        "pending": False,
        "draft": None,
        "published": pushed(description="How much is tested"),
    }
    [version] = found["definition"]["versions"]
    assert version == {
        "version": "1.0.0",
        "publishedAt": time,
        "publishedBy": "user:default/tester",
    }
    assert (await service.http.delete(f"{SOURCES}/coverage")).status_code == 204
    assert (await service.http.get(f"{SOURCES}/coverage")).status_code == 404
    assert (await service.http.delete(f"{SOURCES}/coverage")).status_code == 404


@pytest.mark.spec("sources.defined-by-users")
async def test_the_list_has_the_builtin_sources_and_then_those_of_users(service: Service) -> None:
    for id_ in ("zeta", "alpha"):
        await define(service, pushed(id_))
    answer = await service.http.get(SOURCES)
    listed = answer.json()
    assert [one["id"] for one in listed["dataSources"]] == [
        *("entity-metadata", "entity-ownership", "techdocs"),
        *("alpha", "zeta"),
    ]
    assert [one["origin"] for one in listed["dataSources"]] == ["builtin"] * 3 + ["custom"] * 2
    assert listed["totalCount"] == 5
    assert "definition" not in answer.text
    discovered = await service.facts("get-data-source-discovery")
    assert [one["id"] for one in discovered["dataSources"]] == [
        one["id"] for one in listed["dataSources"]
    ]
    assert (discovered["builtinCount"], discovered["customCount"]) == (3, 2)


@ON_SQLITE
async def test_pages_of_the_list_hold_every_source_once(
    service: Service, subtests: pytest.Subtests
) -> None:
    for number in range(4):
        await define(service, pushed(f"source-{number}"))
    for size in [1, 2, 3, 7, 100]:
        with subtests.test(size=size):
            found: list[str] = []
            cursor: dict[str, str] = {}
            while True:
                page = (await service.http.get(SOURCES, params={"limit": size, **cursor})).json()
                found += [one["id"] for one in page["dataSources"]]
                assert len(page["dataSources"]) <= size
                if "nextCursor" not in page:
                    break
                cursor = {"cursor": page["nextCursor"]}
            assert len(found) == 7
            assert found[3:] == [f"source-{number}" for number in range(4)]
            gone = await service.http.get(SOURCES, params={"cursor": "source-1x"})
            assert [one["id"] for one in gone.json()["dataSources"]] == ["source-2", "source-3"]


@pytest.mark.spec("sources.deleted-with-its-facts")
async def test_a_deleted_source_leaves_nothing_behind(service: Service) -> None:
    await service.push("all", component("web"))
    for id_ in ("coverage", "other"):
        await define(service, pushed(id_))
        await push(service, item(lines=80), to=id_)
    await define(service, of_entities())
    assert (await service.http.post(f"{SOURCES}/owners/run")).status_code == 202
    for id_ in ("coverage", "owners"):
        assert (await service.http.delete(f"{SOURCES}/{id_}")).status_code == 204
    assert [one["dataSourceId"] for one in await history(service)] == ["other"]
    assert await latest(service, "other") == {WEB: {"lines": 80}}
    for table in ("data_sources", "data_source_versions", "facts_latest", "facts_history"):
        rows = await service.state.database.all(f"SELECT * FROM {table}")  # noqa: S608 - own words
        assert len(rows) == 1, table
    for table in ("runs", "batches", "source_health", "memories"):
        rows = await service.state.database.all(f"SELECT * FROM {table}")  # noqa: S608 - own words
        assert rows == [], table
    await define(service, pushed())
    assert (await shown(service))["version"] == "1.0.0"
    assert await latest(service) == {}


@ON_SQLITE
async def test_a_long_history_is_deleted_whole(service: Service) -> None:
    await define(service, pushed())
    columns = ("source_id", "entity_id", "written_at", "facts", "reasons", "version")
    rows = [("coverage", n // 10, n % 10, "{}", "{}", "1.0.0") for n in range(12_000)]
    await service.state.database.write(lambda tx: tx.insert("facts_history", columns, rows))
    assert (await service.http.delete(f"{SOURCES}/coverage")).status_code == 204
    assert await service.state.database.one("SELECT count(*) FROM facts_history") == (0,)
