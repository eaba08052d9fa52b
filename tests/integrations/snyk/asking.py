"""The integration as configured for a fake Snyk, and an organization with something of each."""

from typing import Any

from factbook.integrations.integration import Collected
from factbook.integrations.snyk import INTEGRATION
from factbook.outbound.outcomes import Missing
from tests.fakes.snyk import FakeSnyk, Issue, Organization, Project, Token, uuid
from tests.integrations.asking import Asking
from tests.service import Time

KEY = "a-key-of-tests"
ACME, OTHER = uuid(1), uuid(2)
SLUG = "github.com/project-slug"
GROUP = "security.scannerIssues"
# The sums of the active projects of acme/app: 1+0, 2+10, 3+0, 4+5.
EVERYTHING = {"total": 25, "critical": 1, "high": 12, "medium": 3, "low": 9}


class Collector(Asking):
    """The integration for a Snyk, whose entities are given by their annotations."""

    def __init__(self, fake: FakeSnyk, time: Time, **table: Any) -> None:
        given = {"token": KEY, "organizations": [ACME, OTHER]} | table
        super().__init__(INTEGRATION, fake, given, time=time)

    def target(self, **annotations: Any) -> str | Missing:
        """What an entity with these annotations points to; `project_ids` is of snyk.io."""
        return self.integration.target({"metadata": {"annotations": named(annotations)}})

    async def of(self, **annotations: Any) -> Collected:
        """What one run brings for an entity with these annotations."""
        target = self.target(**annotations)
        return (
            Collected(missing={"": target})
            if isinstance(target, Missing)
            else await self.one(target)
        )

    async def said(self, **annotations: Any) -> dict[str, int] | str:
        """The figures by name, or why there are none."""
        collected = await self.of(**annotations)
        if collected.missing:
            assert collected.values == {}
            return next(iter(collected.reasons.values()))
        return {name.removeprefix(f"{GROUP}."): value for name, value in collected.values.items()}


def named(annotations: dict[str, Any]) -> dict[str, Any]:
    """`slug` and `location` by their keys, others as those of Snyk: `org_id`, `targets`."""
    keys = {"slug": SLUG, "location": "backstage.io/source-location"}
    return {
        keys.get(name, f"snyk.io/{name.replace('_', '-')}"): value
        for name, value in annotations.items()
    }


def full() -> Organization:
    """An organization with a repository of two projects, and with much that is not of it."""
    return Organization(
        1,
        [
            Project(10, "acme/app", (1, 2, 3, 4)),
            Project(11, "Acme/App", (0, 10, 0, 5), origin="cli"),
            Project(12, "acme/app", (100, 0, 0, 0), status="inactive"),
            Project(13, "acme/app", (0, 1_000, 0, 0), origin="gitlab"),
            Project(20, "acme/clean"),
            Project(30, "acme/new", None),
            Project(
                40, "local", (0, 0, 7, 0), origin="cli", url="http://git.acme.test/acme/on.git"
            ),
            Project(50, "acme/old", (1, 1, 1, 1), status="inactive"),
            Project(60, "acme/bare", (0, 0, 0, 2), origin="github-enterprise", expands=False),
        ],
        [
            Issue(1, 10, "critical"),
            Issue(2, 10, "high", ignored=True),
            Issue(3, 10, "high", status="resolved"),
            Issue(4, 10, "info"),
            Issue(5, 10, "high"),
            Issue(6, 10, "low", scanned="environment"),
            Issue(7, 11, "low"),
            Issue(8, 12, "low"),
        ],
    )


def started(
    *organizations: Organization, token: Token | None = None, **table: Any
) -> tuple[FakeSnyk, Collector]:
    """A fake that holds these, or a full one and an empty one, and the integration that asks it."""
    fake = FakeSnyk(organizations or [full(), Organization(2)], [token or Token(KEY)])
    return fake, Collector(fake, Time(), **table)


def figures(critical: int, high: int, medium: int, low: int) -> dict[str, int]:
    """These figures and their total, by name."""
    total = critical + high + medium + low
    return {"total": total, "critical": critical, "high": high, "medium": medium, "low": low}
