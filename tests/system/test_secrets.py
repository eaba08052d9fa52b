"""No secret gets out of a running service, whatever it is asked and whatever it is answered."""

import base64
import json
import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, quote, urlsplit

import httpx2
import pytest

from factbook.tools import TOOLS as ALL_TOOLS
from factbook.web.routes import PAGES
from tests.processes import ServerProcess
from tests.service import PUSH, TOOLS, call
from tests.system.secrecy.leaks import Vault
from tests.system.secrecy.storing import break_the_database, stored
from tests.system.secrecy.world import SOURCES, World, entities, running
from tests.waiting import until

pytestmark = pytest.mark.system

HTML = {"accept": "text/html"}
ACCESS = "/api/access/v1"
INSIGHTS = "/api/tech-insights/v1"
HOOKS = "/api/events/webhooks"
_CSRF = re.compile(r'name="csrf" value="([^"]+)"')
NOBODY = "6e1f3f0c-0000-4000-8000-000000000000"
ARGUMENTS = {
    "name": "app",
    "entityRef": "component:default/app",
    "kind": "component",
    "dataSourceId": "github",
    "metric": "pullRequests.total",
}


class Visitor:
    """Asks the service for things, and remembers every answer as shown."""

    def __init__(self, world: World, http: httpx2.Client, name: str) -> None:
        self.world = world
        self.http = http
        self.name = name
        self.csrf = ""

    def ask(self, method: str, path: str, **more: Any) -> httpx2.Response:
        """The answer; what its address is called in findings stands for no secret."""
        answer = self.http.request(method, path, **more)
        where = f"{self.name}: {method} {urlsplit(path).path}"
        headers = "\n".join(f"{name}: {value}" for name, value in answer.headers.items())
        self.world.vault.saw(where, headers, answer.content)
        if found := _CSRF.search(answer.text):
            self.csrf = found[1]
        return answer

    def send(self, path: str, **fields: str) -> httpx2.Response:
        """Send a form."""
        return self.ask("POST", path, data={"csrf": self.csrf, **fields}, headers=HTML)


def wait_for(what: str, condition: Any, world: World) -> None:
    until(condition, told=lambda: (what, unsent(world)), pause=0.1)


@pytest.mark.spec("security.no-secret-leaves")
def test_no_secret_leaves_the_service(database_url: str, tmp_path: Path) -> None:
    with running(database_url, tmp_path) as world:
        vault = world.vault
        token = vault.keep("token", world.server.token())
        with (
            world.server.client(token) as http,
            httpx2.Client(base_url=world.server.url, timeout=60) as other,
        ):
            client, person = Visitor(world, http, "client"), Visitor(world, other, "person")
            fill(world, client)
            sign_in(world, person)
            collect(world, client)
            visit_everything(world, client, person)
            mistake_everything(world, client, person)
            break_the_database(database_url)
            visit_everything(world, client, person)
        processes = world.processes
    assert any(b"ls-remote" in one or b"clone" in one for one in processes.arguments.values())
    for arguments in processes.arguments.values():
        vault.saw("arguments of a process", arguments)
    for variables in processes.variables.values():
        vault.saw("variables of a process", variables)
    for log in (world.server.log, world.worker_log):
        text = log.read_text()
        assert "Traceback" in text or log is world.worker_log
        vault.saw(f"log {log.name[:6]}", text)
    for message in world.receiver.messages:
        vault.saw("a message of a webhook", json.dumps(message.headers), message.body)
    for place, content in stored(database_url):
        vault.saw(place, content)
    assert vault.leaks(but=RIGHTLY) == []


# Where a secret belongs: shown once to who made it, sent to whom it is for, or kept in the browser.
RIGHTLY = {
    "client: POST /api/access/v1/tokens": ["another token"],
    "client: POST /api/events/webhooks": ["secret of a webhook", "address of a webhook"],
    "person: POST /administration/api-access/tokens": ["token of a page"],
    "factbook people invite": ["link of an invitation"],
    # Of this host alone, and in variables, which nobody else on the machine sees.
    "variables of a process": ["GIT TOKEN"],
}


def fill(world: World, client: Visitor) -> None:
    """Make something of everything that holds a secret."""
    vault = world.vault
    pushed = client.ask("PUT", f"{PUSH}/sets/all", json={"items": entities()})
    assert pushed.status_code == 200
    made = client.ask("POST", f"{ACCESS}/tokens", json={"name": "another"})
    vault.keep("another token", made.json()["value"])
    address = f"{world.receiver.url}/{vault.new('address of a webhook')}"
    hook = {"url": address, "types": ["set.replaced"]}
    made = client.ask("POST", HOOKS, json=hook)
    vault.keep("secret of a webhook", made.json()["secret"].removeprefix("whsec_"))
    client.ask("POST", f"{HOOKS}/{made.json()['id']}/test")
    channel = f"{world.receiver.url}/{vault.new('address of a digest')}"
    made = client.ask("POST", f"{INSIGHTS}/digests", json={"form": "slack", "url": channel})
    client.ask("POST", f"{INSIGHTS}/digests/{made.json()['id']}/test")
    stored = {"authorization": f"Bearer {vault.new('header of a stored connection')}"}
    echo = world.server.environment["FACTBOOK_CONNECTIONS__CI__BASE_URL"]
    body = {"baseUrl": echo, "headers": stored}
    assert client.ask("PUT", f"{INSIGHTS}/connections/shop", json=body).status_code == 200
    for name in ("ci", "shop"):
        source = {
            "id": f"from-{name}",
            "title": name,
            "handlerDefinition": {
                "type": "http",
                "config": {"id": f"from-{name}", "connection": name, "path": "/x"},
            },
            "schema": {"all": {"type": "object", "extract": {"jmespath": "headers"}}},
        }
        path = f"{INSIGHTS}/data-sources/from-{name}"
        assert client.ask("PUT", path, json=source).status_code == 200
        client.ask("POST", f"{path}/publish")


def sign_in(world: World, person: Visitor) -> None:
    """Become an administrator with a password, and fail to sign in elsewhere."""
    vault = world.vault
    link = world.command("people", "invite", "--role", "administrator")
    secret = re.findall(r"/welcome/(\S+)", link)[-1]
    vault.keep("link of an invitation", secret)
    assert person.http.get(f"/welcome/{secret}", headers=HTML).status_code == 200
    person.csrf = _CSRF.search(person.http.get(f"/welcome/{secret}", headers=HTML).text)[1]  # type: ignore[index]  # it is there
    password = vault.new("password of a person", odd=True)
    form = {"csrf": person.csrf, "name": "ada", "password": password, "again": password}
    answer = person.http.post(f"/welcome/{secret}", data=form, headers=HTML)
    assert answer.status_code == 303, answer.text
    [cookie] = [value for name, value in person.http.cookies.items() if name.endswith("factbook")]
    vault.keep("cookie of a session", cookie)
    person.ask("GET", "/administration/account", headers=HTML)
    made = person.send("/administration/api-access/tokens", name="page", expires="90d")
    if found := re.search(r"fbk_\w{46}", made.text):
        vault.keep("token of a page", found[0])
    with httpx2.Client(base_url=world.server.url, timeout=60) as browser:
        elsewhere = Visitor(world, browser, "nobody")
        place = elsewhere.ask("GET", "/sign-in/openid", headers=HTML).headers["location"]
        state = parse_qs(urlsplit(place).query)["state"][0]
        back = f"/sign-in/openid/callback?code=a-code&state={quote(state)}"
        refused = elsewhere.ask("GET", back, headers=HTML)
        assert refused.status_code == 403, refused.text
    assert any(one.startswith("Basic ") for one in world.provider.proofs)


def collect(world: World, client: Visitor) -> None:
    """Have every source asked, first until it is denied, then while everything fails."""
    sources = {*SOURCES, "from-ci", "from-shop"}
    begin_runs(client, sources)

    def ended() -> bool:
        page = client.http.get("/metrics").text
        found = re.findall(r'factbook_source_last_run_duration_seconds{source="([^"]+)"', page)
        return sources <= set(found)

    wait_for("runs of every source", ended, world)
    wait_for("every secret to be sent", lambda: not unsent(world), world)
    world.command("collect", "github", "--entity", "component:default/app")
    world.command("collect", "git", "--entity", "component:default/own")
    world.command("sources")
    world.echo.proofs.clear()
    world.echo.fails = True
    begin_runs(client, sources)
    wait_for("every secret to be sent", lambda: not unsent(world), world)
    wait_for("a message", lambda: world.receiver.messages, world)


def begin_runs(client: Visitor, sources: Iterable[str]) -> None:
    for source in sources:
        begun = client.ask("POST", f"{INSIGHTS}/data-sources/{source}/run", json={})
        assert begun.status_code < 300 or begun.status_code == 409, begun.text  # it runs already


def unsent(world: World) -> list[str]:
    """Which credentials did not reach the host that repeats them."""
    sent = "\n".join(world.echo.proofs)
    basic = re.findall("Basic ([A-Za-z0-9+/=]+)", sent)
    sent += "\n".join(base64.b64decode(one).decode() for one in basic)
    return [
        name
        for name, value in world.vault.secrets.items()
        if name.startswith(("header", *(source.upper() for source in SOURCES)))
        and value not in sent
    ]


def visit_everything(world: World, client: Visitor, person: Visitor) -> None:
    """Every read of the interface, every page and every tool."""
    for path in [*described(client), "/metrics", "/healthz", "/readyz", "/nowhere"]:
        client.ask("GET", path)
    for page in PAGES:
        if page.method == "GET" and "welcome" not in page.path and "callback" not in page.path:
            for name in ("github", "from-shop", "app", "all", "ada", "1"):
                path = re.sub(r"\{[^}]*\}", name, page.path)
                person.ask("GET", path, headers=HTML)
    for tool in ALL_TOOLS:
        taken = {
            name: ARGUMENTS[name] for name in tool.arguments.__struct_fields__ if name in ARGUMENTS
        }
        client.ask("POST", TOOLS, json=call(tool.name, taken))
    for source in SOURCES:
        client.ask(
            "POST", TOOLS, json=call("get-entity-facts", {**ARGUMENTS, "dataSourceId": source})
        )


def described(client: Visitor) -> Iterator[str]:
    """The path of every GET that the OpenAPI documents describe, of things that there are."""
    known = {"name": "app", "kind": "component", "namespace": "default", "set_id": "all"}
    for prefix in ("/api/catalog", ACCESS, INSIGHTS, "/api/events"):
        document = client.ask("GET", f"{prefix}/openapi.json").json()
        yield f"{prefix}/openapi.json"
        for path, methods in document.get("paths", {}).items():
            if "get" in methods:
                for id_ in ("github", "from-shop", "shop", NOBODY):
                    yield re.sub(r"\{(\w+)\}", lambda one: known.get(one[1], id_), path)  # noqa: B023 - at once


def mistake_everything(world: World, client: Visitor, person: Visitor) -> None:
    """Put secrets where they do not belong, and ask for what cannot be."""
    token = world.vault.secrets["token"]
    for path in ("/api/catalog/entities", "/nowhere", TOOLS, "/sign-in"):
        answer = client.http.get(path, params={"access_token": token})
        assert token not in answer.text
        assert token not in str(answer.headers)
    for body in (b"{", b"\xff", json.dumps({"token": token}).encode(), token.encode()):
        for method, path in (("PUT", f"{PUSH}/sets/all"), ("POST", TOOLS), ("POST", HOOKS)):
            answer = client.http.request(method, path, content=body)
            world.vault.saw(f"mistaken {method} {path}", str(answer.headers))
    wrong = {"authorization": f"Basic {token}", "cookie": f"factbook={token}"}
    client.ask("GET", "/api/catalog/entities", headers=wrong)
    person.send("/sign-in", name="ada", password=world.vault.new("wrong password", odd=True))
    client.ask("PUT", f"{INSIGHTS}/connections/shop", json={"baseUrl": "https://elsewhere.example"})
    client.ask(
        "PUT", f"{INSIGHTS}/connections/bad", json={"baseUrl": "ftp://x", "headers": {"a": token}}
    )


@pytest.mark.parametrize(
    "place", ["127.0.0.1:1", "no-such-host.invalid", "127.0.0.1:1,127.0.0.1:2"]
)
def test_an_address_of_a_database_that_does_not_work_is_told_without_its_password(
    tmp_path: Path, place: str
) -> None:
    vault = Vault()
    password = quote(vault.new("password of the database", odd=True), safe="")
    server = ServerProcess(f"postgresql://factbook:{password}@{place}/facts", tmp_path)
    server.environment |= {
        "FACTBOOK_TOKEN_KEY": vault.new("token_key"),
        "FACTBOOK_LOG_LEVEL": "debug",
    }
    with pytest.raises(AssertionError):
        server.start()
    text = server.log.read_text()
    assert text
    vault.saw("the log", text)
    assert vault.leaks() == []
