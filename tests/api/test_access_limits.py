"""How often one may call, and fail; whose address counts behind proxies."""

from typing import Any

import httpx2
import pytest

from factbook.clock import MINUTE, SECOND
from factbook.errors import ConfigurationError
from tests.conftest import StartService
from tests.service import TOOLS, Service, call

ENTITIES = "/api/catalog/entities"
PROXY, OTHER_PROXY, CLIENT = "10.0.0.1", "10.0.0.2", "203.0.113.7"

pytestmark = pytest.mark.parametrize("database_url", ["sqlite"], indirect=True)


async def fail(service: Service, address: str = CLIENT, **headers: str) -> httpx2.Response:
    """The answer to a request with a bad token from this address."""
    headers["authorization"] = "Bearer fbk_wrong"
    async with service.client(None, address=address) as http:
        return await http.get(ENTITIES, headers=headers)


async def failures_until_refused(service: Service, most: int = 50, **given: Any) -> int:
    """How many failures are answered with 401 before one is 429."""
    for count in range(most):
        answer = await fail(service, **given)
        if answer.status_code == 429:
            return count
        assert answer.status_code == 401
    return most


async def test_an_address_may_fail_as_often_as_the_setting_says(start: StartService) -> None:
    service = await start(failed_logins=6)
    assert await failures_until_refused(service) == 6
    answer = await fail(service)
    assert answer.status_code == 429
    assert answer.headers["retry-after"] == "10"
    error = answer.json()["error"]
    assert error["name"] == "TooManyRequestsError"
    assert "failed_logins is 6 a minute" in error["message"]
    assert (await fail(service, "203.0.113.8")).status_code == 401


async def test_failures_are_forgotten_with_time(start: StartService) -> None:
    service = await start(failed_logins=6)
    assert await failures_until_refused(service) == 6
    service.time.advance(10 * SECOND - 1)
    assert (await fail(service)).status_code == 429
    service.time.advance(1)
    assert (await fail(service)).status_code == 401
    assert (await fail(service)).status_code == 429
    service.time.advance(MINUTE)
    assert await failures_until_refused(service) == 6


async def test_a_good_token_works_from_an_address_that_fails_too_often(
    start: StartService,
) -> None:
    service = await start(failed_logins=1)
    value = await service.token()
    assert await failures_until_refused(service) == 1
    async with service.client(value, address=CLIENT) as http:
        assert (await http.get(ENTITIES)).status_code == 200
    assert (await fail(service)).status_code == 429


async def test_calls_without_any_token_count_as_failures_too(start: StartService) -> None:
    service = await start(failed_logins=2)
    async with service.client(None, address=CLIENT) as http:
        answers = [(await http.get(ENTITIES)).status_code for _ in range(3)]
    assert answers == [401, 401, 429]


async def test_a_token_may_call_so_often_and_has_to_wait_then(start: StartService) -> None:
    service = await start(token_rate=0.5, token_burst=3)
    async with service.client(await service.token()) as http:
        assert [(await http.get(ENTITIES)).status_code for _ in range(3)] == [200] * 3
        answer = await http.get(ENTITIES)
        assert (answer.status_code, answer.headers["retry-after"]) == (429, "2")
        assert "token_rate is 0.5 a second" in answer.json()["error"]["message"]
        called = await http.post(TOOLS, json=call("get-data-source-discovery", {}))
        assert (called.status_code, called.headers["retry-after"]) == (429, "2")
        assert called.json()["error"] == "too_many_requests"
        service.time.advance(2 * SECOND)
        assert (await http.get(ENTITIES)).status_code == 200
        assert (await http.get(ENTITIES)).status_code == 429
    assert (await service.http.get(ENTITIES)).status_code == 200  # another token


@pytest.mark.spec("network.forwarded-headers-ignored-by-default")
async def test_forwarded_addresses_count_for_nothing_without_trusted_proxies(
    start: StartService,
) -> None:
    service = await start(failed_logins=3)
    for number in range(3):
        answer = await fail(
            service, **{"x-forwarded-for": f"198.51.100.{number}", "forwarded": f"for={number}"}
        )
        assert answer.status_code == 401
    assert (await fail(service, **{"x-forwarded-for": "198.51.100.9"})).status_code == 429


@pytest.mark.spec("network.trusted-proxies")
async def test_the_address_that_a_trusted_proxy_tells_is_the_clients(start: StartService) -> None:
    service = await start(failed_logins=1, trusted_proxies=["10.0.0.0/8", "2001:db8::/32"])

    async def status(hops: str | list[tuple[str, str]], peer: str = PROXY) -> int:
        headers = [("x-forwarded-for", hops)] if isinstance(hops, str) else hops
        async with service.client("fbk_wrong", address=peer) as http:
            return (await http.get(ENTITIES, headers=headers)).status_code

    assert await status(CLIENT) == 401
    assert await status("203.0.113.8") == 401
    for hops in (
        CLIENT,
        f" {CLIENT} ",
        f"198.51.100.1, {CLIENT}",  # the first is the client's invention
        f"198.51.100.2, nonsense, {CLIENT}",
        f"{CLIENT}, {OTHER_PROXY}",
        f"{CLIENT}:5678",
        [("x-forwarded-for", "198.51.100.3"), ("x-forwarded-for", CLIENT)],
        [("x-forwarded-for", CLIENT), ("x-forwarded-for", OTHER_PROXY)],
    ):
        assert await status(hops) == 429, hops
    assert await status(CLIENT, peer="2001:db8::1") == 429
    # Who is no proxy tells nothing about itself, whatever it sends.
    assert await status("203.0.113.99", peer=CLIENT) == 429
    assert await status(CLIENT, peer="203.0.113.100") == 401


@pytest.mark.spec("network.trusted-proxies")
async def test_ipv6_clients_are_told_apart_with_and_without_a_port(start: StartService) -> None:
    service = await start(failed_logins=1, trusted_proxies=[PROXY])
    for hop, expected in (
        ("2001:db8::1", 401),
        ("[2001:db8::1]:443", 429),
        ("[2001:db8::1]", 429),
        ("2001:db8::2", 401),
    ):
        assert (await fail(service, PROXY, **{"x-forwarded-for": hop})).status_code == expected, hop


async def test_a_request_that_names_only_proxies_comes_from_the_first(start: StartService) -> None:
    service = await start(failed_logins=1, trusted_proxies=["10.0.0.0/8"])
    assert (await fail(service, PROXY, **{"x-forwarded-for": "10.1.1.1"})).status_code == 401
    assert (await fail(service, PROXY, **{"x-forwarded-for": "10.1.1.2"})).status_code == 401
    assert (await fail(service, OTHER_PROXY, **{"x-forwarded-for": "10.1.1.1"})).status_code == 429


async def test_a_proxy_that_is_no_address_is_refused_at_the_start(start: StartService) -> None:
    with pytest.raises(ConfigurationError, match="trusted_proxies"):
        await start(trusted_proxies=["the proxy"])
