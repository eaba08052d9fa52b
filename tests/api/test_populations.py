"""A figure has the number of entities that it is of, and its age, wherever it is shown."""

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import msgspec
import pytest

from factbook.api import openapi
from factbook.api.routes import list_routes
from factbook.checks import scorecard_figures
from factbook.clock import DAY
from factbook.settings import Settings
from factbook.tools.toolsets import list_toolsets
from factbook.web import routes
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
# Members of answers that sum up entities or results, and those that say as of when.
FIGURES = {*MEANS, "scored", "coverage", "counts", "groups", "passing"}
AGES = {"asOf", "timestamp", "date"}
# Macros and members of templates that do the same.
SUMS = re.compile(r"parts\.meter\(|\.(bars|rate)\(|\.(mean|coverage|passing|scored)\b")
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
    await service.state.database.write(
        lambda tx: scorecard_figures.record_trends(tx, service.time())
    )
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


@pytest.mark.slow
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


def answers() -> dict[str, Any]:
    """The JSON Schemas of REST answers and of the results of tools, by name."""
    document = openapi.build_document(
        list_routes(Settings()), title="", description="", public_url=None
    )
    schemas = {f"schema {name}": one for name, one in document["components"]["schemas"].items()}
    return schemas | {
        f"tool {one.name}": one.output_schema for served in list_toolsets() for one in served.tools
    }


def undated(schema: Any, schemas: Mapping[str, Any], *, dated: bool = False) -> Iterator[str]:
    """Figures in a JSON Schema for which no record around them says as of when they are."""
    if isinstance(schema, list):
        for part in schema:
            yield from undated(part, schemas, dated=dated)
    if not isinstance(schema, dict):
        return
    if "$ref" in schema:
        name = schema["$ref"].rpartition("/")[2]
        yield from undated(schemas[f"schema {name}"], schemas, dated=dated)
    members = schema.get("properties")
    if isinstance(members, dict):
        dated = dated or bool(AGES & members.keys())
        if not dated:
            yield from FIGURES & members.keys()
    for name, part in schema.items():
        if name != "example":
            yield from undated(part, schemas, dated=dated)


def answered(document: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    """The schema of each answer in JSON of each operation."""
    for path, operations in document["paths"].items():
        for method, operation in operations.items():
            for status, answer in operation.get("responses", {}).items():
                if status.startswith("2"):
                    for content in answer.get("content", {}).values():
                        yield f"{method} {path}", content.get("schema")


def test_every_answer_with_figures_says_as_of_when_they_are() -> None:
    document = openapi.build_document(
        list_routes(Settings()), title="", description="", public_url=None
    )
    schemas = answers()
    asked = dict(answered(document))
    asked |= {name: schema for name, schema in schemas.items() if name.startswith("tool ")}
    found = {
        (name, figure) for name, schema in asked.items() for figure in undated(schema, schemas)
    }
    assert found == set()


def test_every_template_with_figures_says_as_of_when_they_are() -> None:
    folder = Path(routes.__file__).parent / "templates"
    texts = {file.name: file.read_text("utf-8") for file in folder.glob("*.html")}
    lacking = {
        name for name, text in texts.items() if SUMS.search(text) and "parts.as_of(" not in text
    }
    # The figures of runs have the time of the run beside them; macros leave it to their pages.
    runs, macros = {"data-source.html", "data-sources.html"}, {"checks-parts.html"}
    assert lacking == {*runs, *macros, "overview-parts.html"}


def test_every_answer_with_a_mean_or_a_share_has_room_for_its_population() -> None:
    # A spread is part of a distribution, and the mean of a group is that of its known entities.
    alone = {("schema ValueSpread", "mean"), ("schema ValueSpread", "median")}
    lacking = {
        (name, mean)
        for name, schema in answers().items()
        for members in records(schema)
        for mean in MEANS & members.keys()
        if not POPULATIONS & members.keys()
    }
    assert lacking == alone
