"""What people ask every day of 2,000 components: two calls at most, and 2,000 tokens."""

from collections.abc import Sequence
from typing import Any

import pytest

from factbook.integrations import SOURCES
from tests.conftest import StartService
from tests.service import Service
from tests.tools import everyday
from tests.tools.checks import structured
from tests.tools.everyday import HOST, SCANNER, name

FIND = "find-entities"
ONE = "get-entity"
ALL = "get-all-entities-facts"
UNPROTECTED = {"fact": "branchProtection.enabled", "operator": "equal", "value": False}
CRITICAL = {"fact": "scannerIssues.critical", "operator": "greaterThan", "value": 0}
FAILING = {"source": "checks", "fact": "protected", "operator": "equal", "value": "fail"}

Answer = dict[str, Any]
Call = tuple[str, dict[str, Any]]


def refs(answer: Answer) -> list[str]:
    return [one["entityRef"] for one in answer["entities"]]


def numbers(wanted: Any) -> list[int]:
    return [number for number in range(everyday.COMPONENTS) if wanted(number)]


def owned(number: int) -> bool:
    return number % 400 != 9 and number % 500 != 7


def of(found: Sequence[int]) -> list[str]:
    return sorted(f"component:default/{name(number)}" for number in found)


async def ask(service: Service, *calls: Call) -> list[Answer]:
    """The answers, which together are short."""
    answers, size = [], 0
    for tool, arguments in calls:
        result = await service.ask(tool, **arguments)
        answers.append(structured(tool, result))
        size += len(result["content"][0]["text"].encode())
    assert len(calls) <= 2
    assert size / 4 <= 2_000, f"{size / 4:.0f} tokens"
    return answers


@pytest.fixture
async def company(start: StartService) -> Service:
    service = await start(sources=[*SOURCES, HOST, SCANNER])
    await everyday.fill(service)
    return service


@pytest.mark.slow
@pytest.mark.spec("tools.find.everyday-questions")
async def test_the_everyday_questions_are_answered_in_two_short_calls(company: Service) -> None:
    assert len(_QUESTIONS) == 11
    for question in _QUESTIONS:
        await question(company)


async def what_depends_on_it(company: Service) -> None:
    [found] = await ask(company, (ONE, {"name": name(3)}))
    wanted = of(numbers(lambda number: number // 7 == 3))
    assert found["relations"]["dependencyOf"] == {"total": 7, "targets": wanted}
    query = {"relations.dependsOn": f"component:default/{name(3)}"}
    [listed] = await ask(company, (FIND, {"query": query}))
    assert refs(listed) == wanted


async def who_owns_it_and_how_to_reach_them(company: Service) -> None:
    [found] = await ask(company, (ONE, {"name": name(3)}))
    assert found["owner"]["entityRef"] == "group:default/team-03"
    reached = found["owner"]["writtenByOthers"]
    assert reached["email"] == "team-03@example.org"
    assert reached["annotations"] == {"slack.com/channel": "#team-03"}


async def components_of_a_team_without_protection(company: Service) -> None:
    asked = {"owner": "payments", "kind": "component", "where": UNPROTECTED}
    [found] = await ask(company, (FIND, asked))
    mine = numbers(lambda n: owned(n) and n % everyday.TEAMS < 4)
    bare = [number for number in mine if number % 10 and number % 7 == 0]
    assert found["total"] == len(bare)
    assert refs(found) == of(bare)[:25]
    # The source isn't about components without its annotation, of which there are some.
    assert any(number % 10 == 0 for number in mine)
    assert found["unknown"] == 0
    assert bare


async def anything_named_pay(company: Service) -> None:
    [found] = await ask(company, (FIND, {"text": "pay"}))
    assert found["total"] == everyday.COMPONENTS // 8 + 1
    assert all("pay" in one for one in refs(found))


async def how_many_there_are_of_each_type(company: Service) -> None:
    [found] = await ask(company, (FIND, {"kind": "component", "groupBy": "type"}))
    assert found["groups"] == [
        {"value": "service", "count": 1_200},
        {"value": "library", "count": 400},
        {"value": "website", "count": 400},
    ]
    assert found["total"] == everyday.COMPONENTS


async def which_have_critical_findings(company: Service) -> None:
    [found] = await ask(company, (FIND, {"where": CRITICAL, "kind": "component"}))
    assert refs(found) == of(numbers(lambda number: number % 200 == 5))
    assert found["entities"][0]["values"] == {"security.scannerIssues.critical": 3}
    assert found["unknown"] == 100


async def which_fail_a_check(company: Service) -> None:
    asked = {"where": FAILING, "limit": 20}
    [found] = await ask(company, (FIND, asked))
    assert found["total"] == len(numbers(lambda number: number % 10 and number % 7 == 0))


async def the_level_of_it_and_what_is_missing(company: Service) -> None:
    [found] = await ask(company, (ONE, {"name": name(14)}))
    [level] = found["levels"]
    assert level["level"] == "none"
    assert (level["nextLevel"], level["missing"]) == ("bronze", ["protected"])
    assert [one["check"] for one in found["checks"]["failing"]] == ["protected"]


async def which_have_no_owner_or_one_that_does_not_exist(company: Service) -> None:
    asked = [(FIND, {"ownership": one, "kind": "component"}) for one in ("none", "missing")]
    none, missing = await ask(company, *asked)
    assert refs(none) == of(numbers(lambda number: number % 400 == 9))
    assert refs(missing) == of(numbers(lambda number: number % 500 == 7))


async def what_is_deprecated_and_has_dependents(company: Service) -> None:
    asked = {"lifecycle": "deprecated", "query": {"relations.dependencyOf": {"$exists": True}}}
    [found] = await ask(company, (FIND, asked))
    assert refs(found) == of(numbers(lambda number: number % 100 == 3 and number * 7 < 2_000))


async def the_facts_of_a_systems_components(company: Service) -> None:
    asked = {
        "where": {"fact": "pullRequests.open", "operator": "isKnown"},
        "system": "system-03",
    }
    [found] = await ask(company, (FIND, asked))
    wanted = numbers(lambda number: number % everyday.SYSTEMS == 3)
    assert refs(found) == of(wanted)[:25]
    assert found["total"] == len(wanted)
    first = int(found["entities"][0]["entityRef"].rpartition("-")[2])
    assert found["entities"][0]["values"] == {"codehost.pullRequests.open": first % 13}


_QUESTIONS = (
    what_depends_on_it,
    who_owns_it_and_how_to_reach_them,
    components_of_a_team_without_protection,
    anything_named_pay,
    how_many_there_are_of_each_type,
    which_have_critical_findings,
    which_fail_a_check,
    the_level_of_it_and_what_is_missing,
    which_have_no_owner_or_one_that_does_not_exist,
    what_is_deprecated_and_has_dependents,
    the_facts_of_a_systems_components,
)
