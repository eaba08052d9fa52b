"""A token that writes and may not read is answered with what it sent, and with counts."""

from collections.abc import AsyncIterator, Iterable
from typing import NamedTuple

import httpx2
import pytest

from factbook.api.endpoint import Route
from factbook.api.routes import list_routes
from factbook.auth.permissions import (
    CATALOG_READ,
    PERMISSION_NAMES,
    ROLES,
    SET_WRITE,
    SOURCE_READ,
    SOURCE_WRITE,
)
from factbook.settings import Settings
from tests.api.defining import CONNECTIONS, SOURCES, pushed
from tests.api.stored import CANARY, VAULT, Attempt, attempts, store
from tests.conftest import StartService
from tests.service import PUSH, Service, component

ON_SQLITE = pytest.mark.parametrize("database_url", ["sqlite"], indirect=True)
# Clients of OAuth carry no token with permissions there.
WRITES = {
    f"{route.method} {route.path}": route
    for route in list_routes(Settings())
    if route.writes and not route.path.startswith("/oauth/")
}


class Made(NamedTuple):
    """An attempt that was made, and what came of it."""

    attempt: Attempt
    answer: httpx2.Response

    @property
    def shows(self) -> bool:
        """Whether the answer has something in it that others stored."""
        return CANARY in f"{self.answer.text} {self.answer.headers}"


@pytest.fixture
async def filled(start: StartService) -> Service:
    """A service in which others have stored something."""
    networks = {"outgoing_networks": ["127.0.0.1/32"]}
    lenient = await start(entity_names="lenient", **networks)
    service = await start(entity_names="strict", **networks)
    await store(service, lenient)
    return service


async def made(service: Service, *further: str) -> AsyncIterator[Made]:
    """Every attempt, with a token of the permissions of its route and further ones."""
    async for attempt in attempts(service):
        needed = WRITES[attempt.route].permissions or ()
        token = await service.token(*needed, *further, owner="user:default/writer")
        async with service.client(token) as http:
            answer = await http.request(
                attempt.method,
                attempt.path,
                json=attempt.body,
                params=attempt.query,
                headers=attempt.headers,
            )
        status = attempt.status if further else attempt.unread or attempt.status
        assert answer.status_code == status, (attempt, answer.text)
        yield Made(attempt, answer)


def names(found: Iterable[Made]) -> list[str]:
    return [f"{one.attempt.route} {one.attempt.query}: {one.answer.text}" for one in found]


def unstated(routes: Iterable[Route]) -> list[str]:
    return [f"{one.method} {one.path}" for one in routes if one.writes and one.reading is None]


def test_every_route_that_writes_states_what_it_takes_to_be_shown_what_is_stored() -> None:
    assert unstated(list_routes(Settings(push_aliases=["other"]))) == []


@pytest.mark.slow
@pytest.mark.spec("permissions.writing-shows-nothing-stored")
async def test_a_token_that_only_writes_is_shown_nothing_that_others_stored(
    filled: Service,
) -> None:
    found = [one async for one in made(filled)]
    assert {one.attempt.route for one in found} == set(WRITES), "a new route needs an attempt"
    assert names(one for one in found if one.shows) == []


@pytest.mark.slow
async def test_a_token_that_reads_too_is_shown_what_it_is_about(filled: Service) -> None:
    found = [one async for one in made(filled, CATALOG_READ, SOURCE_READ)]
    assert names(one for one in found if one.shows != one.attempt.shown) == []


@ON_SQLITE
def test_every_role_that_writes_reads_too(database_url: str) -> None:
    for held in ROLES.values():
        for route in WRITES.values():
            if held.issuperset(route.permissions or ()):
                assert held.issuperset(route.reading or ()), route.path


@ON_SQLITE
async def test_a_push_answers_the_items_that_were_sent_as_it_does_to_who_may_read(
    service: Service,
) -> None:
    body = {"items": [component("web"), component("api")]}
    answers = []
    for permissions in ((SET_WRITE,), (SET_WRITE, CATALOG_READ)):
        async with service.client(await service.token(*permissions)) as http:
            answer = await http.put(f"{PUSH}/sets/shop", json=body)
            answers.append(answer.json())
    only, both = answers
    assert only["items"] == both["items"]
    assert [item["entityRef"] for item in only["items"]] == [
        "component:default/web",
        "component:default/api",
    ]


@ON_SQLITE
async def test_counts_take_the_place_of_what_is_not_shown(filled: Service) -> None:
    async with filled.client(await filled.token(SET_WRITE)) as http:
        dry = (await http.delete(f"{PUSH}/sets/tried?dryRun=true")).json()
        assert (dry["changes"]["removed"], dry["difference"]) == (1, [])
        restored = (await http.post(f"{PUSH}/sets/dropped/revisions/1/restore")).json()
        assert restored["changes"] == {"added": 1, "updated": 0, "removed": 0, "unchanged": 1}
        assert (restored["items"], restored["warnings"]) == ([], [])
        sent = {"items": [component("held")]}
        error = (await http.put(f"{PUSH}/sets/mine", json=sent)).json()["error"]
        held = {"entityRef": "component:default/held", "owner": "another owner"}
        assert error["conflicts"] == [held]
        error = (await http.post(f"{PUSH}/sets/lost/revisions/1/restore")).json()["error"]
        assert error["message"] == (
            "Other owners hold 1 entities of revision 1; nothing was written."
        )
    shown = (await filled.http.put(f"{PUSH}/sets/mine", json=sent)).json()["error"]
    assert shown["conflicts"] == [{**held, "owner": VAULT}]


@ON_SQLITE
async def test_a_trial_of_what_is_stored_takes_the_permission_to_read_it(filled: Service) -> None:
    token = await filled.token(CATALOG_READ, SOURCE_WRITE)
    async with filled.client(token) as http:
        answer = await http.post(f"{SOURCES}/owners/test", json={"entity": "component:plain"})
    assert answer.status_code == 403
    assert SOURCE_READ in answer.text
    assert CANARY not in answer.text


@ON_SQLITE
async def test_who_writes_sources_and_may_not_read_them_is_shown_the_document_that_was_sent(
    filled: Service,
) -> None:
    async with filled.client(await filled.token(SOURCE_WRITE)) as http:
        document = pushed("replaced", description="Sent just now.")
        shown = (await http.put(f"{SOURCES}/replaced", json=document)).json()
        published = (await http.post(f"{SOURCES}/covered/publish")).json()
        connections = (await http.get(CONNECTIONS)).json()["connections"]
    assert (shown["description"], shown["version"]) == ("Sent just now.", "1.0.0")
    assert "definition" not in shown
    assert published == {
        "id": "covered",
        "title": "covered",
        "draft": False,
        "version": "1.0.0",
        "schema": {},
        "origin": "custom",
    }
    assert [(one["usedBy"], one["usedByCount"]) for one in connections] == [([], 1), ([], 1)]


@ON_SQLITE
async def test_the_permission_to_read_that_a_route_names_is_what_lifts_it(filled: Service) -> None:
    every = PERMISSION_NAMES - {CATALOG_READ}
    async with filled.client(await filled.token(*every)) as http:
        dry = (await http.delete(f"{PUSH}/sets/tried?dryRun=true")).json()
    assert dry["difference"] == []
