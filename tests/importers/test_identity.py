"""The table of identity: what happens to names, and where all that belongs to a thing is then."""

import json
from collections.abc import Sequence
from importlib import import_module
from itertools import product
from pathlib import Path
from typing import Any, Final

import pytest

from factbook import worker
from factbook.auth import users
from factbook.auth.permissions import OWN_WRITE
from factbook.catalog import ref as refs
from factbook.clock import DAY
from factbook.importers import records
from factbook.importers.github import find_event_hints
from factbook.importers.registry import KINDS
from tests.api.checking import (
    CHECKS,
    DIGESTS,
    EXEMPTIONS,
    RESULTS,
    SCORECARDS,
    check,
    evaluated,
    put,
    scorecard,
    shown,
    with_source,
)
from tests.api.defining import (
    CONNECTIONS,
    SOURCES,
    define,
    history,
    item,
    latest,
    push,
    pushed,
)
from tests.conftest import StartService
from tests.fakes.github.state import Repository
from tests.importers.deliveries import SECRET, push_to
from tests.importers.identity_hosts import GiteaHost, GithubHost, GitlabHost, IdentityHost, Things
from tests.service import PUSH, Service, component

# Statements are the same whichever the host is.
EACH_HOST = pytest.mark.parametrize(
    ("database_url", "kind"),
    [
        ("sqlite", GithubHost),
        ("sqlite", GitlabHost),
        ("sqlite", GiteaHost),
        ("postgresql", GithubHost),
    ],
    indirect=["database_url"],
)

DATA: Final = Path(__file__).parent.parent / "data"
SHOP: Final = "component:default/shop"

# What a host has in the beginning and after each step: numbers with names.
TABLE: Final[dict[str, Sequence[Things]]] = {
    "renamed": ({1: "a"}, {1: "b"}),
    "reused": ({1: "a"}, {1: "b", 3: "a"}),
    "swapped": ({1: "a", 2: "b"}, {1: "b", 2: "a"}),
    "rotated": ({1: "a", 2: "b", 4: "c"}, {1: "b", 2: "c", 4: "a"}),
    "recreated": ({1: "a"}, {3: "a"}),
    "deleted-first": ({1: "a"}, {}, {3: "a"}),
    "returned": ({1: "a"}, {3: "a"}, {3: "a", 1: "b"}),
    "transferred": ({1: "a"}, {}, {1: "b"}),
    "split": ({1: "a"}, {1: "a", 3: "b"}),
    "merged": ({1: "a", 2: "b"}, {1: "a"}),
}
# What GitHub sends about things that have names.
EVENTS: Final = (
    "create", "delete", "member", "membership", "organization", "public", "push", "repository",
    "team", "team_add",
)  # fmt: skip
# Of others that stay, so that what goes is a small part.
OTHERS: Final = {1_000 + number: f"other-{number}" for number in range(40)}


def step(place: int) -> Things:
    """Everything at one step; what has no such step stays as it was."""
    found = dict(OTHERS)
    for row, (word, steps) in enumerate(TABLE.items()):
        now = steps[min(place, len(steps) - 1)]
        found |= {10 + row * 10 + number: f"{word}-{name}" for number, name in now.items()}
    return found


class Possessions:
    """What belongs to an entity, as the interfaces show it."""

    def __init__(self, service: Service) -> None:
        self.service = service

    async def give(self, refs: dict[str, int]) -> None:
        """Facts of two days, and an exemption, by the number of each."""
        for day in (1, 2):
            await push(self.service, *(item(ref, lines=n * day) for ref, n in refs.items()))
            self.service.time.advance(DAY)
        asking = await self.service.token(owner="user:default/asks")
        deciding = await self.service.token(owner="user:default/decides")
        async with self.service.client(asking) as ask, self.service.client(deciding) as decide:
            for ref in refs:
                wish = {"check": "covered", "entity": ref, "reason": "Frozen"}
                made = await ask.post(EXEMPTIONS, json={**wish, "until": "2027-03-31"})
                assert made.status_code == 201, made.text
                id_ = made.json()["id"]
                answer = await decide.post(f"{EXEMPTIONS}/{id_}/approve", json={})
                assert answer.status_code == 200, answer.text

    async def of(self, *refs: str) -> dict[str, Any]:
        """Id, facts, history and state of each; an entity that is missing has no id."""
        await evaluated(self.service)
        facts = await latest(self.service)
        found = {}
        for ref in refs:
            entity = await self.service.catalog(ref)
            uid = entity and entity["metadata"]["uid"]
            past = [one["facts"] for one in await history(self.service, ref)] if entity else []
            answer = await self.service.http.get(RESULTS, params={"entity": ref})
            states = [one["state"] for one in answer.json()["results"]] if entity else []
            found[ref] = (uid, facts.get(ref), past, states)
        return found


@pytest.fixture
async def service(start: StartService) -> Service:
    service = await start()
    await with_source(service)
    await put(service, check(), publish=True)
    return service


async def misplaced(host: IdentityHost, service: Service, read: Any) -> list[str]:
    """Go through the table; the names under which something is that doesn't belong there."""
    possessions = Possessions(service)
    before = step(0)
    host.set(before)
    await host.poll()
    owners = before.keys() - OTHERS.keys()
    given = {ref: number for number in owners for ref in host.refs(before[number])}
    await possessions.give(given)
    had = await possessions.of(*given)
    assert all(uid and states == ["exempt"] for uid, _, _, states in had.values())
    uids = {one[0] for one in had.values()}
    for place in (1, 2):
        host.set(step(place))
        await read()
    for part in await records.list_part_records(service.state.database):
        assert (part.state, part.problems) == ("complete", []), part
    wrong, seen = list[str](), 0
    for number, name in step(2).items() - OTHERS.items():
        thens = host.refs(before.get(number, ""))
        for then, (now, own) in zip(
            thens, (await possessions.of(*host.refs(name))).items(), strict=True
        ):
            is_new = (own[1:], own[0] in {None, *uids}) == ((None, [], ["unknown"]), False)
            if not (own == had[then] if number in owners else is_new):
                wrong.append(now)
            seen += 1
    assert seen >= len(TABLE)
    return wrong


@pytest.mark.slow
@EACH_HOST
async def test_what_belongs_to_a_thing_goes_where_it_goes(
    service: Service, kind: type[IdentityHost]
) -> None:
    host = kind(service)
    assert await misplaced(host, service, host.poll) == []


@pytest.mark.slow
@pytest.mark.parametrize(
    ("database_url", "backwards", "polls"),
    [
        *product(["sqlite"], [False, True], [False, True]),
        ("postgresql", True, True),
    ],
    indirect=["database_url"],
)
async def test_events_in_any_order_lead_to_the_same(
    service: Service, *, backwards: bool, polls: bool
) -> None:
    host = GithubHost(service, webhook_secret=SECRET, people=False)

    async def read() -> None:
        await host.events(backwards=backwards)
        if polls:
            await host.poll()

    assert await misplaced(host, service, read) == []


@pytest.mark.slow
@pytest.mark.parametrize(
    ("database_url", "kind"),
    [("sqlite", GithubHost), ("sqlite", GitlabHost), ("postgresql", GithubHost)],
    indirect=["database_url"],
)
async def test_a_repository_that_goes_to_another_organization_stays_the_same(
    service: Service, kind: type[IdentityHost]
) -> None:
    host, possessions = kind(service, "other", "acme", people=False), Possessions(service)
    host.set({1: "acme/shop", 2: "acme/web", 3: "other/api"})
    await host.poll()
    names = "component:acme/shop", "component:acme/web", "component:default/api"
    await possessions.give({name: n for n, name in enumerate(names, 1)})
    had = [*(await possessions.of(*names)).values()]
    host.set({1: "other/store", 2: "other/web", 3: "acme/shop", 4: "other/api"})
    await host.poll()
    moved = "component:default/store", "component:default/web", "component:acme/shop"
    assert [*(await possessions.of(*moved)).values()] == had
    [(uid, *rest)] = (await possessions.of("component:default/api")).values()
    assert (rest, uid in {one[0] for one in had}) == ([None, [], ["unknown"]], False)


@pytest.mark.slow
async def test_an_event_about_a_transfer_waits_for_the_organization_that_it_left(
    service: Service,
) -> None:
    host = GithubHost(service, "other", "acme", people=False, webhook_secret=SECRET)
    possessions = Possessions(service)
    host.set({1: "acme/shop", 2: "acme/web", 3: "other/api"})
    await host.poll()
    await possessions.give({"component:acme/shop": 1})
    [had] = (await possessions.of("component:acme/shop")).values()
    host.set({1: "other/store", 2: "acme/web", 3: "other/api"})
    await host.events(backwards=False)
    assert [*(await possessions.of("component:default/store")).values()] == [had]
    assert await service.catalog("component:acme/shop") is None


async def test_a_new_repository_with_the_name_of_a_renamed_one_begins_with_nothing(
    service: Service,
) -> None:
    said = json.loads((DATA / "vendors" / "01-new-repository-inherits.json").read_text())
    before, after = (
        {one["databaseId"]: one["name"] for one in said[when]} for when in ("before", "after")
    )
    host, possessions = GithubHost(service, people=False), Possessions(service)
    host.set(before)
    await host.poll()
    payments, legacy = (f"component:default/{name}" for name in ("payments", "payments-legacy"))
    await possessions.give({payments: 42})
    [had] = (await possessions.of(payments)).values()
    host.set(after)
    await host.poll()
    found = await possessions.of(payments, legacy)
    assert found[legacy] == had
    assert found[payments][1:] == (None, [], ["unknown"])
    assert found[payments][0] not in (None, had[0])


async def test_nothing_goes_to_a_namesake_of_what_was_forgotten(service: Service) -> None:
    host, possessions = GithubHost(service, people=False), Possessions(service)
    host.set({1: "shop", 2: "web"})
    await host.poll()
    await possessions.give({SHOP: 1})
    host.set({2: "web"})
    await host.poll()
    service.time.advance(8 * DAY)
    state = service.state
    await worker.sweep(state.database, state.settings, (), state.clock())
    host.set({2: "web", 3: "shop"})
    await host.poll()
    assert (await possessions.of(SHOP))[SHOP][1:] == (None, [], ["unknown"])


async def give_rights(service: Service, word: str, owner: str) -> None:
    """Give a group every right, with its name as people may write it."""
    id_, written = f"of-{word}", owner.title()
    short = written.rpartition("/")[2]
    await put(service, check(id_, owner=short), publish=True)
    await define(service, pushed(f"from-{word}", owner=short))
    entries = [{"check": id_, "level": "bronze"}]
    card = scorecard(id_, owner=written, exemptions={"approvers": [written]}, entries=entries)
    shared = {"baseUrl": "https://ci.example.com", "sharedWith": [short]}
    # Its hour tells it from the others.
    hour = list(TABLE).index(word)
    digest = {"owner": short, "url": "https://127.0.0.1/", "form": "slack", "hour": hour}
    for answer in (
        await service.http.put(f"{SCORECARDS}/{id_}", json=card, params={"publish": "true"}),
        await service.http.put(f"{CONNECTIONS}/{id_}", json=shared),
        await service.http.post(DIGESTS, json=digest),
        await service.push(id_, component(f"mine-{word}", owner=short)),
    ):
        assert answer.status_code < 300, answer.text
    await service.token("catalog.entity.read", owner=owner, name=id_)


async def rights(service: Service, word: str) -> dict[str, str]:
    """The group that has each right, as a reference."""
    id_, http = f"of-{word}", service.http
    card = (await http.get(f"{SCORECARDS}/{id_}")).json()
    source = (await http.get(f"{SOURCES}/from-{word}")).json()
    [approver] = card["exemptions"]["approvers"]
    [shared] = (await http.get(f"{CONNECTIONS}/{id_}")).json()["sharedWith"]
    made = (await http.get("/api/access/v1/tokens")).json()["tokens"]
    sent = (await http.get(DIGESTS)).json()["digests"]
    found = {
        "check": (await shown(service, id_))["owner"],
        "scorecard": card["owner"],
        "exemptions": approver,
        "source": source["owner"],
        "connection": shared,
        "digest": next(one["owner"] for one in sent if one["hour"] == [*TABLE].index(word)),
        "token": next(one["owner"] for one in made if one["name"] == id_),
    }
    return {right: refs.canonicalize_ref(name, kind="group") for right, name in found.items()}


@pytest.mark.slow
@EACH_HOST
async def test_rights_of_a_group_stay_with_the_group_and_never_go_to_its_namesake(
    start: StartService, kind: type[IdentityHost]
) -> None:
    service = await start(outgoing_networks=["127.0.0.0/8"])
    await with_source(service)
    host = kind(service)
    host.has_members = True
    host.set(step(0))
    await host.poll()
    first = {word: f"{word}-{steps[0][1]}" for word, steps in TABLE.items()}
    for word, name in first.items():
        await give_rights(service, word, host.group.format(name))
    for place in (1, 2):
        host.set(step(place))
        await host.poll()
    for word, steps in TABLE.items():
        now = steps[-1].get(1)
        wanted = host.group.format(f"{word}-{now}") if now else f"{host.group.format(first[word])}#"
        found = await rights(service, word)
        assert {
            right: name if now else name.rstrip("0123456789") for right, name in found.items()
        } == dict.fromkeys(found, wanted)
        # Its members may change it, and those of whatever has its name now may not.
        names = {f"{word}-{name}" for name in steps[-1].values()}
        for name in names | {first[word]}:
            token = await service.token(
                "tech-insights.data-source.read", OWN_WRITE, owner=f"user:default/{name}"
            )
            document = check(f"of-{word}", owner=host.group.format(name))
            mine = component(f"mine-{word}", owner=host.group.format(name))
            async with service.client(token) as http:
                answer = await http.put(f"{CHECKS}/of-{word}", json=document)
                pushed_set = await http.put(f"{PUSH}/sets/of-{word}", json={"items": [mine]})
            is_theirs = bool(now) and name == f"{word}-{now}"
            assert answer.status_code == (200 if is_theirs else 403), answer.text
            # Pushed entities name the group. No group may write them once that has another name.
            keeps = is_theirs and name == first[word] and word in {"split", "merged"}
            assert pushed_set.status_code == (200 if keeps else 403), pushed_set.text
        # A push by somebody who may write every set names the owner anew.
        name = first[word]
        mine = component(f"mine-{word}", owner=host.group.format(name), type="library")
        assert (await service.push(f"of-{word}", mine)).status_code == 200
        token = await service.token(OWN_WRITE, owner=f"user:default/{name}")
        async with service.client(token) as http:
            answer = await http.put(f"{PUSH}/sets/of-{word}", json={"items": [mine]})
        assert answer.status_code == (200 if name in names else 403), answer.text


def test_events_of_every_importer_that_takes_them_are_in_the_table() -> None:
    """Only GitHub sends events, about repositories; groups and people are polled everywhere."""
    kinds = [import_module(f"factbook.importers.{kind.id}").IMPORTER for kind in KINDS]
    takes = {one.id for one in kinds if one.reread is not None}
    assert takes == {GithubHost.kind}
    body = push_to(Repository("acme/shop"))
    about = {name for name in EVENTS if find_event_hints({b"x-github-event": name.encode()}, body)}
    assert about == {"push", "repository"}


@pytest.mark.both_databases
async def test_an_account_loses_the_rights_of_a_name_that_another_person_has(
    service: Service,
) -> None:
    host = GithubHost(service)
    host.set({1: "alice", 2: "bob"})
    await host.poll()
    assert (await service.push("mine", component("shop", owner="alice"))).status_code == 200
    await service.state.database.write(
        lambda tx: users.create_user(
            tx,
            ref="user:default/alice",
            display_name="Alice",
            role="viewer",
            created_by="user:default/admin",
            now=service.time(),
            proof=users.BY_ADMINISTRATOR,
        )
    )
    token = await service.token("tech-insights.check.read", owner="user:default/alice")
    wish = {"check": "covered", "entity": SHOP, "reason": "Frozen", "until": "2026-12-31"}

    async def asked() -> int:
        async with service.client(token) as http:
            return (await http.post(EXEMPTIONS, json=wish)).status_code

    assert await asked() == 201
    host.set({1: "carol", 2: "bob", 3: "alice"})
    await host.poll()
    wish["check"] = "other"
    await put(service, check("other"), publish=True)
    assert await asked() == 403
