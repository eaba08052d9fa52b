"""`python -m tests.browser.screenshots`: the pictures of docs/images, made anew.

They show the shop of `make demo`, on a day that is always the same one. Ada opens the link that the
demo prints, and then looks at each page.
"""

import asyncio
import shutil
import socket
import tempfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Final, Literal
from urllib.parse import urlsplit

import uvicorn
from playwright.async_api import Page, async_playwright

from examples.shop import history
from examples.shop.history import Shop
from factbook.settings import Settings
from factbook.telemetry import logs
from tests.browser import driving
from tests.browser.png import small
from tests.browser.shop import PASSWORD, SOURCES
from tests.service import NOON

IMAGES: Final = Path(__file__).parent.parent.parent / "docs" / "images"
# What the pages say the service is called, and where the shop's tools are.
NAME: Final = "factbook.shop.example"
PORTS: Final = (8471, 8472)
HOST: Final = f"http://{NAME}"
WIDTH, HEIGHT = 1440, 900
THEMES: Final[tuple[Literal["light", "dark"], ...]] = ("light", "dark")
_LEDGER: Final = "/catalog/component/default/ledger"
_TEAM: Final = "/catalog/group/default/team-payments"
_COLUMNS: Final = "column=scorecard:readiness&column=coverage/lines"
_ACCOUNT: Final = "/administration/account"
# RUN is in the place of the number of a run.
PAGES: Final = {
    "overview": "/",
    "search": "/search?q=pay",
    "catalog": f"/catalog?kind=component&{_COLUMNS}",
    "entity": _LEDGER,
    "facts": f"{_LEDGER}#facts",
    "fact": f"{_LEDGER}/facts/coverage/lines",
    "relations": f"{_LEDGER}/relations",
    "entity-history": f"{_LEDGER}/history",
    "team": f"{_TEAM}/contents",
    "sets": "/sets",
    "revisions": "/sets/payments/revisions",
    "revision": "/sets/payments/revisions/2",
    "set-push": "/sets/payments/push",
    "imports": "/imports",
    "importer": "/imports/ldif-staff",
    "import-problems": "/imports/ldif-contractors",
    "importer-new": "/importers/new?kind=github",
    "scorecards": "/scorecards",
    "scorecard": "/scorecards/security",
    "matrix": "/scorecards/security/entities",
    "team-matrix": "/scorecards/security/teams",
    "scorecard-editor": "/scorecards/security/edit",
    "checks": "/checks",
    "check": "/checks/covered",
    "check-editor": "/checks/covered/edit",
    "exemptions": "/exemptions",
    "exemption-new": "/exemptions/-/new?check=no-alerts&entity=component:ledger",
    "data-sources": "/data-sources",
    "data-source": "/data-sources/builds",
    "data-source-editor": "/data-sources/runbooks/edit",
    "fact-across": "/data-sources/coverage/facts/lines",
    "runs": "/data-sources/on-call/runs",
    "run": "/data-sources/builds/runs/RUN",
    "connect": "/connect",
    "tools": "/connect/tools",
    "playground": "/connect/tools/get-codehost-metrics?run=1&name=ledger",
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
EDITED: Final = {"check-editor": ("value: 70", "value: 65", "Preview")}
# Those that the documentation shows in dark too.
DARK: Final = frozenset({"overview", "catalog", "entity", "fact", "scorecard", "matrix", "check"})


@asynccontextmanager
async def served(
    folder: Path, ports: tuple[int, int] = (0, 0), now: int = NOON
) -> AsyncIterator[tuple[Shop, str]]:
    """The shop on a day that is always the same, and its address on loopback."""
    hosts = f"{NAME},127.0.0.1"
    async with history.lived(folder, now, ports=ports, FACTBOOK_ALLOWED_HOSTS=hosts) as shop:
        with socket.create_server(("127.0.0.1", 0)) as listening:
            config = uvicorn.Config(shop.application, lifespan="off", log_config=None)
            server = uvicorn.Server(config)
            serving = asyncio.create_task(server.serve([listening]))
            yield shop, f"http://127.0.0.1:{listening.getsockname()[1]}"
            server.should_exit = True
            await serving


async def last_run(shop: Shop, source: str) -> str:
    """The number of the last run of a source."""
    token = await shop.token("user:default/mia", "laptop", days=1)
    runs = await shop.send(token, "GET", f"{SOURCES}/{source}/runs")
    return str(runs["runs"][0]["id"])


async def take(shop: Shop, url: str, folder: Path) -> None:
    """Take every picture."""
    run = await last_run(shop, "builds")
    pages = {name: path.replace("RUN", run) for name, path in PAGES.items()}
    link = await shop.invite(history.VIEWER, "administrator", HOST)
    async with async_playwright() as playwright:
        browser = await playwright.chromium.launch(
            executable_path=shutil.which("chromium-headless-shell"), args=arguments(url)
        )
        blank, account = await browser.new_page(), await browser.new_context(base_url=HOST)
        await sign_in(await account.new_page(), link)
        for theme in THEMES:
            context = await browser.new_context(
                base_url=HOST,
                viewport={"width": WIDTH, "height": HEIGHT},
                color_scheme=theme,
                storage_state=await account.storage_state(),
            )
            page = await context.new_page()
            for name in DARK if theme == "dark" else pages:
                await shown(page, name, pages[name])
                picture = await small(await page.screenshot(), blank)
                (folder / f"{name}-{theme}.png").write_bytes(picture)
        await browser.close()


async def sign_in(page: Page, link: str) -> None:
    """Open the link, and make the account that it offers."""
    await page.goto(link)
    await page.get_by_label("Full name").fill("Ada Moreau")
    await page.get_by_label("Password", exact=True).fill(PASSWORD)
    await page.get_by_label("Confirm password").fill(PASSWORD)
    async with page.expect_navigation():
        await page.get_by_role("button", name="Create account").click()
    assert urlsplit(page.url).path == "/"


def arguments(url: str) -> list[str]:
    """What Chromium is started with: the name that pages show leads to the service."""
    return [
        *driving.arguments(),
        f"--host-resolver-rules=MAP {NAME} {urlsplit(url).netloc}",
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
    logs.configure_logs(Settings(log_level="error"))
    IMAGES.mkdir(exist_ok=True)
    for old in IMAGES.glob("*.png"):
        old.unlink()
    with tempfile.TemporaryDirectory() as folder:
        async with served(Path(folder), PORTS) as (shop, url):
            await take(shop, url, IMAGES)


if __name__ == "__main__":
    asyncio.run(main())
