"""The overview: what the catalog holds, sources in trouble, what changed, and what to do first."""

import pytest

from factbook.clock import DAY, HOUR
from factbook.errors import ConfigurationError
from factbook.outbound.outcomes import Missing, Outcome
from factbook.web import formats
from tests.api.defining import define, of_entities
from tests.conftest import StartService
from tests.importers.madeup import ImportWorld, known_to
from tests.importers.reading import part
from tests.service import Service, component, resource
from tests.web.markup import hrefs, is_harmless
from tests.web.running import world
from tests.web.visiting import signed_in, words

HOSTILE = "<script>alert(1)</script>"


async def test_an_empty_catalog_says_what_to_do_first(service: Service) -> None:
    visitor = await signed_in(service)
    page = await visitor.text("/")
    assert "The catalog is empty" in page
    for path in ("/administration/account/api-access", "/sets", "/data-sources", "/connect"):
        assert f'href="{path}"' in page


async def test_entities_are_counted_by_kind_in_one_line_of_links(service: Service) -> None:
    visitor = await signed_in(service)
    await service.push("all", component("a"), component("b"), resource("c"))
    page = await visitor.text("/")
    assert "3 entities in 1 set" in words(page)
    assert "Component 2 Resource 1" in words(page)
    assert 'href="/catalog?kind=component"' in page


async def test_the_share_of_entities_that_meet_each_point_is_shown(service: Service) -> None:
    visitor = await signed_in(service)
    titled = component("a")
    titled["metadata"]["title"] = "A"
    await service.push("all", titled, component("b"), component("c"), resource("d", title="D"))
    page = words(await visitor.text("/"))
    assert "Has a title 33% 1 of 3" in page
    assert "Owner is a reference 100% 3 of 3" in page
    page = words(await visitor.text("/", kind="resource"))
    assert "Has a title 100% 1 of 1" in page
    page = words(await visitor.text("/", kind=""))
    assert "Has a title 50% 2 of 4" in page
    await service.push("all", titled, component("b"))
    assert "Has a title 50% 1 of 2" in words(await visitor.text("/"))
    assert "Has a title 50% 1 of 2" in words(await visitor.text("/", kind=""))


async def test_a_kind_that_nothing_has_means_all_kinds(service: Service) -> None:
    visitor = await signed_in(service)
    await service.push("all", component("a"))
    for kind in ("nothing", HOSTILE, "component:default/a"):
        page = await visitor.text("/", kind=kind)
        assert "of 1" in words(page)
        assert HOSTILE not in page


async def test_the_largest_changes_of_the_week_come_first(service: Service) -> None:
    visitor = await signed_in(service)
    await service.push("old", *(component(f"o{n}") for n in range(9)))
    service.time.advance(8 * DAY)
    visitor = await signed_in(service, "bob")
    await service.push("small", component("s"))
    await service.push("large", *(component(f"l{n}") for n in range(5)))
    page = words(await visitor.text("/"))
    changes = page.split("Largest set changes")[1]
    assert changes.index("large") < changes.index("small")
    assert "+5 added" in changes
    assert "old" not in changes


async def test_sources_that_facts_are_pushed_to_count_and_fall_silent(service: Service) -> None:
    await service.push("all", component("web"))
    document = {
        "id": "coverage",
        "title": "Coverage",
        "handlerDefinition": {"type": "push", "config": {"id": "coverage"}},
        "schema": {"lines": {"type": "float"}},
    }
    await define(service, document)
    visitor = await signed_in(service)
    assert "Nothing collected yet" in words(await visitor.text("/"))
    body = {"items": [{"entity": "component:web", "facts": {"lines": 81.5}}]}
    await service.http.post("/api/tech-insights/v1/facts/coverage", json=body)
    shown = words(await visitor.text("/"))
    assert "facts from 1 data source. As of now" in shown
    assert "Every source is fine" in shown
    assert "Nothing collected yet" not in shown
    service.time.advance(60 * DAY)
    visitor = await signed_in(service, "eve")
    page = await visitor.text("/")
    assert "Coverage pushed late The last push came at 2" in words(page)
    assert "Last success: 60 days ago" in words(page)
    assert "/data-sources/coverage" in hrefs(page)


async def test_sources_in_trouble_of_every_type_are_shown_with_their_reasons(
    start: StartService,
) -> None:
    found = await world(start)
    service = found.service
    handler = {"type": "http", "config": {"id": "asking", "connection": "gone", "path": "/"}}
    await define(service, of_entities("asking", handlerDefinition=handler))
    await found.push("web")
    found.vendor.faults[""] = Missing(Outcome.NOT_FOUND, "<b>gone</b>")
    await found.collector.drain()
    imports = ImportWorld(service.state.database)
    known_to(service, imports.system.importer())
    imports.time.now = service.time.now
    imports.system.fault = ConfigurationError("the <i>account</i> is closed")
    await imports.process.work()
    page = await (await signed_in(service, role="viewer")).text("/")
    text = words(page)
    assert is_harmless(page)
    assert "Vendor integration down not-found: <b>gone</b>" in text
    assert "custom cannot run There is no connection 'gone'." in text
    assert "fake importer failed the <i>account</i> is closed" in text
    assert {"/data-sources/vendor", "/data-sources/asking", "/imports/fake"} <= set(hrefs(page))


async def test_removals_that_wait_for_a_decision_are_trouble(service: Service) -> None:
    await service.push("all", component("web"))
    imports = ImportWorld(service.state.database)
    known_to(service, imports.system.importer())
    await imports.process.work()
    visitor = await signed_in(service)
    assert "Every source is fine" in words(await visitor.text("/"))
    imports.system.parts = [part()]
    imports.time.advance(HOUR)
    await imports.process.work()
    text = words(await visitor.text("/"))
    assert "fake importer held 2 removals wait for a decision" in text


async def test_an_importer_that_does_not_run_when_due_is_late(service: Service) -> None:
    await service.push("all", component("web"))
    imports = ImportWorld(service.state.database)
    known_to(service, imports.system.importer())
    imports.time.now = service.time.now
    await imports.process.work()
    service.time.advance(3 * DAY)
    text = words(await (await signed_in(service)).text("/"))
    assert "fake importer late A run was due and did not start" in text


async def test_a_quiet_week_is_called_one(service: Service) -> None:
    await service.push("old", component("a"))
    service.time.advance(8 * DAY)
    visitor = await signed_in(service)
    assert "A quiet week" in await visitor.text("/")


async def test_what_sets_and_kinds_are_called_stays_text(service: Service) -> None:
    visitor = await signed_in(service)
    await service.push("%3Cscript%3Ealert(1)%3C%2Fscript%3E".replace("%2F", "|"), component("a"))
    page = await visitor.text("/")
    assert "<script>alert" not in page
    assert "&lt;script&gt;alert(1)&lt;|script&gt;" in page


def test_a_share_is_rounded_neither_to_all_nor_to_nothing(subtests: pytest.Subtests) -> None:
    for count, whole, percent in [
        (0, 10, "0%"),
        (1, 3, "33%"),
        (1, 1000, "<1%"),
        (999, 1000, "99%"),
        (7, 7, "100%"),
    ]:
        with subtests.test(count=count, whole=whole):
            assert formats.format_share(count, whole) == percent
