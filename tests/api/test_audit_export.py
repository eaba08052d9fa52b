"""The audit as JSON lines: over HTTP, and on the database itself."""

import asyncio
import json
import re
from typing import Any

import pytest

from factbook.audit.trail import AuditEntry, Caller, append_records, export_audit, make_record
from factbook.auth.permissions import AUDIT_READ, PERMISSION_NAMES
from factbook.clock import DAY, HOUR, MINUTE, SECOND
from factbook.errors import InputError
from factbook.operations import commands
from tests.api.auditing import AUDIT, records
from tests.processes import ServerProcess
from tests.service import NOON, Service, component

EXPORT = f"{AUDIT}/export"
ON_SQLITE = pytest.mark.parametrize("database_url", ["sqlite"], indirect=True)


async def add(service: Service, *times: int) -> None:
    """A record at each time."""
    made = [
        make_record(Caller("user:default/kim", at), AuditEntry("set.push", f"set {at - NOON}"))
        for at in times
    ]
    await service.state.database.write(lambda transaction: append_records(transaction, made))


async def exported(service: Service, **query: Any) -> list[dict[str, Any]]:
    """The records of an export."""
    answer = await service.http.get(EXPORT, params=query)
    assert answer.status_code == 200, answer.text
    assert answer.headers["content-type"] == "application/x-ndjson"
    return [json.loads(line) for line in answer.text.splitlines()]


@pytest.mark.spec("audit.exported-as-json-lines")
async def test_every_record_is_a_line_oldest_first_as_the_pages_of_the_audit_show_it(
    service: Service,
) -> None:
    await service.push("shop", component("web"))
    await service.http.get(AUDIT, params={"limit": "none"})
    await add(service, *(NOON + number // 3 for number in range(2_500)), NOON - DAY)
    found = await exported(service)
    assert len(found) == len({line.pop("cursor") for line in found}) == 2_502
    listed: list[dict[str, Any]] = []
    for part in ({"until": "2026-11-21T11:59:59Z"}, {"object": "shop"}):
        listed += await records(service, **part)
    assert [found[0], *(line for line in found if line["object"] == "shop")] == listed
    assert [line["at"] for line in found] == sorted(line["at"] for line in found)


async def test_an_export_goes_on_behind_the_line_where_another_ended(service: Service) -> None:
    await add(service, *(NOON + number // 3 for number in range(10)))
    whole = await exported(service)
    for number in (0, 1, 4, 9):
        assert await exported(service, after=whole[number]["cursor"]) == whole[number + 1 :]
    assert await exported(service, after=whole[-1]["cursor"]) == []
    await add(service, NOON + MINUTE)
    [new] = await exported(service, after=whole[-1]["cursor"])
    assert new["object"] == "set 60000"


async def test_an_export_is_narrowed_down_as_the_pages_are(service: Service) -> None:
    await add(service, NOON - HOUR, NOON, NOON + HOUR)
    await service.push("shop", component("web"))

    async def found(**query: str) -> list[str]:
        return [line["object"] for line in await exported(service, **query)]

    noon = "2026-11-21T12:00:00Z"
    assert await found(actor="user:default/kim") == ["set -3600000", "set 0", "set 3600000"]
    assert await found(since=noon, object="set 0") == ["set 0"]
    assert await found(since=noon, action="set.push") == ["set 0", "shop", "set 3600000"]
    assert await found(until=noon, actor="user:default/kim") == ["set -3600000", "set 0"]
    assert await found(outcome="refused") == []


@pytest.mark.spec("permissions.audit-read-guards-the-audit")
async def test_only_who_may_read_the_audit_exports_it(service: Service) -> None:
    async with service.client(await service.token(*(PERMISSION_NAMES - {AUDIT_READ}))) as http:
        assert (await http.get(EXPORT)).status_code == 403
    async with service.client(await service.token(AUDIT_READ)) as http:
        [line] = (await http.get(EXPORT)).text.splitlines()
    assert json.loads(line)["action"] == "call.refused"


async def test_an_export_is_of_one_moment(service: Service) -> None:
    await add(service, *(NOON + number for number in range(3_000)))
    lines = export_audit(service.state.database)
    assert len(await anext(lines)) < 3_000
    await add(service, NOON + 9_999)
    assert [record.object for records in [found async for found in lines] for record in records][
        -1
    ] == "set 2999"


async def test_who_follows_the_audit_gets_what_is_settled_and_nothing_twice(
    service: Service,
) -> None:
    await add(service, NOON, NOON + SECOND)
    got: list[str] = []
    warnings: list[str] = []
    time = service.time

    def write(lines: bytes) -> None:
        got.extend(json.loads(line)["object"] for line in lines.splitlines())

    following = asyncio.create_task(
        commands.export_audit(
            service.application, write, warn=warnings.append, follow=True, every=0, clock=time
        )
    )
    time.advance(5 * MINUTE)
    await _until(lambda: got == ["set 0"])
    await add(service, NOON + 1)  # of a write that took long
    time.advance(SECOND)
    await _until(lambda: len(got) == 3)
    assert got == ["set 0", "set 1", "set 1000"]
    assert warnings == []
    following.cancel()


async def test_who_follows_the_audit_is_told_what_a_clock_set_back_keeps_from_them(
    service: Service,
) -> None:
    await add(service, NOON, NOON + SECOND)
    written: list[bytes] = []
    warnings: list[str] = []
    following = asyncio.create_task(
        commands.export_audit(
            service.application,
            written.append,
            warn=warnings.append,
            follow=True,
            every=0,
            clock=service.time,
        )
    )
    service.time.now = NOON + SECOND + 5 * MINUTE
    await _until(lambda: b'"set 1000"' in b"".join(written))
    service.time.advance(-HOUR)
    back = service.time()
    await add(service, back - SECOND)  # before anybody has looked
    await _until(lambda: warnings)
    service.time.advance(HOUR)
    await add(service, NOON + 2 * SECOND)
    service.time.advance(MINUTE)
    await _until(lambda: b'"set 2000"' in b"".join(written))
    service.time.advance(-HOUR)
    await _until(lambda: len(warnings) == 2)
    following.cancel()
    since, until = re.findall(r"--(?:since|until) (\S+)", warnings[0])
    missing = (await service.http.get(EXPORT, params={"since": since, "until": until})).text
    assert f'"set {back - SECOND - NOON}"' in missing
    assert len(missing.splitlines()) == 3


async def _until(holds: Any) -> None:
    async with asyncio.timeout(60):
        while not holds():  # noqa: ASYNC110 - nothing tells of it
            await asyncio.sleep(0)


@ON_SQLITE
async def test_what_is_no_cursor_is_refused(service: Service) -> None:
    answer = await service.http.get(EXPORT, params={"after": "1"})
    assert answer.status_code == 400
    assert "cursor of a line" in answer.json()["error"]["message"]
    with pytest.raises(InputError, match="cursor"):
        await commands.export_audit(service.application, print, "1", warn=print)


@ON_SQLITE
async def test_the_command_prints_the_same_lines_as_the_interface(
    service: Service, tmp_path: Any
) -> None:
    await add(service, NOON, NOON + HOUR)
    process = ServerProcess(service.database_url, tmp_path)
    printed = process.invoke("audit", "export", "--since", "2026-11-21T12:00:01Z")
    assert printed == (await service.http.get(EXPORT)).text.splitlines(keepends=True)[1]
    process.invoke("audit", "export", "--since", "yesterday", expect=2)
