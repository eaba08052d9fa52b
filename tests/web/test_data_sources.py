"""The pages of data sources: how all of them are doing, one of them, and its runs."""

from typing import Any

import pytest

from factbook.clock import DAY, HOUR, MINUTE
from factbook.facts import shapes
from factbook.facts.datasource import Lifecycle
from factbook.sources import VENDORS, vendor
from factbook.sources.outcomes import Missing, Outcome
from factbook.tools import TOOLS
from factbook.web import source_words
from factbook.web.source_vendors import VENDORS as SHOWN
from tests.api.defining import define, item, of_entities, push, pushed
from tests.collecting.madeup import DOWN
from tests.collecting.world import World
from tests.conftest import StartService
from tests.service import Service, component
from tests.web.visiting import Browser, signed_in, words

ON_SQLITE = pytest.mark.parametrize("database_url", ["sqlite"], indirect=True)
HOSTILE = "<script>alert(1)</script> \"quoted\" & 'so'"


async def world(start: StartService, **options: Any) -> World:
    """A service with a source that a made-up vendor answers for."""
    service = await start()
    found = World(service, **options)
    registry = service.state.registry
    registry.fixed.sources["vendor"] = found.integration.source
    registry.fixed.integrations["vendor"] = found.integration
    return found


async def run_of(browser: Browser, source: str, **fields: str) -> str:
    """Begin a run; the path of its page."""
    await browser.open(f"/data-sources/{source}")
    answer = await browser.send(f"/data-sources/{source}/runs", **fields)
    assert answer.status_code == 303, words(answer.text)
    location: str = answer.headers["location"]
    return location


# The list


async def test_the_list_shows_every_source_with_its_state(service: Service) -> None:
    await service.push("all", component("web"))
    await define(service, pushed())
    await define(service, pushed("silent", title="Silent"))
    await define(service, of_entities(), publish=False)
    await push(service, item(lines=1))
    visitor = await signed_in(service)
    shown = words(await visitor.text("/data-sources"))
    assert "6 3 builtin, 3 custom 0 with problems 0 running now 1 draft" in shown
    assert "Coverage coverage custom pushed facts of now" in shown
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
    at = [shown.index(text) for text in ("cannot run", "down for", "read from the catalog")]
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
    assert "No source fits" in words(await visitor.text("/data-sources", q="nothing such"))


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
        assert "Data sources" in await visitor.text("/data-sources", page=odd)


async def test_without_an_integration_it_says_which_there_are_and_how(service: Service) -> None:
    shown = await (await signed_in(service)).text("/data-sources")
    assert "Connect the systems you use" in shown
    assert "FACTBOOK_INTEGRATIONS__GITHUB__DEFAULT__TOKEN=" in shown


@pytest.mark.parametrize("shown", SHOWN, ids=lambda shown: shown.id)
def test_the_integrations_that_are_offered_are_those_that_there_are(shown: Any) -> None:
    made = vendor(shown.id)
    assert shown.title == made.title
    assert set(shown.options) <= set(made.options.__struct_fields__)
    assert {one.id for one in SHOWN} == set(VENDORS)


# One source


async def test_a_source_shows_its_facts_and_what_it_is_about(service: Service) -> None:
    document = of_entities(
        description="Who owns it.",
        entityFilter=[{"kind": ["component", "api"], "spec.owner": {"exists": True}}],
        timeout={"minutes": 20},
        lifecycle={"timeToLive": {"days": 90}},
    )
    slos = {"type": "integer", "unit": "objectives", "extract": {"jmespath": "`1`"}}
    document["schema"]["observability.sloCount"] = slos
    await define(service, document)
    visitor = await signed_in(service)
    html = await visitor.text("/data-sources/owners")
    shown = words(html)
    assert "Who owns it." in shown
    assert "owner string" in shown
    assert "Also in the answers of get-observability-metrics" in shown
    assert "observability. sloCount integer objectives" in shown
    assert "kind is component or api and spec.owner is there" in shown
    assert "Collected every hour 0 * * * *" in shown
    assert "A run takes 20 minutes at most" in shown
    assert "History kept 90 days" in shown
    assert "1.0.0 now by user:tester" in shown
    assert "jmespath: spec.owner" in html


async def test_the_catalogs_own_sources_say_what_they_fill(service: Service) -> None:
    shown = words(await (await signed_in(service)).text("/data-sources/entity-metadata"))
    assert "Also in the answers of get-entity-compliance" in shown
    assert "Facts come from the catalog" in shown
    assert "Run now" not in shown
    assert "Delete" not in shown


def test_every_shape_has_a_tool_that_there_is() -> None:
    named = {*source_words.TOOLS.values(), source_words.COMPLIANCE_TOOL}
    assert named <= {tool.name for tool in TOOLS}
    assert {*source_words.TOOLS, "compliance"} == {shape.name for shape in shapes.SHAPES}


async def test_a_viewer_sees_no_definition_and_no_button(service: Service) -> None:
    await service.push("all", component("web"))
    await define(service, of_entities())
    await define(service, of_entities(title="Newer"), publish=False)
    viewer = await signed_in(service, "vic", "viewer")
    html = await viewer.text("/data-sources/owners")
    assert "jmespath" not in html
    assert "/edit" not in html
    assert html.count("<form") == html.count('action="/sign-out"')
    assert "Define a source" not in await viewer.text("/data-sources")


@pytest.mark.parametrize(
    "path",
    [
        "/data-sources/owners/runs",
        "/data-sources/owners/delete",
        "/data-sources/owners/publish",
        "/data-sources/owners/edit",
        "/data-sources/new",
    ],
)
async def test_a_viewer_may_change_nothing(service: Service, path: str) -> None:
    await define(service, of_entities())
    viewer = await signed_in(service, "vic", "viewer")
    await viewer.open("/data-sources/owners")
    answer = await viewer.send(path, text="id: x", do="save", seen="1")
    assert answer.status_code == 403, answer.text
    assert (await service.http.get("/api/tech-insights/v1/data-sources/owners")).status_code == 200


@pytest.mark.parametrize(
    "path",
    [
        "/data-sources/none",
        "/data-sources/none/edit",
        "/data-sources/none/runs",
        "/data-sources/none/failures",
        "/data-sources/techdocs/runs/1",
        "/data-sources/techdocs/runs/x",
        "/data-sources/techdocs/runs/99999999999999999999999",
        "/data-sources/techdocs/runs/٣",
    ],
)
async def test_what_there_is_not_is_told(service: Service, path: str) -> None:
    visitor = await signed_in(service)
    assert "There is no" in words(await visitor.text(path, 404))


async def test_a_run_of_another_source_is_not_shown_as_ones_own(service: Service) -> None:
    await service.push("all", component("web"))
    await define(service, of_entities())
    visitor = await signed_in(service)
    path = await run_of(visitor, "owners")
    assert "Run of Owners" in await visitor.text(path)
    await visitor.text(path.replace("owners", "techdocs"), 404)


async def test_nothing_that_a_source_says_becomes_markup(service: Service) -> None:
    document = of_entities(
        title=HOSTILE,
        description="</p><img src=x onerror=alert(1)>",
        entityFilter=[{"metadata.<b>": ["<i>", True]}],
    )
    document["schema"] = {
        "<u>": {"type": "string", "description": "<s>", "extract": {"jmespath": "'<tt>'"}}
    }
    await define(service, document)
    await define(service, {**document, "title": HOSTILE * 2}, publish=False)
    visitor = await signed_in(service)
    paths = ("", "/owners", "/owners/edit", "/owners/runs", "/owners/failures")
    for path in paths:
        html = await visitor.text(f"/data-sources{path}")
        for text in ("<script>alert", "<img src=x", "<b>", "<i>", "<u>", "<s>", "<tt>"):
            assert text not in html, path
    assert HOSTILE.replace('"', "") in words(await visitor.text("/data-sources")).replace('"', "")


# Failures


async def test_what_failed_in_the_last_run_is_named_with_its_reason(start: StartService) -> None:
    found = await world(start)
    await found.push("web", "shop", "api", "db")
    await found.collector.drain()
    found.vendor.faults |= {
        "acme/api": Missing(Outcome.NOT_FOUND, "<b>gone</b>"),
        "acme/shop": DOWN,
    }
    for _ in range(4):
        await found.next_run()
        found.service.time.advance(10 * MINUTE)
        await found.collector.drain()
    visitor = await signed_in(found.service)
    for path in ("/data-sources/vendor", "/data-sources/vendor/failures"):
        shown = words(await visitor.text(path))
        assert "component:api not-found: <b>gone</b>" in shown, path
        assert "component:shop" in shown
        assert "component:web" not in shown
        assert "component:db" not in shown
    assert "component:api" not in await visitor.text("/data-sources/vendor/failures", after="9999")


async def test_an_expiring_credential_is_told(start: StartService) -> None:
    found = await world(start)
    await found.push("web")
    found.vendor.client.counted.credential_expires_at = found.service.time() + 3 * DAY + HOUR
    await found.collector.drain()
    visitor = await signed_in(found.service)
    assert "expires in 3 days" in words(await visitor.text("/data-sources/vendor"))
    found.service.time.advance(5 * DAY)
    visitor = await signed_in(found.service, "eve")
    assert "expired 1 day ago" in words(await visitor.text("/data-sources/vendor"))


# Runs


async def test_a_run_is_begun_followed_and_ends_with_its_figures(start: StartService) -> None:
    found = await world(start, lifecycle=Lifecycle(max_items=2))
    await found.push("web", "shop", "api", "db")
    found.vendor.faults["acme/api"] = Missing(Outcome.NOT_FOUND, HOSTILE)
    visitor = await signed_in(found.service)
    path = await run_of(visitor, "vendor")
    html = await visitor.text(path)
    assert 'data-follow="' in html
    assert '<noscript><meta http-equiv="refresh"' in html
    assert "running all entities, asked for" in words(html)
    assert "0% 0 of 4 entities Entities of the run: 4 to come" in words(html)
    found.service.time.advance(20_000)
    assert "It waits for a worker" in words(await visitor.text(path))
    await found.collector.drain()
    html = await visitor.text(path)
    assert "data-follow" not in html
    assert "refresh" not in html
    assert "<script>alert" not in html
    shown = words(html)
    assert "1 entity failed" in shown
    assert "3 covered 1 failed 0 skipped" in shown
    assert "2 calls to the host" in shown
    listed = words(await visitor.text("/data-sources/vendor/runs"))
    assert "partly failed" in listed
    assert "not-found: <script>" in listed


async def test_a_run_of_one_entity_takes_a_short_reference(service: Service) -> None:
    await service.push("all", component("web"), component("api"))
    await define(service, of_entities())
    visitor = await signed_in(service)
    html = await visitor.text("/data-sources/owners")
    assert '<option value="component:default/web">' in html
    path = await run_of(visitor, "owners", entity="web")
    assert "some entities, asked for" in words(await visitor.text(path))


@pytest.mark.parametrize(
    ("entity", "status", "told"),
    [
        ("nobody", 404, "There is no entity component:default/nobody"),
        ("a/b/c:", 404, "There is no entity"),
        (":", 400, "not of the form"),
        ("<b>x</b>" * 200, 400, "longer than any entity"),
        ("resource:db", 404, "There is no entity resource:default/db"),
        ("component:web", 409, "The entityFilter of owners leaves component:default/web out."),
    ],
)
async def test_a_run_that_cannot_be_says_why_beside_the_field(
    service: Service, entity: str, status: int, told: str
) -> None:
    await service.push("all", component("web"))
    await define(service, of_entities(entityFilter=[{"kind": "api"}]))
    visitor = await signed_in(service)
    await visitor.open("/data-sources/owners")
    answer = await visitor.send("/data-sources/owners/runs", entity=entity)
    assert answer.status_code == status, words(answer.text)
    assert told in words(answer.text)
    assert "<b>x" not in answer.text


async def test_a_second_run_of_everything_is_refused_while_one_is_under_way(
    service: Service,
) -> None:
    await service.push("all", component("web"))
    await define(service, of_entities())
    visitor = await signed_in(service)
    path = await run_of(visitor, "owners")
    answer = await visitor.send("/data-sources/owners/runs")
    assert answer.status_code == 409
    assert "A run of everything of owners is under way already." in words(answer.text)
    assert path in answer.text


@pytest.mark.parametrize(
    ("back", "leads"),
    [
        ("/catalog/component/default/web?a=1", "/catalog/component/default/web?a=1"),
        ("//evil.example", "/data-sources/owners/runs/"),
        ("https://evil.example", "/data-sources/owners/runs/"),
        ("/\\evil.example", "/data-sources/owners/runs/"),
        ("", "/data-sources/owners/runs/"),
    ],
)
async def test_after_a_run_is_begun_one_can_go_back_within_the_service(
    service: Service, back: str, leads: str
) -> None:
    await service.push("all", component("web"))
    await define(service, of_entities())
    visitor = await signed_in(service)
    assert (await run_of(visitor, "owners", entity="web", next=back)).startswith(leads)


async def test_runs_and_deletions_are_in_the_audit(service: Service) -> None:
    await service.push("all", component("web"))
    await define(service, of_entities())
    visitor = await signed_in(service)
    await run_of(visitor, "owners", entity="web")
    shown = words(await visitor.done("/data-sources/owners/delete"))
    assert "Owners was deleted." in shown
    rows = await service.state.database.all(
        "SELECT action, object, actor FROM audit WHERE actor = ? AND action LIKE 'data-source%'",
        ("user:default/ada",),
    )
    assert rows == [
        ("data-source.run", "owners", "user:default/ada"),
        ("data-source.delete", "owners", "user:default/ada"),
    ]
    await visitor.text("/data-sources/owners", 404)


async def test_a_builtin_source_cannot_be_deleted(service: Service) -> None:
    visitor = await signed_in(service)
    answer = await visitor.send("/data-sources/techdocs/delete")
    assert answer.status_code == 409
    assert "techdocs is a builtin data source" in words(answer.text)


@pytest.mark.parametrize(
    ("line", "told"),
    [
        ("*/10 * * * *", "every 10 minutes"),
        ("* * * * *", "every minute"),
        ("7 * * * *", "every hour"),
        ("0 */6 * * *", "every 6 hours"),
        ("30 4 * * *", "every day at 04:30 UTC"),
        ("30 4 * * 1-5", "on weekdays at 04:30 UTC"),
        ("0 6 * * 7", "every Sunday at 06:00 UTC"),
        ("0 6 * * 1", "every Monday at 06:00 UTC"),
        ("0 6 1 * *", "cron 0 6 1 * *"),
        ("0,30 6-9 * * mon", "cron 0,30 6-9 * * mon"),
        ("*/5 6 * * *", "cron */5 6 * * *"),
        ("* 6 * * *", "cron * 6 * * *"),
    ],
)
def test_a_cadence_is_told_in_words(line: str, told: str) -> None:
    assert source_words.cadence(line) == told
