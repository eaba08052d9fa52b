"""Publication of one check over entities that have the states of others."""

from functools import partial

import pytest

from factbook.checks.definitions.definition_versions import check_store
from factbook.checks.results import evaluator, state_store
from factbook.checks.results.state_store import StateCounts
from factbook.storage import Database
from tests.checks.catalog import CheckedCatalog, a_check, leaf
from tests.service import Time

ON = leaf("on", "equal", value=True)
OFF = leaf("on", "equal", value=False)


@pytest.fixture
async def catalog(database: Database) -> CheckedCatalog:
    """Three components, of which facts of two are known."""
    catalog = CheckedCatalog(database, Time())
    await catalog.push(a="red", b="blue", c="")
    await catalog.record("a", on=True, open=5)
    await catalog.record("b", on=False, open=1)
    return catalog


async def states(catalog: CheckedCatalog) -> dict[str, bytes]:
    """The states of each entity by its name."""
    rows = await catalog.database.all(
        "SELECT e.ref, s.states FROM check_states s JOIN entities e ON e.id = s.entity_id"
    )
    return {ref[-1]: bytes(found) for ref, found in rows}


async def test_a_check_gets_its_byte_and_leaves_those_of_others(catalog: CheckedCatalog) -> None:
    await catalog.publish(a_check("first", ON))
    assert await states(catalog) == {"a": b"\1", "b": b"\2", "c": b"\3"}
    await catalog.publish(a_check("second", OFF))
    assert await states(catalog) == {"a": b"\1\2", "b": b"\2\1", "c": b"\3\3"}
    # Its next version takes another slot, and the one after that the first one again.
    await catalog.publish(a_check("first", OFF))
    assert await states(catalog) == {"a": b"\0\2\2", "b": b"\0\1\1", "c": b"\0\3\3"}
    await catalog.publish(a_check("first", ON))
    assert await states(catalog) == {"a": b"\1\2", "b": b"\2\1", "c": b"\3\3"}
    assert await state_store.count_totals(catalog.database) == {
        "first": StateCounts(passing=1, failing=1, undecided=1),
        "second": StateCounts(passing=1, failing=1, undecided=1),
    }


@pytest.mark.both_databases
async def test_states_that_end_before_the_slot_are_filled_up(catalog: CheckedCatalog) -> None:
    await catalog.publish(a_check("first", ON))
    await catalog.publish(a_check("gone", ON), a_check("second", OFF), settled=False)
    await catalog.database.write(partial(check_store.delete, id_="gone"))
    await evaluator.finish_publications(catalog.database, catalog.time)
    assert await states(catalog) == {"a": b"\1\0\2", "b": b"\2\0\1", "c": b"\3\0\3"}


@pytest.mark.parametrize("kind", ["component", "api"])
async def test_an_entity_that_a_check_is_not_about_is_told_apart(
    catalog: CheckedCatalog, kind: str
) -> None:
    await catalog.publish(a_check("first", ON))
    await catalog.publish(a_check("second", OFF, appliesTo={"kind": kind}))
    assert (await states(catalog))["b"] == (b"\2\1" if kind == "component" else b"\2\4")


@pytest.mark.both_databases
async def test_a_check_waits_for_one_that_began_before_any_entity_had_states(
    catalog: CheckedCatalog,
) -> None:
    """The second would begin in another order of entities, and read states that are not there."""
    await catalog.publish(a_check("first", ON), settled=False)
    await catalog.push(a="red", b="blue", c="", d="red")
    reads = leaf("first", "equal", "pass", source="checks")
    await catalog.publish(a_check("second", reads))
    assert await states(catalog) == {"a": b"\1\1", "b": b"\2\2", "c": b"\3\3", "d": b"\3\3"}
