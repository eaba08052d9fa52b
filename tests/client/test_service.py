"""The client against a running service: what it sends is what the service reads, and back."""

from collections.abc import AsyncIterator

import httpx2
import pytest

from factbook.client import ApiError, AsyncClient
from tests.service import Service, component, resource


@pytest.fixture
async def client(service: Service) -> AsyncIterator[AsyncClient]:
    """A client of the service, whose token carries every permission."""
    transport = httpx2.ASGITransport(service.application, client=("127.0.0.1", 40_000))
    token = await service.token()
    async with AsyncClient("http://127.0.0.1:8000", token, transport=transport) as client:
        yield client


@pytest.fixture
async def pushed(client: AsyncClient) -> None:
    """Components a to e, of which b and d are websites, and an account."""
    websites = {"b": "website", "d": "website"}
    components = [component(name, type=websites.get(name, "service")) for name in "abcde"]
    await client.push("mixed", [*components, resource("account", title="Pays for a")])


def names(entities: list[dict[str, dict[str, str]]]) -> list[str]:
    return [entity["metadata"]["name"] for entity in entities]


@pytest.mark.usefixtures("pushed")
async def test_a_query_is_paged_forth_and_back(client: AsyncClient) -> None:
    first = await client.query(
        filters=["kind=component"], order=[("metadata.name", "desc")], fields=["metadata"], limit=2
    )
    assert (names(first.items), first.total_items) == (["e", "d"], 5)
    assert all(entity.keys() == {"metadata"} for entity in first.items)
    assert first.page_info.prev_cursor is None
    second = await client.query(cursor=first.page_info.next_cursor, limit=2)
    assert (names(second.items), second.total_items) == (["c", "b"], 5)
    third = await client.query(cursor=second.page_info.next_cursor, limit=2)
    assert names(third.items) == ["a"]
    assert third.page_info.next_cursor is None
    back = await client.query(cursor=second.page_info.prev_cursor, limit=2)
    assert names(back.items) == ["e", "d"]


@pytest.mark.usefixtures("pushed")
async def test_a_predicate_is_paged_as_well(client: AsyncClient) -> None:
    predicate = {"$all": [{"kind": "Component"}, {"$not": {"spec.type": "website"}}]}
    page = await client.query(predicate=predicate, order=[("metadata.name", "asc")], limit=2)
    assert (names(page.items), page.total_items) == (["a", "c"], 3)
    assert page.page_info.next_cursor
    following = await client.query(cursor=page.page_info.next_cursor)
    assert names(following.items) == ["e"]
    again = await client.query(predicate=predicate, cursor=page.page_info.next_cursor)
    assert names(again.items) == ["e"]


@pytest.mark.usefixtures("pushed")
async def test_a_text_is_looked_for_in_the_fields_named(client: AsyncClient) -> None:
    fields = ["metadata.title", "metadata.name"]
    page = await client.query(full_text=("PAYS FOR", fields), limit=0)
    assert (page.items, page.total_items) == ([], 1)
    page = await client.query(full_text=("a", ["metadata.name"]), order=[("metadata.name", "asc")])
    assert names(page.items) == ["a", "account"]
    page = await client.query(predicate={"kind": "resource"}, full_text=("pays", fields))
    assert names(page.items) == ["account"]


@pytest.mark.usefixtures("pushed")
async def test_an_offset_skips_entities(client: AsyncClient) -> None:
    order = [("metadata.name", "asc")]
    page = await client.query(filters=["kind=component"], order=order, offset=3)
    assert names(page.items) == ["d", "e"]
    page = await client.query(predicate={"kind": "component"}, order=order, offset=4)
    assert names(page.items) == ["e"]


@pytest.mark.usefixtures("pushed")
async def test_values_are_counted_among_those_that_fit(client: AsyncClient) -> None:
    found = await client.facets(["kind", "spec.type", "spec.none"], filters=["kind=component"])
    counted = {field: [(each.value, each.count) for each in found[field]] for field in found}
    assert counted == {
        "kind": [("Component", 5)],
        "spec.type": [("service", 3), ("website", 2)],
        "spec.none": [],
    }


async def test_an_entity_is_checked_by_the_strict_rules(client: AsyncClient) -> None:
    assert await client.validate(component("a")) == []
    broken = component("a b")
    del broken["spec"]["owner"]
    problems = await client.validate(broken)
    assert len(problems) == 2
    assert "metadata.name" in problems[0]
    assert "spec.owner" in problems[1]
    assert await client.validate(component("a"), location="file:here") != []
    assert await client.sets() == []


@pytest.mark.usefixtures("pushed")
async def test_the_ancestry_of_an_entity_begins_with_itself(client: AsyncClient) -> None:
    found = await client.ancestry("component:a")
    assert found.root_entity_ref == "component:default/a"
    assert names([each.entity for each in found.items]) == ["a"]
    with pytest.raises(ApiError) as caught:
        await client.ancestry("component:none")
    assert caught.value.status == 404


@pytest.mark.usefixtures("pushed")
async def test_an_entity_is_removed_by_its_uid(client: AsyncClient) -> None:
    uid = (await client.entity("component:a"))["metadata"]["uid"]
    await client.remove(uid)
    assert await client.entities_by_refs(["component:default/a"]) == [None]
    await client.remove(uid)


@pytest.mark.usefixtures("pushed")
async def test_the_facts_of_an_entity_that_exists_are_refreshed(client: AsyncClient) -> None:
    await client.refresh("component:default/a")
    with pytest.raises(ApiError, match="component:default/none") as caught:
        await client.refresh("component:default/none")
    assert caught.value.status == 404


async def test_the_handshake_tells_who_answers(client: AsyncClient) -> None:
    found = await client.initialize()
    assert (found.server_info.name, found.protocol_version) == ("factbook", "2025-11-25")
    assert found.instructions
    assert len(await client.tools()) == 13


@pytest.mark.usefixtures("pushed")
async def test_a_token_that_may_only_read_removes_nothing(
    service: Service, client: AsyncClient
) -> None:
    uid = (await client.entity("component:a"))["metadata"]["uid"]
    transport = httpx2.ASGITransport(service.application, client=("127.0.0.1", 40_000))
    token = await service.token("catalog.entity.read")
    async with AsyncClient("http://127.0.0.1:8000", token, transport=transport) as reader:
        assert (await reader.query()).total_items == 6
        with pytest.raises(ApiError, match=r"catalog\.entity-set\.write") as caught:
            await reader.remove(uid)
    assert caught.value.status == 403
    assert (await client.query()).total_items == 6
