"""Every request fits Snyk's own descriptions of its interface, and so does every fake answer."""

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from referencing import Registry
from referencing.jsonschema import DRAFT202012
from starlette.requests import Request
from starlette.responses import Response

from tests.fakes.fake import path_of
from tests.fakes.faults import Answer
from tests.fakes.snyk import FakeSnyk, Issue, Organization, Project, Token
from tests.integrations.snyk.asking import ACME, KEY, Collector, full
from tests.service import Time

Json = Any


class Recorded(FakeSnyk):
    """A fake that keeps what was asked and answered: kind, path, query, status and body."""

    def __init__(self, *organizations: Organization, token: Token) -> None:
        super().__init__(organizations, [token])
        self.calls: list[tuple[str, str, dict[str, str], int, Json]] = []
        for kind in ("projects", "issues"):
            self.fail(kind, self._kept, times=1_000)

    async def _kept(self, request: Request, answer: Answer) -> Response:
        response = await answer(request)
        query = dict(request.query_params)
        body = json.loads(bytes(response.body))
        kind = self.kind(request)
        self.calls.append((kind, path_of(request), query, response.status_code, body))
        return response


@pytest.fixture(scope="module")
def descriptions(test_data: Path) -> dict[str, Json]:
    """The descriptions of both listings."""
    found = {kind: test_data / "api" / f"snyk-{kind}.json" for kind in ("projects", "issues")}
    if not all(path.is_file() for path in found.values()):
        pytest.skip("api/snyk-projects.json and api/snyk-issues.json are not in the test data")
    return {kind: json.loads(path.read_text("utf-8")) for kind, path in found.items()}


@pytest.mark.slow
@pytest.mark.parametrize("token", [Token(KEY), Token(KEY, plan_has_api=False), Token("another")])
async def test_requests_and_answers_are_as_described(
    descriptions: dict[str, Json], token: Token
) -> None:
    many = [Project(number, "acme/app", origin="cli") for number in range(100, 210)]
    issues = [Issue(number, 10, "low") for number in range(100, 210)]
    whole = full()
    fake = Recorded(Organization(1, whole.projects + many, whole.issues + issues), token=token)
    collector = Collector(fake, Time(), organizations=[ACME], exact=True)
    said = await collector.said(slug="acme/app")
    allowed = token == Token(KEY)
    assert isinstance(said, dict) is allowed
    assert len(fake.calls) == (11 if allowed else 1)
    for kind, path, query, status, body in fake.calls:
        check(descriptions[kind], kind, path, query, status, body)


def test_what_is_not_as_described_is_noticed(descriptions: dict[str, Json]) -> None:
    good = {"version": "2024-10-15", "limit": "100"}
    path = f"/rest/orgs/{ACME}/projects"
    wrong: list[tuple[dict[str, str], Json]] = [
        ({"limit": "100"}, {}),
        (good | {"limit": "99"}, {}),
        (good | {"page": "1"}, {}),
        (good, {"data": [{}]}),
    ]
    for query, body in wrong:
        with pytest.raises((AssertionError, jsonschema.ValidationError)):
            check(descriptions["projects"], "projects", path, query, 200, body)


def check(
    document: Json, kind: str, path: str, query: dict[str, str], status: int, body: Json
) -> None:
    """Raise AssertionError or ValidationError for what the description does not allow."""
    named = f"/orgs/{{org_id}}/{kind}"
    assert path == f"/rest/orgs/{ACME}/{kind}"
    operation = document["paths"][named]["get"]
    parameters = {
        one["name"]: one for one in _parameters(document, operation) if one["in"] != "path"
    }
    needed = {name for name, one in parameters.items() if one.get("required")}
    assert needed <= query.keys() <= parameters.keys()
    for name, text in query.items():
        schema = parameters[name]["schema"]
        _validate(document, schema, _value(schema, text))
    answer = _resolved(document, operation["responses"][str(status)])
    _validate(document, answer["content"]["application/vnd.api+json"]["schema"], body)


def _parameters(document: Json, operation: Json) -> Iterator[Json]:
    return (_resolved(document, one) for one in operation["parameters"])


def _resolved(document: Json, value: Json) -> Json:
    for part in value.get("$ref", "").split("/")[1:]:
        document = document[part]
    return document if "$ref" in value else value


def _value(schema: Mapping[str, Any], text: str) -> Json:
    """A query parameter's value, as its schema says it is written."""
    if schema.get("type") == "array":
        return text.split(",")
    if schema.get("type") == "integer":
        return int(text)
    return {"true": True, "false": False}[text] if schema.get("type") == "boolean" else text


def _validate(document: Json, schema: Json, value: Json) -> None:
    """The schema's references are to the document."""
    registry: Registry[Json] = Registry().with_resource(
        "urn:snyk", DRAFT202012.create_resource(document)
    )
    absolute = json.loads(json.dumps(schema).replace('"#/', '"urn:snyk#/'))
    validator = jsonschema.Draft202012Validator(
        absolute, registry=registry, format_checker=jsonschema.FormatChecker()
    )
    validator.validate(value)
