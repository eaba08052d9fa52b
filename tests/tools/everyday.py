"""A company with 2,000 components, for the questions that people ask of it every day."""

from collections.abc import Iterator
from typing import Any

from factbook.facts import freshness, store
from factbook.facts.datasource import DataSource
from factbook.facts.schema import Fact
from tests.api import checking
from tests.service import Service
from tests.storage.evaluating import evaluating

COMPONENTS = 2_000
TEAMS = 40
SYSTEMS = 50
HOST = DataSource(
    id="host",
    title="Code host",
    version="1.0.0",
    cadence="0 * * * *",
    entity_filter=[{"metadata.annotations.host.org/slug": {"exists": True}}],
    schema=(
        Fact("codehost.branchProtection.enabled", "boolean"),
        Fact("codehost.pullRequests.open", "integer"),
        Fact("codehost.collaboration.collaborators", "set"),
    ),
)
SCANNER = DataSource(
    id="scanner",
    title="Scanner",
    version="1.0.0",
    cadence="0 * * * *",
    schema=(
        Fact("security.scannerIssues.critical", "integer"),
        Fact("security.scannerIssues.high", "integer"),
    ),
)
_V1 = "backstage.io/v1alpha1"
_WORDS = ("payments", "ledger", "search", "catalog", "shipping", "identity", "billing", "fraud")
_TYPES = ("service", "service", "service", "website", "library")


def name(number: int) -> str:
    return f"{_WORDS[number % len(_WORDS)]}-{('api', 'worker', 'front')[number % 3]}-{number:04}"


def team(number: int) -> str:
    return f"team-{number:02}"


async def fill(service: Service) -> None:
    """Push the company, collect facts of it, and put checks and a scorecard into effect."""
    answer = await service.push("company", *_organisation(), *_components())
    assert answer.status_code == 200, answer.text
    await _collect(service)
    protected = {
        "source": "host",
        "fact": "codehost.branchProtection.enabled",
        "operator": "equal",
        "value": True,
    }
    clean = {
        "source": "scanner",
        "fact": "security.scannerIssues.critical",
        "operator": "lessThan",
        "value": 1,
    }
    for id_, rule in (("protected", protected), ("no-critical-findings", clean)):
        check = checking.check(id_, rule=rule, appliesTo={"kind": "component"})
        assert (await checking.put(service, check, publish=True)).status_code in {200, 201}
    entries = [
        {"check": "protected", "level": "bronze"},
        {"check": "no-critical-findings", "level": "silver"},
    ]
    card = checking.scorecard("ready", entries=entries, appliesTo={"kind": "component"})
    answer = await service.http.put(
        f"{checking.SCORECARDS}/ready", json=card, params={"publish": "true"}
    )
    assert answer.status_code in {200, 201}, answer.text
    await checking.evaluated(service)


def _organisation() -> Iterator[dict[str, Any]]:
    yield _entity("Group", "payments", spec={"type": "unit", "children": []})
    for number in range(TEAMS):
        spec: dict[str, Any] = {
            "type": "team",
            "children": [],
            "profile": {"displayName": f"Team {number}", "email": f"{team(number)}@example.org"},
        }
        if number < 4:
            spec["parent"] = "payments"
        chat = {"annotations": {"slack.com/channel": f"#{team(number)}"}}
        yield _entity("Group", team(number), metadata=chat, spec=spec)
    for number in range(SYSTEMS):
        yield _entity("System", f"system-{number:02}", spec={"owner": team(number % TEAMS)})


def _components() -> Iterator[dict[str, Any]]:
    for number in range(COMPONENTS):
        owner = "team-gone" if number % 500 == 7 else team(number % TEAMS)
        spec: dict[str, Any] = {
            "type": _TYPES[number % len(_TYPES)],
            "lifecycle": "deprecated" if number % 100 == 3 else "production",
            "owner": owner,
            "system": f"system-{number % SYSTEMS:02}",
        }
        if number % 400 == 9:
            del spec["owner"]
        if number:
            spec["dependsOn"] = [f"component:{name(number // 7)}"]
        metadata: dict[str, Any] = {
            "title": f"{_WORDS[number % len(_WORDS)].title()} {number}",
            "description": "Takes requests of the storefront and answers within the agreed time.",
            "tags": ["java" if number % 2 else "go"],
        }
        if number % 10:
            metadata["annotations"] = {"host.org/slug": f"acme/{name(number)}"}
        yield _entity("Component", name(number), metadata=metadata, spec=spec)


def _entity(
    kind: str, name: str, *, spec: dict[str, Any], metadata: dict[str, Any] | None = None
) -> dict[str, Any]:
    known = {"name": name, **(metadata or {})}
    return {"apiVersion": _V1, "kind": kind, "metadata": known, "spec": spec}


async def _collect(service: Service) -> None:
    """Facts of the host about those with its annotation, and of the scanner about most."""
    database, now = service.state.database, service.time()
    rows = await database.all("SELECT id, name FROM entities WHERE kind = 'component'")
    hosted, scanned = [], []
    for id_, found in rows:
        number = int(found.rpartition("-")[2])
        if number % 10:
            values: dict[str, object] = {
                "codehost.branchProtection.enabled": number % 7 != 0,
                "codehost.pullRequests.open": number % 13,
                "codehost.collaboration.collaborators": [f"person-{n:03}" for n in range(60)],
            }
            hosted.append(freshness.Observation(id_, values))
        if number % 20 != 1:
            counts: dict[str, object] = {
                "security.scannerIssues.critical": 3 if number % 200 == 5 else 0,
                "security.scannerIssues.high": number % 4,
            }
            scanned.append(freshness.Observation(id_, counts))
    await database.write(evaluating(lambda tx: store.record_facts(tx, HOST, hosted, now)))
    await database.write(evaluating(lambda tx: store.record_facts(tx, SCANNER, scanned, now)))
