"""From the link of the first start to facts and back, in a browser with scripts and without."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx2
import pytest
from mcp import MCPError
from playwright.sync_api import Browser, Locator, Page, expect

from factbook.datasources.custom import yaml_text
from tests.browser import agent
from tests.browser.builds import BuildServer
from tests.browser.driving import Window, window
from tests.browser.shop import BUILDS, example_entities, first_link, make_account
from tests.fakes.serving import served
from tests.processes import serving
from tests.service import PUSH

pytestmark = pytest.mark.system

SET = f"{PUSH}/sets/examples"
COMPONENTS = [
    item["metadata"]["name"] for item in example_entities() if item["kind"] == "Component"
]
SECRET = "Bearer a secret of the build server"
BEFORE, AFTER = "Turns a basket into a paid order.", "Turns a basket into an order."


class Journey:
    """One person's way through the pages; its steps follow each other."""

    def __init__(self, shown: Window, url: str, builds: BuildServer, *, scripts: bool) -> None:
        self.shown = shown
        self.page: Page = shown.page
        self.url = url
        self.builds = builds
        self.scripts = scripts
        self.token = ""

    def go(self, *links: str) -> None:
        """Press links, one after the other, beginning in the navigation."""
        navigation = self.page.get_by_role("navigation", name="Sections")
        self.shown.follow(navigation.get_by_role("link", name=links[0], exact=True))
        for name in links[1:]:
            self.shown.follow(self.main.get_by_role("link", name=name, exact=True).first)

    @property
    def main(self) -> Locator:
        return self.page.get_by_role("main")

    def press(self, button: str) -> None:
        self.shown.follow(self.main.get_by_role("button", name=button, exact=True))

    def says(self, words: str) -> None:
        expect(self.main).to_contain_text(words)

    def generate_a_token(self) -> None:
        self.go("Account", "API access")
        self.page.get_by_label("Name", exact=True).fill("laptop")
        self.page.get_by_label("Full access").check()
        self.press("Generate token")
        value = self.page.get_by_role("region", name="Value").locator("code")
        self.token = value.inner_text().strip()
        assert self.token.startswith("fbk_")

    def push(self, items: list[dict[str, Any]]) -> httpx2.Response:
        headers = {"authorization": f"Bearer {self.token}"}
        return httpx2.put(f"{self.url}{SET}", json={"items": items}, headers=headers, timeout=60)

    def find_in_the_catalog(self) -> None:
        self.go("Catalog")
        expect(self.main.get_by_role("link", name="Web shop")).to_be_visible()
        self.main.get_by_role("searchbox").press_sequentially("checko")
        if not self.scripts:
            self.main.get_by_role("searchbox").press("Enter")
        expect(self.main.get_by_role("link", name="Web shop")).to_have_count(0)
        self.shown.follow(self.main.get_by_role("link", name="Checkout", exact=True))
        assert self.shown.heading == "Checkout"
        self.says(BEFORE)

    def define_a_source(self, build_server: str) -> None:
        self.go("Connections", "New connection")
        self.page.get_by_label("Name", exact=True).first.fill("ci")
        self.page.get_by_label("Address").fill(build_server)
        self.page.get_by_label("Value").first.fill(SECRET)
        self.press("Create connection")
        self.says("The connection ci")
        self.go("Data sources", "Define a source")
        self.page.get_by_label("http").check()
        self.page.get_by_label("Id of the source").fill("builds")
        self.press("Write the definition")
        definition = self.page.get_by_label("Definition, in YAML or JSON")
        definition.fill(yaml_text.write_yaml(BUILDS))
        self.press("Save and publish")
        self.says("Version 1.0.0 is published.")
        assert self.shown.heading == "Builds"

    def run_it_and_watch(self) -> None:
        self.builds.may_answer.clear()
        self.press("Run now")
        self.says(f"0 of {len(COMPONENTS)} entities")
        self.builds.may_answer.set()
        self.says(f"{len(COMPONENTS)} entities covered")
        self.says("100%")
        assert self.builds.credentials == {SECRET}

    def see_the_facts(self) -> None:
        self.go("Catalog", "Checkout")
        expect(self.page.get_by_role("region", name="Builds")).to_contain_text("5 min")
        told = self.ask("get-entity-facts", dataSourceId="builds", name="checkout")
        assert told["facts"] == {"passed": True, "seconds": 312}

    def see_what_changed_and_restore(self) -> None:
        self.go("Sets", "examples", "Revisions", "2")
        difference = self.page.get_by_role("group", name="checkout")
        expect(difference).to_contain_text(BEFORE)
        expect(difference).to_contain_text(AFTER)
        self.go("Sets", "examples", "Revisions", "1")
        self.main.get_by_text("Restore…").click()
        self.press("Restore revision 1")
        self.says("The set was restored to revision 1: 0 added, 1 updated, 0 removed.")
        self.go("Catalog", "Checkout")
        self.says(BEFORE)

    def revoke_the_token(self) -> None:
        self.go("Account", "API access")
        row = self.page.get_by_role("row").filter(has_text="laptop")
        row.get_by_text("Revoke…").click()
        self.shown.follow(row.get_by_role("button", name="Revoke it"))
        self.says('The token "laptop" is revoked.')

    def ask(self, tool: str, **arguments: Any) -> dict[str, Any]:
        return agent.asked(self.url, self.token, tool, **arguments)


@contextmanager
def begun(browser: Browser, folder: Path, *, scripts: bool) -> Iterator[tuple[Journey, str]]:
    """A journey that begins at a new service, and the address of a build server."""
    builds = BuildServer(dict.fromkeys(COMPONENTS, b'{"ok": true, "seconds": 312}'))
    database = f"sqlite:///{folder / 'factbook.db'}"
    with (
        served(builds) as build_server,
        serving(database, folder, FACTBOOK_OUTGOING_NETWORKS="127.0.0.0/8") as server,
        window(browser, server.url, scripts=scripts) as shown,
    ):
        make_account(shown, first_link(server), "ada")
        yield Journey(shown, server.url, builds, scripts=scripts), build_server


@pytest.mark.parametrize("scripts", [True, False], ids=["with scripts", "without scripts"])
def test_a_person_gets_from_the_first_link_to_facts_and_back(
    browser: Browser, tmp_path: Path, scripts: bool
) -> None:
    with begun(browser, tmp_path, scripts=scripts) as (journey, build_server):
        journey.generate_a_token()
        assert journey.push(example_entities()).status_code == 200
        assert len(journey.ask("get-data-source-discovery")["dataSources"]) == 3
        journey.find_in_the_catalog()
        journey.define_a_source(build_server)
        journey.run_it_and_watch()
        journey.see_the_facts()
        assert journey.push(changed()).status_code == 200
        journey.see_what_changed_and_restore()
        journey.revoke_the_token()
        assert journey.push(changed()).status_code == 401
        with pytest.raises(BaseExceptionGroup) as failure:
            journey.ask("get-data-source-discovery")
        assert failure.group_contains(MCPError)
        assert journey.shown.complaints == []


def changed() -> list[dict[str, Any]]:
    """The examples with another description of one component."""
    items = example_entities()
    [checkout] = [item for item in items if item["metadata"].get("description") == BEFORE]
    checkout["metadata"]["description"] = AFTER
    return items
