"""Components of two teams with checks and a scorecard, for the pages that show them."""

from typing import Any

import httpx2

from tests.api.checking import (
    CHECKS,
    COVERED,
    SCORECARDS,
    check,
    evaluated,
    put,
    scorecard,
    with_source,
)
from tests.api.defining import item, push
from tests.conftest import StartService
from tests.service import Service, component

WEB, API, OLD = (f"component:default/{name}" for name in ("web", "api", "old"))
VERSION = "backstage.io/v1alpha1"
FIX = "https://ci.example.com/{{ metadata.name }}/coverage"


def group(name: str, *children: str) -> dict[str, Any]:
    """A group with these below it."""
    spec = {"type": "team", "children": [*children]}
    return {"apiVersion": VERSION, "kind": "Group", "metadata": {"name": name}, "spec": spec}


def person(name: str, *groups: str) -> dict[str, Any]:
    """A person in these groups."""
    spec = {"memberOf": [*groups]}
    return {"apiVersion": VERSION, "kind": "User", "metadata": {"name": name}, "spec": spec}


COVERS = check(
    description="Tests have to cover most lines.",
    owner="group:default/team-a",
    appliesTo={"kind": "component"},
    messages={"fail": "Only {{ facts.coverage['lines'] }} % of {{ metadata.name }} is covered."},
    fix={"link": FIX, "instructions": "Write tests."},
)
MUCH = check(
    "much",
    title="Tests cover nearly all",
    rule={**COVERED, "value": 95},
    appliesTo={"kind": "component"},
)
CARD = scorecard(
    description="What has to be there before a service is on call.",
    owner="group:default/department",
    appliesTo={"kind": "component"},
    entries=[
        {"check": "covered", "level": "bronze"},
        {"check": "much", "level": "silver", "weight": 3},
    ],
    target={"level": "bronze", "by": "2027-06-30"},
)


async def scored(start: StartService) -> Service:
    """A service with three components, one of which fails, passes, and is unknown."""
    service = await start()
    await with_source(service)
    entities = [
        component("web", owner="team-a"),
        component("api", owner="team-b"),
        component("old", owner="team-b"),
        group("department", "team-a", "team-b"),
        group("team-a"),
        group("team-b"),
        person("kim", "team-b"),
    ]
    assert (await service.push("shop", *entities)).status_code == 200
    await push(service, item(WEB, lines=90), item(API, lines=10))
    for document in (COVERS, MUCH):
        done(await put(service, document, publish=True))
    done(await service.http.put(f"{SCORECARDS}/readiness?publish=true", json=CARD))
    await evaluated(service)
    return service


def done(answer: httpx2.Response) -> None:
    """Fail with what the answer says unless it went well."""
    assert answer.is_success, answer.text


async def published(service: Service, document: dict[str, Any]) -> None:
    """Publish a check or a scorecard, and evaluate it."""
    kind = CHECKS if "rule" in document else SCORECARDS
    done(await service.http.put(f"{kind}/{document['id']}?publish=true", json=document))
    await evaluated(service)
