"""by-query: pages with cursors both ways, counts, full text and predicates."""

import base64
import json
from typing import Any

import pytest

from tests.api.querying import QUERY, names, page, posted
from tests.service import Service, component, resource

LETTERS = "abcdefg"


@pytest.fixture
async def letters(service: Service) -> Service:
    assert (await service.push("letters", *map(component, LETTERS))).status_code == 200
    return service


@pytest.mark.spec("catalog.by-query")
async def test_without_parameters_the_first_200_come_by_reference_with_their_total(
    service: Service,
) -> None:
    await service.push("many", *(resource(f"n{number:03}") for number in range(205)))
    first = await page(service)
    assert len(first["items"]) == 200
    assert first["items"][0]["metadata"]["name"] == "n000"
    assert first["totalItems"] == 205
    assert first["pageInfo"].keys() == {"nextCursor"}
    rest = await page(service, cursor=first["pageInfo"]["nextCursor"])
    assert len(rest["items"]) == 5
    assert rest["totalItems"] == 205
    assert rest["pageInfo"].keys() == {"prevCursor"}


@pytest.mark.both_databases
@pytest.mark.spec("catalog.by-query")
async def test_cursors_lead_to_the_end_and_back_to_the_start(
    letters: Service, subtests: pytest.Subtests
) -> None:
    cases: list[str | None] = [None, "metadata.name,desc", "spec.type"]
    for order in cases:
        with subtests.test(order=order):
            asked = {} if order is None else {"orderField": order}
            forward = [await page(letters, limit=3, **asked)]
            while cursor := forward[-1]["pageInfo"].get("nextCursor"):
                forward.append(await page(letters, limit=3, cursor=cursor))
            whole = LETTERS[::-1] if order == "metadata.name,desc" else LETTERS
            assert [names(one) for one in forward] == [whole[:3], whole[3:6], whole[6:]]
            backward = [forward[-1]]
            while cursor := backward[-1]["pageInfo"].get("prevCursor"):
                backward.append(await page(letters, limit=3, cursor=cursor))
            assert [names(one) for one in backward] == [whole[6:], whole[3:6], whole[:3]]
            again = await page(letters, limit=3, cursor=backward[-1]["pageInfo"]["nextCursor"])
            assert names(again) == whole[3:6]
            assert {one["totalItems"] for one in (*forward, *backward, again)} == {7}


@pytest.mark.spec("catalog.by-query", "catalog.by-query-post")
async def test_a_cursor_is_plain_base64_of_json_with_query_only_when_it_was_posted(
    letters: Service,
) -> None:
    ways = [
        (await page(letters, limit=2, filter="kind=component", orderField="spec.a>?~b"), "filter"),
        (await posted(letters, limit=2, query={"kind": "component"}), "query"),
    ]
    for found, key in ways:
        cursor = found["pageInfo"]["nextCursor"]
        assert cursor.isalnum()
        held = json.loads(base64.b64decode(cursor))
        assert {"filter", "query"} & held.keys() == {key}
        assert names(await page(letters, limit=9, cursor=cursor)) == "cdefg"
        assert names(await posted(letters, limit=9, cursor=cursor)) == "cdefg"


@pytest.mark.spec("catalog.by-query")
async def test_a_cursor_that_was_changed_is_refused_or_answered_but_never_a_fault(
    letters: Service, subtests: pytest.Subtests
) -> None:
    first = await page(letters, limit=2, orderField="metadata.name")
    held = json.loads(base64.b64decode(first["pageInfo"]["nextCursor"]))
    cases: list[dict[str, Any]] = [
        {"orderFieldValues": []},
        {"orderFieldValues": ["a", None]},
        {"orderFieldValues": [1, "a"]},
        {"orderFields": [{"field": "a"}] * 3},
        {"filter": "kind=a"},
        {"query": []},
        {"totalItems": "many"},
        {"more": 1},
    ]
    for change in cases:
        with subtests.test(change=change):
            cursor = base64.b64encode(json.dumps(held | change).encode()).decode()
            answer = await letters.http.get(QUERY, params={"cursor": cursor})
            assert answer.status_code == 400, answer.text


@pytest.mark.spec("catalog.by-query")
async def test_beside_a_cursor_only_limit_and_fields_count(letters: Service) -> None:
    first = await page(letters, limit=2, filter="metadata.name=a,metadata.name=b,metadata.name=c")
    rest = await page(
        letters,
        cursor=first["pageInfo"]["nextCursor"],
        filter="metadata.name=g",
        orderField="metadata.name,desc",
        fields="metadata.name",
    )
    assert rest["items"] == [{"metadata": {"name": "c"}}]
    assert rest["totalItems"] == 3


@pytest.mark.both_databases
@pytest.mark.spec("catalog.by-query")
async def test_entities_that_lack_the_order_field_come_last_and_are_counted(
    service: Service,
) -> None:
    notes = {"a": "m", "b": None, "c": "z", "d": "a", "e": None}
    await service.push(
        "notes",
        *(resource(name, **({"note": note} if note else {})) for name, note in notes.items()),
    )
    up = await page(service, orderField="metadata.note,asc")
    assert (names(up), up["totalItems"]) == ("dacbe", 5)
    down = await page(service, orderField="metadata.note,desc", limit=4)
    assert names(down) == "cadb"
    last = await page(service, limit=4, cursor=down["pageInfo"]["nextCursor"])
    assert names(last) == "e"
    back = await page(service, limit=3, cursor=last["pageInfo"]["prevCursor"])
    assert names(back) == "adb"


@pytest.mark.spec("catalog.by-query")
async def test_limit_0_only_counts_and_exclude_does_not(letters: Service) -> None:
    assert await page(letters, limit=0) == {"items": [], "totalItems": 7, "pageInfo": {}}
    uncounted = await page(letters, limit=2, totalItems="exclude")
    assert (names(uncounted), uncounted["totalItems"]) == ("ab", 0)
    assert (await page(letters, limit=2, totalItems="include"))["totalItems"] == 7
    assert (await posted(letters, totalItems="exclude"))["totalItems"] == 0
    assert await posted(letters, limit=0) == {"items": [], "totalItems": 7, "pageInfo": {}}


@pytest.mark.spec("catalog.by-query")
async def test_an_offset_skips_and_can_be_turned_back_from(letters: Service) -> None:
    found = await page(letters, offset=3, limit=2)
    assert (names(found), found["totalItems"]) == ("de", 7)
    assert names(await page(letters, limit=2, cursor=found["pageInfo"]["prevCursor"])) == "bc"
    tail = await page(letters, offset=6, limit=2)
    assert (names(tail), tail["totalItems"]) == ("g", 7)
    assert await page(letters, offset=9) == {"items": [], "totalItems": 7, "pageInfo": {}}


@pytest.mark.spec("catalog.by-query-post")
async def test_a_post_without_a_body_means_everything(letters: Service) -> None:
    answer = await letters.http.post(QUERY)
    assert answer.status_code == 200
    assert names(answer.json()) == LETTERS


@pytest.mark.both_databases
@pytest.mark.spec("catalog.by-query-post")
async def test_a_posted_query_takes_order_text_and_fields(letters: Service) -> None:
    found = await posted(
        letters,
        query={"$not": {"metadata.name": {"$in": ["a", "G"]}}},
        orderBy=[{"field": "metadata.name", "order": "desc"}],
        fullTextFilter={"term": "COMP", "fields": ["kind"]},
        fields=["metadata.name"],
        limit=2,
        offset=1,
    )
    assert found["items"] == [{"metadata": {"name": "e"}}, {"metadata": {"name": "d"}}]
    assert found["totalItems"] == 5
    assert (await posted(letters, fields=[]))["items"][0]["kind"] == "Component"


@pytest.mark.both_databases
@pytest.mark.spec("catalog.by-query")
async def test_a_text_is_looked_for_in_name_and_title_or_in_the_order_field(
    service: Service,
) -> None:
    await service.push(
        "words",
        resource("alpha", title="First"),
        resource("beta", title="An Alphabet"),
        resource("gamma", note="alpha"),
        resource("under_score"),
        resource("underXscore"),
    )
    found = await page(service, fullTextFilterTerm=" ALPHA ")
    assert [item["metadata"]["name"] for item in found["items"]] == ["alpha", "beta"]
    ordered = await page(service, fullTextFilterTerm="alpha", orderField="metadata.note")
    assert names(ordered) == "gamma"
    assert names(await page(service, fullTextFilterTerm="r_s")) == "under_score"
    named = {"fullTextFilterFields": "metadata.note,metadata.title"}
    both = await page(service, fullTextFilterTerm="alpha", **named)
    assert (names(both), both["totalItems"]) == ("betagamma", 2)
    assert (await page(service, fullTextFilterTerm="default/"))["totalItems"] == 0


@pytest.mark.both_databases
@pytest.mark.spec("catalog.by-query-post")
async def test_relations_are_found_by_type_and_target(service: Service) -> None:
    await service.push(
        "related",
        component("a", owner="team-x", dependsOn=["component:b"]),
        component("b", owner="team-y"),
    )
    for contained, wanted in (
        ({"type": "ownedBy", "targetRef": "Group:default/team-x"}, "a"),
        ({"type": "DEPENDENCYOF"}, "b"),
        ({"targetRef": {"$in": ["component:default/b", "group:default/team-y"]}}, "ab"),
        ({"type": {"$in": ["dependsOn", "dependencyOf"]}}, "ab"),
        ({"type": "nonsense"}, ""),
    ):
        found = await posted(service, query={"relations": {"$contains": contained}})
        assert names(found) == wanted, contained


@pytest.mark.both_databases
@pytest.mark.slow
async def test_pages_neither_repeat_nor_skip_while_a_set_is_replaced(service: Service) -> None:
    await service.push("still", *(resource(f"s{number:03}") for number in range(100)))
    seen: list[str] = []
    cursor: str | None = None
    for turn in range(100):
        moving = [resource(f"s{number:03}x") for number in range(turn % 7, 100, 3)]
        assert (await service.push("moving", *moving)).status_code == 200
        found = await page(
            service,
            limit=7,
            **({"orderField": "metadata.name"} if cursor is None else {"cursor": cursor}),
        )
        seen += [item["metadata"]["name"] for item in found["items"]]
        cursor = found["pageInfo"].get("nextCursor")
        if cursor is None:
            break
    still = [name for name in seen if not name.endswith("x")]
    assert still == [f"s{number:03}" for number in range(100)]
    assert len(seen) == len(set(seen))
