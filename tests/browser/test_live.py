"""Pages that refresh themselves, as a person sees them, and what they ask for meanwhile."""

import signal
from collections.abc import Iterator
from typing import Any
from urllib.parse import urlsplit

import httpx2
import pytest
from playwright.sync_api import Browser, Locator, Request, Route, StorageState, expect

from factbook.clock import HOUR, MINUTE, SECOND
from tests.browser.driving import Window, window
from tests.browser.shop import PASSWORD, RUNBOOKS, SOURCES, first_link, signed_up
from tests.processes import ServerProcess, serving
from tests.service import PUSH, component
from tests.waiting import until

pytestmark = pytest.mark.system

# A server that waits for a stream gives up after thirty seconds, and says so.
_WAITED = "graceful shutdown exceeded"
# It is collected when somebody asks.
_SOURCE = {name: value for name, value in RUNBOOKS.items() if name != "cadence"}
_TURN = """hidden => {
    Object.defineProperty(document, "hidden", {value: hidden, configurable: true});
    document.dispatchEvent(new Event("visibilitychange"));
}"""

# More than a browser rounds its times by, multiplied by forty.
_MOMENT = 100

_COUNT = """
Object.assign(window, {streams: 0, changes: 0, errors: 0, looks: 0});
const Plain = EventSource;
window.EventSource = class extends Plain {
    constructor(address) {
        super(address);
        window.streams += 1;
        this.addEventListener("changed", () => (window.changes += 1));
        this.addEventListener("error", () => (window.errors += 1));
    }
};
const ask = fetch;
window.fetch = (...asked) => {
    window.looks += 1;
    return ask(...asked);
};
"""


class Shown:
    """A person who looks at a page, and somebody else who changes what is on it."""

    def __init__(self, shown: Window, server: ServerProcess) -> None:
        self.window = shown
        self.page = shown.page
        self.server = server
        self.http = server.client(server.token())
        self.asked: list[str] = []
        self.page.on("request", self._note)

    @property
    def main(self) -> Locator:
        return self.page.get_by_role("main")

    @property
    def runs(self) -> Locator:
        return self.main.get_by_role("region", name="Runs").locator("tbody tr")

    def look_at(self, path: str) -> None:
        """Open a page, which listens then."""
        with self.page.expect_request("**/live?*"):
            self.window.open(path)

    def says(self, words: str) -> None:
        expect(self.main).to_contain_text(words)

    def define(self) -> None:
        """A source that collects when it is asked, and has not yet."""
        self.forget()
        self.answered(self.http.put(f"{PUSH}/sets/all", json={"items": [component("web")]}))
        self.answered(self.http.put(f"{SOURCES}/runbooks", json=_SOURCE))
        self.answered(self.http.post(f"{SOURCES}/runbooks/publish"))

    def forget(self) -> None:
        """Delete what an earlier test has defined and collected, when its runs have ended."""
        until(self._runs_have_ended)
        answer = self.http.delete(f"{SOURCES}/runbooks")
        assert answer.is_success or answer.status_code == 404, answer.text

    def sign_in(self) -> None:
        """Begin a session that no other test has."""
        self.page.context.clear_cookies()
        self.window.open("/sign-in")
        self.page.get_by_label("Name", exact=True).fill("ada")
        self.page.get_by_label("Password", exact=True).fill(PASSWORD)
        self.window.follow(self.page.get_by_role("button", name="Sign in"))
        self.asked.clear()

    def collect(self) -> None:
        self.answered(self.http.post(f"{SOURCES}/runbooks/run"))

    def describe(self, words: str) -> None:
        """Push the component with other words."""
        entity = component("web")
        entity["metadata"]["description"] = words
        self.answered(self.http.put(f"{PUSH}/sets/all", json={"items": [entity]}))

    def asks_for(self, path: str) -> int:
        return self.asked.count(path)

    def answered(self, answer: httpx2.Response) -> Any:
        assert answer.is_success, answer.text
        return answer

    def _runs_have_ended(self) -> bool:
        answer = self.http.get(f"{SOURCES}/runbooks/runs")
        if answer.status_code == 404:
            return True
        self.answered(answer)
        return all(run["state"] != "running" for run in answer.json()["runs"])

    def _note(self, request: Request) -> None:
        self.asked.append(urlsplit(request.url).path)


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    folder = tmp_path_factory.mktemp("live")
    with serving(f"sqlite:///{folder / 'factbook.db'}", folder) as found:
        yield found


@pytest.fixture(scope="module")
def account(browser: Browser, server: ServerProcess) -> StorageState:
    """What a browser keeps of a person who is signed in."""
    return signed_up(browser, first_link(server), "ada")


class PacedPage:
    """A page on a clock that only a test moves, whose looks are answered when the test does."""

    path = "/catalog/component/default/web"

    def __init__(self, ada: Shown) -> None:
        self.ada = ada
        self._page = ada.page
        self._held: list[Route] = []
        self._changes = 0
        self._page.clock.install(time=0)
        self._page.clock.pause_at(HOUR / SECOND)
        self._page.add_init_script(_COUNT)
        self._page.route(f"**{self.path}", self._hold)

    def open(self) -> None:
        self.ada.look_at(self.path)

    def end_first_stream(self) -> None:
        """Have the first stream tell of a change, and end."""
        body = "event: opened\ndata:\n\nevent: changed\ndata:\n\n"
        self._page.route(
            "**/live?*",
            lambda route: route.fulfill(content_type="text/event-stream", body=body),
            times=1,
        )

    def count(self, of: str) -> int:
        """How many `streams`, `looks`, or of what streams tell: `changes`, `errors`."""
        found: int = self._page.evaluate(of)
        return found

    def change(self) -> None:
        """Change what is on the page, which hears of it."""
        told = self.count("changes")
        self._changes += 1
        self.ada.describe(f"Words {self._changes}")
        until(lambda: self.count("changes") > told)

    def begin_look(self) -> None:
        self.change()
        self.pass_time(_MOMENT)
        assert self.count("looks") == 1

    def pass_time(self, milliseconds: int) -> None:
        self._page.clock.run_for(milliseconds)

    def answer(self, *, after: int) -> None:
        """Answer the look that is under way, after so many milliseconds."""
        until(lambda: self.count("looks") == len(self._held))
        self.pass_time(after)
        before = self._made_at
        route = self._held[-1]
        route.fulfill(response=route.fetch())
        until(lambda: self._made_at != before)

    @property
    def _made_at(self) -> str | None:
        return self.ada.main.get_attribute("data-shown")

    def _hold(self, route: Route) -> None:
        if route.request.resource_type == "fetch":
            self._held.append(route)
        else:
            route.continue_()


@pytest.fixture
def paced(ada: Shown) -> PacedPage:
    return PacedPage(ada)


@pytest.fixture
def ada(browser: Browser, server: ServerProcess, account: StorageState) -> Iterator[Shown]:
    with window(browser, server.url, signed_in=account) as shown:
        found = Shown(shown, server)
        with found.http:
            found.define()
            yield found


def test_a_new_entity_shows_its_first_facts_when_they_come(ada: Shown) -> None:
    ada.look_at("/catalog/component/default/web")
    ada.says("Not collected yet: Runbooks")
    ada.collect()
    ada.says("Has runbook")
    assert "Not collected yet" not in ada.main.inner_text()
    assert ada.window.complaints == []


def test_lists_and_pages_of_sources_follow_what_somebody_else_runs(ada: Shown) -> None:
    ada.look_at("/data-sources?q=runbooks")
    ada.says("never")
    row = ada.main.get_by_role("row").filter(has_text="Runbooks")
    ada.collect()
    expect(row).to_contain_text("1 covered")
    ada.look_at("/data-sources/runbooks")
    expect(ada.runs).to_have_count(1)
    ada.collect()
    expect(ada.runs).to_have_count(2)
    assert ada.window.complaints == []


def test_a_change_while_the_page_is_on_its_way_is_looked_at_afterwards(ada: Shown) -> None:
    path, held = "/catalog/component/default/web", list[Route]()

    def hold(route: Route) -> None:
        if held or route.request.resource_type != "fetch":
            route.continue_()
        else:
            held.append(route)

    ada.page.clock.install()
    ada.page.add_init_script(_COUNT)
    ada.page.route(f"**{path}", hold)
    ada.look_at(path)
    ada.describe("Once")
    until(lambda: ada.page.evaluate("changes") and held)
    before = held[0].fetch()
    told = ada.page.evaluate("changes")
    ada.describe("Twice")
    until(lambda: ada.page.evaluate("changes") > told)
    held[0].fulfill(response=before)
    asked = ada.asks_for(path)

    def is_asked_again() -> bool:
        ada.page.clock.fast_forward(MINUTE)
        return ada.asks_for(path) > asked

    until(is_asked_again)
    assert ada.window.complaints == []


def test_a_page_that_is_slow_twice_rests_longer_and_a_minute_at_most(
    paced: PacedPage,
) -> None:
    paced.open()
    paced.begin_look()
    for took, rest in [
        (10 * SECOND, SECOND),
        (SECOND, 40 * SECOND),
        (10 * SECOND, 40 * SECOND),
        (10 * SECOND, MINUTE),
        (_MOMENT, 40 * _MOMENT),
    ]:
        paced.answer(after=took - _MOMENT)
        paced.change()
        looks = paced.count("looks")
        paced.pass_time(rest - _MOMENT)
        assert paced.count("looks") == looks, (took, rest)
        paced.pass_time(2 * _MOMENT)
        assert paced.count("looks") == looks + 1, (took, rest)
    assert paced.ada.window.complaints == []


def test_a_page_listens_again_whose_stream_ended_while_a_look_was_due(paced: PacedPage) -> None:
    paced.end_first_stream()
    paced.open()
    until(lambda: paced.count("errors"))
    paced.pass_time(_MOMENT)
    paced.answer(after=0)
    assert (paced.count("streams"), paced.count("looks")) == (1, 1)
    paced.pass_time(MINUTE)
    assert paced.count("looks") == 2
    paced.answer(after=0)
    assert paced.count("streams") == 2


def test_a_page_is_looked_at_again_where_no_answer_comes_within_a_minute(
    paced: PacedPage,
) -> None:
    paced.open()
    paced.begin_look()

    def is_asked_again() -> bool:
        paced.pass_time(10 * SECOND)
        return paced.count("looks") == 2

    until(is_asked_again)
    paced.answer(after=0)
    assert paced.count("looks") == 2


def test_what_somebody_writes_or_is_asked_stays_and_is_refreshed_afterwards(ada: Shown) -> None:
    ada.look_at("/data-sources/runbooks")
    field = ada.main.get_by_role("combobox", name="Entity")
    field.fill("component:web")
    ada.collect()
    expect(field).to_be_focused()
    expect(field).to_have_value("component:web")
    field.fill("")
    ada.main.locator("h1").click()
    expect(ada.runs).to_have_count(1)


def test_the_focus_stays_on_a_link_that_is_made_anew(ada: Shown) -> None:
    ada.look_at("/data-sources/runbooks")
    link = ada.main.get_by_role("link", name="Edit", exact=True)
    link.focus()
    ada.collect()
    expect(ada.runs).to_have_count(1)
    expect(link).to_be_focused()


def test_a_page_goes_on_after_the_server_was_restarted(ada: Shown) -> None:
    ada.look_at("/data-sources/runbooks")
    ended = ada.server.stop()
    log = ada.server.log.read_text()
    ada.server.start()
    assert ended == -signal.SIGTERM
    assert _WAITED not in log
    ada.collect()
    expect(ada.runs).to_have_count(1)


def test_a_page_whose_session_has_ended_asks_once_and_then_no_more(ada: Shown) -> None:
    ada.sign_in()
    ada.page.clock.install()
    ada.look_at("/data-sources/runbooks")
    csrf = ada.page.locator("input[name=csrf]").first.input_value()
    origin = {"origin": ada.server.url}
    answer = ada.page.request.post("/sign-out", form={"csrf": csrf}, headers=origin)
    assert answer.ok
    with ada.page.expect_request("**/sign-in?*"):
        ada.collect()
    asked = list(ada.asked)
    for _ in range(10):
        ada.page.clock.fast_forward(MINUTE)
    assert ada.asked == asked
    assert ada.asks_for("/live") <= 2
    expect(ada.main.locator("h1")).to_have_text("Runbooks")


def test_a_tab_out_of_view_listens_to_nothing_and_catches_up(ada: Shown) -> None:
    ada.look_at("/data-sources/runbooks")
    ada.page.evaluate(_TURN, True)
    ada.collect()
    until(lambda: ada.http.get(f"{SOURCES}/runbooks/runs").json()["runs"][0]["finishedAt"])
    expect(ada.runs).to_have_count(0)
    with ada.page.expect_request("**/live?*"):
        ada.page.evaluate(_TURN, False)
    expect(ada.runs).to_have_count(1)


def test_a_tab_that_leaves_view_during_a_look_listens_to_nothing(paced: PacedPage) -> None:
    paced.open()
    paced.begin_look()
    paced.ada.page.evaluate(_TURN, True)
    paced.answer(after=0)
    assert paced.count("streams") == 1
    paced.ada.page.evaluate(_TURN, False)
    paced.pass_time(SECOND + _MOMENT)
    paced.answer(after=0)
    assert paced.count("streams") == 2


def test_without_scripts_the_same_pages_show_it_when_they_are_loaded_again(
    browser: Browser, server: ServerProcess, account: StorageState
) -> None:
    with window(browser, server.url, scripts=False, signed_in=account) as shown:
        ada = Shown(shown, server)
        with ada.http:
            ada.define()
            shown.open("/data-sources/runbooks")
            expect(ada.runs).to_have_count(0)
            ada.collect()
            until(lambda: shown.page.reload() and ada.runs.count() == 1)
        assert ada.asks_for("/live") == 0
