"""An entity as it was written: on a page, and as a file."""

import yaml

from tests.service import Service, component
from tests.web.entities import REF, WEB, whole
from tests.web.visiting import signed_in


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
