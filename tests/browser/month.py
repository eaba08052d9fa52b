"""The made-up shop through a month of simulated time, in a service that asks fakes of vendors."""

import asyncio
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Final

import uvicorn

from factbook.app import Application
from factbook.checks.background import days
from factbook.checks.background.evaluator import Evaluation
from factbook.checks.scorecards import trend
from factbook.clock import DAY, HOUR, MINUTE, Throttle
from factbook.collection import Collector
from factbook.settings import Settings
from tests.api.checking import CHECKS, EXEMPTIONS, SCORECARDS
from tests.browser import graded, showcase
from tests.browser.imported import ShopImports
from tests.browser.shop import FACTS, SOURCES
from tests.browser.vendors import Vendors
from tests.service import NOON, PUSH, Service, Time

HOURS: Final = 9
# What the pages say the service is called.
NAME: Final = "factbook.shop.example"

# Who looks at the pages, and belongs to a team.
VIEWER: Final = {
    "apiVersion": "backstage.io/v1alpha1",
    "kind": "User",
    "metadata": {"name": "ada"},
    "spec": {"profile": {"displayName": "Ada"}, "memberOf": ["team-payments"]},
}


class _Passing:
    """A clock by which runs take a while."""

    def __init__(self, time: Time) -> None:
        self._time = time
        self._begun, self._asked = 0, 0

    def __call__(self) -> int:
        if self._begun != self._time.now:
            self._begun, self._asked = self._time.now, 0
        self._asked += 1
        return self._begun + self._asked * 173


class Month:
    """The service of the shop, from its first day to today."""

    def __init__(self, service: Service, vendors: Vendors, imports: ShopImports) -> None:
        self.service = service
        self.vendors = vendors
        self.imports = imports
        clock = _Passing(service.time)
        self.runner = imports.runner(service, clock)
        clients = {asking.integration.source.id: asking.client for asking in vendors.askings}
        self.collector = Collector(
            service.state.database,
            [asking.integration for asking in vendors.askings],
            # What the shop defined itself asks nobody.
            lambda integration: clients.get(integration.source.id, vendors.unused),
            clock,
            "pictures",
            further=service.state.registry.custom,
        )
        self.evaluation = Evaluation(service.state.database, service.time)

    async def pass_by(self) -> None:
        """Push, define, and collect: once a day, on the last day as often as the sources say."""
        for day in range(showcase.DAYS + 1):
            self._come_to(day, NOON - (showcase.DAYS - day) * DAY)
            if day == 0:
                await self._begin()
            if day == showcase.DAYS - 2:
                await self._change()
            if day == showcase.DAYS:
                self.imports.lose_people()
                await self._exempt()
            await self._push_coverage(day)
            await self._work()
            await self._keep_figures()
        for _ in range(HOURS):
            self._come_to(showcase.DAYS, self.service.time.now + HOUR)
            await self._work()
        await self._keep_figures()
        self.service.time.advance(20 * MINUTE)

    def _come_to(self, day: int, moment: int) -> None:
        self.service.time.now = moment
        self.vendors.live_until(day, moment)

    async def _work(self) -> None:
        await self.runner.drain()
        await self.collector.drain()

    async def _begin(self) -> None:
        for team in showcase.teams():
            await self._as(team, f"{PUSH}/sets/{team}", {"items": showcase.entities(team)})
        await self._as("identity", f"{PUSH}/sets/people", {"items": [VIEWER]})
        for source in showcase.DEFINITIONS:
            path = f"{SOURCES}/{source['id']}"
            await self._put(path, source)
            await self._post(f"{path}/publish")
        for document in graded.CHECKS:
            await self._put(f"{CHECKS}/{document['id']}?publish=true", document)
        for document in graded.SCORECARDS:
            await self._put(f"{SCORECARDS}/{document['id']}?publish=true", document)

    async def _put(self, path: str, body: dict[str, Any]) -> None:
        answer = await self.service.http.put(path, json=body)
        assert answer.is_success, answer.text

    async def _post(self, path: str, body: dict[str, Any] | None = None) -> Any:
        answer = await self.service.http.post(path, json=body)
        assert answer.is_success, answer.text
        return answer.json()

    async def _exempt(self) -> None:
        """Ask for exemptions; one is approved, one denied, and two wait."""
        made = []
        for name, wish in showcase.WISHES:
            token = await self.service.token(owner=f"user:default/{name}", name=f"{name} laptop")
            async with self.service.client(token) as http:
                answer = await http.post(EXEMPTIONS, json=wish)
            assert answer.is_success, answer.text
            made.append(answer.json()["id"])
        await self._post(f"{EXEMPTIONS}/{made[0]}/approve", {"comment": "Until it is replaced."})
        await self._post(f"{EXEMPTIONS}/{made[1]}/deny", {"comment": "It can be tested already."})

    async def _keep_figures(self) -> None:
        """Evaluate what is left, and keep the figures of the day, as the worker does."""
        database, now = self.service.state.database, self.service.time.now
        await self.evaluation.tick()
        await days.record(database, now, Throttle())
        await database.write(lambda transaction: trend.record(transaction, now))

    async def _change(self) -> None:
        """What two teams did this week."""
        for team in ("payments", "discovery"):
            items = showcase.entities(team)
            items[4]["metadata"]["description"] += " In every region."
            items[5]["metadata"]["tags"] = ["core", "tier-1"]
            await self._as(team, f"{PUSH}/sets/{team}", {"items": items[:-1]})

    async def _as(self, team: str, path: str, body: Any) -> None:
        token = await self.service.token(owner=f"group:default/team-{team}", name=f"{team} ci")
        async with self.service.client(token) as http:
            answer = await http.put(path, json=body)
        assert answer.is_success, answer.text

    async def _push_coverage(self, day: int) -> None:
        items = [
            {
                "entity": f"component:default/{name}",
                "facts": {"lines": showcase.coverage(name, day)},
            }
            for name in showcase.NAMES
        ]
        answer = await self.service.http.post(f"{FACTS}/coverage", json={"items": items})
        assert answer.is_success, answer.text


@asynccontextmanager
async def shown(folder: Path) -> AsyncIterator[tuple[Service, str]]:
    """The service after its month, and its address on loopback."""
    vendors = Vendors()
    imports = ShopImports(folder, vendors.askings[0])
    time = Time()
    application = Application(
        Settings(
            database_url=f"sqlite:///{folder / 'factbook.db'}",
            allowed_hosts=[NAME, "127.0.0.1"],
            people_sets=["*"],
        ),
        clock=time,
        integrations=tuple(asking.integration for asking in vendors.askings),
        importers=imports.importers(),
    )
    async with application.running() as state:
        service = Service(application, state, time)
        time.now = NOON - showcase.DAYS * DAY
        async with service.client(await service.token(name="pipelines")) as http:
            service.http = http
            await Month(service, vendors, imports).pass_by()
            with socket.create_server(("127.0.0.1", 0)) as listening:
                server = uvicorn.Server(
                    uvicorn.Config(application, lifespan="off", log_config=None)
                )
                serving = asyncio.create_task(server.serve([listening]))
                yield service, f"http://127.0.0.1:{listening.getsockname()[1]}"
                server.should_exit = True
                await serving
