"""What else clients of the catalog API ask for: ancestry, deletion, refresh, locations."""

from typing import Any

import pytest

from factbook.auth.permissions import CATALOG_READ, SET_WRITE, SOURCE_RUN
from factbook.worker import Worker
from tests.service import Service, component

CATALOG = "/api/catalog"
PAYMENTS = f"{CATALOG}/entities/by-name/component/default/payments"


@pytest.mark.spec("catalog.ancestry")
async def test_an_entity_is_its_own_only_ancestor(service: Service) -> None:
    await service.push("all", component("Payments"))
    answer = await service.http.get(f"{PAYMENTS}/ancestry")
    assert answer.status_code == 200
    entity = (await service.http.get(PAYMENTS)).json()
    assert answer.json() == {
        "rootEntityRef": "component:default/payments",
        "items": [{"entity": entity, "parentEntityRefs": []}],
    }
    missing = await service.http.get(f"{CATALOG}/entities/by-name/api/default/none/ancestry")
    assert missing.status_code == 404
    assert missing.json()["error"]["name"] == "NotFoundError"


@pytest.mark.spec("catalog.delete-by-uid")
async def test_deleting_by_uid_removes_an_entity_and_answers_204_always(service: Service) -> None:
    await service.push("all", component("payments"), component("orders"))
    uid = (await service.http.get(PAYMENTS)).json()["metadata"]["uid"]
    for one in (uid, uid, "no-such-uid"):
        answer = await service.http.delete(f"{CATALOG}/entities/by-uid/{one}")
        assert (answer.status_code, answer.content) == (204, b"")
    assert (await service.http.get(PAYMENTS)).status_code == 404
    kept = (await service.http.get(f"{CATALOG}/factbook-entities/sets/all")).json()
    assert [item["entityRef"] for item in kept["items"]] == ["component:default/orders"]
    assert kept["revision"] == 2


@pytest.mark.spec("catalog.delete-by-uid")
async def test_deleting_needs_the_permission_to_write(service: Service) -> None:
    await service.push("all", component("payments"))
    uid = (await service.http.get(PAYMENTS)).json()["metadata"]["uid"]
    async with service.client(await service.token(CATALOG_READ)) as reader:
        answer = await reader.delete(f"{CATALOG}/entities/by-uid/{uid}")
    assert answer.status_code == 403
    assert SET_WRITE in answer.json()["error"]["message"]
    assert (await service.http.get(PAYMENTS)).status_code == 200


async def samples(service: Service) -> list[tuple[str, int]]:
    """Entity and time of each sample of its metadata in the history of facts."""
    return await service.state.database.all(
        "SELECT e.name, h.written_at FROM facts_history h JOIN entities e ON e.id = h.entity_id "
        "WHERE h.source_id = 'entity-metadata' ORDER BY h.written_at, e.name"
    )


def worker(service: Service) -> Worker:
    state = service.state
    return Worker(state.database, state.settings, state.registry, service.time, "test")


@pytest.mark.spec("catalog.refresh")
async def test_refreshing_queues_a_collection_of_that_entity(service: Service) -> None:
    await service.push("all", component("payments"), component("orders"))
    collect = worker(service).collect
    assert await collect() == 0
    for ref in ("component:payments", "Component:default/Payments"):
        body = {"entityRef": ref, "authorizationToken": "ignored"}
        answer = await service.http.post(f"{CATALOG}/refresh", json=body)
        assert (answer.status_code, answer.content) == (200, b"")
    assert await collect() == 1  # asked for twice, done once
    assert await samples(service) == [("payments", service.time())]
    assert await collect() == 0


@pytest.mark.spec("catalog.refresh")
async def test_a_request_outlives_a_worker_that_fails_and_an_entity_that_goes(
    service: Service,
) -> None:
    await service.push("all", component("payments"), component("orders"))
    for name in ("payments", "orders"):
        body = {"entityRef": f"component:{name}"}
        assert (await service.http.post(f"{CATALOG}/refresh", json=body)).status_code == 200
    await service.state.database.write(
        lambda tx: tx.run("ALTER TABLE facts_history RENAME TO away")
    )
    with pytest.raises(Exception, match="facts_history"):
        await worker(service).collect()
    await service.state.database.write(
        lambda tx: tx.run("ALTER TABLE away RENAME TO facts_history")
    )
    await service.push("all", component("orders"))
    assert await worker(service).collect() == 2
    assert [name for name, _ in await samples(service)] == ["orders"]


@pytest.mark.spec("catalog.refresh")
async def test_what_cannot_be_refreshed_is_refused(
    service: Service, subtests: pytest.Subtests
) -> None:
    await service.push("all", component("payments"))
    cases: list[tuple[dict[str, Any], int]] = [
        ({"entityRef": "component:none"}, 404),
        ({"entityRef": "none"}, 400),
        ({}, 400),
        ({"entityRef": "component:payments", "more": 1}, 400),
    ]
    for body, status in cases:
        with subtests.test(body=body):
            answer = await service.http.post(f"{CATALOG}/refresh", json=body)
            assert answer.status_code == status, answer.text


@pytest.mark.spec("catalog.refresh")
async def test_refreshing_needs_the_permission_to_run_sources(service: Service) -> None:
    await service.push("all", component("payments"))
    async with service.client(await service.token(CATALOG_READ, SET_WRITE)) as reader:
        body = {"entityRef": "component:payments"}
        answer = await reader.post(f"{CATALOG}/refresh", json=body)
    assert answer.status_code == 403
    assert SOURCE_RUN in answer.json()["error"]["message"]


@pytest.mark.spec("catalog.locations-are-empty")
async def test_there_are_no_locations(service: Service) -> None:
    await service.push("all", component("payments"))
    assert (await service.http.get(f"{CATALOG}/locations")).json() == []
    query = await service.http.post(f"{CATALOG}/locations/by-query", json={"limit": 10})
    assert query.json() == {"items": [], "totalItems": 0, "pageInfo": {}}
    for path in ("/locations/x", "/locations/by-entity/component/default/payments"):
        answer = await service.http.get(f"{CATALOG}{path}")
        assert answer.status_code == 404
        assert answer.json()["error"]["name"] == "NotFoundError"


@pytest.mark.spec("catalog.location-writes-are-501")
async def test_writing_locations_is_not_offered_and_says_what_is(
    service: Service, subtests: pytest.Subtests
) -> None:
    body = {"type": "url", "target": "https://example.com/catalog-info.yaml"}
    for method, path in [
        ("POST", "/locations"),
        ("POST", "/locations?dryRun=true&onConflict=refresh"),
        ("PUT", "/locations/x"),
        ("DELETE", "/locations/x"),
        ("POST", "/analyze-location"),
    ]:
        with subtests.test(method=method, path=path):
            answer = await service.http.request(method, f"{CATALOG}{path}", json=body)
            assert answer.status_code == 501
            error = answer.json()["error"]
            assert error["name"] == "NotImplementedError"
            assert "PUT /api/catalog/factbook-entities/sets/{set_id}" in error["message"]


async def test_by_refs_takes_a_predicate_too(service: Service) -> None:
    await service.push("all", component("a"), component("b", type="library"))
    body = {
        "entityRefs": ["component:a", "component:b"],
        "query": {"spec.type": "library"},
        "fields": ["metadata.name"],
    }
    answer = await service.http.post(f"{CATALOG}/entities/by-refs", json=body)
    assert answer.json() == {"items": [None, {"metadata": {"name": "b"}}]}
