"""The page of one fact across the catalog."""

import csv
import io
import re
from html import unescape
from urllib.parse import urlsplit

import pytest

from factbook.clock import DAY
from factbook.facts.across import KeptAnswers
from factbook.integrations import SOURCES as CATALOGS
from tests.conftest import StartService
from tests.service import Service, component, resource
from tests.web.knowing import SOURCES, write
from tests.web.markup import HOSTILE, hrefs, is_harmless
from tests.web.visiting import Browser, signed_in, words

FACTS = "/data-sources/deliveries/facts"
NAMES = "abcde"


@pytest.fixture
async def knowing(start: StartService) -> Service:
    """A service with five components of two teams, and sources about them."""
    service = await start(sources=[*CATALOGS, *SOURCES])
    items = [component(name, owner="payments" if name in "ab" else "search") for name in NAMES]
    await service.push("all", *items, resource("db"))
    return service


@pytest.fixture
async def visitor(knowing: Service) -> Browser:
    return await signed_in(knowing)


async def fill(service: Service, fact: str, *values: object) -> None:
    """Write a value of each of the components, in their order."""
    for name, value in zip(NAMES, values, strict=False):
        await write(service, f"component:default/{name}", {fact: value})


async def test_a_number_is_drawn_and_each_column_leads_to_its_entities(
    knowing: Service, visitor: Browser
) -> None:
    await fill(knowing, "leadTime", 1.0, 2.0, 2.5, 40.0)
    page = await visitor.text(f"{FACTS}/leadTime")
    text = words(page)
    assert "4 of 5 entities known" in text
    assert "Lowest 1 hour" in text or "Lowest 1 hours" in text
    assert "never-collected 1" in text
    assert page.count('class="chart chart-line') == 2
    columns = re.findall(r'<a href="([^"]+)" aria-label="([^"]+): (\d+) entit', page)
    assert sum(int(count) for _, _, count in columns) == 2 * 4  # for wide and narrow places
    for path, _, count in columns:
        shown = await visitor.text(unescape(path))
        assert f"{count} entit" in words(shown).partition("Save as CSV")[2]


async def test_figures_of_a_large_catalog_say_when_they_were_counted(
    knowing: Service, visitor: Browser
) -> None:
    knowing.state.database.remembered.of(KeptAnswers).large = 1
    await fill(knowing, "leadTime", 1.0)
    assert "known, as of now" in words(await visitor.text(f"{FACTS}/leadTime"))
    await fill(knowing, "leadTime", 1.0, 2.0)
    knowing.time.advance(30_000)
    text = words(await visitor.text(f"{FACTS}/leadTime?sort=value"))
    assert "1 of 5 entities known" in text
    assert re.search(r"known, as of 30 (s|seconds)", text), text
    knowing.time.advance(60_000)
    assert "2 of 5 entities known" in words(await visitor.text(f"{FACTS}/leadTime"))


async def test_booleans_texts_and_sets_are_bars_with_links(
    knowing: Service, visitor: Browser
) -> None:
    await fill(knowing, "onCall", True, True, False)
    page = await visitor.text(f"{FACTS}/onCall")
    assert "yes 2 no 1" in words(page)
    no = next(path for path in hrefs(page) if "value=false" in path)
    listed = words(await visitor.text(no)).partition("Save as CSV")[2]
    assert "component:c" in listed
    assert "component:a" not in listed
    await fill(knowing, "regions", ["eu", "us"], ["eu"])
    assert "eu 2 us 1" in words(await visitor.text(f"{FACTS}/regions"))
    await fill(knowing, "pipeline", "jenkins")
    assert "jenkins 1" in words(await visitor.text(f"{FACTS}/pipeline"))


async def test_what_is_unknown_leads_to_its_entities_and_is_no_zero(
    knowing: Service, visitor: Browser
) -> None:
    await write(knowing, "component:default/a", {}, reasons={"": "forbidden: no token"})
    page = await visitor.text(f"{FACTS}/deployments")
    assert "No values yet" in words(page)
    assert "forbidden 1" in words(page)
    path = next(path for path in hrefs(page) if "reason=forbidden" in path)
    listed = words(await visitor.text(path)).partition("Save as CSV")[2]
    assert "component:a" in listed
    assert "component:b" not in listed


async def test_kept_values_are_marked_old(knowing: Service, visitor: Browser) -> None:
    await fill(knowing, "deployments", 3)
    knowing.time.advance(DAY // 24)
    reasons = {"deployments": "rate-limited: later"}
    await write(
        knowing,
        "component:default/a",
        {"onCall": True},
        reasons=reasons,
        passing=frozenset(reasons),
    )
    visitor = await signed_in(knowing, "kim")
    text = words(await visitor.text(f"{FACTS}/deployments"))
    assert "1 value is stale: the last run did not renew" in text
    assert "1 hour ago : Deployments of a over time stale" in text


async def test_the_table_is_sorted_and_paged(knowing: Service, visitor: Browser) -> None:
    items = [component(f"n{number:03}") for number in range(60)]
    await knowing.push("many", *items)
    await fill(knowing, "deployments", 5, 1, 9)
    page = await visitor.text(f"{FACTS}/deployments", sort="-value")
    assert re.findall(r">component:(\w+)</a>", page)[:4] == ["c", "a", "b", "d"]
    assert 'aria-sort="descending"' in page
    assert "50 entities" in words(page)
    [after] = [path for path in hrefs(page) if "cursor=" in path]
    assert "15 entities" in words(await visitor.text(after))


async def test_groups_lead_to_their_part(knowing: Service, visitor: Browser) -> None:
    await fill(knowing, "onCall", True, False)
    page = await visitor.text(f"{FACTS}/onCall")
    assert "payments 2 of 2 50%" in words(page)
    assert "search 0 of 3 —" in words(page)
    path = next(path for path in hrefs(page) if "owner=group" in path and "payments" in path)
    assert "2 of 2 entities known" in words(await visitor.text(path))
    by_kind = await visitor.text(f"{FACTS}/onCall", by="kind")
    assert "component 2 of 5" in words(by_kind)


async def test_the_page_is_linked_from_source_entity_and_overview(
    knowing: Service, visitor: Browser
) -> None:
    assert f"{FACTS}/deployments" in hrefs(await visitor.text("/data-sources/deliveries"))
    entity = "/catalog/component/default/a/facts/deliveries/deployments"
    assert f"{FACTS}/deployments" in hrefs(await visitor.text(entity))
    found = hrefs(await visitor.text("/"))
    path = "/data-sources/entity-metadata/facts/hasOwner?kind=component"
    assert path in found
    assert "5 of 5 entities known" in words(await visitor.text(path))


async def test_the_table_is_saved_as_csv(knowing: Service, visitor: Browser) -> None:
    await fill(knowing, "pipeline", "=1+1")
    page = await visitor.text(f"{FACTS}/pipeline", owner="payments")
    [path] = [
        path
        for path in hrefs(page)
        if urlsplit(path).path.startswith("/data-sources/deliveries/values")
    ]
    answer = await visitor.open(path)
    assert answer.headers["content-type"].startswith("text/csv")
    rows = list(csv.reader(io.StringIO(answer.text)))
    assert [row[:2] for row in rows[1:]] == [
        ["component:default/a", "'=1+1"],
        ["component:default/b", ""],
    ]


async def test_hostile_values_and_names_do_no_harm(knowing: Service, visitor: Browser) -> None:
    await fill(knowing, "pipeline", HOSTILE, "x" * 5_000)
    page = await visitor.text(f"{FACTS}/pipeline")
    assert is_harmless(page)
    await fill(knowing, "regions", [HOSTILE, ""], [])
    assert is_harmless(await visitor.text(f"{FACTS}/regions"))
    assert is_harmless(await visitor.text(f"{FACTS}/pipeline", value=HOSTILE, owner="-"))
    assert is_harmless(await visitor.text(f"{FACTS}/slashed%2Fname"))


@pytest.mark.parametrize("database_url", ["sqlite"], indirect=True)
async def test_an_address_that_makes_no_sense_is_refused(
    visitor: Browser, subtests: pytest.Subtests
) -> None:
    for path, status in [
        ("nothing", 404),
        ("deployments?by=colour", 400),
        ("deployments?min=many", 400),
        ("deployments?cursor=x", 400),
        ("settings?sort=value", 400),
        ("deployments?owner=group:", 400),
    ]:
        with subtests.test(path=path):
            assert is_harmless(await visitor.text(f"{FACTS}/{path}", status))
