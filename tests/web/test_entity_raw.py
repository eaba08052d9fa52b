"""An entity as it was written: on a page, and as a file."""

import pytest
import yaml

from factbook import safe_yaml
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


async def test_a_text_of_a_downloaded_entity_is_a_text_in_yaml_1_1_and_in_1_2(
    service: Service,
) -> None:
    visitor = await signed_in(service)
    texts = ["on", "0755", "08", "1e3", "0o17", "12:30:45", "2026-02-03", "1_000", "<<", "~", "x"]
    await service.push("all", component("web", texts=texts, numbers=[8, 1.5, 1e300, True, None]))
    answer = await visitor.open(f"{WEB}/raw.yaml")
    for reader in (yaml.CSafeLoader, safe_yaml.Loader):
        read = yaml.load(answer.text, reader)  # noqa: S506 - both make plain values only
        assert read["spec"]["texts"] == texts
        assert read["spec"]["numbers"] == [8, 1.5, 1e300, True, None]
    for text in texts:
        assert (f"'{text}'" in answer.text) == (text != "x")


@pytest.mark.slow
async def test_long_documents_are_bounded_on_pages_and_whole_in_files(service: Service) -> None:
    visitor = await signed_in(service)
    api = component("big", type="openapi", definition="line of an API\n" * 40_000) | {"kind": "API"}
    await service.push("all", api)
    page = await visitor.text("/catalog/api/default/big")
    assert "Definition" in page
    assert "Only the beginning; all of it is under" in page
    assert len(page) < 100_000
    raw = await visitor.text("/catalog/api/default/big/raw")
    assert "It is too long to show here." in raw
    answer = await visitor.open("/catalog/api/default/big/raw.yaml")
    assert yaml.safe_load(answer.text)["spec"]["definition"] == api["spec"]["definition"]
