"""Documents and addresses of data sources that are refused, and what the refusal says."""

from typing import Any

import pytest

from tests.api.defining import SOURCES, define, problems, pushed, refusal, shown
from tests.service import Service

ON_SQLITE = pytest.mark.parametrize("database_url", ["sqlite"], indirect=True)
WRONG: list[tuple[dict[str, Any], set[str]]] = [
    ({"id": "no spaces"}, {"id"}),
    ({"title": " "}, {"title"}),
    ({"schema": {}}, {"schema"}),
    ({"schema": {"lines": {"type": "number"}}}, {"schema.lines.type"}),
    ({"schema": {"lines": {"type": "integer", "extract": {}}}}, {"schema.lines.extract"}),
    ({"cadence": "often"}, {"cadence"}),
    ({"lifecycle": {"maxItems": 0}}, {"lifecycle.maxItems"}),
    ({"entityFilter": "{"}, {"entityFilter"}),
    ({"surprise": 1}, {"surprise"}),
    ({"version": "1.0.0"}, {"version"}),
    (
        {"version": "1.0.0", "draft": True, "createdAt": "2026-11-21T12:00:00Z", "updatedAt": 1},
        {"version", "draft", "createdAt", "updatedAt"},
    ),
    ({"draft": False, "title": 7}, {"draft", "title"}),
    ({"handlerDefinition": {"type": "sql", "config": {"id": "coverage"}}}, set()),
]


@ON_SQLITE
@pytest.mark.spec("sources.every-problem-is-named")
async def test_every_problem_of_a_document_is_named_and_nothing_is_written(
    service: Service, subtests: pytest.Subtests
) -> None:
    for change, paths in WRONG:
        with subtests.test(change=change, paths=paths):
            for answer in (
                await service.http.post(SOURCES, json=pushed() | change),
                await service.http.put(f"{SOURCES}/coverage", json=pushed() | change),
            ):
                assert "nothing was written" in refusal(answer, 400)
                assert paths <= problems(answer).keys()
            assert (await service.http.get(f"{SOURCES}/coverage")).status_code == 404


@ON_SQLITE
async def test_a_body_that_is_no_source_is_refused(
    service: Service, subtests: pytest.Subtests
) -> None:
    for body, status in [
        (b"", 400),
        (b"{", 400),
        (b"[]", 400),
        (b"null", 400),
        (b'"coverage"', 400),
        (b"\xff\xfe", 400),
        (b'{"id": "\\ud800"}', 400),
        (b"[" * 100_000, 400),
        (b'{"a":' * 20_000 + b"1" + b"}" * 20_000, 400),
        (b'{"a":' * 100 + b"1" + b"}" * 100, 400),
        (b'{"id": 1e999}', 400),
        (b" " * (256 * 1024 + 1), 413),
    ]:
        with subtests.test(body=body):
            for method, path in (("POST", SOURCES), ("PUT", f"{SOURCES}/coverage")):
                answer = await service.http.request(method, path, content=body)
                assert refusal(answer, status)


@ON_SQLITE
@pytest.mark.spec("sources.ids-are-not-taken-twice")
async def test_no_two_sources_share_an_id(service: Service) -> None:
    await define(service, pushed())
    answer = await service.http.post(SOURCES, json=pushed())
    assert refusal(answer, 409) == "There is already a data source coverage; PUT replaces it."
    for id_ in ("techdocs", "github"):
        for answer in (
            await service.http.post(SOURCES, json=pushed(id_)),
            await service.http.put(f"{SOURCES}/{id_}", json=pushed(id_)),
            await service.http.delete(f"{SOURCES}/{id_}"),
            await service.http.post(f"{SOURCES}/{id_}/publish"),
        ):
            assert answer.status_code in (404, 409), answer.text
            assert id_ in refusal(answer, answer.status_code)
    assert (await shown(service, "techdocs"))["origin"] == "builtin"
    answer = await service.http.put(f"{SOURCES}/other", json=pushed())
    assert refusal(answer, 400)
    assert problems(answer) == {"id": "has to be other, as in the address"}


@ON_SQLITE
async def test_a_source_that_there_is_not_is_404(
    service: Service, subtests: pytest.Subtests
) -> None:
    for id_ in ["nothing", "no%20such", "%00", "%F0%9F%98%80", "a" * 101, ".."]:
        for method, path in [
            ("GET", ""),
            ("DELETE", ""),
            ("POST", "/publish"),
            ("POST", "/run"),
            ("GET", "/runs"),
        ]:
            with subtests.test(id_=id_, method=method, path=path):
                answer = await service.http.request(method, f"{SOURCES}/{id_}{path}")
                assert refusal(answer, 404)
