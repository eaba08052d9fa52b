"""Random writes of several people: of entities, facts and checks, and what is done beside them."""

import random
from collections.abc import Sequence
from typing import Any

import msgspec

from factbook.catalog.sets import Annotator, PushRules, prepare_items
from factbook.catalog.store import stored_sets
from factbook.catalog.store.diff import Guards
from factbook.catalog.store.stored_sets import Actor
from factbook.checks.definitions import definition_writes
from factbook.checks.definitions.definition_versions import check_store
from factbook.checks.results import evaluator, incremental
from factbook.clock import DAY, HOUR
from factbook.errors import ConflictError, InvalidItemsError, NotFoundError
from factbook.facts import pushed_facts, retention, store
from factbook.facts.datasource import DataSource
from factbook.facts.freshness import Observation
from factbook.facts.pushed_facts import FactItem
from factbook.facts.schema import Fact
from factbook.storage import Database
from tests.service import Time
from tests.soak import seeds
from tests.storage.evaluating import evaluating

SEEDS = seeds(1, soak=60)
RULES = PushRules(Annotator("factbook", "factbook"))
SETS = ("one", "two", "three")
NAMES = tuple("abcdefgh")
KINDS = ("Component", "API")
PEOPLE = ("Group red", "Group blue", "User mary", "Component owner")
SOURCES = tuple(
    DataSource(
        id=id_,
        title=id_,
        version="1.0.0",
        cadence="0 * * * *",
        schema=(Fact("open", "integer"), Fact("on", "boolean"), Fact("at", "datetime")),
    )
    for id_ in ("host", "scan", "sent")
)
# Nobody collects what is pushed.
COLLECTED, PUSHED = SOURCES[:2], SOURCES[2]
CHECKS = tuple("pqrstu")


class CheckWriter:
    """Writes at random to one of the databases; `time` is that of all.

    `apart`: each set has names of its own, as two writes that add the same entity repeat.
    """

    def __init__(self, database: Database, time: Time, seed: str, *, apart: bool = False) -> None:
        self.apart = apart
        self.database = database
        self.time = time
        self.chance = random.Random(seed)

    async def step(self) -> None:
        """Do one thing."""
        actions = [
            *(self.push,) * 4,
            *(self.record,) * 12,
            *(self.push_facts,) * 2,
            *(self.push_people,) * 2,
            self.remove,
            *(self.drop,) * 2,
            *(self.publish,) * 5,
            self.draft,
            self.publish_draft,
            self.delete,
            *(self.work,) * 8,
            self.wait,
        ]
        try:
            await self.chance.choice(actions)()
        except (ConflictError, NotFoundError, InvalidItemsError):
            return

    async def push(self) -> None:
        """Replace a set: entities come, go, change, move here, and change their owners."""
        name = self.chance.choice(SETS)
        own = NAMES[SETS.index(name) :: len(SETS)] if self.apart else NAMES
        names = self.chance.sample(own, self.chance.randint(0, min(5, len(own))))
        items = prepare_items([self._entity(one) for one in names], name, RULES).items
        guards = Guards(take=self.chance.random() < 0.7)
        actor = Actor("user:default/tester", self.time())
        await stored_sets.replace_set(self.database, name, items, actor, guards, kept=5)

    async def push_people(self) -> None:
        """Let owners come and go."""
        people = self.chance.sample(PEOPLE, self.chance.randint(0, len(PEOPLE)))
        documents = [_person(*one.split()) for one in people]
        items = prepare_items(documents, "people", RULES).items
        actor = Actor("user:default/tester", self.time())
        await stored_sets.replace_set(self.database, "people", items, actor, Guards(), kept=5)

    async def remove(self) -> None:
        """Remove one entity."""
        found = await self._refs()
        if found:
            item = await stored_sets.read_item_by_ref(self.database, self.chance.choice(found))
            actor = Actor("user:default/tester", self.time())
            if item is not None:
                await stored_sets.remove_entity(self.database, item.uid, actor, kept=5)

    async def record(self) -> None:
        """Collect facts about some entities, with reasons and failures."""
        source, ids = self.chance.choice(COLLECTED), await self._ids()
        some = self.chance.sample(ids, min(len(ids), self.chance.randint(1, 4)))
        observations = [self._observation(id_) for id_ in some]
        await self.database.write(
            evaluating(lambda tx: store.record_facts(tx, source, observations, self.time()))
        )

    async def push_facts(self) -> None:
        """Push facts of a time that may be older than the stored ones."""
        refs = await self._refs()
        items = [
            FactItem(ref, self._values(), self.time() - self.chance.randrange(HOUR))
            for ref in self.chance.sample(refs, min(len(refs), 2))
        ]
        await self.database.write(
            evaluating(lambda tx: pushed_facts.push_facts(tx, PUSHED, items, self.time()))
        )

    async def drop(self) -> None:
        """Lose facts: some, or all of a source."""
        source = self.chance.choice(SOURCES).id
        if self.chance.random() < 0.5:
            await self.database.write(
                evaluating(lambda tx: retention.drop_facts(tx, source, ["on"]))
            )
        else:
            await self.database.write(
                evaluating(lambda tx: retention.delete_source_facts(tx, source))
            )

    async def publish(self) -> None:
        """Define a check anew, and publish it."""
        await self._define(publish=True)

    async def draft(self) -> None:
        """Define a check anew, and leave that as a draft."""
        await self._define(publish=False)

    async def publish_draft(self) -> None:
        """Publish what is left as a draft."""
        id_, actor = self.chance.choice(CHECKS), "user:default/tester"
        await self.database.write(lambda tx: check_store.publish(tx, id_, actor, self.time()))

    async def delete(self) -> None:
        """Delete a check."""
        id_ = self.chance.choice(CHECKS)
        await self.database.write(lambda tx: check_store.delete(tx, id_))

    async def work(self) -> None:
        """Do a piece of what publications have left to do."""
        await evaluator.evaluate_pending(self.database, self.time)

    async def wait(self) -> None:
        """Let time pass, and evaluate what is due."""
        self.time.advance(self.chance.choice([1, HOUR, DAY]))
        await evaluator.evaluate_due(self.database, self.time)

    async def _define(self, *, publish: bool) -> None:
        given, actor = self._check(self.chance.choice(CHECKS)), "user:default/tester"
        work = definition_writes.make_replacement(
            check_store, given, actor, self.time(), tags=None, publish=publish
        )
        await self.database.write(work)

    async def _refs(self) -> list[str]:
        return [ref for (ref,) in await self.database.all("SELECT ref FROM entities ORDER BY ref")]

    async def _ids(self) -> list[int]:
        return [id_ for (id_,) in await self.database.all("SELECT id FROM entities ORDER BY id")]

    def _entity(self, name: str) -> msgspec.Raw:
        pick = self.chance.choice
        spec = {"type": pick(["service", "library"]), "lifecycle": pick(["production", "old"])}
        if self.chance.random() < 0.8:
            spec["owner"] = pick(["red", "blue", "user:mary", "component:owner"])
        document: dict[str, Any] = {
            "apiVersion": "backstage.io/v1alpha1",
            "kind": KINDS[NAMES.index(name) % 2],
            "metadata": {"name": name, "labels": self._labels()},
            "spec": {**spec, "dependsOn": [f"component:{pick(NAMES)}"]},
        }
        return msgspec.Raw(msgspec.json.encode(document))

    def _labels(self) -> dict[str, str]:
        every = {"Tier": self.chance.choice(["one", "Two"]), "on-call": "yes"}
        return {label: value for label, value in every.items() if self.chance.random() < 0.7}

    def _observation(self, entity_id: int) -> Observation:
        chance = self.chance.random()
        if chance < 0.2:
            return Observation(entity_id, {}, {"": "upstream-error"}, frozenset({""}))
        if chance < 0.4:
            return Observation(entity_id, {"open": 1}, {"on": "forbidden", "at": "not-found"})
        return Observation(entity_id, self._values())

    def _values(self) -> dict[str, object]:
        at = self.chance.choice(["2026-11-20T12:00:00Z", "2026-11-21T11:30:00Z"])
        every = {"open": self.chance.randint(0, 3), "on": self.chance.random() < 0.5, "at": at}
        return {name: value for name, value in every.items() if self.chance.random() < 0.9} or {
            "open": 0
        }

    def _check(self, id_: str) -> dict[str, Any]:
        applies = self.chance.choice(
            [{"kind": "component"}, {"kind": "api"}, {"relations.ownedBy": "group:default/red"}]
        )
        document = {
            "id": id_,
            "title": self.chance.choice(["One", "Other"]),
            "rule": self._rule(id_, 1),
            "onUnknown": self.chance.choice(["unknown", "unknown", "fail"]),
        }
        if self.chance.random() < 0.4:
            document["appliesTo"] = applies
        if self.chance.random() < 0.3:
            document["applicableWhen"] = self._leaf(id_)
        return document

    def _rule(self, id_: str, depth: int) -> dict[str, Any]:
        kind = self.chance.choice(["leaf", "all", "any", "not"]) if depth else "leaf"
        if kind == "leaf":
            return self._leaf(id_)
        if kind == "not":
            return {"not": self._rule(id_, depth - 1)}
        return {kind: [self._rule(id_, depth - 1) for _ in range(self.chance.randint(1, 3))]}

    def _leaf(self, id_: str) -> dict[str, Any]:
        source = self.chance.choice(SOURCES).id
        others = [one for one in CHECKS if one != id_]
        leaves: Sequence[tuple[str, str, str, Any]] = [
            (source, "open", "lessThan", self.chance.randint(0, 3)),
            (source, "on", "equal", True),
            (source, "on", "isKnown", None),
            (source, "on", "reasonIs", "forbidden"),
            (source, "at", "olderThan", {"hours": self.chance.choice([1, 26])}),
            (source, "open", "freshWithin", {"hours": 2}),
            ("entity", "spec.lifecycle", "equal", "production"),
            *[("entity-ownership", "ownerExists", "equal", True)] * 2,
            ("entity", "relations.dependencyOf", "isNotEmpty", None),
            *[("checks", self.chance.choice(others), "equal", "pass")] * 2,
        ]
        source, fact, operator, value = self.chance.choice(leaves)
        leaf = {"source": source, "fact": fact, "operator": operator}
        return leaf if value is None else {**leaf, "value": value}


def _person(kind: str, name: str) -> msgspec.Raw:
    spec = {"Group": {"type": "team", "children": []}, "User": {"memberOf": []}}
    document = {
        "apiVersion": "backstage.io/v1alpha1",
        "kind": kind,
        "metadata": {"name": name},
        "spec": spec.get(kind, {"type": "service", "lifecycle": "old"}),
    }
    return msgspec.Raw(msgspec.json.encode(document))


def attached(database: Database, time: Time) -> None:
    """Have every write of a database evaluate checks."""
    incremental.attach_evaluation(database, time)


async def settle(database: Database, time: Time) -> None:
    """Do all that is left to do."""
    await evaluator.finish_publications(database, time)
    await evaluator.evaluate_due(database, time)
