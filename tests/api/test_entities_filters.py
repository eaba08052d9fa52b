"""`filter` of the entity list: the filter language of the catalog API."""

from typing import Any

import pytest

from tests.service import Service, component, resource

ENTITIES = "/api/catalog/entities"
LONG = "x" * 201


async def names(service: Service, *filters: str, **query: Any) -> list[str]:
    """The names of what these `filter` parameters find, in the order of the references."""
    answer = await service.http.get(
        ENTITIES, params={"filter": list(filters), "order": "asc:metadata.name", **query}
    )
    assert answer.status_code == 200, answer.text
    return [entity["metadata"]["name"] for entity in answer.json()]


@pytest.fixture
async def catalog(service: Service) -> Service:
    """A service with five entities in it."""
    payments = component("Payments", type="Service", system="shop", tier=1, ready=True)
    payments["metadata"] |= {
        "namespace": "shop",
        "tags": ["Java", "team:a"],
        "annotations": {"github.com/project-slug": "Acme/Payments", "note": ""},
        "labels": {"env": "prod"},
    }
    web = component("web", type="website", tier=2.5, ready=False, gone=None)
    web["metadata"] |= {"tags": ["java"], "labels": {"env": "dev"}, "note": LONG}
    library = component("library", type="library", dependsOn=["resource:default/db"])
    db, bucket = resource("db", note="a=b"), resource("bucket", title="Two Words")
    answer = await service.push("all", payments, web, library, db, bucket)
    assert answer.status_code == 200, answer.text
    return service


@pytest.mark.spec("catalog.list-filter")
async def test_conditions_in_one_filter_all_hold_and_of_several_filters_one_does(
    catalog: Service,
) -> None:
    assert await names(catalog, "kind=component,spec.type=website") == ["web"]
    assert await names(catalog, "kind=component,spec.type=account") == []
    assert await names(catalog, "kind=resource", "spec.type=website") == ["bucket", "db", "web"]
    assert await names(
        catalog, "kind=resource,metadata.name=db", "kind=component,metadata.name=web", "kind=none"
    ) == ["db", "web"]


@pytest.mark.both_databases
@pytest.mark.spec("catalog.list-filter")
async def test_a_key_with_several_values_takes_any_of_them_and_outweighs_the_bare_key(
    catalog: Service,
) -> None:
    assert await names(catalog, "spec.type=website,spec.type=library") == ["library", "web"]
    assert await names(catalog, "spec.type=website,spec.type") == ["web"]
    assert await names(catalog, "spec.type,spec.type=website") == ["web"]
    assert await names(catalog, "kind=resource,metadata.name=db,metadata.name=web") == ["db"]


@pytest.mark.spec("catalog.list-filter")
async def test_a_bare_key_asks_for_its_presence_and_an_empty_value_for_the_empty_text(
    catalog: Service,
) -> None:
    assert await names(catalog, "metadata.labels.env") == ["Payments", "web"]
    assert await names(catalog, "metadata.annotations.note") == ["Payments"]
    assert await names(catalog, "metadata.annotations.note=") == ["Payments"]
    assert await names(catalog, "metadata.labels.env=") == []
    assert await names(catalog, "spec.nothing") == []


@pytest.mark.both_databases
@pytest.mark.spec("catalog.list-filter", "ref.matched-without-case")
async def test_keys_and_values_match_in_any_case_and_without_the_blanks_around_them(
    catalog: Service,
) -> None:
    assert await names(catalog, "KIND=Component,Spec.Type=SERVICE") == ["Payments"]
    assert await names(catalog, " kind = component , metadata.name = PAYMENTS ") == ["Payments"]
    assert await names(catalog, "metadata.title=two words") == ["bucket"]


@pytest.mark.spec("catalog.list-filter")
async def test_keys_hold_dots_and_slashes_and_values_hold_equals_signs(catalog: Service) -> None:
    key = "metadata.annotations.github.com/project-slug"
    assert await names(catalog, f"{key}=acme/payments") == ["Payments"]
    assert await names(catalog, key) == ["Payments"]
    assert await names(catalog, "metadata.note=a=b") == ["db"]


@pytest.mark.both_databases
@pytest.mark.spec("catalog.list-filter")
async def test_what_is_in_an_array_is_found_by_value_and_by_key(catalog: Service) -> None:
    for text in ("metadata.tags=java", "metadata.tags.java", "metadata.tags.java=true"):
        assert await names(catalog, text) == ["Payments", "web"], text
    assert await names(catalog, "metadata.tags.team:a") == ["Payments"]
    assert await names(catalog, "metadata.tags.java=false") == []
    assert await names(catalog, "spec.dependsOn=resource:default/db") == ["library"]


@pytest.mark.spec("catalog.list-filter")
async def test_numbers_and_booleans_are_found_as_json_writes_them(catalog: Service) -> None:
    assert await names(catalog, "spec.tier=1") == ["Payments"]
    assert await names(catalog, "spec.tier=2.5") == ["web"]
    assert await names(catalog, "spec.ready=true") == ["Payments"]
    assert await names(catalog, "spec.ready=false") == ["web"]


@pytest.mark.both_databases
@pytest.mark.spec("catalog.list-filter")
async def test_null_and_values_above_200_characters_are_there_but_equal_nothing(
    catalog: Service, subtests: pytest.Subtests
) -> None:
    for key in ["metadata.note", "spec.gone"]:
        with subtests.test(key=key):
            assert "web" in await names(catalog, key)
            for value in (LONG, "", "null", "\x01"):
                assert "web" not in await names(catalog, f"{key}={value}"), value


@pytest.mark.both_databases
@pytest.mark.spec("catalog.list-filter", "ref.default-namespace")
async def test_kind_name_namespace_and_uid_are_keys_too(catalog: Service) -> None:
    assert await names(catalog, "metadata.namespace=default,kind=component") == ["library", "web"]
    assert await names(catalog, "metadata.namespace=shop") == ["Payments"]
    assert await names(catalog, "metadata.name=DB") == ["db"]
    db = await catalog.catalog("resource:default/db")
    assert db is not None
    uid = db["metadata"]["uid"]
    assert await names(catalog, f"metadata.uid={uid.upper()}") == ["db"]
    assert len(await names(catalog, "kind,metadata.name,metadata.namespace,metadata.uid")) == 5
    assert await names(catalog, f"metadata.etag={db['metadata']['etag']}") == []


@pytest.mark.both_databases
@pytest.mark.spec("catalog.list-filter", "catalog.relations-both-directions")
async def test_relations_are_found_from_both_ends(catalog: Service) -> None:
    assert await names(catalog, "relations.dependsOn=resource:default/db") == ["library"]
    assert await names(catalog, "relations.dependencyof=Component:default/Library") == ["db"]
    assert await names(catalog, "relations.dependencyOf") == ["db"]
    assert await names(catalog, "relations.partOf") == ["Payments"]
    assert await names(catalog, "relations.partOf=system:shop/shop") == ["Payments"]
    owned = "relations.ownedBy=group:default/team-a,relations.ownedBy=group:shop/team-a"
    assert len(await names(catalog, owned)) == 5
    assert await names(catalog, "relations.ownerOf", "relations.likes") == []


@pytest.mark.spec("catalog.list-filter")
async def test_a_filter_without_conditions_asks_for_everything(catalog: Service) -> None:
    assert len(await names(catalog, "")) == 5
    assert len(await names(catalog, " , ")) == 5
    assert await names(catalog, ",kind=resource,,metadata.name=db,") == ["db"]


async def test_a_condition_without_a_key_is_400(
    service: Service, subtests: pytest.Subtests
) -> None:
    for filter_ in ["=component", "kind=component,=x", " = "]:
        with subtests.test(filter_=filter_):
            answer = await service.http.get(ENTITIES, params={"filter": filter_})
            assert answer.status_code == 400
            assert "without a key" in answer.json()["error"]["message"]


@pytest.mark.both_databases
async def test_as_many_conditions_as_a_filter_can_have_work_and_more_are_400(
    service: Service,
) -> None:
    await service.push("one", component("web"))
    conditions = ["kind=component", *(f"metadata.name=n{number}" for number in range(600))]
    assert await names(service, ",".join(conditions)) == []
    most = ["kind=component", *(f"spec.key{number}" for number in range(499))]
    assert await names(service, ",".join(most)) == []
    assert await names(service, *most) == ["web"]
    for filters in ([",".join([*most, "spec.more"])], [*most, "spec.more"]):
        answer = await service.http.get(ENTITIES, params={"filter": filters})
        assert answer.status_code == 400
        assert "500 conditions at most" in answer.json()["error"]["message"]


@pytest.mark.both_databases
async def test_no_text_breaks_out_of_a_condition(
    service: Service, subtests: pytest.Subtests
) -> None:
    for text in ["'; DROP TABLE entities; --", '"', "%", "_", "\\", "\0", "é\u0130"]:
        with subtests.test(text=text):
            await service.push("one", resource("odd", note=f"<{text}>"), resource("plain"))
            assert await names(service, f"metadata.note=<{text}>") == ["odd"]
            assert await names(service, f"metadata.note={text}", f"spec.{text}") == []
            assert await names(service, f"metadata.name={text}", f"relations.{text}=x") == []
