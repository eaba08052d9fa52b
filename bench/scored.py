"""Fifty checks and a scorecard over the large catalog, for the pages that show them."""

import time
from typing import Any, Final
from urllib.parse import urlencode

import msgspec

from bench.service import Factbook

CHECKS: Final = 50
CARD: Final = "readiness"
_PATH: Final = "/api/tech-insights/v1"
_SECONDS: Final = 900
_ABOUT: Final = {"kind": "component"}
_TEAM: Final = "group:default/team-01"

Leaf = dict[str, Any]


def define(service: Factbook, rare: Leaf, frequent: Leaf) -> None:
    """Publish the checks and the scorecard, and wait until every entity has a level.

    `rare` is known of one entity alone, `frequent` of most.
    """

    def put(path: str, document: dict[str, Any]) -> None:
        service.client.call("PUT", f"{_PATH}{path}?publish=true", msgspec.json.encode(document))

    for number in range(CHECKS):
        put(f"/checks/{check_id(number)}", _check(number, rare, frequent))
    levels = ["bronze", "silver", "gold"]
    card = {
        "id": CARD,
        "title": "Readiness",
        "appliesTo": _ABOUT,
        "levels": levels,
        "entries": [
            {"check": check_id(number), "level": levels[number % 3]} for number in range(CHECKS)
        ],
    }
    put(f"/scorecards/{CARD}", card)
    until = time.monotonic() + _SECONDS
    while service.client.get(f"{_PATH}/scorecards/{CARD}").get("publication"):
        if time.monotonic() > until:
            raise RuntimeError("The levels took too long.")
        time.sleep(1)


def paths(ref: str) -> dict[str, str]:
    """The pages by name."""
    one = f"/scorecards/{CARD}"
    check = f"/checks/{check_id(0)}"
    return {
        "scorecards": "/scorecards",
        "scorecard": one,
        "scorecard-team": f"{one}?{urlencode({'team': _TEAM})}",
        "matrix": f"{one}/entities",
        "matrix-level": f"{one}/entities?level=bronze",
        "matrix-owner": f"{one}/entities?{urlencode({'owner': _TEAM, 'state': 'exempt'})}",
        "matrix-teams": f"{one}/teams",
        "checks": "/checks",
        "check": check,
        "check-owner": f"{check}?{urlencode({'owner': _TEAM})}",
        "check-unknown": f"/checks/{check_id(4)}?state=unknown",
        # One entity of the whole catalog.
        "check-rare": f"/checks/{check_id(4)}?state=pass",
        "check-entity": f"{check}?{urlencode({'entity': ref})}",
        "exemptions": "/exemptions",
        "exemption-new": f"/exemptions/-/new?{urlencode({'check': check_id(0), 'entity': ref})}",
        "check-editor": f"{check}/edit",
        "check-new": "/checks/-/new",
        "scorecard-editor": f"{one}/edit",
    }


def check_id(number: int) -> str:
    """The id of a check."""
    return f"check-{number:02}"


def leaf(source: str, fact: str, operator: str, *value: Any) -> Leaf:
    """A comparison of a fact."""
    given = {"value": value[0]} if value else {}
    return {"source": source, "fact": fact, "operator": operator, **given}


def _check(number: int, rare: Leaf, frequent: Leaf) -> dict[str, Any]:
    rules: tuple[Leaf, ...] = (
        leaf("entity", "spec.lifecycle", "equal", "production"),
        leaf("entity", "metadata.description", "isKnown"),
        leaf("entity", "spec.system", "matches", f"^.*{number % 10}$"),
        frequent,
        rare,
    )
    return {
        "id": check_id(number),
        "title": f"Check {number} of what is there",
        "appliesTo": _ABOUT,
        "rule": rules[number % len(rules)],
        "messages": {"fail": "{{ metadata.name }} is not as it should be."},
        "fix": {"link": "https://fix.example/{{ metadata.name }}"},
    }
