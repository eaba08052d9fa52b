"""The interface of importers, and their sets beside those of pushes."""

from dataclasses import replace
from urllib.parse import quote

import pytest

from tests.events.feed import events
from tests.importers.madeup import ImportWorld, known_to
from tests.importers.reading import PART, SET, Imports, item, part
from tests.service import PUSH, Service, component

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


@pytest.mark.parametrize("name", ["import/a", "import/a/b/c", "other/a/b", "import//b"])
async def test_other_names_with_slashes_name_no_set(service: Service, name: str) -> None:
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
            "reason": "nothing was found where there was something",
        },
    )
    await service.http.post(f"{PARTS}/fake/{PART}/discard")
    await imports.write(part(item("a"), item("b")))
    await imports.write(part())
    assert len(await events(service, type=["import.held"])) == 2
    kept = await events(service, type=["set.replaced"])
    assert {one["type"] for one in kept} == {"set.replaced"}
