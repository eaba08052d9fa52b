"""The GitHub of pages: an organization, and the token that the pages show."""

from collections.abc import Iterator
from contextlib import contextmanager

from factbook.clock import DAY, HOUR, now
from tests.fakes.github.app import FakeGitHub
from tests.fakes.github.state import Issue, Member, Pull, Repository, Team, Token
from tests.fakes.serving import served

TOKEN = "github_pat_yours"
_SHOP = b"""apiVersion: backstage.io/v1alpha1
kind: Component
metadata: {name: shop}
spec: {type: website, lifecycle: production, owner: web}
"""


@contextmanager
def organization() -> Iterator[dict[str, str]]:
    """Variables with which a service finds this GitHub in the place of github.com."""
    several = [
        Repository("acme/shop", texts={"catalog-info.yaml": _SHOP}),
        Repository("acme/basket", texts={"catalog-info.yaml": _SHOP + b"spec\n"}),
        _checkout(now()),
        Repository("acme/search", languages=["Python"]),
        Repository("acme/till", is_archived=True),
    ]
    fake = FakeGitHub(several, [Token(TOKEN, reads_alerts=False)])
    fake.teams = [
        Team("web", 1, ["alice"], {"acme/checkout": "ADMIN"}),
        Team("search", 2, ["bob"], {"acme/search": "ADMIN"}),
    ]
    fake.members = [Member("alice", 1, "Alice"), Member("bob", 2, "Bob")]
    with served(fake) as address:
        yield {
            "FACTBOOK_INTEGRATIONS__GITHUB__DEFAULT__API_URL": address,
            "FACTBOOK_INTEGRATIONS__GITHUB__DEFAULT__GRAPHQL_URL": f"{address}/graphql",
            "FACTBOOK_OUTGOING_NETWORKS": "127.0.0.0/8",
        }


def _checkout(today: int) -> Repository:
    return Repository(
        "acme/checkout",
        pulls=[
            Pull(1, "Take cards", today - 70 * DAY, today - 69 * DAY, today - 69 * DAY, "bob"),
            Pull(2, "Fix rounding", today - 3 * DAY, today - 3 * DAY + 6 * HOUR, today - DAY),
            Pull(3, "Retry on timeout", today - DAY, is_open=True),
        ],
        issues=[Issue(4), Issue(5, closed_at=today - 5 * DAY)],
        languages=["Python", "Shell"],
        collaborators=["alice", "bob"],
        files=[".github/CODEOWNERS", "Dockerfile", "README.md", "src/app.py"],
        classic={"requiredApprovingReviewCount": 1},
        codeowners_errors=0,
    )
