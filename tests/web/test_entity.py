"""The pages of one entity: what it says, what it is related to, what is known of it."""

import re
from dataclasses import replace
from typing import Any

import msgspec
import pytest
import yaml

from factbook.clock import HOUR, MINUTE
from factbook.facts.schema import Fact
from factbook.sources import SOURCES as CATALOGS
from tests.conftest import StartService
from tests.service import Service, component
from tests.web.knowing import DELIVERIES, SOURCES, write
from tests.web.markup import HOSTILE, elements, hrefs, is_harmless, links
from tests.web.visiting import browser, signed_in, words

WEB = "/catalog/component/default/web"
REF = "component:default/web"


@pytest.fixture
async def knowing(start: StartService) -> Service:
    """A service with the catalog's own sources and two others."""
    return await start(sources=[*CATALOGS, *SOURCES])


def whole(**spec: Any) -> dict[str, Any]:
    """A component that says all there is to say."""
    item = component("web", **spec)
    item["metadata"] |= {
        "title": "The shop",
        "description": "What customers see.",
        "tags": ["go"],
        "labels": {"acme.example/tier": "1"},
        "annotations": {
            "acme.example/board": "https://board.acme.example/web",
            "acme.example/run": "javascript:alert(1)",
        },
        "links": [
            {"url": "https://runbooks.acme.example/web", "title": "Runbook"},
            {"url": "javascript:alert(1)", "title": "A trap"},
            {"url": "mailto:team@acme.example"},
        ],
    }
    return item


async def test_everything_that_an_entity_says_is_shown(service: Service) -> None:
    visitor = await signed_in(service)
    item = whole(
        system="shop", dependsOn=["resource:db", "component:basket"], replicas=3, beta=True
    )
    await service.push("the set", item)
    page = await visitor.text(WEB)
    text = words(page)
    for expected in (
        "The shop Component service production owned by team-a",
        "component:default/web",
        "What customers see.",
        "Owner team-a",
        "System shop",
        "Depends on resource:db component:basket",
        "Replicas 3",
        "Beta yes",
        "Set the set",
        "now by user:tester",
        "acme.example/tier 1",
        "acme.example/board https://board.acme.example/web",
    ):
        assert expected in text
    assert {
        "/catalog/group/default/team-a",
        "/catalog/system/default/shop",
        "/catalog/resource/default/db",
        "/sets/the%20set",
        "/catalog?tag=go",
        "/catalog?kind=component",
        "/catalog/user/default/tester",
    } <= set(hrefs(page))


async def test_only_addresses_of_the_web_are_links(service: Service) -> None:
    visitor = await signed_in(service)
    await service.push("all", whole())
    page = await visitor.text(WEB)
    away = [link for link in links(page) if not link["href"].startswith(("/", "#", "?"))]
    assert {link["href"] for link in away} == {
        "https://runbooks.acme.example/web",
        "https://board.acme.example/web",
    }
    assert {link["rel"] for link in away} == {"noopener noreferrer"}
    assert "A trap javascript:alert(1)" in words(page)
    assert "mailto:team@acme.example" in page


async def test_what_a_kind_misses_is_said(service: Service) -> None:
    visitor = await signed_in(service)
    item = component("web")
    del item["spec"]["lifecycle"]
    await service.push("all", item)
    text = words(await visitor.text(WEB))
    assert "1 problem with this entity spec.lifecycle is required for this kind" in text


async def test_compliance_is_a_checklist_that_says_what_to_do(service: Service) -> None:
    visitor = await signed_in(service)
    await service.push("all", component("web"))
    text = words(await visitor.text(WEB))
    assert "Compliance 3 of 8" in text
    assert "Has a title no Give it one in metadata.title." in text
    assert "Names an owner yes Has documentation no Add the annotation" in text
    assert "Owned by a group yes Related to others no Name its system" in text


async def test_kinds_without_owners_are_not_told_to_have_one(service: Service) -> None:
    visitor = await signed_in(service)
    team = {"apiVersion": "backstage.io/v1alpha1", "kind": "Group", "metadata": {"name": "team-a"},
            "spec": {"type": "team", "children": []}}  # fmt: skip
    await service.push("all", team)
    text = words(await visitor.text("/catalog/group/default/team-a"))
    assert "Owned by a group no The catalog derives no owner for entities of this kind." in text


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
    assert "unknown not allowed Total , Merged The credential may not read this." in text
    assert "It said: hidden from the credential." in text
    assert "unknown switched off Lead time , Failure rate" in text
    assert "The feature is off at the vendor, or is not part of the plan." in text


async def test_sources_that_brought_nothing_say_so(knowing: Service) -> None:
    visitor = await signed_in(knowing)
    await knowing.push("all", component("web"))
    text = words(await visitor.text(WEB))
    assert "Deliveries not collected yet unknown not collected yet Nothing was brought for" in text
    assert "It is collected every hour." in text
    assert "1 data source would need more to know it" in text
    assert "Annotated needs the annotation acme.example/id" in text
    await write(knowing, REF, {}, reasons={"": "rate-limited: 429"})
    text = words(await visitor.text(WEB))
    assert "unknown rate limited The vendor's rate limit was reached" in text


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
    assert "Deployments 12 from 1 hour ago" in text


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
    assert words(page).index("Source 34 collected") < words(page).index("Source 00 not collected")
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
    assert "The data source is a draft, which is collected on demand alone." in words(page)
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
        assert {form["action"] for form in forms} == {"/sign-out"}
    answer = await browser(knowing).open(WEB)
    assert answer.headers["location"].startswith("/sign-in")


async def test_relations_are_drawn_and_listed(service: Service) -> None:
    visitor = await signed_in(service)
    await service.push(
        "all", whole(dependsOn=["component:basket", "component:gone"]),
        component("basket"), component("mails", dependsOn=["component:web"]),
    )  # fmt: skip
    page = await visitor.text(WEB)
    text = words(page)
    assert "dependency of 1, owned by 1, depends on 2." in text
    assert "depends on gone not in the catalog" in text
    assert "/catalog/component/default/mails" in hrefs(page)
    # What the spec names is linked; the picture and its list lead to what there is.
    assert hrefs(page).count("/catalog/component/default/gone") == 1
    assert hrefs(page).count("/catalog/component/default/basket") > 2


async def test_hundreds_of_relations_are_paged_each_once(service: Service) -> None:
    visitor = await signed_in(service)
    team = {"apiVersion": "backstage.io/v1alpha1", "kind": "Group", "metadata": {"name": "team-a"},
            "spec": {"type": "team", "children": ["team-b"]}}  # fmt: skip
    await service.push("all", team, *(component(f"c{number:03}") for number in range(350)))
    page = await visitor.text("/catalog/group/default/team-a")
    assert "and 342 more" in page
    assert len(page) < 60_000
    listed = "/catalog/group/default/team-a/relations?type=ownerOf"
    assert listed in hrefs(page)
    found, path = [], listed
    while path:
        page = await visitor.text(path)
        found += re.findall(r"<td class=\"mono wrap\">component:default/(c\d+)", page)
        link = re.search(r'href="([^"]+)" rel="next"', page)
        path = link[1].replace("&amp;", "&") if link else ""
    assert found == [f"c{number:03}" for number in range(350)]
    assert "team-b not in the catalog" in words(
        await visitor.text("/catalog/group/default/team-a/relations?type=parentOf")
    )
    assert "No relations here" in await visitor.text(listed, type="nothing")


@pytest.mark.parametrize("page", ["0", "-1", "x", "99999999", "1" * 5000])
async def test_a_page_of_relations_that_cannot_be_is_refused(service: Service, page: str) -> None:
    visitor = await signed_in(service)
    await service.push("all", component("web"))
    await visitor.text(f"{WEB}/relations?page={page}", 400)


async def test_the_raw_entity_can_be_copied_and_downloaded(service: Service) -> None:
    visitor = await signed_in(service)
    item = whole()
    item["metadata"]["description"] = "Two\nlines: of text\n"
    await service.push("all", item)
    entity = await service.catalog(REF)
    page = await visitor.text(f"{WEB}/raw")
    assert "&#34;kind&#34;: &#34;Component&#34;" in page
    assert "description: |" in page
    as_json = await visitor.open(f"{WEB}/raw.json")
    assert as_json.headers["content-type"] == "application/json"
    assert as_json.json() == entity
    as_yaml = await visitor.open(f"{WEB}/raw.yaml")
    assert as_yaml.headers["content-type"] == "application/yaml; charset=utf-8"
    assert yaml.safe_load(as_yaml.text) == entity
    for answer, ending in ((as_json, "json"), (as_yaml, "yaml")):
        assert answer.headers["x-content-type-options"] == "nosniff"
        assert answer.headers["content-disposition"] == f'attachment; filename="web.{ending}"'


async def test_long_documents_are_bounded_on_pages_and_whole_in_files(service: Service) -> None:
    visitor = await signed_in(service)
    api = component("big", type="openapi", definition="line of an API\n" * 40_000) | {"kind": "API"}
    await service.push("all", api)
    page = await visitor.text("/catalog/api/default/big")
    assert "Definition" in page
    assert "The beginning; all of it is under" in page
    assert len(page) < 100_000
    raw = await visitor.text("/catalog/api/default/big/raw")
    assert "It is too long to be shown here." in raw
    answer = await visitor.open("/catalog/api/default/big/raw.yaml")
    assert yaml.safe_load(answer.text)["spec"]["definition"] == api["spec"]["definition"]


async def test_an_unknown_entity_names_near_ones(service: Service) -> None:
    visitor = await signed_in(service)
    await service.push("all", component("checkout"), component("checkout-api"), component("zebra"))
    page = await visitor.text("/catalog/component/default/chekout", 404)
    assert "There is no such entity" in page
    found = [href for href in hrefs(page) if href.startswith("/catalog/component")]
    assert found == [
        "/catalog/component/default/checkout",
        "/catalog/component/default/checkout-api",
    ]
    other = await visitor.text("/catalog/resource/elsewhere/checkout", 404)
    assert "/catalog/component/default/checkout" in hrefs(other)
    for path in ("relations", "raw", "raw.json", "facts/deliveries", "facts/deliveries/onCall"):
        await visitor.text(f"/catalog/component/default/nowhere/{path}", 404)


@pytest.mark.parametrize("name", [HOSTILE.replace("/", "%2F"), "%00", "a" * 5000, "%E2%80%AE", "%"])
async def test_an_impossible_name_is_not_found(service: Service, name: str) -> None:
    visitor = await signed_in(service)
    answer = await visitor.open(f"/catalog/component/default/{name}")
    assert answer.status_code == 404
    assert is_harmless(answer.text)


@pytest.mark.parametrize(
    "name", ["Master Account", "a?b=c&d#e", "100%25", "Ünïcode ☃", "..;a", "'\"<b>"]
)
async def test_names_may_hold_any_character(service: Service, name: str) -> None:
    visitor = await signed_in(service)
    pushed = await service.push(
        "all", component(name), component("other", dependsOn=[f"component:{name}"])
    )
    assert pushed.status_code == 200, pushed.text
    listed = await visitor.text("/catalog?order=kind")
    path = next(href for href in hrefs(listed) if href.startswith("/catalog/component/default/")
                and not href.endswith("/other"))  # fmt: skip
    page = await visitor.text(path)
    assert "dependency of 1" in words(page)
    assert is_harmless(page)
    assert (await visitor.open(f"{path}/raw.json")).json()["metadata"]["name"] == name


async def test_hostile_content_stays_text_everywhere(start: StartService) -> None:
    texts = (Fact("text", "string", HOSTILE, HOSTILE), Fact(HOSTILE, "string", HOSTILE),
             Fact("time", "datetime"), Fact("items", "set", HOSTILE), Fact("data", "object"),
             Fact("figure", "float", HOSTILE, HOSTILE), Fact(f"{HOSTILE}.x", "integer"),
             Fact("link", "string"), Fact("gone", "string"))  # fmt: skip
    source = replace(DELIVERIES, title=HOSTILE, description=HOSTILE, schema=texts)
    service = await start(sources=[*CATALOGS, source, replace(
        SOURCES[1], title=HOSTILE, entity_filter=[{f"metadata.{HOSTILE}": HOSTILE}])])  # fmt: skip
    visitor = await signed_in(service)
    item = component("web", type=HOSTILE, lifecycle=HOSTILE, owner=HOSTILE, system=HOSTILE,
                     dependsOn=[HOSTILE, "javascript:alert(1)"], **{HOSTILE: HOSTILE},
                     other={"a": HOSTILE}, listed=[HOSTILE, {"b": HOSTILE}])  # fmt: skip
    item["metadata"] |= {
        "title": HOSTILE,
        "description": HOSTILE * 20,
        "tags": [HOSTILE],
        "labels": {HOSTILE: HOSTILE},
        "annotations": {HOSTILE: HOSTILE, "run": " javascript:alert(1)", "go": "java\tscript:x()"},
        "links": [{"url": f"https://a.example/{HOSTILE}", "title": HOSTILE},
                  {"url": "JavaScript:alert(1)", "title": HOSTILE},
                  {"url": "data:text/html,<script>alert(1)</script>"}],
    }  # fmt: skip
    pushed = await service.push("all", item)
    assert pushed.status_code == 200, pushed.text
    values = {"text": HOSTILE, HOSTILE: HOSTILE * 50, "time": "2026-11-21T09:00:00Z",
              "items": [HOSTILE, *map(str, range(30))], "data": {HOSTILE: [HOSTILE]},
              "figure": 1e300, f"{HOSTILE}.x": -(10**17),
              "link": "javascript:alert(1)"}  # fmt: skip
    for number in range(3):
        service.time.advance(HOUR)
        await write(service, REF, values | {"figure": float(number)}, source=source,
                    reasons={"gone": f"upstream-error: {HOSTILE}"})  # fmt: skip
    paths = [WEB, f"{WEB}/relations", f"{WEB}/raw", f"{WEB}/facts/deliveries"]
    page = await visitor.text(WEB)
    paths += [href for href in hrefs(page) if "/facts/" in href]
    assert len(paths) > 15
    for path in paths:
        assert is_harmless(await visitor.text(path))
    assert msgspec.json.decode((await visitor.open(f"{WEB}/raw.json")).content)["metadata"]["title"]
    assert len(yaml.safe_load((await visitor.open(f"{WEB}/raw.yaml")).text)) >= 4
