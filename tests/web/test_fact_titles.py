"""What pages call a fact."""

import pytest

from factbook.facts import schema
from factbook.facts.schema import SHAPE_TITLES, Fact
from factbook.integrations import SOURCES as CATALOGS
from factbook.web import formats
from tests.conftest import StartService
from tests.service import Service, component
from tests.web.visiting import signed_in, words


def test_the_name_of_a_fact_is_told_in_words(subtests: pytest.Subtests) -> None:
    cases: list[tuple[str, str | None, str]] = [
        ("heapMiB", "MiB", "Heap"),
        ("sizeMiB", None, "Size MiB"),
        ("builds.imageGB", None, "Image GB"),
        ("codehost.issues.open", None, "Open issues"),
        ("maxHeap", "MiB", "Highest heap"),
        ("minBuildSeconds", "seconds", "Shortest build"),
        ("sloCount", None, "SLO count"),
        ("Code coverage", None, "Code coverage"),
    ]
    for name, unit, title in cases:
        with subtests.test(name=name, unit=unit):
            assert formats.get_fact_title(Fact(name, "integer", unit=unit)) == title


def test_every_fact_of_a_shape_has_a_title_that_says_enough_by_itself() -> None:
    named = [
        f"{shape.name}.{fact.name}"
        for shape in schema.SHAPES
        for fact in schema.shape_facts(shape)
        if shape is not schema.COMPLIANCE
    ]
    assert sorted(SHAPE_TITLES) == sorted(named)
    assert len(set(SHAPE_TITLES.values())) == len(SHAPE_TITLES)


async def test_a_title_of_the_schema_stands_on_every_page_of_the_fact(start: StartService) -> None:
    service: Service = await start(sources=CATALOGS)
    visitor = await signed_in(service)
    await service.push("all", component("web"))
    source = {
        "id": "heap",
        "title": "Heap",
        "handlerDefinition": {"type": "push", "config": {"id": "heap"}},
        "schema": {"mib_b": {"type": "integer", "title": "Memory <in use>"}},
    }
    path = "/api/tech-insights/v1/data-sources/heap"
    assert (await service.http.put(path, json=source)).status_code in {200, 201}
    assert (await service.http.post(f"{path}/publish")).status_code == 200
    item = {"entity": "component:default/web", "facts": {"mib_b": 12}}
    await service.http.post("/api/tech-insights/v1/facts/heap", json={"items": [item]})
    for where in (
        "/catalog/component/default/web",
        "/catalog/component/default/web/facts/heap",
        "/catalog/component/default/web/facts/heap/mib_b",
        "/data-sources/heap",
        "/data-sources/heap/facts/mib_b",
    ):
        assert "Memory <in use>" in words(await visitor.text(where)), where
