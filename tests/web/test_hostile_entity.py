"""Entities with names and contents that could break their pages."""

from dataclasses import replace

import msgspec
import pytest
import yaml

from factbook.clock import HOUR
from factbook.facts.schema import Fact
from factbook.integrations import SOURCES as CATALOGS
from tests.conftest import StartService
from tests.service import Service, component
from tests.web.entities import REF, WEB
from tests.web.knowing import DELIVERIES, SOURCES, write
from tests.web.markup import HOSTILE, hrefs, is_harmless
from tests.web.visiting import signed_in, words


async def test_an_impossible_name_is_not_found(service: Service, subtests: pytest.Subtests) -> None:
    visitor = await signed_in(service)
    for name in [HOSTILE.replace("/", "%2F"), "%00", "a" * 5000, "%E2%80%AE", "%"]:
        with subtests.test(name=name):
            answer = await visitor.open(f"/catalog/component/default/{name}")
            assert answer.status_code == 404
            assert is_harmless(answer.text)


async def test_names_may_hold_any_character(service: Service, subtests: pytest.Subtests) -> None:
    visitor = await signed_in(service)
    for name in ["Master Account", "a?b=c&d#e", "100%25", "Ünïcode ☃", "..;a", "'\"<b>"]:
        with subtests.test(name=name):
            pushed = await service.push(
                "all", component(name), component("other", dependsOn=[f"component:{name}"])
            )
            assert pushed.status_code == 200, pushed.text
            listed = await visitor.text("/catalog?order=kind")
            path = next(
                href
                for href in hrefs(listed)
                if href.startswith("/catalog/component/default/") and not href.endswith("/other")
            )
            page = await visitor.text(path)
            assert "dependency of 1" in words(page)
            assert is_harmless(page)
            assert (await visitor.open(f"{path}/raw.json")).json()["metadata"]["name"] == name


@pytest.mark.slow
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
