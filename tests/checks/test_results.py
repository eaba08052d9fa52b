"""Results as interfaces read them: of an entity, of a check, counts, and changes."""

from functools import partial

import pytest

from factbook.catalog.store import stored_entities
from factbook.checks import state
from factbook.checks.definitions.definition_versions import check_store
from factbook.checks.results import evaluator, result_queries, state_store
from factbook.checks.results.result_queries import EntityResults, ResultFilter
from factbook.checks.results.state_store import Change, StateCounts
from factbook.clock import DAY, HOUR
from factbook.storage import Database
from tests.checks.catalog import CheckedCatalog, a_check, leaf
from tests.service import Time

ON = a_check("on", leaf("on", "equal", value=True), messages={"fail": "Is off"})
FEW = a_check("few", leaf("open", "lessThan", 3))


@pytest.fixture
def time() -> Time:
    return Time()


@pytest.fixture
async def catalog(database: Database, time: Time) -> CheckedCatalog:
    """Three components, of which facts of two are known, and two checks."""
    catalog = CheckedCatalog(database, time)
    await catalog.push(a="red", b="blue", c="")
    await catalog.record("a", on=True, open=5)
    await catalog.record("b", {"open": "forbidden"}, on=False)
    await catalog.publish(ON, FEW)
    return catalog


async def of(catalog: CheckedCatalog, name: str) -> EntityResults:
    found = await result_queries.read_entity_results(
        catalog.database, f"component:default/{name}", catalog.time()
    )
    assert found is not None
    return found


async def words(catalog: CheckedCatalog, name: str) -> dict[str, str]:
    """The words of the results of a component."""
    return {one.check.id: state.name_state(one.state) for one in (await of(catalog, name)).results}


async def history(
    catalog: CheckedCatalog, name: str, check_id: str = "on", **place: tuple[int, int]
) -> list[Change]:
    """The changes of a result, newest first."""
    entity_id = await stored_entities.read_entity_id(catalog.database, f"component:default/{name}")
    assert entity_id is not None
    return await state_store.list_entity_changes(catalog.database, entity_id, check_id, 10, **place)


async def test_an_entity_has_results_with_what_they_rest_on(catalog: CheckedCatalog) -> None:
    found = await of(catalog, "b")
    assert (found.ref, found.owner) == ("component:default/b", "group:default/blue")
    [few, on] = found.results
    assert (state.name_state(few.state), state.name_state(on.state)) == ("unknown", "fail")
    assert few.explanation is not None
    assert on.explanation is not None
    assert few.explanation.reasons == ["forbidden"]
    assert on.explanation.message == "Is off"
    assert [(one.value, one.wanted) for one in on.explanation.because] == [(False, True)]
    assert on.since == catalog.time()
    assert await words(catalog, "c") == {"few": "unknown", "on": "unknown"}
    assert (
        await result_queries.read_entity_results(catalog.database, "component:default/no", 0)
        is None
    )


async def test_a_fact_is_evaluated_with_its_commit_and_tells_its_change(
    catalog: CheckedCatalog, time: Time
) -> None:
    time.advance(HOUR)
    await catalog.record("b", on=True)
    assert (await words(catalog, "b"))["on"] == "pass"
    [on] = [one for one in (await of(catalog, "b")).results if one.check.id == "on"]
    assert on.since == time()
    [change] = await history(catalog, "b")
    assert (change.check_id, change.before, change.after) == ("on", state.FAIL, state.PASS)
    assert change.why == {"sources": ["host"]}
    assert await history(catalog, "b", before=(change.at, change.id)) == []


async def test_a_result_that_flips_often_is_marked(catalog: CheckedCatalog, time: Time) -> None:
    for flip in range(3):
        time.advance(HOUR)
        await catalog.record("a", on=bool(flip % 2), open=5)
    assert [one.is_flapping for one in (await of(catalog, "a")).results] == [False, True]
    time.advance(2 * DAY)
    assert [one.is_flapping for one in (await of(catalog, "a")).results] == [False, False]


@pytest.mark.both_databases
async def test_entities_of_a_check_come_by_state_owner_and_kind_in_pages(
    catalog: CheckedCatalog,
) -> None:
    database = catalog.database

    async def refs(wanted: ResultFilter, limit: int = 10, after: str = "") -> list[str]:
        rows = await result_queries.list_check_rows(database, "on", wanted, limit, after)
        return [row.ref.removeprefix("component:default/") for row in rows]

    assert await refs(ResultFilter()) == ["a", "b", "c"]
    assert await refs(ResultFilter(), 2) == ["a", "b"]
    assert await refs(ResultFilter(), 2, "component:default/b") == ["c"]
    assert await refs(ResultFilter(states=["fail"])) == ["b"]
    assert await refs(ResultFilter(states=["pass", "unknown"])) == ["a", "c"]
    assert await refs(ResultFilter(states=["exempt", "not-applicable"])) == []
    assert await refs(ResultFilter(owners=["group:default/red", ""])) == ["a", "c"]
    assert await refs(ResultFilter(kind="Component", namespace="default")) == ["a", "b", "c"]
    assert await refs(ResultFilter(kind="api")) == []
    assert await result_queries.list_check_rows(database, "nope", ResultFilter(), 10) == []


@pytest.mark.both_databases
@pytest.mark.parametrize("number", [3, 100_000], ids=["few", "many"])
async def test_entities_that_are_counted_come_in_the_same_pages(
    catalog: CheckedCatalog, number: int
) -> None:
    async def refs(wanted: ResultFilter, limit: int = 10, after: str = "") -> list[str]:
        rows = await result_queries.count_check_rows(
            catalog.database, "on", wanted, limit, after, number
        )
        return [row.ref.removeprefix("component:default/") for row in rows]

    assert await refs(ResultFilter()) == ["a", "b", "c"]
    assert await refs(ResultFilter(), 2) == ["a", "b"]
    assert await refs(ResultFilter(), 2, "component:default/b") == ["c"]
    assert await refs(ResultFilter(states=["fail"])) == ["b"]
    assert await refs(ResultFilter(owners=["group:default/red", ""])) == ["a", "c"]


@pytest.mark.both_databases
async def test_counts_are_by_state_and_owner(catalog: CheckedCatalog) -> None:
    database = catalog.database
    assert await state_store.count_totals(database) == {
        "few": StateCounts(failing=1, undecided=2),
        "on": StateCounts(passing=1, failing=1, undecided=1),
    }
    only = await state_store.count_totals(database, ["on", "none"])
    assert list(only) == ["on"]
    found = await state_store.count_by_owner(database, "on")
    assert {owner: one for owner, one in found.items() if any(one)} == {
        "": StateCounts(undecided=1),
        "group:default/blue": StateCounts(failing=1),
        "group:default/red": StateCounts(passing=1),
    }
    assert await state_store.count_of_owners(database, ["group:default/red"]) == {
        "few": StateCounts(failing=1),
        "on": StateCounts(passing=1),
    }


@pytest.mark.both_databases
async def test_readers_see_the_version_before_until_every_entity_is_evaluated(
    catalog: CheckedCatalog, time: Time
) -> None:
    await catalog.publish(a_check("on", leaf("on", "equal", value=False)), settled=False)
    time.advance(HOUR)
    await catalog.record("c", on=True)
    assert await words(catalog, "c") == {"few": "unknown", "on": "pass"}
    assert (await words(catalog, "a"))["on"] == "pass"
    while await catalog.database.all("SELECT 1 FROM checks WHERE pending_slot IS NOT NULL"):
        assert (await words(catalog, "a"))["on"] == "pass"
        assert await evaluator.evaluate_pending(catalog.database, time)
    assert [(await words(catalog, name))["on"] for name in "abc"] == ["fail", "pass", "fail"]
    assert {name: (await history(catalog, name))[0].why for name in "abc"} == {
        name: {"version": "1.1.0"} for name in "abc"
    }


@pytest.mark.both_databases
async def test_a_check_that_was_deleted_leaves_nothing(catalog: CheckedCatalog, time: Time) -> None:
    database = catalog.database
    for id_ in ("on", "few"):
        await database.write(partial(check_store.delete, id_=id_))
    assert await words(catalog, "a") == {}
    await evaluator.finish_publications(database, time)
    for read in (
        "SELECT 1 FROM check_states",
        "SELECT 1 FROM check_counts",
        "SELECT 1 FROM check_changes",
        "SELECT 1 FROM retired_slots",
    ):
        assert await database.one(read) is None


@pytest.mark.both_databases
async def test_what_time_changes_is_changed_when_it_is_due(
    catalog: CheckedCatalog, time: Time
) -> None:
    await catalog.publish(a_check("new", leaf("open", "freshWithin", {"hours": 2})))
    assert (await words(catalog, "a"))["new"] == "pass"
    time.advance(2 * HOUR + 1)
    assert (await words(catalog, "a"))["new"] == "pass"
    assert await evaluator.evaluate_due(catalog.database, time) == 1
    assert (await words(catalog, "a"))["new"] == "fail"
    assert await evaluator.evaluate_due(catalog.database, time) == 0
    # Facts that were merely confirmed are new again.
    await catalog.record("a", on=True, open=5)
    assert (await words(catalog, "a"))["new"] == "pass"
