"""The OpenAPI documents: valid, complete, and kept to by every answer."""

import json
from typing import Any

import httpx2
import pytest
from jsonschema import Draft202012Validator, FormatChecker
from openapi_spec_validator import OpenAPIV31SpecValidator

from factbook import __version__
from factbook.api.endpoint import Route
from factbook.api.openapi import build_operation_id
from factbook.api.routes import DOCUMENTS, list_routes
from factbook.settings import Settings
from tests.api.openapi_calls import every_call
from tests.conftest import StartService
from tests.service import PUSH, Service, component

ROUTES = list_routes(Settings(push_aliases=["other"]))
ADDRESSES = [f"{prefix}/openapi.json" for prefix, _, _ in DOCUMENTS]
METHODS = ("get", "put", "post", "delete")

pytestmark = pytest.mark.parametrize("database_url", ["sqlite"], indirect=True)


def name_of(route: Route) -> str:
    return f"{route.method} {route.path}"


async def documents(service: Service) -> list[dict[str, Any]]:
    """All documents, as someone without a token gets them."""
    async with service.client(None) as http:
        answers = [await http.get(address) for address in ADDRESSES]
    assert [answer.status_code for answer in answers] == [200] * len(ADDRESSES)
    return [answer.json() for answer in answers]


def operations(found: list[dict[str, Any]]) -> dict[str, tuple[str, dict[str, Any]]]:
    """Every operation by its id, with `METHOD path`."""
    return {
        operation["operationId"]: (f"{method.upper()} {path}", operation)
        for document in found
        for path, item in document["paths"].items()
        for method, operation in item.items()
    }


def validator(document: dict[str, Any], schema: dict[str, Any]) -> Draft202012Validator:
    whole = {**schema, "components": document["components"]}
    return Draft202012Validator(whole, format_checker=FormatChecker())


@pytest.mark.slow
async def test_the_documents_are_valid_openapi(service: Service) -> None:
    for document in await documents(service):
        assert document["openapi"] == "3.1.0"
        assert document["info"]["version"] == __version__
        # The validator's regular expressions are Python's, which lack Unicode's classes.
        text = json.dumps(document).replace(r"\\p{L}\\p{M}\\p{N}\\p{P}\\p{S}", "!-~")
        assert r"\\p" not in text
        assert [*OpenAPIV31SpecValidator(json.loads(text)).iter_errors()] == []


async def test_every_route_that_is_described_is_in_a_document_and_no_other(
    start: StartService,
) -> None:
    found = operations(await documents(await start(push_aliases=["other"])))
    described = {
        build_operation_id(route): name_of(route).replace(":path", "")
        for route in ROUTES
        if route.described
    }
    assert {id_: name for id_, (name, _) in found.items()} == described
    assert len(described) == sum(route.described for route in ROUTES)


def test_what_is_not_described_is_no_rest_interface_or_another_way_to_write_one(
    database_url: str,
) -> None:
    described = {route.handler for route in ROUTES if route.described}
    others = {
        (route.method, route.path)
        for route in ROUTES
        if not route.described and route.handler not in described
    }
    # Identity providers read what SCIM is from its own descriptions.
    left = {each for each in others if "/sets/" not in each[1] and not each[1].startswith("/scim/")}
    assert left == {
        ("POST", "/api/mcp/v1/tech-insights-facts"),
        ("POST", "/api/mcp/v1/tech-insights-checks"),
        ("POST", "/mcp"),
        ("GET", "/healthz"),
        ("GET", "/readyz"),
        ("GET", "/metrics"),
        ("GET", "/api/catalog/openapi.json"),
        ("GET", "/api/access/v1/openapi.json"),
        ("GET", "/api/tech-insights/v1/openapi.json"),
        ("GET", "/api/events/openapi.json"),
        ("GET", "/api/importers/v1/openapi.json"),
        # Clients of OAuth know them by standards: tests/api/test_oauth_at_mcp.py.
        ("GET", "/.well-known/oauth-protected-resource/mcp"),
        ("GET", "/.well-known/oauth-authorization-server/oauth"),
        ("POST", "/oauth/token"),
        ("POST", "/oauth/revoke"),
        ("POST", "/oauth/register"),
        # Its body is what a system sends.
        ("POST", "/api/importers/v1/importers/{importer}/events"),
        # The community's plugin reads them: tests/api/test_community_paths.py.
        ("GET", "/api/tech-insights/checks"),
        ("POST", "/api/tech-insights/checks/run"),
        ("POST", "/api/tech-insights/checks/run/{namespace}/{kind}/{name}"),
        ("GET", "/api/tech-insights/facts/latest"),
        ("GET", "/api/tech-insights/facts/range"),
        ("GET", "/api/tech-insights/fact-schemas"),
        ("GET", "/api/catalog/locations/{id}"),
        ("GET", "/api/catalog/locations/by-entity/{kind}/{namespace}/{name}"),
        ("POST", "/api/catalog/locations"),
        ("PUT", "/api/catalog/locations/{id}"),
        ("DELETE", "/api/catalog/locations/{id}"),
        ("POST", "/api/catalog/analyze-location"),
    }


async def test_every_operation_says_what_it_is_and_what_it_needs(service: Service) -> None:
    by_id = {build_operation_id(route): route for route in ROUTES if route.described}
    for id_, (name, operation) in operations(await documents(service)).items():
        needed = by_id[id_].permissions or ()
        assert operation["summary"], name
        assert operation["x-permissions"] == list(needed)
        assert all(f"`{permission}`" in operation["description"] for permission in needed)
        is_open = by_id[id_].permissions is None
        assert operation["security"] == ([] if is_open else [{"token": []}])
        assert all(parameter["description"] for parameter in operation["parameters"]), name
        refusals = {"400"} if is_open else {"400", "401", "403", "429", "503"}
        assert refusals <= operation["responses"].keys()


async def test_the_server_is_the_public_url_or_relative(start: StartService) -> None:
    for settings, url in (
        ({}, "/"),
        ({"public_url": "https://factbook.example.com/"}, "https://factbook.example.com"),
    ):
        for document in await documents(await start(**settings)):
            assert document["servers"] == [{"url": url}]


async def test_the_push_interface_is_described_under_its_configured_word(
    start: StartService,
) -> None:
    [catalog, *_] = await documents(await start(push_word="widget", push_aliases=["gadget"]))
    assert "/api/catalog/widget-entities/sets/{set_id}" in catalog["paths"]
    assert not [path for path in catalog["paths"] if "gadget" in path or "factbook" in path]


@pytest.mark.slow
async def test_every_operation_answers_as_it_says(start: StartService) -> None:
    service = await start(outgoing_networks=["127.0.0.0/8"])
    found = await documents(service)
    by_id = operations(found)
    seen = set()
    async for id_, status, answer in every_call(service):
        name, operation = by_id[id_]
        assert answer.status_code == status, (name, answer.text)
        check(found, name, operation, answer)
        if status < 300:
            seen.add(id_)
    assert seen == by_id.keys()


def check(
    found: list[dict[str, Any]], name: str, operation: dict[str, Any], answer: httpx2.Response
) -> None:
    """Compare an answer with what its operation declares."""
    [document] = [each for each in found if name.split()[1] in each["paths"]]
    declared = operation["responses"][str(answer.status_code)]
    if "$ref" in declared:
        declared = document["components"]["responses"][declared["$ref"].rpartition("/")[2]]
    if "content" not in declared:
        assert answer.content == b"", name
        return
    [(media, content)] = declared["content"].items()
    assert answer.headers["content-type"].startswith(media), name
    checker = validator(document, content["schema"])
    problems = [each for value in values(media, answer) for each in checker.iter_errors(value)]
    assert problems == [], (name, answer.text)


def values(media: str, answer: httpx2.Response) -> list[Any]:
    """What the schema of an answer is of: each line of several, or a text that is no JSON."""
    if media in ("text/csv", "image/svg+xml"):
        return [answer.text]
    lines = answer.text.splitlines() if media == "application/x-ndjson" else [answer.text]
    return [json.loads(line) for line in lines]


@pytest.mark.slow
async def test_a_parameter_that_a_route_does_not_know_is_refused(
    start: StartService, subtests: pytest.Subtests
) -> None:
    assert ROUTES
    service = await start(push_aliases=["other"])
    for route in ROUTES:
        with subtests.test(name_of(route)):
            path = route.path.replace(":path", "").replace("{number}", "1")
            path = path.replace("{", "").replace("}", "")
            answer = await service.http.request(route.method, path, params={"surprise": "1"})
            if route.parameters is None:
                assert "Unknown query parameter" not in answer.text
            else:
                assert answer.status_code == 400
                assert answer.json()["error"]["message"] == "Unknown query parameter 'surprise'."


@pytest.mark.parametrize(
    ("path", "name"), [("/api/catalog/entities", "limit"), (f"{PUSH}/entities", "set")]
)
async def test_a_parameter_with_one_value_can_be_given_once(
    service: Service, path: str, name: str
) -> None:
    answer = await service.http.get(path, params=[(name, "1"), (name, "2")])
    assert answer.status_code == 400
    assert answer.json()["error"]["message"] == f"{name} can be given only once, not 2 times."


async def test_an_if_match_that_is_none_is_refused(
    service: Service, subtests: pytest.Subtests
) -> None:
    for value in ["three", '"3', '"3" "4"', "*, *", "-1"]:
        with subtests.test(value=value):
            answer = await service.http.put(
                f"{PUSH}/sets/a", json={"items": [component("a")]}, headers={"if-match": value}
            )
            assert answer.status_code == 400
            assert (
                "If-Match has to be a revision between quotes" in answer.json()["error"]["message"]
            )


async def test_a_whole_number_may_be_written_with_a_point(service: Service) -> None:
    asked = "/api/catalog/entities/by-query"
    answer = await service.http.post(asked, content=b'{"limit": 20.0, "offset": 1e1}')
    assert answer.status_code == 200, answer.text
    answer = await service.http.post(asked, content=b'{"limit": 20.5}')
    assert answer.status_code == 400
    assert "Expected a whole number, got a number" in answer.json()["error"]["message"]
