"""Tab, Enter, Space and Escape are enough for everything, and the focus is always seen."""

import re
from itertools import islice

import pytest
from playwright.sync_api import expect

from tests.browser.driving import NARROW, WIDE
from tests.browser.keyboard import Keyboard
from tests.browser.shop import ADMINISTRATOR, PASSWORD, Shop

pytestmark = pytest.mark.system

_TYPE = """(text) => {
  const field = document.getElementById("search-text");
  field.value = text;
  field.dispatchEvent(new Event("input", {bubbles: true}));
}"""


def test_a_person_signs_in_works_and_signs_out(shop: Shop) -> None:
    with shop.window(None) as window:
        keyboard = Keyboard(window)
        keyboard.open("/catalog")
        keyboard.type("Name", ADMINISTRATOR)
        keyboard.type("Password", PASSWORD)
        with window.page.expect_navigation():
            window.page.keyboard.press("Enter")
        assert window.heading == "Catalog"
        keyboard.type("Name, title, description or tag", "checkout")
        expect(window.page.get_by_role("link", name="Web shop")).to_have_count(0)
        keyboard.press("Checkout")
        assert window.heading == "Checkout"
        keyboard.press("Sets", "examples", "Push")
        assert window.heading == "examples"
        keyboard.press("Sign out")
        assert window.path == "/sign-in"
        assert "You are signed out." in window.page.get_by_role("status").inner_text()
        assert window.complaints == []


def test_the_first_key_leads_past_the_navigation(shop: Shop) -> None:
    with shop.window() as window:
        keyboard = Keyboard(window)
        keyboard.open("/sets")
        assert next(keyboard.steps()) == "Skip to content"
        window.page.keyboard.press("Enter")
        assert next(keyboard.steps()) == "Imports"
        keyboard.to("Sets", "Shift+Tab")


@pytest.mark.parametrize("keys", ["/", "Control+k"])
def test_two_keys_lead_to_the_search_for_anything(shop: Shop, keys: str) -> None:
    with shop.window() as window:
        keyboard = Keyboard(window)
        keyboard.open("/sets")
        window.page.keyboard.press(keys)
        window.page.keyboard.type("checkout")
        with window.page.expect_navigation():
            window.page.keyboard.press("Enter")
        assert window.heading == "Search"
        window.page.keyboard.type(" a/b")
        expect(window.page.get_by_label("Name, title or text")).to_have_value("checkout a/b")
        # The same address as before would also be seen while old results are still shown.
        expect(window.page).to_have_url(re.compile(r"q=checkout\+a%2Fb$"))
        window.page.keyboard.press("Control+k")
        window.page.keyboard.type("checkout")
        expect(window.page).to_have_url(re.compile(r"q=checkout$"))
        for key in ("ArrowDown", "ArrowDown", "ArrowUp"):
            window.page.keyboard.press(key)
        focused = keyboard.focused()
        assert focused is not None
        assert focused["name"] == "Checkout"
        with window.page.expect_navigation():
            window.page.keyboard.press("Enter")
        assert window.path == "/catalog/component/default/checkout"
        assert window.complaints == []


def test_a_result_that_has_the_focus_keeps_it_when_others_are_shown(shop: Shop) -> None:
    with shop.window() as window:
        page = window.page
        window.open("/search?q=check")
        page.get_by_role("link", name="Checkout", exact=True).focus()
        # As a letter does that was typed just before.
        page.evaluate(_TYPE, "checkout")
        expect(page).to_have_url(re.compile(r"q=checkout$"))
        expect(page.get_by_role("link", name="Checkout", exact=True)).to_be_focused()
        page.evaluate(_TYPE, "web-shop")
        expect(page).to_have_url(re.compile(r"q=web-shop$"))
        expect(page.get_by_label("Name, title or text")).to_be_focused()


def test_in_a_narrow_window_the_keys_lead_to_the_page_of_the_search(shop: Shop) -> None:
    with shop.window(size=NARROW) as window:
        Keyboard(window).open("/sets")
        with window.page.expect_navigation():
            window.page.keyboard.press("/")
        assert window.heading == "Search"


@pytest.mark.parametrize("opening", ["Enter", "Space"])
def test_the_menu_of_narrow_windows_opens_and_leads_on(shop: Shop, opening: str) -> None:
    with shop.window(size=NARROW) as window:
        keyboard = Keyboard(window)
        keyboard.open("/")
        next(keyboard.steps())
        assert "Menu" in next(keyboard.steps())
        window.page.keyboard.press(opening)
        keyboard.press("Data sources")
        assert window.heading == "Data sources"


def test_what_asks_once_more_opens_closes_and_is_done(shop: Shop) -> None:
    with shop.window() as window:
        keyboard = Keyboard(window)
        keyboard.open("/administration/account/api-access")
        keyboard.type("Name", "by keyboard")
        keyboard.press("Generate token", "I have stored it")
        yes = window.page.get_by_role("button", name="Revoke it")
        keyboard.to("Revoke…")
        for opening in ("Enter", "Space"):
            window.page.keyboard.press(opening)
            assert next(keyboard.steps()) == "Revoke it"
            assert yes.count() == 1
            window.page.keyboard.press("Escape")
            assert yes.count() == 0
            focused = keyboard.focused()
            assert focused is not None
            assert focused["name"] == "Revoke…"
        window.page.keyboard.press("Enter")
        keyboard.press("Revoke it")
        assert (
            'The token "by keyboard" is revoked.' in window.page.get_by_role("status").inner_text()
        )


@pytest.mark.parametrize("size", [WIDE, NARROW], ids=["wide", "narrow"])
@pytest.mark.parametrize(
    "path",
    [
        "/",
        "/catalog",
        "/catalog/component/default/checkout",
        "/catalog/component/default/checkout/history",
        "/catalog/group/default/team-checkout/contents",
        "/sets/examples/revisions/2",
        "/imports/ldif",
        "/importers/new?kind=github",
        "/data-sources",
        "/data-sources/builds/edit",
        "/connect/tools/get-entity-facts",
        "/administration/account",
        "/administration/people",
    ],
)
def test_the_focus_is_seen_wherever_it_goes(shop: Shop, path: str, size: tuple[int, int]) -> None:
    with shop.window(size=size) as window:
        keyboard = Keyboard(window)
        keyboard.open(path)
        # The navigation is the same on all pages, and gone through on one.
        if path != "/":
            assert next(keyboard.steps()) == "Skip to content"
            window.page.keyboard.press("Enter")
        forth = list(keyboard.steps())
        assert ("Skip to content" in forth) == (path == "/")
        assert len(forth) > 1
        back = list(islice(keyboard.steps("Shift+Tab"), len(forth)))
        assert back == forth[::-1]
