"""A person signs in with the account of a real OpenID Connect provider, in a real browser."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, expect

from tests.processes import ServerProcess
from tests.system.test_openid_provider import SECRET, provided

pytestmark = pytest.mark.system


@pytest.fixture
def address(tmp_path: Path) -> Iterator[str]:
    """The address of a service that lets people of a provider in, root as administrator."""
    server = ServerProcess(f"sqlite:///{tmp_path / 'facts.db'}", tmp_path)
    with provided(f"{server.url}/sign-in/openid/callback") as issuer:
        server.environment |= {
            "FACTBOOK_OPENID__ISSUER": issuer,
            "FACTBOOK_OPENID__CLIENT_ID": "confidential",
            "FACTBOOK_OPENID__CLIENT_SECRET": SECRET,
            "FACTBOOK_OPENID__TITLE": "Example ID",
            "FACTBOOK_OPENID__ADMINISTRATOR_GROUPS": "friends-of-root",
            "FACTBOOK_OUTGOING_NETWORKS": "127.0.0.0/8",
        }
        server.start()
        yield server.url
        server.stop()


def sign_in(page: Page, address: str, name: str) -> None:
    """Through the pages of the provider, and back."""
    page.goto(f"{address}/administration/account")
    page.get_by_role("link", name="Continue with Example ID").click()
    page.locator("[name=login]").fill(name)
    page.locator("[name=password]").fill("any")
    page.get_by_role("button", name="Sign-in").click()
    page.get_by_role("button", name="Continue").click()
    expect(page).to_have_url(f"{address}/administration/account")


@pytest.mark.spec("people.openid-connect")
@pytest.mark.parametrize("scripts", [True, False])
def test_a_person_signs_in_at_the_provider_and_out_again(
    browser: Browser, address: str, scripts: bool
) -> None:
    with browser.new_context(java_script_enabled=scripts) as context:
        page = context.new_page()
        sign_in(page, address, "jane")
        expect(page.locator("main")).to_contain_text("user:default/jane")
        expect(page.locator("main")).to_contain_text("Viewer")
        expect(page.locator("main")).not_to_contain_text("Current password")
        page.get_by_role("button", name="Sign out").filter(visible=True).click()
        expect(page).to_have_url(re.compile("/sign-in$"))


def test_a_member_of_the_administrators_group_becomes_one(browser: Browser, address: str) -> None:
    with browser.new_context() as context:
        page = context.new_page()
        sign_in(page, address, "root")
        expect(page.locator("main")).to_contain_text("Administrator")
        page.goto(f"{address}/administration/people")
        expect(page.locator("main")).to_contain_text("root of the tests")
