"""From an empty catalog to a full one: an importer made in a browser, and what may go wrong."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Locator, expect

from factbook.clock import now
from tests.browser.driving import NARROW, Window, window
from tests.browser.shop import first_link, make_account
from tests.fakes.github.app import FakeGitHub
from tests.fakes.github.state import Token
from tests.fakes.serving import served
from tests.importers.organization import CATALOG, file, repository
from tests.integrations.github.asking import TOKEN
from tests.processes import ServerProcess, serving

pytestmark = pytest.mark.system

_MANY = 30


class FirstImport:
    """A new user with a browser, and an organization at GitHub."""

    def __init__(self, shown: Window, api: str, fake: FakeGitHub) -> None:
        self.shown = shown
        self.page = shown.page
        self.api = api
        self.fake = fake

    @property
    def main(self) -> Locator:
        return self.page.get_by_role("main")

    def follow(self, *links: str) -> None:
        """Press links on the page, one after the other."""
        for name in links:
            self.shown.follow(self.main.get_by_role("link", name=name, exact=True).first)

    def press(self, button: str) -> None:
        self.shown.follow(self.main.get_by_role("button", name=button).first)

    def says(self, words: str) -> None:
        expect(self.main).to_contain_text(words)

    def is_(self, state: str) -> None:
        """Wait until the importer has this state, which its page shows by itself."""
        expect(self.main.locator(".head .state")).to_have_text(state)

    def make(self, token: str) -> None:
        """Make an importer, first without what it needs."""
        self.follow("Import them", "Create the first importer", "GitHub")
        self.press("Create importer")
        organizations = self.page.get_by_label("Organizations")
        expect(organizations).to_have_attribute("aria-invalid", "true")
        organizations.fill("acme")
        self.page.get_by_label("API URL").fill(self.api)
        self.give(token)
        self.press("Create importer")

    def give(self, token: str) -> None:
        self.page.get_by_role("textbox", name="Token").fill(token)

    def correct(self, token: str) -> None:
        """Give another token, which is tried at once."""
        self.follow("Edit")
        self.give(token)
        self.press("Save")

    def lose_many(self) -> None:
        """Half of the repositories go, and the next run holds them."""
        self.fake.repositories = self.fake.repositories[_MANY // 2 :]
        self.press("Run now")
        self.is_("held")
        self.says(f"{_MANY // 2} entities of {_MANY + 2} would be removed")

    def remove(self) -> None:
        self.main.get_by_text("Remove…").click()
        self.press(f"Remove {_MANY // 2} entities")
        self.says(f"Removed: {_MANY // 2}.")
        self.is_("complete")


@pytest.fixture
def fake() -> FakeGitHub:
    many = [repository(f"r{n:02}", n + 1) for n in range(_MANY)]
    shop = repository("shop", 50, texts={CATALOG: file("shop")})
    broken = repository("broken", 51, texts={CATALOG: "a: ["})
    return FakeGitHub([*many, shop, broken], [Token(TOKEN)], clock=now)


@pytest.fixture
def server(tmp_path: Path) -> Iterator[ServerProcess]:
    database = f"sqlite:///{tmp_path / 'factbook.db'}"
    with serving(database, tmp_path, FACTBOOK_OUTGOING_NETWORKS="127.0.0.0/8") as found:
        yield found


@pytest.mark.parametrize("scripts", [True, False])
def test_a_new_user_fills_the_catalog_and_decides_on_what_is_held(
    browser: Browser, server: ServerProcess, fake: FakeGitHub, scripts: bool
) -> None:
    with served(fake) as api, window(browser, server.url, scripts=scripts) as shown:
        make_account(shown, first_link(server), "ada")
        user = FirstImport(shown, api, fake)
        user.make("of another account")
        user.is_("failed")
        user.says("the credential is not accepted")
        user.correct(TOKEN)
        user.is_("complete")
        user.says("is not valid YAML")
        link = user.main.get_by_role("link", name="github.com/acme/broken catalog-info.yaml:2")
        expect(link).to_have_attribute(
            "href", "https://github.com/acme/broken/blob/HEAD/catalog-info.yaml#L2"
        )
        user.lose_many()
        shown.resize(NARROW)
        assert not shown.scrolls_sideways
        user.remove()
        shown.open("/catalog/component/default/shop")
        user.follow("github")
        assert shown.path == "/imports/github"
        assert shown.complaints == []
