"""Requests are those of Gitea's own description, and bad answers cost only what they concern."""

import json
from pathlib import Path
from typing import Any

import jsonschema
import msgspec
import pytest

from factbook.clock import HOUR, MINUTE
from factbook.integrations.gitea import BATCH
from factbook.integrations.gitea.api import ProtectionRule
from tests.fakes import faults
from tests.fakes.faults import saying
from tests.fakes.gitea.app import Exchange
from tests.fakes.gitea.state import RULE, Repository, Token
from tests.integrations.gitea.asking import APP, EVERYTHING, NEVER_SAID, TOKEN, full, started

Json = dict[str, Any]
# What is lost when the answers to one question are of no use.
LOST = {
    "pulls": ("codehost.pullRequests", "codehost.mergeTime", "codehost.latestMergedPR"),
    "issues": ("codehost.issues",),
    "languages": ("codehost.collaboration.languages",),
    "collaborators": ("codehost.collaboration.collab",),
    "branch": ("codehost.branchProtection", "codehost.codeReview", "security", "repository"),
    "rules": (
        "codehost.branchProtection.allowForce",
        "codehost.branchProtection.enforce",
        "codehost.branchProtection.requiredSignatures",
        "codehost.codeReview.dismiss",
        "codehost.codeReview.requireCode",
        "codehost.codeReview.strict",
    ),
    "tree": ("codehost.codeReview.usesCodeowners", "codehost.codeReview.codeowners", "repository"),
}
ODD: list[Any] = [
    None,
    7,
    "text",
    [7],
    [{}],
    {"message": "Hello"},
    {"tree": "text"},
    {"commit": {"id": "../../x"}, "protected": True},
    [{"number": "1"}],
    [{"login": None}],
    {"Python": "much"},
    [{"rule_name": "ma*", "required_approvals": "two"}],
]


@pytest.fixture(scope="module")
def description(test_data: Path) -> Json:
    """Gitea's description of its interface."""
    path = test_data / "api" / "gitea.json"
    if not path.is_file():
        pytest.skip(f"there is no description of Gitea's interface at {path}")
    found: Json = json.loads(path.read_text("utf-8"))
    return found


def check(description: Json, exchange: Exchange) -> str:
    """The path of the description that a request fits; raises where it does not."""
    sent = exchange.path.removeprefix("/api/v1").split("/")
    for path, operations in description["paths"].items():
        parts = path.split("/")
        pairs = list(zip(parts, sent, strict=False))
        if len(parts) != len(sent) or any(one != two for one, two in pairs if one[:1] != "{"):
            continue
        operation = operations["get"]
        known = {one["name"]: one["schema"] for one in operation["parameters"]}
        for name, text in exchange.query:
            is_text = known[name]["type"] == "string"
            value = text if is_text else json.loads(text)
            jsonschema.validate(value, known[name], format_checker=jsonschema.FormatChecker())
        assert exchange.status != 200 or "200" in operation["responses"]
        return str(path)
    raise AssertionError(f"the description has no {exchange.path}")


async def test_every_request_fits_the_description(description: Json) -> None:
    fake, collector = started(full())
    await collector.one()
    found = {check(description, exchange) for exchange in fake.exchanges}
    repository = "/repos/{owner}/{repo}"
    parts = ("", "/pulls", "/issues", "/languages", "/collaborators", "/branches/{branch}")
    trees = ("/branch_protections", "/git/trees/{sha}")
    assert found == {f"{repository}{part}" for part in parts + trees}
    limits = {value for one in fake.exchanges for name, value in one.query if name == "limit"}
    assert limits == {"1", "50"}


def test_the_words_of_rules_are_those_of_the_description(description: Json) -> None:
    schemas = description["components"]["schemas"]
    known = schemas["CreateBranchProtectionOption"]["properties"]
    read = {field.name for field in msgspec.structs.fields(ProtectionRule)}
    assert read - known.keys() == {"apply_to_admins"}
    for name, value in RULE.items():
        jsonschema.validate(value, known[name])


async def test_the_token_is_in_its_header_and_nowhere_else() -> None:
    fake, collector = started(full())
    found = await collector.one()
    assert {one.headers["authorization"] for one in fake.exchanges} == {f"token {TOKEN}"}
    assert {one.headers["host"] for one in fake.exchanges} == {"git.example.com"}
    assert not any(TOKEN in f"{one.path}{one.query}" for one in fake.exchanges)
    assert TOKEN not in f"{found!r} {collector.integration!r} {collector.memory.kept!r}"


@pytest.mark.spec("sources.credential-stays-with-its-host")
async def test_a_redirect_takes_the_token_nowhere() -> None:
    fake, collector = started(full())
    elsewhere = {"location": "https://evil.example.net/api/v1/repos/acme/app"}
    fake.fail("repository", saying({}, 307, elsewhere))
    found = await collector.one()
    assert found.passing == {""}
    assert sum(fake.requests.values()) == 1


@pytest.mark.slow
async def test_a_bad_answer_costs_what_it_concerns_for_a_while_and_nothing_else(
    subtests: pytest.Subtests,
) -> None:
    for kind in ("repository", *LOST):
        with subtests.test(kind=kind):
            lost = tuple(EVERYTHING) if kind == "repository" else LOST[kind]
            kept = {name: value for name, value in EVERYTHING.items() if not name.startswith(lost)}
            broken = (faults.unavailable, faults.not_json, faults.cut_off)
            for fault in (*broken, *map(saying, ODD)):
                fake, collector = started(full())
                fake.fail(kind, fault, times=1_000)
                found = await collector.one()
                assert found.values == kept
                assert found.passing >= found.missing.keys() - NEVER_SAID


async def test_a_branch_or_a_name_that_leads_astray_is_not_asked_for() -> None:
    body = {"id": 1, "empty": False, "full_name": APP, "default_branch": ".."}
    fake, collector = started(full())
    fake.fail("repository", saying(body))
    found = await collector.one()
    assert found.reasons["repository"] == "upstream-error: answered in an unknown format"
    assert fake.requests["branch"] == 0
    for name in ("acme/..", "../app", "acme/app/more", "acme", "acme/app\n", "a/b?c"):
        fake.fail("repository", saying(body | {"full_name": name}))
        assert (await collector.one()).passing == {""}
    assert fake.requests["other"] == 0


async def test_a_limit_in_the_middle_is_respected_and_leaves_what_was_read() -> None:
    fake, collector = started(full(), token=Token(TOKEN))
    fake.limit = 5
    found = await collector.one()
    assert sum(fake.requests.values()) == 6
    assert found.values["codehost.pullRequests.merged"] == 3
    assert found.values["codehost.issues.open"] == 1
    words = {reason.partition(":")[0] for reason in found.reasons.values()}
    assert words == {"rate-limited"}
    assert found.passing == set(found.missing)
    fake.limit = None
    collector.time.advance(MINUTE)
    assert (await collector.one()).values == EVERYTHING


@pytest.mark.slow
async def test_30_repositories_take_eleven_calls_each_and_again_ten() -> None:
    names = [f"acme/app-{number:03}" for number in range(30)]
    repositories = [Repository(name, rule=RULE, files=["README.md"]) for name in names]
    fake, collector = started(*repositories)
    batches = collector.integration.batches([*names, names[0]])
    assert [len(batch) for batch in batches] == [BATCH] * 3
    await collector.collect(*names)
    assert sum(fake.requests.values()) == 30 * 11
    collector.time.advance(HOUR)
    fake.requests.clear()
    found = await collector.collect(*names)
    assert sum(fake.requests.values()) == 30 * 10
    assert {one.values["repository.totalFiles"] for one in found.values()} == {1}


async def test_a_repository_that_is_missing_costs_the_others_nothing() -> None:
    _, collector = started(full())
    found = await collector.collect(APP, "acme/gone")
    assert found[APP].values == EVERYTHING
    assert found["acme/gone"].reasons[""].startswith("not-found")
