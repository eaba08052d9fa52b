"""`/api/access/v1/audit`: reading the audit over HTTP, and how long it is kept."""

import pytest

from factbook.audit.trail import ACTIONS
from factbook.auth.permissions import AUDIT_READ, PERMISSION_NAMES
from factbook.clock import DAY, MINUTE
from factbook.worker import sweep
from tests.api.auditing import AUDIT, records
from tests.conftest import StartService
from tests.service import PUSH, Service, component

ON_SQLITE = pytest.mark.parametrize("database_url", ["sqlite"], indirect=True)


@pytest.mark.spec("permissions.audit-read-guards-the-audit")
async def test_only_who_may_read_the_audit_does(service: Service) -> None:
    await service.push("a", component("web"))
    async with service.client(await service.token(*(PERMISSION_NAMES - {AUDIT_READ}))) as http:
        answer = await http.get(AUDIT)
    assert answer.status_code == 403
    assert AUDIT_READ in answer.json()["error"]["message"]
    assert "set.push" not in answer.text
    async with service.client(await service.token(AUDIT_READ)) as http:
        found = (await http.get(AUDIT)).json()["records"]
    assert [record["action"] for record in found] == ["call.refused", "set.push"]


async def test_the_audit_is_read_page_by_page_newest_first(service: Service) -> None:
    for number in range(5):
        await service.push(f"set-{number}", component(f"c{number}"))
    found, query = [], {"limit": "2"}
    while True:
        page = (await service.http.get(AUDIT, params=query)).json()
        found.append([record["object"] for record in page["records"]])
        if "nextCursor" not in page:
            break
        query["cursor"] = page["nextCursor"]
        await service.push("later", component("later"))  # pages go on where they were
    assert found == [["set-4", "set-3"], ["set-2", "set-1"], ["set-0"]]


@pytest.mark.both_databases
async def test_records_are_found_by_what_they_say(service: Service) -> None:
    await service.push("a", component("web"))
    service.time.advance(MINUTE)
    async with service.client(await service.token(owner="user:default/kim")) as http:
        await http.put(f"{PUSH}/sets/b", json={"items": []})
        await http.delete(f"{PUSH}/sets/a")
    service.time.advance(MINUTE)
    await service.http.put(f"{PUSH}/sets/a", content=b"{")

    async def found(**query: str) -> list[tuple[str, str]]:
        return [(each["action"], each["object"]) for each in await records(service, **query)]

    pushed_a, pushed_b, deleted = ("set.push", "a"), ("set.push", "b"), ("set.delete", "a")
    refused = ("call.refused", f"{PUSH}/sets/a")
    assert await found() == [pushed_a, pushed_b, deleted, refused]
    assert await found(actor="user:default/kim") == [pushed_b, deleted]
    assert await found(action="set.push") == [pushed_a, pushed_b]
    assert await found(object="a") == [pushed_a, deleted]
    assert await found(outcome="refused") == [refused]
    assert await found(outcome="done", object="a", action="set.delete") == [deleted]
    assert await found(since="2026-11-21T12:01:00Z") == [pushed_b, deleted, refused]
    assert await found(until="2026-11-21T13:00:59.999+01:00") == [pushed_a]
    assert await found(since="2026-11-21T12:01:00Z", until="2026-11-21T12:01:00Z") == [
        pushed_b, deleted,
    ]  # fmt: skip
    assert await found(actor="user:default/nobody") == []


@ON_SQLITE
async def test_a_question_that_cannot_be_meant_is_refused(
    service: Service, subtests: pytest.Subtests
) -> None:
    for name, value in [
        ("cursor", "1"),
        ("cursor", "1/2"),
        ("cursor", f"{'9' * 16}/0123456789abcdef"),
        ("limit", "0"),
        ("limit", "1001"),
        ("since", "yesterday"),
        ("action", "set.burn"),
        ("outcome", "maybe"),
        ("actor", "x" * 641),
    ]:
        with subtests.test(name=name, value=value):
            answer = await service.http.get(AUDIT, params={name: value})
            assert answer.status_code == 400
            assert name in answer.json()["error"]["message"]


@ON_SQLITE
async def test_every_action_can_be_asked_for(service: Service) -> None:
    for action in ACTIONS:
        assert await records(service, action=action) == []


@ON_SQLITE
@pytest.mark.parametrize(("days", "kept"), [(10, ["new"]), (0, ["old", "new"])])
async def test_the_audit_is_kept_as_long_as_the_setting_says(
    start: StartService, days: int, kept: list[str]
) -> None:
    service = await start(audit_days=days)
    await service.push("old", component("a"))
    service.time.advance(DAY)
    await service.push("new", component("b"))
    service.time.advance(10 * DAY)
    await sweep(service.state.database, service.state.settings, (), service.time())
    assert [record["object"] for record in await records(service)] == kept
