"""The access log: a line for each request, without secrets."""

from typing import Any

import pytest
import structlog

from tests.conftest import StartService
from tests.service import Service, component
from tests.web.visiting import PASSWORD, signed_in

SECRETS = ("s3cret", "Bearer", PASSWORD, "fbk_")


def requests(logs: list[Any]) -> list[dict[str, Any]]:
    return [line for line in logs if line["event"] == "request"]


@pytest.fixture
async def service(start: StartService) -> Service:
    return await start(access_log=True)


async def test_each_request_is_a_line_with_its_caller(service: Service) -> None:
    await service.push("shop", component("web"))
    with structlog.testing.capture_logs() as logs:
        await service.http.get("/api/catalog/factbook-entities/sets/shop?limit=1")
    [line] = requests(logs)
    assert line.pop("milliseconds") >= 0
    assert len(line.pop("token")) == 36
    assert line == {
        "event": "request",
        "log_level": "info",
        "method": "GET",
        "route": "/api/catalog/factbook-entities/sets/{set_id}",
        "path": "/api/catalog/factbook-entities/sets/shop",
        "parameters": ["limit"],
        "status": 200,
        "address": line["address"],
        "actor": "user:default/tester",
    }


async def test_no_line_has_a_secret(service: Service) -> None:
    ada = await signed_in(service)
    with structlog.testing.capture_logs() as logs:
        async with service.client(None) as http:
            for path in (
                "/api/catalog/entities?token=s3cret&filter=name=s3cret&s3cret&=s3cret&s3cret=1",
                "/sign-in/openid/answer?code=s3cret&state=s3cret",
                "/welcome/s3cret",
                "/welcom/s3cret",
                "/oauth/authorize?client_id=s3cret&code_challenge=s3cret",
                "/?" + "&".join(f"s3cret{number}" for number in range(1_100)),
            ):
                await http.get(path, headers={"accept": "text/html"})
            await http.post("/sign-in", data={"name": "ada", "password": "s3cret"})
            form = {"grant_type": "authorization_code", "code": "s3cret", "code_verifier": "s3cret"}
            await http.post("/oauth/token", data=form)
            await http.get("/api/catalog/entities", headers={"authorization": "Bearer s3cret"})
        await ada.text("/administration/account")
    lines = requests(logs)
    assert len(lines) >= 9
    assert [line for line in lines for secret in SECRETS if secret in str(line)] == []
    assert lines[0]["parameters"] == ["filter", "token"]
    assert [line["actor"] for line in lines if "account" in line["route"]] == ["user:default/ada"]


async def test_without_the_setting_requests_are_not_logged(start: StartService) -> None:
    service = await start()
    with structlog.testing.capture_logs() as logs:
        await service.http.get("/api/catalog/entities")
    assert requests(logs) == []
