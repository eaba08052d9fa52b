"""Answers of the service are what the catalog API's own OpenAPI document says of each operation."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import httpx2
import pytest
from jsonschema import Draft202012Validator

from factbook.auth.permissions import SET_WRITE
from tests.contracts.sample_catalog import Sample
from tests.processes import ServerProcess
from tests.service import PUSH, component

pytestmark = pytest.mark.system

Json = dict[str, Any]

_NAMED = "/entities/by-name/component/other/svc-003"
_PLACE = {"type": "url", "target": "https://example.com/catalog-info.yaml"}
_REFS = {"entityRefs": ["component:other/svc-003", "component:default/none"]}
_VALID = {"entity": component("payments"), "location": "url:https://example.com/x"}


class Case(NamedTuple):
    """A request of an operation, and the status that it is answered with."""

    status: int
    method: str
    operation: str  # the path as the document has it
    path: str = ""  # where that is another
    body: Json | None = None

    @property
    def name(self) -> str:
        return f"{self.status} {self.method} {self.path or self.operation} {self.body or ''}"[:90]


CASES = [
    Case(200, "GET", "/entities"),
    Case(200, "GET", "/entities", "/entities?filter=kind=component&order=asc:spec.type&limit=5"),
    Case(200, "GET", "/entities", "/entities?filter=kind=none"),
    Case(400, "GET", "/entities", "/entities?limit=0"),
    Case(400, "GET", "/entities", "/entities?order=upward"),
    Case(400, "GET", "/entities", "/entities?sort=kind"),
    Case(200, "GET", "/entities/by-query"),
    Case(200, "GET", "/entities/by-query", "/entities/by-query?limit=0"),
    Case(200, "GET", "/entities/by-query", "/entities/by-query?offset=7&orderField=kind,desc"),
    Case(400, "GET", "/entities/by-query", "/entities/by-query?cursor=none"),
    Case(200, "POST", "/entities/by-query", body={"query": {"kind": "api"}, "limit": 10}),
    Case(200, "POST", "/entities/by-query", body={"orderBy": [{"field": "kind", "order": "asc"}]}),
    Case(400, "POST", "/entities/by-query", body={"query": {"$none": []}}),
    Case(200, "GET", "/entities/by-name/{kind}/{namespace}/{name}", _NAMED),
    Case(
        404,
        "GET",
        "/entities/by-name/{kind}/{namespace}/{name}",
        "/entities/by-name/component/default/none",
    ),
    Case(200, "GET", "/entities/by-name/{kind}/{namespace}/{name}/ancestry", f"{_NAMED}/ancestry"),
    Case(
        404,
        "GET",
        "/entities/by-name/{kind}/{namespace}/{name}/ancestry",
        "/entities/by-name/component/default/none/ancestry",
    ),
    Case(200, "GET", "/entities/by-uid/{uid}", "/entities/by-uid/UID"),
    Case(404, "GET", "/entities/by-uid/{uid}", "/entities/by-uid/none"),
    Case(204, "DELETE", "/entities/by-uid/{uid}", "/entities/by-uid/none"),
    Case(200, "POST", "/entities/by-refs", body=_REFS),
    Case(200, "POST", "/entities/by-refs", "/entities/by-refs?filter=kind=api", body=_REFS),
    Case(400, "POST", "/entities/by-refs", body={}),
    Case(200, "GET", "/entity-facets", "/entity-facets?facet=spec.replicas&facet=metadata.tags"),
    Case(400, "GET", "/entity-facets"),
    Case(200, "POST", "/entity-facets", body={"facets": ["spec.public"], "query": {}}),
    Case(400, "POST", "/entity-facets", body={"facets": []}),
    Case(200, "POST", "/validate-entity", body=_VALID),
    Case(400, "POST", "/validate-entity", body=_VALID | {"entity": {"kind": "Component"}}),
    Case(400, "POST", "/validate-entity", body=_VALID | {"location": "file:x"}),
    Case(200, "POST", "/refresh", body={"entityRef": "component:other/svc-003"}),
    Case(400, "POST", "/refresh", body={"entityRef": ""}),
    Case(404, "POST", "/refresh", body={"entityRef": "component:other/none"}),
    Case(200, "GET", "/locations"),
    Case(200, "POST", "/locations/by-query", body={"limit": 10}),
    Case(400, "POST", "/locations/by-query", body={"limit": "many"}),
    Case(404, "GET", "/locations/{id}", "/locations/none"),
    Case(
        404,
        "GET",
        "/locations/by-entity/{kind}/{namespace}/{name}",
        "/locations/by-entity/component/other/svc-003",
    ),
    Case(501, "POST", "/locations", body=_PLACE),
    Case(501, "PUT", "/locations/{id}", "/locations/none", body=_PLACE),
    Case(501, "DELETE", "/locations/{id}", "/locations/none"),
    Case(501, "POST", "/analyze-location", body={"location": _PLACE}),
]


class Catalog(NamedTuple):
    """A service that holds the sample catalog."""

    server: ServerProcess
    http: httpx2.Client

    def ask(self, case: Case, http: httpx2.Client | None = None) -> httpx2.Response:
        path = case.path or case.operation
        if path.endswith("/UID"):
            found = self.http.get(f"/api/catalog{_NAMED}").json()
            path = path.replace("UID", found["metadata"]["uid"])
        return (http or self.http).request(case.method, f"/api/catalog{path}", json=case.body)


@pytest.fixture(scope="module")
def document(test_data: Path) -> Json:
    """The catalog API's OpenAPI document."""
    path = test_data.parent / "reference" / "catalog-openapi.json"
    assert path.is_file(), (
        "reference/catalog-openapi.json has to stand beside the folder that FACTBOOK_TEST_DATA "
        f"names, which is {test_data}; it is plugins/catalog-backend/src/schema/openapi.yaml "
        "of the project that defines the catalog API, as JSON"
    )
    found: Json = json.loads(path.read_text("utf-8"))
    return found


@pytest.fixture(scope="module")
def catalog(sample: Sample) -> Iterator[Catalog]:
    with sample.server.client(sample.token) as http:
        yield Catalog(sample.server, http)


def assert_as_described(document: Json, case: Case, answer: httpx2.Response) -> None:
    """The answer is one that the document gives the operation."""
    assert answer.status_code == case.status, answer.text
    responses = document["paths"][case.operation][case.method.lower()]["responses"]
    response = responses.get(str(case.status)) or responses["default"]
    if "$ref" in response:
        response = document["components"]["responses"][response["$ref"].rpartition("/")[2]]
    if "content" not in response:
        assert answer.content == b""
        return
    assert answer.headers["content-type"].startswith("application/json")
    schema = response["content"]["application/json"]["schema"]
    # Beside the schema, what it refers to is found where it says.
    validator = Draft202012Validator({**schema, "components": document["components"]})
    body = answer.json()
    problems = [f"{error.json_path}: {error.message}" for error in validator.iter_errors(body)]
    assert not problems, problems[:5]
    if isinstance(body, dict) and "error" in body:
        assert body["response"] == {"statusCode": case.status}
        assert body["request"]["method"] == case.method


@pytest.mark.spec("catalog.list-entities", "catalog.by-query", "catalog.by-query-post")
@pytest.mark.spec("catalog.facets", "catalog.by-refs", "catalog.by-name", "catalog.by-uid")
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_an_answer_is_as_the_document_says(catalog: Catalog, document: Json, case: Case) -> None:
    assert_as_described(document, case, catalog.ask(case))


def test_every_operation_of_the_document_was_asked_for(document: Json) -> None:
    operations = {
        (method.upper(), path) for path, item in document["paths"].items() for method in item
    }
    assert {(case.method, case.operation) for case in CASES} == operations


@pytest.mark.spec("catalog.read-denied-is-403")
def test_without_a_token_or_the_permission_the_answer_is_an_error_of_its_form(
    catalog: Catalog, document: Json
) -> None:
    answering = [case for case in CASES if case.status in (200, 204) and not case.path]
    wanted = [case for case in answering if case.operation.startswith("/entit")]
    assert len(wanted) > 5
    writer = catalog.server.client(catalog.server.token("--permission", SET_WRITE))
    with httpx2.Client(base_url=catalog.server.url, timeout=60) as nobody, writer:
        for case in wanted:
            assert_as_described(document, case._replace(status=401), catalog.ask(case, nobody))
            assert_as_described(document, case._replace(status=403), catalog.ask(case, writer))


def test_an_entity_is_deleted_with_an_empty_answer(catalog: Catalog, document: Json) -> None:
    one = catalog.http.post(f"{PUSH}/entities", json=component("short-lived")).json()
    case = Case(204, "DELETE", "/entities/by-uid/{uid}", f"/entities/by-uid/{one['id']}")
    assert_as_described(document, case, catalog.ask(case))
    assert catalog.http.get(f"/api/catalog{case.path}").status_code == 404
