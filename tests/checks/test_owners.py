"""Checks of whether the owner of an entity exists, as owners come and go in writes of their own."""

import asyncio
import threading
from collections.abc import Sequence

import msgspec
import pytest

from factbook.catalog.sets import Annotator, Prepared, PushRules, prepare_items
from factbook.catalog.store import stored_sets
from factbook.catalog.store.diff import Guards
from factbook.catalog.store.stored_sets import Actor
from factbook.checks.trials import ResultDifference, WriteTrial
from factbook.storage import Database, Transaction, Write
from factbook.storage.database import ChecksPort
from tests.checks.catalog import ACTOR, CheckedCatalog, a_check, leaf
from tests.checks.verification import verify
from tests.service import NOON, Time
from tests.storage.waiting_locks import is_lock_awaited
from tests.waiting import LONG, soon

RULES = PushRules(Annotator("factbook", "factbook"))
OWNED = a_check("owned", leaf("ownerExists", "equal", value=True, source="entity-ownership"))
EITHER = a_check("either", leaf("owned", "equal", "pass", source="checks"))


@pytest.fixture
async def catalog(database: Database) -> CheckedCatalog:
    """Two components with owners that are not there, one without any, and checks of that."""
    catalog = CheckedCatalog(database, Time())
    await catalog.push(a="red", b="user:mary", c="")
    await catalog.publish(OWNED, EITHER)
    return catalog


def people(*refs: str, external_id: str = "") -> Sequence[Prepared]:
    """Entities that own something; the last of them has the external id."""
    found = []
    for ref in refs:
        kind, name = ref.split(":")
        spec: dict[str, object] = {"type": "team", "children": [], "memberOf": []}
        mark = {"factbook/external-id": external_id} if external_id else {}
        metadata = {"name": name, "annotations": mark}
        entity = {"kind": kind, "metadata": metadata, "spec": spec}
        document = {"apiVersion": "backstage.io/v1alpha1", **entity}
        found.append(msgspec.Raw(msgspec.json.encode(document)))
    return prepare_items(found, "people", RULES).items


async def push(
    database: Database,
    *refs: str,
    external_id: str = "",
    write: Write | None = None,
) -> None:
    """Make these the people, and nobody else."""
    actor, wanted = Actor(ACTOR, NOON), people(*refs, external_id=external_id)
    await stored_sets.replace_set(database, "people", wanted, actor, Guards(), kept=5, write=write)


async def passing(catalog: CheckedCatalog) -> dict[str, list[str]]:
    """The names of the components that pass, by check; all that is stored is as it should be."""
    found = await verify(catalog.database, catalog.time())
    return {
        check: [ref.partition("/")[2] for ref, one in found.items() if one.states[check] == 1]
        for check in ("owned", "either")
    }


async def test_an_owner_that_comes_or_goes_changes_the_results_of_what_it_owns(
    catalog: CheckedCatalog,
) -> None:
    assert await passing(catalog) == {"owned": [], "either": []}
    await push(catalog.database, "Group:red", "User:mary")
    assert await passing(catalog) == {"owned": ["a", "b"], "either": ["a", "b"]}
    await push(catalog.database, "User:mary")
    assert await passing(catalog) == {"owned": ["b"], "either": ["b"]}
    await catalog.push(a="user:mary", b="blue", c="component:a")
    assert await passing(catalog) == {"owned": ["a", "c"], "either": ["a", "c"]}


async def test_an_owner_that_moves_to_another_reference_leaves_what_it_owned(
    catalog: CheckedCatalog,
) -> None:
    await push(catalog.database, "Group:blue", external_id="7")
    await push(catalog.database, "Group:red", external_id="7")
    assert (await passing(catalog))["owned"] == ["a"]
    await push(catalog.database, "Group:blue", external_id="7")
    assert (await passing(catalog))["owned"] == []


async def test_a_trial_tells_who_would_lose_the_owner(catalog: CheckedCatalog) -> None:
    await push(catalog.database, "Group:red")
    trial = WriteTrial(catalog.database, catalog.time, "tok_1")
    await push(catalog.database, write=trial.write)
    assert trial.differences == [
        ResultDifference("component:default/a", "either", "pass", "fail"),
        ResultDifference("component:default/a", "owned", "pass", "fail"),
    ]
    assert (await passing(catalog))["owned"] == ["a"]


@pytest.mark.slow
@pytest.mark.parametrize("database_url", ["postgresql"], indirect=True)
@pytest.mark.parametrize("before", [(), ("Group:green",), ("Component:green",)])
@pytest.mark.parametrize("after", [(), ("Group:green",), ("Component:green",)])
async def test_an_owner_that_comes_or_goes_while_it_is_named_is_seen(
    catalog: CheckedCatalog, before: Sequence[str], after: Sequence[str]
) -> None:
    await push(catalog.database, *before)
    evaluated, goes_on = threading.Event(), threading.Event()

    port = catalog.database.remembered.of(ChecksPort)
    evaluate = port.evaluation
    assert evaluate is not None

    def evaluate_and_pause(transaction: Transaction) -> None:
        evaluate(transaction)
        if not evaluated.is_set():
            evaluated.set()
            assert goes_on.wait(LONG)

    port.evaluation = evaluate_and_pause
    naming = asyncio.create_task(catalog.push(a="green", b="component:green"))
    await asyncio.to_thread(evaluated.wait, LONG)
    other = asyncio.create_task(push(catalog.database, *after))
    if before != after:
        await soon(lambda: is_lock_awaited(catalog.database))
    goes_on.set()
    await asyncio.gather(naming, other)
    wanted = {"group:green": ["a"], "component:green": ["b"]}
    assert (await passing(catalog))["owned"] == [
        name for ref in after for name in wanted[ref.lower()]
    ]
