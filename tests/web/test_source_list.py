"""The page of all data sources: how they are doing."""

import pytest

from factbook.clock import HOUR
from factbook.integrations import VENDORS, find_vendor
from factbook.integrations.vendors import VENDORS as SHOWN
from factbook.outbound.outcomes import Missing, Outcome
from tests.api.defining import define, item, of_entities, push, pushed
from tests.conftest import StartService
from tests.service import Service, component
from tests.web.running import world
from tests.web.visiting import signed_in, words

ON_SQLITE = pytest.mark.parametrize("database_url", ["sqlite"], indirect=True)


async def test_the_list_shows_every_source_with_its_state(service: Service) -> None:
    await service.push("all", component("web"))
    await define(service, pushed())
    await define(service, pushed("silent", title="Silent"))
    await define(service, of_entities(), publish=False)
    await push(service, item(lines=1))
    visitor = await signed_in(service)
    shown = words(await visitor.text("/data-sources"))
    assert "6 3 built-in, 3 custom 0 with problems 0 running now 1 draft" in shown
    assert "Coverage coverage custom up facts of now" in shown
    assert "Silent silent custom no facts yet nothing pushed yet" in shown
    assert "Owners owners custom draft never — on demand" in shown
    assert "Entity metadata entity-metadata read from the catalog at every read" in shown


async def test_problems_come_first_with_their_reason(start: StartService) -> None:
    found = await world(start)
    handler = {"type": "http", "config": {"id": "asking", "connection": "gone", "path": "/"}}
    await define(found.service, of_entities("asking", handlerDefinition=handler))
    await found.push("web")
    found.vendor.faults[""] = Missing(Outcome.NOT_FOUND, "<b>gone</b>")
    await found.collector.drain()
    found.service.time.advance(2 * HOUR)
    visitor = await signed_in(found.service)
    shown = words(await visitor.text("/data-sources"))
    assert "2 with problems" in shown
    at = [shown.index(text) for text in ("cannot run", "Vendor vendor", "read from the catalog")]
    assert at == sorted(at)
    assert "There is no connection 'gone'." in shown
    assert "not-found: <b>gone</b>" in shown
    only = words(await visitor.text("/data-sources", show="problems"))
    assert "Vendor vendor" in only
    assert "Entity metadata" not in only


async def test_figures_of_the_last_run_and_the_next_one_are_shown(start: StartService) -> None:
    found = await world(start, cadence="0 */6 * * *")
    await found.push("web", "shop", "api")
    found.vendor.faults["acme/api"] = Missing(Outcome.NOT_FOUND)
    found.vendor.limit(70, found.service.time() + HOUR)
    await found.collector.drain()
    visitor = await signed_in(found.service)
    html = await visitor.text("/data-sources")
    shown = words(html)
    assert "Vendor vendor partly failing" in shown
    assert "2 covered, 1 failed 67% in" in shown
    assert "every 6 hours 70" in shown
    assert html.count('role="img"') == 1


async def test_sources_are_found_by_title_and_id(service: Service) -> None:
    await define(service, pushed())
    visitor = await signed_in(service)
    for text in ("covER", "Coverage"):
        shown = words(await visitor.text("/data-sources", q=text))
        assert "Coverage coverage" in shown
        assert "TechDocs" not in shown
    assert "No sources match" in words(await visitor.text("/data-sources", q="nothing such"))


@pytest.mark.slow
@ON_SQLITE
async def test_many_sources_are_shown_page_by_page(service: Service) -> None:
    for number in range(52):
        await define(service, pushed(f"s{number:02}", title=f"Source {number:02}"), publish=False)
    visitor = await signed_in(service)
    first = words(await visitor.text("/data-sources"))
    second = words(await visitor.text("/data-sources", page="2"))
    assert "1 to 50 of 55 sources" in first
    assert "51 to 55 of 55 sources" in second
    assert "Source 00" in first
    assert "TechDocs" in second
    assert "TechDocs" not in first
    for odd in ("0", "-1", "x", "99999999999999999999", "٣"):
        answer = await visitor.open("/data-sources", page=odd)
        assert answer.status_code == 400
        assert "“page” in the address must be a number from 1 to 10000" in answer.text


async def test_without_an_integration_it_says_which_there_are_and_how(service: Service) -> None:
    shown = await (await signed_in(service)).text("/data-sources")
    assert "Connect the systems you use" in shown
    assert "FACTBOOK_INTEGRATIONS__GITHUB__DEFAULT__TOKEN=" in shown


def test_the_integrations_that_are_offered_are_those_that_there_are(
    subtests: pytest.Subtests,
) -> None:
    assert SHOWN
    assert {integration.id for integration in SHOWN} == set(VENDORS)
    for integration in SHOWN:
        with subtests.test(integration.id):
            made = find_vendor(integration.id)
            assert integration.title == made.title
            assert set(integration.options) <= set(made.options.__struct_fields__)
