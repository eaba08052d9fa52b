"""The GitHub of the page of five minutes: one repository, and the token that the page shows."""

from collections.abc import Iterator
from contextlib import contextmanager

from factbook.clock import DAY, HOUR, now
from tests.fakes.github.app import FakeGitHub
from tests.fakes.github.state import Issue, Pull, Repository, Token
from tests.fakes.serving import served

TOKEN = "github_pat_yours"


@contextmanager
def github() -> Iterator[dict[str, str]]:
    """Variables with which a service finds this GitHub in the place of github.com."""
    today = now()
    fake = FakeGitHub([_repository(today)], [Token(TOKEN, reads_alerts=False)])
    with served(fake) as address:
        yield {
            "FACTBOOK_INTEGRATIONS__GITHUB__DEFAULT__API_URL": address,
            "FACTBOOK_INTEGRATIONS__GITHUB__DEFAULT__GRAPHQL_URL": f"{address}/graphql",
            "FACTBOOK_OUTGOING_NETWORKS": "127.0.0.0/8",
        }


def _repository(today: int) -> Repository:
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
