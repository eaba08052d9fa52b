"""Custom sources of a test's own, and the collector between a service and what they ask."""

from collections.abc import Callable, Mapping
from typing import Any

import httpx2
import msgspec
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import ASGIApp

from factbook.clock import Clock
from factbook.collection.collector import Collector
from factbook.datasources.custom import definition as source_definition
from factbook.datasources.custom import sources
from factbook.datasources.custom.definition import CustomSourceDefinition
from factbook.datasources.custom.sources import SourceConnection
from factbook.facts import store
from factbook.facts.freshness import Latest
from factbook.integrations.integration import Integration
from factbook.outbound.client import HttpClient
from factbook.outbound.network import Sender
from factbook.scheduling import runs
from factbook.scheduling.runs import RunRecord
from factbook.scheduling.schedule import find_next_start
from tests.fakes.fake import Fake, path_of
from tests.fakes.faults import as_json
from tests.service import Service, component

KEY = "acme.test/build"
CADENCE = "0 * * * *"
SECRET = "the-secret-of-a-connection"
CI = SourceConnection(base_url="https://ci.test/api", headers={"X-Token": SECRET})
BUILD = f'{{{{ metadata.annotations."{KEY}" }}}}'
PASSED = {"ok": True, "took": 7, "tags": ["x", "y"]}


class Asked:
    """One request that an API got."""

    def __init__(self, request: Request, body: bytes) -> None:
        self.method = request.method
        self.path = path_of(request)
        self.query = dict(request.query_params)
        self.headers = dict(request.headers)
        self.body = msgspec.json.decode(body) if body else None


class Api(Fake):
    """An API of a user's own: answers by path, 404 where it has none. `kind` is the path."""

    def __init__(self, **answers: Any) -> None:
        super().__init__()
        self.answers: dict[str, Any] = {f"/{name}": answers[name] for name in answers}
        self.asked: list[Asked] = []

    def kind(self, request: Request) -> str:
        """The path."""
        return path_of(request)

    async def answer(self, request: Request) -> Response:
        """What a test says, bytes as they are."""
        self.asked.append(Asked(request, await request.body()))
        found = self.answers.get(path_of(request))
        if found is None:
            return as_json({"message": "never heard of it"}, 404)
        return Response(found) if isinstance(found, bytes) else as_json(found)


class Hosts(httpx2.AsyncBaseTransport):
    """Leads to applications in this process by the name of the host."""

    def __init__(self, **hosts: ASGIApp) -> None:
        self._hosts = {f"{name}.test": httpx2.ASGITransport(app) for name, app in hosts.items()}

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        return await self._hosts[request.url.host].handle_async_request(request)


class Custom:
    """A service whose collector works on these, and what it has brought."""

    def __init__(
        self,
        service: Service,
        connect: Callable[[Integration], HttpClient],
        *integrations: Integration | None,
        clock: Clock | None = None,
    ) -> None:
        self.service = service
        self.database = service.state.database
        self.integrations = [one for one in integrations if one is not None]
        self.collector = Collector(
            self.database, self.integrations, connect, clock or service.time, "tester"
        )

    async def run(self, *entities: dict[str, Any]) -> None:
        """Push these, if there are any, and let the collector do what is due."""
        if entities:
            assert (await self.service.push("all", *entities)).status_code == 200
        await self.collector.drain()

    async def next_run(self) -> None:
        """Go on to the next start of the first source, and do what is due."""
        time, source = self.service.time, self.integrations[0].source
        time.now = find_next_start(source.id, source.cadence or "", time.now)
        await self.collector.drain()

    async def latest(self, name: str, source: str = "builds") -> Latest:
        """What is stored of a component."""
        found = await store.list_latest_by_ref(self.database, f"component:default/{name}")
        return found[source]

    async def last(self, source: str = "builds") -> RunRecord:
        """The last run that has ended."""
        found = (await runs.fetch_health(self.database))[source].last
        assert found is not None
        return found


def connecting(service: Service, transport: httpx2.AsyncBaseTransport) -> Any:
    """Makes clients as the service does, with the credential of each integration."""

    def connect(integration: Integration) -> HttpClient:
        sender = Sender(transport, seconds=5)
        url, clock = integration.base_url, service.time
        credential = integration.authorize(HttpClient(url, sender, clock=clock))
        return HttpClient(url, sender, credential=credential, clock=clock, patience=0)

    return connect


def definition(
    type_: str = "http",
    id_: str = "builds",
    facts: Mapping[str, tuple[str, str]] | None = None,
    *,
    members: Mapping[str, Any] | None = None,
    **config: Any,
) -> CustomSourceDefinition:
    """A source; facts are a type and a JMESPath each, or a pattern between slashes."""
    if type_ == "http":
        config = {"connection": "ci"} | config
    return source_definition.parse_source_definition(
        {
            "id": id_,
            "title": id_.title(),
            "cadence": CADENCE,
            **(members or {}),
            "handlerDefinition": {"type": type_, "config": {"id": id_, **config}},
            "schema": {
                name: {"type": type_, "extract": _extract(text)}
                for name, (type_, text) in (facts or {"ok": ("boolean", "ok")}).items()
            },
        }
    )


def _extract(text: str) -> dict[str, str]:
    if text.startswith("/"):
        return {"regex": text.strip("/")}
    return {"jmespath": text}


def built(name: str, build: str | None = None, **annotations: str) -> dict[str, Any]:
    """A component whose annotation names a build, unless it has none."""
    entity = component(name)
    named = {KEY: build} if build else {}
    entity["metadata"]["annotations"] = {**named, **annotations}
    return entity


class NoFiles:
    """No code host is configured."""

    def locate(self, entity: Any) -> Any:
        raise AssertionError

    read = paths = locate


def integration(of: CustomSourceDefinition, *, ci: SourceConnection = CI) -> Integration:
    """What the collector works on, of a source that asks the connection `ci` if it asks any."""
    found = sources.build_integration(of, {"ci": ci}, NoFiles())
    assert found is not None
    return found


def collecting(
    service: Service, api: Api, *sources: CustomSourceDefinition, ci: SourceConnection = CI
) -> Custom:
    """The collector of these sources, which ask an API of the user's own."""
    connect = connecting(service, Hosts(ci=api, other=api))
    return Custom(service, connect, *(integration(one, ci=ci) for one in sources))
