"""`order`, `limit`, `offset`, `after` and `Link` of the entity list."""

import base64
import json
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest

from tests.service import Service, component, resource

ENTITIES = "/api/catalog/entities"
ON_SQLITE = pytest.mark.parametrize("database_url", ["sqlite"], indirect=True)


async def names(service: Service, **query: Any) -> list[str]:
    """The names in the list that these parameters give."""
    answer = await service.http.get(ENTITIES, params=query)
    assert answer.status_code == 200, answer.text
    return [entity["metadata"]["name"] for entity in answer.json()]


async def push_with_notes(service: Service, **notes: Any) -> None:
    """Resources by name, each with a note to sort by; None for a note that lacks."""
    items = [
        resource(name, **({} if note is None else {"note": note})) for name, note in notes.items()
    ]
    assert (await service.push("notes", *items)).status_code == 200


@pytest.mark.both_databases
@pytest.mark.spec("catalog.list-order")
async def test_fields_sort_up_or_down_and_what_lacks_them_comes_last_both_ways(
    service: Service,
) -> None:
    await push_with_notes(service, a="m", b=None, c="Z", d="a", e=[None], f="x" * 201, g="")
    assert await names(service, order="asc:metadata.note") == list("gdacbef")
    assert await names(service, order="desc:metadata.note") == list("cadgbef")
    assert await names(service, order="asc:metadata.note", limit=5) == list("gdacb")
    assert await names(service, order="asc:spec.nothing") == list("abcdefg")


@pytest.mark.both_databases
@pytest.mark.spec("catalog.list-order")
async def test_further_fields_sort_what_is_equal_in_the_first(service: Service) -> None:
    await push_with_notes(service, a="1", b="2", c="1", d="2", e=None)
    both = ["asc:metadata.note", "desc:metadata.name"]
    assert await names(service, order=both) == list("cadbe")
    assert await names(service, order=both[::-1]) == list("edcba")
    assert await names(service, order=["desc:METADATA.NOTE", "asc:metadata.name"]) == list("bdace")


@pytest.mark.both_databases
@pytest.mark.spec("catalog.list-order")
async def test_without_an_order_references_give_it_in_any_alphabet(service: Service) -> None:
    written = [
        "zebra",
        "Äther",
        "a b",
        "a-b",
        "a.b",
        "A_b",
        "ab",
        "éclair",
        "日本",
        "Zoo",
        "10",
        "9",
    ]
    items = [resource(name) for name in written]
    await service.push("words", *items, component("a"))
    wanted = ["a", *sorted(written, key=str.lower)]
    assert await names(service) == wanted
    assert await names(service, order="asc:kind") == wanted
    assert await names(service, limit=100) == wanted


@pytest.mark.both_databases
@pytest.mark.spec("catalog.list-paging")
async def test_links_followed_to_the_end_give_every_entity_once(service: Service) -> None:
    await push_with_notes(service, **{f"n{n:02}": ("x", "y", None)[n % 3] for n in range(25)})
    query: dict[str, Any] = {
        "filter": ["kind=resource", "kind=other"],
        "order": ["desc:metadata.note", "asc:spec.owner"],
        "fields": "metadata.name,metadata.note",
        "offset": 2,
        "limit": 4,
    }
    whole = await names(service, **{**query, "limit": 1000, "offset": 0})
    assert len(whole) == 25
    url: str | None = ENTITIES
    pages: list[list[str]] = []
    while url:
        answer = await service.http.get(url, params=query or None)
        pages.append([entity["metadata"]["name"] for entity in answer.json()])
        assert all(set(entity) == {"metadata"} for entity in answer.json())
        url, query = answer.links.get("next", {}).get("url"), {}
    assert [name for page in pages for name in page] == whole[2:]
    assert [len(page) for page in pages] == [4, 4, 4, 4, 4, 3]


@pytest.mark.spec("catalog.list-paging")
async def test_a_link_names_the_whole_path_and_keeps_all_but_offset_and_after(
    service: Service,
) -> None:
    await push_with_notes(service, a="1", b="2", c="3")
    query = {"filter": "metadata.note,kind=resource", "limit": "1", "offset": "1"}
    answer = await service.http.get(ENTITIES, params=query)
    link = answer.links["next"]
    assert link["rel"] == "next"
    url = urlsplit(link["url"])
    assert (url.scheme, url.netloc, url.path) == ("", "", ENTITIES)
    kept = parse_qs(url.query)
    after = kept.pop("after")[0]
    assert kept == {"filter": ["metadata.note,kind=resource"], "limit": ["1"]}
    # The cursor alone goes on too, with the page size that it carries.
    assert await names(service, after=after, filter=query["filter"]) == ["c"]
    assert await names(service, after=after, limit=1, offset=5) == ["c"]


@pytest.mark.spec("network.public-url")
@ON_SQLITE
@pytest.mark.parametrize("public", ["https://facts.example.com/base/", "http://facts:81"])
async def test_a_public_url_begins_the_link(start: Any, public: str) -> None:
    service: Service = await start(public_url=public)
    await push_with_notes(service, a="1", b="2")
    answer = await service.http.get(ENTITIES, params={"limit": 1})
    assert answer.links["next"]["url"].startswith(f"{public.rstrip('/')}{ENTITIES}?limit=1&after=")


@pytest.mark.spec("catalog.list-paging")
@ON_SQLITE
async def test_the_last_page_has_no_link_even_when_it_is_full(service: Service) -> None:
    await push_with_notes(service, a="1", b="2")
    for query in ({"limit": 2}, {"limit": 3}, {"offset": 1}, {"limit": 1, "offset": 1}, {}):
        answer = await service.http.get(ENTITIES, params=query)
        assert "link" not in answer.headers, query
    assert await names(service, offset=1) == ["b"]
    assert await names(service, offset=2) == []
    assert await names(service, limit=1, offset=2**31 - 1) == []


@pytest.mark.both_databases
@pytest.mark.spec("catalog.list-paging")
async def test_entities_that_come_or_go_between_pages_shift_nothing(service: Service) -> None:
    await push_with_notes(service, b="1", d="2", f="3", h="4")
    first = await service.http.get(ENTITIES, params={"limit": 2})
    await push_with_notes(service, a="0", b="1", e="2", h="4")
    second = await service.http.get(first.links["next"]["url"])
    assert [entity["metadata"]["name"] for entity in second.json()] == ["e", "h"]


@pytest.mark.slow
@pytest.mark.spec("catalog.list-entities")
async def test_without_paging_the_whole_catalog_comes_as_one_array(service: Service) -> None:
    assert (await service.http.get(ENTITIES)).text == "[]"
    await service.push("many", *(resource(f"n{number:04}") for number in range(2345)))
    answer = await service.http.get(ENTITIES)
    assert answer.headers["content-type"].startswith("application/json")
    found = [entity["metadata"]["name"] for entity in answer.json()]
    assert found == [f"n{number:04}" for number in range(2345)]
    assert "link" not in answer.headers


def cursor(value: Any) -> str:
    """What `after` would look like with this content."""
    return base64.urlsafe_b64encode(json.dumps(value).encode()).decode()


@ON_SQLITE
async def test_a_parameter_that_cannot_be_meant_is_400(
    service: Service, subtests: pytest.Subtests
) -> None:
    cases: list[tuple[dict[str, Any], str]] = [
        ({"limit": "0"}, "limit has to be a whole number from 1"),
        ({"limit": "-1"}, "limit"),
        ({"limit": "ten"}, "limit"),
        ({"limit": "1.5"}, "limit"),
        ({"limit": "10001"}, "to 10000"),
        ({"limit": "9" * 5000}, "limit"),
        ({"limit": "²"}, "limit"),
        ({"offset": "-1"}, "offset has to be a whole number from 0"),
        ({"offset": "x"}, "offset"),
        ({"after": "%%%"}, "after is not a cursor"),
        ({"after": cursor([1])}, "after is not a cursor"),
        ({"after": cursor({"limit": 0, "after": ["a"]})}, "after is not a cursor"),
        ({"after": cursor({"limit": 1, "after": [7]})}, "after is not a cursor"),
        ({"after": cursor({"limit": 1, "after": []})}, "another order"),
        ({"after": cursor({"limit": 1, "after": [None]})}, "another order"),
        ({"after": cursor({"limit": 1, "after": ["a"]}), "order": "asc:kind"}, "another order"),
        ({"order": "kind"}, "order has to be asc:<field> or desc:<field>"),
        ({"order": "up:kind"}, "order"),
        ({"order": "asc:"}, "order"),
        ({"order": ["asc:kind"] * 11}, "10 times at most"),
        ({"fields": "metadata.tags[0]"}, "without indexes"),
        ({"sort": "kind"}, "Unknown query parameter 'sort'"),
        ({"filter": ["kind"] * 1001}, "more than 1000 parameters"),
    ]
    for query, message in cases:
        with subtests.test(query=query):
            answer = await service.http.get(ENTITIES, params=query)
            assert answer.status_code == 400, answer.text
            error = answer.json()["error"]
            assert error["name"] == "InputError"
            assert message in error["message"]


@pytest.mark.both_databases
async def test_ten_orders_and_odd_cursors_are_taken(service: Service) -> None:
    await push_with_notes(service, a="1", b=None)
    orders = [f"desc:spec.field{number}" for number in range(9)]
    assert await names(service, order=[*orders, "desc:metadata.note"], limit=5) == ["a", "b"]
    after = cursor({"limit": 1, "after": ["\U0001f600", "'; --"]})
    assert await names(service, after=after, order="asc:metadata.note") == ["b"]
    nul = {"after": cursor({"limit": 1, "after": ["\0"]})}
    assert (await service.http.get(ENTITIES, params=nul)).status_code in (200, 400)
