"""Clusters that are pushed by a service account which loses sight of some of them."""

import asyncio
import random
from collections.abc import Callable
from typing import Any, Final, TypeVar

import pytest

from factbook.client import Client
from factbook.operations.imports import PushedPart, default_rules, push_snapshot
from tests.cli.bridge import Bridge
from tests.fakes import faults
from tests.fakes.kubernetes.app import FakeKubernetes
from tests.fakes.kubernetes.objects import DEPLOYMENTS, NAMESPACES, STATEFUL_SETS
from tests.importers.clusters import ImportedCluster
from tests.service import Service
from tests.soak import SOAK, seeds

pytestmark = pytest.mark.parametrize("database_url", ["sqlite"], indirect=True)

RESOURCES: Final = ("apps/v1/deployments", "apps/v1/statefulsets")
ID: Final = "backstage.io/kubernetes-id"
EMPTY: Final = faults.saying({"kind": "AList", "metadata": {}, "items": None})
T = TypeVar("T")
Sight = Callable[[FakeKubernetes], object]


def showing(*namespaces: str) -> Sight:
    return lambda fake: setattr(fake, "shown", set(namespaces))


def forbidding(path: str) -> Sight:
    return lambda fake: fake.forbidden.add(path)


def emptying(path: str) -> Sight:
    return lambda fake: fake.fail(path, EMPTY)


SIGHTS: Final[tuple[Sight, ...]] = (
    lambda fake: None,
    showing("a"),
    showing("b"),
    showing(),
    forbidding(NAMESPACES),
    forbidding(DEPLOYMENTS),
    forbidding(STATEFUL_SETS),
    emptying(NAMESPACES),
    emptying(DEPLOYMENTS),
    emptying(STATEFUL_SETS),
)
# How many places after the first sight the second one is in SIGHTS, which wraps around.
STEPS: Final = range(len(SIGHTS)) if SOAK else (1, 5)


class ClusterPushes:
    """A cluster with two kinds of workloads in two namespaces, pushed to a service.

    A component is of both kinds: the only one that is of the second, in the second namespace.
    """

    def __init__(self, service: Service, token: str, name: str) -> None:
        self.name = name
        self._imported = ImportedCluster(
            cluster=name, url="https://cluster.example.com", resources=RESOURCES, namespace=name
        )
        self.fake = self._imported.fake
        for namespace in "ab":
            self.fake.add(NAMESPACES, namespace)
            self.fake.add(DEPLOYMENTS, f"web-{namespace}", namespace)
        self.fake.add(DEPLOYMENTS, "front", "a", {ID: "shared"})
        self.fake.add(STATEFUL_SETS, "back", "b", {ID: "shared"})
        self._token = token
        self._bridge = Bridge(service)

    async def push(self, sight: Sight, *, remove: bool = False) -> PushedPart:
        """One reading with this sight; the part of the workloads."""
        fake = self.fake
        fake.recover()
        fake.shown, fake.forbidden = None, set()
        sight(fake)
        snapshot = await self._imported.read()

        def work(client: Client) -> PushedPart:
            return push_snapshot(client, "kubernetes", snapshot, default_rules(), remove=remove)[0]

        return await self._done(work)

    async def entities(self) -> dict[str, dict[str, Any]]:
        """The components in the catalog, by name."""

        def work(client: Client) -> dict[str, dict[str, Any]]:
            items = client.set(f"kubernetes.{self.name}.workloads").items
            return {one.entity["metadata"]["name"]: dict(one.entity) for one in items}

        return await self._done(work)

    async def _done(self, work: Callable[[Client], T]) -> T:
        def done() -> T:
            with Client("http://127.0.0.1:8000", self._token, transport=self._bridge) as client:
                return work(client)

        return await asyncio.to_thread(done)

    def there(self) -> set[str]:
        """The names of the components that the cluster has."""
        every = [*self.fake.objects[DEPLOYMENTS], *self.fake.objects[STATEFUL_SETS]]
        return {one.get("labels", {}).get(ID, one["name"]) for one in every}

    def names(self) -> list[str]:
        """The names of the workloads."""
        every = [*self.fake.objects[DEPLOYMENTS], *self.fake.objects[STATEFUL_SETS]]
        return sorted(one["name"] for one in every)

    def delete(self, name: str) -> None:
        """Delete a workload."""
        for path in (DEPLOYMENTS, STATEFUL_SETS):
            kept = [one for one in self.fake.objects[path] if one["name"] != name]
            self.fake.objects[path] = kept


@pytest.fixture
async def token(service: Service) -> str:
    return await service.token("catalog.entity.read", "catalog.entity-set.write")


@pytest.mark.slow
@pytest.mark.parametrize("first", range(len(SIGHTS)))
async def test_no_two_losses_of_sight_remove_what_is_still_there(
    service: Service, token: str, first: int
) -> None:
    for step in STEPS:
        second = (first + step) % len(SIGHTS)
        cluster = ClusterPushes(service, token, f"c{second}")
        await cluster.push(SIGHTS[0])
        known = set(await cluster.entities())
        assert known == cluster.there()
        await cluster.push(SIGHTS[first])
        assert known == set(await cluster.entities())
        cluster.delete("front")
        await cluster.push(SIGHTS[second])
        assert known & cluster.there() <= set(await cluster.entities())
        await cluster.push(SIGHTS[0], remove=True)
        assert set(await cluster.entities()) == cluster.there()


@pytest.mark.slow
@pytest.mark.parametrize("seed", seeds(1, soak=4))
async def test_no_sequence_of_lost_sights_removes_what_is_still_there(
    service: Service, token: str, seed: int
) -> None:
    dice = random.Random(seed)
    cluster = ClusterPushes(service, token, "eu-1")
    await cluster.push(SIGHTS[0])
    for number in range(20):
        known = set(await cluster.entities())
        if dice.random() < 0.4:
            path, namespace = dice.choice([DEPLOYMENTS, STATEFUL_SETS]), dice.choice("ab")
            cluster.fake.add(path, f"new-{number}", namespace)
        elif dice.random() < 0.6 and (names := cluster.names()):
            cluster.delete(dice.choice(names))
        await cluster.push(dice.choice(SIGHTS))
        assert known & cluster.there() <= set(await cluster.entities())
        if dice.random() < 0.2:
            await cluster.push(SIGHTS[0], remove=True)
            assert set(await cluster.entities()) == cluster.there()


async def test_a_removal_after_a_loss_of_sight_waits_until_somebody_asks_for_it(
    service: Service, token: str
) -> None:
    cluster = ClusterPushes(service, token, "eu-1")
    await cluster.push(SIGHTS[0])
    found = await cluster.push(emptying(DEPLOYMENTS))
    assert [ref.partition("/")[2] for ref in found.held] == ["web-a", "web-b"]
    assert found.reason == "the credential sees less than before: apps/v1/deployments"
    annotation = f"{default_rules().annotator.domain}/import-rights"
    shared = (await cluster.entities())["shared"]["metadata"]["annotations"]
    assert shared[annotation] == ", ".join(RESOURCES)
    found = await cluster.push(emptying(DEPLOYMENTS), remove=True)
    assert (found.changes.removed, found.held) == (2, [])
    shared = (await cluster.entities())["shared"]["metadata"]["annotations"]
    assert shared[annotation] == RESOURCES[1]
    found = await cluster.push(emptying(DEPLOYMENTS))
    assert (found.changes.unchanged, found.held) == (1, [])


async def test_what_goes_while_everything_is_seen_is_removed_at_once(
    service: Service, token: str
) -> None:
    cluster = ClusterPushes(service, token, "eu-1")
    await cluster.push(SIGHTS[0])
    for name in ("web-a", "web-b"):
        cluster.delete(name)
        found = await cluster.push(SIGHTS[0])
        assert (found.changes.removed, found.held) == (1, [])
