"""What people see of a source at a glance: when it brought something, and what failed."""

from collections.abc import Mapping
from typing import Any

import pytest

from factbook.clock import HOUR
from factbook.facts import store
from factbook.facts.datasource import DataSource
from factbook.facts.freshness import Observation
from factbook.facts.schema import Fact
from factbook.storage import Transaction
from tests.api.defining import define, item, push, pushed
from tests.service import Service, component, resource

SOURCE = DataSource(id="made", title="Made", schema=(Fact("lines", "integer"),))


async def ids(service: Service) -> dict[str, int]:
    rows = await service.state.database.all("SELECT name, id FROM entities")
    return dict(rows)


async def record(
    service: Service,
    name: str,
    values: Mapping[str, Any],
    reasons: Mapping[str, str],
    now: int,
    *,
    passing: bool = False,
) -> None:
    entity_id = (await ids(service))[name]
    places = frozenset(reasons) if passing else frozenset[str]()
    row = Observation(entity_id, values, reasons, places)

    def work(transaction: Transaction) -> None:
        store.record_facts(transaction, SOURCE, [row], now)
        transaction.evaluate_checks()

    await service.state.database.write(work)


async def test_failures_are_what_the_last_run_brought_nothing_of(service: Service) -> None:
    await service.push("all", *map(component, ("fine", "gone", "kept", "skipped")))
    now = service.time()
    for name in ("fine", "gone", "kept"):
        await record(service, name, {"lines": 1}, {}, now)
    await record(service, "skipped", {}, {"": "no-annotation: none"}, now)
    since = now + HOUR
    await record(service, "fine", {"lines": 2}, {}, since + 1)
    await record(service, "gone", {}, {"": "not-found"}, since + 1)
    await record(service, "kept", {}, {"": "upstream-error: 502"}, since + 1, passing=True)
    database = service.state.database
    found = await store.page_failures(database, "made", since, 0, 10)
    assert found.more is None
    assert [(one.ref, one.reasons, one.written_at) for one in found.failures] == [
        ("component:default/gone", {"": "not-found"}, since + 1),
        ("component:default/kept", {}, now),
    ]
    first = await store.page_failures(database, "made", since, 0, 1)
    assert [one.ref for one in first.failures] == ["component:default/gone"]
    assert first.more is not None
    rest = await store.page_failures(database, "made", since, first.more, 1)
    assert [one.ref for one in rest.failures] == ["component:default/kept"]
    assert rest.more is None


async def test_a_page_of_failures_looks_at_so_many_rows_and_says_where_to_go_on(
    service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(store, "FAILURES_SCANNED", 2)
    await service.push("all", *map(component, ("a", "b", "c")))
    now = service.time()
    for name in ("a", "b"):
        await record(service, name, {"lines": 1}, {}, now)
    await record(service, "c", {}, {"": "not-found"}, now)
    database = service.state.database
    first = await store.page_failures(database, "made", now, 0, 10)
    assert first.failures == []
    assert first.more is not None
    second = await store.page_failures(database, "made", now, first.more, 10)
    assert [one.ref for one in second.failures] == ["component:default/c"]
    assert second.more is None


async def test_the_time_and_the_number_of_what_was_pushed_are_known(service: Service) -> None:
    await service.push("all", component("web"), component("api"))
    await define(service, pushed())
    await define(service, pushed("silent"))
    database = service.state.database
    assert await store.find_last_written(database, ["coverage", "silent", "none"]) == {}
    await push(service, item(lines=1, timestamp="2026-11-20T12:00:00Z"))
    await push(service, item("component:api", lines=1))
    found = await store.find_last_written(database, ["coverage", "silent", "none"])
    assert found == {"coverage": service.time()}
    assert await store.count_stored(database, "coverage") == 2
    assert await store.count_stored(database, "silent") == 0


async def test_entities_that_a_source_is_about_are_found(service: Service) -> None:
    await service.push("all", component("web"), component("api"), resource("db"))
    database = service.state.database
    about = DataSource(id="x", title="X", entity_filter=[{"kind": "resource"}])
    assert await store.list_matching(database, about, 5) == ["resource:default/db"]
    assert len(await store.list_matching(database, SOURCE, 2)) == 2
