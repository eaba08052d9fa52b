"""Fifty checks and a scorecard over the large catalog, for the pages that show them."""

import time
from collections.abc import Callable
from typing import Any, Final
from urllib.parse import urlencode

CHECKS: Final = 50
CARD: Final = "readiness"
_PATH: Final = "/api/tech-insights/v1"
_SECONDS: Final = 900
_ABOUT: Final = {"kind": "component"}
_TEAM: Final = "group:default/team-1"

Put = Callable[[str, str, Any], Any]


def define(put: Put, source: str, fact: str) -> None:
    """Publish the checks and the scorecard, and wait until every entity has a level."""
    for number in range(CHECKS):
        document = _check(number, source, fact)
        put("PUT", f"{_PATH}/checks/{document['id']}?publish=true", document)
    levels = ["bronze", "silver", "gold"]
    card = {
        "id": CARD,
        "title": "Readiness",
        "appliesTo": _ABOUT,
        "levels": levels,
        "entries": [
            {"check": _id(number), "level": levels[number % 3]} for number in range(CHECKS)
        ],
    }
    put("PUT", f"{_PATH}/scorecards/{CARD}?publish=true", card)
    until = time.monotonic() + _SECONDS
    while put("GET", f"{_PATH}/scorecards/{CARD}", None).get("publication"):
        if time.monotonic() > until:
            raise RuntimeError("The levels took too long.")
        time.sleep(1)


def paths(ref: str) -> dict[str, str]:
    """The pages by name."""
    one = f"/scorecards/{CARD}"
    check = f"/checks/{_id(0)}"
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
        "check-unknown": f"/checks/{_id(4)}?state=unknown",
        # One entity of the whole catalog.
        "check-rare": f"/checks/{_id(4)}?state=pass",
        "check-entity": f"{check}?{urlencode({'entity': ref})}",
        "exemptions": "/exemptions",
        "check-editor": f"{check}/edit",
    }


def _id(number: int) -> str:
    return f"check-{number:02}"


def _check(number: int, source: str, fact: str) -> dict[str, Any]:
    """A check; every fifth one reads a fact that is known of one entity alone."""
    rules: tuple[dict[str, Any], ...] = (
        _leaf("entity", "spec.lifecycle", "equal", "production"),
        _leaf("entity", "metadata.description", "isKnown"),
        _leaf("entity", "spec.system", "matches", f"^.*{number % 10}$"),
        _leaf("entity", "metadata.tags", "contains", "java"),
        _leaf(source, fact, "lessThan", 1_000),
    )
    return {
        "id": _id(number),
        "title": f"Check {number} of what is there",
        "appliesTo": _ABOUT,
        "rule": rules[number % len(rules)],
        "messages": {"fail": "{{ metadata.name }} is not as it should be."},
        "fix": {"link": "https://fix.example/{{ metadata.name }}"},
    }


def _leaf(source: str, fact: str, operator: str, *value: Any) -> dict[str, Any]:
    given = {"value": value[0]} if value else {}
    return {"source": source, "fact": fact, "operator": operator, **given}
