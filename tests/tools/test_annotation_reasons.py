"""Reasons that an annotation explains: it is named, with the value that was not found."""

from typing import Any

import pytest

from factbook.integrations import SOURCES
from tests.conftest import StartService
from tests.service import Service, component
from tests.tools.everyday import HOST
from tests.tools.sources import record

SLUG = "host.org/slug"


@pytest.fixture
async def filled(start: StartService) -> Service:
    service = await start(sources=[*SOURCES, HOST])
    pointing = component("payments")
    pointing["metadata"]["annotations"] = {SLUG: f"acme/{'gone' * 100}"}
    answer = await service.push("first", pointing, component("bare"))
    assert answer.status_code == 200, answer.text
    await record(service, "component:default/payments", {}, HOST, {"": "not-found"})
    return service


async def codehost(service: Service, name: str) -> dict[str, Any]:
    return await service.facts("get-codehost-metrics", name=name)


@pytest.mark.spec("unknown.annotation-is-named")
async def test_an_annotation_whose_value_was_not_found_is_named_with_it(filled: Service) -> None:
    found = await codehost(filled, "payments")
    told = found["unknownDetails"]["host"]
    assert told.startswith(f"annotation {SLUG} is acme/gone")
    assert len(told) < 150
    raw = await filled.facts("get-entity-facts", dataSourceId="host", name="payments")
    assert raw["unknownReasons"] == {"*": f"not-found: {told}"}


@pytest.mark.spec("unknown.annotation-is-named")
async def test_an_annotation_that_is_not_there_is_named(filled: Service) -> None:
    found = await codehost(filled, "bare")
    assert found["unknownDetails"] == {"host": f"no annotation {SLUG}"}
    raw = await filled.facts("get-entity-facts", dataSourceId="host", name="bare")
    assert raw["unknownReasons"] == {"*": f"no-annotation: no annotation {SLUG}"}


async def test_reasons_of_a_whole_answer_are_one_and_it_is_short(filled: Service) -> None:
    result = await filled.ask("get-codehost-metrics", name="bare")
    reasons = result["structuredContent"]["unknownReasons"]
    assert reasons["mergeTime"] == "not-configured"
    assert len(result["content"][0]["text"]) / 4 < 500
