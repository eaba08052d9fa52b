"""The page of one data source: what it says, who may change it, and what failed."""

import re
import shlex
from html import unescape

import pytest

from factbook.clock import DAY, HOUR, MINUTE
from factbook.collection.collector import Collector
from factbook.outbound.outcomes import Missing, Outcome
from tests.api.defining import define, of_entities
from tests.collection.madeup import DOWN
from tests.conftest import StartService
from tests.service import Service, component
from tests.web.running import HOSTILE, world
from tests.web.visiting import signed_in, words

LOAD_TEST = {
    "id": "load-test",
    "title": "Load test",
    "handlerDefinition": {"type": "push", "config": {"id": "load-test"}},
    "schema": {
        "p95": {"type": "float", "unit": "ms"},
        "passed": {"type": "boolean"},
        "tags": {"type": "set"},
        "note": {"type": "string"},
    },
}


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


async def test_a_source_that_finds_the_same_for_long_is_up_on_its_page_as_in_the_list(
    service: Service,
) -> None:
    await service.push("all", component("web"))
    await define(service, of_entities())
    state = service.state
    collector = Collector(
        state.database, [], state.connect, service.time, "here", further=state.registry.custom
    )
    for _ in range(6):
        service.time.advance(HOUR)
        await collector.drain()
    visitor = await signed_in(service)
    assert "Owners owners custom up" in words(await visitor.text("/data-sources"))
    assert "owners up custom" in words(await visitor.text("/data-sources/owners"))


async def test_the_catalogs_own_sources_say_what_they_fill(service: Service) -> None:
    shown = words(await (await signed_in(service)).text("/data-sources/entity-metadata"))
    assert "Also in the answers of get-entity-compliance" in shown
    assert "Facts come from the catalog" in shown
    assert "Run now" not in shown
    assert "Delete" not in shown


async def test_a_viewer_sees_no_definition_and_no_button(service: Service) -> None:
    await service.push("all", component("web"))
    await define(service, of_entities())
    await define(service, of_entities(title="Newer"), publish=False)
    viewer = await signed_in(service, "vic", "viewer")
    html = await viewer.text("/data-sources/owners")
    assert "jmespath" not in html
    assert "/edit" not in html
    assert html.count('<form method="post"') == html.count('action="/sign-out"')
    assert "Define a source" not in await viewer.text("/data-sources")


async def test_a_viewer_may_change_nothing(service: Service, subtests: pytest.Subtests) -> None:
    await define(service, of_entities())
    viewer = await signed_in(service, "vic", "viewer")
    await viewer.open("/data-sources/owners")
    for path in [
        "/data-sources/owners/runs",
        "/data-sources/owners/delete",
        "/data-sources/owners/publish",
        "/data-sources/owners/edit",
        "/data-sources/new",
    ]:
        with subtests.test(path=path):
            answer = await viewer.send(path, text="id: x", do="save", seen="1")
            assert answer.status_code == 403, answer.text
            assert (
                await service.http.get("/api/tech-insights/v1/data-sources/owners")
            ).status_code == 200


async def test_what_there_is_not_is_told(service: Service, subtests: pytest.Subtests) -> None:
    visitor = await signed_in(service)
    for path in [
        "/data-sources/none",
        "/data-sources/none/edit",
        "/data-sources/none/runs",
        "/data-sources/none/failures",
        "/data-sources/techdocs/runs/1",
        "/data-sources/techdocs/runs/x",
        "/data-sources/techdocs/runs/99999999999999999999999",
        "/data-sources/techdocs/runs/٣",
    ]:
        with subtests.test(path=path):
            assert "There is no" in words(await visitor.text(path, 404))


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


async def test_a_builtin_source_cannot_be_deleted(service: Service) -> None:
    visitor = await signed_in(service)
    answer = await visitor.send("/data-sources/techdocs/delete")
    assert answer.status_code == 409
    assert "techdocs is a built-in data source" in words(answer.text)


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
    assert "expired 2 days ago" in words(await visitor.text("/data-sources/vendor"))


async def test_a_pushed_source_shows_how_to_push_and_what_the_last_pushes_brought(
    service: Service,
) -> None:
    await service.push("all", component("web"), component("it's"))
    await define(service, LOAD_TEST)
    visitor = await signed_in(service)
    html = await visitor.text("/data-sources/load-test")
    assert "Last pushes" not in words(html)
    lines = [
        unescape(text) for text in re.findall(r"<code>(export .*?|curl .*?)</code>", html, re.S)
    ]
    assert len(lines) == 2
    assert "FACTBOOK_SERVER=http://127.0.0.1:8000" in lines[0]
    assert shlex.split(lines[0].splitlines()[2])[:2] == ["factbook", "push-facts"]
    words_of = shlex.split(lines[1].replace("\\\n", " "))
    answer = await service.http.post(words_of[1], content=words_of[words_of.index("-d") + 1])
    [item] = answer.json()["items"]
    assert (item["stored"], item["problems"]) == (["p95", "passed", "tags"], [])
    shown = words(await visitor.text("/data-sources/load-test"))
    [entity] = [name for name in ("it's", "web") if f"component:{name} P95" in shown]
    assert f"Last pushes Of Entity Result now component:{entity} P95 1.5 ms" in shown
    assert "P95 1.5 ms, Passed yes, Tags one, two" in shown


async def test_a_push_of_many_facts_says_how_many_more_there_are(service: Service) -> None:
    await service.push("all", component("web"))
    await define(service, LOAD_TEST)
    facts = {"p95": 81.5, "passed": False, "tags": ["a"], "note": "slow"}
    body = {"items": [{"entity": "component:web", "facts": facts}]}
    await service.http.post("/api/tech-insights/v1/facts/load-test", json=body)
    shown = words(await (await signed_in(service)).text("/data-sources/load-test"))
    assert "component:web P95 81.5 ms, Passed no, Tags a and 1 more fact" in shown
