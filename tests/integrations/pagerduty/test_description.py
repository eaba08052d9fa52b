"""The requests and the fake's answers are those of PagerDuty's own description."""

import json
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from tests.fakes.faults import saying
from tests.fakes.pagerduty import ANALYTICS, Exchange, Key
from tests.integrations.pagerduty.asking import APP, EVERY, KEY, SERVICES, started

Json = dict[str, Any]
# It has no service without a policy.
SERVICES_WITH_POLICIES = [replace(one, policy="PPOLICY") for one in SERVICES]
_RIGHTS: tuple[set[str], ...] = (
    {"services", "analytics"},
    {"services", "incidents"},
    {"services"},
    set(),
)


@pytest.fixture(scope="module")
def description(test_data: Path) -> Json:
    """PagerDuty's description of its interface."""
    path = test_data / "api" / "pagerduty.json"
    if not path.is_file():
        pytest.skip(f"there is no description of PagerDuty's interface at {path}")
    found: Json = json.loads(path.read_text("utf-8"))
    return found


def without_nulls(value: Any) -> Any:
    """The value without members that are null: the description forgets that they may be.

    Its own example of an incident has `"resolved_at": null`, and its text speaks of null means.
    """
    if isinstance(value, list):
        return [without_nulls(one) for one in value]
    if isinstance(value, dict):
        return {name: without_nulls(one) for name, one in value.items() if one is not None}
    return value


class Checks:
    """Raises for a request or an answer that the description does not have."""

    def __init__(self, description: Json) -> None:
        self._description = description

    def __call__(self, exchange: Exchange) -> None:
        path = re.sub(r"^/services/.+", "/services/{id}", exchange.path)
        operation = self._description["paths"][path][exchange.method.lower()]
        parameters = {one["name"]: one for one in map(self._resolved, operation["parameters"])}
        for name, text in exchange.query:
            self._query(parameters[name]["schema"], text)
        for name, one in parameters.items():
            if one["in"] == "header" and one["required"]:
                assert exchange.headers[name.lower()] == one["schema"]["default"]
        if exchange.method == "POST":
            content = operation["requestBody"]["content"]["application/json"]
            self._validate(exchange.sent, content["schema"])
            known = self._description["components"]["schemas"]["AnalyticsModel"]["properties"]
            assert exchange.sent.keys() <= known.keys()
            assert exchange.sent["filters"].keys() <= known["filters"]["properties"].keys()
        if str(exchange.status) in operation["responses"]:
            answer = self._resolved(operation["responses"][str(exchange.status)])
        else:
            # The description forgets the limit of services, and what analytics may refuse.
            assert exchange.status in ({401, 402, 403} if path == ANALYTICS else {429})
            answer = self._description["components"]["responses"]["Forbidden"]
        self._validate(exchange.body, answer["content"]["application/json"]["schema"])

    def _query(self, schema: Json, text: str) -> None:
        value: Any = text
        if schema["type"] == "integer":
            value = int(text)
        if schema["type"] == "array":
            value = [text]
        self._validate(value, schema)

    def _validate(self, value: Any, schema: Json) -> None:
        whole = {"components": self._description["components"]} | schema
        jsonschema.validate(without_nulls(value), whole, cls=jsonschema.Draft202012Validator)

    def _resolved(self, part: Json) -> Json:
        if "$ref" not in part:
            return part
        found: Any = self._description
        for step in part["$ref"].removeprefix("#/").split("/"):
            found = found[step.replace("~1", "/")]
        return self._resolved(found)


@pytest.mark.slow
async def test_every_request_and_every_answer_fits_the_description(description: Json) -> None:
    seen: list[Exchange] = []
    keys = [Key(KEY, reads=set(rights)) for rights in _RIGHTS]
    keys += [Key("another"), Key(KEY, is_users=True), Key(KEY, plan_has_analytics=False)]
    for key in [*keys, Key(KEY, limit=0), Key(KEY, limit=1, reads={"analytics"})]:
        for targets in ((APP, "PGONE01"), EVERY):
            fake, asking = started(SERVICES_WITH_POLICIES, key=key)
            await asking.collect(*targets)
            seen += [one for one in fake.exchanges if (one.path, one.status) != ("/services", 429)]
            seen = [
                one for one in seen if not (one.path.startswith("/services/") and one.status == 429)
            ]
            key.used = 0
    check = Checks(description)
    for exchange in seen:
        check(exchange)
    assert {one.status for one in seen} == {200, 400, 401, 402, 403, 404, 429}
    assert {one.path for one in seen} == {
        "/services",
        f"/services/{APP}",
        "/services/PGONE01",
        "/incidents",
        ANALYTICS,
    }


@pytest.mark.parametrize(
    "change",
    [
        {"path": "/servicess"},
        {"query": [("limit", "many")]},
        {"query": [("sort_by", "id")]},
        {"headers": {}},
        {"body": {"services": [{"teams": 7}]}},
    ],
    ids=repr,
)
async def test_the_check_finds_what_does_not_fit(description: Json, change: Json) -> None:
    fake, asking = started(SERVICES_WITH_POLICIES)
    await asking.collect(*EVERY)
    exchange = fake.exchanges[0]
    Checks(description)(exchange)
    with pytest.raises((KeyError, ValueError, jsonschema.ValidationError)):
        Checks(description)(exchange._replace(**change))


async def test_the_key_is_in_its_header_and_nowhere_else() -> None:
    fake, asking = started()
    await asking.collect(*EVERY)
    assert fake.exchanges
    for exchange in fake.exchanges:
        sent = {name: value for name, value in exchange.headers.items() if KEY in value}
        assert sent == {"authorization": f"Token token={KEY}"}
        assert KEY not in f"{exchange.path} {exchange.query} {exchange.sent}"


@pytest.mark.spec("sources.credential-stays-with-its-host")
@pytest.mark.parametrize("status", [301, 302, 307, 308])
async def test_a_redirect_takes_the_key_nowhere(status: int) -> None:
    fake, asking = started()
    elsewhere = {"location": "https://evil.example.net/services"}
    fake.fail("services", saying({}, status, elsewhere))
    found = await asking.collect(*EVERY)
    assert "incident.serviceInfo" in found[APP].missing
    assert {one.headers["host"] for one in fake.exchanges} == {"api.pagerduty.com"}
