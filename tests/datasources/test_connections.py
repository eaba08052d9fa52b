"""Connections: what an administrator configures, and that nothing shows its secrets."""

from typing import Any

import pytest
import structlog

from factbook.datasources.custom import sources
from factbook.datasources.custom.sources import SourceConnection
from factbook.errors import ConfigurationError, InputError
from tests.datasources.asking import (
    BUILD,
    CI,
    PASSED,
    SECRET,
    Api,
    Custom,
    Hosts,
    NoFiles,
    built,
    connecting,
    definition,
    integration,
)
from tests.fakes.faults import saying
from tests.service import Service

TABLES = (
    *("facts_latest", "facts_history", "runs", "batches", "memories", "queues"),
    *("source_health", "data_sources", "data_source_versions", "entities", "leases"),
)


def test_a_table_becomes_a_connection_also_from_texts_as_variables_have_them() -> None:
    found = sources.configured_connections(
        {
            "ci": {
                "base_url": "https://ci.test/api",
                "headers": f'{{"Authorization": "Bearer {SECRET}"}}',
                "methods": "GET,POST",
                "at_once": "2",
            }
        }
    )
    headers = {"Authorization": f"Bearer {SECRET}"}
    expected = SourceConnection(
        base_url="https://ci.test/api", headers=headers, methods=("GET", "POST"), at_once=2
    )
    assert found == {"ci": expected}
    assert repr(found) == "{'ci': Connection(base_url='https://ci.test/api')}"


def test_a_table_that_cannot_be_used_is_named_and_its_values_are_not(
    subtests: pytest.Subtests,
) -> None:
    cases: list[tuple[dict[str, Any], str]] = [
        ({}, "missing required field `base_url`"),
        ({"base_url": "ci.test"}, "has to begin with https://"),
        ({"base_url": f"https://user:{SECRET}@ci.test"}, "without name, password and query"),
        ({"base_url": f"https://ci.test/?token={SECRET}"}, "without name, password and query"),
        ({"base_url": "https://"}, "has to be like https://host/path"),
        ({"headers": {"a b": SECRET}}, "headers has an invalid name"),
        ({"headers": {"x-token": f"{SECRET}\r\nx: y"}}, "a character that cannot be sent"),
        ({"headers": {"x-token": f"{SECRET}é"}}, "a character that cannot be sent"),
        ({"headers": SECRET}, "Expected an object"),
        ({"headers": {"x-token": [SECRET]}}, "Expected text"),
        ({"methods": ["DELETE"]}, "methods can be GET and POST"),
        ({"at_once": 0}, ">= 1"),
        ({"token": SECRET}, "unknown field `token`"),
    ]
    for table, told in cases:
        with subtests.test(table=table):
            whole = {"base_url": "https://ci.test"} | table if table else table
            with pytest.raises(ConfigurationError, match=r"connections\.ci: ") as refused:
                sources.configured_connections({"ci": whole})
            assert told in str(refused.value)
            assert SECRET not in str(refused.value)


def test_a_connection_has_to_be_there_and_to_allow_the_request() -> None:
    for source, told in (
        (
            definition(connection="cd", path="/x"),
            r"no connection 'cd'. Did you mean ci\? There are: ci.",
        ),
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
    open_ = SourceConnection(base_url="https://other.test/api")
    theirs = sources.build_integration(
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
