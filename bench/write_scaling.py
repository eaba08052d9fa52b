"""What is not asked by many at once: pushes, writes of facts, and the housekeeping."""

import datetime
import time
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import NamedTuple, Protocol, Self

from bench import catalog, datasets
from bench.databases import Database
from bench.housekeeping import sweeper
from bench.processes import Server, cpu_seconds
from bench.questions import Sample
from bench.run import Run
from bench.service import Factbook

_FACTS = "/api/tech-insights/v1/facts"
STEPS = {
    "push-same": "push of a set of 10,000, unchanged",
    "push-some": "push of a set of 10,000, 1 % changed",
    "push-all": "push of a set of 10,000, all changed",
    "facts-write": "push of facts about 1,000 entities",
    "sweep": "a round of the housekeeping",
}
_WRITES = 10  # of facts in a round
_SWEEPING_SECONDS = 3.0


class Spent(NamedTuple):
    """CPU milliseconds of the service and of its database."""

    service: float
    database: float

    @classmethod
    def until_now(cls, server: Server) -> Self:
        """Since both were started."""
        service = server.own_cpu_seconds()
        return cls(1000 * service, 1000 * (server.cpu_seconds() - service))

    @property
    def total(self) -> float:
        """Of both together."""
        return self.service + self.database

    def __sub__(self, other: "Spent") -> "Spent":
        return Spent(self.service - other.service, self.database - other.database)

    def __truediv__(self, count: float) -> "Spent":
        return Spent(self.service / count, self.database / count)

    def __str__(self) -> str:
        return f"{self.total:.2f} ms ({self.database:.2f})"


class Grown(Protocol):
    """A service on a catalog of one size."""

    @property
    def entities(self) -> int: ...

    @property
    def service(self) -> Factbook: ...

    @property
    def sample(self) -> Sample: ...


def steps(
    run: Run, subjects: Sequence[Grown], number: int
) -> Iterator[tuple[str, dict[int, Spent]]]:
    """The costs of one round by size: a key, and what it costs in a catalog of each."""
    large = [one for one in subjects if one.entities >= min(datasets.UNIT, run.options.compared)]
    pushes = {one.entities: dict(_pushes(one)) for one in large}
    for key in ("push-same", "push-some", "push-all"):
        yield key, {count: spent[key] for count, spent in pushes.items()}
    yield "facts-write", {one.entities: _facts_write(one, number) for one in subjects}
    for one in subjects:
        one.service.database.settle()
    yield "sweep", {one.entities: _sweep(run, one.service.database) for one in subjects}


def _pushes(subject: Grown) -> Iterator[tuple[str, Spent]]:
    """Pushes of a set that is in the catalog, which at the end is what it was."""
    service, items = subject.service, datasets.items(0, subject.entities)
    some = catalog.changed(items, 0.01)
    forms = (
        ("push-same", items, {"unchanged": len(items)}),
        ("push-some", some, {"updated": len(items) // 100}),
        ("push-all", catalog.changed(some, 1.0), {"updated": len(items)}),
        ("", items, {"updated": len(items)}),
    )
    for key, form, changes in forms:
        push = partial(service.push, datasets.set_name(0), catalog.body(form), **changes)
        spent = _spent(service.server, push)
        if key:
            yield key, spent


def _facts_write(subject: Grown, number: int) -> Spent:
    """The mean of several batches about entities from all over the catalog."""
    keys = subject.sample.keys[: datasets.BATCH]
    now = datetime.datetime.now(datetime.UTC)
    bodies = [
        datasets.facts_of(keys, turn, (now + datetime.timedelta(milliseconds=turn)).isoformat())
        for turn in range(_WRITES)
    ]
    path = f"{_FACTS}/{datasets.source(number % datasets.SOURCES)}"

    def write() -> None:
        for body in bodies:
            subject.service.client.post(path, body)

    return _spent(subject.service.server, write) / _WRITES


def _sweep(run: Run, database: Database) -> Spent:
    """The mean of several rounds of the housekeeping."""
    with sweeper(database, run.folder, run.cores.server) as sweeping:
        roots = ((sweeping.pid,), database.processes)
        before = [cpu_seconds(each) for each in roots]
        sweeping.go()
        time.sleep(_SWEEPING_SECONDS)
        rounds = sweeping.rest()
        spent = [1000 * (cpu_seconds(each) - was) for each, was in zip(roots, before, strict=True)]
    return Spent(*spent) / rounds


def _spent(server: Server, work: Callable[[], object]) -> Spent:
    before = Spent.until_now(server)
    work()
    return Spent.until_now(server) - before
