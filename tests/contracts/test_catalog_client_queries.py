"""The npm catalog client reads queries to their end: streams, cursors, predicates, full text."""

from typing import Any

import pytest

from tests.api import query_oracle
from tests.api.oracle import index, ref
from tests.contracts.catalog_calls import Call, Catalog, refs, whole
from tests.contracts.sample_catalog import SHORT, short

pytestmark = pytest.mark.system


@pytest.mark.spec("catalog.by-query")
def test_a_stream_brings_every_entity_once_in_pages_of_500(catalog: Catalog) -> None:
    everything, narrowed, by_predicate = catalog.calls(
        ["streamEntities", {}],
        ["streamEntities", {"filter": {"kind": "component"}, "pageSize": 100, "fields": SHORT}],
        ["streamEntities", {"query": {"kind": "component"}, "pageSize": 100, "fields": SHORT}],
    )
    assert [len(page) for page in everything.value] == [500, len(catalog.entities) - 500]
    assert whole([item for page in everything.value for item in page]) == catalog.entities
    components = short(catalog.found({"kind": "component"}))
    pages = [components[start : start + 100] for start in range(0, len(components), 100)]
    assert narrowed.value == pages
    assert by_predicate.value == pages
    # The cursor of a predicate tells the client to go on with POST.
    assert narrowed.requests == ["GET /api/catalog/entities/by-query"] * len(pages)
    assert by_predicate.requests == ["POST /api/catalog/entities/by-query"] * len(pages)


WALKS: list[dict[str, Any]] = [
    {"limit": 100},
    {"limit": 77, "orderFields": {"field": "metadata.name", "order": "asc"}},
    {"limit": 90, "orderFields": [{"field": "spec.type", "order": "desc"}], "query": {}},
    {"limit": 50, "filter": [{"kind": "api"}, {"kind": "component", "metadata.tags": "go"}]},
    {"limit": 60, "filter": {"metadata.namespace": "other"}, "query": {"kind": "component"}},
    {"limit": 1000},
]


@pytest.mark.spec("catalog.by-query", "catalog.by-query-post")
@pytest.mark.parametrize("request_", WALKS)
def test_cursors_lead_to_the_end_and_back_to_the_beginning(
    catalog: Catalog, request_: dict[str, Any]
) -> None:
    orders = request_.get("orderFields", [])
    texts = [
        f"{one['order']}:{one['field']}"
        for one in (orders if isinstance(orders, list) else [orders])
    ]
    wanted = catalog.found(request_.get("filter"), tuple(texts))
    met = refs(catalog.meeting(request_.get("query", {})))
    wanted = [one for one in wanted if ref(one) in met]
    limit = request_["limit"]
    pages = [short(wanted[start : start + limit]) for start in range(0, len(wanted), limit)]
    walked = catalog.call("walkQuery", {**request_, "fields": SHORT})
    assert [page["items"] for page in walked["there"]] == pages
    assert [page["items"] for page in walked["back"]] == pages[::-1]
    for way in walked.values():
        assert {page["totalItems"] for page in way} == {len(wanted)}
    for page in (walked["there"][0], walked["back"][-1]):
        assert "prevCursor" not in page["pageInfo"]
    assert "nextCursor" not in walked["there"][-1]["pageInfo"]


PREDICATES: list[dict[str, Any]] = [
    {"kind": "COMPONENT", "spec.type": {"$in": ["library", "website"]}},
    {"$all": [{"kind": "component"}, {"$not": {"metadata.tags": {"$contains": "java"}}}]},
    {"$any": [{"kind": "system"}, {"metadata.name": {"$hasPrefix": "Account 1"}}]},
    {"metadata.annotations.github.com/project-slug": {"$exists": True}, "spec.replicas": 2},
    {"$not": {"spec.owner": {"$exists": True}}},
    {"spec.public": True, "metadata.namespace": "other"},
    {"$any": []},
    {"$all": []},
]


@pytest.mark.spec("catalog.by-query-post")
def test_predicates_find_what_they_say(catalog: Catalog) -> None:
    answers = catalog.calls(
        *(["queryEntities", {"query": one, "fields": SHORT, "limit": 5000}] for one in PREDICATES)
    )
    counts = []
    for one, answer in zip(PREDICATES, answers, strict=True):
        wanted = short(catalog.meeting(one))
        assert answer.value == {"items": wanted, "totalItems": len(wanted), "pageInfo": {}}, one
        assert answer.requests == ["POST /api/catalog/entities/by-query"]
        counts.append(len(wanted))
    assert counts.count(0) == 1


@pytest.mark.spec("catalog.by-query-post")
def test_a_predicate_finds_relations(catalog: Catalog) -> None:
    wanted = {"type": "dependsOn", "targetRef": "component:default/svc-004"}
    query = {"relations": {"$contains": wanted}}
    found = catalog.call("queryEntities", {"query": query, "fields": SHORT})
    having = [entity for entity in catalog.entities if wanted in entity["relations"]]
    assert found["items"] == short(having)
    assert having


@pytest.mark.spec("catalog.by-query", "catalog.by-query-post")
def test_full_text_finds_a_part_of_a_value_in_any_case(catalog: Catalog) -> None:
    texts: list[dict[str, Any]] = [
        {"term": " ÜBER ", "fields": ["metadata.title"]},
        {"term": "ccount 1", "fields": ["metadata.name", "metadata.title"]},
        {"term": "plain", "fields": ["spec.type", "metadata.title"]},
        {"term": "%", "fields": ["metadata.title"]},
    ]
    ways: list[dict[str, Any]] = [{"limit": 1000}, {"limit": 1000, "query": {}}]
    calls: list[Call] = [
        ["queryEntities", {**way, "fullTextFilter": one, "fields": SHORT}]
        for one in texts
        for way in ways
    ]
    answers = catalog.calls(*calls, remember=True)
    for call, answer in zip(calls, answers, strict=True):
        text = call[1]["fullTextFilter"]
        wanted = [
            one
            for one in catalog.entities
            if query_oracle.contains(index(one), text["term"], text["fields"])
        ]
        assert answer.value["items"] == short(wanted), call
        assert answer.value["totalItems"] == len(wanted)
        assert answer.value["items"] == answer.memory["items"]
    assert [len(answer.value["items"]) > 0 for answer in answers[::2]] == [True, True, True, False]


@pytest.mark.spec("catalog.by-query")
def test_the_total_is_counted_unless_it_is_left_out(catalog: Catalog) -> None:
    counted, left_out, only_counted = catalog.calls(
        ["queryEntities", {"limit": 1, "totalItems": "include"}],
        ["queryEntities", {"limit": 1, "totalItems": "exclude"}],
        ["queryEntities", {"limit": 0, "filter": {"kind": "user"}}],
    )
    assert counted.value["totalItems"] == len(catalog.entities)
    assert left_out.value["totalItems"] == 0
    assert len(left_out.value["items"]) == 1
    assert only_counted.value == {"items": [], "totalItems": 40, "pageInfo": {}}
