"""What authors of checks may read: no rule tells them values that they may not see."""

from typing import Any

import pytest

from tests.api.checking import (
    CHECKS,
    COVERED,
    OWNED,
    SCORECARDS,
    check,
    put,
    scorecard,
    with_source,
)
from tests.conftest import StartService
from tests.service import Service

WRITE = "tech-insights.check.write"
READ = "tech-insights.check.read"
SOURCES = "tech-insights.data-source.read"
CATALOG = "catalog.entity.read"
LINES = {"source": "coverage", "fact": "lines"}
OF_CHECK = {"source": "checks", "fact": "covered", "operator": "equal", "value": "pass"}


@pytest.fixture
async def service(start: StartService) -> Service:
    service = await start()
    await with_source(service)
    await put(service, check())
    return service


async def test_who_may_not_read_what_a_check_reads_cannot_save_it(
    service: Service, subtests: pytest.Subtests
) -> None:
    cases: list[tuple[dict[str, Any], list[str]]] = [
        ({"rule": COVERED}, [SOURCES]),
        ({"rule": OWNED}, [CATALOG]),
        ({"rule": OF_CHECK}, [READ]),
        ({"rule": {"not": {"any": [OWNED, COVERED]}}}, [CATALOG, SOURCES]),
        ({"rule": {**OWNED, "operator": "equal", "value": LINES}}, [CATALOG, SOURCES]),
        ({"rule": OF_CHECK, "applicableWhen": COVERED}, [READ, SOURCES]),
        ({"rule": OF_CHECK, "appliesTo": {"kind": "component"}}, [CATALOG, READ]),
        ({"rule": OF_CHECK, "messages": {"fail": "{{ metadata.name }}"}}, [CATALOG, READ]),
        ({"rule": OF_CHECK, "fix": {"link": "https://ci.test/{{ spec.owner }}"}}, [CATALOG, READ]),
        (
            {"rule": OF_CHECK, "messages": {"pass": "{{ facts.coverage['lines'] }}"}},
            [READ, SOURCES],
        ),
    ]
    for number, (members, missing) in enumerate(cases):
        with subtests.test(members=members):
            document = check(f"spy-{number}", **members)
            address = f"{CHECKS}/spy-{number}"
            async with service.client(await service.token(WRITE)) as http:
                for answer in (
                    await http.post(CHECKS, json=document),
                    await http.put(address, json=document),
                    await http.put(address, json=document, params={"publish": "true"}),
                ):
                    assert answer.status_code == 403
                    assert all(name in answer.text for name in missing)
            assert (await service.http.get(address)).status_code == 404
            token = await service.token(WRITE, *missing)
            async with service.client(token) as http:
                made = await http.put(address, json=document)
            assert made.status_code == 200, made.text


async def test_who_may_not_read_a_source_learns_nothing_of_it_from_refusals(
    service: Service,
) -> None:
    rules = [COVERED, {**COVERED, "source": "covrage"}, {**COVERED, "operator": "contains"}]
    async with service.client(await service.token(WRITE, CATALOG)) as http:
        answers = [await http.post(CHECKS, json=check("spy", rule=rule)) for rule in rules]
    assert {one.status_code for one in answers} == {403}
    assert len({one.text.partition("requestId")[0] for one in answers}) == 1


async def test_who_may_not_read_the_catalog_cannot_count_entities_by_scorecards(
    service: Service,
) -> None:
    everything = scorecard()
    some = scorecard(appliesTo={"metadata.name": "secret"})
    writes = "tech-insights.scorecard.write"
    async with service.client(await service.token(writes, READ)) as http:
        assert (await http.put(f"{SCORECARDS}/readiness", json=some)).status_code == 403
        assert (await http.put(f"{SCORECARDS}/readiness", json=everything)).status_code == 200
    async with service.client(await service.token(writes, CATALOG)) as http:
        assert (await http.put(f"{SCORECARDS}/readiness", json=some)).status_code == 200


async def test_previews_are_for_who_may_read_sources(service: Service) -> None:
    for names in ((WRITE,), (WRITE, READ), (WRITE, READ, CATALOG)):
        async with service.client(await service.token(*names)) as http:
            answer = await http.post(f"{CHECKS}/preview", json={"checkId": "covered"})
            assert answer.status_code == 403
