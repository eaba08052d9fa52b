"""After any pushes, what is kept for reads equals what the documents give."""

import json
import random
from typing import Any

import msgspec
import pytest

from factbook.catalog.sets import Annotator, PushRules, prepare_item, prepare_items
from factbook.catalog.store import index_rows, stored_sets
from factbook.catalog.store.diff import Guards
from factbook.catalog.store.stored_sets import Actor
from factbook.errors import ConflictError, NotFoundError
from factbook.storage import Database
from tests.catalog.derived import order, verify
from tests.soak import seeds

RULES = PushRules(Annotator("factbook", "factbook"))
SETS = ("one", "two", "three")
KINDS = ("Component", "Resource", "Group", "User", "Unknown")
STEPS = 45
TAKE = Guards(take=True)

Content = dict[str, str]  # reference → etag, in the order of the set


class Walk:
    """A walk of random writes, and what the sets have to hold after each."""

    def __init__(self, database: Database, seed: int) -> None:
        self.database = database
        self.chance = random.Random(seed)
        self.sets: dict[str | None, Content] = {None: {}} | {name: {} for name in SETS}
        self.history: dict[tuple[str, int], set[tuple[str, str]]] = {}
        self.uids: dict[str, str] = {}

    def entity(self, kind: str, name: str) -> msgspec.Raw:
        pick = self.chance.choice
        names = [f"{pick(KINDS)}:{pick('abcd')}" for _ in range(self.chance.randint(0, 3))]
        spec: dict[str, Any] = {
            "owner": pick(["a", "user:b", "group:default/c", "", "d/", None]),
            "dependsOn": names,
            "dependencyOf": names[:1],
            "children": ["a", "b"][: self.chance.randint(0, 2)],
            "memberOf": [pick("abcd")],
            "n": pick([1, 1.0, None, True, "x" * 300, [1, "1", [None]], 10**300]),
        }
        metadata = {"name": pick([name, name.upper()]), "tags": ["T", "t", "v"][: len(names)]}
        document = {"apiVersion": "v1", "kind": kind, "metadata": metadata, "spec": spec}
        return msgspec.Raw(json.dumps(document).encode())

    async def step(self, now: int) -> None:
        action = self.chance.choice(
            [self.replace, self.replace, self.put, self.remove, self.restore]
        )
        try:
            await action(Actor("user:default/tester", now))
        except (ConflictError, NotFoundError):
            return

    async def replace(self, actor: Actor) -> None:
        name = self.chance.choice(SETS)
        everything = [(kind, letter) for kind in KINDS for letter in "abcd"]
        chosen = self.chance.sample(everything, self.chance.randint(0, 12))
        push = prepare_items([self.entity(*one) for one in chosen], name, RULES)
        guards = self.chance.choice([TAKE, TAKE, Guards()])
        dry_run = self.chance.random() < 0.1
        outcome = await stored_sets.replace_set(
            self.database, name, push.items, actor, guards, kept=20, dry_run=dry_run
        )
        if outcome.written is not None:
            self.wrote(name, {item.ref: item.etag for item in push.items}, outcome.written.items)

    async def put(self, actor: Actor) -> None:
        name = self.chance.choice([*SETS, None])
        [item] = prepare_item(
            self.entity(self.chance.choice(KINDS), self.chance.choice("abcd")), name, RULES
        ).items
        outcome = await stored_sets.put_entity(
            self.database, name, item, actor, TAKE, RULES, kept=20
        )
        assert outcome.written is not None
        content = self.sets[name] | {item.ref: item.etag}
        self.wrote(name, content, outcome.written.items)

    async def remove(self, actor: Actor) -> None:
        held = sorted(ref for content in self.sets.values() for ref in content)
        if held:
            ref = self.chance.choice(held)
            assert await stored_sets.remove_entity(self.database, self.uids[ref], actor, kept=20)
            for content in self.sets.values():
                content.pop(ref, None)

    async def restore(self, actor: Actor) -> None:
        name, number = self.chance.choice([*self.history, ("one", 1)])
        push, outcome = await stored_sets.restore_revision(
            self.database, name, number, actor, TAKE, RULES, kept=20
        )
        content = {item.ref: item.etag for item in push.items}
        assert set(content.items()) == self.history[name, number]
        assert outcome.written is not None
        self.wrote(name, content, outcome.written.items)

    def wrote(
        self, name: str | None, content: Content, items: dict[str, tuple[str, str, int]]
    ) -> None:
        for other in self.sets.values():
            for ref in content:
                other.pop(ref, None)
        self.sets[name] = content
        for ref, (uid, _, _) in items.items():
            assert self.uids.setdefault(ref, uid) == uid  # nothing is ever swept here

    async def note_revisions(self) -> None:
        for name, number in await self.database.all("SELECT name, revision FROM sets"):
            self.history[name, number] = set(self.sets[name].items())


async def check(walk: Walk) -> None:
    """Compare every derived table with a rebuild from the documents, and both with the walk."""
    database = walk.database
    entities = await verify(database)
    assert {row.ref: (row.etag, row.set) for row in entities} == {
        ref: (etag, name) for name, content in walk.sets.items() for ref, etag in content.items()
    }
    assert all(walk.uids[row.ref] == row.uid for row in entities)
    for name in SETS:
        assert await order(database, name) == list(walk.sets[name])
    removed = await database.all("SELECT ref, uid FROM removed_entities")
    gone = walk.uids.keys() - {row.ref for row in entities}
    assert dict(removed) == {ref: walk.uids[ref] for ref in gone}


@pytest.mark.slow
@pytest.mark.spec("catalog.relations-in-the-push-transaction")
@pytest.mark.parametrize("seed", seeds(2, soak=4))
async def test_after_random_pushes_everything_derived_equals_a_rebuild(
    database: Database, seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    if seed % 2:  # as if every entity had very many relations
        monkeypatch.setattr(index_rows, "LARGE_ENTITY", 0)
    walk = Walk(database, seed)
    for now in range(STEPS):
        await walk.step(now)
        await walk.note_revisions()
        await check(walk)
    assert len(walk.uids) > 15
    assert len(walk.history) > 20
