"""Guard rails: If-Match, ETag and maxRemovals."""

from typing import Any

import pytest

from tests.service import PUSH, Service, component


async def put(service: Service, *names: str, if_match: str) -> Any:
    """A push with a condition."""
    return await service.http.put(
        f"{PUSH}/sets/first",
        json={"items": [component(name) for name in names]},
        headers={"if-match": if_match},
    )


@pytest.mark.both_databases
@pytest.mark.spec("guard.if-match", "guard.etag", "response.revision")
async def test_a_push_built_on_an_older_revision_is_refused_and_writes_nothing(
    service: Service,
) -> None:
    first = await service.push("first", component("a"))
    assert (first.headers["etag"], first.json()["revision"]) == ('"1"', 1)
    second = await put(service, "a", "b", if_match=first.headers["etag"])
    assert (second.status_code, second.headers["etag"], second.json()["revision"]) == (
        200,
        '"2"',
        2,
    )
    late = await put(service, "c", if_match=first.headers["etag"])
    assert late.status_code == 412
    assert late.json()["error"]["name"] == "PreconditionFailedError"
    assert late.json()["error"]["revision"] == 2
    read = await service.http.get(f"{PUSH}/sets/first")
    assert read.json()["items"] == second.json()["items"]
    assert read.headers["etag"] == '"2"'
    for tag in ("2", 'W/"2"', '"1", "2"', "*"):
        answer = await put(service, "a", "b", if_match=tag)
        assert (answer.status_code, answer.headers["etag"]) == (200, '"2"')


@pytest.mark.spec("guard.if-match")
async def test_every_way_to_write_a_set_heeds_if_match(service: Service) -> None:
    await service.push("first", component("a"))
    await service.push("first", component("a"), component("b"))
    before = (await service.http.get(f"{PUSH}/sets/first")).json()
    stale = {"if-match": '"1"'}
    calls: list[tuple[str, str, Any]] = [
        ("PUT", "/sets/first", {"items": []}),
        ("PUT", "/sets/first?dryRun=true", {"items": []}),
        ("POST", "/sets/first", component("c")),
        ("POST", "/sets/first/revisions/1/restore", None),
        ("DELETE", "/sets/first", None),
    ]
    for method, path, body in calls:
        answer = await service.http.request(method, PUSH + path, json=body, headers=stale)
        assert answer.status_code == 412, (method, path)
    assert (await service.http.get(f"{PUSH}/sets/first")).json() == before
    for tag in ("*", '"1"'):
        answer = await service.http.put(
            f"{PUSH}/sets/never", json={"items": [component("x")]}, headers={"if-match": tag}
        )
        assert answer.status_code == 412
    fresh = await service.http.put(
        f"{PUSH}/sets/never", json={"items": [component("x")]}, headers={"if-match": '"0"'}
    )
    assert fresh.status_code == 200


REMOVALS = [
    ("0", 0, 200),
    ("0", 1, 409),
    ("3", 3, 200),
    ("3", 4, 409),
    ("100", 10, 200),
    ("30%", 3, 200),
    ("30%", 4, 409),
    ("39.9%", 4, 409),
    ("0%", 1, 409),
    ("100%", 10, 200),
]


@pytest.mark.slow
@pytest.mark.spec("guard.max-removals", "guard.max-removals-percent")
async def test_a_push_that_removes_more_than_allowed_is_refused(service: Service) -> None:
    for number, (most, removed, status) in enumerate(REMOVALS):
        names = [f"c{number}-{place}" for place in range(10)]
        path = f"set {number}"
        await service.push(path, *map(component, names))
        sent = [*names[removed:], f"new{number}"]
        answer = await service.push(path, *map(component, sent), maxRemovals=most)
        assert answer.status_code == status, (most, removed, answer.text)
        items = (await service.http.get(f"{PUSH}/sets/{path}")).json()["items"]
        found = [item["entity"]["metadata"]["name"] for item in items]
        if status == 200:
            assert found == sent
        else:
            assert found == names
            error = answer.json()["error"]
            assert (error["name"], error["removals"]) == ("ConflictError", removed)
            assert f"would remove {removed} of 10" in error["message"]


@pytest.mark.spec("guard.max-removals")
async def test_deleting_and_restoring_heed_the_guard_too(service: Service) -> None:
    await service.push("first", component("a"))
    await service.push("first", component("a"), component("b"), component("c"))
    restore = f"{PUSH}/sets/first/revisions/1/restore"
    one = {"maxRemovals": "1"}
    assert (await service.http.delete(f"{PUSH}/sets/first", params=one)).status_code == 409
    assert (await service.http.post(restore, params=one)).status_code == 409
    assert (await service.http.post(restore, params={"maxRemovals": "67%"})).status_code == 200


async def test_a_guard_that_nobody_can_read_is_refused_not_ignored(service: Service) -> None:
    await service.push("first", component("a"))
    for query in (
        *(
            {"maxRemovals": text}
            for text in ("", "-1", "x", "1.5", "101%", "%", "1e3", "²", "9" * 20)
        ),
        *({"maxremovals": "0"}, {"max_removals": "0"}, {"dryrun": "true"}, {"dryRun": "1"}),
    ):
        answer = await service.push("first", **query)
        assert answer.status_code == 400, query
    assert await service.catalog("component:default/a") is not None
