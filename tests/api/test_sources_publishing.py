"""Publishing data sources: what is shown when, and the version that says what changed."""

import asyncio
from typing import Any

import pytest

from tests.api.defining import (
    FACTS,
    LINES,
    SOURCES,
    TOOL,
    WEB,
    define,
    history,
    item,
    latest,
    problems,
    push,
    pushed,
    refusal,
    shown,
)
from tests.conftest import StartService
from tests.service import Service, component


@pytest.mark.spec("sources.draft-until-published")
async def test_what_is_put_shows_only_once_it_is_published(service: Service) -> None:
    await define(service, pushed())
    service.time.advance(60_000)
    await define(service, pushed(title="Tested"), publish=False)
    found = await shown(service)
    assert (found["title"], found["version"], found["draft"]) == ("Coverage", "1.0.0", False)
    assert found["definition"]["pending"] is True
    assert found["definition"]["draft"]["title"] == "Tested"
    await define(service, pushed(title="Tested"))
    found = await shown(service)
    assert (found["title"], found["version"]) == ("Tested", "1.0.1")
    assert [one["version"] for one in found["definition"]["versions"]] == ["1.0.1", "1.0.0"]


@pytest.mark.spec("sources.the-same-document-changes-nothing")
@pytest.mark.parametrize("published", [True, False])
async def test_a_document_that_says_the_same_changes_nothing(
    service: Service, published: bool
) -> None:
    await define(service, pushed(), publish=published)
    before = await shown(service)
    service.time.advance(60_000)
    turned = dict(reversed(pushed().items())) | {"schema": {"tool": TOOL, "lines": LINES}}
    for document in (pushed(), turned):
        await define(service, document, publish=published)
        assert await shown(service) == before


async def test_what_says_the_same_as_what_is_published_ends_the_draft(service: Service) -> None:
    await define(service, pushed())
    await define(service, pushed(title="Other"), publish=False)
    await define(service, pushed(), publish=False)
    found = await shown(service)
    assert found["definition"]["pending"] is False
    await service.http.post(f"{SOURCES}/coverage/publish")
    assert (await shown(service))["version"] == "1.0.0"


MORE = {"lines": LINES, "tool": TOOL, "branches": {"type": "integer"}}


@pytest.mark.spec("sources.version-says-what-changed")
async def test_the_version_says_what_a_publication_changed(
    service: Service, subtests: pytest.Subtests
) -> None:
    cases: list[tuple[dict[str, Any], str]] = [
        ({"title": "Tested"}, "1.0.1"),
        ({"schema": {"lines": LINES | {"unit": "lines"}, "tool": TOOL}}, "1.0.1"),
        ({"schema": MORE}, "1.1.0"),
        ({"schema": MORE, "title": "Tested"}, "1.1.0"),
        ({"schema": {"lines": LINES}}, "2.0.0"),
        ({"schema": {"lines": {"type": "float"}, "tool": TOOL}}, "2.0.0"),
        ({"schema": {"lines": LINES, "branches": LINES}}, "2.0.0"),
    ]
    for number, (change, version) in enumerate(cases):
        with subtests.test(change=change):
            id_ = f"coverage-{number}"
            await define(service, pushed(id_))
            await define(service, pushed(id_, **change), publish=False)
            answer = await service.http.post(f"{SOURCES}/{id_}/publish", json={"force": True})
            assert answer.json()["version"] == version


@pytest.mark.spec("sources.breaking-changes-need-force")
async def test_a_removed_or_retyped_fact_is_refused_without_force(service: Service) -> None:
    await service.push("all", component("web"))
    await define(service, pushed())
    await push(service, item(lines=80, tool="cov"))
    await define(service, pushed(schema={"tool": {"type": "boolean"}}), publish=False)
    for body in ({}, {"force": False}):
        answer = await service.http.post(f"{SOURCES}/coverage/publish", json=body)
        assert "lines is removed; tool was string, is boolean" in refusal(answer, 409)
        assert problems(answer) == {
            "schema.lines": "is removed",
            "schema.tool": "was string, is boolean",
        }
    assert (await shown(service))["version"] == "1.0.0"
    assert (await latest(service)) == {WEB: {"lines": 80, "tool": "cov"}}
    answer = await service.http.post(f"{SOURCES}/coverage/publish", json={"force": True})
    assert answer.json()["version"] == "2.0.0"
    # The values of the old types are in history alone.
    assert await latest(service) == {}
    assert [one["facts"] for one in await history(service)] == [{"lines": 80, "tool": "cov"}]


@pytest.mark.spec("sources.breaking-changes-need-force")
async def test_facts_of_a_draft_that_are_removed_or_retyped_are_gone(service: Service) -> None:
    await service.push("all", component("web"))
    await define(service, pushed(), publish=False)
    await push(service, item(lines=80, tool="cov"))
    await define(service, pushed(schema={"lines": LINES, "tool": LINES}))
    assert await latest(service) == {WEB: {"lines": 80}}
    assert (await shown(service))["version"] == "1.0.0"


@pytest.mark.both_databases
@pytest.mark.spec("sources.ids-are-not-taken-twice")
async def test_of_many_that_define_or_publish_at_once_one_does(service: Service) -> None:
    made = await asyncio.gather(*(service.http.post(SOURCES, json=pushed()) for _ in range(6)))
    assert sorted(answer.status_code for answer in made) == [201, *[409] * 5]
    path = f"{SOURCES}/coverage/publish"
    published = await asyncio.gather(*(service.http.post(path) for _ in range(6)))
    assert {answer.status_code for answer in published} == {200}
    found = await shown(service)
    assert (found["version"], len(found["definition"]["versions"])) == ("1.0.0", 1)


async def test_another_process_sees_what_was_defined_at_once(
    start: StartService,
) -> None:
    one, other = await start(), await start()
    await one.push("all", component("web"))
    assert (await other.http.get(SOURCES)).json()["totalCount"] == 3
    await define(one, pushed())
    assert (await other.http.get(SOURCES)).json()["totalCount"] == 4
    assert (await push(other, item(lines=1)))["acceptedItems"] == 1
    assert await latest(one) == {WEB: {"lines": 1}}
    await define(one, pushed(schema=MORE))
    assert (await push(other, item(timestamp="2026-11-21T12:01:00Z", branches=2)))[
        "acceptedItems"
    ] == 1
    assert (await one.http.delete(f"{SOURCES}/coverage")).status_code == 204
    refusal(await other.http.get(f"{FACTS}/coverage"), 404)
