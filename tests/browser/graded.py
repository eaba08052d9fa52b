"""Checks and scorecards of the made-up shop, over what its vendors know."""

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
    _check(
        "few-highs",
        "At most two high issues are open",
        _leaf("snyk", "security.scannerIssues.high", "lessThanInclusive", 2),
        messages={"fail": "{{ facts.snyk['security.scannerIssues.high'] }} high issues are open."},
    ),
    _check(
        "no-alerts",
        "Dependencies have no open alert",
        _leaf("github", "security.dependencyAlerts.open", "equal", 0),
        fix={
            "link": "https://github.com/shop-example/{{ metadata.name }}/security/dependabot",
            "instructions": "Update what the alerts name, the critical ones first.",
        },
    ),
    _check(
        "documented",
        "It has documentation",
        _leaf("entity", "metadata.annotations.backstage.io/techdocs-ref", "isKnown"),
    ),
    _check(
        "described",
        "A sentence says what it does",
        _leaf("entity", "metadata.description", "isKnown"),
    ),
    _check(
        "runbook",
        "Who is on call finds a runbook",
        _leaf("runbooks", "hasRunbook", "equal", True),
        messages={"fail": "{{ metadata.name }} has no link with the title Runbook."},
        fix={"instructions": "Add the link to its catalog file."},
    ),
)
_OF_LEVEL: Final = {
    "bronze": ("owned", "on-call"),
    "silver": ("protected", "covered"),
    "gold": ("reviewed", "no-criticals", "watched"),
}
_LEVELS: Final = [{"id": level, "title": level.title()} for level in LEVELS]
SCORECARDS: Final[tuple[dict[str, Any], ...]] = (
    {
        "id": "readiness",
        "title": "Production readiness",
        "description": "What has to be there before customers depend on it.",
        "owner": "group:default/team-identity",
        "appliesTo": _ABOUT,
        "levels": _LEVELS,
        "entries": [{"check": id_, "level": level} for level in LEVELS for id_ in _OF_LEVEL[level]],
        "target": {"level": "silver", "by": "2027-06-30"},
    },
    {
        "id": "security",
        "title": "Security",
        "description": "What is known to be open, and what keeps it from coming back.",
        "owner": "group:default/team-payments",
        "appliesTo": _ABOUT,
        "levels": _LEVELS[:2],
        "entries": [
            {"check": "no-criticals", "level": "bronze"},
            {"check": "protected", "level": "bronze"},
            {"check": "few-highs", "level": "silver"},
            {"check": "no-alerts", "level": "silver"},
        ],
    },
    {
        "id": "documentation",
        "title": "Documentation",
        "description": "What a new colleague has to find.",
        "owner": "group:default/team-discovery",
        "appliesTo": _ABOUT,
        "entries": [
            {"check": "described"},
            {"check": "documented", "weight": 2},
            {"check": "runbook"},
        ],
    },
)
