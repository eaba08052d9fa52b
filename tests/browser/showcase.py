"""The made-up web shop that the pictures of the documentation show, and what its vendors know."""

import random
from collections.abc import Iterator
from typing import Any, Final

from factbook.clock import DAY, HOUR, MINUTE
from tests.fakes.github.state import Issue, Pull, Repository
from tests.fakes.pagerduty import Incident
from tests.fakes.pagerduty import Service as PagerDutyService
from tests.fakes.snyk import Organization, Project
from tests.service import NOON

Entity = dict[str, Any]

OWNER: Final = "shop-example"
DAYS: Final = 30
# System, the team that owns it, and its components: name, title, what it does, its language.
_SYSTEMS: Final = (
    (
        "ordering",
        "checkout",
        (
            ("checkout", "Checkout", "Turns a basket into a paid order.", "Python"),
            ("basket", "Basket", "Keeps what customers mean to buy.", "Go"),
            ("receipts", "Receipts", "Sends a receipt for every order.", "Python"),
            ("vouchers", "Vouchers", "Checks and books vouchers and gift cards.", "Kotlin"),
        ),
    ),
    (
        "storefront",
        "discovery",
        (
            ("web-shop", "Web shop", "The pages that customers see.", "TypeScript"),
            ("search", "Search", "Answers what customers type into the search box.", "Java"),
            ("recommendations", "Recommendations", "Says what else may please.", "Python"),
            ("reviews", "Reviews", "What customers think of the goods.", "Kotlin"),
        ),
    ),
    (
        "payments",
        "payments",
        (
            ("payment-gateway", "Payment gateway", "Talks to banks and card schemes.", "Java"),
            ("ledger", "Ledger", "Books every movement of money, for ever.", "Java"),
            ("fraud-scoring", "Fraud scoring", "Scores each payment before it is taken.", "Python"),
            ("refunds", "Refunds", "Gives money back.", "Kotlin"),
        ),
    ),
    (
        "logistics",
        "logistics",
        (
            ("stock", "Stock", "Knows how much of what lies where.", "Go"),
            ("shipping-labels", "Shipping labels", "Prints labels for each carrier.", "Go"),
            ("tracking", "Tracking", "Follows parcels until they arrive.", "Kotlin"),
            ("returns", "Returns", "Takes goods back.", "Python"),
        ),
    ),
    (
        "accounts",
        "identity",
        (
            ("sign-in", "Sign-in", "Proves who somebody is.", "Go"),
            ("profiles", "Profiles", "Names, addresses and wishes of customers.", "Kotlin"),
            ("consent", "Consent", "Remembers what customers have agreed to.", "Kotlin"),
            ("newsletter", "Newsletter", "Writes to those who want it.", "Python"),
        ),
    ),
)
_SHORT_OF: Final = {"vouchers", "reviews", "tracking", "consent", "newsletter"}
NAMES: Final = [name for _, _, components in _SYSTEMS for name, *_ in components]
_DEPENDS: Final = {
    "checkout": ("basket", "payment-gateway", "stock", "sign-in"),
    "basket": ("stock", "vouchers"),
    "web-shop": ("search", "recommendations", "checkout", "profiles"),
    "receipts": ("ledger",),
    "payment-gateway": ("fraud-scoring", "ledger"),
    "returns": ("refunds", "stock"),
}


def entities(team: str) -> list[Entity]:
    """What one team pushes: itself, its system, its components, its API and its database."""
    system, _, components = next(found for found in _SYSTEMS if found[1] == team)
    group = _entity("Group", f"team-{team}", title=f"Team {team.title()}")
    group["spec"] = {"type": "team", "children": []}
    made = [group, _entity("System", system, title=system.title())]
    made[1]["spec"] = {"owner": f"team-{team}"}
    first = components[0][0]
    api = _entity("API", f"{first}-api", title=f"{components[0][1]} API", description="REST, v2.")
    api["spec"] = _spec("openapi", team, system) | {"definition": "openapi: 3.1.0"}
    database = _entity("Resource", f"{first}-db", title=f"{components[0][1]} database")
    database["spec"] = _spec("database", team, system)
    return [*made, api, database, *(_component(team, system, *one) for one in components)]


def teams() -> list[str]:
    """Every team, in the order in which they began."""
    return [team for _, team, _ in _SYSTEMS]


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
        if name not in _SHORT_OF
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


def _component(team: str, system: str, name: str, title: str, about: str, language: str) -> Entity:
    made = _entity("Component", name, title=title, description=about)
    metadata = made["metadata"]
    metadata["tags"] = [language.lower(), "customer-facing" if system == "storefront" else "core"]
    metadata["annotations"] = {
        "github.com/project-slug": f"{OWNER}/{name}",
        "backstage.io/techdocs-ref": "dir:.",
        "datadoghq.com/service-name": name,
    }
    metadata["links"] = [{"url": f"https://runbooks.shop.example/{name}", "title": "Runbook"}]
    kind = "website" if name == "web-shop" else "service"
    made["spec"] = _spec(kind, team, system)
    made["spec"]["dependsOn"] = [f"component:{one}" for one in _DEPENDS.get(name, ())]
    if name == NAMES[NAMES.index(name) // 4 * 4]:
        made["spec"]["providesApis"] = [f"{name}-api"]
        made["spec"]["dependsOn"].append(f"resource:{name}-db")
    if name in _SHORT_OF:
        del metadata["title"], metadata["annotations"]["backstage.io/techdocs-ref"]
    else:
        metadata["annotations"]["pagerduty.com/service-id"] = _on_call(name)
    return made


def _spec(type_: str, team: str, system: str) -> Entity:
    return {
        "type": type_,
        "lifecycle": "production",
        "owner": f"team-{team}",
        "system": system,
    }


def _entity(kind: str, name: str, **metadata: Any) -> Entity:
    return {
        "apiVersion": "backstage.io/v1alpha1",
        "kind": kind,
        "metadata": {"name": name, **metadata},
    }


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
    return next(one[3] for _, _, components in _SYSTEMS for one in components if one[0] == name)
