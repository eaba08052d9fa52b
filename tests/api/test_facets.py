"""entity-facets: values as they were written, counted, by GET and by POST."""

from typing import Any

import pytest

from tests.service import Service, component, resource

FACETS = "/api/catalog/entity-facets"


async def facets(service: Service, **query: Any) -> dict[str, list[tuple[str, int]]]:
    """Each facet's values and counts."""
    answer = await service.http.get(FACETS, params=query)
    assert answer.status_code == 200, answer.text
    found = answer.json()["facets"]
    return {key: [(one["value"], one["count"]) for one in found[key]] for key in found}


@pytest.mark.both_databases
@pytest.mark.spec("catalog.facets")
async def test_values_are_counted_as_written_and_in_order(service: Service) -> None:
    await service.push(
        "all",
        component("a", type="Service"),
        component("b", type="service"),
        component("c", type="API"),
        resource("d", tags=["java", "go", "java"]),
        resource("e", tags=["Java"], note="x" * 300),
        resource("f", note=None),
    )
    assert await facets(service, facet=["kind", "spec.type"]) == {
        "kind": [("Component", 3), ("Resource", 3)],
        "spec.type": [("account", 3), ("API", 1), ("Service", 1), ("service", 1)],
    }
    assert await facets(service, facet="metadata.tags") == {
        "metadata.tags": [("go", 1), ("Java", 1), ("java", 1)]
    }
    assert await facets(service, facet="metadata.note") == {"metadata.note": []}


@pytest.mark.spec("catalog.facets")
async def test_a_facet_is_named_as_it_was_asked_for_in_any_case(service: Service) -> None:
    await service.push("all", component("A-Name"))
    assert await facets(service, facet=["KIND", "Metadata.Name", "spec.none"]) == {
        "KIND": [("Component", 1)],
        "Metadata.Name": [("A-Name", 1)],
        "spec.none": [],
    }


@pytest.mark.both_databases
@pytest.mark.spec("catalog.facets")
async def test_namespaces_and_relations_have_facets_too(service: Service) -> None:
    elsewhere = component("b", dependsOn=["component:default/a"])
    elsewhere["metadata"]["namespace"] = "other"
    await service.push("all", component("a"), elsewhere)
    keys = ["metadata.namespace", "relations.ownedBy", "relations.dependencyOf", "relations.odd"]
    assert await facets(service, facet=keys) == {
        "metadata.namespace": [("default", 1), ("other", 1)],
        "relations.ownedBy": [("group:default/team-a", 1), ("group:other/team-a", 1)],
        "relations.dependencyOf": [("component:other/b", 1)],
        "relations.odd": [],
    }


@pytest.mark.spec("catalog.facets")
async def test_facets_follow_a_push_at_once(service: Service) -> None:
    await service.push("all", component("a", type="x"), component("b", type="x"))
    assert await facets(service, facet="spec.type") == {"spec.type": [("x", 2)]}
    await service.push("all", component("a", type="X"))
    assert await facets(service, facet="spec.type") == {"spec.type": [("X", 1)]}
    await service.push("all")
    assert await facets(service, facet="spec.type") == {"spec.type": []}


@pytest.mark.both_databases
@pytest.mark.spec("catalog.facets")
async def test_a_filter_or_a_predicate_narrows_what_is_counted(service: Service) -> None:
    await service.push("all", component("a"), component("b", type="library"), resource("c"))
    narrowed = await facets(service, facet="spec.type", filter="kind=component")
    assert narrowed == {"spec.type": [("library", 1), ("service", 1)]}
    query = {"$not": {"spec.type": "library"}}
    answer = await service.http.post(FACETS, json={"facets": ["kind"], "query": query})
    assert answer.json() == {
        "facets": {"kind": [{"value": "Component", "count": 1}, {"value": "Resource", "count": 1}]}
    }


@pytest.mark.spec("catalog.facets")
async def test_no_facet_or_too_many_are_refused(
    service: Service, subtests: pytest.Subtests
) -> None:
    cases: list[tuple[str, dict[str, Any], str]] = [
        ("GET", {}, "facet"),
        ("GET", {"params": {"facet": ["a"] * 101}}, "100 times"),
        ("GET", {"params": {"facet": "a", "filter": "=b"}}, "without a key"),
        ("POST", {"json": {}}, "facets"),
        ("POST", {"json": {"facets": []}}, "facets"),
        ("POST", {"json": {"facets": ["kind"], "query": {"kind": []}}}, '"kind"'),
    ]
    for method, options, message in cases:
        with subtests.test(method=method, options=options):
            answer = await service.http.request(method, FACETS, **options)
            assert answer.status_code == 400, answer.text
            assert message in answer.json()["error"]["message"]
