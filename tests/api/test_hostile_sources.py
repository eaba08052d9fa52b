"""Definitions and pushes that are legal in form but far too large, deep or odd."""

from typing import Any

import msgspec
import pytest

from tests.api.defining import FACTS, SOURCES, define, item, latest, of_entities, problems, pushed
from tests.service import Service, component

MANY = {f"metadata.labels.k{i}": "v" for i in range(101)}
TOO_MUCH: list[tuple[dict[str, Any], str]] = [
    ({"schema": None}, "schema"),
    ({"entityFilter": "[" * 100_000}, "entityFilter"),
    ({"entityFilter": [MANY]}, "entityFilter"),
    ({"entityFilter": [{}] * 101}, "entityFilter"),
    ({"entityFilter": [{"kind": ["component"] * 1_001}]}, "entityFilter"),
    ({"entityFilter": [{"kind": "a\0"}]}, "entityFilter[0]"),
    ({"entityFilter": [{"a\0": ["b"]}]}, "entityFilter[0]"),
    ({"lifecycle": {"maxItems": 2**63}}, "lifecycle.maxItems"),
    ({"lifecycle": {"timeToLive": {"months": 2**63}}}, "lifecycle.timeToLive.months"),
    ({"timeout": {"hours": 10**30}}, "timeout.hours"),
    ({"schema": {"n" * 101: {"type": "integer"}}}, "schema"),
]


@pytest.mark.parametrize("database_url", ["sqlite"], indirect=True)
async def test_what_no_database_could_work_with_is_refused(
    service: Service, subtests: pytest.Subtests
) -> None:
    for change, path in TOO_MUCH:
        with subtests.test(change=change, path=path):
            body = msgspec.json.encode(pushed() | change)
            answer = await service.http.post(SOURCES, content=body)
            assert answer.status_code == 400, answer.text
            assert path in problems(answer)


@pytest.mark.parametrize("database_url", ["sqlite"], indirect=True)
async def test_a_definition_without_facts_is_refused(service: Service) -> None:
    document = {name: value for name, value in pushed().items() if name != "schema"}
    answer = await service.http.post(SOURCES, json=document)
    assert answer.status_code == 400, answer.text
    assert problems(answer) == {"schema": "has to have at least one fact"}


@pytest.mark.both_databases
async def test_the_largest_filters_are_answered_by_the_database(
    service: Service, subtests: pytest.Subtests
) -> None:
    assert (await service.push("all", component("web"))).status_code == 200
    cases: list[list[dict[str, Any]]] = [
        [{f"metadata.labels.k{i}": {"exists": False} for i in range(100)}],
        [{"metadata.name": "web"}, *({f"metadata.labels.k{i}": "v"} for i in range(99))],
        [{"metadata.name": [f"n{i}" for i in range(999)] + ["web"]}],
    ]
    for number, entity_filter in enumerate(cases):
        with subtests.test(entity_filter=entity_filter):
            service.time.advance(1_000)
            await define(service, pushed(entityFilter=entity_filter))
            items = [item(lines=number)]
            answer = await service.http.post(f"{FACTS}/coverage", json={"items": items})
            assert answer.json()["acceptedItems"] == 1
            assert await latest(service) == {"component:default/web": {"lines": number}}


@pytest.mark.both_databases
async def test_the_longest_times_and_numbers_can_be_worked_with(service: Service) -> None:
    assert (await service.push("all", component("web"))).status_code == 200
    largest = 1_000_000_000
    lifecycle = {"timeToLive": {"months": largest}}
    await define(service, of_entities(lifecycle=lifecycle, timeout={"hours": largest}))
    answer = await service.http.post(f"{SOURCES}/owners/run")
    assert answer.status_code == 202, answer.text


async def test_an_item_of_more_facts_than_a_source_can_have_is_told_once(service: Service) -> None:
    assert (await service.push("all", component("web"))).status_code == 200
    await define(service, pushed())
    items = [item() | {"facts": {f"f{i}": i for i in range(100_000)}}]
    answer = await service.http.post(f"{FACTS}/coverage", json={"items": items})
    [outcome] = answer.json()["items"]
    assert outcome["accepted"] is False
    assert outcome["problems"] == [{"path": "items[0].facts", "message": "has more than 200 facts"}]


async def test_a_source_published_often_still_tells_its_versions(service: Service) -> None:
    for number in range(3):
        await define(service, pushed(title=f"Coverage {number}"))
    answer = await service.http.get(f"{SOURCES}/coverage")
    found = [one["version"] for one in answer.json()["definition"]["versions"]]
    assert found == ["1.0.2", "1.0.1", "1.0.0"]
