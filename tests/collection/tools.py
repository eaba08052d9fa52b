"""A service, a fake of a vendor and the collector between them, asked through the tools."""

from collections.abc import Iterator, Mapping
from typing import Any, Protocol

from factbook.collection.collector import Collector
from factbook.integrations.integration import Integration
from factbook.outbound.client import HttpClient
from factbook.scheduling.schedule import find_next_start
from tests.integrations.asking import Asking
from tests.service import Service, component
from tests.tools.checks import structured

TOOLS = {
    "codehost": "get-codehost-metrics",
    "security": "get-security-metrics",
    "incident": "get-incident-metrics",
    "observability": "get-observability-metrics",
    "repository": "get-repository-info",
}


def pointing(
    key: str, default: str, name: str, value: str | None = None, **annotations: str
) -> dict[str, Any]:
    """A component whose annotation of this key points to something at a vendor."""
    entity = component(name)
    pointer = {key: default if value is None else value}
    entity["metadata"]["annotations"] = pointer | annotations
    return entity


def of_shape(values: Mapping[str, Any], shape: str) -> dict[str, Any]:
    """What the shape's tool says of these values, by the names of facts."""
    prefix = f"{shape}."
    return {
        name.removeprefix(prefix): value
        for name, value in values.items()
        if name.startswith(prefix)
    }


class Dispatcher(Protocol):
    """What collects, in a test."""

    async def drain(self) -> None:
        """Begin due runs, and work until no batch can be processed now."""


class ToolWorld:
    """A service whose collector asks these fakes; all of them have the service's time."""

    def __init__(self, service: Service, *askings: Asking) -> None:
        self.service = service
        self.askings = askings
        self.is_stale = False
        self.times = (service.time, *(asking.time for asking in askings))
        self.wait(service.time.now)
        self._clients = {asking.integration.source.id: asking.client for asking in askings}
        integrations = [asking.integration for asking in askings]
        self.collector: Dispatcher = Collector(
            service.state.database, integrations, self.connect, service.time, "tester"
        )

    def connect(self, integration: Integration) -> HttpClient:
        """The client of a fake."""
        return self._clients[integration.source.id]

    def wait(self, moment: int) -> None:
        """Let it be this moment for everybody."""
        for time in self.times:
            time.now = moment

    async def run(self, *entities: dict[str, Any]) -> None:
        """Push these, if there are any, and let the collector do what is due."""
        if entities:
            assert (await self.service.push("all", *entities)).status_code == 200
        await self.collector.drain()

    async def next_run(self) -> None:
        """Go on to the next start of the first fake's source, and do what is due."""
        source = self.askings[0].integration.source
        assert source.cadence is not None
        self.wait(find_next_start(source.id, source.cadence, self.service.time.now))
        await self.collector.drain()

    async def ask(self, shape: str, name: str = "app") -> dict[str, Any]:
        """The result of the shape's tool, valid against its schema."""
        return structured(TOOLS[shape], await self.service.ask(TOOLS[shape], name=name))

    async def told(self, shape: str, name: str = "app") -> tuple[dict[str, Any], dict[str, str]]:
        """Every leaf by its path, and the reasons; `is_stale` is what it said of its values."""
        result = await self.ask(shape, name)
        folded = result.pop("unknownReasons")
        result.pop("collectedAt")
        result.pop("unknownDetails", None)
        self.is_stale = result.pop("stale", False)
        result.pop("staleFacts", None)
        values = dict(leaves(result))
        return values, unfolded(folded, values)


def unfolded(reasons: Mapping[str, str], values: Mapping[str, Any]) -> dict[str, str]:
    """The reasons by leaf, or by group where its leaves are left out."""
    found: dict[str, str] = {}
    for place, reason in reasons.items():
        below = [path for path in values if place == "*" or path.startswith(f"{place}.")]
        found |= dict.fromkeys(below or [place], reason)
    return found


def leaves(value: Any, path: str = "") -> Iterator[tuple[str, Any]]:
    """Every leaf of a result by its path."""
    if not isinstance(value, dict):
        yield path, value
        return
    for name, part in value.items():
        yield from leaves(part, f"{path}.{name}".lstrip("."))
