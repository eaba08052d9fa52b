"""The service that the browser looks at: people, the example catalog, sources, runs and facts."""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import httpx2
import yaml
from playwright.sync_api import Browser, StorageState

from tests.browser.builds import BuildServer
from tests.browser.driving import Window, window
from tests.fakes.serving import served
from tests.importers.directories import LdifFile, person
from tests.processes import ServerProcess, serving
from tests.service import PUSH
from tests.waiting import until

ADMINISTRATOR, VIEWER = "ada", "vic"
PASSWORD = "correct horse battery"
CHECKOUT = "component:default/checkout"
IMPORTERS = "/api/importers/v1/importers"
SOURCES = "/api/tech-insights/v1/data-sources"
FACTS = "/api/tech-insights/v1/facts"
CONNECTIONS = "/api/tech-insights/v1/connections"

_CHECKS = "/api/tech-insights/v1/checks"
_SCORECARDS = "/api/tech-insights/v1/scorecards"
_EXEMPTIONS = "/api/tech-insights/v1/exemptions"
_RESULTS = "/api/tech-insights/v1/scorecard-results"

# A name that no entity may have.
BROKEN = person("not/a/name", 99)

_EXAMPLES = Path(__file__).parent.parent.parent / "examples"

RUNBOOKS: dict[str, Any] = {
    "id": "runbooks",
    "title": "Runbooks",
    "description": "Whether people on call find what to do.",
    "cadence": "0 * * * *",
    "entityFilter": [{"kind": "component"}],
    "handlerDefinition": {"type": "entity", "config": {"id": "runbooks"}},
    "schema": {
        "hasRunbook": {
            "type": "boolean",
            "description": "A link of the entity has the title Runbook.",
            "extract": {"jmespath": "length((metadata.links || `[]`)[?title == 'Runbook']) > `0`"},
        },
        "lifecycle": {"type": "string", "extract": {"jmespath": "spec.lifecycle"}},
    },
}
COVERAGE: dict[str, Any] = {
    "id": "coverage",
    "title": "Test coverage",
    "handlerDefinition": {"type": "push", "config": {"id": "coverage"}},
    "schema": {"lines": {"type": "float", "unit": "percent", "description": "Covered lines."}},
}
BUILDS: dict[str, Any] = {
    "id": "builds",
    "title": "Builds",
    "description": "How the last build went.",
    "entityFilter": [{"kind": "component"}],
    "handlerDefinition": {
        "type": "http",
        "config": {"id": "builds", "connection": "ci", "path": "/jobs/{{ metadata.name }}.json"},
    },
    "schema": {
        "passed": {"type": "boolean", "extract": {"jmespath": "ok"}},
        "seconds": {"type": "integer", "unit": "seconds", "extract": {"jmespath": "seconds"}},
    },
}
ABOUT: dict[str, Any] = {"appliesTo": {"kind": "component"}}
CHECKS: list[dict[str, Any]] = [
    {
        "id": "has-runbook",
        "title": "Who is on call finds a runbook",
        "description": "At night nobody searches.",
        "owner": "group:default/team-checkout",
        "rule": {"source": "runbooks", "fact": "hasRunbook", "operator": "equal", "value": True},
        "messages": {"fail": "{{ metadata.name }} has no link with the title Runbook."},
        "fix": {
            "link": "https://wiki.example.com/runbooks/{{ metadata.name }}",
            "instructions": "Add a link to its catalog file.",
        },
        **ABOUT,
    },
    {
        "id": "covered",
        "title": "Tests cover enough",
        "rule": {"source": "coverage", "fact": "lines", "operator": "greaterThan", "value": 70},
        **ABOUT,
    },
    {
        "id": "built",
        "title": "The last build passed",
        "rule": {"source": "builds", "fact": "passed", "operator": "equal", "value": True},
        **ABOUT,
    },
]
DRAFT_CHECK: dict[str, Any] = {**CHECKS[1], "id": "draft", "title": "A draft of a check"}
SCORECARD: dict[str, Any] = {
    "id": "readiness",
    "title": "Readiness",
    "description": "What has to be there before somebody is on call for it.",
    "owner": "group:default/team-checkout",
    "levels": [{"id": "bronze", "title": "Bronze"}, {"id": "silver", "title": "Silver"}],
    "entries": [
        {"check": "has-runbook", "level": "bronze"},
        {"check": "built", "level": "silver"},
        {"check": "covered", "weight": 2},
    ],
    "target": {"level": "bronze", "by": "2027-06-30"},
    "public": True,
    **ABOUT,
}
DRAFT = {
    **RUNBOOKS,
    "id": "draft",
    "title": "A draft",
    "handlerDefinition": {"type": "entity", "config": {"id": "draft"}},
}


def example_entities() -> list[dict[str, Any]]:
    """The entities of the folder examples."""
    return [
        document
        for file in sorted(_EXAMPLES.glob("*.yaml"))
        for document in yaml.safe_load_all(file.read_text("utf-8"))
        if document
    ]


class Shop:
    """A running service with something on every page, and people who can sign in."""

    def __init__(
        self, browser: Browser, server: ServerProcess, builds: BuildServer, directory: LdifFile
    ) -> None:
        self.browser = browser
        self.server = server
        self.builds = builds
        self.directory = directory
        self.http = server.client(server.token())
        self.states: dict[str, Any] = {}
        self.run = 0
        self.webhook = ""
        self.digest = ""

    @property
    def url(self) -> str:
        return self.server.url

    @contextmanager
    def window(self, name: str | None = ADMINISTRATOR, **options: Any) -> Iterator[Window]:
        """A window in which somebody is signed in, or nobody."""
        state = self.states[name] if name else None
        with window(self.browser, self.url, signed_in=state, **options) as opened:
            yield opened

    def filled(self, path: str) -> str:
        """A path with what was made in the place of RUN, WEBHOOK and DIGEST."""
        path = path.replace("RUN", str(self.run)).replace("WEBHOOK", self.webhook)
        return path.replace("DIGEST", self.digest)

    def add_people(self) -> None:
        """An administrator by the link of the first start, and a viewer by an invitation."""
        for name in (ADMINISTRATOR, VIEWER):
            link = first_link(self.server) if name == ADMINISTRATOR else self.invite(name)
            self.states[name] = signed_up(self.browser, link, name)

    def invite(self, name: str) -> str:
        """A link that makes the account of a viewer."""
        arguments = ("people", "invite", name, "--confirm", "--server", self.url)
        return _link(self.server.invoke(*arguments))

    def fill(self, build_server: str) -> None:
        """Push, define, collect."""
        self.put(f"{CONNECTIONS}/ci", {"baseUrl": build_server})
        hook = {"url": f"{build_server}/events", "types": ["source.down", "source.up"]}
        self.webhook = self.post("/api/events/webhooks", hook)["id"]
        digest = {"owner": "group:team-checkout", "form": "slack", "url": f"{build_server}/channel"}
        self.digest = self.post("/api/tech-insights/v1/digests", digest)["id"]
        self.push("examples", example_entities()[:-1])
        self.push("examples", example_entities())
        for source in (RUNBOOKS, BUILDS, COVERAGE):
            self.put(f"{SOURCES}/{source['id']}", source)
            self.post(f"{SOURCES}/{source['id']}/publish")
        self.put(f"{SOURCES}/draft", DRAFT)
        for lines in (71.5, 74.0, 74.0, 80.25):
            item = {"entity": CHECKOUT, "facts": {"lines": lines}}
            self.post(f"{FACTS}/coverage", {"items": [item]})
        # The other is collected by its cadence, for the first time at once.
        self.run = self.post(f"{SOURCES}/builds/run")["id"]
        self.wait_for_run("builds")
        self.wait_for_run("runbooks")
        self.check()
        self.import_people()

    def check(self) -> None:
        """Publish checks and a scorecard over what is known, and keep a draft of each."""
        for document in CHECKS:
            self.put(f"{_CHECKS}/{document['id']}?publish=true", document)
        self.put(f"{_CHECKS}/draft", DRAFT_CHECK)
        self.put(f"{_SCORECARDS}/draft", {**SCORECARD, "id": "draft", "title": "Another draft"})
        self.put(f"{_SCORECARDS}/readiness?publish=true", SCORECARD)
        for entity in ("component:checkout", "component:web-shop"):
            reason = {"reason": "It moves to another platform.", "until": "2027-03-31"}
            asked = {"check": "built", "entity": entity, **reason}
            made = self.post(_EXEMPTIONS, asked)
        self._approve(made["id"])
        until(self._is_graded)

    def _approve(self, exemption: str) -> None:
        """Approve an exemption as somebody else than who asked."""
        with self.server.client(self.server.token("--user", "user:default/lee")) as http:
            _answered(http.post(f"{_EXEMPTIONS}/{exemption}/approve"))

    def _is_graded(self) -> bool:
        return bool(self.http.get(f"{_RESULTS}/readiness").is_success)

    def import_people(self) -> None:
        """Import a directory, and then one that has lost most people and has a broken one."""
        everybody = [person(f"user{number}", number + 1) for number in range(30)]
        for records, state in ((everybody, "complete"), ([*everybody[:4], BROKEN], "held")):
            self.directory.write(*records)
            self.post(f"{IMPORTERS}/ldif/run")
            until(partial(self._has_imported, state))

    def _has_imported(self, state: str) -> bool:
        [found] = _answered(self.http.get(IMPORTERS))["importers"]
        return bool(found["state"] == state)

    def push(self, name: str, items: list[dict[str, Any]]) -> None:
        """Push a set."""
        self.put(f"{PUSH}/sets/{name}", {"items": items})

    def put(self, path: str, body: Any) -> Any:
        return _answered(self.http.put(path, json=body))

    def post(self, path: str, body: Any = None) -> Any:
        return _answered(self.http.post(path, json=body))

    def wait_for_run(self, source: str) -> None:
        """Wait until the runs of a source have ended."""

        def have_ended() -> bool:
            found = _answered(self.http.get(f"{SOURCES}/{source}/runs"))["runs"]
            return bool(found) and all(run["state"] != "running" for run in found)

        until(have_ended)


@contextmanager
def opened(browser: Browser, folder: Path) -> Iterator[Shop]:
    """A service with people and contents on a new database."""
    builds = BuildServer({"checkout": b'{"ok": true, "seconds": 312}'})
    directory = LdifFile(folder)
    environment = {
        "FACTBOOK_OUTGOING_NETWORKS": "127.0.0.0/8",
        "FACTBOOK_PEOPLE_SETS": "*",
        "FACTBOOK_OAUTH__CLIENTS": '{"desk": ["http://127.0.0.1/callback"]}',
        "FACTBOOK_IMPORTERS__LDIF__DEFAULT__PATH": str(directory.path),
        "FACTBOOK_IMPORTERS__LDIF__DEFAULT__EVERY": "never",
    }
    with (
        served(builds) as build_server,
        serving(_database(folder), folder, **environment) as server,
    ):
        shop = Shop(browser, server, builds, directory)
        with shop.http:
            shop.add_people()
            shop.fill(build_server)
            yield shop


def _database(folder: Path) -> str:
    return f"sqlite:///{folder / 'factbook.db'}"


def first_link(server: ServerProcess) -> str:
    """The link that the first start printed."""
    return _link(server.log.read_text("utf-8"))


def make_account(shown: Window, link: str, name: str) -> None:
    """Open a link, and make the account that it offers."""
    page = shown.page
    page.goto(link)
    # An invitation names the account; the link of the first start does not.
    if (field := page.get_by_label("Name", exact=True)).count():
        field.fill(name)
    page.get_by_label("Full name").fill(f"{name.title()} Example")
    page.get_by_label("Password", exact=True).fill(PASSWORD)
    page.get_by_label("Confirm password").fill(PASSWORD)
    shown.follow(page.get_by_role("button", name="Create account"))
    assert shown.path == "/"


def signed_up(browser: Browser, link: str, name: str) -> StorageState:
    """What a browser keeps of who made the account of a link, without showing a page."""
    with browser.new_context() as context:
        shown = context.request.get(link)
        csrf = re.search(r'name="csrf" value="([^"]+)"', shown.text())
        assert csrf, shown.text()
        form = {"csrf": csrf[1], "name": name, "display_name": f"{name.title()} Example"}
        form |= {"password": PASSWORD, "again": PASSWORD}
        parts = urlsplit(link)
        headers = {"origin": f"{parts.scheme}://{parts.netloc}"}
        answer = context.request.post(link, form=form, headers=headers)
        assert urlsplit(answer.url).path == "/", answer.text()
        return context.storage_state()


def _link(text: str) -> str:
    found = re.search(r"http://\S+/welcome/\S+", text)
    assert found, text
    return found[0]


def _answered(answer: httpx2.Response) -> Any:
    assert answer.is_success, answer.text
    return answer.json()
