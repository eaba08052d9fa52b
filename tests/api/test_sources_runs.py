"""Runs of data sources that somebody asks for."""

from typing import Any

import pytest

from tests.api.defining import SOURCES, WEB, define, of_entities, pushed, refusal, shown
from tests.service import Service, component

ON_SQLITE = pytest.mark.parametrize("database_url", ["sqlite"], indirect=True)


@pytest.mark.spec("sources.run-on-demand")
async def test_a_run_is_begun_told_and_listed(service: Service) -> None:
    await service.push("all", component("web"), component("api"))
    await define(service, of_entities())
    answer = await service.http.post(f"{SOURCES}/owners/run")
    assert answer.status_code == 202, answer.text
    run = answer.json()
    assert run == {
        "id": run["id"],
        "whole": True,
        "reason": "asked",
        "state": "running",
        "startedAt": "2026-11-21T12:00:00.000+00:00",
        "finishedAt": None,
        "entities": 2,
        "covered": 0,
        "failed": 0,
        "incomplete": 0,
        "skipped": 0,
        "calls": 0,
        "rateLimitLeft": None,
        "error": None,
        "waitsUntil": None,
    }
    again = await service.http.post(f"{SOURCES}/owners/run", json={})
    assert refusal(again, 409) == "A full run of owners is already in progress."
    of_one = await service.http.post(f"{SOURCES}/owners/run", json={"entity": WEB})
    assert of_one.status_code == 202, of_one.text
    assert (of_one.json()["whole"], of_one.json()["entities"]) == (False, 1)
    listed = (await service.http.get(f"{SOURCES}/owners/runs")).json()["runs"]
    assert listed == [of_one.json(), run]


@ON_SQLITE
@pytest.mark.spec("sources.run-on-demand", "sources.draft-collects-on-demand")
async def test_a_draft_can_be_run(service: Service) -> None:
    await service.push("all", component("web"))
    await define(service, of_entities(), publish=False)
    answer = await service.http.post(f"{SOURCES}/owners/run", json={"entity": WEB})
    assert answer.status_code == 202, answer.text


@ON_SQLITE
async def test_a_run_that_cannot_be_says_why(service: Service, subtests: pytest.Subtests) -> None:
    entity = component("db") | {"kind": "Resource"}
    await service.push("all", component("web"), entity)
    await define(service, of_entities(entityFilter=[{"kind": "component"}]))
    await define(service, pushed())
    config = {"id": "broken", "connection": "gone", "path": "/"}
    handler = {"type": "http", "config": config}
    await define(service, of_entities("broken", handlerDefinition=handler))
    assert "gone" in (await shown(service, "broken"))["problem"]
    cases: list[tuple[str, dict[str, Any], int, str]] = [
        ("owners", {"entity": "component:nobody"}, 404, "no entity component:default/nobody"),
        ("owners", {"entity": "nobody"}, 400, "lacks a kind"),
        ("owners", {"entity": ""}, 400, "not of the form"),
        ("owners", {"entity": "resource:db"}, 409, "entityFilter of owners leaves"),
        ("owners", {"entity": 7}, 400, "The body is not valid"),
        ("owners", {"all": True}, 400, "The body is not valid"),
        ("coverage", {}, 409, "coverage is not collected: its facts are pushed."),
        ("techdocs", {}, 409, "read from the catalog"),
        ("broken", {}, 409, "broken cannot be collected"),
    ]
    for id_, body, status, words in cases:
        with subtests.test(id_=id_, body=body):
            answer = await service.http.post(f"{SOURCES}/{id_}/run", json=body)
            assert words in refusal(answer, status)
