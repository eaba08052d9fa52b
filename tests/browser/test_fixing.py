"""From signing in to the fix of what fails in three presses, with scripts and without."""

import pytest
from playwright.sync_api import Locator, expect

from tests.browser.driving import NARROW, WIDE, Window
from tests.browser.shop import PASSWORD, VIEWER, Shop

pytestmark = pytest.mark.system

WIKI = "https://wiki.example.com/runbooks/search"


def main(window: Window) -> Locator:
    """What the page is about."""
    return window.page.get_by_role("main")


def _left(element: Locator) -> float:
    box = element.bounding_box()
    assert box is not None
    return box["x"]


@pytest.mark.parametrize("scripts", [True, False], ids=["with scripts", "without scripts"])
def test_three_presses_lead_to_the_fix_of_what_fails(shop: Shop, scripts: bool) -> None:
    with shop.window(None, scripts=scripts) as window:
        page = window.page
        page.context.route("https://wiki.example.com/**", lambda each: each.fulfill(body="How to"))
        window.open("/")
        page.get_by_label("Name", exact=True).fill(VIEWER)
        page.get_by_label("Password", exact=True).fill(PASSWORD)
        window.follow(page.get_by_role("button", name="Sign in"))
        sections = page.get_by_role("navigation", name="Sections")
        window.follow(sections.get_by_role("link", name="Scorecards"))
        worst = main(window).get_by_role("link", name="Who is on call finds a runbook")
        window.follow(worst)
        row = page.get_by_role("row").filter(has_text="search has no link")
        expect(row).to_contain_text("expected: hasRunbook (runbooks) is true")
        window.follow(row.get_by_role("link", name="How to fix it"))
        assert page.url == WIKI
        assert window.complaints == [f"request: {WIKI}"]


def test_a_matrix_is_scrolled_with_the_keyboard_under_names_that_stay(shop: Shop) -> None:
    with shop.window(size=NARROW) as window:
        window.open("/scorecards/readiness/entities")
        table = window.page.get_by_role("region", name="Entities and checks")
        expect(main(window).get_by_text("Scroll sideways for 3 checks")).to_be_visible()
        name = table.get_by_role("rowheader").first
        left = _left(name)
        table.focus()
        for _ in range(5):
            window.page.keyboard.press("ArrowRight")
        expect(table.get_by_role("columnheader").last).to_be_in_viewport(ratio=0.9)
        assert table.evaluate("each => each.scrollLeft") > 20
        assert _left(name) == left
        assert not window.scrolls_sideways
        window.resize(WIDE)
        expect(main(window).get_by_text("Scroll sideways for 3 checks")).to_be_hidden()


@pytest.mark.parametrize("scripts", [True, False], ids=["with scripts", "without scripts"])
def test_a_check_is_previewed_before_it_is_saved(shop: Shop, scripts: bool) -> None:
    with shop.window(scripts=scripts) as window:
        window.open("/checks/covered/edit")
        text = window.page.get_by_label("Definition, in YAML or JSON")
        text.fill(text.input_value().replace("70", "99"))
        window.follow(main(window).get_by_role("button", name="Preview"))
        preview = window.page.get_by_role("region", name="Preview")
        expect(preview).to_contain_text("lines (coverage) is more than 99.")
        expect(preview).to_contain_text("1 entity would change.")
        assert window.complaints == []
