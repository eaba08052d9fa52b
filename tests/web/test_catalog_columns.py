"""Columns that people choose in the catalog, its order by heads, and its list as CSV."""

import csv
import io
import re

import pytest

from tests.api.checking import SCORECARDS, evaluated, put, scorecard
from tests.api.defining import define, item, of_entities, push, pushed
from tests.service import Service, component, resource
from tests.web.markup import HOSTILE, HOSTILE_NAME, hrefs, is_harmless
from tests.web.test_catalog import named, rows
from tests.web.visiting import Browser, browser, signed_in, words


@pytest.fixture
async def visitor(service: Service) -> Browser:
    """A person who may read, where one of two components has facts."""
    await service.push("all", component("web"), component("idle"), resource("account"))
    schema = {"lines": {"type": "integer", "unit": "lines"}, "tool": {"type": "string"}}
    await define(service, pushed(schema=schema, entityFilter=[{"kind": ["component"]}]))
    await push(service, item(lines=1234))
    return await signed_in(service, "vic", "viewer")


async def lines(visitor: Browser, path: str) -> list[list[str]]:
    """The lines of a CSV file."""
    answer = await visitor.open(path)
    assert answer.status_code == 200, answer.text
    assert answer.headers["content-type"].startswith("text/csv")
    assert answer.headers["content-disposition"] == 'attachment; filename="catalog.csv"'
    return list(csv.reader(io.StringIO(answer.text)))


async def test_a_fact_is_a_column_with_its_unit_and_its_reason(visitor: Browser) -> None:
    page = await visitor.text("/catalog?column=coverage/lines&column=coverage/tool")
    text = words(page)
    assert re.search(r"web .* now 1,234 lines unknown", text)
    assert re.search(r"idle .* now unknown not collected yet", text)
    assert re.search(r"account .* now — not known for this entity", text)
    assert "/catalog/component/default/web/facts/coverage/lines" in hrefs(page)
    assert 'value="coverage/lines"' in page
    following = "/catalog?column=coverage%2Flines&column=coverage%2Ftool&order=updated"
    assert following in hrefs(page)


async def test_facts_of_the_catalog_itself_are_columns(visitor: Browser) -> None:
    page = words(await visitor.text("/catalog?column=entity-ownership/hasGroupOwner&q=web"))
    assert re.search(r"web .* now yes", page)


async def test_at_most_four_columns_are_shown(visitor: Browser) -> None:
    names = ["coverage/lines", "coverage/tool", "a/b", "c/d", "e/f"]
    page = await visitor.text("/catalog?" + "&".join(f"column={name}" for name in names))
    assert "There is no column c/d." in page
    assert "There is no column e/f." not in page


async def test_a_level_is_a_column(service: Service, visitor: Browser) -> None:
    rule = {"source": "coverage", "fact": "lines", "operator": "greaterThan", "value": 80}
    sent = {"id": "covered", "title": "Covered", "rule": rule}
    assert (await put(service, sent, publish=True)).status_code == 200
    made = await service.http.put(f"{SCORECARDS}/readiness?publish=true", json=scorecard())
    assert made.status_code == 200, made.text
    await evaluated(service)
    page = words(await visitor.text("/catalog?column=scorecard:readiness&q=web"))
    assert re.search(r"web .* now silver", page)
    found = await lines(visitor, "/catalog/export?column=scorecard:readiness&q=web")
    assert [line[-1] for line in found] == ["scorecard:readiness", "silver"]


async def test_heads_lead_to_their_order(visitor: Browser) -> None:
    page = await visitor.text("/catalog?kind=component&order=updated")
    assert "/catalog?kind=component&order=name" in hrefs(page)
    assert '<th scope="col" aria-sort="descending"><a class="quiet" href="/catalog?' in page
    assert page.count("aria-sort") == 1


async def test_the_list_is_saved_as_csv(visitor: Browser) -> None:
    page = await visitor.text("/catalog?kind=component&column=coverage/lines&order=updated")
    path = next(href for href in hrefs(page) if href.startswith("/catalog/export"))
    header, *found = await lines(visitor, path)
    assert header == [
        *("entityRef", "kind", "title", "type", "lifecycle", "owner", "system", "tags"),
        *("updatedAt", "coverage/lines", "coverage/lines unknownReason"),
        "coverage/lines stale",
    ]
    assert [(line[0], *line[-3:]) for line in found] == [
        ("component:default/idle", "", "never-collected", ""),
        ("component:default/web", "1234", "", "false"),
    ]
    everything = await lines(visitor, "/catalog/export?kind=")
    assert len(everything) == 4


@pytest.mark.slow
async def test_more_than_a_portion_is_saved_as_csv(service: Service) -> None:
    visitor = await signed_in(service)
    await service.push("all", *(component(f"c{number:04}") for number in range(1_050)))
    found = await lines(visitor, "/catalog/export?kind=component")
    assert [line[0] for line in found[1:]] == [
        f"component:default/c{number:04}" for number in range(1_050)
    ]


async def test_no_text_of_an_entity_is_a_formula_in_a_spreadsheet(service: Service) -> None:
    visitor = await signed_in(service)
    item_ = named("web", title="=1+1", tags=["@x"], spec={"type": "+1", "owner": "-1", "system": 1})
    await service.push("all", item_)
    _, line = await lines(visitor, "/catalog/export")
    assert line[2:8] == ["'=1+1", "'+1", "", "'-1", "", "'@x"]


async def test_hostile_facts_stay_text(service: Service) -> None:
    visitor = await signed_in(service)
    await service.push("all", component("web"))
    await define(service, of_entities(title=HOSTILE_NAME))
    await define(service, pushed())
    await push(service, item(tool=HOSTILE))
    assert is_harmless(await visitor.text("/catalog?column=coverage/tool&column=owners/owner"))


async def test_only_who_may_read_the_catalog_saves_it(service: Service) -> None:
    await service.push("all", component("web"))
    answer = await browser(service).open("/catalog/export")
    assert answer.status_code == 303
    assert answer.headers["location"].startswith("/sign-in")
    visitor = await signed_in(service)
    assert rows(await visitor.text("/catalog")) == ["web"]
