"""A service that runs inside a test, and what tests do with it over and over."""

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Any

import httpx2

from factbook.app import Application
from factbook.auth import permissions as known
from factbook.auth import tokens
from factbook.auth.oauth.clients import FetchDocument
from factbook.auth.oauth.company_tokens import CompanyTokens
from factbook.auth.oidc.client import OpenID
from factbook.auth.tokens import Narrowing
from factbook.datasources.registry import HostFiles, Registry
from factbook.facts.datasource import DataSource
from factbook.http.context import State
from factbook.importers import registry as importer_registry
from factbook.integrations import SOURCES, configure_integrations
from factbook.integrations.integration import Integration
from factbook.settings import Settings

NOON = 1_795_262_400_000  # 2026-11-21T12:00:00Z
PUSH = "/api/catalog/factbook-entities"
TOOLS = "/api/mcp/v1/tech-insights-facts"


class Time:
    """A clock that shows what a test says."""

    def __init__(self) -> None:
        self.now = NOON

    def __call__(self) -> int:
        return self.now

    def advance(self, milliseconds: int) -> None:
        self.now += milliseconds


class Service:
    """A running service; `http` is a client whose token carries every permission."""

    def __init__(self, application: Application, state: State, time: Time) -> None:
        self.application = application
        self.state = state
        self.time = time
        self.http: httpx2.AsyncClient

    @property
    def database_url(self) -> str:
        return self.state.settings.database_url

    async def token(
        self,
        *permissions: str,
        owner: str = "user:default/tester",
        name: str = "test",
        lifetime: int | None = None,
        narrowing: Narrowing | None = None,
    ) -> str:
        """A new token's value; all permissions when none is named."""
        value = tokens.generate_token()
        now = self.time()
        await self.state.database.write(
            lambda transaction: tokens.create_token(
                transaction,
                name=name,
                digest=tokens.hash_token(value, self.state.token_key),
                owner=owner,
                permissions=known.check_permissions(permissions) or known.PERMISSION_NAMES,
                created_by="test",
                now=now,
                lifetime=lifetime,
                narrowing=narrowing,
            )
        )
        return value

    def client(self, token: str | None, *, address: str = "127.0.0.1") -> httpx2.AsyncClient:
        """A client with this token, coming from this address."""
        transport = httpx2.ASGITransport(self.application, client=(address, 40_000))
        headers = {"authorization": f"Bearer {token}"} if token else {}
        return httpx2.AsyncClient(
            transport=transport, base_url="http://127.0.0.1:8000", headers=headers
        )

    async def push(self, set_id: str, *items: dict[str, Any], **query: str) -> httpx2.Response:
        """PUT a set."""
        return await self.http.put(
            f"{PUSH}/sets/{set_id}", json={"items": list(items)}, params=query
        )

    async def ask(self, tool: str, /, **arguments: Any) -> dict[str, Any]:
        """The result member of a bare tools/call."""
        answer = await self.http.post(TOOLS, json=call(tool, arguments))
        assert answer.status_code == 200, answer.text
        result: dict[str, Any] = answer.json()["result"]
        return result

    async def facts(self, tool: str, /, **arguments: Any) -> dict[str, Any]:
        """The structured content of a tool call that succeeds."""
        result = await self.ask(tool, **arguments)
        assert result["isError"] is False, result
        structured: dict[str, Any] = result["structuredContent"]
        return structured

    async def refusal(self, tool: str, /, **arguments: Any) -> str:
        """The text of a tool call that the tool refuses."""
        result = await self.ask(tool, **arguments)
        assert result["isError"] is True, result
        text: str = result["content"][0]["text"]
        return text

    async def catalog(self, ref: str) -> dict[str, Any] | None:
        """An entity as the catalog shows it; None when it is not there."""
        kind, _, rest = ref.partition(":")
        namespace, _, name = rest.partition("/")
        answer = await self.http.get(f"/api/catalog/entities/by-name/{kind}/{namespace}/{name}")
        if answer.status_code == 404:
            return None
        assert answer.status_code == 200, answer.text
        entity: dict[str, Any] = answer.json()
        return entity


@asynccontextmanager
async def started(
    settings: Settings,
    *,
    sources: Sequence[DataSource] | None = None,
    openid: OpenID | None = None,
    fetch_document: FetchDocument | None = None,
    company: CompanyTokens | None = None,
) -> AsyncIterator[Service]:
    """A service that runs inside this process until the end of the block."""
    time = Time()
    given = SOURCES if sources is None else tuple(sources)
    application = Application(
        settings,
        clock=time,
        sources=given,
        integrations=configure_integrations(settings.integrations),
        importers=importer_registry.configure_importers(settings.importers, settings.integrations),
        openid=openid,
        fetch_document=fetch_document,
        company=company,
    )
    async with application.running() as state:
        service = Service(application, state, time)
        async with service.client(await service.token()) as http:
            service.http = http
            yield service


def call(tool: str, arguments: dict[str, Any], id: int | str = 1) -> dict[str, Any]:
    """The message of a bare tools/call."""
    return {
        "jsonrpc": "2.0",
        "method": "tools/call",
        "params": {"name": tool, "arguments": arguments},
        "id": id,
    }


def component(name: str, **spec: Any) -> dict[str, Any]:
    """A sound component."""
    return {
        "apiVersion": "backstage.io/v1alpha1",
        "kind": "Component",
        "metadata": {"name": name},
        "spec": {"type": "service", "lifecycle": "production", "owner": "team-a"} | spec,
    }


def resource(name: str, **metadata: Any) -> dict[str, Any]:
    """A sound resource."""
    return {
        "apiVersion": "backstage.io/v1alpha1",
        "kind": "Resource",
        "metadata": {"name": name} | metadata,
        "spec": {"type": "account", "owner": "team-a"},
    }


def registry(
    service: Service,
    sources: Sequence[DataSource] = SOURCES,
    integrations: Sequence[Integration] = (),
) -> Registry:
    """What another process with these sources would know."""
    state, clock = service.state, service.time
    files = HostFiles(state.database, integrations, state.connect, clock)
    return Registry(
        state.database, sources, integrations, {}, files, clock, lambda: state.token_key
    )
