"""Who may do what with data sources and facts, and who sees a source's configuration."""

import pytest

from factbook.auth.permissions import (
    CATALOG_READ,
    FACT_WRITE,
    SOURCE_READ,
    SOURCE_RUN,
    SOURCE_WRITE,
)
from tests.api.defining import FACTS, SOURCES, define, of_entities, refusal, shown
from tests.service import Service

ON_SQLITE = pytest.mark.parametrize("database_url", ["sqlite"], indirect=True)
READS = [("GET", SOURCES), ("GET", f"{SOURCES}/coverage"), ("GET", f"{SOURCES}/coverage/runs")]
WRITES = [
    ("POST", SOURCES),
    ("PUT", f"{SOURCES}/coverage"),
    ("DELETE", f"{SOURCES}/coverage"),
    ("POST", f"{SOURCES}/coverage/publish"),
]


@ON_SQLITE
@pytest.mark.spec(
    "permissions.source-write-guards-definitions",
    "permissions.source-run-guards-runs",
    "permissions.fact-write-guards-fact-push",
)
async def test_each_call_needs_its_permissions_and_no_other(
    service: Service, subtests: pytest.Subtests
) -> None:
    every = {SOURCE_READ, SOURCE_WRITE, SOURCE_RUN, FACT_WRITE, CATALOG_READ}
    cases: list[tuple[str, str, set[str]]] = [
        *((*read, {SOURCE_READ}) for read in READS),
        *((*write, {SOURCE_WRITE}) for write in WRITES),
        ("POST", f"{SOURCES}/coverage/run", {SOURCE_RUN}),
        ("POST", f"{FACTS}/coverage", {FACT_WRITE}),
        ("GET", f"{FACTS}/coverage", {SOURCE_READ, CATALOG_READ}),
        ("GET", FACTS, {SOURCE_READ, CATALOG_READ}),
    ]
    for method, path, needed in cases:
        with subtests.test(method=method, path=path, needed=needed):
            async with service.client(None) as anonymous:
                refusal(await anonymous.request(method, path), 401)
            for missing in needed:
                async with service.client(await service.token(*(every - {missing}))) as http:
                    answer = await http.request(method, path, json={})
                    assert missing in refusal(answer, 403)
            async with service.client(await service.token(*needed)) as http:
                answer = await http.request(method, path, json={})
                assert answer.status_code not in (401, 403, 500), answer.text


@ON_SQLITE
@pytest.mark.spec("source.handler-definition-hides-the-rest")
async def test_only_who_may_write_a_source_sees_its_configuration(service: Service) -> None:
    document = of_entities()
    document["schema"]["owner"]["extract"] = {"jmespath": "spec.hidden"}
    await define(service, document)
    assert (await shown(service, "owners"))["definition"]["published"] == document
    async with service.client(await service.token(SOURCE_READ, CATALOG_READ)) as http:
        for path in (SOURCES, f"{SOURCES}/owners"):
            answer = await http.get(path)
            assert answer.status_code == 200
            assert "hidden" not in answer.text
            assert "jmespath" not in answer.text
