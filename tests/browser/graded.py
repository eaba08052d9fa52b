"""Checks and a scorecard of the made-up shop, over what its vendors know."""

from typing import Any, Final

_ABOUT: Final = {"kind": "component"}
LEVELS: Final = ("bronze", "silver", "gold")


def _check(id_: str, title: str, rule: dict[str, Any], **more: Any) -> dict[str, Any]:
    owner = "group:default/team-identity"
    return {"id": id_, "title": title, "rule": rule, "appliesTo": _ABOUT, "owner": owner, **more}


def _leaf(source: str, fact: str, operator: str, *value: Any) -> dict[str, Any]:
    wanted = {"value": value[0]} if value else {}
    return {"source": source, "fact": fact, "operator": operator, **wanted}


CHECKS: Final = (
    _check("owned", "A team owns it", _leaf("entity", "spec.owner", "isKnown")),
    _check(
        "on-call",
        "Somebody is on call for it",
        _leaf("entity", "metadata.annotations.pagerduty.com/service-id", "isKnown"),
        messages={"fail": "Nobody is called when {{ metadata.name }} is down."},
        fix={
            "link": "https://wiki.shop.example/on-call/{{ metadata.name }}",
            "instructions": "Add it to a rota, and the annotation to its file.",
        },
    ),
    _check(
        "protected",
        "The default branch is protected",
        _leaf("github", "codehost.branchProtection.enabled", "equal", True),
    ),
    _check(
        "reviewed",
        "Code owners review changes",
        _leaf("github", "codehost.codeReview.requireCodeOwnerReviews", "equal", True),
        fix={
            "link": "https://github.com/shop-example/{{ metadata.name }}/settings/branches",
            "instructions": "Require a review of code owners.",
        },
    ),
    _check(
        "covered",
        "Tests cover three quarters",
        _leaf("coverage", "lines", "greaterThanInclusive", 75),
        description="What no test runs breaks where customers see it.",
        messages={
            "fail": "{{ facts.coverage['lines'] }} % of {{ metadata.name }} is covered by tests."
        },
        fix={
            "link": "https://ci.shop.example/{{ metadata.name }}/coverage",
            "instructions": "Begin with what changed most in the last month.",
        },
    ),
    _check(
        "no-criticals",
        "No critical issue is open",
        _leaf("snyk", "security.scannerIssues.critical", "equal", 0),
    ),
    _check(
        "watched",
        "A monitor watches it",
        _leaf("datadog", "observability.monitorCount", "greaterThan", 0),
    ),
)
_OF_LEVEL: Final = {
    "bronze": ("owned", "on-call"),
    "silver": ("protected", "covered"),
    "gold": ("reviewed", "no-criticals", "watched"),
}
SCORECARD: Final[dict[str, Any]] = {
    "id": "readiness",
    "title": "Production readiness",
    "description": "What has to be there before customers depend on it.",
    "owner": "group:default/team-identity",
    "appliesTo": _ABOUT,
    "levels": [{"id": level, "title": level.title()} for level in LEVELS],
    "entries": [{"check": id_, "level": level} for level in LEVELS for id_ in _OF_LEVEL[level]],
    "target": {"level": "silver", "by": "2027-06-30"},
}
