"""Requests that nobody means well: each gets a clear error or the right answer."""

import unicodedata

import pytest

from tests.service import PUSH, Service, component

ENTITIES = "/api/catalog/entities"

pytestmark = pytest.mark.parametrize("database_url", ["sqlite"], indirect=True)


async def test_numbers_and_lists_beyond_their_bounds_are_refused(
    service: Service, subtests: pytest.Subtests
) -> None:
    for query in [
        "offset=00000000000099999999999999999999",
        "offset=" + "0" * 12 + "9" * 5000,
        "limit=000000000001999999999999",
        "fields=" + ",".join(f"a{i}" for i in range(300)),
    ]:
        with subtests.test(query=query):
            answer = await service.http.get(f"{ENTITIES}?{query}")
            assert answer.status_code == 400, answer.text


async def test_an_origin_that_is_no_address_is_refused_like_any_other(service: Service) -> None:
    answer = await service.http.get("/healthz", headers={"origin": "http://["})
    assert answer.status_code == 403
    assert "allowed_origins" in answer.json()["error"]["message"]


async def test_a_path_with_a_line_break_puts_none_into_a_header(service: Service) -> None:
    await service.push("first", component("a"), component("b"))
    answer = await service.http.get(f"{ENTITIES}%0A?limit=1")
    assert "\n" not in answer.headers.get("link", "")


async def test_a_name_is_found_in_whatever_unicode_form_it_is_asked_for(service: Service) -> None:
    await service.push("first", component("Café"))
    asked = unicodedata.normalize("NFD", "CAFÉ")
    found = await service.facts("get-entity-facts", dataSourceId="techdocs", name=asked)
    assert found["entityRef"] == "component:default/café"


async def test_an_unknown_name_is_answered_with_its_neighbours(service: Service) -> None:
    others = [component(f"p{i:03}") for i in range(300)]
    await service.push("first", *others, component("payments-api"))
    text = await service.refusal("get-entity-compliance", name="paymets-api")
    assert "Did you mean component:default/payments-api" in text
    text = await service.refusal("get-entity-compliance", name="zzz")
    assert "Did you mean" not in text


async def test_members_that_a_push_does_not_have_are_refused(service: Service) -> None:
    await service.push("first", component("a"))
    answer = await service.http.put(f"{PUSH}/sets/first", json={"items": [], "dryRun": True})
    assert answer.status_code == 400
    assert await service.catalog("component:default/a") is not None


async def test_a_filter_of_very_many_values_is_answered(service: Service) -> None:
    await service.push("first", component("a"))
    values = ",".join(f"spec.type=t{i}" for i in range(2000))
    answer = await service.http.get(f"{ENTITIES}?filter={values},spec.type=service")
    assert [entity["metadata"]["name"] for entity in answer.json()] == ["a"]
