"""The limits of a push: what is refused, that it can be configured, and what the refusal says."""

import tracemalloc
from typing import Any

import pytest

from factbook.settings import Settings
from tests.conftest import StartService
from tests.service import PUSH, Service, component


def nested(levels: int) -> dict[str, Any]:
    """An entity whose JSON is so many levels deep."""
    deep: Any = "leaf"
    for _ in range(levels - 2):
        deep = [deep]
    return component("deep", deep=deep)


async def peak(service: Service, path: str, body: bytes) -> tuple[int, float]:
    """The status of a push, and the most memory that it took, in bytes for each of the body."""
    tracemalloc.start()
    try:
        answer = await service.http.put(f"{PUSH}{path}", content=body)
        return answer.status_code, tracemalloc.get_traced_memory()[1] / len(body)
    finally:
        tracemalloc.stop()


def message(answer: Any) -> str:
    """What a refusal says."""
    text: str = answer.json()["error"]["message"]
    return text


@pytest.mark.spec("limits.body-is-413", "limits.are-settings")
async def test_a_body_larger_than_the_setting_is_refused_and_loses_nothing(
    start: StartService,
) -> None:
    service = await start(max_body_bytes=2_000)
    await service.push("first", component("a"))
    large = [component(f"c{number}") for number in range(30)]
    for method, path, body in (
        ("PUT", "/sets/first", {"items": large}),
        ("POST", "/sets/first", component("x" * 2_000)),
        ("POST", "/entities", component("x" * 2_000)),
    ):
        answer = await service.http.request(method, PUSH + path, json=body)
        assert answer.status_code == 413, (method, path)
        assert answer.json()["error"]["name"] == "PayloadTooLargeError"
        assert "2000" in message(answer)
        assert "max_body_bytes" in message(answer)
    exact = b'{"items":[]' + b" " * 1_988 + b"}"
    assert (await service.http.put(f"{PUSH}/sets/other", content=exact)).status_code == 200
    assert (await service.http.put(f"{PUSH}/sets/other", content=exact + b" ")).status_code == 413
    [item] = (await service.http.get(f"{PUSH}/entities")).json()["items"]
    assert item["entityRef"] == "component:default/a"


@pytest.mark.spec("limits.items-is-413", "limits.are-settings")
async def test_a_set_never_holds_more_items_than_the_setting_says(start: StartService) -> None:
    service = await start(max_set_items=3)
    three = [component(name) for name in "abc"]
    assert (await service.push("first", *three)).status_code == 200
    refused = [
        await service.push("first", *three, component("d")),
        await service.http.post(f"{PUSH}/sets/first", json=component("d")),
    ]
    for answer in refused:
        assert answer.status_code == 413, answer.text
        assert "max_set_items is 3, by default 100000" in message(answer)
    changed = await service.http.post(f"{PUSH}/sets/first", json=component("a", owner="b"))
    assert changed.status_code == 200
    assert (await service.push("second", component("d"))).status_code == 200
    sets = (await service.http.get(f"{PUSH}/sets")).json()["sets"]
    assert [item["itemCount"] for item in sets] == [3, 1]


@pytest.mark.spec("limits.nesting-is-400", "limits.are-settings")
async def test_json_nested_deeper_than_the_setting_is_refused(start: StartService) -> None:
    service = await start(max_json_depth=10)
    assert (await service.push("first", nested(10))).status_code == 200
    refused = [
        await service.push("first", component("a"), nested(11)),
        await service.http.post(f"{PUSH}/sets/first", json=nested(11)),
    ]
    assert [answer.status_code for answer in refused] == [400, 400]
    assert all("10 deep at most" in message(answer) for answer in refused)
    assert [answer.json()["error"]["problems"][0]["path"] for answer in refused] == [
        "items[1]",
        "$",
    ]
    [item] = (await service.http.get(f"{PUSH}/sets/first")).json()["items"]
    assert item["entity"]["metadata"]["name"] == "deep"


@pytest.mark.spec("limits.nesting-is-400")
async def test_json_is_64_deep_at_most_unless_configured(service: Service) -> None:
    assert (await service.push("first", nested(64))).status_code == 200
    for levels in (65, 200, 400):
        answer = await service.push("first", nested(levels))
        assert answer.status_code == 400, levels
        assert "64" in message(answer)
    for bottomless in (b'{"items":[' + b"[" * 90_000, b'{"items":[{"a":' + b'{"a":' * 90_000):
        answer = await service.http.put(f"{PUSH}/sets/first", content=bottomless)
        assert answer.status_code == 400
        assert "64" in message(answer)


def many(**counts: int) -> dict[str, Any]:
    """An entity with so many of each, one of its relations being the owner."""
    entity = component(
        "large", dependsOn=[f"component:c{n}" for n in range(counts["relations"] - 1)]
    )
    entity["metadata"] |= {
        "labels": {f"l{n}": "x" for n in range(counts["labels"])},
        "annotations": {f"a{n}": "x" for n in range(counts["annotations"])},
        "tags": [f"t{n}" for n in range(counts["tags"])],
        "links": [{"url": f"https://example.com/{n}"} for n in range(counts["links"])],
    }
    return entity


FEW = {"relations": 3, "labels": 2, "annotations": 2, "tags": 2, "links": 2}
PATHS = {
    "relations": "spec.dependsOn",
    "labels": "metadata.labels",
    "annotations": "metadata.annotations",
    "tags": "metadata.tags",
    "links": "metadata.links",
}


@pytest.mark.spec("limits.large-entity-is-400", "limits.are-settings")
async def test_an_entity_with_more_of_anything_than_the_settings_say_is_refused_all_at_once(
    start: StartService,
) -> None:
    service = await start(**{f"max_entity_{name}": most for name, most in FEW.items()})
    assert (await service.push("first", many(**FEW))).status_code == 200
    larger = many(**{name: most + 1 for name, most in FEW.items()})
    for answer, before in (
        (await service.push("first", component("a"), larger), "items[1]."),
        (await service.http.post(f"{PUSH}/sets/first", json=larger), ""),
        (await service.http.post(f"{PUSH}/entities", json=larger), ""),
    ):
        assert answer.status_code == 400
        problems = {each["path"]: each["message"] for each in answer.json()["error"]["problems"]}
        assert problems.keys() == {before + path for path in PATHS.values()}
        for name, path in PATHS.items():
            setting = f"max_entity_{name}"
            said = f"{setting} is {FEW[name]}, by default {getattr(Settings(), setting)}"
            assert said in problems[before + path]
    [item] = (await service.http.get(f"{PUSH}/sets/first")).json()["items"]
    assert item["entityRef"] == "component:default/large"


@pytest.mark.spec("limits.large-entity-is-400", "limits.are-settings")
async def test_values_of_any_shape_are_bounded_together(start: StartService) -> None:
    # apiVersion, kind, name, type, lifecycle and owner are six.
    service = await start(max_entity_values=10)
    further: Any
    for further in ([1, 2, 3, 4], {"a": [1, {"b": 2}], "c": "3", "d": None}):
        assert (await service.push("first", component("a", further=further))).status_code == 200
    for further in ([1, 2, 3, 4, 5], {"a": [1, {"b": 2}], "c": "3", "d": None, "e": 0}):
        answer = await service.push("first", component("a", further=further))
        assert answer.status_code == 400
        assert "11 values are more than one entity may have" in message(answer)
        assert answer.json()["error"]["problems"][0]["path"] == "items[0]"


@pytest.mark.spec("limits.large-entity-is-400")
async def test_an_entity_at_its_limits_can_be_read_and_pushed_again(start: StartService) -> None:
    settings = {f"max_entity_{name}": most for name, most in FEW.items()}
    service = await start(**settings, max_entity_values=16)
    assert (await service.push("first", many(**FEW))).status_code == 200
    shown = await service.catalog("component:default/large")
    assert shown is not None
    assert len(shown["metadata"]["annotations"]) == 5
    answer = await service.push("first", shown)
    assert answer.json()["changes"]["unchanged"] == 1


@pytest.mark.spec("limits.large-entity-is-400")
async def test_a_target_that_more_entities_point_at_than_one_may_is_not_refused(
    start: StartService,
) -> None:
    service = await start(max_entity_relations=2)
    items = [component(f"c{n}", dependsOn=["component:library"]) for n in range(5)]
    assert (await service.push("first", *items)).status_code == 200
    assert (await service.push("second", component("library"))).status_code == 200
    answer = await service.http.post(f"{PUSH}/sets/second", json=component("library", owner="b"))
    assert answer.status_code == 200
    shown = await service.catalog("component:default/library")
    assert shown is not None
    assert len(shown["relations"]) == 6


@pytest.mark.spec("limits.rate-is-429", "limits.are-settings")
async def test_a_token_that_calls_too_often_is_told_when_to_come_again(start: StartService) -> None:
    service = await start(token_rate=0.5, token_burst=3)
    answers = [await service.push("first", component(f"c{number}")) for number in range(4)]
    assert [answer.status_code for answer in answers] == [200, 200, 200, 429]
    assert answers[3].headers["retry-after"] == "2"
    assert "token_rate is 0.5" in message(answers[3])
    async with service.client(await service.token(name="another")) as another:
        read = await another.get(f"{PUSH}/sets/first")
    assert read.json()["items"][0]["entityRef"] == "component:default/c2"
    service.time.advance(2_000)
    assert (await service.push("first", component("late"))).status_code == 200


@pytest.mark.spec("limits.default-in-the-refusal", "limits.items-is-413")
async def test_unconfigured_every_refusal_states_the_default(service: Service) -> None:
    too_many = b'{"items":[' + b",".join([b"{}"] * 100_001) + b"]}"
    answer = await service.http.put(f"{PUSH}/sets/first", content=too_many)
    assert answer.status_code == 413
    assert "More than 100000 items" in message(answer)
    assert "100000" in message(answer)
    # A client that announces too much is refused before it has sent anything.
    for method, path in (("PUT", "/sets/first"), ("POST", "/sets/first"), ("POST", "/entities")):
        answer = await service.http.request(
            method, PUSH + path, content=b"{}", headers={"content-length": str(256 * 1024**2 + 1)}
        )
        assert answer.status_code == 413
        assert "128000000" in message(answer)
    assert "64" in message(await service.push("first", nested(65)))
    assert "128" in message(await service.push("x" * 129))


@pytest.mark.spec("limits.default-in-the-refusal", "limits.rate-is-429")
async def test_the_refusal_for_calling_too_often_states_the_default(start: StartService) -> None:
    service = await start(token_burst=1)
    await service.push("first")
    answer = await service.push("first")
    assert answer.status_code == 429
    assert "token_rate is 200 a second" in message(answer)


@pytest.mark.spec("limits.are-settings")
def test_the_limits_are_settings_with_the_decided_defaults() -> None:
    settings = Settings()
    assert settings.max_body_bytes == 128_000_000
    assert settings.max_set_items == 100_000
    assert settings.max_json_depth == 64
    assert settings.max_entity_relations == 10_000
    assert settings.max_entity_values == 25_000
    for part in ("labels", "annotations", "tags", "links"):
        assert getattr(settings, f"max_entity_{part}") == 1_000
    assert settings.token_rate > 0


@pytest.mark.slow
async def test_a_body_is_counted_before_memory_is_taken_for_what_is_in_it(
    start: StartService, subtests: pytest.Subtests
) -> None:
    service = await start(max_set_items=1_000)
    named = b'{"items":[{"apiVersion":"v1","kind":"K","metadata":{"name":"a"},"spec":{"x":[%s]}}]}'
    cases = {
        "numbers": (b'{"items":[%s1]}' % (b"1," * 500_000), 413),
        "numbers after entities": (b'{"items":[{},%s1]}' % (b"1," * 500_000), 413),
        "objects": (b'{"items":[%s{}]}' % (b"{}," * 300_000), 413),
        "and an unknown key": (b'{"items":[%s1],"x":1}' % (b"1," * 500_000), 413),
        "lists in one entity": (named % (b"[]," * 300_000 + b"1"), 400),
        "objects in one entity": (named % (b"{}," * 300_000 + b"1"), 400),
    }
    for case, (body, status) in cases.items():
        with subtests.test(case):
            found, times = await peak(service, "/sets/a", body)
            assert found == status
            assert times < 12


async def test_text_is_no_part_of_the_count(service: Service) -> None:
    text = '{"a": [1, 2, "\\"]},' * 40_000
    answer = await service.push("a", component("a", definition=text))
    assert answer.status_code == 200


async def test_problems_and_warnings_are_listed_up_to_ten_thousand(service: Service) -> None:
    body = b'{"items":[%s{}]}' % (b"{}," * 20_000)
    answer = await service.http.put(f"{PUSH}/sets/a", content=body)
    problems = answer.json()["error"]["problems"]
    assert (answer.status_code, len(problems)) == (400, 10_001)
    assert problems[-1]["message"] == "there are more than 10,000 problems; the rest is not listed"
