"""`GET /api/tech-insights/v1/facts`: what the facts about an entity were."""

from functools import partial
from itertools import product
from typing import Any

import pytest

from factbook.clock import DAY, HOUR, iso
from factbook.collection.run_start import sample_catalog
from factbook.facts import store
from factbook.facts.datasource import DataSource
from factbook.facts.freshness import Observation
from factbook.facts.schema import Fact
from factbook.integrations import SOURCES as BUILTIN
from tests.api.defining import (
    FACTS,
    LINES,
    SOURCES,
    WEB,
    define,
    history,
    item,
    of_entities,
    push,
    pushed,
    refusal,
)
from tests.conftest import StartService
from tests.service import NOON, Service, component
from tests.storage.evaluating import evaluating

ON_SQLITE = pytest.mark.parametrize("database_url", ["sqlite"], indirect=True)
GITHUB = DataSource(
    id="vendor", title="Vendor", version="1.3.0", schema=(Fact("issues.open", "integer"),)
)


def at(hour: int) -> str:
    """An hour of the day before."""
    return f"2026-11-20T{hour:02}:00:00.000+00:00"


async def fill(service: Service) -> None:
    """Two entities, and two sources with a row for each of five hours."""
    await service.push("all", component("web"), component("api"))
    for id_ in ("coverage", "other"):
        await define(service, pushed(id_))
        items = [item(timestamp=at(hour), lines=hour) for hour in range(5)]
        await push(service, *items, item("component:api", at(9), lines=9), to=id_)


def row(hour: int, source: str = "coverage", version: str = "1.0.0") -> dict[str, Any]:
    """A row as the interface shows it."""
    return {
        "dataSourceId": source,
        "timestamp": at(hour),
        "version": version,
        "facts": {"lines": hour},
        "reasons": {"": "not-sent"},
    }


@pytest.mark.spec("facts.history-over-rest")
async def test_the_history_of_an_entity_comes_newest_first(service: Service) -> None:
    await fill(service)
    answer = await service.http.get(FACTS, params={"entity": "Component:Web"})
    assert answer.json() == {
        "entityRef": WEB,
        "items": [row(hour, id_) for hour in (4, 3, 2, 1, 0) for id_ in ("other", "coverage")],
    }
    assert await history(service, "component:api") == [row(9, "other"), row(9)]


@pytest.mark.both_databases
@pytest.mark.spec("facts.history-over-rest")
async def test_sources_and_times_narrow_the_history(
    service: Service, subtests: pytest.Subtests
) -> None:
    await fill(service)
    cases: list[tuple[dict[str, Any], list[int], list[str]]] = [
        ({"dataSourceIds": "coverage"}, [4, 3, 2, 1, 0], ["coverage"]),
        ({"dataSourceIds": "coverage,other"}, [4, 3, 2, 1, 0], ["other", "coverage"]),
        ({"dataSourceIds": " other , ,coverage,"}, [4, 3, 2, 1, 0], ["other", "coverage"]),
        ({"dataSourceIds": ["other", "coverage"]}, [4, 3, 2, 1, 0], ["other", "coverage"]),
        ({"dataSourceIds": "techdocs"}, [], []),
        ({"dataSourceIds": ","}, [], []),
        ({"startDateTime": at(3)}, [4, 3], ["other", "coverage"]),
        ({"endDateTime": at(1)}, [1, 0], ["other", "coverage"]),
        ({"startDateTime": at(1), "endDateTime": at(2)}, [2, 1], ["other", "coverage"]),
        ({"startDateTime": "2026-11-20T02:00:00.001Z"}, [4, 3], ["other", "coverage"]),
        ({"startDateTime": "2026-11-20T05:30:00+02:00"}, [4], ["other", "coverage"]),
        ({"startDateTime": at(3), "endDateTime": at(1)}, [], []),
        ({"endDateTime": "9999-12-31T23:59:59-12:00"}, [4, 3, 2, 1, 0], ["other", "coverage"]),
        ({"dataSourceIds": "other", "startDateTime": at(4)}, [4], ["other"]),
    ]
    for query, hours, ids in cases:
        with subtests.test(query=query):
            expected = [row(hour, id_) for hour in hours for id_ in ids]
            assert await history(service, **query) == expected


@ON_SQLITE
async def test_a_plus_that_was_not_encoded_is_understood(service: Service) -> None:
    await fill(service)
    answer = await service.http.get(f"{FACTS}?entity={WEB}&startDateTime=2026-11-20T05:00:00+01:00")
    assert [one["timestamp"] for one in answer.json()["items"]] == [at(4)] * 2


@pytest.mark.both_databases
@pytest.mark.slow
@pytest.mark.spec("facts.history-is-paged")
async def test_pages_hold_every_row_once_though_newer_ones_arrive(
    service: Service, subtests: pytest.Subtests
) -> None:
    await fill(service)
    queries: list[dict[str, str]] = [{}, {"dataSourceIds": "other"}, {"endDateTime": at(3)}]
    for case, (query, size) in enumerate(product(queries, (1, 3, 10, 11))):
        with subtests.test(query=query, size=size):
            # Each case has an entity of its own, for which nothing newer has arrived yet.
            ref = f"component:default/page-{case}"
            await service.push(f"page-{case}", component(f"page-{case}"))
            for source in ("coverage", "other"):
                rows = [item(ref, at(hour), lines=hour) for hour in range(5)]
                await push(service, *rows, to=source)
            expected = await history(service, ref, **query)
            assert len(expected) >= 5
            items: list[dict[str, Any]] = []
            asked = {"entity": ref, "limit": str(size), **query}
            for number in range(20):
                page = (await service.http.get(FACTS, params=asked)).json()
                items += page["items"]
                assert len(page["items"]) <= size
                if "nextCursor" not in page:
                    break
                asked["cursor"] = page["nextCursor"]
                await push(service, item(ref, at(10 + number), lines=10), to="other")
            assert items == expected


@pytest.mark.both_databases
@pytest.mark.spec("facts.history-keeps-the-version")
async def test_history_keeps_the_version_that_wrote_it(service: Service) -> None:
    await service.push("all", component("web"))
    await define(service, pushed(), publish=False)
    await push(service, item(timestamp=at(1), lines=1))
    changes: tuple[dict[str, Any], ...] = ({}, {"title": "Tested"}, {"schema": {"lines": LINES}})
    for hour, change in enumerate(changes, 2):
        await service.http.put(f"{SOURCES}/coverage", json=pushed(**change))
        await service.http.post(f"{SOURCES}/coverage/publish", json={"force": True})
        await push(service, item(timestamp=at(hour), lines=hour))
    found = await history(service)
    assert [(one["timestamp"], one["version"]) for one in found] == [
        (at(4), "2.0.0"),
        (at(3), "1.0.1"),
        (at(2), "1.0.0"),
        (at(1), "0.0.0"),
    ]
    assert [one.get("draft") for one in found] == [None, None, None, True]


@pytest.mark.spec("facts.history-over-rest", "facts.catalog-facts-sampled-daily")
async def test_builtin_collected_and_pushed_sources_are_read_alike(start: StartService) -> None:
    service = await start(sources=(*BUILTIN, GITHUB))
    database = service.state.database
    await service.push("all", component("web"))
    await define(service, pushed())
    await push(service, item(timestamp=at(1), lines=1))
    await sample_catalog(database, BUILTIN, NOON)
    written = {"issues.open": 3}
    await database.write(
        evaluating(
            lambda tx: store.record_facts(tx, GITHUB, [Observation(1, written)], NOON + HOUR)
        )
    )
    service.time.advance(DAY)
    found = await history(service)
    assert [(one["dataSourceId"], one["version"]) for one in found] == [
        ("vendor", "1.3.0"),
        ("techdocs", "1.0.0"),
        ("entity-ownership", "1.0.0"),
        ("entity-metadata", "1.0.0"),
        ("coverage", "1.0.0"),
    ]
    assert found[0]["facts"] == written
    assert found[1]["facts"] == {"hasTechdocsRef": False}


@pytest.mark.spec("facts.history-over-rest")
async def test_an_entity_that_was_never_collected_has_no_history(service: Service) -> None:
    await fill(service)
    await service.push("more", component("new"))
    assert await history(service, "component:new") == []


@ON_SQLITE
async def test_a_question_for_history_that_makes_no_sense_is_refused(
    service: Service, subtests: pytest.Subtests
) -> None:
    await fill(service)
    cases: list[tuple[dict[str, Any], int, str]] = [
        ({}, 400, "entity is required"),
        ({"entity": "web"}, 400, "lacks a kind"),
        ({"entity": ""}, 400, "entity is required"),
        ({"entity": ["component:web", "component:api"]}, 400, "once"),
        ({"entity": "component:nobody"}, 404, "no entity component:default/nobody"),
        ({"entity": WEB, "dataSourceIds": "nothing"}, 404, 'no data source "nothing"'),
        ({"entity": WEB, "dataSourceIds": "other,\0"}, 404, "no data source"),
        ({"entity": WEB, "dataSourceIds": ",".join(map(str, range(101)))}, 400, "100 data sources"),
        ({"entity": WEB, "dataSourceIds": ["other"] * 101}, 400, "100 times at most"),
        ({"entity": WEB, "startDateTime": "yesterday"}, 400, "startDateTime has to be an ISO 8601"),
        ({"entity": WEB, "endDateTime": "2026-11-21"}, 400, "endDateTime has to be an ISO 8601"),
        ({"entity": WEB, "startDateTime": "1969-12-31T23:59:59Z"}, 400, "from 1970 on"),
        ({"entity": WEB, "limit": "0"}, 400, "from 1 to 1000"),
        ({"entity": WEB, "limit": "1001"}, 400, "from 1 to 1000"),
        ({"entity": WEB, "cursor": "x"}, 400, "cursor has to be the nextCursor"),
        ({"entity": WEB, "cursor": "9" * 20 + "/other"}, 400, "cursor has to be the nextCursor"),
        ({"entity": WEB, "cursor": "1/\0"}, 400, "cursor has to be the nextCursor"),
        ({"entity": WEB, "other": "1"}, 400, "Unknown query parameter"),
    ]
    for query, status, words in cases:
        with subtests.test(query=query):
            assert words in refusal(await service.http.get(FACTS, params=query), status)


@ON_SQLITE
async def test_a_collected_source_takes_no_part_until_it_is_collected(service: Service) -> None:
    await fill(service)
    await define(service, of_entities())
    assert await history(service, dataSourceIds="owners") == []


@pytest.mark.spec("facts.history-tells-changes-once")
async def test_an_item_says_when_its_source_found_the_same_last(start: StartService) -> None:
    service = await start(sources=[GITHUB])
    await service.push("all", component("web"))
    for hour in range(3):
        now = NOON + hour * HOUR
        write = partial(
            store.record_facts,
            source=GITHUB,
            observations=[Observation(1, {"issues.open": 7})],
            now=now,
        )
        await service.state.database.write(evaluating(write))
    [told] = await history(service)
    assert (told["timestamp"], told["confirmedAt"]) == (iso(NOON), iso(NOON + 2 * HOUR))
    assert await history(service, startDateTime=iso(NOON + HOUR)) == [told]
    assert await history(service, startDateTime=iso(NOON + 3 * HOUR)) == []
