"""What each integration may read, and which facts are unknown because it may not."""

import asyncio
from typing import Any

import httpx2
import pytest

from factbook.datasources.clients import Connect
from factbook.integrations.integration import Integration
from factbook.operations.doctor import examination
from factbook.outbound.client import HttpClient
from factbook.outbound.network import Sender
from tests.api.defining import define, of_entities
from tests.conftest import StartService
from tests.fakes import pagerduty as pagerduties
from tests.fakes.gitea.state import Token as GiteaToken
from tests.fakes.github.state import Token as GitHubToken
from tests.fakes.gitlab.state import Token as GitLabToken
from tests.fakes.serving import served
from tests.fakes.snyk import Token as SnykToken
from tests.integrations.asking import Asking
from tests.integrations.datadog import asking as datadog
from tests.integrations.gitea import asking as gitea
from tests.integrations.github import asking as github
from tests.integrations.gitlab import asking as gitlab
from tests.integrations.pagerduty import asking as pagerduty
from tests.integrations.prometheus import asking as prometheus
from tests.integrations.snyk import asking as snyk
from tests.operations.doctor.conftest import Look, is_well, of, only
from tests.service import NOON, component
from tests.web.openid_provider import OpenIDProvider

SQLITE = pytest.mark.parametrize("database_url", ["sqlite"], indirect=True)
pytestmark = SQLITE


def by(*askings: Asking) -> Connect:
    """The clients of these, in the place of the network."""
    clients = {asking.integration.base_url: asking.client for asking in askings}

    def connect(integration: Integration) -> HttpClient:
        return clients[integration.base_url]

    return connect


@pytest.mark.spec("doctor.unknown-facts")
async def test_keys_that_may_read_half_are_told_with_the_facts_that_are_unknown(
    look: Look,
) -> None:
    _, asking = datadog.started(keys=datadog.known("monitors"))
    table = {"datadog": {"default": datadog.KEYS}}
    found = only(await look(connect=by(asking), integrations=table), "integration datadog")
    assert found.state == "problem"
    assert found.what.startswith("slos_read: forbidden")
    assert found.what.endswith("Unknown without it: observability.sloCount.")
    _, asking = datadog.started()
    well = await look(connect=by(asking), integrations=table)
    assert of(well, "integration datadog") == [("ok", "It may read: monitors_read, slos_read.")]


async def test_an_organization_that_may_not_be_viewed_is_told(look: Look) -> None:
    table = {"snyk": {"default": {"token": snyk.KEY, "organizations": [snyk.ACME]}}}
    _, asking = snyk.started()
    assert is_well(await look(connect=by(asking), integrations=table), "integration snyk")
    _, asking = snyk.started(token=SnykToken("another"))
    found = only(await look(connect=by(asking), integrations=table), "integration snyk")
    assert (found.state, "Unknown without it: everything" in found.what) == ("problem", True)


async def test_a_key_of_pagerduty_that_reads_no_incidents_is_told(look: Look) -> None:
    table = {"pagerduty": {"default": {"api_key": pagerduty.KEY}}}
    key = pagerduties.Key(pagerduty.KEY, reads={"services"})
    _, asking = pagerduty.started(key=key)
    found = only(await look(connect=by(asking), integrations=table), "integration pagerduty")
    assert "incident.incidentMetrics" in found.what
    _, asking = pagerduty.started()
    assert is_well(await look(connect=by(asking), integrations=table), "integration pagerduty")


async def test_an_alertmanager_that_refuses_is_told_apart_from_its_prometheus(look: Look) -> None:
    table = {"prometheus": {"default": prometheus.TABLE}}
    fake, asking = prometheus.started()
    assert is_well(await look(connect=by(asking), integrations=table), "integration prometheus")
    fake.wanted["alertmanager"] = "Bearer another"
    found = only(await look(connect=by(asking), integrations=table), "integration prometheus")
    assert found.what.startswith("Alertmanager's status: forbidden")
    assert "hasEscalationPolicy" in found.what


async def test_a_code_host_is_asked_about_an_entity_that_points_to_it(
    start: StartService, look: Look
) -> None:
    service = await start()
    table = {"github": {"default": {"token": github.TOKEN}}}
    _, asking = github.started(github.full())
    found = await look(connect=by(asking), integrations=table)
    assert of(found, "integration github") == [("ok", "It may read: a valid credential.")]
    entity = component("app")
    entity["metadata"]["annotations"] = {"github.com/project-slug": github.APP}
    await service.push("one", entity)
    found = await look(connect=by(asking), integrations=table)
    what = "Everything about component:default/app can be read."
    assert of(found, "integration github") == [("ok", what)]
    token = GitHubToken(github.TOKEN, permission="READ")
    _, asking = github.started(github.full(), token=token)
    denied = of(await look(connect=by(asking), integrations=table), "integration github")
    assert {state for state, _ in denied} == {"problem"}
    told = " ".join(what for _, what in denied)
    assert "may not read dependency alerts" in told
    assert "security.dependencyAlerts" in told
    # Nothing of it is stored.
    assert await service.state.database.all("SELECT source_id FROM facts_latest") == []
    assert await service.state.database.all("SELECT key FROM memories") == []


@pytest.mark.parametrize("vendor", ["github", "gitlab", "gitea"])
async def test_a_token_that_is_not_valid_is_told_without_an_entity(look: Look, vendor: str) -> None:
    others: dict[str, tuple[Any, Asking]] = {
        "github": github.started(github.full(), token=GitHubToken("another")),
        "gitlab": gitlab.started(token=GitLabToken("another")),
        "gitea": gitea.started(token=GiteaToken("another")),
    }
    good: dict[str, tuple[Any, Asking]] = {
        "github": github.started(github.full()),
        "gitlab": gitlab.started(),
        "gitea": gitea.started(),
    }
    tables: dict[str, dict[str, Any]] = {
        "github": {"token": github.TOKEN},
        "gitlab": {"token": gitlab.TOKEN},
        "gitea": {"host": gitea.HOST, "token": gitea.TOKEN},
    }
    table = {vendor: {"default": tables[vendor]}}
    found = only(
        await look(connect=by(others[vendor][1]), integrations=table), f"integration {vendor}"
    )
    assert (found.state, "Unknown without it: everything" in found.what) == ("problem", True)
    well = await look(connect=by(good[vendor][1]), integrations=table)
    assert is_well(well, f"integration {vendor}")


async def test_a_host_whose_clock_is_wrong_is_told(look: Look) -> None:
    def late(_: httpx2.Request) -> httpx2.Response:
        headers = {"date": "Sat, 21 Nov 2026 11:58:00 GMT"}
        return httpx2.Response(200, json=[], headers=headers)

    def connect(integration: Integration) -> HttpClient:
        return HttpClient(integration.base_url, Sender(httpx2.MockTransport(late), seconds=5))

    table = {"datadog": {"default": datadog.KEYS}}
    found = only(await look(connect=connect, integrations=table, now=NOON), "clock")
    assert found.what == "The clock of datadog's host is 120 s behind this one."


async def test_a_host_that_does_not_answer_in_time_keeps_nobody_waiting(
    look: Look, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def never(_: httpx2.Request) -> httpx2.Response:
        await asyncio.Event().wait()
        raise AssertionError

    def connect(integration: Integration) -> HttpClient:
        return HttpClient(integration.base_url, Sender(httpx2.MockTransport(never), seconds=600))

    # Nobody wants to wait for as long as the doctor does.
    monkeypatch.setattr(examination, "_SECONDS", 0.05)
    table = {"datadog": {"default": datadog.KEYS}}
    found = only(await look(connect=connect, integrations=table), "integration datadog")
    assert (found.state, "No answer within" in found.what) == ("problem", True)


async def test_an_integration_that_fails_unexpectedly_keeps_nobody_from_the_others(
    look: Look,
) -> None:
    _, asking = datadog.started()
    others = by(asking)

    def connect(integration: Integration) -> HttpClient:
        if integration.source.id == "snyk":
            raise RuntimeError("nobody foresaw this")
        return others(integration)

    snyks = {"token": snyk.KEY, "organizations": [snyk.ACME]}
    tables = {"datadog": {"default": datadog.KEYS}, "snyk": {"default": snyks}}
    found = await look(connect=connect, integrations=tables)
    one = only(found, "integration snyk")
    assert (one.state, "RuntimeError('nobody foresaw this')" in one.what) == ("problem", True)
    assert is_well(found, "integration datadog")
    assert "address" in {one.topic for one in found}


async def test_an_integration_whose_table_is_wrong_is_told(look: Look) -> None:
    found = only(await look(integrations={"github": {"default": {}}}), "configuration")
    assert (found.state, "integrations.github.default" in found.what) == ("problem", True)


async def test_a_custom_source_is_asked_about_an_entity(start: StartService, look: Look) -> None:
    connections = {"ci": {"base_url": "https://ci.example.com"}}
    service = await start(connections=connections)
    await service.push("one", component("app"))
    config = {"id": "builds", "connection": "ci", "path": "/builds/{{ metadata.name }}"}
    await define(
        service,
        of_entities("builds", handlerDefinition={"type": "http", "config": config}),
    )
    asked = []

    def answer(request: httpx2.Request) -> httpx2.Response:
        asked.append(request.url.path)
        return httpx2.Response(status, json={"spec": {"owner": "me"}})

    def connect(integration: Integration) -> HttpClient:
        return HttpClient(integration.base_url, Sender(httpx2.MockTransport(answer), seconds=5))

    status = 200
    assert is_well(await look(connect=connect, connections=connections), "integration builds")
    status = 403
    found = only(await look(connect=connect, connections=connections), "integration builds")
    assert (found.state, "forbidden" in found.what) == ("problem", True)
    assert set(asked) == {"/builds/app"}


async def test_a_provider_to_sign_in_at_has_to_answer(look: Look) -> None:
    table = {"issuer": "http://127.0.0.1:1", "client_id": "factbook"}
    found = only(await look(openid=table, public_url="http://localhost:8000"), "openid")
    assert (found.state, "discovery document did not arrive" in found.what) == ("problem", True)


async def test_a_provider_that_answers_is_well(look: Look) -> None:
    provider = OpenIDProvider()
    with served(provider) as provider.issuer:
        table = {"issuer": provider.issuer, "client_id": "factbook"}
        found = await look(
            openid=table,
            public_url="http://localhost:8000",
            outgoing_networks=["127.0.0.1/32"],
        )
    assert of(found, "openid") == [("ok", f"{provider.issuer} answers, with 1 keys.")]
