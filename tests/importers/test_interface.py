"""The interface of importers, and their sets beside those of pushes."""

from dataclasses import replace
from urllib.parse import quote

import pytest

from factbook.clock import HOUR
from factbook.importers.snapshot import ReadingProblem
from tests.conftest import StartService
from tests.events.feed import events
from tests.importers.madeup import ImportWorld, known_to
from tests.importers.reading import PART, SET, Imports, item, part
from tests.service import PUSH, Service, component
from tests.web.test_importers import fields as of_importer
from tests.web.visiting import signed_in

PARTS = "/api/importers/v1/parts"
IMPORTERS = "/api/importers/v1/importers"
ENCODED = f"{PUSH}/sets/{quote(SET, safe='')}"


@pytest.fixture
def imports(service: Service) -> Imports:
    return Imports(service.state.database)


async def test_a_part_is_shown_and_what_it_holds_is_applied(
    service: Service, imports: Imports
) -> None:
    await imports.write(part(item("a"), item("b")))
    await imports.write(part())
    [listed] = (await service.http.get(PARTS)).json()["parts"]
    assert (listed["set"], listed["state"], listed["heldCount"]) == (SET, "held", 2)
    shown = (await service.http.get(f"{PARTS}/fake/{PART}")).json()
    assert shown["held"] == ["component:default/a", "component:default/b"]
    applied = await service.http.post(f"{PARTS}/fake/{PART}/apply")
    assert (applied.status_code, applied.json()["state"]) == (200, "complete")
    assert await imports.names() == []


async def test_an_importer_is_listed_and_runs_when_it_is_asked(service: Service) -> None:
    world = ImportWorld(service.state.database)
    known_to(service, world.system.importer(every=None))
    [listed] = (await service.http.get(IMPORTERS)).json()["importers"]
    assert (listed["state"], listed["lastRun"], listed["nextRunAt"]) == ("new", None, None)
    for _ in range(2):
        asked = await service.http.post(f"{IMPORTERS}/fake/run")
        assert (asked.status_code, asked.json()["state"]) == (202, "waiting")
    await world.process.work()
    [listed] = (await service.http.get(IMPORTERS)).json()["importers"]
    assert (listed["state"], listed["completeAt"]) == ("complete", listed["lastRun"]["startedAt"])
    assert (listed["lastRun"]["reason"], listed["lastRun"]["calls"]) == ("asked", 1)
    assert len(await world.runs()) == 1


async def test_an_importer_is_shown_with_its_runs_parts_and_problems(service: Service) -> None:
    world = ImportWorld(service.state.database)
    known_to(service, world.system.importer())
    problem = ReadingProblem("github.com/acme/shop", "is no YAML", "catalog-info.yaml", 7)
    world.system.parts = [part(item("a"), problems=[problem]), part(item("b"), key="old")]
    await world.process.work()
    world.time.advance(HOUR)
    world.system.parts = [part()]
    await world.process.work()
    shown = (await service.http.get(f"{IMPORTERS}/fake")).json()
    assert (shown["state"], shown["intervalSeconds"], shown["made"]) == ("held", 3600, None)
    assert [one["state"] for one in shown["runs"]] == ["held", "complete"]
    assert [one["part"] for one in shown["parts"]] == [PART]
    assert shown["parts"][0]["held"] == ["component:default/a"]
    assert (await service.http.get(f"{IMPORTERS}/none")).status_code == 404


async def test_problems_name_the_page_of_their_file(service: Service, imports: Imports) -> None:
    problem = ReadingProblem("github.com/acme/shop", "is no YAML", "catalog-info.yaml", 7)
    await imports.write_as("github", part(problems=[problem]))
    await imports.write_as("aws", part(problems=[problem]))
    urls = [
        (await service.http.get(f"{PARTS}/{importer}/{PART}")).json()["problems"][0]["url"]
        for importer in ("github", "aws")
    ]
    assert urls == ["https://github.com/acme/shop/blob/HEAD/catalog-info.yaml#L7", None]


async def test_an_importer_that_cannot_be_used_is_listed_with_the_reason(
    service: Service, start: StartService
) -> None:
    visitor = await signed_in(service)
    await visitor.done("/importers/new", **of_importer())
    made = (await service.http.get(f"{IMPORTERS}/github-acme")).json()["made"]
    assert (made["createdBy"], made["updatedBy"]) == ("user:default/ada", "user:default/ada")
    other = await start(token_key="another key of tests, also long enough")
    async with other.client(await other.token("catalog.entity.read")) as reader:
        [listed] = (await reader.get(IMPORTERS)).json()["importers"]
        shown = (await reader.get(f"{IMPORTERS}/github-acme")).json()
    assert (listed["state"], listed["kind"], listed["nextRunAt"]) == ("unusable", "github", None)
    assert "sealed under another token key" in listed["problem"]
    assert (shown["state"], shown["parts"]) == ("unusable", [])


async def test_what_an_importer_left_behind_is_found_by_its_parts(
    service: Service, imports: Imports
) -> None:
    await imports.write(part(item("a")))
    answer = await service.http.get(f"{IMPORTERS}/fake")
    assert (answer.status_code, "/parts" in answer.json()["error"]["message"]) == (404, True)


async def test_an_importer_is_asked_to_run_by_who_may_write_sets(service: Service) -> None:
    known_to(service)
    async with service.client(await service.token("catalog.entity.read")) as reader:
        assert (await reader.get(IMPORTERS)).status_code == 200
        assert (await reader.post(f"{IMPORTERS}/fake/run")).status_code == 403
    assert (await service.http.post(f"{IMPORTERS}/none/run")).status_code == 404


async def test_what_is_discarded_stays(service: Service, imports: Imports) -> None:
    await imports.write(part(item("a")))
    await imports.write(part())
    discarded = await service.http.post(f"{PARTS}/fake/{PART}/discard")
    assert (discarded.json()["state"], discarded.json()["held"]) == ("complete", [])
    await imports.write(part())
    assert await imports.names() == ["a"]


@pytest.mark.parametrize("quotes", ['"', ""])
@pytest.mark.parametrize("action", ["apply", "discard"])
async def test_a_decision_is_refused_when_another_reading_came_since(
    service: Service, imports: Imports, action: str, quotes: str
) -> None:
    await imports.write(part(item("a"), item("b")))
    await imports.write(part())
    seen = await etag(service, quotes)
    await imports.write(part())
    path = f"{PARTS}/fake/{PART}/{action}"
    late = await service.http.post(path, headers={"if-match": seen})
    assert (late.status_code, await imports.names()) == (412, ["a", "b"])
    wrong = await service.http.post(path, headers={"if-match": "now"})
    assert wrong.status_code == 400
    tag = await etag(service, quotes)
    assert (await service.http.post(path, headers={"if-match": tag})).status_code == 200


@pytest.mark.parametrize("action", ["apply", "discard"])
async def test_a_decision_is_refused_when_an_event_found_some_of_it_again(
    service: Service, imports: Imports, action: str
) -> None:
    await imports.write(part(item("a"), item("b"), item("c")))
    await imports.write(part())
    seen = await etag(service, '"')
    await imports.write(replace(part(item("a")), only=frozenset({"repository a"})))
    path = f"{PARTS}/fake/{PART}/{action}"
    late = await service.http.post(path, headers={"if-match": seen})
    assert (late.status_code, await imports.names()) == (412, ["a", "b", "c"])
    tag = await etag(service, '"')
    assert (await service.http.post(path, headers={"if-match": tag})).status_code == 200
    assert await imports.names() == (["a"] if action == "apply" else ["a", "b", "c"])
    assert "component:default/a" not in (await imports.record()).spared


async def etag(service: Service, quotes: str) -> str:
    """The tag of the part, between other quotes."""
    answer = await service.http.get(f"{PARTS}/fake/{PART}")
    return answer.headers["etag"].replace('"', quotes)


async def test_a_decision_needs_the_right_to_write_sets(service: Service, imports: Imports) -> None:
    await imports.write(part(item("a")))
    await imports.write(part())
    async with service.client(await service.token("catalog.entity.read")) as reader:
        assert (await reader.get(PARTS)).status_code == 200
        assert (await reader.post(f"{PARTS}/fake/{PART}/apply")).status_code == 403
    assert await imports.names() == ["a"]


async def test_an_imported_set_is_read_restored_and_deleted_as_others_are(
    service: Service, imports: Imports
) -> None:
    await imports.write(part(item("a"), item("b")))
    await imports.write(part(item("a")))
    assert [one["entityRef"] for one in (await service.http.get(ENCODED)).json()["items"]] == [
        "component:default/a"
    ]
    revisions = (await service.http.get(f"{ENCODED}/revisions")).json()["revisions"]
    assert [one["createdBy"] for one in revisions] == ["importer:default/fake"] * 2
    restored = await service.http.post(f"{ENCODED}/revisions/1/restore")
    assert (restored.status_code, await imports.names()) == (200, ["a", "b"])
    assert (await service.http.delete(ENCODED)).status_code == 200
    assert await imports.names() == []


@pytest.mark.parametrize("method", ["PUT", "POST"])
async def test_nobody_pushes_into_the_set_of_an_importer(
    service: Service, imports: Imports, method: str
) -> None:
    await imports.write(part(item("a")))
    body = {"items": [component("b")]} if method == "PUT" else component("b")
    refused = await service.http.request(method, ENCODED, json=body)
    assert refused.status_code == 400
    assert f"Importers alone write the set {SET}" in refused.json()["error"]["message"]
    assert await imports.names() == ["a"]


async def test_other_names_with_slashes_name_no_set(
    subtests: pytest.Subtests, service: Service
) -> None:
    for name in ("import/a", "import/a/b/c", "other/a/b", "import//b"):
        with subtests.test(name=name):
            answer = await service.http.get(f"{PUSH}/sets/{quote(name, safe='')}")
            assert answer.status_code == 400


async def test_removals_that_are_held_are_an_event_until_somebody_decides(
    service: Service, imports: Imports
) -> None:
    await imports.write(part(item("a"), item("b")))
    for _ in range(2):
        await imports.write(part())
    [held] = await events(service, type=["import.held"])
    assert (held["subject"], held["data"]) == (
        SET,
        {
            "set": SET,
            "heldCount": 2,
            "reason": "nothing was found, although there were entities before",
        },
    )
    await service.http.post(f"{PARTS}/fake/{PART}/discard")
    await imports.write(part(item("a"), item("b")))
    await imports.write(part())
    assert len(await events(service, type=["import.held"])) == 2
    kept = await events(service, type=["set.replaced"])
    assert {one["type"] for one in kept} == {"set.replaced"}
