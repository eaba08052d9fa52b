"""`/api/tech-insights/v1/facts/{id}`: one fact of every entity, counted, in pages and as CSV."""

import asyncio
import csv
import io
from typing import Any

import httpx2
import pytest

from factbook.auth.permissions import CATALOG_READ, SOURCE_READ
from factbook.clock import DAY, MINUTE, iso
from factbook.facts.across import KeptAnswers
from tests.api.defining import FACTS, SOURCES, define, item, push, pushed, refusal
from tests.service import NOON, Service, component, resource

ON_SQLITE = pytest.mark.parametrize("database_url", ["sqlite"], indirect=True)
SCHEMA = {
    "score": {"type": "float", "unit": "percent"},
    "open": {"type": "integer"},
    "protected": {"type": "boolean"},
    "language": {"type": "string"},
    "topics": {"type": "set"},
    "pushed": {"type": "datetime"},
    "raw": {"type": "object"},
}
REFS = [f"component:default/{name}" for name in "abcdef"]


@pytest.fixture
async def hosts(service: Service) -> Service:
    """Six components and a resource of two teams, and a source with every type of fact."""
    items = [
        component(name, owner="payments" if name in "abc" else "search", system="shop")
        for name in "abcdef"
    ]
    del items[5]["spec"]["owner"], items[5]["spec"]["system"]
    assert (await service.push("all", *items, resource("db"))).status_code == 200
    about = {"entityFilter": [{"kind": "component"}]}
    await define(service, pushed("hosts", schema=SCHEMA, **about))
    return service


def group(name: str, **spec: Any) -> dict[str, Any]:
    entity = component(name)
    return {**entity, "kind": "Group", "spec": {"type": "team", "children": []} | spec}


async def read(service: Service, path: str, fact: str, **query: Any) -> dict[str, Any]:
    """What an answer about a fact of the source says."""
    answer = await service.http.get(f"{FACTS}/hosts/{path}", params={"fact": fact, **query})
    assert answer.status_code == 200, answer.text
    found: dict[str, Any] = answer.json()
    return found


async def refs(service: Service, fact: str, **query: Any) -> list[str]:
    """The names of the entities of a page."""
    found = await read(service, "values", fact, **query)
    return [one["entityRef"].rpartition("/")[2] for one in found["entities"]]


async def test_numbers_are_summed_up_and_what_is_unknown_is_no_zero(hosts: Service) -> None:
    scores = [10.0, 20.0, 40.0, 90.0]
    await push(
        hosts,
        *(item(ref, score=score) for ref, score in zip(REFS, scores, strict=False)),
        item(REFS[4], score=None),
        to="hosts",
    )
    found = await read(hosts, "distribution", "score", ends=2)
    assert (found["entities"], found["known"], found["unknown"]) == (6, 4, 2)
    assert found["unknownReasons"] == {"never-collected": 1, "not-applicable": 1}
    assert found["spread"] == {
        "min": 10,
        "lowerQuartile": 17.5,
        "median": 30,
        "upperQuartile": 52.5,
        "max": 90,
        "mean": 40.0,
    }
    assert sum(one["count"] for one in found["histogram"]) == 4
    assert [one["value"] for one in found["lowest"]] == [10.0, 20.0]
    assert [one["entityRef"] for one in found["highest"]] == [REFS[3], REFS[2]]
    assert found["fact"] == {"name": "score", "type": "float", "unit": "percent"}
    assert "truncated" not in found


async def test_each_bar_counts_what_a_page_with_its_bounds_has(hosts: Service) -> None:
    await push(hosts, *(item(ref, open=n * n) for n, ref in enumerate(REFS)), to="hosts")
    for one in (await read(hosts, "distribution", "open"))["histogram"]:
        bounds = {name: str(one[name]) for name in ("min", "below") if name in one}
        assert len(await refs(hosts, "open", **bounds)) == one["count"]


async def test_booleans_texts_sets_and_objects_are_counted_by_what_they_are(hosts: Service) -> None:
    await push(
        hosts,
        item(REFS[0], protected=True, language="go", topics=["a", "b"], raw={"deep": [1]}),
        item(REFS[1], protected=False, language="go", topics=["b"], raw=[]),
        item(REFS[2], protected=True, language='c"#\\', topics=[]),
        to="hosts",
    )
    booleans = await read(hosts, "distribution", "protected")
    assert booleans["booleans"] == {"true": 2, "false": 1}
    assert [one["value"] for one in booleans["lowest"]] == [False, True, True]
    texts = await read(hosts, "distribution", "language", top=1)
    assert (texts["top"], texts["distinct"]) == ([{"value": "go", "count": 2}], 2)
    sets = await read(hosts, "distribution", "topics")
    assert sets["top"] == [{"value": "b", "count": 2}, {"value": "a", "count": 1}]
    objects = await read(hosts, "distribution", "raw")
    assert (objects["known"], objects["unknown"], "top" in objects) == (2, 4, False)
    assert await refs(hosts, "language", value='c"#\\') == ["c"]
    assert await refs(hosts, "topics", value="b") == ["a", "b"]
    assert await refs(hosts, "protected", value="false") == ["b"]
    assert await refs(hosts, "raw", known="true") == ["a", "b"]
    assert await refs(hosts, "topics", known="false") == ["d", "e", "f"]


async def test_datetimes_are_counted_by_age_and_ordered_whatever_their_offsets(
    hosts: Service,
) -> None:
    times = ["2026-11-21T11:00:00Z", "2026-11-21T12:30:00+02:00", "2025-01-01T00:00:00z"]
    items = [item(ref, pushed=time) for ref, time in zip(REFS, times, strict=False)]
    await push(hosts, *items, to="hosts")
    found = await read(hosts, "distribution", "pushed")
    assert found["spread"]["min"] == "2025-01-01T00:00:00.000+00:00"
    assert found["spread"]["median"] == "2026-11-21T10:30:00.000+00:00"
    assert "mean" not in found["spread"]
    last = found["histogram"][-1]
    assert (last["count"], found["histogram"][0]["count"]) == (2, 1)
    assert await refs(hosts, "pushed", min=last["min"]) == ["a", "b"]
    assert await refs(hosts, "pushed", sort="value", limit="2") == ["c", "b"]
    assert await refs(hosts, "pushed", sort="-value") == ["a", "b", "c", "d", "e", "f"]


async def test_a_reason_is_counted_and_leads_to_its_entities(hosts: Service) -> None:
    await push(hosts, item(REFS[0], score=None), item(REFS[1], score=1.0), to="hosts")
    found = await read(hosts, "distribution", "score")
    assert found["unknownReasons"] == {"never-collected": 4, "not-applicable": 1}
    page = await read(hosts, "values", "score", reason="not-applicable")
    assert page["entities"] == [
        {"entityRef": REFS[0], "unknownReason": "not-applicable: no value was given"}
    ]
    assert await refs(hosts, "score", reason="never-collected") == ["c", "d", "e", "f"]
    assert await refs(hosts, "score", reason="forbidden") == []
    assert await refs(hosts, "score", reason="forbidden", known="true") == []


async def test_a_value_tells_when_it_was_found(hosts: Service) -> None:
    await push(hosts, item(REFS[0], "2026-11-20T00:00:00Z", open=1), to="hosts")
    await push(hosts, item(REFS[1], open=2), to="hosts")
    [first, second, *_] = (await read(hosts, "values", "open"))["entities"]
    assert first == {
        "entityRef": REFS[0],
        "value": 1,
        "collectedAt": "2026-11-20T00:00:00.000+00:00",
    }
    assert second["collectedAt"] == "2026-11-21T12:00:00.000+00:00"
    found = await read(hosts, "distribution", "open")
    assert found["oldest"] == first["collectedAt"]
    assert found["newest"] == second["collectedAt"]


async def test_groups_tell_what_is_known_and_those_without_one_are_among_them(
    hosts: Service,
) -> None:
    values = zip(REFS, (True, False, True), strict=False)
    await push(hosts, *(item(ref, protected=yes, open=3) for ref, yes in values), to="hosts")
    by_owner = (await read(hosts, "distribution", "protected", by="owner"))["groups"]
    assert by_owner == [
        {"name": "group:default/payments", "entities": 3, "known": 3, "true": 2},
        {"name": "group:default/search", "entities": 2, "known": 0, "true": 0},
        {"entities": 1, "known": 0, "true": 0},
    ]
    by_system = (await read(hosts, "distribution", "open", by="system"))["groups"]
    assert by_system == [
        {"name": "system:default/shop", "entities": 5, "known": 3, "median": 3},
        {"entities": 1, "known": 0},
    ]
    by_kind = (await read(hosts, "distribution", "open", by="kind"))["groups"]
    assert by_kind == [{"name": "component", "entities": 6, "known": 3, "median": 3}]
    assert await refs(hosts, "open", owner="-") == ["f"]
    assert await refs(hosts, "open", system="-") == ["f"]
    assert await refs(hosts, "open", system="shop", owner="search") == ["d", "e"]


async def test_a_group_owns_what_groups_below_it_own_even_in_a_circle(hosts: Service) -> None:
    groups = [
        group("company", children=["division"]),
        group("division"),
        group("payments", parent="division"),
        group("search", parent="search"),
    ]
    assert (await hosts.push("groups", *groups)).status_code == 200
    assert await refs(hosts, "open", owner="company") == ["a", "b", "c"]
    assert await refs(hosts, "open", owner="group:default/Search") == ["d", "e"]
    assert await refs(hosts, "open", owner="user:kim") == []
    circle = group("company", children=["division"], parent="payments")
    assert (await hosts.push("groups", circle, *groups[1:])).status_code == 200
    assert await refs(hosts, "open", owner="division") == ["a", "b", "c"]


async def test_the_part_of_the_catalog_is_what_the_query_says(hosts: Service) -> None:
    assert await refs(hosts, "open", type="SERVICE", lifecycle="production") == list("abcdef")
    assert await refs(hosts, "open", lifecycle="experimental") == []
    assert await refs(hosts, "open", namespace="Default", kind="Component") == list("abcdef")
    assert await refs(hosts, "open", kind="resource") == []
    assert (await read(hosts, "distribution", "open", kind="resource"))["entities"] == 0


@pytest.mark.slow
async def test_pages_together_have_every_entity_once(
    hosts: Service, subtests: pytest.Subtests
) -> None:
    every: dict[str, list[Any]] = {
        "open": [2, 2, -1, 10],
        "score": [0.5, 0.5, -1e-9, 1e300],
        "protected": [True, True, False, True],
        "language": ["go", "go", "a b", "a"],
        "pushed": [f"2026-11-0{day}T00:00:00Z" for day in (2, 2, 1, 3)],
    }
    rows = zip(*every.values(), strict=True)
    items = [
        item(ref, **dict(zip(every, row, strict=True)))
        for ref, row in zip(REFS, rows, strict=False)
    ]
    await push(hosts, *items, to="hosts")
    for fact, values in every.items():
        for sort in ("entity", "value", "-value"):
            with subtests.test(fact=fact, sort=sort):
                entities: list[dict[str, Any]] = []
                query: dict[str, str] = {}
                while len(entities) < 10:
                    page = await read(hosts, "values", fact, sort=sort, limit="1", **query)
                    entities += page["entities"]
                    if "nextCursor" not in page:
                        break
                    query = {"cursor": page["nextCursor"]}
                assert sorted(entity["entityRef"] for entity in entities) == REFS
                known = [entity for entity in entities if "value" in entity]
                if sort != "entity":
                    assert [entity["value"] for entity in known] == sorted(
                        values, reverse=sort == "-value"
                    )
                    assert known == entities[: len(values)]


async def test_facts_of_the_catalog_itself_are_counted_too(hosts: Service) -> None:
    query = {"fact": "hasOwner", "by": "kind"}
    answer = await hosts.http.get(f"{FACTS}/entity-ownership/distribution", params=query)
    assert answer.status_code == 200, answer.text
    found = answer.json()
    assert (found["entities"], found["known"], found["booleans"]) == (7, 7, {"true": 6, "false": 1})
    assert [(one["name"], one["true"]) for one in found["groups"]] == [
        ("component", 5),
        ("resource", 1),
    ]
    query = {"fact": "ownerExists", "value": "true"}
    answer = await hosts.http.get(f"{FACTS}/entity-ownership/values", params=query)
    assert answer.json()["entities"] == []
    await hosts.push("groups", group("payments"))
    answer = await hosts.http.get(f"{FACTS}/entity-ownership/values", params=query)
    assert [one["entityRef"] for one in answer.json()["entities"]] == REFS[:3]


async def test_the_table_is_exported_as_csv_that_holds_no_formula(hosts: Service) -> None:
    texts = ['=HYPERLINK("https://evil")', "@cmd", "-1", '+1,"2"', "line\r\nbreak", "＝1"]  # noqa: RUF001
    await push(
        hosts,
        *(item(ref, language=text) for ref, text in zip(REFS, texts, strict=True)),
        to="hosts",
    )
    answer = await hosts.http.get(f"{FACTS}/hosts/values.csv", params={"fact": "language"})
    assert answer.headers["content-type"].startswith("text/csv")
    assert answer.headers["content-disposition"] == 'attachment; filename="hosts-language.csv"'
    assert answer.text.startswith("entityRef,value,unknownReason,collectedAt,kept,stale\r\n")
    rows = list(csv.reader(io.StringIO(answer.text, newline="")))
    assert [row[0] for row in rows[1:]] == REFS
    assert [row[1] for row in rows[1:]] == [
        *(f"'{text}" for text in texts[:4]),
        "line\r\nbreak",
        f"'{texts[5]}",
    ]


async def test_numbers_in_csv_stay_numbers_and_what_is_unknown_stays_empty(hosts: Service) -> None:
    await push(hosts, item(REFS[0], open=-5), item(REFS[1], open=None), to="hosts")
    answer = await hosts.http.get(f"{FACTS}/hosts/values.csv", params={"fact": "open"})
    rows = answer.text.split("\r\n")
    assert rows[1] == f"{REFS[0]},-5,,2026-11-21T12:00:00.000+00:00,false,false"
    assert rows[2] == f"{REFS[1]},,not-applicable: no value was given,,,"
    assert rows[3] == f"{REFS[2]},,never-collected,,,"
    some = {"fact": "open", "known": "true"}
    answer = await hosts.http.get(f"{FACTS}/hosts/values.csv", params=some)
    assert answer.text.count("\r\n") == 2


async def test_a_fact_of_another_type_than_before_is_unknown_until_it_is_collected(
    hosts: Service,
) -> None:
    await push(hosts, item(REFS[0], language="7"), item(REFS[1], language="x"), to="hosts")
    schema = SCHEMA | {"language": {"type": "integer"}}
    await define(hosts, pushed("hosts", schema=schema), publish=False)
    answer = await hosts.http.post(f"{SOURCES}/hosts/publish", json={"force": True})
    assert answer.status_code == 200, answer.text
    await push(hosts, item(REFS[2], language=5), to="hosts")
    found = await read(hosts, "distribution", "language")
    assert (found["entities"], found["known"]) == (7, 1)
    page = await read(hosts, "values", "language", sort="value")
    assert [one.get("value") for one in page["entities"]][:2] == [5, None]


@ON_SQLITE
async def test_a_question_that_makes_no_sense_is_refused(
    hosts: Service, subtests: pytest.Subtests
) -> None:
    cases: list[tuple[str, dict[str, str], int]] = [
        ("hosts/distribution", {}, 400),
        ("hosts/distribution", {"fact": "none"}, 404),
        ("none/distribution", {"fact": "open"}, 404),
        ("hosts/distribution", {"fact": "open", "by": "colour"}, 400),
        ("hosts/distribution", {"fact": "open", "top": "101"}, 400),
        ("hosts/distribution", {"fact": "open", "ends": "-1"}, 400),
        ("hosts/distribution", {"fact": "open", "owner": "group:"}, 400),
        ("hosts/distribution", {"fact": "open", "kind": "a\0"}, 400),
        ("hosts/distribution", {"fact": "open", "value": "1"}, 400),
        ("hosts/values", {"fact": "open", "min": "much"}, 400),
        ("hosts/values", {"fact": "open", "below": "nan"}, 400),
        ("hosts/values", {"fact": "open", "value": "1e999"}, 400),
        ("hosts/values", {"fact": "language", "min": "1"}, 400),
        ("hosts/values", {"fact": "language", "value": "\0"}, 400),
        ("hosts/values", {"fact": "pushed", "min": "yesterday"}, 400),
        ("hosts/values", {"fact": "pushed", "value": "x"}, 400),
        ("hosts/values", {"fact": "protected", "value": "yes"}, 400),
        ("hosts/values", {"fact": "raw", "sort": "value"}, 400),
        ("hosts/values", {"fact": "open", "sort": "down"}, 400),
        ("hosts/values", {"fact": "open", "reason": "because"}, 400),
        ("hosts/values", {"fact": "open", "known": "maybe"}, 400),
        ("hosts/values", {"fact": "open", "cursor": "x"}, 400),
        ("hosts/values", {"fact": "open", "cursor": "W3RydWUsIngiLCJhIl0="}, 400),
        ("hosts/values", {"fact": "open", "limit": "0"}, 400),
        ("hosts/values.csv", {"fact": "open", "cursor": "x"}, 400),
    ]
    for path, query, status in cases:
        with subtests.test(path=path, query=query):
            assert refusal(await hosts.http.get(f"{FACTS}/{path}", params=query), status)


@ON_SQLITE
@pytest.mark.parametrize("path", ["distribution", "values", "values.csv"])
async def test_both_permissions_are_needed(hosts: Service, path: str) -> None:
    async def asked(*permissions: str) -> httpx2.Response:
        async with hosts.client(await hosts.token(*permissions)) as http:
            return await http.get(f"{FACTS}/hosts/{path}", params={"fact": "open"})

    assert (await asked(CATALOG_READ)).status_code == 403
    assert (await asked(SOURCE_READ)).status_code == 403
    assert (await asked(CATALOG_READ, SOURCE_READ)).status_code == 200


@ON_SQLITE
async def test_moments_ahead_have_a_bar_of_their_own(hosts: Service) -> None:
    hosts.time.now = NOON + DAY
    items = [
        item(REFS[0], pushed="2030-01-01T00:00:00Z"),
        item(REFS[1], pushed="1969-01-01T00:00:00Z"),
    ]
    await push(hosts, *items, to="hosts")
    found = await read(hosts, "distribution", "pushed")
    assert found["histogram"][-1] == {"count": 1, "min": "2026-11-22T12:00:00.001+00:00"}
    assert found["histogram"][0]["count"] == 1


async def test_figures_of_a_large_catalog_are_kept_for_a_minute_and_say_so(hosts: Service) -> None:
    hosts.state.database.remembered.of(KeptAnswers).large = 1
    await push(hosts, *(item(ref, score=float(n)) for n, ref in enumerate(REFS)), to="hosts")
    started = iso(hosts.time())
    found = await read(hosts, "distribution", "score")
    assert (found["known"], found["asOf"]) == (6, started)
    hosts.time.advance(MINUTE)
    await push(hosts, item(REFS[0], score=None), to="hosts")
    assert await read(hosts, "distribution", "score") == found
    # Another question has an answer of its own.
    assert (await read(hosts, "distribution", "score", owner="payments"))["known"] == 2
    path, asked = f"{FACTS}/hosts/distribution", {"fact": "score"}
    fresh = {"cache-control": "max-age=0, No-Cache"}
    anew = (await hosts.http.get(path, params=asked, headers=fresh)).json()
    assert (anew["known"], anew["asOf"]) == (5, iso(hosts.time()))
    assert (await read(hosts, "distribution", "score"))["known"] == 5
    await push(hosts, item(REFS[1], score=None), to="hosts")
    hosts.time.advance(MINUTE + 1)
    assert (await read(hosts, "distribution", "score"))["known"] == 4


async def test_what_is_kept_of_a_source_ends_with_its_version(hosts: Service) -> None:
    hosts.state.database.remembered.of(KeptAnswers).large = 1
    await push(hosts, *(item(ref, score=float(n)) for n, ref in enumerate(REFS)), to="hosts")
    assert (await read(hosts, "distribution", "score"))["known"] == 6
    some = {"entityFilter": [{"kind": "component", "metadata.name": "a"}]}
    await define(hosts, pushed("hosts", schema=SCHEMA, **some))
    assert (await read(hosts, "distribution", "score"))["known"] == 1


async def test_pages_by_value_of_a_large_catalog_are_of_one_reading(hosts: Service) -> None:
    hosts.state.database.remembered.of(KeptAnswers).large = 1
    await push(hosts, *(item(ref, open=n) for n, ref in enumerate(REFS[:5])), to="hosts")
    started = iso(hosts.time())
    first = await read(hosts, "values", "open", sort="-value", limit=2)
    assert [one["value"] for one in first["entities"]] == [4, 3]
    hosts.time.advance(1)
    await push(hosts, item(REFS[2], open=9), item(REFS[0], open=None), to="hosts")
    second = await read(hosts, "values", "open", sort="-value", limit=2, cursor=first["nextCursor"])
    assert [one["value"] for one in second["entities"]] == [2, 1]
    assert first["asOf"] == second["asOf"] == started
    third = await read(hosts, "values", "open", sort="-value", limit=9, cursor=second["nextCursor"])
    # Those without a value are read as they are.
    assert [one["entityRef"] for one in third["entities"]] == [REFS[0], REFS[0], REFS[5]]
    hosts.time.advance(MINUTE)
    assert await refs(hosts, "open", sort="-value") == ["c", "e", "d", "b", "a", "f"]


async def test_a_small_catalog_is_counted_for_every_question(hosts: Service) -> None:
    for number in range(1, 4):
        await push(hosts, item(REFS[number], score=1.0), to="hosts")
        assert (await read(hosts, "distribution", "score"))["known"] == number


async def test_those_who_ask_the_same_together_wait_for_one_count(hosts: Service) -> None:
    hosts.state.database.remembered.of(KeptAnswers).large = 1
    asked = (read(hosts, "distribution", "score", by="owner") for _ in range(5))
    first, *others = await asyncio.gather(*asked)
    assert others == [first] * 4


async def test_answers_that_were_asked_for_long_ago_are_forgotten(hosts: Service) -> None:
    hosts.state.database.remembered.of(KeptAnswers).large = 1
    assert (await read(hosts, "distribution", "score"))["known"] == 0
    await push(hosts, item(REFS[0], score=1.0), to="hosts")
    for top in range(21, 85):
        await read(hosts, "distribution", "score", top=top)
    assert (await read(hosts, "distribution", "score"))["known"] == 1
