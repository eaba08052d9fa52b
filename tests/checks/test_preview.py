"""The preview of a check: counts now and with it, and who would change; nothing is written."""

import pytest

from factbook.checks import state
from factbook.checks.definitions.definition_versions import check_store
from factbook.checks.results.state_store import StateCounts
from factbook.checks.rules.check_definition import parse_check
from factbook.checks.trials import PreviewScope, preview_check
from factbook.storage import Database
from tests.checks.catalog import CheckedCatalog, a_check, leaf
from tests.service import Time


@pytest.fixture
async def catalog(database: Database) -> CheckedCatalog:
    """Three components, of which facts of two are known, and one check."""
    catalog = CheckedCatalog(database, Time())
    await catalog.push(a="red", b="blue", c="")
    await catalog.record("a", on=True, open=5)
    await catalog.record("b", on=False, open=1)
    await catalog.publish(a_check("on", leaf("on", "equal", value=True)))
    return catalog


async def test_a_preview_tells_counts_and_changes_and_writes_nothing(
    catalog: CheckedCatalog,
) -> None:
    database = catalog.database
    revision = await check_store.revision(database)
    changed = parse_check(a_check("on", leaf("open", "lessThan", 3)))
    found = await preview_check(database, changed, catalog.time(), 1, "tok_1")
    assert found.now == StateCounts(passing=1, failing=1, undecided=1)
    assert found.then == StateCounts(passing=1, failing=1, undecided=1)
    assert found.changed == 2
    assert found.first == [("component:default/a", state.PASS, state.FAIL)]
    assert await check_store.revision(database) == revision


async def test_those_that_would_fail_come_first(catalog: CheckedCatalog) -> None:
    other = parse_check(a_check("on", leaf("on", "equal", value=False)))
    await catalog.record("c", on=True, open=0)
    found = await preview_check(catalog.database, other, catalog.time(), 1, "tok_1")
    assert (found.changed, found.first[0].after) == (3, state.FAIL)
    swapped = parse_check(a_check("on", leaf("open", "lessThan", 5)))
    found = await preview_check(catalog.database, swapped, catalog.time(), 1, "tok_1")
    assert found.first == [("component:default/a", state.PASS, state.FAIL)]
    later = parse_check(a_check("on", leaf("open", "greaterThan", 0)))
    found = await preview_check(catalog.database, later, catalog.time(), 1, "tok_1")
    assert found.first == [("component:default/c", state.PASS, state.FAIL)]


@pytest.mark.both_databases
async def test_a_new_check_changes_those_that_it_is_about(catalog: CheckedCatalog) -> None:
    new = parse_check(a_check("new", leaf("spec.type", "equal", "service", "entity")))
    found = await preview_check(catalog.database, new, catalog.time(), 10, "tok_1")
    assert (found.now, found.then) == (StateCounts(), StateCounts(passing=3))
    narrow = parse_check(
        a_check("new", leaf("on", "equal", "pass", "checks"))
        | {"appliesTo": {"metadata.name": ["a", "b"]}}
    )
    found = await preview_check(catalog.database, narrow, catalog.time(), 10, "tok_1")
    assert found.then == StateCounts(passing=1, failing=1)


@pytest.mark.both_databases
async def test_a_preview_can_be_of_some_entities_with_facts_as_they_would_be(
    catalog: CheckedCatalog,
) -> None:
    scope = PreviewScope(["component:default/b"], {"host": {"on": True}})
    same = parse_check(a_check("on", leaf("on", "equal", value=True)))
    found = await preview_check(catalog.database, same, catalog.time(), 10, "tok_1", scope)
    assert (found.now, found.then) == (StateCounts(failing=1), StateCounts(passing=1))
    assert found.first == [("component:default/b", state.FAIL, state.PASS)]
    whole = await preview_check(catalog.database, same, catalog.time(), 10, "tok_1")
    assert (whole.changed, whole.now) == (0, whole.then)
