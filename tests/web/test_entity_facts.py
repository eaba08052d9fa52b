"""The page of one entity: what is known of it, and who may collect it."""

from dataclasses import replace

import pytest

from factbook.clock import HOUR, MINUTE
from factbook.integrations import SOURCES as CATALOGS
from tests.conftest import StartService
from tests.service import Service, component
from tests.web.entities import REF, WEB, whole
from tests.web.knowing import DELIVERIES, SOURCES, write
from tests.web.markup import elements, hrefs
from tests.web.visiting import browser, signed_in, words


@pytest.fixture
async def knowing(start: StartService) -> Service:
    """A service with the catalog's own sources and two others."""
    return await start(sources=[*CATALOGS, *SOURCES])


async def test_facts_are_shown_by_their_type_and_unit(knowing: Service) -> None:
    visitor = await signed_in(knowing)
    await knowing.push("all", component("web"))
    values = {
        "deployments": 12_345,
        "leadTime": 26.25,
        "failureRate": 3.5,
        "restoreTime": 5_400.0,
        "lastDeployment": "2026-11-21T09:00:00Z",
        "onCall": False,
        "pipeline": "https://ci.acme.example/web",
        "regions": ["eu", "us"],
        "settings": {"replicas": 3},
        "codehost.pullRequests.total": 41,
    }
    await write(
        knowing, REF, values, reasons={"codehost.pullRequests.merged": "forbidden: no access"}
    )
    knowing.time.advance(3 * MINUTE)
    page = await visitor.text(WEB)
    text = words(page)
    for expected in (
        "Deliveries collected 3 minutes ago",
        "Deployments 12,345",
        "Lead time 26.25 hours",
        "Failure rate 3.5 %",
        "Restore time 1 h 30 min",
        "Last deployment 3 hours ago",
        "On call no",
        "Regions eu us",
        '"replicas": 3',
        "Pull requests Pull requests of the repository. Total 41",
    ):
        assert expected in text
    assert "https://ci.acme.example/web" in hrefs(page)
    assert f"{WEB}/facts/deliveries/codehost.pullRequests.total" in hrefs(page)


async def test_what_is_not_known_says_why_in_plain_words(knowing: Service) -> None:
    visitor = await signed_in(knowing)
    await knowing.push("all", component("web"))
    reasons = {"": "feature-off", "codehost.pullRequests": "forbidden: hidden from the credential"}
    await write(knowing, REF, {"deployments": 1}, reasons=reasons)
    text = words(await visitor.text(WEB))
    assert "unknown not allowed Total , Merged The credential may not read this" in text
    assert "It said: hidden from the credential." in text
    assert "unknown switched off Lead time , Failure rate" in text
    assert (
        "The feature is off at the vendor, or is not part of the plan or of this version." in text
    )


async def test_sources_that_brought_nothing_say_so(knowing: Service) -> None:
    visitor = await signed_in(knowing)
    await knowing.push("all", component("web"))
    text = words(await visitor.text(WEB))
    assert "Not collected yet: Deliveries ." in text
    own = words(await visitor.text(f"{WEB}/facts/deliveries"))
    assert (
        "Deliveries not collected yet unknown not collected yet Nothing has been collected for"
        in own
    )
    assert "It is collected every hour." in own
    assert "More is needed for 1 data source" in text
    assert "Annotated needs the annotation acme.example/id" in text
    await write(knowing, REF, {}, reasons={"": "rate-limited: 429"})
    text = words(await visitor.text(WEB))
    assert "unknown rate limited The vendor's rate limit was reached" in text


async def test_several_sources_that_were_not_collected_yet_take_one_line(
    start: StartService,
) -> None:
    many = [replace(DELIVERIES, id=f"s{n}", title=f"Source {n}") for n in range(5)]
    service = await start(sources=[*CATALOGS, *many])
    visitor = await signed_in(service)
    await service.push("all", component("web"))
    page = await visitor.text(WEB)
    text = words(page)
    assert "Not collected yet: Source 0 , Source 1 , Source 2 , Source 3 , Source 4 ." in text
    assert text.lower().count("not collected yet") == 1
    assert f"{WEB}/facts/s3" in hrefs(page)
    await write(service, REF, {"deployments": 7}, source=many[2])
    text = words(await visitor.text(WEB))
    assert "Not collected yet: Source 0 , Source 1 , Source 3 , Source 4 ." in text
    assert "Source 2 collected now" in text


async def test_a_value_that_was_kept_shows_its_own_age(knowing: Service) -> None:
    visitor = await signed_in(knowing)
    await knowing.push("all", component("web"))
    await write(knowing, REF, {"deployments": 12, "leadTime": 3.0})
    knowing.time.advance(HOUR)
    reasons = {"deployments": "rate-limited: 429"}
    await write(knowing, REF, {"leadTime": 4.0}, reasons=reasons, passing=frozenset(reasons))
    knowing.time.advance(MINUTE)
    text = words(await visitor.text(WEB))
    assert "collected 1 minute ago" in text
    assert "Deployments 12 stale, from 1 hour ago" in text


async def test_a_number_that_changed_has_a_line(knowing: Service) -> None:
    await knowing.push("all", component("web"))
    for number in range(100):
        knowing.time.advance(HOUR)
        await write(knowing, REF, {"deployments": number, "leadTime": 2.0})
    visitor = await signed_in(knowing)
    page = await visitor.text(WEB)
    assert "Deployments over time" in page
    assert "Latest 99, lowest 40, highest 99." in page  # of the last sixty
    assert "Lead time over time" not in page


async def test_sources_without_room_have_a_page_of_their_own(start: StartService) -> None:
    many = [replace(DELIVERIES, id=f"s{n:02}", title=f"Source {n:02}") for n in range(35)]
    service = await start(sources=[*CATALOGS, *many])
    visitor = await signed_in(service)
    await service.push("all", component("web"))
    await write(service, REF, {"deployments": 7}, source=many[34])
    page = await visitor.text(WEB)
    assert "5 more data sources" in words(page)
    assert words(page).index("Source 34 collected") < words(page).index("Source 00")
    assert f"{WEB}/facts/s33" in hrefs(page)
    own = words(await visitor.text(f"{WEB}/facts/s34"))
    assert "Facts of one data source" in own
    assert "Deployments 7" in own
    assert (await visitor.open(f"{WEB}/facts/nowhere")).headers["location"] == WEB


async def test_who_may_run_sources_can_collect_one_now(service: Service) -> None:
    source = {
        "id": "names",
        "title": "Names",
        "handlerDefinition": {"type": "entity", "config": {"id": "names"}},
        "cadence": "0 * * * *",
        "schema": {"length": {"type": "integer",
                              "extract": {"jmespath": "metadata.name | length(@)"}}},
    }  # fmt: skip
    path = "/api/tech-insights/v1/data-sources/names"
    answer = await service.http.put(path, json=source)
    assert answer.status_code in {200, 201}, answer.text
    await service.push("all", component("web"))
    page = await (await signed_in(service)).text(WEB)
    form = page.split('action="/data-sources/names/runs"')[1].split("</form>")[0]
    assert f'name="entity" value="{REF}"' in form
    assert f'name="next" value="{WEB}"' in form
    assert "Collect now" in form
    assert "Not collected yet: Names (a draft)." in words(page)
    own = words(await (await signed_in(service, "eve")).text(f"{WEB}/facts/names"))
    assert "The data source is a draft, which is collected only on demand." in own
    viewed = await (await signed_in(service, "vic", "viewer")).text(WEB)
    assert "Names" in viewed
    assert "Collect now" not in viewed


async def test_a_source_that_nothing_collects_has_no_button(knowing: Service) -> None:
    await knowing.push("all", component("web"))
    assert "Collect now" not in await (await signed_in(knowing)).text(WEB)


async def test_a_viewer_sees_everything_without_a_button(knowing: Service) -> None:
    await knowing.push("all", whole())
    await write(knowing, REF, {"deployments": 7})
    visitor = await signed_in(knowing, "vic", "viewer")
    for path in (WEB, f"{WEB}/relations", f"{WEB}/raw", f"{WEB}/facts/deliveries/deployments"):
        page = await visitor.text(path)
        forms = [each for tag, each in elements(page) if tag == "form"]
        assert {form["action"] for form in forms if form["method"] == "post"} == {"/sign-out"}
    answer = await browser(knowing).open(WEB)
    assert answer.headers["location"].startswith("/sign-in")
