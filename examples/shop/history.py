"""The made-up shop through 90 days, in a service whose clock says what day it is.

The files beside this module say what the shop has and what happened. Everything enters through the
interfaces that the shop would use. What only time brings, as the figures of a past day and a
person's last visit, is stored as the service itself does.
"""

import json
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import ExitStack, asynccontextmanager
from pathlib import Path
from typing import Any, Final

import httpx2
import stamina
import yaml

from factbook.app import Application
from factbook.auth import invitations, passwords, permissions, tokens, users
from factbook.checks import scorecard_figures
from factbook.checks.results import state_store
from factbook.checks.results.evaluator import Evaluation
from factbook.clock import DAY, HOUR, MINUTE, SECOND, Throttle, iso
from factbook.http.context import State
from factbook.http.requests import render_welcome_link
from factbook.importers import registry
from factbook.scheduling import housekeeping
from factbook.settings.table import load_settings
from factbook.storage import Transaction

from .tools import Tool

FOLDER: Final = Path(__file__).parent
DAYS: Final = 90
# Who looks at the pages, a member of a team.
VIEWER: Final = "ada"
_ADMINISTRATOR: Final = "mia"
_PUSHED: Final = ("code-host", "coverage", "monitors", "scanner")
# So many days ago the build server went away, and the rota stopped answering for some services.
_BUILDS_END: Final = 1
_ROTA_ENDS: Final = 9
# People whom the directory still has today.
_STAFF_KEPT: Final = 18
# Rounds of a collection: what fails is tried again, after half a minute and after a whole one.
_ATTEMPTS: Final = 6
_SHORTEST_ROUND: Final = 20 * SECOND
# The last days, on which sources are collected each day; before, every fortnight.
_RECENT: Final = 5
_CHANGED: Final = {6: "payments", 2: "discovery"}
_API: Final = "/api/tech-insights/v1"

Facts = dict[str, Any]
Say = Callable[[str], object]


class Refused(Exception):
    """The service did not take what was sent; the text says why."""


class Clock:
    """The time in the shop."""

    def __init__(self, now: int) -> None:
        self.now = now

    def __call__(self) -> int:
        return self.now


class Shop:
    """A running service with everything that the shop has."""

    def __init__(self, application: Application, state: State, clock: Clock) -> None:
        self.application = application
        self.state = state
        self.clock = clock

    async def token(self, owner: str, name: str, *named: str, days: int = 365) -> str:
        """A new token; every permission when none is named."""
        value = tokens.generate_token()
        now, digest = self.clock(), tokens.hash_token(value, self.state.token_key)
        await self.state.database.write(
            lambda transaction: tokens.create_token(
                transaction,
                name=name,
                digest=digest,
                owner=owner,
                permissions=permissions.check_permissions(named) or permissions.PERMISSION_NAMES,
                created_by=owner,
                now=now,
                lifetime=days * DAY,
            )
        )
        return value

    async def invite(self, name: str, role: str, url: str) -> str:
        """A link that creates the account of a person in the catalog, for the service at `url`."""
        secret, now = invitations.generate_invitation_secret(), self.clock()
        digest = invitations.hash_invitation_secret(secret, self.state.token_key)
        await self.state.database.write(
            lambda transaction: invitations.create_invitation(
                transaction,
                digest=digest,
                role=role,
                new_ref=users.make_user_ref(name),
                scim_id="",  # confirmed: the person is the user of this name
                made_by=users.make_user_ref(_ADMINISTRATOR),
                now=now,
                lifetime=invitations.INVITATION_LIFETIME,
            )
        )
        return render_welcome_link(url, secret)

    async def send(self, token: str, method: str, path: str, body: Any = None) -> Any:
        """The answer to a request; raises Refused if it is no success."""
        async with httpx2.AsyncClient(
            transport=httpx2.ASGITransport(self.application),
            base_url="http://127.0.0.1:8000",
            headers={"authorization": f"Bearer {token}"},
        ) as http:
            answer = await http.request(method, path, json=body)
        if not answer.is_success:
            raise Refused(f"{method} {path}: {answer.text}")
        return answer.json() if answer.content else None


def environment(folder: Path) -> dict[str, str]:
    """The settings of the shop's service, as environment variables."""
    ldif = "FACTBOOK_IMPORTERS__LDIF"
    return {
        "FACTBOOK_DATABASE_URL": f"sqlite:///{folder / 'factbook.db'}",
        # The sets of the shop say who is in which team.
        "FACTBOOK_PEOPLE_SETS": "*",
        # Its tools are on this machine.
        "FACTBOOK_OUTGOING_NETWORKS": "127.0.0.0/8",
        f"{ldif}__STAFF__PATH": str(folder / "staff.ldif"),
        f"{ldif}__STAFF__GROUPS": "false",
        f"{ldif}__STAFF__EVERY": "1d",
        f"{ldif}__CONTRACTORS__PATH": str(FOLDER / "contractors.ldif"),
        f"{ldif}__CONTRACTORS__GROUPS": "false",
        f"{ldif}__CONTRACTORS__EVERY": "1d",
    }


@asynccontextmanager
async def lived(
    folder: Path,
    now: int,
    say: Say = lambda _: None,
    ports: tuple[int, int] = (0, 0),
    **settings: str,
) -> AsyncIterator[Shop]:
    """The service after 90 days, of which `now` is the last; its file is in the folder."""
    clock = Clock(now - DAYS * DAY)
    (folder / "staff.ldif").write_text(_text("staff.ldif"))
    loaded = load_settings(environ=environment(folder) | settings, path=folder / "factbook.toml")
    application = Application(
        loaded,
        clock=clock,
        importers=registry.configure_importers(loaded.importers, loaded.integrations),
    )
    with ExitStack() as stack:
        # Seconds between two attempts don't pass here.
        stack.enter_context(stamina.set_testing(True, attempts=1))
        rota, builds = (stack.enter_context(Tool(port)) for port in ports)
        async with application.running() as state:
            shop = Shop(application, state, clock)
            days = _History(shop, folder, now, rota, builds, say)
            try:
                await days.live()
            finally:
                await days.stop()
            yield shop


class _History:
    """What happens on each day."""

    def __init__(
        self, shop: Shop, folder: Path, now: int, rota: Tool, builds: Tool, say: Say
    ) -> None:
        self._shop = shop
        self._folder = folder
        # Each day is lived within its day of UTC, in the hour before this time. Just after midnight
        # the last one needs some minutes that are still to come.
        since_midnight = max(now % DAY, (_ATTEMPTS + 1) * _SHORTEST_ROUND)
        self._now = now - now % DAY + since_midnight
        self._hour = min(HOUR, since_midnight)
        self._rota, self._builds = rota, builds
        self._say = say
        self._wishes: list[dict[str, Any]] = yaml.safe_load(_text("exemptions.yaml"))
        self._token = ""
        self._password = passwords.hash_password(tokens.generate_token())
        self._facts: dict[str, dict[str, Facts]] = json.loads(_text("facts.json"))
        self._evaluation = Evaluation(shop.state.database, shop.clock)
        self._collector = shop.application.collector(
            shop.state.database, (), shop.state.registry.custom
        )
        self._runner = shop.application.runner(shop.state.database)

    async def live(self) -> None:
        """Come from the first day to the last."""
        shop, database = self._shop, self._shop.state.database
        self._token = await shop.token(f"user:default/{_ADMINISTRATOR}", "setup", days=1_000)
        for ago in range(DAYS, -1, -1):
            shop.clock.now = self._now - ago * DAY - self._hour
            if ago == DAYS:
                await self._begin()
            if ago in _CHANGED:
                await self._push_set(_CHANGED[ago])
            await self._push_facts(ago)
            if ago < _RECENT or ago % 15 == 0:
                self._answer(ago)
                for _ in range(_ATTEMPTS):
                    await self._collector.drain()
                    shop.clock.now += min(3 * MINUTE, self._hour // (_ATTEMPTS + 1))
            if ago == 0:
                self._lose_people()
            if ago < _RECENT or ago % 30 == 0:
                await self._runner.drain()
            await self._decide(ago)
            await self._record()
            if ago and ago % 30 == 0:
                self._say(f"  {ago} days ago")
        now = shop.clock.now = self._now
        # Deletes nothing of the days that it never saw, unless somebody says that they were.
        await database.write(
            lambda transaction: housekeeping.confirm_retention_clock(transaction, now)
        )
        await self._administer()
        await self._record()

    async def stop(self) -> None:
        """End what is being collected and imported when somebody stops the days."""
        await self._collector.stop()
        await self._runner.let_go()

    async def _begin(self) -> None:
        """Push the catalog, and publish sources, checks and scorecards."""
        for name in _sets():
            await self._push_set(name, is_first=True)
        for name, tool in (("rota", self._rota), ("ci", self._builds)):
            body = {"baseUrl": tool.url, "sharedWith": ["group:default/engineering"]}
            await self._send("PUT", f"{_API}/connections/{name}", body)
        for file in sorted((FOLDER / "sources").glob("*.yaml")):
            definition = yaml.safe_load(file.read_text("utf-8"))
            if "cadence" in definition:
                # Half a day away, so that no run is due while somebody looks.
                definition["cadence"] = f"0 {(self._now // HOUR + 12) % 24} * * *"
            path = f"{_API}/data-sources/{definition['id']}"
            await self._send("PUT", path, definition)
            await self._send("POST", f"{path}/publish")
        for noun in ("check", "scorecard"):
            for document in yaml.safe_load_all(_text(f"{noun}s.yaml")):
                id_ = document.pop(noun)
                path = f"{_API}/{noun}s/{id_}?publish=true"
                await self._send("PUT", path, {"id": id_, **document})

    async def _push_set(self, name: str, *, is_first: bool = False) -> None:
        """Push a set as its team."""
        entities = _entities(name)
        if is_first and name in _CHANGED.values():
            # Without what the team adds later: a database, and a tag of each component.
            entities = [one for one in entities if one["kind"] != "Resource"]
            for one in entities:
                if "tags" in one["metadata"]:
                    one["metadata"]["tags"] = one["metadata"]["tags"][:1]
        owner = entities[0]["metadata"].get("name", name)
        token = await self._shop.token(f"group:default/{owner}", f"{name} pipeline")
        path = f"/api/catalog/factbook-entities/sets/{name}"
        await self._shop.send(token, "PUT", path, {"items": entities})

    async def _push_facts(self, ago: int) -> None:
        """Push what changed on this day, and every fortnight everything."""
        for source in _PUSHED:
            of_source = self._facts[source]
            items = [
                {"entity": f"component:{name}", "facts": _on_day(of_source, name, ago)}
                for name in of_source
                if name != "*" and (ago % 15 == 0 or _changes(of_source[name], ago))
            ]
            if items:
                answer = await self._send("POST", f"{_API}/facts/{source}", {"items": items})
                for item in answer["items"]:
                    for problem in item["problems"]:
                        raise Refused(f"{source}, {item['entity']}: {problem}")

    def _answer(self, ago: int) -> None:
        """Let the tools answer as they did on this day."""
        self._builds.answers = dict(self._facts["builds"])
        rota = self._facts["on-call"]
        silent = rota["*"]["silent"] if ago <= _ROTA_ENDS else ()
        self._rota.answers = {
            name: None if name in silent else facts for name, facts in rota.items() if name != "*"
        }
        if ago == _BUILDS_END:
            self._builds.stop()

    def _lose_people(self) -> None:
        """Many are missing from the directory at once."""
        people = _text("staff.ldif").split("\n\n")
        kept = "\n\n".join(people[: _STAFF_KEPT + 1])
        (self._folder / "staff.ldif").write_text(f"{kept}\n\n")

    async def _decide(self, ago: int) -> None:
        """Ask for exemptions; some are decided the same day."""
        for wish in self._wishes:
            if wish["age"] == ago:
                asking = await self._shop.token(f"user:default/{wish['by']}", "laptop", days=1)
                body = {name: wish[name] for name in ("check", "entity", "reason")}
                body["until"] = iso(self._now + wish["days"] * DAY)[:10]
                made = await self._shop.send(asking, "POST", f"{_API}/exemptions", body)
                if "decision" in wish:
                    deciding = await self._shop.token(
                        f"user:default/{_ADMINISTRATOR}", "laptop", days=1
                    )
                    path = f"{_API}/exemptions/{made['id']}/{wish['decision']}"
                    await self._shop.send(deciding, "POST", path, {"comment": wish["comment"]})

    async def _record(self) -> None:
        """Evaluate what is left, and keep the figures of the day, as the worker does."""
        database, now = self._shop.state.database, self._shop.clock()
        await self._evaluation.tick()
        await state_store.record_days(database, now, Throttle(sleep=_at_once))
        await database.write(lambda transaction: scorecard_figures.record_trends(transaction, now))

    async def _administer(self) -> None:
        """People who signed in, tokens, webhooks and digests."""
        described = yaml.safe_load(_text("administration.yaml"))
        for person in described["people"]:
            await self._sign_in(person)
        await self._shop.invite(described["invited"], "viewer", "http://127.0.0.1")
        for each in described["tokens"]:
            await self._use_token(each)
        for webhook in described["webhooks"]:
            await self._send("POST", "/api/events/webhooks", webhook)
        for digest in described["digests"]:
            await self._send("POST", f"{_API}/digests", digest)

    async def _sign_in(self, person: dict[str, Any]) -> None:
        """An account, with a password that nobody knows, and its last visit."""
        ref, now = (
            users.make_user_ref(person["name"]),
            self._now - person["lastDay"] * DAY - 2 * HOUR,
        )

        def work(transaction: Transaction) -> None:
            users.create_user(
                transaction,
                ref=ref,
                display_name=person["title"],
                role=person["role"],
                password=self._password,
                created_by=users.make_user_ref(_ADMINISTRATOR),
                now=self._now - DAYS * DAY,
                proof=users.BY_ADMINISTRATOR,
            )
            users.record_sign_in(transaction, ref, now)

        await self._shop.state.database.write(work)

    async def _use_token(self, described: dict[str, Any]) -> None:
        clock, owner = self._shop.clock, f"user:default/{VIEWER}"
        clock.now = self._now - described["made"] * DAY
        name, named = described["name"], described["permissions"]
        value = await self._shop.token(owner, name, *named, days=described["days"])
        if "used" in described:
            clock.now = self._now - described["used"] * DAY - 20 * MINUTE
            await self._shop.send(value, "GET", "/api/catalog/entity-facets?facet=kind")
        clock.now = self._now

    async def _send(self, method: str, path: str, body: Any = None) -> Any:
        return await self._shop.send(self._token, method, path, body)


def _sets() -> list[str]:
    return sorted(file.stem for file in (FOLDER / "entities").glob("*.yaml"))


def _entities(name: str) -> list[Any]:
    return list(yaml.safe_load_all(_text(f"entities/{name}.yaml")))


def _on_day(of_source: dict[str, Facts], name: str, ago: int) -> Facts:
    """The facts of an entity so many days ago; an object has values by the day they began."""
    facts = of_source.get("*", {}) | of_source[name]
    return {fact: _value(given, ago) for fact, given in facts.items()}


def _value(given: Any, ago: int) -> Any:
    if not isinstance(given, dict):
        return given
    return given[str(min(day for day in map(int, given) if day >= ago))]


def _changes(facts: Facts, ago: int) -> bool:
    return any(str(ago) in given for given in _histories(facts))


def _histories(facts: Facts) -> Iterator[dict[str, Any]]:
    return (given for given in facts.values() if isinstance(given, dict))


def _text(name: str) -> str:
    return (FOLDER / name).read_text("utf-8")


async def _at_once(seconds: float) -> None:
    """Rest no longer: nobody else waits for the processor."""
