"""Badges for everyone: of public scorecards alone, as an image and for shields.io."""

from typing import Any

import httpx2
import pytest

from tests.api.checking import BADGES, OWNED, SCORECARDS, check, evaluated, put, scorecard
from tests.conftest import StartService
from tests.service import Service, component

WEB = "component:default/web"


@pytest.fixture
async def service(start: StartService) -> Service:
    service = await start()
    await service.push("shop", component("web"), component("v1.2"))
    await put(service, check("owned", rule=OWNED), publish=True)
    for id_, is_public in (("readiness", True), ("secret", False)):
        entries = [{"check": "owned", "level": "bronze"}]
        document = scorecard(id_, entries=entries, public=is_public)
        await service.http.put(f"{SCORECARDS}/{id_}?publish=true", json=document)
    await evaluated(service)
    return service


async def ask(service: Service, path: str, **headers: Any) -> httpx2.Response:
    async with service.client(None) as http:
        return await http.get(f"{BADGES}/{path}", headers=headers)


async def test_a_badge_needs_no_token_and_shows_the_level(service: Service) -> None:
    answer = await ask(service, f"readiness/{WEB}.svg")
    assert answer.headers["content-type"] == "image/svg+xml; charset=utf-8"
    assert 'aria-label="Readiness: silver"' in answer.text
    shields = await ask(service, f"readiness/{WEB}.json")
    shown = shields.json()
    assert (shown["schemaVersion"], shown["label"], shown["message"]) == (1, "Readiness", "silver")
    assert (await ask(service, "readiness/component:default/v1.2.svg")).status_code == 200


async def test_a_badge_that_did_not_change_is_not_sent_again(service: Service) -> None:
    first = await ask(service, f"readiness/{WEB}.svg")
    again = await ask(service, f"readiness/{WEB}.svg", **{"if-none-match": first.headers["etag"]})
    assert (again.status_code, again.content) == (304, b"")
    other = await ask(service, f"readiness/{WEB}.svg", **{"if-none-match": '"other"'})
    assert other.status_code == 200


async def test_what_is_not_public_looks_like_what_is_not_there(service: Service) -> None:
    secret = await ask(service, f"secret/{WEB}.json")
    nothing = await ask(service, f"none/{WEB}.json")
    nobody = await ask(service, "readiness/component:default/none.json")
    assert {one.status_code for one in (secret, nothing, nobody)} == {404}
    assert {one.json()["error"]["message"] for one in (secret, nothing, nobody)} == {
        "There is no such badge."
    }
