"""Previews of results over HTTP: of entities as the documents of a pull request have them."""

from typing import Any

import httpx2
import pytest

from tests.api.checking import OWNED, RESULTS, check, evaluated, put, with_source
from tests.api.defining import item, problems, push, refusal
from tests.api.test_check_results import found
from tests.conftest import StartService
from tests.service import Service, component

PREVIEW = f"{RESULTS}/preview"
WEB, API, NEW = (f"component:default/{name}" for name in ("web", "api", "new"))
SLUG = {"github.com/project-slug": "acme/shop"}
README = {
    "source": "github",
    "fact": "repository.filePaths",
    "operator": "contains",
    "value": "README.md",
}
EXISTS = {"source": "entity-ownership", "fact": "ownerExists", "operator": "equal", "value": True}


@pytest.fixture
async def service(start: StartService) -> Service:
    """Two components with owners, and checks of documents, of files and of pushed facts."""
    service = await start(integrations={"github": {"default": {"token": "secret"}}})
    await with_source(service)
    pushed = await service.push("shop", component("web"), component("api"))
    assert pushed.status_code == 200
    await push(service, item(WEB, lines=90), item(API, lines=10))
    fix = {"link": "https://wiki.test/{{ metadata.name }}"}
    messages = {"fail": "{{ metadata.name }} has no owner"}
    await put(service, check("owned", rule={**OWNED, "operator": "isKnown"}), publish=True)
    named = {**OWNED, "operator": "equal", "value": "team-a"}
    await put(service, check("team", rule=named, fix=fix, messages=messages), publish=True)
    production = {"kind": "component", "spec.lifecycle": "production"}
    await put(service, check("covered", appliesTo=production), publish=True)
    await evaluated(service)
    return service


async def preview(service: Service, *items: dict[str, Any], **more: Any) -> dict[str, Any]:
    answer = await service.http.post(PREVIEW, json={"items": list(items), **more})
    assert answer.status_code == 200, answer.text
    shown: dict[str, Any] = answer.json()
    return shown


def told(answer: dict[str, Any]) -> dict[str, tuple[Any, ...]]:
    """By check and entity: before, after, whether it is decided, whether it is a new failure."""
    return {
        f"{one['checkId']} {one['entityRef']}": (
            one.get("now"),
            one["then"],
            one["decided"],
            one["newFailure"],
        )
        for one in answer["results"]
    }


async def test_results_are_told_for_entities_where_they_are_and_nothing_is_written(
    service: Service,
) -> None:
    before = await found(service)
    answer = await preview(service, component("web", owner="team-b"), component("api"))
    assert answer["entities"] == [
        {"entityRef": WEB, "change": "updated"},
        {"entityRef": API, "change": "unchanged"},
    ]
    assert told(answer) == {f"team {WEB}": ("pass", "fail", True, True)}
    assert (answer["changed"], answer["newFailures"]) == (1, 1)
    [one] = answer["results"]
    assert (one["title"], one["severity"]) == ("Tests cover enough", "required")
    assert (one["message"], one["fix"]) == (
        "web has no owner",
        {"link": "https://wiki.test/web"},
    )
    assert one["because"][0]["value"] == "team-b"
    assert await found(service) == before
    shown = (await service.http.get("/api/catalog/entities/by-name/component/default/web")).json()
    assert shown["spec"]["owner"] == "team-a"
    assert (await service.push("shop", component("web"), component("api"))).json()["changes"] == {
        "added": 0,
        "updated": 0,
        "removed": 0,
        "unchanged": 2,
    }


async def test_a_failure_by_facts_from_elsewhere_is_no_new_failure(service: Service) -> None:
    gone = component("api", lifecycle="experimental")
    pushed = await service.push("shop", component("web"), gone)
    assert pushed.status_code == 200
    answer = await preview(service, component("api"))
    assert told(answer) == {f"covered {API}": ("not-applicable", "fail", False, False)}
    assert answer["newFailures"] == 0
    strict = check("covered", onUnknown="fail")
    await put(service, strict, publish=True)
    await evaluated(service)
    assert told(await preview(service, component("new")))[f"covered {NEW}"] == (
        None,
        "fail",
        False,
        False,
    )


async def test_what_documents_decide_counts_whatever_else_the_check_reads(
    service: Service,
) -> None:
    covered = check()["rule"]
    named = {**OWNED, "operator": "equal", "value": "team-a"}
    other = {"source": "checks", "fact": "both", "operator": "equal", "value": "pass"}
    await put(service, check("both", rule={"all": [covered, named]}), publish=True)
    await put(service, check("follows", rule=other), publish=True)
    await put(service, check("guess", rule={"not": {**covered, "operator": "isKnown"}}))
    await put(service, check("hint", rule=named, severity="advisory"), publish=True)
    await put(service, check("later", rule=named, effectiveFrom="2027-01-01"), publish=True)
    await evaluated(service)
    shown = told(await preview(service, component("web", owner="team-b")))
    assert shown == {
        f"both {WEB}": ("pass", "fail", True, True),
        f"follows {WEB}": ("pass", "fail", True, True),
        f"hint {WEB}": ("pass", "fail", True, False),
        f"later {WEB}": ("pass", "fail", True, False),
        f"team {WEB}": ("pass", "fail", True, True),
    }


async def test_a_new_entity_has_the_results_that_its_documents_decide(service: Service) -> None:
    answer = await preview(service, component("new", owner="team-b"))
    assert answer["entities"] == [{"entityRef": NEW, "change": "added"}]
    assert told(answer) == {
        f"covered {NEW}": (None, "unknown", False, False),
        f"owned {NEW}": (None, "pass", True, False),
        f"team {NEW}": (None, "fail", True, True),
    }


async def test_an_owner_that_comes_with_the_documents_is_there_for_others(
    service: Service,
) -> None:
    await put(service, check("known-owner", rule=EXISTS), publish=True)
    await evaluated(service)
    group = {"kind": "Group", "metadata": {"name": "team-a"}, "spec": {"type": "team"}}
    group["spec"] = {"type": "team", "children": []}
    answer = await preview(service, {"apiVersion": "backstage.io/v1alpha1", **group})
    shown = told(answer)
    assert shown[f"known-owner {WEB}"] == ("fail", "pass", True, False)
    assert shown[f"known-owner {API}"] == ("fail", "pass", True, False)


async def test_files_of_the_tree_answer_what_the_code_host_says_of_them(service: Service) -> None:
    await put(service, check("readme", rule=README), publish=True)
    await evaluated(service)
    hosted = component("web")
    hosted["metadata"]["annotations"] = SLUG
    without = told(await preview(service, hosted, paths=["catalog-info.yaml"]))
    assert without == {f"readme {WEB}": ("unknown", "fail", True, True)}
    there = told(await preview(service, hosted, paths=["README.md", "src/a.py"]))
    assert there == {f"readme {WEB}": ("unknown", "pass", True, False)}
    assert told(await preview(service, hosted)) == {}
    elsewhere = await preview(service, component("web"), paths=["README.md"])
    assert told(elsewhere) == {}


async def test_what_an_importer_added_stays(service: Service) -> None:
    imported = component("web")
    marks = {"factbook/import-origin": "github/acme/shop", **SLUG}
    imported["metadata"]["annotations"] = {**marks, "pagerduty.com/service-id": "P1"}
    assert (await service.push("shop", imported, component("api"))).status_code == 200
    paged = {"source": "entity", "operator": "isKnown"}
    slug = {**paged, "fact": "metadata.annotations.github.com/project-slug"}
    duty = {**paged, "fact": "metadata.annotations.pagerduty.com/service-id"}
    await put(service, check("slug", rule=slug), publish=True)
    await put(service, check("duty", rule=duty), publish=True)
    await evaluated(service)
    assert told(await preview(service, component("web"))) == {
        f"duty {WEB}": ("pass", "fail", True, True)
    }


async def test_documents_that_are_no_entities_are_all_refused_with_their_paths(
    service: Service,
) -> None:
    broken = component("web")
    del broken["metadata"]["name"]
    body = {"items": [component("api"), broken, {"kind": "Component"}]}
    answer = await service.http.post(PREVIEW, json=body)
    assert answer.status_code == 400
    assert "items[1].metadata.name" in problems(answer)
    assert any(path.startswith("items[2]") for path in problems(answer))
    assert "items" in refusal(await service.http.post(PREVIEW, json={"items": []}), 400)


async def test_a_preview_needs_every_permission_to_read_and_none_to_write(
    service: Service,
) -> None:
    # With the last, checks may be read as well.
    reading = ("catalog.entity.read", "tech-insights.data-source.read")
    body = {"items": [component("web")]}

    async def asked(*permissions: str) -> httpx2.Response:
        async with service.client(await service.token(*permissions)) as client:
            return await client.post(PREVIEW, json=body)

    assert (await asked(*reading)).status_code == 200
    for left_out in reading:
        some = [one for one in reading if one != left_out]
        assert left_out in refusal(await asked(*some), 403)
