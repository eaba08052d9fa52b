"""The npm catalog client reads entities one by one, counts, checks, removes, asks for locations."""

from collections.abc import Callable
from typing import Any

import pytest

from tests.api import query_oracle
from tests.contracts.catalog_calls import Catalog, refs
from tests.contracts.sample_catalog import ODD_NAME, SHORT, Entity, plain, short
from tests.service import PUSH

pytestmark = pytest.mark.system


@pytest.mark.spec("catalog.by-refs", "ref.matched-without-case")
def test_more_than_a_thousand_references_come_in_their_order(catalog: Catalog) -> None:
    asked = [text for one in refs(catalog.entities) for text in (one, f"{one}-none")]
    assert len(asked) > 1000
    everything, narrowed, by_predicate, none = catalog.calls(
        ["getEntitiesByRefs", {"entityRefs": asked}],
        [
            "getEntitiesByRefs",
            {"entityRefs": asked[:40], "filter": [{"kind": "api"}], "fields": SHORT},
        ],
        [
            "getEntitiesByRefs",
            {
                "entityRefs": [one.upper() for one in asked],
                "query": {"kind": "component", "spec.type": "library"},
                "filter": {"metadata.namespace": "other"},
                "fields": SHORT,
            },
        ],
        ["getEntitiesByRefs", {"entityRefs": []}],
    )
    chunk = "POST /api/catalog/entities/by-refs"
    by_ref = catalog.by_ref
    assert everything.requests == [chunk] * 2
    assert [one if one == "undefined" else plain(one) for one in everything.value["items"]] == [
        by_ref.get(one, "undefined") for one in asked
    ]

    def only(shown: Callable[[Entity], bool], among: list[str]) -> list[Any]:
        there = [by_ref.get(one) for one in among]
        return [short([one])[0] if one and shown(one) else "undefined" for one in there]

    assert narrowed.value["items"] == only(lambda one: one["kind"] == "API", asked[:40])
    assert by_predicate.value["items"] == only(
        lambda one: (
            one["kind"] == "Component"
            and one["spec"]["type"] == "library"
            and one["metadata"].get("namespace") == "other"
        ),
        asked,
    )
    assert none.value == {"items": []}
    assert none.requests == []


@pytest.mark.spec("catalog.by-refs")
def test_long_references_are_asked_for_in_small_requests(catalog: Catalog) -> None:
    asked = [f"component:default/{'x' * 240}-{number}" for number in range(500)]
    [answer] = catalog.calls(["getEntitiesByRefs", {"entityRefs": asked}])
    assert answer.value["items"] == ["undefined"] * 500
    assert len(answer.requests) == 2


@pytest.mark.spec("catalog.by-name", "ref.matched-without-case", "ref.default-namespace")
def test_one_entity_is_found_by_reference_or_name_or_not_at_all(catalog: Catalog) -> None:
    account = {"kind": "Resource", "name": "account 7"}
    found = catalog.calls(
        ["getEntityByRef", "Component:other/SVC-003"],
        ["getEntityByRef", {"kind": "API", "namespace": "default", "name": "Api_2"}],
        ["getEntityByName", account],
        ["getEntityByRef", f"resource:{ODD_NAME}"],
        ["getEntityByRef", "component:default/none"],
        ["getEntityByName", {**account, "namespace": "none"}],
    )
    assert [one if one == "undefined" else plain(one) for one in (a.value for a in found)] == [
        catalog.by_ref["component:other/svc-003"],
        catalog.by_ref["api:default/api_2"],
        catalog.by_ref["resource:default/account 7"],
        catalog.by_ref[f"resource:default/{ODD_NAME.lower()}"],
        "undefined",
        "undefined",
    ]


FACETS = [
    "kind",
    "metadata.namespace",
    "metadata.tags",
    "metadata.labels.tier",
    "metadata.annotations.github.com/project-slug",
    "spec.owner",
    "spec.replicas",
    "spec.public",
    "relations.ownedBy",
    "spec.none",
]


@pytest.mark.spec("catalog.facets")
def test_facets_count_by_filter_and_by_predicate(catalog: Catalog) -> None:
    predicate = {"spec.lifecycle": "production", "kind": {"$in": ["Component", "API"]}}
    components = {"kind": "component"}
    answers = catalog.calls(
        ["getEntityFacets", {"facets": FACETS}],
        ["getEntityFacets", {"facets": FACETS, "filter": components}],
        ["getEntityFacets", {"facets": FACETS, "query": predicate}],
        ["getEntityFacets", {"facets": FACETS, "query": predicate, "filter": components}],
        remember=True,
    )
    met = catalog.meeting(predicate)
    among = [catalog.entities, catalog.found(components), met]
    among.append([one for one in met if one["kind"] == "Component"])
    for answer, entities in zip(answers, among, strict=True):
        facets = answer.value["facets"]
        assert facets == {key: query_oracle.facet(entities, key) for key in FACETS}
        assert {key: counts(found) for key, found in facets.items()} == {
            key: counts(found) for key, found in answer.memory["facets"].items()
        }
    assert [answer.requests[0].split()[0] for answer in answers] == ["GET", "GET", "POST", "POST"]


def counts(values: list[dict[str, Any]]) -> dict[str, int]:
    """The counts of a facet by value; the catalog in memory gives them in no order."""
    return {one["value"]: one["count"] for one in values}


@pytest.mark.spec("catalog.ancestry")
def test_an_entity_is_its_own_ancestor(catalog: Catalog) -> None:
    there, missing = catalog.calls(
        ["getEntityAncestors", {"entityRef": "system:other/System-1"}],
        ["getEntityAncestors", {"entityRef": "system:other/none"}],
    )
    [item] = there.value["items"]
    assert there.value["rootEntityRef"] == "system:other/system-1"
    assert plain(item["entity"]) == catalog.by_ref["system:other/system-1"]
    assert item["parentEntityRefs"] == []
    assert missing.error is not None
    assert (missing.error["name"], missing.error["status"]) == ("ResponseError", 404)


@pytest.mark.spec("catalog.validate-entity")
def test_an_entity_is_validated_with_its_problems(catalog: Catalog) -> None:
    place = "url:https://localhost/entity-validator"
    good = catalog.by_ref["component:other/svc-003"]
    entity = {key: good[key] for key in ("apiVersion", "kind", "metadata", "spec")}
    nameless = {**entity, "metadata": {"name": "a b"}, "spec": {"type": "service"}}
    valid, invalid, elsewhere = catalog.calls(
        ["validateEntity", entity, place],
        ["validateEntity", nameless, place],
        ["validateEntity", entity, "file:/catalog-info.yaml"],
    )
    assert valid.value == {"valid": True}
    assert invalid.value["valid"] is False
    assert {one["name"] for one in invalid.value["errors"]} == {"InputError"}
    said = " ".join(one["message"] for one in invalid.value["errors"])
    assert "metadata.name" in said
    assert "owner" in said
    assert elsewhere.value["valid"] is False


@pytest.mark.spec("catalog.refresh")
def test_refreshing_succeeds_for_an_entity_that_is_there(catalog: Catalog) -> None:
    there, missing = catalog.calls(
        ["refreshEntity", "component:other/svc-003"],
        ["refreshEntity", "component:other/none"],
    )
    assert there.value == "undefined"
    assert missing.error is not None
    assert (missing.error["name"], missing.error["status"]) == ("ResponseError", 404)


@pytest.mark.spec("catalog.delete-by-uid")
def test_an_entity_is_removed_by_its_uid(catalog: Catalog) -> None:
    name = "resource:default/short-lived"
    with catalog.sample.server.client(catalog.sample.token) as http:
        metadata = {"name": "short-lived"}
        spec = {"type": "account", "owner": "nobody"}
        one = {"apiVersion": "example.com/v1", "kind": "Resource", "metadata": metadata}
        pushed = http.post(f"{PUSH}/entities", json={**one, "spec": spec})
        assert pushed.status_code == 200, pushed.text
    uid = catalog.call("getEntityByRef", name)["metadata"]["uid"]
    removed, again, gone = catalog.calls(
        ["removeEntityByUid", uid], ["removeEntityByUid", uid], ["getEntityByRef", name]
    )
    assert [removed.value, again.value, gone.value] == ["undefined"] * 3


@pytest.mark.spec("catalog.locations-are-empty")
def test_there_is_no_location_in_any_way_of_asking(catalog: Catalog) -> None:
    answers = catalog.calls(
        ["getLocations", {}],
        ["queryLocations", {"limit": 10, "query": {"type": "url"}}],
        ["streamLocations", {}],
        ["getLocationById", "8a0b"],
        ["getLocationByRef", "url:https://example.com/catalog-info.yaml"],
        ["getLocationByEntity", "component:other/svc-003"],
    )
    assert [answer.value for answer in answers] == [
        {"items": []},
        {"items": [], "totalItems": 0, "pageInfo": {}},
        [],
        "undefined",
        "undefined",
        "undefined",
    ]


@pytest.mark.spec("catalog.location-writes-are-501")
def test_writing_a_location_throws_an_error_that_says_what_to_do(catalog: Catalog) -> None:
    place = {"type": "url", "target": "https://example.com/catalog-info.yaml"}
    answers = catalog.calls(
        ["addLocation", place],
        ["addLocation", {**place, "dryRun": True, "onConflict": "refresh"}],
        ["updateLocation", "8a0b", place],
        ["removeLocationById", "8a0b"],
        ["analyzeLocation", {"location": place}],
    )
    for answer in answers:
        assert answer.error is not None
        assert (answer.error["name"], answer.error["status"]) == ("ResponseError", 501)
        error = answer.error["answer"]["error"]
        assert error["name"] == "NotImplementedError"
        assert "PUT /api/catalog/factbook-entities/sets/{set_id}" in error["message"]
