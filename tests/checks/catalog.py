"""A catalog whose facts are evaluated: what tests of checks write to it."""

from collections.abc import Mapping
from functools import partial
from typing import Any

import msgspec

from factbook.catalog.sets import Annotator, PushRules, prepare_items
from factbook.catalog.store import stored_entities, stored_sets
from factbook.catalog.store.diff import Guards
from factbook.catalog.store.stored_sets import Actor
from factbook.checks.definitions.definition_versions import check_store
from factbook.checks.results import evaluator, incremental
from factbook.facts import store
from factbook.facts.datasource import DataSource
from factbook.facts.freshness import Observation
from factbook.facts.schema import Fact
from factbook.storage import Database
from tests.service import Time
from tests.storage.evaluating import evaluating

ACTOR = "user:default/tester"
HOST = DataSource(
    id="host",
    title="Host",
    version="1.0.0",
    cadence="0 * * * *",
    schema=(Fact("open", "integer"), Fact("on", "boolean"), Fact("at", "datetime")),
)
_RULES = PushRules(Annotator("factbook", "factbook"))


class CheckedCatalog:
    """A database with checks, and the ways in which it is written to."""

    def __init__(self, database: Database, time: Time) -> None:
        self.database = database
        self.time = time
        incremental.attach_evaluation(database, time)

    async def push(self, **owners: str) -> None:
        """Make these components the whole catalog; each has the owner given, or none."""
        items = [
            msgspec.Raw(
                msgspec.json.encode(
                    {
                        "apiVersion": "backstage.io/v1alpha1",
                        "kind": "Component",
                        "metadata": {"name": name, "labels": {"name": name, "Tier": "One"}},
                        "spec": {"type": "service"} | ({"owner": owner} if owner else {}),
                    }
                )
            )
            for name, owner in owners.items()
        ]
        push = prepare_items(items, "all", _RULES)
        actor = Actor(ACTOR, self.time())
        await stored_sets.replace_set(self.database, "all", push.items, actor, Guards(), kept=5)

    async def record(
        self, name: str, reasons: Mapping[str, str] | None = None, /, **values: object
    ) -> None:
        """Collect facts about a component."""
        entity_id = await stored_entities.read_entity_id(self.database, f"component:default/{name}")
        assert entity_id is not None
        seen = [Observation(entity_id, values, reasons or {})]
        await self.database.write(
            evaluating(lambda tx: store.record_facts(tx, HOST, seen, self.time()))
        )

    async def publish(self, *documents: Mapping[str, Any], settled: bool = True) -> None:
        """Define checks and publish them; if `settled`, they are in effect."""
        by_me: dict[str, Any] = {"actor": ACTOR, "now": self.time()}
        for document in documents:
            write = self.database.write
            await write(partial(check_store.put, document=document, **by_me))
            await write(partial(check_store.publish, id_=document["id"], **by_me))
        if settled:
            await evaluator.finish_publications(self.database, self.time)


def leaf(fact: str, operator: str, value: object = None, source: str = "host") -> dict[str, Any]:
    """A condition on one fact."""
    found = {"source": source, "fact": fact, "operator": operator}
    return found if value is None else {**found, "value": value}


def a_check(id_: str, rule: Mapping[str, Any], **members: Any) -> dict[str, Any]:
    """The document of a check about components."""
    applies = {"kind": "component"}
    return {"id": id_, "title": id_, "rule": rule, "appliesTo": applies, **members}
