"""A vendor that tests make up: what it answers, and what goes wrong with it."""

import asyncio
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Any, cast

from factbook.clock import Clock, now
from factbook.collection.collector import Collector
from factbook.facts.datasource import DataSource, Lifecycle
from factbook.facts.schema import Fact
from factbook.integrations.integration import Collected, Integration
from factbook.outbound.cache import Memory
from factbook.outbound.client import ANONYMOUS, Allowance, ClientHealth, HttpClient
from factbook.outbound.network import Sender
from factbook.outbound.outcomes import Missing, Outcome
from factbook.storage import Database
from tests.service import component

ANNOTATION = "vendor.test/slug"
FACTS = (
    Fact("codehost.issues.open", "integer"),
    Fact("codehost.issues.closed", "integer"),
    Fact("codehost.latest", "string"),
)
DOWN = Missing(Outcome.TRANSIENT, "vendor.test: answered 502")
LIMITED = Missing(Outcome.RATE_LIMITED, "vendor.test: no call before later")
DENIED = Missing(Outcome.DENIED)

Fault = Missing | Exception | dict[str, Missing] | Callable[[], Any]


class MadeUpClient(HttpClient):
    """Counts what a vendor of tests says that it was called, and notes that it was closed."""

    def __init__(self) -> None:
        super().__init__("https://vendor.test", cast(Sender, None))
        self.counted = ClientHealth()
        self.closed = False

    async def aclose(self, *, idle: bool = False) -> None:
        self.closed = True

    @property
    def health(self) -> ClientHealth:
        return self.counted.copy()


class Vendor:
    """Answers for every target with the number of its open issues, unless it has a fault.

    `asked` counts the targets; `faults` are by target, or "" for all of them.
    """

    def __init__(self) -> None:
        self.open = Counter[str]()
        self.asked = Counter[str]()
        self.faults: dict[str, Fault] = {}
        self.client = MadeUpClient()
        self.remembers = False
        self.recalled: list[bytes | None] = []

    async def collect(
        self, targets: Sequence[str], client: HttpClient, memory: Memory, now: int
    ) -> dict[str, Collected]:
        assert client.base_url == self.client.base_url
        self.client.counted.calls += 1
        self.asked.update(targets)
        await asyncio.sleep(0)
        if self.remembers:
            self.recalled.append(await memory.get("tree"))
            await memory.put("tree", ",".join(targets).encode(), days=1)
            await memory.put("for ever", b"\x00\xff")
        return {target: await self._answer(target) for target in targets}

    async def _answer(self, target: str) -> Collected:
        fault = self.faults.get(target, self.faults.get(""))
        if callable(fault):
            fault = await fault()
        if isinstance(fault, Exception):
            raise fault
        if isinstance(fault, Missing):
            return Collected(missing={"": fault})
        values = {
            "codehost.issues.open": self.open[target],
            "codehost.issues.closed": 0,
            "codehost.latest": f"of {target}",
        }
        missing = fault or {}
        kept = {
            path: values[path]
            for path in values
            if not any(path == place or path.startswith(f"{place}.") for place in missing)
        }
        return Collected(kept, dict(missing))

    def limit(self, remaining: int, reset_at: int | None) -> None:
        """What its answers say of its rate limit."""
        self.client.counted.allowances[""] = Allowance(100, remaining, reset_at)
        if not remaining:
            self.client.counted.resumes_at = reset_at


def target(entity: Mapping[str, Any]) -> str | Missing:
    """What the annotation names."""
    slug = entity["metadata"]["annotations"].get(ANNOTATION)
    if slug == "broken":
        raise ValueError("broken")
    return slug if "/" in slug else Missing(Outcome.NO_ANNOTATION, "not owner/name")


def integration(
    vendor: Vendor,
    id: str = "vendor",
    *,
    cadence: str | None = "0 * * * *",
    size: int = 3,
    at_once: int = 1,
    minutes: int = 20,
    draft: bool = False,
    lifecycle: Lifecycle | None = None,
) -> Integration:
    """An integration with the vendor, which is asked for `size` targets at a time."""
    return Integration(
        source=DataSource(
            id=id,
            title=id.title(),
            cadence=cadence,
            timeout={"minutes": minutes},
            draft=draft,
            lifecycle=lifecycle or Lifecycle(max_items=5),
            entity_filter=[{f"metadata.annotations.{ANNOTATION}": {"exists": True}}],
            schema=FACTS,
        ),
        fills=("codehost",),
        credential=f"{id} token",
        authorize=lambda client: ANONYMOUS,
        base_url="https://vendor.test",
        at_once=at_once,
        target=target,
        batches=lambda targets: [
            list(targets[start : start + size]) for start in range(0, len(targets), size)
        ],
        collect=vendor.collect,
    )


def collector(
    database: Database,
    *pairs: tuple[Vendor, Integration],
    clock: Clock = now,
    holder: str = "a",
    slots: int = 8,
) -> Collector:
    """A worker's collector for these integrations."""
    clients = {id(one): vendor.client for vendor, one in pairs}
    integrations = [one for _, one in pairs]
    return Collector(
        database, integrations, lambda one: clients[id(one)], clock, holder, slots=slots
    )


def repository(name: str, slug: str | None = None) -> dict[str, Any]:
    """A component whose annotation points to `acme/<name>`, or to another slug."""
    entity = component(name)
    entity["metadata"]["annotations"] = {ANNOTATION: slug or f"acme/{name}"}
    return entity
