"""Orders of batches: whatever ids there are, each is reached once."""

from typing import cast

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from factbook.checks.definitions import publications
from factbook.checks.definitions.publications import (
    FIRST_INTERLEAVED_PLACE,
    FIRST_PLACE,
    LAST_PLACE,
    IdReads,
    Portion,
)
from factbook.storage import Database, Transaction
from tests.checks.catalog import CheckedCatalog, a_check, leaf
from tests.service import Time

NOBODY = cast("Transaction", None)
BLOCK = 20_000
IDS = st.sets(st.integers(1, 3 * BLOCK) | st.integers(10**9, 10**9 + 50), max_size=300).map(sorted)
DENSE = st.integers(1, 2 * BLOCK).map(lambda count: list(range(1, count + 1)))
SIZES = st.integers(100, 5_000)


def reads_of(ids: list[int]) -> IdReads:
    """Reads of these ids alone."""
    known = frozenset(ids)
    return IdReads(
        lambda _, after, limit: [one for one in ids if one > after][:limit],
        lambda _, wanted, limit: [one for one in wanted if one in known][:limit],
    )


def portions(ids: list[int], place: int, size: int, end: int = LAST_PLACE) -> list[Portion]:
    """All portions from one place to another."""
    found = list[Portion]()
    while place != end:
        found.append(publications.take_portion(NOBODY, reads_of(ids), place, size, end))
        assert found[-1].place > place
        place = found[-1].place
    return found


@settings(max_examples=40, deadline=None)
@given(IDS | DENSE, SIZES, st.sampled_from((FIRST_PLACE, FIRST_INTERLEAVED_PLACE)))
def test_every_id_is_reached_once(ids: list[int], size: int, first: int) -> None:
    found = portions(ids, first, size)

    assert sorted(id_ for one in found for id_ in one.ids) == ids
    assert all(len(one.ids) <= size for one in found)


@pytest.mark.slow
@settings(max_examples=40, deadline=None)
@given(IDS | DENSE, SIZES, SIZES, st.data())
def test_who_begins_later_reaches_what_another_has_and_goes_on_with_it(
    ids: list[int], size: int, other: int, data: st.DataObject
) -> None:
    first = data.draw(st.sampled_from((FIRST_PLACE, FIRST_INTERLEAVED_PLACE)))
    whole = portions(ids, first, size)
    done = data.draw(st.integers(1, len(whole)))
    meeting = whole[done - 1].place

    later = portions(ids, first, other, meeting)

    reached = [sorted(id_ for one in some for id_ in one.ids) for some in (whole[:done], later)]
    assert reached[0] == reached[1]


@pytest.mark.slow
@settings(max_examples=40, deadline=None)
@given(IDS | DENSE, SIZES)
def test_a_portion_has_every_fourth_id_of_a_block(ids: list[int], size: int) -> None:
    for one in portions(ids, FIRST_INTERLEAVED_PLACE, size):
        assert len({(id_ // BLOCK, id_ % 4) for id_ in one.ids}) <= 1


def test_an_id_tells_how_far_a_place_is() -> None:
    assert publications.find_last_id(1_000) == 1_000
    assert publications.find_last_id(LAST_PLACE) == LAST_PLACE
    ids = list(range(1, 2 * BLOCK))
    for one in portions(ids, FIRST_INTERLEAVED_PLACE, 5_000)[:-1]:
        assert 0 <= publications.find_last_id(one.place) <= 2 * BLOCK


@pytest.mark.both_databases
async def test_batches_are_interleaved_on_postgresql_once_entities_have_states(
    database: Database,
) -> None:
    catalog = CheckedCatalog(database, Time())
    await catalog.push(**dict.fromkeys("abc", "red"))
    assert await database.write(publications.find_first_place) == FIRST_PLACE
    await catalog.publish(a_check("first", leaf("on", "equal", value=True)))
    expected = FIRST_PLACE if database.dialect == "sqlite" else FIRST_INTERLEAVED_PLACE
    assert await database.write(publications.find_first_place) == expected
