"""`/api/tech-insights/v1/data-sources`: defining, publishing, running and removing sources."""

import asyncio
from typing import Any

import pytest

from factbook.auth.permissions import (
    CATALOG_READ,
    FACT_WRITE,
    SOURCE_READ,
    SOURCE_RUN,
    SOURCE_WRITE,
)
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
    of_entities,
    problems,
    push,
    pushed,
    refusal,
    shown,
)
from tests.conftest import StartService
from tests.service import Service, component

ON_SQLITE = pytest.mark.parametrize("database_url", ["sqlite"], indirect=True)


@pytest.mark.spec("sources.defined-by-users", "sources.draft-until-published")
async def test_a_source_is_defined_read_published_and_deleted(service: Service) -> None:
    made = await service.http.post(SOURCES, json=pushed(description="How much is tested"))
    assert made.status_code == 201, made.text
    assert made.json() == await shown(service)
    facts = {
        "lines": {**LINES, "metadata": {"key": "lines"}},
        "tool": {**TOOL, "metadata": {"key": "tool"}},
    }
    time = "2026-11-21T12:00:00.000+00:00"
    assert made.json() == {
        "id": "coverage",
        "title": "Coverage",
        "description": "How much is tested",
        "createdAt": time,
        "updatedAt": time,
        "handlerDefinition": {"type": "push", "config": {"id": "coverage"}},
        "draft": True,
        "version": "0.0.0",
        "schema": facts,
        "origin": "custom",
        "definition": {
            "pending": True,
            "createdBy": "user:default/tester",
            "updatedBy": "user:default/tester",
            "versions": [],
            "draft": pushed(description="How much is tested"),
            "published": None,
        },
    }
    published = await service.http.post(f"{SOURCES}/coverage/publish", json={})
    assert published.status_code == 200, published.text
    found = published.json()
    assert (found["draft"], found["version"]) == (False, "1.0.0")
    assert found["definition"] | {"versions": []} == {
        **made.json()["definition"],
        "pending": False,
        "draft": None,
        "published": pushed(description="How much is tested"),
    }
    [version] = found["definition"]["versions"]
    assert version == {
        "version": "1.0.0",
        "publishedAt": time,
        "publishedBy": "user:default/tester",
    }
    assert (await service.http.delete(f"{SOURCES}/coverage")).status_code == 204
    assert (await service.http.get(f"{SOURCES}/coverage")).status_code == 404
    assert (await service.http.delete(f"{SOURCES}/coverage")).status_code == 404


@pytest.mark.spec("sources.defined-by-users")
async def test_the_list_has_the_builtin_sources_and_then_those_of_users(service: Service) -> None:
    for id_ in ("zeta", "alpha"):
        await define(service, pushed(id_))
    answer = await service.http.get(SOURCES)
    listed = answer.json()
    assert [one["id"] for one in listed["dataSources"]] == [
        *("entity-metadata", "entity-ownership", "techdocs"),
        *("alpha", "zeta"),
    ]
    assert [one["origin"] for one in listed["dataSources"]] == ["builtin"] * 3 + ["custom"] * 2
    assert listed["totalCount"] == 5
    assert "definition" not in answer.text
    discovered = await service.facts("get-data-source-discovery")
    assert [one["id"] for one in discovered["dataSources"]] == [
        one["id"] for one in listed["dataSources"]
    ]
    assert (discovered["builtinCount"], discovered["customCount"]) == (3, 2)


@ON_SQLITE
@pytest.mark.parametrize("size", [1, 2, 3, 7, 100])
async def test_pages_of_the_list_hold_every_source_once(service: Service, size: int) -> None:
    for number in range(4):
        await define(service, pushed(f"source-{number}"))
    found: list[str] = []
    cursor: dict[str, str] = {}
    while True:
        page = (await service.http.get(SOURCES, params={"limit": size, **cursor})).json()
        found += [one["id"] for one in page["dataSources"]]
        assert len(page["dataSources"]) <= size
        if "nextCursor" not in page:
            break
        cursor = {"cursor": page["nextCursor"]}
    assert len(found) == 7
    assert found[3:] == [f"source-{number}" for number in range(4)]
    gone = await service.http.get(SOURCES, params={"cursor": "source-1x"})
    assert [one["id"] for one in gone.json()["dataSources"]] == ["source-2", "source-3"]


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
@pytest.mark.parametrize(
    ("change", "version"),
    [
        ({"title": "Tested"}, "1.0.1"),
        ({"schema": {"lines": LINES | {"unit": "lines"}, "tool": TOOL}}, "1.0.1"),
        ({"schema": MORE}, "1.1.0"),
        ({"schema": MORE, "title": "Tested"}, "1.1.0"),
        ({"schema": {"lines": LINES}}, "2.0.0"),
        ({"schema": {"lines": {"type": "float"}, "tool": TOOL}}, "2.0.0"),
        ({"schema": {"lines": LINES, "branches": LINES}}, "2.0.0"),
    ],
)
async def test_the_version_says_what_a_publication_changed(
    service: Service, change: dict[str, Any], version: str
) -> None:
    await define(service, pushed())
    await define(service, pushed(**change), publish=False)
    answer = await service.http.post(f"{SOURCES}/coverage/publish", json={"force": True})
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


@pytest.mark.spec("sources.deleted-with-its-facts")
async def test_a_deleted_source_leaves_nothing_behind(service: Service) -> None:
    await service.push("all", component("web"))
    for id_ in ("coverage", "other"):
        await define(service, pushed(id_))
        await push(service, item(lines=80), to=id_)
    await define(service, of_entities())
    assert (await service.http.post(f"{SOURCES}/owners/run")).status_code == 202
    for id_ in ("coverage", "owners"):
        assert (await service.http.delete(f"{SOURCES}/{id_}")).status_code == 204
    assert [one["dataSourceId"] for one in await history(service)] == ["other"]
    assert await latest(service, "other") == {WEB: {"lines": 80}}
    for table in ("data_sources", "data_source_versions", "facts_latest", "facts_history"):
        rows = await service.state.database.all(f"SELECT * FROM {table}")  # noqa: S608 - own words
        assert len(rows) == 1, table
    for table in ("runs", "batches", "source_health", "memories"):
        rows = await service.state.database.all(f"SELECT * FROM {table}")  # noqa: S608 - own words
        assert rows == [], table
    await define(service, pushed())
    assert (await shown(service))["version"] == "1.0.0"
    assert await latest(service) == {}


@ON_SQLITE
async def test_a_long_history_is_deleted_whole(service: Service) -> None:
    await define(service, pushed())
    columns = ("source_id", "entity_id", "written_at", "facts", "reasons", "version")
    rows = [("coverage", n // 10, n % 10, "{}", "{}", "1.0.0") for n in range(12_000)]
    await service.state.database.write(lambda tx: tx.insert("facts_history", columns, rows))
    assert (await service.http.delete(f"{SOURCES}/coverage")).status_code == 204
    assert await service.state.database.one("SELECT count(*) FROM facts_history") == (0,)


WRONG: list[tuple[dict[str, Any], set[str]]] = [
    ({"id": "no spaces"}, {"id"}),
    ({"title": " "}, {"title"}),
    ({"schema": {}}, {"schema"}),
    ({"schema": {"lines": {"type": "number"}}}, {"schema.lines.type"}),
    ({"schema": {"lines": {"type": "integer", "extract": {}}}}, {"schema.lines.extract"}),
    ({"cadence": "often"}, {"cadence"}),
    ({"lifecycle": {"maxItems": 0}}, {"lifecycle.maxItems"}),
    ({"entityFilter": "{"}, {"entityFilter"}),
    ({"surprise": 1}, {"surprise"}),
    ({"version": "1.0.0"}, {"version"}),
    (
        {"version": "1.0.0", "draft": True, "createdAt": "2026-11-21T12:00:00Z", "updatedAt": 1},
        {"version", "draft", "createdAt", "updatedAt"},
    ),
    ({"draft": False, "title": 7}, {"draft", "title"}),
    ({"handlerDefinition": {"type": "sql", "config": {"id": "coverage"}}}, set()),
]


@ON_SQLITE
@pytest.mark.spec("sources.every-problem-is-named")
@pytest.mark.parametrize(("change", "paths"), WRONG)
async def test_every_problem_of_a_document_is_named_and_nothing_is_written(
    service: Service, change: dict[str, Any], paths: set[str]
) -> None:
    for answer in (
        await service.http.post(SOURCES, json=pushed() | change),
        await service.http.put(f"{SOURCES}/coverage", json=pushed() | change),
    ):
        assert "nothing was written" in refusal(answer, 400)
        assert paths <= problems(answer).keys()
    assert (await service.http.get(f"{SOURCES}/coverage")).status_code == 404


@ON_SQLITE
@pytest.mark.parametrize(
    ("body", "status"),
    [
        (b"", 400),
        (b"{", 400),
        (b"[]", 400),
        (b"null", 400),
        (b'"coverage"', 400),
        (b"\xff\xfe", 400),
        (b'{"id": "\\ud800"}', 400),
        (b"[" * 100_000, 400),
        (b'{"a":' * 20_000 + b"1" + b"}" * 20_000, 400),
        (b'{"a":' * 100 + b"1" + b"}" * 100, 400),
        (b'{"id": 1e999}', 400),
        (b" " * (256 * 1024 + 1), 413),
    ],
)
async def test_a_body_that_is_no_source_is_refused(
    service: Service, body: bytes, status: int
) -> None:
    for method, path in (("POST", SOURCES), ("PUT", f"{SOURCES}/coverage")):
        answer = await service.http.request(method, path, content=body)
        assert refusal(answer, status)


@ON_SQLITE
@pytest.mark.spec("sources.ids-are-not-taken-twice")
async def test_no_two_sources_share_an_id(service: Service) -> None:
    await define(service, pushed())
    answer = await service.http.post(SOURCES, json=pushed())
    assert refusal(answer, 409) == "There is a data source coverage already; PUT replaces it."
    for id_ in ("techdocs", "github"):
        for answer in (
            await service.http.post(SOURCES, json=pushed(id_)),
            await service.http.put(f"{SOURCES}/{id_}", json=pushed(id_)),
            await service.http.delete(f"{SOURCES}/{id_}"),
            await service.http.post(f"{SOURCES}/{id_}/publish"),
        ):
            assert answer.status_code in (404, 409), answer.text
            assert id_ in refusal(answer, answer.status_code)
    assert (await shown(service, "techdocs"))["origin"] == "builtin"
    answer = await service.http.put(f"{SOURCES}/other", json=pushed())
    assert refusal(answer, 400)
    assert problems(answer) == {"id": "has to be other, as in the address"}


@ON_SQLITE
@pytest.mark.parametrize("id_", ["nothing", "no%20such", "%00", "%F0%9F%98%80", "a" * 101, ".."])
@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("GET", ""),
        ("DELETE", ""),
        ("POST", "/publish"),
        ("POST", "/run"),
        ("GET", "/runs"),
    ],
)
async def test_a_source_that_there_is_not_is_404(
    service: Service, id_: str, method: str, path: str
) -> None:
    answer = await service.http.request(method, f"{SOURCES}/{id_}{path}")
    assert refusal(answer, 404)


READS = [("GET", SOURCES), ("GET", f"{SOURCES}/coverage"), ("GET", f"{SOURCES}/coverage/runs")]
WRITES = [
    ("POST", SOURCES),
    ("PUT", f"{SOURCES}/coverage"),
    ("DELETE", f"{SOURCES}/coverage"),
    ("POST", f"{SOURCES}/coverage/publish"),
]


@ON_SQLITE
@pytest.mark.spec(
    "permissions.source-write-guards-definitions",
    "permissions.source-run-guards-runs",
    "permissions.fact-write-guards-fact-push",
)
@pytest.mark.parametrize(
    ("method", "path", "needed"),
    [
        *((*read, {SOURCE_READ}) for read in READS),
        *((*write, {SOURCE_WRITE}) for write in WRITES),
        ("POST", f"{SOURCES}/coverage/run", {SOURCE_RUN}),
        ("POST", f"{FACTS}/coverage", {FACT_WRITE}),
        ("GET", f"{FACTS}/coverage", {SOURCE_READ, CATALOG_READ}),
        ("GET", FACTS, {SOURCE_READ, CATALOG_READ}),
    ],
)
async def test_each_call_needs_its_permissions_and_no_other(
    service: Service, method: str, path: str, needed: set[str]
) -> None:
    every = {SOURCE_READ, SOURCE_WRITE, SOURCE_RUN, FACT_WRITE, CATALOG_READ}
    async with service.client(None) as anonymous:
        refusal(await anonymous.request(method, path), 401)
    for missing in needed:
        async with service.client(await service.token(*(every - {missing}))) as http:
            answer = await http.request(method, path, json={})
            assert missing in refusal(answer, 403)
    async with service.client(await service.token(*needed)) as http:
        answer = await http.request(method, path, json={})
        assert answer.status_code not in (401, 403, 500), answer.text


@ON_SQLITE
@pytest.mark.spec("source.handler-definition-hides-the-rest")
async def test_only_who_may_write_a_source_sees_its_configuration(service: Service) -> None:
    document = of_entities()
    document["schema"]["owner"]["extract"] = {"jmespath": "spec.hidden"}
    await define(service, document)
    assert (await shown(service, "owners"))["definition"]["published"] == document
    async with service.client(await service.token(SOURCE_READ, CATALOG_READ)) as http:
        for path in (SOURCES, f"{SOURCES}/owners"):
            answer = await http.get(path)
            assert answer.status_code == 200
            assert "hidden" not in answer.text
            assert "jmespath" not in answer.text


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
        "skipped": 0,
        "calls": 0,
        "rateLimitLeft": None,
        "error": None,
    }
    again = await service.http.post(f"{SOURCES}/owners/run", json={})
    assert refusal(again, 409) == "A run of everything of owners is under way already."
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
@pytest.mark.parametrize(
    ("id_", "body", "status", "words"),
    [
        ("owners", {"entity": "component:nobody"}, 404, "no entity component:default/nobody"),
        ("owners", {"entity": "nobody"}, 400, "lacks a kind"),
        ("owners", {"entity": ""}, 400, "not of the form"),
        ("owners", {"entity": "resource:db"}, 409, "entityFilter of owners leaves"),
        ("owners", {"entity": 7}, 400, "The body does not fit"),
        ("owners", {"all": True}, 400, "The body does not fit"),
        ("coverage", {}, 409, "coverage is not collected: its facts are pushed."),
        ("techdocs", {}, 409, "read from the catalog"),
        ("broken", {}, 409, "broken cannot be collected"),
    ],
)
async def test_a_run_that_cannot_be_says_why(
    service: Service, id_: str, body: dict[str, Any], status: int, words: str
) -> None:
    entity = component("db") | {"kind": "Resource"}
    await service.push("all", component("web"), entity)
    await define(service, of_entities(entityFilter=[{"kind": "component"}]))
    await define(service, pushed())
    config = {"id": "broken", "connection": "gone", "path": "/"}
    handler = {"type": "http", "config": config}
    await define(service, of_entities("broken", handlerDefinition=handler))
    assert "gone" in (await shown(service, "broken"))["problem"]
    answer = await service.http.post(f"{SOURCES}/{id_}/run", json=body)
    assert words in refusal(answer, status)


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
