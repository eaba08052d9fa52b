"""The made-up web shop that the pictures of the documentation show, and what its vendors know."""

import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import yaml

from factbook.clock import DAY, HOUR, MINUTE
from tests.browser.shop import COVERAGE, RUNBOOKS
from tests.fakes.github.state import Issue, Pull, Repository
from tests.fakes.pagerduty import Incident
from tests.fakes.pagerduty import Service as PagerDutyService
from tests.fakes.snyk import Organization, Project
from tests.service import NOON

Entity = dict[str, Any]

OWNER: Final = "shop-example"
DAYS: Final = 30
_ON_CALL: Final = "pagerduty.com/service-id"
# In the order in which they began.
_TEAMS: Final = ("checkout", "discovery", "payments", "logistics", "identity")
_ENTITIES: Final = Path(__file__).parents[2] / "examples" / "shop" / "entities"
_SPELLED: Final = {"typescript": "TypeScript"}


def entities(team: str) -> list[Entity]:
    """What one team pushes: itself, its system, its components, its API and its database."""
    return list(yaml.safe_load_all((_ENTITIES / f"{team}.yaml").read_text("utf-8")))


def teams() -> list[str]:
    """Every team, in the order in which they began."""
    return list(_TEAMS)


def components() -> list[Entity]:
    """The components of every team."""
    return [one for team in _TEAMS for one in entities(team) if one["kind"] == "Component"]


# Of data sources that the shop defines itself.
DEFINITIONS: Final[tuple[dict[str, Any], ...]] = (
    {
        **COVERAGE,
        "description": "What the pipeline of each component pushes after its tests.",
        "entityFilter": [{"kind": "component"}],
        "schema": {
            "lines": {
                "type": "float",
                "unit": "percent",
                "title": "Covered lines",
                "description": "Lines that a test runs, of all that could be.",
            }
        },
    },
    {**RUNBOOKS, "cadence": "0 */6 * * *"},
    {
        "id": "card-data",
        "title": "Card data",
        "description": "Where numbers of cards are seen, for the yearly audit.",
        "owner": "group:default/team-payments",
        "cadence": "0 */6 * * *",
        "entityFilter": [{"kind": "component"}],
        "handlerDefinition": {"type": "entity", "config": {"id": "card-data"}},
        "schema": {
            "isInScope": {
                "type": "boolean",
                "title": "In scope",
                "description": "The component has the tag pci.",
                "extract": {"jmespath": "contains(metadata.tags || `[]`, 'pci')"},
            }
        },
    },
)
# What people ask to be let off, and why.
WISHES: Final[tuple[tuple[str, dict[str, str]], ...]] = (
    (
        "jun",
        {
            "check": "covered",
            "entity": "component:receipts",
            "reason": "Receipts moves to the ledger in spring.",
            "until": "2027-03-31",
        },
    ),
    (
        "noor",
        {
            "check": "covered",
            "entity": "component:fraud-scoring",
            "reason": "Models are tested elsewhere.",
            "until": "2027-06-30",
        },
    ),
    (
        "sam",
        {
            "check": "on-call",
            "entity": "component:vouchers",
            "reason": "Office hours are enough until the launch.",
            "until": "2027-01-31",
        },
    ),
    (
        "noor",
        {
            "check": "reviewed",
            "entity": "component:search",
            "reason": "One person works on it this quarter.",
            "until": "2026-12-31",
        },
    ),
)
_COMPONENTS: Final = {one["metadata"]["name"]: one["metadata"] for one in components()}
NAMES: Final = list(_COMPONENTS)


def repositories(day: int) -> list[Repository]:
    """What the code host holds on a day, counted from the first."""
    return [_repository(number, name, day) for number, name in enumerate(NAMES)]


def projects(day: int) -> Organization:
    """What the scanner has found by a day."""
    found = []
    for number, name in enumerate(NAMES):
        chance = random.Random(number)
        counts = (
            max(0, chance.randrange(3) - day // 12),
            max(0, chance.randrange(9) - day // 6),
            chance.randrange(12) + day // 9,
            chance.randrange(30),
        )
        found.append(Project(number, f"{OWNER}/{name}", counts))
    return Organization(1, found)


def services() -> list[PagerDutyService]:
    """The services of on-call, one for each component but a few."""
    return [
        PagerDutyService(_on_call(name), "On call around the clock", teams=("PTEAM01",), named=name)
        for name in NAMES
        if _ON_CALL in _COMPONENTS[name]["annotations"]
    ]


def incidents() -> Iterator[Incident]:
    """A year of incidents."""
    chance = random.Random(7)
    for name in NAMES:
        for _ in range(chance.randrange(2, 14)):
            at = NOON - chance.randrange(360 * DAY)
            seen = at + chance.randrange(1, 20) * MINUTE
            resolved = seen + chance.randrange(10, 300) * MINUTE
            yield Incident(_on_call(name), at, resolved, seen, team="PTEAM01")


def coverage(name: str, day: int) -> float:
    """The covered lines of a component on a day, in percent."""
    chance = random.Random(f"{name}{day // 3}")
    base = 48 + sum(name.encode()) % 34
    return round(base + day * 0.35 + chance.random() * 3, 1)


def _on_call(name: str) -> str:
    return f"P{sum(name.encode()) * 7919 % 999_983:06d}"


def _repository(number: int, name: str, day: int) -> Repository:
    chance = random.Random(f"{name} {number}")
    now = NOON - (DAYS - day) * DAY
    pulls = []
    for index in range(chance.randrange(40, 90)):
        opened = NOON - chance.randrange(2 * DAYS * 24) * HOUR
        merged = opened + chance.randrange(2, 60) * HOUR
        if opened > now:
            continue
        is_open = merged > now
        author = chance.choice(("ada", "jun", "noor", "sam"))
        pulls.append(
            Pull(
                index + 1,
                chance.choice(("Fix rounding", "Retry on timeout", "Split the handler")),
                opened,
                None if is_open else merged,
                opened if is_open else merged,
                author,
                is_open=is_open,
            )
        )
    return Repository(
        f"{OWNER}/{name}",
        pulls=pulls,
        issues=[
            Issue(200 + index, closed_at=now - index * DAY if index % 3 else None)
            for index in range(6 + number % 5 + day // 5)
        ],
        languages=[_language(name), "Shell"],
        collaborators=["ada", "jun", "noor", "sam"][: 2 + number % 3],
        files=[
            ".github/CODEOWNERS",
            "Dockerfile",
            "docs/index.md",
            f"src/{name}/main",
            "README.md",
        ],
        classic={"requiresCodeOwnerReviews": number % 2 == 0, "requiredApprovingReviewCount": 1},
        codeowners_errors=0,
        alerts={"OPEN": max(0, number % 7 - day // 10), "FIXED": 3 + day // 4, "DISMISSED": 1},
    )


def _language(name: str) -> str:
    tag: str = _COMPONENTS[name]["tags"][0]
    return _SPELLED.get(tag, tag.title())
