"""Ways through the pages that lead from a question to its answer, counted in presses.

Each is gone with scripts and without, and what people do every day by keyboard alone.
"""

from collections.abc import Iterator
from typing import Any

import pytest
from playwright.sync_api import Browser, Locator, expect

from tests.browser import shop as shops
from tests.browser.driving import Window
from tests.browser.keyboard import Keyboard
from tests.browser.shop import ADMINISTRATOR, PASSWORD, VIEWER, Shop
from tests.waiting import until

pytestmark = pytest.mark.system

SCRIPTS = pytest.mark.parametrize("scripts", [True, False], ids=["with scripts", "without scripts"])
FIX = "https://wiki.example.com/runbooks/search"
MEMBER: dict[str, Any] = {
    "apiVersion": "backstage.io/v1alpha1",
    "kind": "User",
    "metadata": {"name": VIEWER},
    "spec": {"memberOf": ["team-discovery"]},
}


QUICK: dict[str, Any] = {
    "id": "quick",
    "title": "Builds take a minute",
    "rule": {"source": "builds", "fact": "seconds", "operator": "lessThan", "value": 60},
    "appliesTo": {"kind": "component"},
}


class Asking:
    """Somebody with a question, whose presses are counted."""

    def __init__(self, shown: Window) -> None:
        self.shown = shown
        self.page = shown.page
        self.presses = 0

    @property
    def main(self) -> Locator:
        return self.page.get_by_role("main")

    def press(self, place: Locator) -> None:
        self.shown.follow(place)
        self.presses += 1

    def section(self, name: str) -> None:
        sections = self.page.get_by_role("navigation", name="Sections")
        self.press(sections.get_by_role("link", name=name, exact=True))

    def link(self, name: str) -> None:
        self.press(self.main.get_by_role("link", name=name).first)

    def button(self, name: str) -> None:
        self.press(self.main.get_by_role("button", name=name))


@pytest.fixture(scope="module")
def shop(browser: Browser, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Shop]:
    """A service in which the viewer belongs to a team with something to mend."""
    with shops.opened(browser, tmp_path_factory.mktemp("shop")) as found:
        found.push("staff", [MEMBER])
        found.put("/api/tech-insights/v1/checks/quick?publish=true", QUICK)
        until(lambda: _fails(found, "quick", "component:checkout"))
        yield found


def _fails(shop: Shop, check: str, entity: str) -> bool:
    query = {"checkIds": check, "entity": entity, "state": "fail"}
    found = shop.http.get("/api/tech-insights/v1/check-results", params=query)
    return bool(found.is_success and found.json()["results"])


@SCRIPTS
def test_what_is_wrong_with_mine_is_two_presses_from_signing_in(shop: Shop, scripts: bool) -> None:
    with shop.window(VIEWER, scripts=scripts) as shown:
        asking = Asking(shown)
        shown.open("/")
        mine = asking.main.get_by_role("region", name="Mine: team-discovery")
        worst = mine.get_by_role("row").nth(1)
        asking.press(worst.get_by_role("rowheader").get_by_role("link"))
        check = asking.main.get_by_role("listitem").filter(has_text="has no link with the title")
        expect(check.first).to_contain_text("Add a link to its catalog file.")
        link = check.first.get_by_role("link", name="Fix it")
        expect(link).to_have_attribute("href", FIX.replace("search", _name(shown)))
        assert asking.presses + 1 == 2
        assert shown.complaints == []


def _name(shown: Window) -> str:
    return shown.path.rpartition("/")[2]


def test_the_fix_of_what_fails_is_three_presses_by_keyboard(shop: Shop) -> None:
    with shop.window(None) as shown:
        shown.page.context.route("https://wiki.example.com/**", lambda each: each.fulfill(body=""))
        keyboard = Keyboard(shown)
        keyboard.open("/")
        keyboard.type("Name", VIEWER)
        keyboard.type("Password", PASSWORD)
        with shown.page.expect_navigation():
            shown.page.keyboard.press("Enter")
        keyboard.press(
            "Scorecards", "Who is on call finds a runbook", "How to fix it\nfor component:search"
        )
        assert shown.page.url == FIX


@SCRIPTS
def test_an_entity_is_found_by_search_in_one_press(shop: Shop, scripts: bool) -> None:
    with shop.window(VIEWER, scripts=scripts) as shown:
        asking = Asking(shown)
        shown.open("/sets")
        field = shown.page.get_by_role("searchbox", name="Search").first
        if scripts:
            shown.page.keyboard.press("/")
            expect(field).to_be_focused()
        field.fill("checkout")
        with shown.page.expect_navigation():
            field.press("Enter")
        asking.link("Checkout")
        assert shown.path == "/catalog/component/default/checkout"
        assert asking.presses == 1
        assert shown.complaints == []


@SCRIPTS
def test_an_exemption_is_asked_for_by_the_owner_and_approved_by_another(
    shop: Shop, scripts: bool
) -> None:
    name, title = ("search", "component:search") if scripts else ("web-shop", "Web shop")
    with shop.window(VIEWER, scripts=scripts) as shown:
        asking = Asking(shown)
        shown.open("/checks/has-runbook")
        asking.link(f"Ask for an exemption of {title}")
        shown.page.get_by_label("Reason").fill("It is switched off in spring.")
        asking.button("Ask for it")
        expect(asking.main).to_contain_text("It takes effect once it is approved")
        expect(asking.main).to_contain_text("somebody else decides")
        assert shown.complaints == []
    with shop.window(ADMINISTRATOR, scripts=scripts) as shown:
        asking = Asking(shown)
        shown.open("/scorecards")
        asking.link("wait")
        row = asking.main.get_by_role("row").filter(has_text="switched off")
        row.get_by_label(f"Comment on component:{name}").fill("Agreed.")
        asking.press(row.get_by_role("button", name=f"Approve the exemption of component:{name}"))
        expect(asking.main).to_contain_text(f"The exemption of component:{name} is approved")
        assert asking.presses == 2
        exempt = asking.main.get_by_role("rowheader", name=title)

        def is_exempt() -> bool:
            shown.open("/checks/has-runbook?state=exempt")
            return exempt.count() == 1

        until(is_exempt)
        assert shown.complaints == []


@SCRIPTS
def test_a_check_is_written_previewed_and_published(shop: Shop, scripts: bool) -> None:
    id_ = "typed" if scripts else "posted"
    text = (
        f"id: {id_}\ntitle: Builds are quick\nappliesTo: {{kind: component}}\n"
        "rule: {source: builds, fact: seconds, operator: lessThan, value: 60}\n"
    )
    with shop.window(scripts=scripts) as shown:
        asking = Asking(shown)
        shown.open("/checks")
        asking.link("Define a check")
        shown.page.get_by_label("Definition, in YAML or JSON").fill(text)
        asking.button("Preview")
        preview = shown.page.get_by_role("region", name="Preview")
        expect(preview).to_contain_text("seconds (builds) is less than 60.")
        expect(preview).to_contain_text("would change")
        asking.button("Save and publish")
        assert asking.presses == 3
        assert shown.heading == "Builds are quick"
        assert shown.complaints == []


@SCRIPTS
@pytest.mark.parametrize(
    ("start", "link", "heading"),
    [
        ("/data-sources/coverage", "Lines", "Lines across the catalog"),
        (
            "/catalog/component/default/checkout/facts/coverage/lines",
            "across the catalog",
            "Lines across the catalog",
        ),
        ("/", "Names an owner", "across the catalog"),
    ],
    ids=["a source", "an entity", "the overview"],
)
def test_a_fact_across_the_catalog_is_one_press_from(
    shop: Shop, start: str, link: str, heading: str, scripts: bool
) -> None:
    with shop.window(VIEWER, scripts=scripts) as shown:
        asking = Asking(shown)
        shown.open(start)
        asking.link(link)
        assert heading in shown.heading
        expect(asking.main.get_by_role("heading", name="Entities", exact=True)).to_be_visible()
        assert asking.presses == 1
        assert shown.complaints == []


@SCRIPTS
def test_who_fails_a_check_is_two_presses(shop: Shop, scripts: bool) -> None:
    with shop.window(VIEWER, scripts=scripts) as shown:
        asking = Asking(shown)
        shown.open("/")
        asking.section("Checks")
        asking.link("Builds take a minute")
        expect(asking.main.get_by_role("row", name="Checkout")).to_contain_text("312")
        assert asking.presses == 2
        assert shown.complaints == []


@SCRIPTS
def test_what_changed_in_an_entity_is_one_press_from_it(shop: Shop, scripts: bool) -> None:
    with shop.window(VIEWER, scripts=scripts) as shown:
        asking = Asking(shown)
        shown.open("/catalog/component/default/checkout")
        asking.link("History")
        expect(asking.main).to_contain_text("What was added")
        assert asking.presses == 1
        assert shown.complaints == []


@SCRIPTS
def test_a_team_leads_to_its_worst_service(shop: Shop, scripts: bool) -> None:
    with shop.window(VIEWER, scripts=scripts) as shown:
        asking = Asking(shown)
        shown.open("/catalog/group/default/team-checkout")
        asking.link("Owns")
        rows = asking.main.get_by_role("row").filter(has=shown.page.locator(".state.bad"))
        asking.press(rows.first.locator(".state.bad"))
        assert shown.page.url.endswith("#checks")
        expect(asking.main.get_by_role("region", name="Checks")).to_contain_text("failing")
        assert asking.presses == 2
        assert shown.complaints == []
