"""The fake says what GitHub says: statuses, texts, headers, pages."""

from collections.abc import AsyncIterator
from dataclasses import replace
from typing import Any

import httpx2
import pytest

from factbook.clock import SECOND
from tests.fakes.github.app import FakeGitHub
from tests.fakes.github.faults import secondary_limit
from tests.fakes.github.state import Repository, Token
from tests.integrations.github.asking import APP, TOKEN, full
from tests.service import NOON

REPOSITORY = f"/repos/{APP}"


@pytest.fixture
def fake() -> FakeGitHub:
    tokens = [
        Token(TOKEN),
        Token("reader", permission="READ"),
        Token("app", is_app=True, reads_administration=False),
    ]
    unprotected = replace(full(), name="acme/open", classic=None, has_alerts=False)
    free = replace(full(), name="acme/free", plan_has_protection=False)
    renamed = replace(full(), name="acme/new", old_names=["acme/old"])
    empty = Repository("acme/empty", commits=0)
    held = [full(), unprotected, free, renamed, empty]
    return FakeGitHub(held, tokens, clock=lambda: NOON)


@pytest.fixture
async def http(fake: FakeGitHub) -> AsyncIterator[httpx2.AsyncClient]:
    async with httpx2.AsyncClient(
        transport=httpx2.ASGITransport(fake), base_url="https://api.github.com"
    ) as client:
        yield client


async def asked(
    http: httpx2.AsyncClient, path: str, token: str = TOKEN, **headers: str
) -> httpx2.Response:
    return await http.get(path, headers={"authorization": f"Bearer {token}", **headers})


async def test_a_refusal_has_githubs_status_and_text(
    subtests: pytest.Subtests, http: httpx2.AsyncClient
) -> None:
    cases = [
        (f"{REPOSITORY}/branches/main/protection", "nobody", 401, "Bad credentials"),
        (f"{REPOSITORY}/branches/main/protection", "reader", 404, "Not Found"),
        (
            f"{REPOSITORY}/branches/main/protection",
            "app",
            403,
            "Resource not accessible by integration",
        ),
        ("/repos/acme/open/branches/main/protection", TOKEN, 404, "Branch not protected"),
        (
            "/repos/acme/free/branches/main/protection",
            TOKEN,
            403,
            "Upgrade to GitHub Pro or make this repository public to enable this feature.",
        ),
        (
            f"{REPOSITORY}/dependabot/alerts",
            "reader",
            403,
            "Resource not accessible by personal access token",
        ),
        (
            "/repos/acme/open/dependabot/alerts",
            TOKEN,
            403,
            "Dependabot alerts are disabled for this repository.",
        ),
        ("/repos/acme/empty/git/trees/main?recursive=1", TOKEN, 409, "Git Repository is empty."),
        ("/repos/acme/nowhere/git/trees/main", TOKEN, 404, "Not Found"),
        (f"{REPOSITORY}/contents/missing.py", TOKEN, 404, "Not Found"),
        ("/repos/acme/old/contents/src/app.py", TOKEN, 301, "Moved Permanently"),
    ]
    for path, token, status, message in cases:
        with subtests.test(path=path, token=token):
            answer = await asked(http, path, token)
            assert (answer.status_code, answer.json()["message"]) == (status, message)


async def test_an_answer_that_still_holds_costs_nothing(
    http: httpx2.AsyncClient, fake: FakeGitHub
) -> None:
    path = f"{REPOSITORY}/contents/src/app.py"
    first = await asked(http, path)
    second = await asked(http, path, **{"if-none-match": first.headers["etag"]})
    assert (first.status_code, second.status_code) == (200, 304)
    assert second.headers["x-ratelimit-remaining"] == first.headers["x-ratelimit-remaining"]
    assert second.headers["x-ratelimit-resource"] == "core"
    assert int(second.headers["x-ratelimit-reset"]) * SECOND > NOON
    assert fake.not_modified == 1


async def test_alerts_come_in_pages(http: httpx2.AsyncClient) -> None:
    numbers: list[Any] = []
    path: str | None = f"{REPOSITORY}/dependabot/alerts?per_page=5"
    while path:
        answer = await asked(http, path)
        numbers += [alert["number"] for alert in answer.json()]
        link = answer.links.get("next")
        path = link["url"] if link else None
    assert numbers == list(range(1, 15))


async def test_a_redirect_of_an_old_name_leads_to_the_repository(http: httpx2.AsyncClient) -> None:
    moved = await asked(http, "/repos/acme/old/contents/src/app.py")
    answer = await asked(http, moved.headers["location"])
    assert answer.json()["path"] == "src/app.py"


async def test_limits_are_refused_in_the_way_of_each_interface(
    http: httpx2.AsyncClient, fake: FakeGitHub
) -> None:
    fake.tokens[TOKEN].limits = {"core": 0, "graphql": 0}
    rest = await asked(http, f"{REPOSITORY}/contents/src/app.py")
    assert (rest.status_code, rest.headers["x-ratelimit-remaining"]) == (403, "0")
    graphql = await http.post(
        "/graphql",
        json={"query": "{ rateLimit { cost } }", "variables": {}},
        headers={"authorization": f"Bearer {TOKEN}"},
    )
    assert (graphql.status_code, graphql.headers["x-ratelimit-remaining"]) == (200, "0")
    assert [error["type"] for error in graphql.json()["errors"]] == ["RATE_LIMITED"]


async def test_a_secondary_limit_says_how_long_to_wait(
    http: httpx2.AsyncClient, fake: FakeGitHub
) -> None:
    fake.fail("contents", secondary_limit)
    answer = await asked(http, f"{REPOSITORY}/contents/src/app.py")
    assert (answer.status_code, answer.headers["retry-after"]) == (403, "60")
    assert "secondary rate limit" in answer.json()["message"]
