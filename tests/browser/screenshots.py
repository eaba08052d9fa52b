"""`python -m tests.browser.screenshots`: the pictures of docs/images, made anew.

A service with a made-up shop lives through a month of simulated time, asking fakes of vendors, and
is then looked at with a browser.
"""

import asyncio
import shutil
import tempfile
from pathlib import Path
from typing import Any, Final, Literal
from urllib.parse import urlsplit

from playwright.async_api import Page, async_playwright

from factbook.auth.permissions import CATALOG_READ, SET_WRITE, SOURCE_READ
from factbook.clock import DAY, HOUR
from factbook.settings import Settings
from factbook.telemetry import logs
from tests.browser import driving, month
from tests.browser.png import small
from tests.browser.shop import CONNECTIONS, SOURCES
from tests.service import Service
from tests.web.visiting import Browser, with_password

IMAGES: Final = Path(__file__).parent.parent.parent / "docs" / "images"
HOST: Final = f"http://{month.NAME}"
WIDTH, HEIGHT = 1440, 900
THEMES: Final[tuple[Literal["light", "dark"], ...]] = ("light", "dark")
_CHECKOUT: Final = "/catalog/component/default/checkout"
_TEAM: Final = "/catalog/group/default/team-payments"
_COLUMNS: Final = "column=scorecard:readiness&column=coverage/lines"
_ACCOUNT: Final = "/administration/account"
# RUN is in the place of the number of a run.
PAGES: Final = {
    "overview": "/",
    "search": "/search?q=pay",
    "catalog": f"/catalog?kind=component&{_COLUMNS}",
    "entity": _CHECKOUT,
    "facts": f"{_CHECKOUT}#facts",
    "fact": f"{_CHECKOUT}/facts/coverage/lines",
    "relations": f"{_CHECKOUT}/relations",
    "entity-history": "/catalog/component/default/ledger/history",
    "team": f"{_TEAM}/contents",
    "sets": "/sets",
    "revisions": "/sets/payments/revisions",
    "revision": "/sets/payments/revisions/2",
    "set-push": "/sets/payments/push",
    "imports": "/imports",
    "importer": "/imports/ldif-staff",
    "import-problems": "/imports/github-infrastructure",
    "importer-new": "/importers/new?kind=github",
    "scorecards": "/scorecards",
    "scorecard": "/scorecards/readiness",
    "matrix": "/scorecards/readiness/entities",
    "team-matrix": "/scorecards/readiness/teams",
    "scorecard-editor": "/scorecards/readiness/edit",
    "checks": "/checks",
    "check": "/checks/covered",
    "check-editor": "/checks/covered/edit",
    "exemptions": "/exemptions",
    "exemption-new": "/exemptions/-/new?check=covered&entity=component:receipts",
    "data-sources": "/data-sources",
    "data-source": "/data-sources/card-data",
    "data-source-editor": "/data-sources/runbooks/edit",
    "fact-across": "/data-sources/coverage/facts/lines",
    "runs": "/data-sources/github/runs",
    "run": "/data-sources/datadog/runs/RUN",
    "connect": "/connect",
    "tools": "/connect/tools",
    "playground": "/connect/tools/get-codehost-metrics?run=1&name=checkout",
    "account": _ACCOUNT,
    "api-access": f"{_ACCOUNT}/api-access",
    "people": "/administration/people",
    "connections": "/administration/connections",
    "webhooks": "/administration/webhooks",
    "digests": "/administration/digests",
    "help": "/help/scorecards",
    "audit": "/administration/audit",
}
# What is written in place of what in the text of an editor, and pressed then.
EDITED: Final = {"check-editor": ("value: 75", "value: 70", "Preview")}
# Those that the documentation shows in dark too.
DARK: Final = frozenset({"overview", "catalog", "entity", "fact", "scorecard", "matrix", "check"})


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


async def add_people(service: Service) -> Browser:
    """People who have signed in over time, an invitation, and the browser of the first."""
    now, browsers = service.time.now, {}
    for name, role, before in (
        ("ada", "administrator", 0),
        ("jun", "administrator", 2 * DAY),
        ("noor", "viewer", 3 * HOUR),
        ("sam", "viewer", 12 * DAY),
    ):
        service.time.now = now - before
        browsers[name] = await with_password(service, name, role)
    service.time.now = now
    ada = browsers["ada"]
    await ada.open("/administration/people")
    assert (
        await ada.send("/administration/people/-/invitations", role="viewer", name="mia")
    ).is_success
    return ada


async def add_receivers(service: Service) -> None:
    """A connection, webhooks and digests; nothing is sent to any of them."""
    http, host = service.http, "https://ci.shop.example"
    answers = [
        await http.put(f"{CONNECTIONS}/ci", json={"baseUrl": host}),
        await http.put(f"{CONNECTIONS}/flags", json={"baseUrl": "https://flags.shop.example/api"}),
        await http.post("/api/events/webhooks", json={"url": f"{host}/events", "types": []}),
        await http.post(
            "/api/events/webhooks",
            json={"url": "https://status.shop.example/hooks", "types": ["source.down"]},
        ),
    ]
    for form, owner in (("slack", "group:team-payments"), ("teams", "group:team-checkout")):
        digest = {"owner": owner, "form": form, "url": "https://hooks.example.com/services/1"}
        answers.append(await http.post("/api/tech-insights/v1/digests", json=digest))
    for answer in answers:
        assert answer.is_success, answer.text


async def last_run(service: Service, source: str) -> str:
    """The number of the last run of a source."""
    answer = await service.http.get(f"{SOURCES}/{source}/runs")
    return str(answer.json()["runs"][0]["id"])


async def prepared(service: Service) -> tuple[Browser, dict[str, str]]:
    """The browser of who looks, and every page by its name."""
    ada = await add_people(service)
    await add_tokens(service, "user:default/ada")
    await add_receivers(service)
    run = await last_run(service, "datadog")
    return ada, {name: path.replace("RUN", run) for name, path in PAGES.items()}


async def take(service: Service, url: str, folder: Path) -> None:
    """Take every picture."""
    ada, pages = await prepared(service)
    cookies: list[Any] = [
        {"name": each.name, "value": each.value or "", "url": HOST} for each in ada.http.cookies.jar
    ]
    async with async_playwright() as playwright:
        browser = await playwright.chromium.launch(
            executable_path=shutil.which("chromium"), args=arguments(url)
        )
        blank = await browser.new_page()
        for theme in THEMES:
            context = await browser.new_context(
                base_url=HOST, viewport={"width": WIDTH, "height": HEIGHT}, color_scheme=theme
            )
            await context.add_cookies(cookies)
            page = await context.new_page()
            for name in DARK if theme == "dark" else pages:
                await shown(page, name, pages[name])
                picture = await small(await page.screenshot(), blank)
                (folder / f"{name}-{theme}.png").write_bytes(picture)
        await browser.close()


def arguments(url: str) -> list[str]:
    """What Chromium is started with: the name that pages show leads to the service."""
    return [
        *driving.arguments(),
        f"--host-resolver-rules=MAP {month.NAME} {urlsplit(url).netloc}",
        # As it is where it is reached by https; buttons that copy are shown nowhere else.
        f"--unsafely-treat-insecure-origin-as-secure={HOST}",
    ]


async def shown(page: Page, name: str, path: str) -> None:
    """Go to a page, and write and press there what has to be."""
    await page.goto("about:blank")
    answer = await page.goto(path)
    assert answer is not None
    assert answer.ok, (path, answer.status)
    if name in EDITED:
        before, after, button = EDITED[name]
        text = page.get_by_role("textbox", name="Definition")
        await text.fill((await text.input_value()).replace(before, after))
        await page.get_by_role("button", name=button, exact=True).click()
        await page.wait_for_load_state()


async def main() -> None:
    """Make every picture anew, and remove what is no page any more."""
    logs.configure(Settings(log_level="error"))
    IMAGES.mkdir(exist_ok=True)
    for old in IMAGES.glob("*.png"):
        old.unlink()
    with tempfile.TemporaryDirectory() as folder:
        async with month.shown(Path(folder)) as (service, url):
            await take(service, url, IMAGES)


if __name__ == "__main__":
    asyncio.run(main())
