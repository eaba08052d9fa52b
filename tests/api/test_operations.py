"""What operators and their machines ask: `/healthz`, `/readyz`, `/metrics`."""

import re
from pathlib import Path

import httpx2
import pytest

from factbook.auth.permissions import CATALOG_READ
from tests.service import TOOLS, Service, call, component
from tests.storage.outage import unreachable

ENTITIES = "/api/catalog/entities"
ON_SQLITE = pytest.mark.parametrize("database_url", ["sqlite"], indirect=True)


async def ask(service: Service, path: str) -> httpx2.Response:
    """The answer to someone without a token."""
    async with service.client(None) as http:
        return await http.get(path)


async def test_health_and_readiness_need_no_token(service: Service) -> None:
    health, ready = await ask(service, "/healthz"), await ask(service, "/readyz")
    assert (health.status_code, health.json()) == (200, {"status": "ok"})
    assert (ready.status_code, ready.json()) == (200, {"status": "ready"})
    async with service.client(None) as http:
        assert (await http.head("/readyz")).status_code == 200


@ON_SQLITE
async def test_a_service_whose_file_is_gone_is_alive_but_not_ready(
    service: Service, tmp_path: Path
) -> None:
    file, aside = tmp_path / "factbook.db", tmp_path / "aside.db"
    file.rename(aside)
    answer = await ask(service, "/readyz")
    assert answer.status_code == 503
    assert answer.json()["error"]["name"] == "ServiceUnavailableError"
    assert (await ask(service, "/healthz")).status_code == 200
    aside.rename(file)
    assert (await ask(service, "/readyz")).status_code == 200


@pytest.mark.slow
@pytest.mark.parametrize("database_url", ["postgresql"], indirect=True)
async def test_a_service_without_its_postgresql_is_alive_but_not_ready_and_recovers(
    service: Service,
) -> None:
    with unreachable(service.database_url):
        for path in ("/readyz", ENTITIES):
            answer = await service.http.get(path)
            assert answer.status_code == 503, path
            error = answer.json()["error"]
            assert error["name"] == "ServiceUnavailableError"
            assert "not currently accepting" not in error["message"]  # PostgreSQL's own words
        assert (await ask(service, "/healthz")).status_code == 200
    assert (await ask(service, "/readyz")).status_code == 200
    assert (await service.http.get(ENTITIES)).status_code == 200
    assert (await service.push("set", component("web"))).status_code == 200


def value(metrics: str, name: str, **labels: str) -> float:
    """One sample, which has to be there."""
    for line in metrics.splitlines():
        found = re.fullmatch(rf"{name}(?:{{(.*)}})? (\S+)", line)
        if found and dict(re.findall(r'(\w+)="([^"]*)"', found[1] or "")) == labels:
            return float(found[2])
    raise AssertionError(f"no {name} with {labels} in\n{metrics}")


@ON_SQLITE
async def test_metrics_count_requests_tool_calls_and_entities(service: Service) -> None:
    await service.push("set", component("web"), component("shop"))
    await service.push("set", component("web"))
    for name in ("web", "web", "nobody"):
        await service.http.get(f"{ENTITIES}/by-name/component/default/{name}")
    await service.facts("get-entity-compliance", name="web")
    await service.refusal("get-entity-compliance", name="nobody")
    answer = await ask(service, "/metrics")
    assert answer.headers["content-type"].startswith("text/plain; version=0.0.4")
    by_name = f"{ENTITIES}/by-name/{{kind}}/{{namespace}}/{{name}}"
    for status, count in (("200", 2), ("404", 1)):
        labels = {"route": by_name, "method": "GET", "status": status}
        assert value(answer.text, "factbook_http_request_seconds_count", **labels) == count
        bucket = value(answer.text, "factbook_http_request_seconds_bucket", le="+Inf", **labels)
        assert bucket == count
        assert value(answer.text, "factbook_http_request_seconds_sum", **labels) > 0
    for change, count in (("added", 2), ("removed", 1), ("unchanged", 1)):
        assert value(answer.text, "factbook_pushed_entities_total", change=change) == count
    calls = re.findall(
        r'factbook_tool_calls_total{.*tool="get-entity-compliance".*} (\S+)', answer.text
    )
    assert sorted(map(float, calls)) == [1, 1]


@ON_SQLITE
async def test_metrics_hold_no_secret_and_no_name(service: Service) -> None:
    value = await service.token(CATALOG_READ, owner="user:default/kimberly", name="laptop-token")
    await service.push("secret-set", component("secret-entity"))
    async with service.client(value) as http:
        await http.get(f"{ENTITIES}/by-name/component/default/secret-entity")
        await http.get("/secret-path?token=secret")
        await http.post(TOOLS, json=call("secret-tool", {"name": "secret-entity"}))
        await http.post(TOOLS, json=call("get-entity-compliance", {"name": "secret-entity"}))
    await service.http.post(TOOLS, json=call("secret-tool", {"name": "secret-entity"}))
    await service.http.request("SECRET", ENTITIES)
    shown = (await ask(service, "/metrics")).text
    for word in ("secret", "SECRET", "kimberly", "laptop", "tester", "fbk_", value[4:14]):
        assert word not in shown, word
    assert 'route="(none)"' in shown
