"""A mean has the number of entities that it is of, of its own day, wherever it is shown."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import msgspec
import pytest

from factbook.api.openapi import openapi
from factbook.api.routes import all_routes
from factbook.checks.scorecards import trend
from factbook.clock import DAY
from factbook.settings import Settings
from factbook.tools.toolsets import toolsets
from tests.api.checking import CARDS, SCORECARDS, check, evaluated, put, scorecard, with_source
from tests.api.defining import item, push
from tests.api.messages import expect_result, message, tool_call
from tests.conftest import StartService
from tests.service import Service, component
from tests.web.scoring import group
from tests.web.visiting import signed_in

CHECK_TOOLS = "/api/mcp/v1/tech-insights-checks"
REPORTED = Path(__file__).parents[1] / "data/vendors/03-trend-and-rollup-without-population.json"
MEANS = {"score", "mean", "median", "percentage"}
POPULATIONS = {"scored", "known", "total", "coverage"}
ALL, WITH_SCORE, LATER = 33, 2, 5


@pytest.fixture
async def service(start: StartService) -> Service:
    """The catalog of the report: of two entities a score is known, of three more a day later."""
    service = await start()
    await with_source(service)
    entities = [component(f"c{number}") for number in range(ALL)]
    assert (await service.push("all", group("team-a"), *entities)).status_code == 200
    await push(service, *(item(f"component:c{number}", lines=10) for number in range(WITH_SCORE)))
    applies = {"kind": "component"}
    await put(service, check(appliesTo=applies), publish=True)
    card = scorecard("ready", appliesTo=applies)
    answer = await service.http.put(f"{SCORECARDS}/ready?publish=true", json=card)
    assert answer.status_code == 200, answer.text
    await evaluated(service)
    await service.state.database.write(lambda tx: trend.record(tx, service.time()))
    service.time.advance(DAY)
    more = (item(f"component:c{number}", lines=10) for number in range(WITH_SCORE, LATER))
    await push(service, *more)
    await evaluated(service)
    return service


async def ask(service: Service, tool: str, **arguments: Any) -> dict[str, Any]:
    asked = message("tools/call", tool_call(tool, arguments))
    result = expect_result(await service.http.post(CHECK_TOOLS, json=asked))
    found: dict[str, Any] = result["structuredContent"]
    return found


async def test_every_mean_has_its_population(service: Service) -> None:
    reported = msgspec.json.decode(REPORTED.read_bytes())
    [before] = reported["tool get-scorecard-rollup"]["groups"]
    given = {"scorecardId": "ready"}
    rollup = await ask(service, "get-scorecard-rollup", since="1d", **given)
    [team] = rollup["groups"]
    assert {name: team[name] for name in ("name", "score", "total")} == {
        name: before[name] for name in ("name", "score", "total")
    }
    assert (team["scored"], rollup["then"]["scored"]) == (LATER, WITH_SCORE)
    [card] = (await ask(service, "get-scorecard-discovery", **given))["scorecards"]
    assert (card["score"], card["scored"]) == (0.0, LATER)
    for path in (CARDS, f"{CARDS}/ready", f"{CARDS}/ready/rollup", f"{CARDS}/ready/trend"):
        answer = (await service.http.get(path)).json()
        [*_, figures] = next((part for part in answer.values() if type(part) is list), [answer])
        if path.endswith("/ready"):
            figures = answer
        assert (figures["score"], figures["scored"], figures["total"]) == (0.0, LATER, ALL), path


async def test_a_chart_has_the_population_of_each_day(service: Service) -> None:
    points = (await service.http.get(f"{CARDS}/ready/trend")).json()["points"]
    assert [(one["scored"], one["total"]) for one in points] == [(WITH_SCORE, ALL), (LATER, ALL)]
    browser = await signed_in(service, role="viewer")
    page = await browser.text("/scorecards/ready")
    assert "0% of 2 of 33 entities · 21 Nov" in page
    assert "0% of 5 of 33 entities · 22 Nov" in page
    for path in ("/", "/scorecards", "/catalog/group/default/team-a"):
        assert f"{LATER} of {ALL} entities" in await browser.text(path), path


def records(schema: Any) -> Iterator[Mapping[str, Any]]:
    """The members of every object in a JSON Schema."""
    if isinstance(schema, dict):
        if isinstance(schema.get("properties"), dict):
            yield schema["properties"]
        for part in schema.values():
            yield from records(part)
    elif isinstance(schema, list):
        for part in schema:
            yield from records(part)


def test_every_answer_with_a_mean_or_a_share_has_room_for_its_population() -> None:
    document = openapi.document(all_routes(Settings()), title="", description="", public_url=None)
    schemas = {f"schema {name}": one for name, one in document["components"]["schemas"].items()}
    schemas |= {
        f"tool {one.name}": one.output_schema for served in toolsets() for one in served.tools
    }
    # A spread is part of a distribution, and the mean of a group is that of its known entities.
    alone = {("schema ValueSpread", "mean"), ("schema ValueSpread", "median")}
    lacking = {
        (name, mean)
        for name, schema in schemas.items()
        for members in records(schema)
        for mean in MEANS & members.keys()
        if not POPULATIONS & members.keys()
    }
    assert lacking == alone
