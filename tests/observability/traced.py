"""A real `factbook serve` that sends its traces, and what it talks to while a test looks."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx2

from tests.datasources.asking import Api
from tests.fakes.collector import Collector, collecting
from tests.fakes.serving import served
from tests.processes import ServerProcess, serving
from tests.service import PUSH, component

TECH_INSIGHTS = "/api/tech-insights/v1"
VENDOR_SECRET = "the-secret-of-a-connection"
PARENT = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"
SOURCE: dict[str, Any] = {
    "id": "builds",
    "title": "Builds",
    "handlerDefinition": {
        "type": "http",
        "config": {"id": "builds", "connection": "ci", "path": "/api/builds/secret-web"},
    },
    "schema": {"ok": {"type": "boolean", "extract": {"jmespath": "ok"}}},
}


class World:
    """A server with traces, the collector that gets them, and a host that the server asks."""

    def __init__(self, server: ServerProcess, collector: Collector, api: Api, token: str) -> None:
        self.server = server
        self.collector = collector
        self.api = api
        self.token = token
        self.http = server.client(token)

    def push(self, *names: str, **options: Any) -> httpx2.Response:
        items = [component(name) for name in names]
        return self.http.put(f"{PUSH}/sets/secret-set", json={"items": items}, **options)

    def define(self) -> None:
        """Define and publish the source."""
        for answer in (
            self.http.put(f"{TECH_INSIGHTS}/data-sources/builds", json=SOURCE),
            self.http.post(f"{TECH_INSIGHTS}/data-sources/builds/publish"),
        ):
            assert answer.status_code == 200, answer.text


@contextmanager
def tracing(database_url: str, folder: Path, **variables: str) -> Iterator[World]:
    """A server that sends its traces to a collector on loopback, and asks a host there."""
    api = Api()
    api.answers["/api/builds/secret-web"] = {"ok": True}
    with collecting() as collector, served(api) as host:
        environment = {
            "FACTBOOK_TRACES": "true",
            "FACTBOOK_OUTGOING_NETWORKS": "127.0.0.0/8",
            "FACTBOOK_CONNECTIONS__CI__BASE_URL": host,
            "FACTBOOK_CONNECTIONS__CI__HEADERS": f'{{"X-Token": "{VENDOR_SECRET}"}}',
            "OTEL_EXPORTER_OTLP_ENDPOINT": collector.url,
            "OTEL_BSP_SCHEDULE_DELAY": "50",
            **variables,
        }
        with serving(database_url, folder, **environment) as server:
            world = World(server, collector, api, server.token())
            with world.http:
                yield world
