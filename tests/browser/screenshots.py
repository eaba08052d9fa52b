"""`python -m tests.browser.screenshots`: the pictures of docs/images, made anew.

A service with a made-up shop lives through a month of simulated time, asking fakes of vendors, and
is then looked at with a browser.
"""

import asyncio
import shutil
import socket
import tempfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Final, Literal

import uvicorn
from playwright.async_api import async_playwright

from factbook.app import Application
from factbook.auth.permissions import CATALOG_READ, SET_WRITE, SOURCE_READ
from factbook.checks.background import days
from factbook.checks.background.evaluator import Evaluation
from factbook.checks.scorecards import trend
from factbook.clock import DAY, HOUR, MINUTE, Throttle
from factbook.collection import Collector
from factbook.settings import Settings
from factbook.telemetry import logs
from tests.api.checking import CHECKS, SCORECARDS
from tests.browser import driving, graded, showcase
from tests.browser.png import small
from tests.browser.shop import COVERAGE, FACTS, SOURCES
from tests.browser.vendors import Vendors
from tests.service import NOON, PUSH, Service, Time
from tests.web.visiting import signed_in

IMAGES: Final = Path(__file__).parent.parent.parent / "docs" / "images"
WIDTH, HEIGHT = 1440, 900
HOURS: Final = 9
THEMES: Final[tuple[Literal["light", "dark"], ...]] = ("light", "dark")
PAGES: Final = {
    "overview": "/",
    "catalog": "/catalog",
    "entity": "/catalog/component/default/checkout",
    "facts": "/catalog/component/default/checkout#facts",
    "fact": "/catalog/component/default/checkout/facts/coverage/lines",
    "scorecards": "/scorecards",
    "scorecard": "/scorecards/readiness",
    "matrix": "/scorecards/readiness/entities",
    "check": "/checks/covered",
    "check-editor": "/checks/covered/edit",
    "data-sources": "/data-sources",
    "revision": "/sets/payments/revisions/2",
    "playground": "/connect/tools/get-codehost-metrics?run=1&name=checkout",
    "api-access": "/administration/account/api-access",
}

# Who looks at the pages, and belongs to a team.
VIEWER: Final = {
    "apiVersion": "backstage.io/v1alpha1",
    "kind": "User",
    "metadata": {"name": "ada"},
    "spec": {"profile": {"displayName": "Ada"}, "memberOf": ["team-payments"]},
}


class Month:
    """The service of the shop, from its first day to today."""

    def __init__(self, service: Service, vendors: Vendors) -> None:
        self.service = service
        self.vendors = vendors
        clients = {asking.integration.source.id: asking.client for asking in vendors.askings}
        self.collector = Collector(
            service.state.database,
            [asking.integration for asking in vendors.askings],
            lambda integration: clients[integration.source.id],
            service.time,
            "pictures",
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
            await self._push_coverage(day)
            await self.collector.drain()
            await self._keep_figures()
        for _ in range(HOURS):
            self._come_to(showcase.DAYS, self.service.time.now + HOUR)
            await self.collector.drain()
        await self._keep_figures()
        self.service.time.advance(20 * MINUTE)

    def _come_to(self, day: int, moment: int) -> None:
        self.service.time.now = moment
        self.vendors.live_until(day, moment)

    async def _begin(self) -> None:
        for team in showcase.teams():
            await self._as(team, f"{PUSH}/sets/{team}", {"items": showcase.entities(team)})
        await self._as("identity", f"{PUSH}/sets/people", {"items": [VIEWER]})
        source = f"{SOURCES}/{COVERAGE['id']}"
        assert (await self.service.http.put(source, json=COVERAGE)).is_success
        assert (await self.service.http.post(f"{source}/publish")).is_success
        for document in graded.CHECKS:
            await self._publish(f"{CHECKS}/{document['id']}", document)
        await self._publish(f"{SCORECARDS}/{graded.SCORECARD['id']}", graded.SCORECARD)

    async def _publish(self, path: str, document: dict[str, Any]) -> None:
        answer = await self.service.http.put(path, json=document, params={"publish": "true"})
        assert answer.is_success, answer.text

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
        answer = await self.service.http.post(f"{FACTS}/{COVERAGE['id']}", json={"items": items})
        assert answer.is_success, answer.text


@asynccontextmanager
async def shown(folder: Path) -> AsyncIterator[tuple[Service, str]]:
    """The service after its month, and its address on loopback."""
    vendors = Vendors()
    time = Time()
    application = Application(
        Settings(database_url=f"sqlite:///{folder / 'factbook.db'}"),
        clock=time,
        integrations=tuple(asking.integration for asking in vendors.askings),
    )
    async with application.running() as state:
        service = Service(application, state, time)
        time.now = NOON - showcase.DAYS * DAY
        async with service.client(await service.token(name="pipelines")) as http:
            service.http = http
            await Month(service, vendors).pass_by()
        with socket.create_server(("127.0.0.1", 0)) as listening:
            server = uvicorn.Server(uvicorn.Config(application, lifespan="off", log_config=None))
            serving = asyncio.create_task(server.serve([listening]))
            yield service, f"http://127.0.0.1:{listening.getsockname()[1]}"
            server.should_exit = True
            await serving


async def add_tokens(service: Service, owner: str) -> None:
    """Tokens that somebody has made over time, of which some are used."""
    now = service.time.now
    asks, pushes = (CATALOG_READ, SOURCE_READ), (SET_WRITE,)
    for name, permissions, made, lasting, used in (
        ("agents", asks, 82, 90, 1),
        ("laptop", asks, 20, 90, 3 * HOUR),
        ("pipeline", pushes, 64, 365, 26 * HOUR),
        ("workshop", asks, 2, 30, None),
    ):
        service.time.now = now - made * DAY
        token = await service.token(*permissions, name=name, owner=owner, lifetime=lasting * DAY)
        if used is not None:
            service.time.now = now - used
            async with service.client(token) as http:
                await http.get("/api/catalog/entity-facets?facet=kind")
    service.time.now = now


async def take(service: Service, url: str, folder: Path) -> None:
    """Take every picture, light and dark."""
    ada = await signed_in(service, "ada")
    await add_tokens(service, "user:default/ada")
    cookies: list[Any] = [
        {"name": each.name, "value": each.value or "", "url": url} for each in ada.http.cookies.jar
    ]
    async with async_playwright() as playwright:
        browser = await playwright.chromium.launch(
            executable_path=shutil.which("chromium"), args=driving.arguments()
        )
        blank = await browser.new_page()
        for theme in THEMES:
            context = await browser.new_context(
                base_url=url, viewport={"width": WIDTH, "height": HEIGHT}, color_scheme=theme
            )
            await context.add_cookies(cookies)
            page = await context.new_page()
            for name, path in PAGES.items():
                await page.goto("about:blank")
                answer = await page.goto(path)
                assert answer is not None
                assert answer.ok, (path, answer.status)
                picture = await small(await page.screenshot(), blank)
                (folder / f"{name}-{theme}.png").write_bytes(picture)
        await browser.close()


async def main() -> None:
    """Make every picture anew."""
    logs.configure(Settings(log_level="error"))
    IMAGES.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        async with shown(Path(folder)) as (service, url):
            await take(service, url, IMAGES)


if __name__ == "__main__":
    asyncio.run(main())
