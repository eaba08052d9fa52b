"""Requests in exactly the form in which other programs of the catalog API write them."""

import json
from typing import Any

import httpx2
import pytest

from tests.service import Service, component, resource

CATALOG = "/api/catalog"


def names(items: list[dict[str, Any]]) -> list[str]:
    return [item["metadata"]["name"] for item in items]


async def get(service: Service, address: str) -> Any:
    """The answer to an address that is sent as it is."""
    answer = await service.http.get(
        httpx2.URL(f"http://127.0.0.1:8000{CATALOG}{address}"),
        headers={"accept": "application/json"},
    )
    assert answer.status_code == 200, answer.text
    return answer.json()


@pytest.fixture
async def catalog(service: Service) -> Service:
    components = [component(f"Service-{number}", tier=number % 3) for number in range(25)]
    resources = [resource(f"db-{number}", namespace="other") for number in range(4)]
    answer = await service.push("all", *components, *resources)
    assert answer.status_code == 200, answer.text
    return service


@pytest.mark.spec("catalog.list-filter", "catalog.list-fields", "catalog.list-order")
async def test_go_repeats_filters_and_orders_and_joins_fields_with_encoded_commas(
    catalog: Service,
) -> None:
    found = await get(
        catalog,
        "/entities?fields=metadata.name%2Cspec.tier"
        "&filter=kind%3Dresource%2Cmetadata.namespace%3Dother&filter=kind%3Dcomponent%2Cspec.tier%3D2"
        "&order=desc%3Akind&order=asc%3Ametadata.name",
    )
    tier_2 = sorted((f"Service-{number}" for number in range(2, 25, 3)), key=str.lower)
    assert found == [
        *({"metadata": {"name": f"db-{number}"}} for number in range(4)),
        *({"metadata": {"name": name}, "spec": {"tier": 2}} for name in tier_2),
    ]


async def test_go_reads_json_out_of_every_body_that_is_not_empty(catalog: Service) -> None:
    place = {"type": "url", "target": "https://example.com/catalog-info.yaml"}
    uid = (await get(catalog, "/entities/by-name/resource/other/db-0"))["metadata"]["uid"]
    bodies = []
    for method, path, body in (
        ("GET", "/entities/by-name/component/default/none", None),
        ("GET", "/entities/by-uid/none", None),
        ("DELETE", f"/entities/by-uid/{uid}", None),
        ("DELETE", "/entities/by-uid/none", None),
        ("GET", "/entities?limit=none", None),
        ("GET", "/nothing/here", None),
        ("PATCH", "/entities", None),
        ("GET", "/locations", None),
        ("GET", "/locations/none", None),
        ("DELETE", "/locations/none", None),
        ("POST", "/locations?dryRun=true", place),
        ("POST", "/locations?dryRun=false", place),
    ):
        answer = await catalog.http.request(method, f"{CATALOG}{path}", json=body)
        if answer.content:
            assert answer.headers["content-type"].startswith("application/json")
            bodies.append(json.loads(answer.content))
    errors = [body["error"]["name"] for body in bodies if body != []]
    assert errors == [
        "NotFoundError",
        "NotFoundError",
        "InputError",
        "NotFoundError",
        "MethodNotAllowedError",
        "NotFoundError",
        "NotImplementedError",
        "NotImplementedError",
        "NotImplementedError",
    ]


@pytest.mark.spec("catalog.list-filter", "catalog.list-fields", "catalog.list-order")
async def test_python_repeats_fields_filters_and_orders(catalog: Service) -> None:
    found = await get(
        catalog,
        "/entities?fields=kind&fields=metadata.name&limit=3&offset=1"
        "&filter=kind%3Dcomponent%2Cspec.tier%3D0&filter=kind%3Dresource"
        "&order=desc%3Akind&order=desc%3Ametadata.name",
    )
    assert found == [
        {"kind": "Resource", "metadata": {"name": f"db-{number}"}} for number in (2, 1, 0)
    ]


@pytest.mark.spec("catalog.by-refs", "catalog.by-refs-trailing-slash")
async def test_python_posts_references_to_a_path_with_a_slash_and_a_filter(
    catalog: Service, subtests: pytest.Subtests
) -> None:
    wanted = ["resource:other/db-1", "component:default/service-1", "component:default/none"]
    cases: list[list[str] | None] = [None, [], ["metadata.name", "metadata.namespace"]]
    for fields in cases:
        with subtests.test(fields=fields):
            body: dict[str, Any] = {"entityRefs": wanted}
            if fields is not None:
                body["fields"] = fields
            answer = await catalog.http.post(
                f"{CATALOG}/entities/by-refs/?filter=kind%3Dresource",
                json=body,
                follow_redirects=False,
            )
            assert answer.status_code == 200, answer.text
            whole = await get(catalog, "/entities/by-name/resource/other/db-1")
            cut = {"metadata": {"name": "db-1", "namespace": "other"}}
            assert answer.json() == {"items": [cut if fields else whole, None, None]}


@pytest.mark.spec("catalog.by-query")
async def test_a_loop_over_cursors_begins_with_a_question_mark_and_nothing_behind(
    catalog: Service,
) -> None:
    found = await get(catalog, "/entities/by-query?")
    assert len(found["items"]) == found["totalItems"] == 29
    page = await get(catalog, "/entities/by-query?filter=kind=component&limit=10")
    collected = names(page["items"])
    while "nextCursor" in page["pageInfo"]:
        cursor = page["pageInfo"]["nextCursor"]
        page = await get(catalog, f"/entities/by-query?cursor={cursor}&limit=10")
        collected += names(page["items"])
    assert collected == sorted((f"Service-{number}" for number in range(25)), key=str.lower)


@pytest.mark.spec("catalog.by-query", "catalog.list-paging")
@pytest.mark.parametrize(("limit", "requests"), [(10, 3), (25, 2)])
async def test_a_loop_over_offsets_ends_with_a_page_that_is_short(
    catalog: Service, limit: int, requests: int
) -> None:
    asked = f"filter=kind=component&fields=metadata.name&limit={limit}"
    everything = sorted((f"Service-{number}" for number in range(25)), key=str.lower)
    collected = list[str]()
    listed = list[str]()
    for number in range(requests):
        offset = number * limit
        page = await get(catalog, f"/entities/by-query?{asked}&offset={offset}")
        assert page["totalItems"] == 25
        collected += names(page["items"])
        listed += names(await get(catalog, f"/entities?{asked}&offset={offset}"))
    assert len(page["items"]) < limit
    assert collected == listed == everything


@pytest.mark.spec("catalog.by-query")
async def test_a_parameter_that_no_client_should_send_is_refused_by_its_name(
    catalog: Service,
) -> None:
    answer = await catalog.http.get(f"{CATALOG}/entities/by-query?fullTextFilter%5Bfields%5D=kind")
    assert answer.status_code == 400
    assert "fullTextFilter[fields]" in answer.json()["error"]["message"]
