"""Sources of users, from what is asked for to what is stored, as the collector runs them."""

from typing import Any

import pytest
import structlog

from factbook.clock import HOUR
from factbook.collecting.files import HostFiles
from factbook.errors import InputError
from factbook.sources import custom
from factbook.sources.custom import Connection, Definition
from factbook.sources.integration import Integration
from tests.fakes.faults import saying
from tests.service import NOON, Service, component
from tests.sources.custom.asking import KEY, Api, Custom, Hosts, built, connecting, definition
from tests.sources.gitlab.asking import APP
from tests.sources.gitlab.asking import full as project
from tests.sources.gitlab.asking import started as gitlab

SECRET = "the-secret-of-a-connection"
CI = Connection(base_url="https://ci.test/api", headers={"X-Token": SECRET})
BUILD = f'{{{{ metadata.annotations."{KEY}" }}}}'
PASSED = {"ok": True, "took": 7, "tags": ["x", "y"]}
FACTS = {"ok": ("boolean", "ok"), "seconds": ("integer", "took"), "tags": ("set", "tags")}
TABLES = (
    *("facts_latest", "facts_history", "runs", "batches", "memories", "queues"),
    *("source_health", "data_sources", "data_source_versions", "entities", "leases"),
)


class NoFiles:
    """No code host is configured."""

    def locate(self, entity: Any) -> Any:
        raise AssertionError

    read = paths = locate


def integration(of: Definition, *, ci: Connection = CI) -> Integration:
    found = custom.integration(of, {"ci": ci}, NoFiles())
    assert found is not None
    return found


def collecting(service: Service, api: Api, *sources: Definition, ci: Connection = CI) -> Custom:
    """The collector of these sources, which ask an API of the user's own."""
    connect = connecting(service, Hosts(ci=api, other=api))
    return Custom(service, connect, *(integration(one, ci=ci) for one in sources))


# What an http source brings


async def test_facts_come_from_what_the_connection_answers(service: Service) -> None:
    api = Api()
    api.answers["/api/jobs/b%2F1/last"] = PASSED
    world = collecting(service, api, definition(path=f"/jobs/{BUILD}/last", facts=FACTS))
    await world.run(built("web", "b/1"), built("none"))
    found = await world.latest("web")
    assert found.facts == {"ok": True, "seconds": 7, "tags": ["x", "y"]}
    assert (found.reasons, found.written_at, found.version) == ({}, NOON, "1.0.0")
    run = await world.last()
    assert (run.state, run.covered, run.skipped, run.calls) == ("done", 1, 1, 1)


async def test_an_entity_without_the_value_is_told_which_one_it_lacks(service: Service) -> None:
    api = Api()
    world = collecting(service, api, definition(path=f"/jobs/{BUILD}"))
    await world.run(built("none"), component("bare"))
    for name in ("none", "bare"):
        found = await world.latest(name)
        reason = f'no-annotation: the entity has no metadata.annotations."{KEY}"'
        assert (found.facts, found.reasons) == ({}, {"": reason})
    assert api.asked == []


async def test_what_does_not_fit_is_told_and_the_rest_stored(service: Service) -> None:
    api = Api()
    api.answers["/api/x"] = {"ok": "yes", "took": 1.5, "tags": ["x"], "deep": {"a": [1]}}
    facts = {
        **FACTS,
        "deep": ("object", "deep"),
        "gone": ("string", "nowhere"),
        "sum": ("integer", "sum(tags)"),
    }
    world = collecting(service, api, definition(path="/x", facts=facts))
    await world.run(component("web"))
    found = await world.latest("web")
    assert found.facts == {"tags": ["x"], "deep": {"a": [1]}}
    assert found.reasons == {
        "ok": "upstream-error: expected a boolean, not this string",
        "seconds": "upstream-error: expected an integer, not this number",
        "gone": "not-applicable: the document has no such value",
        "sum": "upstream-error: the expression does not fit the document",
    }
    assert (await world.last()).state == "done"


@pytest.mark.parametrize(
    ("format_", "body", "extract"),
    [
        ("yaml", b"version: 1.10\nok: yes", "ok"),
        ("text", b"build 17\nstatus: green\n", r"/^status: green$/"),
        ("json", b'{"status": "green"}', r'/"status":"green"/'),
    ],
)
async def test_an_answer_is_read_as_its_format_says(
    service: Service, format_: str, body: bytes, extract: str
) -> None:
    api = Api()
    api.answers["/api/x"] = body
    facts = {"ok": ("boolean", extract)}
    world = collecting(service, api, definition(path="/x", facts=facts, format=format_))
    await world.run(component("web"))
    assert (await world.latest("web")).facts == {"ok": True}


async def test_entities_that_ask_the_same_share_one_request(service: Service) -> None:
    api = Api()
    api.answers["/api/jobs/b1"] = PASSED
    world = collecting(service, api, definition(path=f"/jobs/{BUILD}"))
    await world.run(*(built(f"part-{i}", "b1") for i in range(7)), built("web", "b2"))
    assert api.requests == {"/api/jobs/b1": 1, "/api/jobs/b2": 1}
    assert (await world.latest("part-6")).facts == {"ok": True}
    assert (await world.latest("web")).reasons == {"": "not-found: ci.test: answered 404"}


async def test_a_request_is_made_as_the_source_says(service: Service) -> None:
    api = Api()
    api.answers["/api/search"] = PASSED
    source = definition(
        method="POST",
        path="/search?fixed=1",
        query={"q": f"id:{BUILD}", "kind": "{{ kind }}"},
        headers={"X-Build": BUILD, "Accept": "application/vnd.acme+json"},
        body={"ids": [BUILD, 7], "nested": {"live": None}},
    )
    posting = Connection(base_url=CI.base_url, headers=CI.headers, methods=("GET", "POST"))
    world = collecting(service, api, source, ci=posting)
    await world.run(built("web", "a b&c=/?"))
    [asked] = api.asked
    assert (asked.method, asked.path) == ("POST", "/api/search")
    assert asked.query == {"fixed": "1", "q": "id:a b&c=/?", "kind": "Component"}
    assert asked.headers["x-build"] == "a b&c=/?"
    assert asked.headers["accept"] == "application/vnd.acme+json"
    assert asked.headers["content-type"] == "application/json"
    assert asked.body == {"ids": ["a b&c=/?", 7], "nested": {"live": None}}
    assert (await world.latest("web")).facts == {"ok": True}


# How it ends otherwise


@pytest.mark.parametrize(
    ("status", "word"),
    [(401, "forbidden"), (403, "forbidden"), (404, "not-found"), (410, "not-found")],
)
async def test_what_the_host_says_counts_at_once(service: Service, status: int, word: str) -> None:
    api = Api()
    api.answers["/api/x"] = PASSED
    world = collecting(service, api, definition(path="/x"))
    await world.run(component("web"))
    api.fail("/api/x", saying({"message": "of no concern"}, status), times=9)
    await world.next_run()
    found = await world.latest("web")
    assert (found.facts, found.reasons) == ({}, {"": f"{word}: ci.test: answered {status}"})
    assert api.requests["/api/x"] == 2


async def test_at_a_rate_limit_the_last_values_are_kept(service: Service) -> None:
    api = Api()
    api.answers["/api/jobs/b1"] = PASSED
    world = collecting(service, api, definition(path=f"/jobs/{BUILD}"))
    await world.run(built("web", "b1"))
    limited = saying({}, 429, {"retry-after": "7200"})
    for build in ("b1", "b2"):
        api.fail(f"/api/jobs/{build}", limited, times=9)
    await service.push("all", built("web", "b1"), built("new", "b2"))
    await world.next_run()
    kept, new = await world.latest("web"), await world.latest("new")
    assert (kept.facts, kept.reasons, kept.written_at) == ({"ok": True}, {}, NOON)
    assert new.facts == {}
    assert new.reasons[""].startswith("rate-limited: ci.test: no call before 2026-11-21T1")
    assert api.requests.total() == 2  # the second call of the run was not made
    service.time.now += 3 * HOUR
    api.recover()
    await world.next_run()
    assert (await world.latest("web")).written_at > NOON


async def test_a_failing_host_is_asked_again_and_then_told(service: Service) -> None:
    api = Api()
    api.fail("/api/x", saying({}, 503), times=99)
    timeout = {"timeout": {"seconds": 20}}
    world = collecting(service, api, definition(path="/x", members=timeout))
    await world.run(component("web"))
    assert (await world.latest("web")).reasons == {"": "upstream-error: ci.test: answered 503"}
    run = await world.last()
    assert (run.state, run.calls, run.error) == (
        "failed",
        2,
        "upstream-error: ci.test: answered 503",
    )


# Connections


def test_a_connection_has_to_be_there_and_to_allow_the_request() -> None:
    for source, told in (
        (definition(connection="cd", path="/x"), "no connection 'cd'. There are: ci."),
        (definition(method="POST", path="/x"), "'ci' does not allow POST"),
        (definition(path="/x", headers={"x-TOKEN": "mine"}), "'ci' sends x-token itself"),
    ):
        with pytest.raises(InputError, match=told) as refused:
            integration(source)
        assert SECRET not in str(refused.value)


async def test_a_secret_goes_to_its_origin_and_appears_nowhere_else(service: Service) -> None:
    api, other = Api(), Api()
    api.answers["/api/jobs/good"] = PASSED
    api.answers["/api/jobs/echo"] = {**PASSED, "you-sent": {"x-token": SECRET}}
    other.answers["/api/jobs/moved"] = PASSED
    to_other = {"location": "https://other.test/api/jobs/moved"}
    api.fail("/api/jobs/moved", saying({}, 302, to_other), times=9)
    api.fail("/api/jobs/broken", saying({"message": SECRET}, 500), times=9)
    api.fail("/api/jobs/denied", saying({"message": SECRET}, 403), times=9)
    source = definition(path=f"/jobs/{BUILD}", members={"timeout": {"seconds": 20}})
    ours = integration(source)
    open_ = Connection(base_url="https://other.test/api")
    theirs = custom.integration(
        definition(id_="others", connection="open", path="/x"), {"open": open_}, NoFiles()
    )
    connect = connecting(service, Hosts(ci=api, other=other))
    world = Custom(service, connect, ours, theirs)
    with structlog.testing.capture_logs() as logs:
        names = ("good", "moved", "broken", "denied", "echo")
        await world.run(*(built(f"of-{name}", name) for name in names))
    assert {one.headers["x-token"] for one in api.asked} == {SECRET}
    assert other.asked
    assert all("x-token" not in one.headers for one in other.asked)
    assert {one.path for one in other.asked} == {"/api/x"}
    reasons = {name: (await world.latest(f"of-{name}")).reasons for name in names}
    assert reasons == {
        "good": {},
        "moved": {"": "upstream-error: ci.test: answered 302"},
        "broken": {"": "upstream-error: ci.test: answered 500"},
        "denied": {"": "forbidden: ci.test: answered 403"},
        "echo": {"": "upstream-error: ci.test: the answer repeats what the connection keeps"},
    }
    rows = [
        await world.database.all(f"SELECT * FROM {table}")  # noqa: S608 - own words
        for table in TABLES
    ]
    client = connect(ours)
    shown = [rows, logs, ours, theirs, CI, source, client, vars(client), world.collector]
    assert all(SECRET not in repr(one) for one in shown)
    assert logs
    assert rows[0]


# Files of repositories


async def test_a_file_of_the_repository_is_the_document(service: Service) -> None:
    repository = project()
    repository.files.append("deploy/app.yaml")
    repository.texts["deploy/app.yaml"] = b"replicas: 3\nimage: registry/app:1.2\n"
    fake, host = gitlab(repository)
    files = HostFiles(service.state.database, [host.integration], lambda _: host.client, host.time)
    source = definition(
        "repository-file",
        path="deploy/{{ metadata.name }}.yaml",
        format="yaml",
        facts={"replicas": ("integer", "replicas"), "tag": ("string", "/app:([0-9.]+)/")},
    )
    found = custom.integration(source, {}, files)
    world = Custom(service, connecting(service, Hosts()), found)
    slug = {"gitlab.com/project-slug": APP}
    await world.run(
        built("app", **slug),
        built("gone", **slug),
        built("none"),
        built("lost", **{"gitlab.com/project-slug": "acme/no"}),
    )
    assert (await world.latest("app")).facts == {"replicas": 3, "tag": "1.2"}
    reasons = {
        name: (await world.latest(name)).reasons[""].partition(":")[0]
        for name in ("gone", "none", "lost")
    }
    assert reasons == {"gone": "not-found", "none": "no-annotation", "lost": "not-found"}
    assert fake.requests == {"file": 3}


@pytest.mark.parametrize("name", ["..", ".", "a/../b", "a//b"])
def test_a_path_that_an_entity_leads_astray_is_not_asked_for(name: str) -> None:
    source = definition("repository-file", path='{{ metadata.annotations."x" }}/f')
    found = custom.integration(source, {}, OneFile())
    assert found is not None
    target = found.target({"metadata": {"annotations": {"x": name}}})
    assert not isinstance(target, str)
    assert target.reason.startswith("no-annotation")


class OneFile(NoFiles):
    """Every entity has a repository."""

    def locate(self, entity: Any) -> Any:
        return "host", "acme/app"


async def test_the_files_of_a_directory_are_the_document(service: Service) -> None:
    _, host = gitlab(project())
    files = HostFiles(service.state.database, [host.integration], lambda _: host.client, host.time)
    source = definition(
        "repository-directory",
        path="{{ metadata.annotations.folder }}",
        facts={"count": ("integer", "count"), "files": ("set", "paths")},
    )
    everything = definition("repository-directory", "all", {"count": ("integer", "count")})
    sources = [custom.integration(one, {}, files) for one in (source, everything)]
    world = Custom(service, connecting(service, Hosts()), *sources)
    slug = {"gitlab.com/project-slug": APP}
    app = built("app", folder="docs", **slug)
    hosts = Custom(service, lambda _: host.client, host.integration)
    await hosts.run(app, built("none", folder="docs"), built("bare", **slug))
    await world.run()
    assert (await world.latest("app")).facts == {"count": 1, "files": ["index.md"]}
    assert (await world.latest("app", "all")).facts == {"count": 6}
    for name in ("none", "bare"):
        assert (await world.latest(name)).reasons[""].startswith("no-annotation")


async def test_files_that_were_not_collected_yet_are_no_empty_list(service: Service) -> None:
    _, host = gitlab(project())
    files = HostFiles(service.state.database, [host.integration], lambda _: host.client, host.time)
    members = {"timeout": {"seconds": 20}}
    facts = {"count": ("integer", "count")}
    source = definition("repository-directory", facts=facts, members=members)
    found = custom.integration(source, {}, files)
    world = Custom(service, connecting(service, Hosts()), found)
    await world.run(built("app", **{"gitlab.com/project-slug": APP}))
    assert (await world.latest("app")).reasons == {
        "": "upstream-error: the files of the repository were not collected yet"
    }


# Entities


async def test_the_entity_itself_is_the_document(service: Service) -> None:
    facts = {
        "owned": ("boolean", "spec.owner == 'team-a'"),
        "build": ("string", f'metadata.annotations."{KEY}"'),
        "relations": ("integer", "length(relations)"),
        "named": ("boolean", '/"name":"we.?"/'),
    }
    world = Custom(
        service,
        connecting(service, Hosts()),
        integration(definition("entity", facts=facts)),
        integration(definition("entity", "narrow", {"kind": ("string", "kind")})),
    )
    await world.run(built("web", "b1"), built("shop"))
    web, shop = await world.latest("web"), await world.latest("shop")
    assert web.facts == {"owned": True, "build": "b1", "relations": 1, "named": True}
    assert shop.facts == {"owned": True, "relations": 1, "named": False}
    assert shop.reasons == {"build": "not-applicable: the document has no such value"}
    assert (await world.latest("web", "narrow")).facts == {"kind": "Component"}


def test_a_source_that_is_pushed_is_not_collected() -> None:
    source = custom.parse(
        {
            "id": "pushed",
            "title": "Pushed",
            "handlerDefinition": {"type": "push", "config": {"id": "pushed"}},
            "schema": {"ok": {"type": "boolean"}},
        }
    )
    assert custom.integration(source, {}, NoFiles()) is None
