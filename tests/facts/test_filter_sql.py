"""The filter of a data source as a condition of the database: it lets the same entities through."""

from typing import Any

import pytest

from factbook.catalog.filters import make_filter_condition, matches_filter
from tests.service import Service, component, resource

LONG = "x" * 300

FILTERS: list[list[dict[str, Any]]] = [
    [],
    [{}],
    [{"kind": "component"}],
    [{"kind": ["Component", "API"]}],
    [{"kind": "api"}, {"spec.type": "website"}],
    [{"kind": "component", "spec.type": "service"}],
    [{"metadata.name": "PAYMENTS"}],
    [{"metadata.namespace": "default"}],
    [{"metadata.namespace": {"exists": True}}],
    [{"metadata.uid": {"exists": False}}],
    [{"metadata.annotations.github.com/slug": {"exists": True}}],
    [{"metadata.annotations.github.com/slug": {"exists": False}}],
    [{"metadata.annotations.github.com/slug": {"exists": False}, "kind": "resource"}],
    [{"metadata.tags": "cloud"}],
    [{"metadata.tags": ["money", "nothing"]}],
    [{"metadata.tags.money": True}],
    [{"spec.replicas": 3}],
    [{"spec.replicas": [2, 3.0]}],
    [{"spec.public": False}],
    [{"spec.note": LONG}],
    [{"spec.note": [LONG, "short"]}],
    [{"spec.note": {"exists": True}}],
    [{"relations.ownedBy": "group:default/team-a"}],
    [{"relations.dependsOn": {"exists": True}}],
    [{"relations.dependencyOf": "component:default/shop"}],
    [{"relations.dependencyOf": {"exists": False}}],
    [{"nothing.at.all": "x"}],
    [{"nothing.at.all": {"exists": False}}],
]


@pytest.mark.spec("facts.tracked")
async def test_a_filter_lets_the_same_entities_through_in_the_database(service: Service) -> None:
    slugged = component("Payments", replicas=3, public=False, note=LONG)
    slugged["metadata"] |= {"annotations": {"github.com/slug": "a/b"}, "tags": ["money"]}
    shop = component("shop", type="website", note="short", dependsOn=["component:payments"])
    shop["metadata"]["namespace"] = "default"
    away = resource("account", namespace="away", tags=["Cloud"])
    answer = await service.push("first", slugged, shop, away)
    assert answer.status_code == 200, answer.text
    entities = (await service.http.get("/api/catalog/entities")).json()
    assert len(entities) == 3
    for entity_filter in FILTERS:
        sql, parameters = make_filter_condition(entity_filter)
        query = f"SELECT e.name FROM entities e WHERE {sql} ORDER BY e.name"  # noqa: S608 - the condition is what is tested
        found = [name for (name,) in await service.state.database.all(query, parameters)]
        expected = [
            e["metadata"]["name"].lower() for e in entities if matches_filter(entity_filter, e)
        ]
        assert found == sorted(expected), entity_filter
