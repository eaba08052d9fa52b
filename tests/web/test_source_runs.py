"""Runs of a data source, as they are begun, followed and told."""

import pytest

from factbook.clock import HOUR
from factbook.facts.datasource import Lifecycle
from factbook.outbound.outcomes import Missing, Outcome
from tests.api.defining import define, of_entities
from tests.conftest import StartService
from tests.service import Service, component
from tests.web.running import HOSTILE, run_of, world
from tests.web.visiting import signed_in, words


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
    assert "The run is waiting for a worker" in words(await visitor.text(path))
    await found.collector.drain()
    html = await visitor.text(path)
    assert "data-follow" not in html
    assert "refresh" not in html
    assert "<script>alert" not in html
    shown = words(html)
    assert "1 entity failed" in shown
    assert "3 covered 1 failed 0 skipped" in shown
    assert "2 calls to the host" in shown
    assert '<a href="/data-sources/vendor/failures">1 failed</a>' in html
    assert "component:api" in words(await visitor.text("/data-sources/vendor/failures"))
    listed = words(await visitor.text("/data-sources/vendor/runs"))
    assert "partly failed" in listed
    assert "not-found: <script>" in listed


async def test_a_run_before_the_last_one_links_no_failures(start: StartService) -> None:
    found = await world(start)
    await found.push("web")
    found.vendor.faults["acme/web"] = Missing(Outcome.NOT_FOUND, "gone")
    visitor = await signed_in(found.service)
    paths = []
    for _ in range(2):
        paths.append(await run_of(visitor, "vendor"))
        await found.collector.drain()
        found.service.time.advance(HOUR)
    shown = [await visitor.text(path) for path in paths]
    assert ["/failures" in html for html in shown] == [False, True]
    assert all("1 failed" in words(html) for html in shown)


async def test_a_run_of_one_entity_takes_a_short_reference(service: Service) -> None:
    await service.push("all", component("web"), component("api"))
    await define(service, of_entities())
    visitor = await signed_in(service)
    html = await visitor.text("/data-sources/owners")
    assert '<option value="component:default/web">' in html
    path = await run_of(visitor, "owners", entity="web")
    assert "some entities, asked for" in words(await visitor.text(path))


async def test_a_run_that_cannot_be_says_why_beside_the_field(
    service: Service, subtests: pytest.Subtests
) -> None:
    await service.push("all", component("web"))
    await define(service, of_entities(entityFilter=[{"kind": "api"}]))
    visitor = await signed_in(service)
    await visitor.open("/data-sources/owners")
    for entity, status, message in [
        ("nobody", 404, "There is no entity component:default/nobody"),
        ("a/b/c:", 404, "There is no entity"),
        (":", 400, "not of the form"),
        ("<b>x</b>" * 200, 400, "longer than any entity"),
        ("resource:db", 404, "There is no entity resource:default/db"),
        ("component:web", 409, "The entityFilter of owners leaves component:default/web out."),
    ]:
        with subtests.test(entity=entity):
            answer = await visitor.send("/data-sources/owners/runs", entity=entity)
            assert answer.status_code == status, words(answer.text)
            assert message in words(answer.text)
            assert "<b>x" not in answer.text


async def test_run_now_leads_to_the_run_of_everything_that_is_under_way(
    service: Service,
) -> None:
    await service.push("all", component("web"))
    await define(service, of_entities())
    visitor = await signed_in(service)
    path = await run_of(visitor, "owners")
    answer = await visitor.send("/data-sources/owners/runs")
    assert (answer.status_code, answer.headers["location"]) == (303, path)
    assert "A run was already in progress; this is its page." in words(await visitor.text(path))


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


async def test_a_run_of_another_source_is_not_shown_as_ones_own(service: Service) -> None:
    await service.push("all", component("web"))
    await define(service, of_entities())
    visitor = await signed_in(service)
    path = await run_of(visitor, "owners")
    assert "Run of Owners" in await visitor.text(path)
    await visitor.text(path.replace("owners", "techdocs"), 404)
