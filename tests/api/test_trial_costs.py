"""What previews and pushes may cost whoever else uses the service: the attacks, made small."""

from typing import Any

import pytest

from tests.api.checking import CHECKS, RESULTS, check, evaluated, put
from tests.api.defining import refusal
from tests.api.test_entity_previews import PREVIEW
from tests.conftest import StartService
from tests.service import Service, component

# As long as a pattern may be, and never there: quick to search for, and half a million steps.
NEVER = "b" * 480
LONG = "a" * 1_000


def rule(pattern: str = NEVER) -> dict[str, Any]:
    return {
        "source": "entity",
        "fact": "metadata.description",
        "operator": "matches",
        "value": pattern,
    }


def described(number: int) -> dict[str, Any]:
    found = component(f"part-{number}")
    found["metadata"]["description"] = LONG
    return found


@pytest.fixture
async def service(start: StartService) -> Service:
    """Eleven checks with a pattern each."""
    service = await start()
    for number in range(11):
        await put(service, check(f"check-{number}", rule=rule()), publish=True)
    await evaluated(service)
    return service


async def test_a_preview_that_costs_too_much_is_refused_before_anything_is_evaluated(
    service: Service,
) -> None:
    items = [described(number) for number in range(50)]
    answer = await service.http.post(PREVIEW, json={"items": items})
    assert "The trial would take too long and wasn't evaluated" in refusal(answer, 400)
    answer = await service.http.post(PREVIEW, json={"items": items[:5]})
    assert answer.status_code == 200, answer.text


async def test_the_preview_of_a_check_that_costs_too_much_is_refused(
    service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert (await service.push("parts", *map(described, range(5)))).status_code == 200
    monkeypatch.setattr("factbook.checks.trials.MOST_STEPS", 2_000_000)
    asked = {"definition": check("new", rule=rule())}
    answer = await service.http.post(f"{CHECKS}/preview", json=asked)
    assert "The trial would take too long and wasn't evaluated" in refusal(answer, 400)
    asked = {"definition": check("new", rule=rule("^b"))}
    answer = await service.http.post(f"{CHECKS}/preview", json=asked)
    assert answer.json()["then"]["failing"] == 5


async def test_costly_checks_of_a_large_push_are_evaluated_after_it(service: Service) -> None:
    async def failing() -> int:
        query = {"state": "fail", "checkIds": "check-0"}
        answer = await service.http.get(RESULTS, params=query)
        return len(answer.json()["results"])

    assert (await service.push("parts", *map(described, range(12)))).status_code == 200
    before = await failing()
    await evaluated(service)
    assert (0 < before < 12, await failing()) == (True, 12)
