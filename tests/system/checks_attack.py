"""Random calls of several clients about checks: sets, facts, definitions and exemptions."""

import random
from collections import Counter
from datetime import UTC, datetime, timedelta
from typing import Any

import httpx2

from tests.api.checking import CARDS, CHECKS, EXEMPTIONS, RESULTS, SCORECARDS
from tests.api.defining import FACTS, SOURCES
from tests.service import PUSH, component

NAMES = tuple("abcdefgh")
GROUPS = ("red", "blue", "green", "grey")
SETS = ("one", "two", "three")
OF_CHECKS = ("p", "q", "r", "s", "P")
OF_CARDS = ("ready", "Ready")
SENT = ("coverage", "scans")
_OWNERS = (*GROUPS, "user:default/mary", "nobody")


class Attacker:
    """A client that does what it likes; `told` counts the answers by call and status."""

    def __init__(self, http: httpx2.Client, seed: str) -> None:
        self._http = http
        self._chance = random.Random(seed)
        self.told: Counter[str] = Counter()

    def step(self) -> None:
        """Do one thing; an answer that tells of a fault is kept."""
        actions = [
            *(self.push,) * 5,
            *(self.push_groups,) * 2,
            self.empty_set,
            *(self.remove,) * 2,
            *(self.send,) * 8,
            *(self.define_check,) * 5,
            self.delete_check,
            self.publish_draft,
            *(self.define_scorecard,) * 2,
            self.delete_scorecard,
            *(self.exempt,) * 4,
            *(self.decide,) * 4,
            self.define_source,
            *(self.look,) * 4,
        ]
        self._chance.choice(actions)()

    def push(self) -> None:
        """Replace a set: entities come, go, come back, and change their owners."""
        pick = self._chance.choice
        names = self._chance.sample(NAMES, self._chance.randint(0, 5))
        items = []
        for name in names:
            one = component(name, lifecycle=pick(["production", "old"]), owner=pick(_OWNERS))
            if self._chance.random() < 0.5:
                one["spec"]["system"] = pick(["shop", "billing"])
            one["metadata"]["labels"] = {"tier": pick(["1", "2"])}
            items.append(one)
        query = {"onConflict": "take"} if self._chance.random() < 0.7 else {}
        self._ask("PUT", f"{PUSH}/sets/{pick(SETS)}", {"items": items}, query)

    def push_groups(self) -> None:
        """Replace the groups, whose parents may go round in circles."""
        chosen = self._chance.sample(GROUPS, self._chance.randint(1, 4))
        items = []
        for name in chosen:
            spec: dict[str, Any] = {
                "type": "team",
                "children": self._chance.sample(GROUPS, self._chance.randint(0, 2)),
            }
            if self._chance.random() < 0.5:
                spec["parent"] = self._chance.choice(GROUPS)
            version = "backstage.io/v1alpha1"
            metadata = {"name": name}
            items.append(
                {"apiVersion": version, "kind": "Group", "metadata": metadata, "spec": spec}
            )
        self._ask("PUT", f"{PUSH}/sets/org", {"items": items}, {"onConflict": "take"})

    def empty_set(self) -> None:
        self._ask("DELETE", f"{PUSH}/sets/{self._chance.choice(SETS)}")

    def remove(self) -> None:
        """Remove one entity."""
        name = self._chance.choice(NAMES)
        found = self._ask("GET", f"/api/catalog/entities/by-name/component/default/{name}")
        if found.status_code == 200:
            uid = found.json()["metadata"]["uid"]
            self._ask("DELETE", f"/api/catalog/entities/by-uid/{uid}")

    def send(self) -> None:
        """Push facts, of which some are null."""
        pick = self._chance.choice
        items = [
            {
                "entity": f"component:default/{name}",
                "facts": {"lines": pick([0, 50, 90, None]), "tool": pick(["a", "b", None])},
            }
            for name in self._chance.sample(NAMES, self._chance.randint(1, 4))
        ]
        self._ask("POST", f"{FACTS}/{pick(SENT)}", {"items": items})

    def define_check(self) -> None:
        """Define a check anew, and mostly publish it."""
        id_ = self._chance.choice(OF_CHECKS)
        pick = self._chance.choice
        document: dict[str, Any] = {
            "id": id_,
            "title": pick(["One", "Other"]),
            "rule": self._rule(id_, 2),
            "onUnknown": pick(["unknown", "unknown", "fail", "pass"]),
            "severity": pick(["required", "required", "advisory"]),
        }
        if self._chance.random() < 0.4:
            document["appliesTo"] = pick(
                [
                    {"kind": "component"},
                    {"kind": "group"},
                    {"relations.ownedBy": "group:default/red"},
                    {"metadata.labels.tier": "1"},
                ]
            )
        if self._chance.random() < 0.3:
            document["applicableWhen"] = self._leaf(id_)
        if self._chance.random() < 0.2:
            document["effectiveFrom"] = pick(["2020-01-01", "2999-01-01"])
        query = {"publish": "true"} if self._chance.random() < 0.8 else {}
        self._ask("PUT", f"{CHECKS}/{id_}", document, query)

    def publish_draft(self) -> None:
        self._ask("POST", f"{CHECKS}/{self._chance.choice(OF_CHECKS)}/publish")

    def delete_check(self) -> None:
        self._ask("DELETE", f"{CHECKS}/{self._chance.choice(OF_CHECKS)}")

    def define_scorecard(self) -> None:
        """Define a scorecard anew, and publish it."""
        pick, id_ = self._chance.choice, self._chance.choice(OF_CARDS)
        some = self._chance.sample(OF_CHECKS, self._chance.randint(1, 4))
        document = {
            "id": id_,
            "title": id_,
            "levels": ["low", "high"],
            "entries": [
                {"check": one, "level": pick(["low", "high"]), "weight": pick([1, 2.5])}
                for one in some
            ],
            "public": True,
            "exemptions": {"enabled": True, "maxDays": 300},
            "minimumCoverage": pick([0, 0.5, 1]),
        }
        if self._chance.random() < 0.5:
            document["appliesTo"] = {"kind": "component"}
        self._ask("PUT", f"{SCORECARDS}/{id_}", document, {"publish": "true"})

    def delete_scorecard(self) -> None:
        if self._chance.random() < 0.3:
            self._ask("DELETE", f"{SCORECARDS}/{self._chance.choice(OF_CARDS)}")

    def exempt(self) -> None:
        """Ask for an exemption, of which some begin or end at once."""
        now, chance = datetime.now(UTC), self._chance
        subject = {"check": chance.choice(OF_CHECKS)}
        if chance.random() < 0.3:
            subject = {"scorecard": chance.choice(OF_CARDS)}
        document = {
            **subject,
            "entity": f"component:default/{chance.choice(NAMES)}",
            "reason": "Because",
            "until": (now + timedelta(seconds=chance.choice([5, 40, 90_000]))).isoformat(),
        }
        if chance.random() < 0.3:
            document["from"] = (now + timedelta(seconds=3)).isoformat()
        self._ask("POST", EXEMPTIONS, document)

    def decide(self) -> None:
        """Decide on one of the newest exemptions."""
        found = self._ask("GET", EXEMPTIONS, query={"limit": "20"})
        if found.status_code == 200 and (items := found.json()["exemptions"]):
            verb = self._chance.choice(["approve", "approve", "approve", "deny", "revoke"])
            one = self._chance.choice(items)
            self._ask("POST", f"{EXEMPTIONS}/{one['id']}/{verb}", {})

    def define_source(self) -> None:
        """Publish a source with one fact or with two."""
        id_ = self._chance.choice(SENT)
        self._ask("PUT", f"{SOURCES}/{id_}", source(id_, whole=self._chance.random() < 0.7))
        self._ask("POST", f"{SOURCES}/{id_}/publish")

    def look(self) -> None:
        """Read something that may be in the midst of a change."""
        pick = self._chance.choice
        check, card = pick(OF_CHECKS), pick(OF_CARDS)
        entity = f"component:default/{pick(NAMES)}"
        self._ask(
            "GET",
            pick(
                [
                    RESULTS,
                    f"{RESULTS}.csv",
                    f"{RESULTS}/{check}",
                    f"{RESULTS}/{check}/{entity}",
                    f"{RESULTS}/{check}/{entity}/history",
                    CARDS,
                    f"{CARDS}/{card}",
                    f"{CARDS}/{card}.csv",
                    f"{CARDS}/{card}/rollup?by={pick(['owner', 'system', 'domain', 'label:tier'])}",
                    f"{CARDS}/{card}/trend",
                    f"{CARDS}/{card}/next-steps?entity={entity}",
                    f"{CHECKS.replace('checks', 'badges')}/{card}/{entity}.svg",
                ]
            ),
        )

    def _rule(self, id_: str, depth: int) -> dict[str, Any]:
        kind = self._chance.choice(["leaf", "all", "any", "not"]) if depth else "leaf"
        if kind == "leaf":
            return self._leaf(id_)
        if kind == "not":
            return {"not": self._rule(id_, depth - 1)}
        return {kind: [self._rule(id_, depth - 1) for _ in range(self._chance.randint(1, 3))]}

    def _leaf(self, id_: str) -> dict[str, Any]:
        pick, source_id = self._chance.choice, self._chance.choice(SENT)
        others = [one for one in OF_CHECKS if one != id_]
        leaves: list[tuple[str, str, str, Any]] = [
            (source_id, "lines", "greaterThan", pick([10, 60])),
            (source_id, "tool", "equal", "a"),
            (source_id, "tool", "isKnown", None),
            (source_id, "lines", "freshWithin", {"hours": 2}),
            ("entity", "spec.lifecycle", "equal", "production"),
            ("entity", "relations.ownedBy", "contains", "group:default/red"),
            *[("checks", pick(others), "in", ["pass", "exempt"])] * 3,
        ]
        source_id, fact, operator, value = pick(leaves)
        leaf = {"source": source_id, "fact": fact, "operator": operator}
        return leaf if value is None else {**leaf, "value": value}

    def _ask(
        self, method: str, path: str, body: Any = None, query: dict[str, str] | None = None
    ) -> httpx2.Response:
        given = {} if body is None else {"json": body}
        answer = self._http.request(method, path, params=query, **given)
        kind = path.partition("?")[0].split("/v1")[-1].split("/")[1]
        self.told[f"{method} {kind} {answer.status_code}"] += 1
        assert answer.status_code < 500, (method, path, body, answer.text)
        return answer


def source(id_: str, *, whole: bool = True) -> dict[str, Any]:
    """A source whose facts are pushed; the second fact may be missing."""
    schema: dict[str, Any] = {"lines": {"type": "integer"}}
    if whole:
        schema["tool"] = {"type": "string"}
    handler = {"type": "push", "config": {"id": id_}}
    return {"id": id_, "title": id_, "handlerDefinition": handler, "schema": schema}
