"""The requests and the fake's answers are those of Datadog's own description of the interface."""

import json
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from tests.fakes.datadog import Exchange, Monitor
from tests.fakes.faults import saying
from tests.integrations.datadog.asking import APP, KEYS, known, started

Json = dict[str, Any]


@pytest.fixture(scope="module")
def description(test_data: Path) -> Json:
    """Datadog's description of its interface, with `nullable` as JSON Schema says it."""
    path = test_data / "api" / "datadog.json"
    if not path.is_file():
        pytest.skip(f"there is no description of Datadog's interface at {path}")
    found: Json = _with_nulls(json.loads(path.read_text("utf-8")))
    return found


def _with_nulls(part: Any) -> Any:
    if isinstance(part, list):
        return [_with_nulls(one) for one in part]
    if not isinstance(part, dict):
        return part
    found = {name: _with_nulls(one) for name, one in part.items()}
    return {"anyOf": [found, {"type": "null"}]} if found.pop("nullable", False) is True else found


def check(description: Json, exchange: Exchange) -> None:
    """Raise for a request or an answer that the description does not have."""
    operation = description["paths"][exchange.path]["get"]
    parameters = {one["name"]: one["schema"] for one in operation["parameters"]}
    for name, text in exchange.query:
        value = json.loads(text) if parameters[name]["type"] == "integer" else text
        jsonschema.validate(value, parameters[name], cls=jsonschema.Draft202012Validator)
    for scheme in description["security"][0]:
        header = description["components"]["securitySchemes"][scheme]["name"]
        assert exchange.headers[header.lower()] in KEYS.values()
    answer = operation["responses"][str(exchange.status)]
    if "$ref" in answer:
        answer = description["components"]["responses"][answer["$ref"].rpartition("/")[2]]
    schema = {"components": description["components"]} | answer["content"]["application/json"][
        "schema"
    ]
    jsonschema.validate(exchange.body, schema, cls=jsonschema.Draft202012Validator)


@pytest.mark.slow
async def test_every_request_and_every_answer_fits_the_description(description: Json) -> None:
    seen: list[Exchange] = []
    monitors = [Monitor(number, ("service:app",)) for number in range(501)]
    wrong = known()
    wrong.api = "another"
    for keys in (known(), known("monitors"), known(limit=1), known(limit=0), wrong):
        fake, asking = started(monitors, keys=keys)
        await asking.one(APP)
        seen += fake.exchanges
    for exchange in seen:
        check(description, exchange)
    assert {exchange.status for exchange in seen} == {200, 403, 429}
    assert {exchange.path for exchange in seen} == {"/api/v1/monitor", "/api/v1/slo"}


async def test_the_keys_are_in_their_headers_and_nowhere_else(description: Json) -> None:
    fake, asking = started()
    await asking.one(APP)
    for exchange in fake.exchanges:
        sent = {name: value for name, value in exchange.headers.items() if value in KEYS.values()}
        assert sent == {
            "dd-api-key": KEYS["api_key"],
            "dd-application-key": KEYS["application_key"],
        }
        assert not any(key in str(exchange.query) for key in KEYS.values())


async def test_a_redirect_takes_the_keys_nowhere() -> None:
    fake, asking = started()
    elsewhere = {"location": "https://evil.example.net/api/v1/monitor"}
    fake.fail("monitors", saying([], 302, elsewhere))
    found = await asking.one(APP)
    assert "observability.monitorCount" in found.missing
    assert {one.headers["host"] for one in fake.exchanges} == {"api.datadoghq.com"}
