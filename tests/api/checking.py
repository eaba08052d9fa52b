"""Checks that tests define over HTTP."""

from typing import Any

import httpx2

from factbook.checks.results.evaluator import Evaluation
from tests.api.defining import SOURCES, define, pushed
from tests.service import Service

_PATH = "/api/tech-insights/v1"
CHECKS = f"{_PATH}/checks"
BADGES = f"{_PATH}/badges"
SCORECARDS = f"{_PATH}/scorecards"
RESULTS = f"{_PATH}/check-results"
CARDS = f"{_PATH}/scorecard-results"
EXEMPTIONS = f"{_PATH}/exemptions"
DIGESTS = f"{_PATH}/digests"
STARTER = f"{_PATH}/starter-scorecard"
COVERED = {"source": "coverage", "fact": "lines", "operator": "greaterThan", "value": 80}
OWNED = {"source": "entity", "fact": "spec.owner", "operator": "isKnown"}


def check(id_: str = "covered", **more: Any) -> dict[str, Any]:
    """A check of what tests/api/defining.py pushes."""
    return {"id": id_, "title": "Tests cover enough", "rule": COVERED, **more}


def scorecard(id_: str = "readiness", **more: Any) -> dict[str, Any]:
    """A scorecard with the one check, for its first level."""
    entries = [{"check": "covered", "level": "bronze"}]
    levels = ["bronze", "silver"]
    return {"id": id_, "title": "Readiness", "levels": levels, "entries": entries, **more}


def wish(**more: Any) -> dict[str, Any]:
    """A request for an exemption of `component:web` until a day."""
    until = "2027-03-31"
    asked = {"check": "covered", "entity": "component:web", "reason": "Shut down soon"}
    return {**asked, "until": until, **more}


async def with_source(service: Service) -> None:
    """Define the source that the checks read."""
    await define(service, pushed())
    assert (await service.http.get(f"{SOURCES}/coverage")).status_code == 200


async def put(
    service: Service, document: dict[str, Any], *, publish: bool = False, **headers: str
) -> httpx2.Response:
    """The answer to a PUT of a check."""
    query = {"publish": "true"} if publish else {}
    address = f"{CHECKS}/{document['id']}"
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return await service.http.put(address, json=document, params=query, headers=named)


async def shown(service: Service, id_: str = "covered") -> dict[str, Any]:
    """The check as the interface shows it."""
    answer = await service.http.get(f"{CHECKS}/{id_}")
    assert answer.status_code == 200, answer.text
    found: dict[str, Any] = answer.json()
    return found


async def evaluated(service: Service) -> None:
    """Do the evaluation that is left, as the server does beside its requests."""
    await Evaluation(service.state.database, service.state.clock).tick()
