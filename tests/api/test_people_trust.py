"""Who is believed about people: every way an entity arrives, and every right of a membership."""

from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from dataclasses import replace
from typing import Any, Final, NamedTuple

import pytest

from factbook.auth import permissions
from factbook.auth.tokens import Narrowing
from factbook.importers.snapshot import ImportedItem, Snapshot, SnapshotPart
from factbook.importers.writer import ImportTarget, write_snapshot
from factbook.operations.doctor import database
from tests.api.checking import (
    CHECKS,
    EXEMPTIONS,
    SCORECARDS,
    check,
    put,
    scorecard,
    wish,
    with_source,
)
from tests.api.defining import CONNECTIONS, SOURCES, pushed
from tests.conftest import StartService
from tests.scim.provisioning import Provider
from tests.service import PUSH, Service, component
from tests.web.scoring import group, person
from tests.web.visiting import signed_in

EDITOR: Final = tuple(permissions.ROLES["editor"])
TRUSTED: Final = "directory"
Items = Sequence[dict[str, Any]]


class Way(NamedTuple):
    """A way for a membership to arrive, whether its writer is trusted, and whether it stays."""

    name: str
    arrive: Callable[[Service, str, str], Awaitable[object]]
    trusted: bool
    stays: bool = True


def people(name: str, team: str) -> Items:
    """A person in a group that is there, too."""
    return [group(team), person(name, team)]


def listing(name: str, team: str) -> Items:
    """The same, stated by the group."""
    crew = group(team)
    crew["spec"]["members"] = [name]
    return [crew, person(name)]


def full(set_: str, make: Callable[[str, str], Items] = people) -> Any:
    async def arrive(service: Service, name: str, team: str) -> None:
        there = (await service.http.get(f"{PUSH}/sets/{set_}")).json().get("items", [])
        items = [*(one["entity"] for one in there), *make(name, team)]
        assert (await service.push(set_, *items)).status_code == 200

    return arrive


def narrowed(set_: str, **bounds: tuple[str, ...]) -> Any:
    async def arrive(service: Service, name: str, team: str) -> None:
        token = await service.token(narrowing=Narrowing(**bounds))
        async with service.client(token) as http:
            for one in people(name, team):
                answer = await http.post(f"{PUSH}/sets/{set_}", json=one)
                assert answer.status_code == 200, answer.text

    return arrive


async def outside(service: Service, name: str, team: str) -> None:
    for one in people(name, team):
        answer = await service.http.post(f"{PUSH}/entities", json=one)
        assert answer.status_code == 200, answer.text


async def owned(service: Service, name: str, team: str) -> None:
    """Push as the person itself, which may write what its groups own."""
    async with service.client(await service.token(*EDITOR, owner=f"user:default/{name}")) as http:
        answer = await http.put(f"{PUSH}/sets/{name}", json={"items": people(name, team)})
        assert answer.status_code == 403, answer.text


def restored(set_: str) -> Any:
    async def arrive(service: Service, name: str, team: str) -> None:
        assert (await service.push(set_, *people(name, team))).status_code == 200
        assert (await service.push(set_, component(f"{set_}-other"))).status_code == 200
        answer = await service.http.post(f"{PUSH}/sets/{set_}/revisions/1/restore")
        assert answer.status_code == 200, answer.text

    return arrive


async def dry(service: Service, name: str, team: str) -> None:
    answer = await service.push(TRUSTED, *people(name, team), dryRun="true")
    assert answer.status_code == 200, answer.text


def taken(set_: str, other: str) -> Any:
    async def arrive(service: Service, name: str, team: str) -> None:
        before = [group(team), person(name)]
        assert (await service.push(other, *before)).status_code == 200
        answer = await service.push(set_, *people(name, team), onConflict="take")
        assert answer.status_code == 200, answer.text

    return arrive


def imported(importer: str, *parts: tuple[str, str]) -> Any:
    """Parts of an import by their keys, each with `group`, `person` or both."""

    async def arrive(service: Service, name: str, team: str) -> None:
        made = {"group": group(team), "person": person(name, team)}
        await read(
            service,
            importer,
            *(part(key, *(made[word] for word in words.split())) for key, words in parts),
        )

    return arrive


def part(key: str, *entities: dict[str, Any], known_only: bool = False) -> SnapshotPart:
    items = [ImportedItem(one, f"github.com/acme/{key}", known_only=known_only) for one in entities]
    return SnapshotPart(key, True, tuple(items))


async def read(service: Service, importer: str, *parts: SnapshotPart) -> list[str]:
    """Write parts of an import, and return the problems."""
    state = service.state
    target = ImportTarget(state.database, state.rules, 50, state.database.write)
    results = await write_snapshot(target, importer, Snapshot(parts), service.time())
    return [str(one) for result in results for one in result.record.problems]


async def other_team(service: Service, name: str, team: str) -> None:
    """A member of a code host in a group that somebody else has."""
    assert (await service.push(f"{team}-set", group(team))).status_code == 200
    await read(service, "github-other", part("other.members", person(name, team)))


async def provisioned(service: Service, name: str, team: str) -> None:
    provider = await Provider.at(service)
    async with provider.http:
        await provider.group(team, await provider.user(name))


SPLIT: Final = (("h.people", "group"), ("h.members", "person"))
WAYS: Final = (
    Way("a full token, a set that is not trusted", full("shop-1"), trusted=False),
    Way("a full token, a trusted set", full(TRUSTED), trusted=True),
    Way("a full token, a group with members", full("shop-2", listing), trusted=False),
    Way("a full token, a group in a trusted set", full(TRUSTED, listing), trusted=True),
    Way("a token narrowed to a set", narrowed("shop-3", sets=("shop-*",)), trusted=False),
    Way("a token narrowed to a trusted set", narrowed(TRUSTED, sets=(TRUSTED,)), trusted=True),
    Way("a token of a namespace", narrowed("shop-4", namespaces=("default",)), trusted=False),
    Way("a token of what its groups own", owned, trusted=False, stays=False),
    Way("one entity outside any set", outside, trusted=False),
    Way("a revision", restored("shop-5"), trusted=False),
    Way("a revision of a trusted set", restored("people-1"), trusted=True),
    Way("a dry run", dry, trusted=False, stays=False),
    Way("taken from a trusted set", taken("shop-6", "people-2"), trusted=False),
    Way("taken by a trusted set", taken("people-3", "shop-7"), trusted=True),
    Way("GitHub files", imported("github", ("a.repositories", "group person")), trusted=False),
    Way("GitLab files", imported("gitlab", ("b.projects", "group person")), trusted=False),
    Way("Gitea files", imported("gitea-x", ("c.repositories", "group person")), trusted=False),
    Way("files with people", imported("github", ("d.people", "group person")), trusted=False),
    Way("a catalog", imported("catalog", ("entities", "group person")), trusted=False),
    Way("a cluster", imported("kubernetes", ("x.workloads", "group person")), trusted=False),
    Way("accounts", imported("aws", ("accounts", "group person")), trusted=False),
    Way("GitHub", imported("github", ("e.teams", "group"), ("e.members", "person")), trusted=True),
    Way("GitLab", imported("gitlab", ("f.groups", "group"), ("f.members", "person")), trusted=True),
    Way("Gitea", imported("gitea", ("g.teams", "group"), ("g.members", "person")), trusted=True),
    Way("GitHub, another's team", other_team, trusted=False),
    Way("GitHub, a group of a file", imported("github", *SPLIT), trusted=False),
    Way("LDIF", imported("ldif", ("groups", "group"), ("people", "person")), trusted=True),
    Way("SCIM", provisioned, trusted=True),
)


async def rights(service: Service, name: str, team: str) -> set[str]:
    """What a person may do with what a group owns or decides."""
    owner = f"group:default/{team}"
    token = await service.token(*EDITOR, owner=f"user:default/{name}")
    async with service.client(token) as http:
        items = {"items": [component(f"{team}-thing", owner=owner)]}
        request = wish(entity=f"component:default/{team}", check="covered")
        answers = {
            "set": await http.put(f"{PUSH}/sets/{team}-own?dryRun=true", json=items),
            "source": await http.post(SOURCES, json=pushed(f"{team}-source", owner=owner)),
            "check": await http.post(CHECKS, json=check(f"{team}-check", owner=owner)),
            "ask": await http.post(EXEMPTIONS, json=request),
        }
        found = {right for right, answer in answers.items() if answer.status_code < 300}
        refused = {answer.status_code for right, answer in answers.items() if right not in found}
        assert refused <= {403}, [answer.text for answer in answers.values()]
        connections = (await http.get(CONNECTIONS)).json()["connections"]
        if any(owner in one["sharedWith"] for one in connections):
            found.add("connection")
        about = {"entity": f"component:default/{team}", "scorecard": "readiness", "check": None}
        asked = await service.http.post(EXEMPTIONS, json=wish(**about))
        assert asked.status_code == 201, asked.text
        decided = await http.post(f"{EXEMPTIONS}/{asked.json()['id']}/deny")
        assert decided.status_code in (200, 403), decided.text
        if decided.status_code == 200:
            found.add("decide")
    return found


async def rights_of(service: Service) -> AsyncIterator[tuple[str, str, str]]:
    """What the doctor finds."""
    async for one in database.examine_rights(service.state.database, service.state.settings):
        yield one.state, one.what, one.advice


EVERY_RIGHT: Final = {"set", "source", "check", "ask", "connection", "decide"}


async def prepare(service: Service, teams: Sequence[str]) -> None:
    """Things that groups own and decide on."""
    await with_source(service)
    await put(service, check(), publish=True)
    refs = [f"group:default/{team}" for team in teams]
    shared = {"baseUrl": "https://ci.test", "sharedWith": refs}
    assert (await service.http.put(f"{CONNECTIONS}/ci", json=shared)).status_code == 200
    owned = [component(ref.rpartition("/")[2], owner=ref) for ref in refs]
    assert (await service.push("owned", *owned)).status_code == 200
    # Whoever is in none of them decides nothing, and nobody is in two.
    card = scorecard(exemptions={"approvers": refs})
    answer = await service.http.put(f"{SCORECARDS}/readiness?publish=true", json=card)
    assert answer.status_code == 200, answer.text


@pytest.mark.slow
@pytest.mark.spec("people.only-trusted-sets-give-rights")
async def test_every_right_comes_from_trusted_writers_alone(start: StartService) -> None:
    names = {way: (f"person-{at}", f"team-{at}") for at, way in enumerate(WAYS)}
    service = await start(people_sets=[TRUSTED, "people-*"])
    await prepare(service, [team for _, team in names.values()])
    for way, (name, team) in names.items():
        await way.arrive(service, name, team)
    found = {way.name: await rights(service, *names[way]) for way in WAYS}
    assert found == {way.name: EVERY_RIGHT if way.trusted else set() for way in WAYS}


KINDS: Final = {"shop-*": ["Component"], "import/github/*": ["Component", "User"]}


@pytest.mark.slow
@pytest.mark.spec("people.one-setting-restores-every-right")
async def test_a_directory_in_a_set_stays_and_one_setting_restores_its_rights(
    start: StartService, capsys: pytest.CaptureFixture[str]
) -> None:
    service = await start(people_sets=["*"])
    teams = ["team-a", "team-b", "team-c"]
    await prepare(service, teams)
    staff = [*map(group, teams), person("kim", *teams)]
    assert (await service.push("staff", *staff)).status_code == 200
    assert await rights(service, "kim", "team-a") == EVERY_RIGHT
    capsys.readouterr()
    upgraded = await start(people_sets=None)
    [logged] = [line for line in capsys.readouterr().out.splitlines() if "untrusted" in line]
    assert "user:default/kim" in logged
    assert 'people_sets = ["staff"]' in logged
    assert await rights(upgraded, "kim", "team-b") == set()
    items = (await upgraded.http.get(f"{PUSH}/sets/staff")).json()["items"]
    assert [one["entity"]["metadata"]["name"] for one in items] == [*teams, "kim"]
    assert [one async for one in rights_of(upgraded)] == [
        (
            "warning",
            "Memberships in the set staff that give no rights: 3.",
            'To trust it: people_sets = ["staff"]. To trust none: people_sets = [].',
        ),
        (
            "warning",
            "user:default/kim doesn't have the rights of group:default/team-a, "
            "group:default/team-b, group:default/team-c: only the set staff says so.",
            'To trust it: people_sets = ["staff"]. To trust none: people_sets = [].',
        ),
    ]
    page = await (await signed_in(upgraded)).text("/status")
    assert "user:default/kim" in page
    assert "people_sets = [&#34;staff&#34;]" in page
    restored = await start(people_sets=["staff"])
    assert await rights(restored, "kim", "team-c") == EVERY_RIGHT


async def test_a_set_holds_the_kinds_that_the_settings_allow(start: StartService) -> None:
    service = await start(allowed_kinds=KINDS)
    refused = await service.push("shop-1", component("web"), person("kim", "team-a"))
    assert "User isn't allowed in the set shop-1 by the setting allowed_kinds" in refused.text
    assert refused.status_code == 400
    assert (await service.push("shop-1", component("web"))).status_code == 200
    assert (await service.push("other", person("kim"))).status_code == 200
    found = await read(service, "github", part("a.teams", group("team-a"), component("job")))
    assert [one.partition("kind: ")[2] for one in found] == [
        "Group isn't allowed in the set import/github/a.teams by the setting allowed_kinds"
    ]
    assert await service.catalog("component:default/job") is not None
    assert await service.catalog("group:default/team-a") is None


async def test_what_a_code_host_says_of_people_replaces_files_of_repositories(
    service: Service,
) -> None:
    files = [group("security"), person("eve", "security"), component("web")]
    await read(service, "gitlab", part("acme.projects", *files))
    # Files come first among the parts, and into the catalog.
    people_ = part("acme.members", person("eve")), part("acme.teams", group("security"))
    await read(service, "github", part("acme.repositories", person("eve", "security")), *people_)
    eve = await service.catalog("user:default/eve")
    assert eve is not None
    assert eve["spec"] == {"memberOf": []}
    assert eve["metadata"]["annotations"]["factbook/entity-set"] == "import/github/acme.members"
    again = await read(service, "gitlab", part("acme.projects", *files))
    assert any("import/github/acme.members" in one for one in again)
    assert await service.catalog("component:default/web") is not None


async def test_files_change_the_people_they_brought_and_bring_no_others(service: Service) -> None:
    old = [group("old"), person("kim", "old")]
    await read(service, "github", part("acme.repositories", *old))
    kim = person("kim", "old", "new")
    entities = [group("old"), kim, person("eve", "old")]
    files = part("acme.repositories", *entities, known_only=True)
    hostile = ImportedItem(person("kim", "evil"), "github.com/acme/aaa", known_only=True)
    found = await read(service, "github", replace(files, items=(hostile, *files.items)))
    assert [one.partition(" isn't imported")[0].rpartition(" ")[2] for one in found] == [
        "user:default/kim",
        "user:default/eve",
    ]
    changed = await service.catalog("user:default/kim")
    assert changed is not None
    assert changed["spec"]["memberOf"] == ["old", "new"]
    assert await service.catalog("user:default/eve") is None


async def test_an_identity_provider_takes_people_from_files_of_repositories(
    service: Service,
) -> None:
    await read(service, "github", part("acme.repositories", *people("kim", "security")))
    await provisioned(service, "kim", "security")
    for ref in ("user:default/kim", "group:default/security"):
        found = await service.catalog(ref)
        assert found is not None
        assert found["metadata"]["annotations"]["factbook/entity-set"] == "import/scim/people"
