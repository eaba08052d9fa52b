"""Events of GitHub: hints about what is to be read again, and nothing more."""

import asyncio
import json
import time
from functools import partial
from typing import Any
from urllib.parse import quote

import httpx2
import pytest
from starlette.requests import Request
from starlette.responses import Response

from factbook.app import Application
from factbook.clock import DAY, HOUR, MINUTE, SECOND
from factbook.importers import records, registry
from factbook.importers.registry import ImporterRegistry
from factbook.importers.runner import ImportRunner
from factbook.scheduling import lease
from factbook.settings import Settings
from tests.api.test_overload import Slow
from tests.conftest import TOKEN_KEY
from tests.fakes import faults
from tests.fakes.github.app import FakeGitHub
from tests.fakes.github.state import Repository, Token
from tests.importers.deliveries import EVENTS, SECRET, about, signed
from tests.importers.organization import CATALOG, file, repository, team
from tests.integrations.github.asking import TOKEN, Collector
from tests.service import PUSH, Service, Time, component
from tests.web.visiting import signed_in, words

ABOUT = {"node_id": "R_1", "full_name": "acme/shop", "default_branch": "main"}
SHOP, OTHER = "component:default/shop", "component:default/other"


class World:
    """The organization `acme`, an importer that takes its events, and a service that receives."""

    def __init__(self, service: Service, *repositories: Repository, **options: Any) -> None:
        self.service = service
        self.token = Token(TOKEN)
        self.fake = FakeGitHub(repositories, [self.token], clock=service.time)
        self.fake.teams.append(team("crew", 1, admin=["plain"]))
        self.delivery = 0
        table = {"organizations": ["acme"], "webhook_secret": SECRET, "every": "6h", **options}
        accounts = {"github": {"default": {"token": TOKEN}}}
        importer = registry.configure_importer("github", "default", table, accounts)
        database = service.state.database
        self.client = client = Collector(self.fake, service.time).client
        service.state.importers = ImporterRegistry(
            database, [importer], {}, service.time, lambda: b"a key of tests" * 5
        )
        self.runner = ImportRunner(
            database,
            Settings(),
            service.state.importers,
            lambda integration: client,
            service.time,
            "a",
        )

    async def work(self) -> int:
        """Do what is due; returns the number of requests that it took."""
        before = sum(self.fake.requests.values())
        await self.runner.drain()
        return sum(self.fake.requests.values()) - before

    async def after(self, one: Repository, event: str = "push", **body: Any) -> int:
        """Send an event, wait until it is due, and do what is due."""
        answer = await self.send(one, event, **body)
        assert answer.status_code == 202, answer.text
        self.service.time.advance(5 * SECOND)
        return await self.work()

    async def send(
        self,
        one: Repository,
        event: str = "push",
        *,
        secret: str = SECRET,
        delivery: str = "",
        **body: Any,
    ) -> httpx2.Response:
        """Send an event about a repository."""
        return await self.post(
            {"ref": "refs/heads/main", "repository": about(one), **body}, event, secret, delivery
        )

    async def post(
        self, body: object, event: str, secret: str = SECRET, delivery: str = ""
    ) -> httpx2.Response:
        content = body if isinstance(body, bytes) else json.dumps(body).encode()
        self.delivery += 1
        headers = signed(content, event, secret, delivery or str(self.delivery))
        async with self.service.client(None) as http:
            return await http.post(EVENTS, content=content, headers=headers)

    async def state(self) -> tuple[str, int]:
        """The state of the part of the repositories, and how many removals it holds."""
        found = await records.get_part_record(
            self.service.state.database, "github", "acme.repositories"
        )
        assert found is not None
        return found.state, len(found.held)

    async def uid(self, ref: str) -> str:
        entity = await self.service.catalog(ref)
        assert entity is not None
        return str(entity["metadata"]["uid"])


@pytest.fixture
def shop() -> Repository:
    return repository("shop", 1, texts={CATALOG: file("shop")})


@pytest.fixture
async def world(service: Service, shop: Repository) -> World:
    world = World(
        service,
        shop,
        repository("other", 2, texts={CATALOG: file("other")}),
        repository("plain", 3),
    )
    await world.work()
    return world


def edited(one: Repository, text: str) -> None:
    one.texts[CATALOG] = text.encode()
    one.commits += 1


@pytest.mark.slow
async def test_a_push_is_seen_within_ten_seconds_by_at_most_three_requests(
    world: World, shop: Repository
) -> None:
    other = await world.service.catalog(OTHER)
    edited(shop, file("shop") + "---\n" + file("cart"))
    assert (await world.send(shop)).status_code == 202
    assert await world.work() == 0
    world.service.time.advance(6 * SECOND)
    assert 1 <= await world.work() <= 3
    assert await world.service.catalog("component:default/cart")
    assert await world.service.catalog(OTHER) == other
    edited(shop, file("cart"))
    assert await world.after(shop) <= 3
    assert await world.service.catalog(SHOP) is None
    assert await world.service.catalog(OTHER) == other
    assert await world.work() == 0


async def test_a_push_does_not_wait_for_what_is_collected_with_the_same_credential(
    world: World, shop: Repository
) -> None:
    end = asyncio.Event()

    async def waiting(request: Request, answer: faults.Answer) -> Response:
        await end.wait()
        return await answer(request)

    world.fake.fail("tree", waiting, times=50)
    trees = [f"/repos/acme/other/git/trees/{number:040x}" for number in range(50)]
    collecting = [asyncio.create_task(world.client.get(tree)) for tree in trees]
    edited(shop, file("shop") + "---\n" + file("cart"))
    assert await world.after(shop)
    assert await world.service.catalog("component:default/cart")
    end.set()
    await asyncio.gather(*collecting)


@pytest.mark.both_databases
async def test_many_events_at_once_are_one_reading(world: World, shop: Repository) -> None:
    for _ in range(20):
        assert (await world.send(shop)).status_code == 202
    assert await world.after(shop) == 1


@pytest.mark.slow
@pytest.mark.parametrize("name", ["shop", "plain"])
async def test_a_repository_with_another_name_keeps_its_id_and_its_owner(
    world: World, name: str
) -> None:
    [one] = [one for one in world.fake.repositories if one.name == f"acme/{name}"]
    ref, renamed = f"component:default/{name}", f"{name}-2"
    before, uid = await world.service.catalog(ref), await world.uid(ref)
    one.old_names.append(one.name)
    one.name = f"acme/{renamed}"
    if name == "shop":
        edited(one, file(renamed))
    assert await world.after(one, "repository", action="renamed") <= 3
    assert await world.service.catalog(ref) is None
    assert await world.uid(f"component:default/{renamed}") == uid
    after = await world.service.catalog(f"component:default/{renamed}")
    assert before is not None
    assert after is not None
    assert after["spec"]["owner"] == before["spec"]["owner"]


async def test_a_repository_is_gone_when_github_says_so_and_not_when_an_event_does(
    world: World, shop: Repository
) -> None:
    await world.after(shop, "repository", action="deleted")
    assert await world.service.catalog(SHOP)
    world.fake.repositories.remove(shop)
    world.fake.fail("graphql", faults.bad_gateway, times=9)
    await world.after(shop, "repository", action="deleted")
    assert await world.service.catalog(SHOP)
    world.fake.recover()
    world.service.time.advance(DAY // 24)
    await world.work()
    assert await world.service.catalog(SHOP) is None
    assert await world.service.catalog(OTHER)


@pytest.mark.slow
async def test_a_credential_that_sees_less_empties_nothing_by_many_events(
    world: World, shop: Repository
) -> None:
    many = [repository(f"r{n}", 10 + n, texts={CATALOG: file(f"r{n}")}) for n in range(12)]
    world.fake.repositories.extend(many)
    world.service.time.advance(6 * HOUR)
    await world.work()
    world.token.hidden |= {one.name for one in many}
    for one in many[:6]:
        await world.send(one)
    await world.after(shop)
    assert await world.state() == ("held", 12)
    # They wait for a person, and another run would tell nothing new.
    for one in many[6:]:
        await world.send(one)
    assert await world.after(shop) <= 3
    assert await world.state() == ("held", 12)
    for one in many:
        assert await world.service.catalog(f"component:default/{one.name.partition('/')[2]}")


@pytest.mark.slow
@pytest.mark.parametrize("event", ["push", "deleted"])
async def test_a_repository_that_took_a_former_name_stays(
    world: World, shop: Repository, event: str
) -> None:
    shop.old_names.append(shop.name)
    shop.name = "acme/shop-old"
    edited(shop, file("shop-old"))
    await world.after(shop, "repository", action="renamed")
    successor = Repository(
        "acme/shop", number=9, files=[CATALOG], texts={CATALOG: file("shop").encode()}
    )
    successor.old_names.append("acme/another")
    world.fake.repositories.append(successor)
    await world.after(successor, "repository", action="created")
    before = await world.service.catalog(SHOP)
    assert before is not None
    if event == "deleted":
        world.fake.repositories.remove(shop)
        about = {"node_id": shop.id, "full_name": "acme/shop"}
        await world.after(shop, "repository", action="deleted", repository=about)
    else:
        edited(shop, file("older"))
        await world.after(shop)
        assert await world.service.catalog("component:default/older")
    assert await world.service.catalog(SHOP) == before


async def test_what_an_event_leads_to_is_decided_by_a_run_at_once(
    world: World, shop: Repository
) -> None:
    world.fake.repositories.remove(shop)
    await world.after(shop, "repository", action="deleted")
    assert await world.service.catalog(SHOP) is None
    assert await world.service.catalog(OTHER)
    assert await world.after(shop, "repository", action="deleted") == 1


@pytest.mark.both_databases
async def test_what_cannot_be_read_is_read_later(world: World, shop: Repository) -> None:
    edited(shop, file("cart"))
    world.fake.fail("graphql", faults.bad_gateway, times=9)
    await world.after(shop)
    assert await world.service.catalog(SHOP)
    world.fake.recover()
    world.service.time.advance(2 * 60 * SECOND)
    assert 1 <= await world.work() <= 3
    assert await world.service.catalog("component:default/cart")


async def test_a_wrong_signature_is_refused_and_recorded(world: World, shop: Repository) -> None:
    edited(shop, file("cart"))
    for answer in (
        await world.send(shop, secret="another secret, as long as it"),
        await world.service.http.post(EVENTS, json={}),
        await world.service.http.post(EVENTS.replace("github", "nobody"), json={}),
    ):
        assert answer.status_code == 403, answer.text
    world.service.time.advance(HOUR)
    assert await world.work() == 0
    audit = await world.service.http.get("/api/access/v1/audit", params={"outcome": "refused"})
    assert len(audit.json()["records"]) == 3


@pytest.mark.slow
async def test_refused_events_are_told_on_the_page_of_their_importer(
    world: World, shop: Repository
) -> None:
    visitor = await signed_in(world.service)
    assert "refused" not in await visitor.text("/imports/github")
    for _ in range(2):
        await world.send(shop, secret="another secret, as long as it")
    await world.service.state.refusals.write()
    page = await visitor.text("/imports/github")
    assert "2 events of the last day were refused" in words(page)
    assert f"/administration/audit?object={quote(EVENTS, safe='')}" in page
    world.service.time.advance(DAY + HOUR)
    visitor = await signed_in(world.service, "eve")
    assert "were refused" not in await visitor.text("/imports/github")


async def test_who_guesses_signatures_is_slowed_down(world: World, shop: Repository) -> None:
    statuses = [(await world.send(shop, secret="x" * 20)).status_code for _ in range(40)]
    assert set(statuses) == {403, 429}
    # Nor is anything read of what comes from there.
    assert (await world.post(b" " * 26_000_000, "push")).status_code == 429
    assert (await world.send(shop)).status_code == 429
    world.service.time.advance(MINUTE)
    assert (await world.send(shop)).status_code == 202


@pytest.mark.slow
@pytest.mark.parametrize("database_url", ["sqlite"], indirect=True)
async def test_large_bodies_of_anybody_wait_for_room_of_their_own(
    world: World, shop: Repository
) -> None:
    bodies = [Slow(world.service, "POST", EVENTS, "x" * 20_000_000) for _ in range(5)]
    await bodies[0].asked_for.wait()
    # Many turns of the loop, in which the others could have begun.
    for _ in range(3):
        assert (await world.send(shop)).status_code == 202
        assert (await world.service.push("all", component("pushed"))).status_code == 200
    large = {"items": [component("large")], "filler": "x" * 2_000_000}
    assert (await world.service.http.put(f"{PUSH}/sets/large", json=large)).status_code == 400
    assert [one.asked_for.is_set() for one in bodies] == [True, *[False] * 4]
    for one in bodies:
        assert (await one.finish()).status_code == 403


@pytest.mark.parametrize("database_url", ["sqlite"], indirect=True)
async def test_nothing_is_read_for_an_importer_that_takes_no_events(world: World) -> None:
    nobody = EVENTS.replace("github", "nobody")
    wrong = await world.service.http.post(EVENTS, json={})
    answer = await world.service.http.post(nobody, content=b" " * 26_000_000)
    assert answer.status_code == 403
    assert answer.json()["error"]["message"] == wrong.json()["error"]["message"]


@pytest.mark.both_databases
async def test_hints_of_an_importer_that_is_gone_are_not_followed_and_are_forgotten(
    world: World, shop: Repository
) -> None:
    database, now = world.service.state.database, world.service.time()
    await database.write(partial(records.give_hints, importer="gone", hints=["R_1"], now=now))
    assert await world.after(shop) > 0
    assert await database.all("SELECT importer FROM import_hints") == [("gone",)]
    world.service.time.advance(7 * DAY)
    await world.after(shop)
    assert await database.all("SELECT importer FROM import_hints") == []


async def test_hints_are_kept_while_an_importer_takes_no_events(
    world: World, shop: Repository
) -> None:
    edited(shop, file("cart"))
    await world.send(shop)
    world.service.time.advance(5 * SECOND)
    without = World(world.service, *world.fake.repositories, webhook_secret="")
    await without.work()
    assert await world.service.catalog("component:default/cart") is None
    again = World(world.service, *world.fake.repositories)
    assert await again.work() > 0
    assert await world.service.catalog("component:default/cart")


@pytest.mark.both_databases
async def test_a_delivery_that_comes_again_has_no_effect_for_a_day(
    world: World, shop: Repository
) -> None:
    assert (await world.send(shop, delivery="one")).status_code == 202
    world.service.time.advance(5 * SECOND)
    assert await world.work() > 0
    assert (await world.send(shop, delivery="one")).status_code == 204
    world.service.time.advance(5 * SECOND)
    assert await world.work() == 0
    world.service.time.advance(DAY)
    await world.work()
    assert (await world.send(shop, delivery="one")).status_code == 202


@pytest.mark.parametrize("database_url", ["sqlite"], indirect=True)
async def test_other_events_have_no_effect(world: World, shop: Repository) -> None:
    for answer in (
        await world.post({"zen": "Keep it logically awesome."}, "ping"),
        await world.send(shop, "issues", action="opened"),
        await world.send(shop, ref="refs/heads/main-2"),
        await world.send(shop, ref="refs/tags/main"),
    ):
        assert answer.status_code == 204
    world.service.time.advance(HOUR)
    assert await world.work() == 0


@pytest.mark.parametrize("database_url", ["sqlite"], indirect=True)
async def test_a_body_that_is_none_is_refused_and_loses_nothing(
    world: World, shop: Repository
) -> None:
    assert (await world.post(b"{", "push")).status_code == 400
    assert (await world.post(b"[" * 100_000, "push")).status_code == 400
    assert (await world.post(b" " * 26_000_000, "push")).status_code == 413
    assert await world.service.catalog(SHOP)
    assert (await world.send(shop)).status_code == 202


@pytest.mark.both_databases
async def test_events_are_kept_over_a_restart_and_wait_for_a_run(
    world: World, shop: Repository
) -> None:
    edited(shop, file("cart"))
    await world.send(shop)
    again = World(world.service, *world.fake.repositories)
    world.service.time.advance(6 * HOUR)
    await again.work()
    assert await world.service.catalog("component:default/cart")
    assert await again.work() == 0


async def test_what_was_known_of_the_others_stays(world: World, shop: Repository) -> None:
    [other] = [one for one in world.fake.repositories if one.name == "acme/other"]
    edited(other, "kind: [")
    world.service.time.advance(6 * HOUR)
    await world.work()
    database = world.service.state.database
    before = await records.get_part_record(database, "github", "acme.repositories")
    assert before is not None
    assert before.problem_count == 1
    edited(shop, file("shop") + "---\n" + file("cart"))
    await world.after(shop)
    after = await records.get_part_record(database, "github", "acme.repositories")
    assert after == before._replace(items=before.items + 1)
    edited(other, file("other"))
    await world.after(other)
    after = await records.get_part_record(database, "github", "acme.repositories")
    assert after is not None
    assert (after.problem_count, after.problems) == (0, [])


@pytest.mark.parametrize("database_url", ["postgresql"], indirect=True)
async def test_a_server_whose_clock_is_ahead_delays_no_hint(
    database_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = {"organizations": ["acme"], "webhook_secret": SECRET}
    accounts = {"github": {"default": {"token": TOKEN}}}
    importer = registry.configure_importer("github", "default", table, accounts)
    settings = Settings(database_url=database_url, token_key=TOKEN_KEY, collect=False)
    right = time.time_ns
    monkeypatch.setattr(time, "time_ns", lambda: right() + HOUR * 1_000_000)
    application = Application(settings, importers=(importer,))
    async with application.running() as state:
        body = json.dumps({"ref": "refs/heads/main", "repository": ABOUT}).encode()
        async with Service(application, state, Time()).client(None) as http:
            answer = await http.post(EVENTS, content=body, headers=signed(body))
        assert answer.status_code == 202, answer.text
        soon = await lease.fetch_shared_time(state.database) + 6 * SECOND
        assert [
            one.hint for one in await records.get_due_hints(state.database, ["github"], soon)
        ] != []


async def test_a_repository_whose_only_component_is_written_elsewhere_gets_no_other(
    service: Service,
) -> None:
    location = (
        "apiVersion: v1\nkind: Location\nmetadata: {name: all}\n"
        "spec: {target: https://github.com/acme/shop/blob/main/deploy/x.yaml}\n"
    )
    shop = repository("shop", 1, texts={"deploy/x.yaml": file("storefront")})
    world = World(service, shop, repository("all", 2, texts={CATALOG: location}))
    await world.work()
    uid = await world.uid("component:default/storefront")
    shop.commits += 1
    await world.after(shop)
    assert await service.catalog(SHOP) is None
    assert await world.uid("component:default/storefront") == uid
