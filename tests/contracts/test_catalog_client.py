"""The npm catalog client lists what was pushed: all of it, by filter, in order, page by page.

The expected answers are made from what was pushed, by the rules of tests/api/oracle.py. Where the
client's own catalog in memory is right, it is asked the same: it does not find keys that have an
upper-case letter, and an array of values in a filter ends its conditions there.
"""

from typing import Any

import pytest

from tests.contracts.catalog_calls import EXISTS, Catalog, whole
from tests.contracts.sample_catalog import ODD_NAME, SHORT, short

pytestmark = pytest.mark.system


@pytest.mark.spec("catalog.relations-both-directions", "catalog.list-entities")
def test_every_entity_comes_whole_and_by_reference(catalog: Catalog) -> None:
    assert len(catalog.entities) > 700
    assert whole(catalog.call("getEntities", {})["items"]) == catalog.entities


FILTERS: list[Any] = [
    {"kind": "Component", "spec.type": "website"},
    {"kind": "API"},
    {"metadata.namespace": "default", "kind": "component"},
    {"metadata.tags": "java", "spec.lifecycle": "production"},
    {"metadata.tags.c++": "true"},
    {"metadata.annotations.github.com/project-slug": "org/ONE"},
    {"metadata.annotations.backstage.io/x.y.z": EXISTS, "metadata.labels.tier": "2"},
    {"relations.dependencyof": "component:default/svc-005"},
    {"spec.replicas": "10", "spec.public": "true"},
    {"metadata.name": "account 7"},
    {"metadata.name": ODD_NAME.upper()},
    {"metadata.name": "none"},
    [{"kind": "domain"}, {"kind": "system", "metadata.namespace": "other"}],
    {"kind": ["system", "Domain"]},
]
# What the client's catalog in memory gets wrong.
MORE_FILTERS: list[Any] = [
    {"kind": ["API", "system"], "metadata.namespace": "other"},
    {"spec.type": ["library", EXISTS], "metadata.labels.tier": ["1", "3"]},
    [{"kind": ["user"], "relations.memberOf": "group:other/guests"}, {"spec.owner": "nobody"}],
    {"relations.apiProvidedBy": EXISTS},
    {"spec.dependsOn": EXISTS, "metadata.tags": ["go", "c++"]},
]


@pytest.mark.spec("catalog.list-filter", "catalog.list-fields", "catalog.by-query")
def test_filters_find_the_same_in_lists_and_queries(catalog: Catalog) -> None:
    filters = [*FILTERS, *MORE_FILTERS]
    lists = [["getEntities", {"filter": one, "fields": SHORT}] for one in filters]
    queries = [
        ["queryEntities", {"filter": one, "fields": SHORT, "limit": 10_000}] for one in filters
    ]
    remembered = catalog.calls(*lists[: len(FILTERS)], *queries[: len(FILTERS)], remember=True)
    for answer in remembered:
        assert answer.value["items"] == answer.memory["items"]
        assert answer.value.get("totalItems") == answer.memory.get("totalItems")
    listed, queried = [], []
    for one, list_, query in zip(
        filters, catalog.calls(*lists), catalog.calls(*queries), strict=True
    ):
        wanted = short(catalog.found(one))
        assert list_.value == {"items": wanted}, one
        assert query.value == {"items": wanted, "totalItems": len(wanted), "pageInfo": {}}, one
        listed.append(len(wanted))
        queried.append(query.requests)
    assert sum(1 for count in listed if count) == len(filters) - 1
    assert queried == [["GET /api/catalog/entities/by-query"]] * len(filters)


@pytest.mark.spec("catalog.list-fields")
def test_fields_with_dots_and_missing_ones_are_cut_out_alike(catalog: Catalog) -> None:
    asked = [
        ["metadata.name", "metadata.annotations.github.com/project-slug"],
        ["metadata.annotations.backstage.io/x.y.z", "spec", "relations"],
        ["metadata.none", "kind"],
        ["metadata.labels.example.com/zone", "metadata.labels"],
    ]
    for answer in catalog.calls(
        *(["getEntities", {"fields": one}] for one in asked), remember=True
    ):
        assert answer.value == answer.memory
    [slugs] = catalog.calls(["getEntities", {"fields": asked[0]}])
    key = "github.com/project-slug"
    assert [item["metadata"].get("annotations", {}).get(key) for item in slugs.value["items"]] == [
        entity["metadata"]["annotations"].get(key) for entity in catalog.entities
    ]


ORDERS: list[list[tuple[str, str]]] = [
    [("metadata.name", "asc")],
    [("metadata.name", "desc")],
    [("kind", "desc"), ("metadata.name", "asc")],
    [("spec.type", "asc")],
    [("spec.type", "desc"), ("metadata.labels.tier", "desc")],
    [("metadata.title", "desc")],
    [("spec.replicas", "asc"), ("metadata.namespace", "desc"), ("metadata.name", "desc")],
]


@pytest.mark.spec("catalog.list-order", "catalog.by-query")
def test_orders_give_the_same_rows_in_lists_and_queries(catalog: Catalog) -> None:
    listed = [[{"field": path, "order": way} for path, way in one] for one in ORDERS]
    answers = catalog.calls(
        *(["getEntities", {"order": one, "fields": SHORT}] for one in listed),
        *(
            ["queryEntities", {"orderFields": one, "fields": SHORT, "limit": 10_000}]
            for one in listed
        ),
        remember=True,
    )
    for one, answer in zip([*ORDERS, *ORDERS], answers, strict=True):
        wanted = catalog.found(orders=tuple(f"{way}:{path}" for path, way in one))
        assert answer.value["items"] == short(wanted), one
        assert answer.value["items"] == answer.memory["items"], one


@pytest.mark.spec("catalog.list-paging")
def test_a_list_is_read_in_pages_by_offset_or_by_its_links(catalog: Catalog) -> None:
    request = {
        "filter": {"kind": "component"},
        "order": {"field": "metadata.name", "order": "desc"},
        "fields": SHORT,
        "limit": 130,
    }
    wanted = short(catalog.found({"kind": "component"}, ("desc:metadata.name",)))
    pages = [wanted[start : start + 130] for start in range(0, len(wanted), 130)]
    by_link, from_200, past_the_end, limited = catalog.calls(
        ["walkEntities", request],
        ["getEntities", {**request, "offset": 200}],
        ["getEntities", {**request, "offset": 10_000}],
        ["getEntities", {"limit": 2, "offset": 3, "fields": SHORT}],
    )
    assert by_link.value == pages
    assert from_200.value["items"] == wanted[200:330]
    assert past_the_end.value["items"] == []
    assert limited.value["items"] == short(catalog.entities[3:5])
