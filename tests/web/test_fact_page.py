"""The page of one fact about one entity: how it was over time."""

import re
from dataclasses import replace

import pytest

from factbook.catalog.store import stored_entities
from factbook.clock import DAY, HOUR, MINUTE
from factbook.facts.schema import Fact
from factbook.integrations import SOURCES as CATALOGS
from factbook.web import entity_facts
from tests.conftest import StartService
from tests.service import Service, component
from tests.web.knowing import DELIVERIES, SOURCES, write
from tests.web.markup import HOSTILE, hrefs, is_harmless
from tests.web.visiting import Browser, signed_in, words

WEB = "/catalog/component/default/web"
REF = "component:default/web"
FACTS = f"{WEB}/facts/deliveries"


@pytest.fixture
async def knowing(start: StartService) -> Service:
    """A service with a component, the catalog's own sources and two others."""
    service = await start(sources=[*CATALOGS, *SOURCES])
    await service.push("all", component("web"))
    return service


def told(page: str) -> str:
    """The text of a page without the times that stand beside how long ago they are."""
    return re.sub(r" \d+ \w{3} \d{4} \d\d:\d\d UTC", "", words(page))


async def visitor_of(service: Service) -> Browser:
    """A browser of somebody who signs in now."""
    return await signed_in(service, f"p{service.time() % 10**9}")


async def test_a_number_is_drawn_with_its_figures(knowing: Service) -> None:
    for number in (2.0, 4.0, 9.0):
        knowing.time.advance(HOUR)
        await write(knowing, REF, {"leadTime": number})
    knowing.time.advance(MINUTE)
    page = await (await visitor_of(knowing)).text(f"{FACTS}/leadTime")
    text = told(page)
    assert "Lead time From commit to production. leadTime · float · hours · from Deliveries" in text
    assert "9 hours collected 1 minute ago" in text
    assert "Lowest 2 hours Average 5 hours Highest 9 hours" in text
    assert "Latest 9 hours, lowest 2 hours, highest 9 hours." in text
    assert page.count('class="chart chart-line') == 2
    assert FACTS in hrefs(page)


async def test_a_span_leaves_out_what_was_before(knowing: Service) -> None:
    await write(knowing, REF, {"deployments": 100})
    knowing.time.advance(3 * DAY)
    await write(knowing, REF, {"deployments": 1})
    knowing.time.advance(HOUR)
    visitor = await visitor_of(knowing)
    assert "Highest 1 " in told(await visitor.text(f"{FACTS}/deployments?span=day"))
    for span in ("week", "month", "quarter", "year", "all"):
        assert "Highest 100 " in told(await visitor.text(f"{FACTS}/deployments?span={span}"))
    knowing.time.advance(2 * DAY)
    visitor = await visitor_of(knowing)
    assert "Nothing was written in this period" in await visitor.text(
        f"{FACTS}/deployments?span=day"
    )


async def test_why_it_was_unknown_stands_beside_the_time(knowing: Service) -> None:
    await write(knowing, REF, {"deployments": 5})
    knowing.time.advance(HOUR)
    await write(knowing, REF, {}, reasons={"deployments": "forbidden: no access"})
    knowing.time.advance(HOUR)
    page = await (await visitor_of(knowing)).text(f"{FACTS}/deployments")
    text = told(page)
    assert "Now: unknown not allowed The credential may not read this, or is not accepted." in text
    assert "It said: no access." in text
    assert "1 hour ago unknown not allowed no access 2.1.0" in text
    assert "2 hours ago 5 2.1.0" in text
    assert "chart-gap" in page


async def test_a_kept_value_is_marked_and_its_runs_say_nothing(knowing: Service) -> None:
    await write(knowing, REF, {"deployments": 5, "leadTime": 1.0})
    knowing.time.advance(HOUR)
    reasons = {"deployments": "rate-limited: 429"}
    await write(knowing, REF, {"leadTime": 2.0}, reasons=reasons, passing=frozenset(reasons))
    text = told(await (await visitor_of(knowing)).text(f"{FACTS}/deployments"))
    assert "stale, from 1 hour ago : the runs since then returned no value" in text
    assert "now as before: the run returned no value 2.1.0" in text


async def test_what_is_no_number_shows_its_changes(knowing: Service) -> None:
    for hour, value in enumerate((True, True, False, False, True)):
        knowing.time.advance(HOUR)
        reasons = {"regions": "not-found"} if hour == 3 else {}
        regions = {} if hour == 3 else {"regions": ["eu"] if hour < 3 else ["eu", "us"]}
        await write(knowing, REF, {"onCall": value, **regions}, reasons=reasons)
    visitor = await visitor_of(knowing)
    page = await visitor.text(f"{FACTS}/onCall")
    text = told(page)
    assert "yes now now no 2 hours ago now yes 4 hours ago 2 hours ago" in text
    assert "chart-line" not in page
    text = told(await visitor.text(f"{FACTS}/regions"))
    assert "eu, us now now unknown 1 hour ago now eu 4 hours ago 1 hour ago" in text


async def test_what_was_written_is_paged_each_row_once(knowing: Service) -> None:
    for number in range(120):
        knowing.time.advance(MINUTE)
        await write(knowing, REF, {"deployments": number})
    visitor = await visitor_of(knowing)
    found, path = [], f"{FACTS}/deployments?span=day"
    while path:
        page = await visitor.text(path)
        table = page.partition("What was written")[2]
        found += [int(number) for number in re.findall(r'fact-number">(\d+)<', table)]
        link = re.search(r'href="([^"]+)" rel="next"', page)
        path = link[1].replace("&amp;", "&") if link else ""
    assert found == list(range(119, -1, -1))
    assert f"{FACTS}/deployments?span=day" in hrefs(page)


@pytest.mark.slow
async def test_of_much_history_some_is_drawn_and_it_says_so(knowing: Service) -> None:
    entity_id = await stored_entities.read_entity_id(knowing.state.database, REF)
    now = knowing.time()
    rows = [
        (
            "deliveries",
            entity_id,
            now - number * MINUTE,
            f'{{"deployments":{number}}}',
            "{}",
            "1.0.0",
        )
        for number in range(20_000)
    ]
    columns = ("source_id", "entity_id", "written_at", "facts", "reasons", "version")
    await knowing.state.database.write(
        lambda transaction: transaction.insert("facts_history", columns, sorted(rows))
    )
    page = await (await visitor_of(knowing)).text(f"{FACTS}/deployments?span=all")
    assert "too many values to draw. The chart" in page
    assert "the first value in each 40 minutes" in page
    assert "Highest 19,999" in told(page)
    assert len(page) < 150_000


async def test_the_catalogs_own_facts_have_pages(knowing: Service) -> None:
    visitor = await visitor_of(knowing)
    page = await visitor.text(f"{WEB}/facts/entity-metadata/hasOwner")
    assert "There is" not in told(page).partition("Has owner")[0]
    assert "The entity names an owner (spec.owner)." in page
    assert "Now: yes" in told(page)
    assert WEB in hrefs(page)


async def test_a_fact_without_history_says_so(knowing: Service) -> None:
    text = told(await (await visitor_of(knowing)).text(f"{FACTS}/deployments"))
    assert "Now: unknown not collected yet" in text
    assert "Nothing was written in this period" in text
    assert "Nothing yet" in text


async def test_a_name_may_have_a_slash(knowing: Service) -> None:
    await write(knowing, REF, {"slashed/name": 7})
    visitor = await visitor_of(knowing)
    assert f"{FACTS}/slashed%2Fname" in hrefs(await visitor.text(WEB))
    assert "7 collected now" in told(await visitor.text(f"{FACTS}/slashed%2Fname"))


@pytest.mark.both_databases
async def test_the_largest_number_of_an_address_is_after_or_before_everything(
    knowing: Service, subtests: pytest.Subtests
) -> None:
    visitor = await visitor_of(knowing)
    for path in [
        f"{WEB}/facts/deliveries/deployments?before={2**53}",
        f"{WEB}/relations?page=10000",
        f"/data-sources/deliveries/failures?after={2**53}",
        "/data-sources?page=10000",
    ]:
        with subtests.test(path=path):
            assert is_harmless(await visitor.text(path))
            beyond = path[: path.rindex("=") + 1] + str(2**53 + 1)
            assert is_harmless(await visitor.text(beyond, 400))


async def test_what_there_is_not_is_refused(knowing: Service, subtests: pytest.Subtests) -> None:
    visitor = await visitor_of(knowing)
    for path, status in [
        ("deliveries/nothing", 404),
        ("nowhere/deployments", 404),
        ("deliveries/deployments?span=decade", 400),
        ("deliveries/deployments?before=x", 400),
        ("deliveries/deployments?before=-1", 400),
        ("deliveries/deployments?before=" + "9" * 400, 400),
        ("deliveries/%00", 404),
        ("%00/deployments", 404),
    ]:
        with subtests.test(path=path):
            assert is_harmless(await visitor.text(f"{WEB}/facts/{path}", status))


async def test_extreme_values_are_shown(start: StartService) -> None:
    schema = (Fact("figure", "float"), Fact("count", "integer"), Fact("text", "string"))
    source = replace(DELIVERIES, schema=schema)
    service = await start(sources=[*CATALOGS, source])
    await service.push("all", component("web"))
    for figure, count in ((1.7e308, 2**62), (-1.7e308, -(2**62)), (5e-324, 0), (0.1, 1)):
        service.time.advance(MINUTE)
        values = {"figure": figure, "count": count, "text": HOSTILE}
        await write(service, REF, values, source=source)
    visitor = await visitor_of(service)
    for name in ("figure", "count", "text"):
        assert is_harmless(await visitor.text(f"{FACTS}/{name}"))
    assert "Lowest -1.7e308" in told(await visitor.text(f"{FACTS}/figure"))
    assert "4,611,686,018,427,387,904" in await visitor.text(f"{FACTS}/count")


async def test_what_was_found_again_is_drawn_until_then_and_counts_each_time(
    knowing: Service,
) -> None:
    for number in (2.0, 2.0, 2.0, 10.0):
        knowing.time.advance(HOUR)
        await write(knowing, REF, {"leadTime": number})
    knowing.time.advance(MINUTE)
    text = told(await (await visitor_of(knowing)).text(f"{FACTS}/leadTime"))
    assert "Lowest 2 hours Average 4 hours Highest 10 hours" in text
    assert "3 hours ago the same until 1 hour ago , 3 times 2 hours" in text
    knowing.time.advance(40 * MINUTE)
    await write(knowing, REF, {"leadTime": 10.0})
    knowing.time.advance(DAY - 10 * MINUTE)
    text = told(await (await visitor_of(knowing)).text(f"{FACTS}/leadTime?span=day"))
    assert "Highest 10 hours" in text  # written before the day began, confirmed since


async def test_equal_runs_are_one_row_and_their_times_are_absolute_too(knowing: Service) -> None:
    for number, deployments in enumerate((1, 2, 2, 2, 1)):
        await write(knowing, REF, {"deployments": deployments, "leadTime": float(number)})
        knowing.time.advance(HOUR)
    page = await (await visitor_of(knowing)).text(f"{FACTS}/deployments")
    table = words(page.partition("What was written")[2])
    assert "1 hour ago 21 Nov 2026 16:00 UTC 1 2.1.0" in table
    assert (
        "4 hours ago 21 Nov 2026 13:00 UTC the same until 2 hours ago 21 Nov 2026 15:00 UTC , "
        "3 times 2 2.1.0"
    ) in table
    assert table.count("2.1.0") == 3


async def test_more_equal_runs_than_a_page_reads_go_on_on_the_next(
    knowing: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(entity_facts, "_READ", 60)
    for number in range(130):
        knowing.time.advance(MINUTE)
        await write(knowing, REF, {"deployments": 7, "leadTime": float(number)})
    visitor, path, found = await visitor_of(knowing), f"{FACTS}/deployments", list[int]()
    while path:
        page = await visitor.text(path)
        found += [int(number) for number in re.findall(r", (\d+) times", words(page))]
        link = re.search(r'href="([^"]+)" rel="next"', page)
        path = link[1].replace("&amp;", "&") if link else ""
    assert found == [60, 60, 10]


async def test_a_boolean_is_a_band_that_tells_its_values(knowing: Service) -> None:
    for value in (True, False, None, True):
        facts = {} if value is None else {"onCall": value}
        reasons = {"onCall": "not-found"} if value is None else {}
        await write(knowing, REF, facts, reasons=reasons)
        knowing.time.advance(HOUR)
    page = await (await visitor_of(knowing)).text(f"{FACTS}/onCall?span=day")
    assert is_harmless(page)
    assert page.count('class="band-yes"') == 2 * 2
    assert page.count('class="band-no"') == page.count('class="band-unknown"') == 2
    assert "no from 21 Nov 2026 13:00 UTC to 21 Nov 2026 14:00 UTC" in page


async def test_a_number_stands_beside_the_medians_of_team_and_catalog(knowing: Service) -> None:
    names = ("web", "api", "old", "new", "far")
    await knowing.push("all", *(component(name) for name in names[:4]),
                       component("far", owner="team-b"))  # fmt: skip
    for name, value in zip(names, (1.0, 2.0, 3.0, None, 10.0), strict=True):
        facts = {} if value is None else {"leadTime": value}
        await write(knowing, f"component:default/{name}", facts)
    page = await (await visitor_of(knowing)).text(f"{FACTS}/leadTime")
    text = words(page)
    assert "Team median 2 hours of 3 Catalog median 2.5 hours of 4" in text
    across = "/data-sources/deliveries/facts/leadTime"
    assert {across, f"{across}?owner=group%3Adefault%2Fteam-a"} <= set(hrefs(page))
    knowing.time.advance(MINUTE)
    assert "median" not in words(await (await visitor_of(knowing)).text(f"{FACTS}/onCall"))
