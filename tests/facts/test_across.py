"""The distribution of a fact equals that of the same values counted one by one."""

import json
import math
import random
import statistics
from collections import Counter
from collections.abc import Callable
from functools import partial
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from factbook.catalog.store.related_entities import CatalogPart
from factbook.facts import across, distribution, store
from factbook.facts.across import (
    NO_WINDOW,
    EntityValue,
    ValueFilter,
    ValueQuery,
    ValueWindow,
    find_ends,
)
from factbook.facts.datasource import parse_source
from factbook.facts.distribution import CountedValue, CountedValues, FactColumn
from factbook.facts.freshness import Latest, Observation, find_reason
from factbook.facts.schema import NEVER_COLLECTED, Fact, FactType, reason_word
from factbook.storage import Transaction
from tests.service import NOON, Service, component
from tests.soak import seeds

TYPES: tuple[FactType, ...] = (
    "integer", "float", "string", "boolean", "datetime", "set", "object"
)  # fmt: skip
SOURCE = parse_source(
    {
        "id": "random",
        "title": "Random",
        "schema": {f"group.{type_}": {"type": type_} for type_ in TYPES},
    }
)
_TEXTS = (
    "",
    "a",
    "a b",
    "ab",
    "é",
    "😀",
    'q"uote',
    "back\\slash",
    "line\nbreak",
    "null",
    "1",
    "%_",
)


def some_value(chance: random.Random, type_: FactType) -> Any:
    made: dict[FactType, Callable[[], Any]] = {
        "integer": lambda: chance.choice((0, -1, 7, 7, 10**15, chance.randrange(100))),
        "float": lambda: chance.choice((0.0, 0.1, -2.5, 1e-7, 1e300, 3, chance.random())),
        "string": lambda: chance.choice(_TEXTS),
        "boolean": lambda: chance.random() < 0.5,
        "datetime": lambda: some_time(chance),
        "set": lambda: chance.sample(_TEXTS, chance.randrange(3)),
        "object": lambda: chance.choice(({}, [], {"a": [1]})),
    }
    return made[type_]()


def some_time(chance: random.Random) -> str:
    year, month, hour = 2020 + chance.randrange(7), chance.randrange(1, 10), chance.randrange(10)
    offset = chance.choice(("Z", "+02:00", "-0330", "z"))
    return f"{year}-0{month}-11T0{hour}:00:00{offset}"


def some_observation(chance: random.Random, entity_id: int) -> Observation:
    """Facts of which some are missing, for a reason of their own, of all, or for none."""
    values = {
        fact.name: some_value(chance, fact.type) for fact in SOURCE.schema if chance.random() < 0.7
    }
    places = ("", "group", *(fact.name for fact in SOURCE.schema))
    texts = ("forbidden: no", "not-found", "made up", "rate-limited: later")
    reasons = {chance.choice(places): chance.choice(texts) for _ in range(chance.randrange(3))}
    passing = frozenset(
        place for place, text in reasons.items()
        if text.startswith("rate-limited") and chance.random() < 0.5
    )  # fmt: skip
    reasons = {place: text for place, text in reasons.items() if place not in values}
    return Observation(entity_id, values, reasons, passing & reasons.keys())


def record(chosen: list[Observation], at: int, transaction: Transaction) -> None:
    store.record_facts(transaction, SOURCE, chosen, at)
    transaction.evaluate_checks()


async def fill(service: Service, chance: random.Random) -> dict[str, Latest | None]:
    """Entities with random facts, collected up to three times; what is stored of each."""
    items = [component(f"c{n}", owner=f"team-{n % 3}") for n in range(25)]
    assert (await service.push("all", *items)).status_code == 200
    database = service.state.database
    ids: dict[int, str] = {}
    ids.update(await database.all("SELECT id, ref FROM entities"))
    for run in range(3):
        chosen = [some_observation(chance, id_) for id_ in ids if chance.random() < 0.6]
        await database.write(partial(record, chosen, NOON + run))
    return {ref: await store.find_latest(database, SOURCE.id, id_) for id_, ref in ids.items()}


def expected(fact: Fact, stored: dict[str, Latest | None]) -> list[EntityValue]:
    """What is known of each entity, by reference."""
    found = []
    for ref, latest in sorted(stored.items()):
        if latest is None or fact.name not in latest.facts:
            reason = find_reason(fact.name, latest.reasons) if latest else None
            found.append(EntityValue(ref, None, reason or NEVER_COLLECTED, None, kept=False))
        else:
            kept = latest.kept.get(fact.name)
            at = latest.written_at if kept is None else kept
            found.append(EntityValue(ref, latest.facts[fact.name], None, at, kept=kept is not None))
    return found


def in_order(fact: Fact, row: EntityValue) -> Any:
    """The place of a value in the order of its type."""
    place = distribution.value_position(fact, row.value)
    if fact.type == "string":
        return json.dumps(row.value, ensure_ascii=False)[1:-1].encode()
    return row.value if place is None else place


async def every_page(
    service: Service, asked: ValueQuery, limit: int, window: ValueWindow = NO_WINDOW
) -> list[EntityValue]:
    found: list[EntityValue] = []
    after = None
    for _ in range(100):
        page = await across.page_values(service.state.database, asked, after, limit, window)
        assert len(page.rows) <= limit
        found += page.rows
        if page.more is None:
            return found
        after = page.more
    raise AssertionError("the pages have no end")


@pytest.mark.parametrize("seed", seeds(1, soak=3))
async def test_a_distribution_equals_one_that_is_counted_one_by_one(
    service: Service, seed: int
) -> None:
    chance = random.Random(seed)
    stored = await fill(service, chance)
    database, part = service.state.database, CatalogPart(kind="component")
    for fact in SOURCE.schema:
        rows = expected(fact, stored)
        known = [row for row in rows if row.value is not None]
        column = FactColumn(SOURCE, fact)
        counted = await distribution.count_values(database, column, part, "owner")
        found = distribution.distribute_values(fact, counted, top=100, now=NOON)
        assert (found.entities, found.known) == (len(rows), len(known))
        reasons = Counter(reason_word(row.reason) for row in rows if row.reason is not None)
        assert Counter(found.reasons) == reasons
        assert found.kept == sum(row.kept for row in known)
        times = [row.at for row in known if row.at is not None]
        assert (found.oldest, found.newest) == (min(times), max(times))
        assert sum(group.entities for group in found.groups) == len(rows)
        assert sum(group.known for group in found.groups) == len(known)
        assert sum(one.number for one in found.histogram) in {0, len(known)}
        if fact.type in {"string", "set"}:
            texts = [row.value if fact.type == "set" else [row.value] for row in known]
            assert dict(found.top) == Counter(text for each in texts for text in each)


@pytest.mark.slow
@pytest.mark.parametrize("seed", seeds(1, soak=3))
async def test_pages_equal_entities_that_are_ordered_and_chosen_one_by_one(
    service: Service, seed: int
) -> None:
    chance = random.Random(100 + seed)
    stored = await fill(service, chance)
    for fact in SOURCE.schema:
        rows = expected(fact, stored)
        known = [row for row in rows if row.value is not None]
        asked = ValueQuery(FactColumn(SOURCE, fact), CatalogPart(kind="component"))
        assert await every_page(service, asked, 7) == rows
        everything = across.list_all_values(service.state.database, asked)
        assert [row async for page in everything for row in page] == rows
        for wanted in _filters(fact, known, chance):
            chosen = [row for row in rows if row.fits(fact, wanted)]
            narrowed = asked._replace(wanted=wanted)
            assert await every_page(service, narrowed, 3) == chosen, (fact, wanted)
        if asked.column.is_ordered:
            rest = [row for row in rows if row.value is None]
            up = sorted(known, key=lambda row: (in_order(fact, row), row.ref))
            by_value = asked._replace(sort="value")
            assert await every_page(service, by_value, 4) == up + rest
            for size in (0, 1, 9, 99):
                window = await across.value_window(service.state.database, by_value, size)
                assert len(window.rows) == min(size, len(known))
                assert await every_page(service, by_value, 4, window) == up + rest
            both = await find_ends(service.state.database, asked, 4)
            has_ends = fact.type != "string"
            assert both.lowest == (up[:4] if has_ends else [])
            down = sorted(known, key=lambda row: in_order(fact, row), reverse=True)
            assert [
                row.value for row in await every_page(service, asked._replace(sort="-value"), 4)
            ] == [row.value for row in down + rest] or fact.type == "datetime"
            highest = [in_order(fact, row) for row in both.highest]
            assert highest == ([in_order(fact, row) for row in down[:4]] if has_ends else [])


def _filters(fact: Fact, known: list[EntityValue], chance: random.Random) -> list[ValueFilter]:
    found = [ValueFilter(known=True), ValueFilter(known=False), ValueFilter(reason="forbidden")]
    value = chance.choice(known).value
    place = distribution.value_position(fact, value)
    if place is not None:
        found += [ValueFilter(least=place), ValueFilter(below=place)]
    if fact.type in {"string", "boolean", "integer", "float"}:
        found.append(ValueFilter(value=value))
    if fact.type == "set":
        found.append(ValueFilter(value="a"))
    return found


numbers = st.floats(allow_nan=False, allow_infinity=False) | st.integers(-50, 50).map(float)


@pytest.mark.slow
@given(st.lists(numbers, min_size=1, max_size=40), st.booleans())
def test_bins_are_equal_and_have_every_value_once(values: list[float], whole: bool) -> None:
    if whole:
        values = [float(math.floor(value)) for value in values]
    weighted = sorted(Counter(values).items())
    found = distribution.bin_numbers(weighted, whole=whole)
    assert 1 <= len(found) <= 16
    for one in found:
        assert one.start is not None
        end = math.inf if one.end is None else one.end
        assert one.number == sum(one.start <= value < end for value in values)
    assert sum(one.number for one in found) == len(values)
    if whole:
        assert all(float(one.start or 0).is_integer() for one in found)


@given(st.lists(st.floats(-1e9, 1e9), min_size=1, max_size=40))
def test_quartiles_are_those_of_the_values_in_a_row(values: list[float]) -> None:
    weighted = sorted(Counter(values).items())
    assert distribution.find_quantile(weighted, 0) == min(values)
    assert distribution.find_quantile(weighted, 1) == max(values)
    assert distribution.find_quantile(weighted, 0.5) == pytest.approx(statistics.median(values))
    if len(values) > 1:
        quarters = statistics.quantiles(values, n=4, method="inclusive")
        found = [distribution.find_quantile(weighted, n / 4) for n in (1, 2, 3)]
        assert found == pytest.approx(quarters, abs=1e-3)


def test_the_mean_of_the_largest_numbers_is_a_number() -> None:
    rows = [CountedValue(None, 1.7e308, None, 9, 0, NOON, NOON)]
    found = distribution.distribute_values(
        Fact("x", "float"), CountedValues(None, rows, is_whole=True), top=1, now=NOON
    )
    assert found.spread is not None
    assert found.spread.mean == pytest.approx(1.7e308)
