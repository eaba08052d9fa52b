"""The client's reading of the catalog: entities, queries, counts, ancestries and checks."""

from typing import Any

import httpx2
import msgspec
import pytest

from factbook.client import (
    ApiError,
    Client,
    UnexpectedAnswer,
)
from tests.cli.fake_server import FakeServer, component

CATALOG = "/api/catalog"
ENTITIES = f"{CATALOG}/entities"
QUERY = f"{ENTITIES}/by-query"
PAGE = {"items": [component("a")], "totalItems": 3, "pageInfo": {"nextCursor": "next"}}


# Entities


def pages(server: FakeServer, *sizes: int, link: str = f"{ENTITIES}?after=x&fields=kind") -> None:
    """Prepare pages of the catalog with so many entities, each but the last naming the next."""
    for position, size in enumerate(sizes, 1):
        follow = f'<{link}>; rel="next"' if position < len(sizes) else ""
        server.on("GET", ENTITIES, [component(f"{position}-{n}") for n in range(size)], link=follow)


def test_entities_of_all_pages_are_iterated(server: FakeServer, client: Client) -> None:
    pages(server, 2, 2, 1)
    names = [entity["metadata"]["name"] for entity in client.entities()]
    assert names == ["1-0", "1-1", "2-0", "2-1", "3-0"]
    assert [("after", "x") in r.url.params.multi_items() for r in server.requests] == [
        False,
        True,
        True,
    ]


def test_a_selection_of_entities_is_asked_for(server: FakeServer, client: Client) -> None:
    pages(server, 0)
    selection = ["kind=component,spec.type=service", "kind=api"]
    assert not list(
        client.entities(
            filters=selection, fields=["kind", "metadata.name"], order=["asc:kind"], offset=5
        )
    )
    assert server.last.url.params.multi_items() == [
        ("filter", "kind=component,spec.type=service"),
        ("filter", "kind=api"),
        ("fields", "kind,metadata.name"),
        ("order", "asc:kind"),
        ("offset", "5"),
        ("limit", "500"),
    ]


def test_a_limit_ends_the_iteration_over_pages(server: FakeServer, client: Client) -> None:
    pages(server, 500, 100, 1)
    assert len(list(client.entities(limit=600))) == 600
    assert [request.url.params["limit"] for request in server.requests] == ["500", "100"]


def test_a_link_is_followed_to_no_other_host(server: FakeServer, client: Client) -> None:
    pages(server, 1, 1, link="http://elsewhere.test/somewhere?after=x")
    assert len(list(client.entities())) == 2
    assert {request.url.host for request in server.requests} == {"factbook.test"}


def test_a_server_may_live_below_a_path(server: FakeServer) -> None:
    server.on("GET", f"/tools/factbook{ENTITIES}", [component("a")])
    transport = httpx2.MockTransport(server)
    assert list(Client("http://factbook.test/tools/factbook/", transport=transport).entities())


@pytest.mark.parametrize("ref", ["component:default/a b", "component:a b"])
def test_an_entity_is_read_by_reference(server: FakeServer, client: Client, ref: str) -> None:
    server.on("GET", f"{ENTITIES}/by-name/component/default/a%20b", component("a b"))
    assert client.entity(ref)["metadata"]["name"] == "a b"


def test_what_is_no_full_reference_is_refused(client: Client, subtests: pytest.Subtests) -> None:
    for ref in ["", "a", "default/a", ":a", "component:", "component:/a"]:
        with subtests.test(ref=ref), pytest.raises(ValueError, match="kind:"):
            client.entity(ref)


def test_entities_are_read_by_references(server: FakeServer, client: Client) -> None:
    server.on("POST", f"{ENTITIES}/by-refs", {"items": [component("a"), None]})
    found = client.entities_by_refs(["component:a", "component:b"], fields=["kind"])
    assert found == [component("a"), None]
    assert server.sent() == {"entityRefs": ["component:a", "component:b"], "fields": ["kind"]}


# Queries


def test_a_query_gives_a_page_its_number_and_its_neighbours(
    server: FakeServer, client: Client
) -> None:
    server.on("GET", QUERY, PAGE)
    page = client.query()
    assert (page.items, page.total_items) == ([component("a")], 3)
    assert (page.page_info.next_cursor, page.page_info.prev_cursor) == ("next", None)
    assert server.last.url.query == b""


def test_what_a_query_selects_is_asked_for(server: FakeServer, client: Client) -> None:
    server.on("GET", QUERY, PAGE)
    client.query(
        filters=["kind=component,spec.type=service", "kind=api"],
        fields=["kind", "metadata.name"],
        order=[("metadata.name", "asc"), ("kind", "desc")],
        full_text=("pay & go", ["metadata.name", "metadata.title"]),
        limit=10,
        offset=20,
        cursor="here",
    )
    assert server.last.url.params.multi_items() == [
        ("filter", "kind=component,spec.type=service"),
        ("filter", "kind=api"),
        ("fields", "kind,metadata.name"),
        ("orderField", "metadata.name,asc"),
        ("orderField", "kind,desc"),
        ("fullTextFilterTerm", "pay & go"),
        ("fullTextFilterFields", "metadata.name,metadata.title"),
        ("limit", "10"),
        ("offset", "20"),
        ("cursor", "here"),
    ]


def test_a_predicate_is_sent_in_a_body(server: FakeServer, client: Client) -> None:
    server.on("POST", QUERY, PAGE)
    predicate = {"$any": [{"kind": "API"}, {"spec.type": {"$exists": True}}]}
    page = client.query(
        predicate=predicate,
        fields=["kind"],
        order=[("metadata.name", "desc")],
        full_text=("pay", ["metadata.name"]),
        limit=0,
        cursor="here",
    )
    assert page.total_items == 3
    assert server.last.url.query == b""
    assert server.sent() == {
        "query": predicate,
        "fields": ["kind"],
        "orderBy": [{"field": "metadata.name", "order": "desc"}],
        "fullTextFilter": {"term": "pay", "fields": ["metadata.name"]},
        "limit": 0,
        "cursor": "here",
    }


def test_an_empty_predicate_is_one(server: FakeServer, client: Client) -> None:
    server.on("POST", QUERY, PAGE)
    client.query(predicate={})
    assert server.sent() == {"query": {}}


def test_filters_and_a_predicate_exclude_each_other(client: Client) -> None:
    with pytest.raises(ValueError, match="either filters or a predicate"):
        client.query(filters=["kind=api"], predicate={"kind": "api"})


def test_a_page_of_another_shape_is_unexpected(
    server: FakeServer, client: Client, subtests: pytest.Subtests
) -> None:
    cases: list[Any] = [{}, {"items": [], "totalItems": "3", "pageInfo": {}}, []]
    for body in cases:
        with subtests.test(body=body):
            server.on("GET", QUERY, body)
            with pytest.raises(UnexpectedAnswer, match="by-query"):
                client.query()


# Facets


def test_values_are_counted(server: FakeServer, client: Client) -> None:
    counts = {"kind": [{"value": "API", "count": 2}], "spec.type": []}
    server.on("GET", f"{CATALOG}/entity-facets", {"facets": counts})
    found = client.facets(["kind", "spec.type"], filters=["spec.owner=a", "spec.owner=b"])
    assert [(each.value, each.count) for each in found["kind"]] == [("API", 2)]
    assert found["spec.type"] == []
    assert server.last.url.params.multi_items() == [
        ("facet", "kind"),
        ("facet", "spec.type"),
        ("filter", "spec.owner=a"),
        ("filter", "spec.owner=b"),
    ]


# One entity


def test_an_ancestry_is_read_by_reference(server: FakeServer, client: Client) -> None:
    item = {"entity": component("a"), "parentEntityRefs": ["location:default/b"]}
    answer = {"rootEntityRef": "component:default/a", "items": [item]}
    path = f"{CATALOG}/entities/by-name/component/default/a%20b/ancestry"
    server.on("GET", path, answer)
    found = client.ancestry("component:a b")
    assert found.root_entity_ref == "component:default/a"
    assert [(each.entity, each.parent_entity_refs) for each in found.items] == [
        (component("a"), ["location:default/b"])
    ]


def test_an_ancestry_needs_a_full_reference(client: Client) -> None:
    with pytest.raises(ValueError, match="kind:"):
        client.ancestry("a")


@pytest.mark.parametrize("raw", [False, True])
def test_a_valid_entity_has_no_problems(server: FakeServer, client: Client, raw: bool) -> None:
    server.on("POST", f"{CATALOG}/validate-entity", None)
    entity = component("a")
    assert client.validate(msgspec.Raw(msgspec.json.encode(entity)) if raw else entity) == []
    assert server.sent() == {
        "entity": entity,
        "location": "url:https://localhost/entity-validator",
    }


def test_the_problems_of_an_entity_are_told(server: FakeServer, client: Client) -> None:
    errors = [{"name": "InputError", "message": text} for text in ("no owner", "no type")]
    server.on("POST", f"{CATALOG}/validate-entity", {"errors": errors}, 400)
    assert client.validate(component("a"), location="url:http://a.test") == ["no owner", "no type"]
    assert server.sent()["location"] == "url:http://a.test"


@pytest.mark.parametrize("status", [400, 403, 500])
def test_a_check_that_is_refused_is_no_list_of_problems(
    server: FakeServer, client: Client, status: int
) -> None:
    server.refuse("POST", f"{CATALOG}/validate-entity", status, "The reason.")
    with pytest.raises(ApiError, match=r"The reason\.") as caught:
        client.validate(component("a"))
    assert caught.value.status == status


def test_an_entity_is_removed_by_its_uid(server: FakeServer, client: Client) -> None:
    path = f"{CATALOG}/entities/by-uid/a%2Fb"
    server.on("DELETE", path, None, 204)
    client.remove("a/b")
    assert (server.last.method, server.last.url.raw_path.decode()) == ("DELETE", path)


def test_an_entity_is_refreshed_by_its_reference(server: FakeServer, client: Client) -> None:
    server.on("POST", f"{CATALOG}/refresh", None)
    client.refresh("component:default/a")
    assert server.sent() == {"entityRef": "component:default/a"}
