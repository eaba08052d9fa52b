"""One entity by name or uid, and many by reference."""

from typing import Any

import pytest

from tests.service import Service, component, resource

ENTITIES = "/api/catalog/entities"
BY_REFS = f"{ENTITIES}/by-refs"
NOBODY = "6e1f3f0c-0000-4000-8000-000000000000"
ON_SQLITE = pytest.mark.parametrize("database_url", ["sqlite"], indirect=True)


@pytest.fixture
async def catalog(service: Service) -> Service:
    """A service with three entities in it."""
    spaced = resource("Master Account", namespace="cloud")
    answer = await service.push("all", component("Payments"), component("web"), spaced)
    assert answer.status_code == 200, answer.text
    return service


@pytest.mark.spec("catalog.by-name", "ref.matched-without-case", "ref.metadata-keeps-its-case")
async def test_an_entity_is_found_by_name_in_any_case(
    catalog: Service, subtests: pytest.Subtests
) -> None:
    for path in [
        "Component/default/Payments",
        "component/default/payments",
        "COMPONENT/DEFAULT/PAYMENTS",
        "component/default/%50ayments",
    ]:
        with subtests.test(path=path):
            answer = await catalog.http.get(f"{ENTITIES}/by-name/{path}")
            assert answer.status_code == 200
            entity = answer.json()
            assert (entity["kind"], entity["metadata"]["name"]) == ("Component", "Payments")
            assert entity["spec"] == component("Payments")["spec"]


@pytest.mark.spec("catalog.by-name")
async def test_a_name_with_a_space_is_found_by_its_encoded_form(catalog: Service) -> None:
    answer = await catalog.http.get(f"{ENTITIES}/by-name/resource/cloud/Master%20Account")
    assert answer.json()["metadata"]["name"] == "Master Account"


@pytest.mark.spec("catalog.by-name")
async def test_a_name_that_nothing_has_is_404_in_the_catalog_apis_words(
    catalog: Service, subtests: pytest.Subtests
) -> None:
    for path in ["component/cloud/web", "api/default/web", "component/default/wb"]:
        with subtests.test(path=path):
            answer = await catalog.http.get(f"{ENTITIES}/by-name/{path}")
            kind, namespace, name = path.split("/")
            assert answer.status_code == 404
            assert answer.json()["error"] == {
                "name": "NotFoundError",
                "message": f"No entity named '{name}' found, "
                f"with kind '{kind}' in namespace '{namespace}'",
            }


@pytest.mark.spec("catalog.by-uid")
async def test_an_entity_is_found_by_its_uid_and_any_other_uid_is_404(catalog: Service) -> None:
    by_name = await catalog.catalog("component:default/web")
    assert by_name is not None
    answer = await catalog.http.get(f"{ENTITIES}/by-uid/{by_name['metadata']['uid']}")
    assert (answer.status_code, answer.json()) == (200, by_name)
    missing = await catalog.http.get(f"{ENTITIES}/by-uid/{NOBODY}")
    assert missing.status_code == 404
    assert missing.json()["error"]["message"] == f"No entity with uid {NOBODY}"


@pytest.mark.spec("catalog.by-refs", "catalog.by-refs-trailing-slash", "ref.short-forms")
@pytest.mark.parametrize("path", [BY_REFS, f"{BY_REFS}/"])
async def test_references_are_answered_in_their_order_with_null_for_what_is_not_there(
    catalog: Service, path: str
) -> None:
    asked = [
        "component:default/web",
        "component:default/nobody",
        "Resource:Cloud/master account",
        "component:payments",
        "COMPONENT:web",
    ]
    answer = await catalog.http.post(path, json={"entityRefs": asked})
    assert answer.status_code == 200
    assert list(answer.json()) == ["items"]
    names = [item and item["metadata"]["name"] for item in answer.json()["items"]]
    assert names == ["web", None, "Master Account", "Payments", "web"]


@pytest.mark.spec("catalog.by-refs")
async def test_by_refs_takes_fields_and_filters(catalog: Service) -> None:
    async def ask(fields: list[str] | None, **query: Any) -> Any:
        body: dict[str, Any] = {"entityRefs": ["component:web", "resource:cloud/master account"]}
        if fields is not None:
            body["fields"] = fields
        answer = await catalog.http.post(BY_REFS, json=body, params=query)
        assert answer.status_code == 200, answer.text
        return answer.json()["items"]

    whole = await ask(None)
    assert await ask([]) == whole
    assert whole[0] == await catalog.catalog("component:default/web")
    assert await ask(["kind", "spec.type"]) == [
        {"kind": "Component", "spec": {"type": "service"}},
        {"kind": "Resource", "spec": {"type": "account"}},
    ]
    assert await ask(["kind"], filter="kind=resource") == [None, {"kind": "Resource"}]
    assert await ask(["kind"], filter=["kind=api", "kind=component"]) == [
        {"kind": "Component"},
        None,
    ]


@pytest.mark.spec("catalog.by-refs")
async def test_thousands_of_references_are_answered_at_once(catalog: Service) -> None:
    asked = [*(f"component:nobody-{number}" for number in range(3000)), "component:web", "user:x"]
    items = (await catalog.http.post(BY_REFS, json={"entityRefs": asked})).json()["items"]
    assert len(items) == len(asked)
    assert [n for n, item in enumerate(items) if item is not None] == [3000]
    assert (await catalog.http.post(BY_REFS, json={"entityRefs": []})).json() == {"items": []}


@ON_SQLITE
async def test_a_body_of_by_refs_that_cannot_be_meant_is_400(
    service: Service, subtests: pytest.Subtests
) -> None:
    cases: list[tuple[Any, str]] = [
        ({"entityRefs": ["web"]}, "lacks a kind"),
        ({"entityRefs": ["component:"]}, "not of the form"),
        ({"entityRefs": [""]}, ""),
        ({"entityRefs": "component:web"}, "is not valid"),
        ({"entityRefs": [1]}, "is not valid"),
        ({}, "entityRefs"),
        ([], "is not valid"),
        ({"entityRefs": [], "fields": "kind"}, "is not valid"),
        ({"entityRefs": [], "fields": ["metadata.tags[0]"]}, "without indexes"),
    ]
    for body, message in cases:
        with subtests.test(body=body):
            answer = await service.http.post(BY_REFS, json=body)
            assert answer.status_code == 400
            assert message in answer.json()["error"]["message"]


@ON_SQLITE
async def test_a_body_that_is_no_json_is_400(service: Service, subtests: pytest.Subtests) -> None:
    for body in [b"", b"{", b"\xff", b'{"entityRefs":["\\ud800"]}', b'{"entityRefs":[]} x']:
        with subtests.test(body=body):
            answer = await service.http.post(BY_REFS, content=body)
            assert answer.status_code == 400
            assert "not valid JSON" in answer.json()["error"]["message"]


async def test_a_nul_in_a_path_or_a_reference_is_not_found_or_refused(catalog: Service) -> None:
    for path in ("by-name/component/default/we%00b", "by-uid/%00"):
        assert (await catalog.http.get(f"{ENTITIES}/{path}")).status_code in (400, 404), path
    answer = await catalog.http.post(BY_REFS, json={"entityRefs": ["component:we\0b"]})
    assert answer.status_code in (200, 400)


@ON_SQLITE
async def test_head_answers_what_get_does_without_the_body(catalog: Service) -> None:
    path = f"{ENTITIES}/by-name/component/default/web"
    got, headed = await catalog.http.get(path), await catalog.http.head(path)
    assert (headed.status_code, headed.content) == (200, b"")
    assert headed.headers == got.headers
    assert (await catalog.http.head(ENTITIES)).status_code == 200
    assert (await catalog.http.head(ENTITIES, params={"limit": 1})).links["next"]["rel"] == "next"
    assert (await catalog.http.head(f"{ENTITIES}/by-uid/{NOBODY}")).status_code == 404
    assert (await catalog.http.head(f"{ENTITIES}/by-uid/{NOBODY}")).content == b""


@ON_SQLITE
async def test_another_method_is_405_and_names_those_there_are(catalog: Service) -> None:
    answer = await catalog.http.delete(ENTITIES)
    assert (answer.status_code, answer.headers["allow"]) == (405, "GET")
    assert answer.json()["error"]["name"] == "MethodNotAllowedError"
    assert (await catalog.http.get(BY_REFS)).headers["allow"] == "POST"


@ON_SQLITE
async def test_an_address_that_leads_nowhere_is_404(
    service: Service, subtests: pytest.Subtests
) -> None:
    for path, advice in [
        ("/api/catalog", ""),
        ("/api/catalog/entities/", f" Addresses end without a slash: try {ENTITIES}."),
        ("/api/catalog/entities/by-name/component/web", ""),
        ("/x", ""),
    ]:
        with subtests.test(path=path, advice=advice):
            answer = await service.http.get(path)
            assert answer.status_code == 404
            assert answer.json()["error"]["message"] == f"There is nothing at {path}.{advice}"
