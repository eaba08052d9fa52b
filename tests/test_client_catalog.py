"""The client's queries, counts and checks, against prepared answers."""

from typing import Any

import httpx2
import msgspec
import pytest

from factbook.client import ApiError, Client, UnexpectedAnswer
from tests.cli.fake_server import FakeServer, component

CATALOG = "/api/catalog"
QUERY = f"{CATALOG}/entities/by-query"
PAGE = {"items": [component("a")], "totalItems": 3, "pageInfo": {"nextCursor": "next"}}


@pytest.fixture
def server() -> FakeServer:
    return FakeServer()


@pytest.fixture
def client(server: FakeServer) -> Client:
    return Client("http://factbook.test", "fbk_secret", transport=httpx2.MockTransport(server))


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


@pytest.mark.parametrize("body", [{}, {"items": [], "totalItems": "3", "pageInfo": {}}, []])
def test_a_page_of_another_shape_is_unexpected(
    server: FakeServer, client: Client, body: Any
) -> None:
    server.on("GET", QUERY, body)
    with pytest.raises(UnexpectedAnswer, match="by-query"):
        client.query()


# The tool-call endpoint


def test_a_handshake_tells_who_answers(server: FakeServer, client: Client) -> None:
    found = client.initialize()
    assert (found.server_info.name, found.server_info.version) == ("factbook", "1.2.3")
    assert (found.protocol_version, found.instructions) == ("2025-11-25", None)
    assert server.sent()["params"]["clientInfo"]["name"] == "factbook-client"
