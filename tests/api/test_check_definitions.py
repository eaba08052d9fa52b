"""Checks over HTTP: drafts, publications, versions, tags, and refusals that name every mistake."""

import asyncio

import pytest

from tests.api.checking import (
    CHECKS,
    COVERED,
    OWNED,
    SCORECARDS,
    check,
    put,
    shown,
    with_source,
)
from tests.api.defining import problems, refusal
from tests.conftest import StartService
from tests.service import Service


@pytest.fixture
async def service(start: StartService) -> Service:
    service = await start()
    await with_source(service)
    return service


async def test_a_new_check_is_a_draft_until_it_is_published(service: Service) -> None:
    made = await service.http.post(CHECKS, json=check())
    assert (made.status_code, made.json()["draft"], made.json()["version"]) == (201, True, "0.0.0")
    published = await service.http.post(f"{CHECKS}/covered/publish")
    assert published.status_code == 200
    found = await shown(service)
    assert found["draft"] is False
    assert found["sentence"] == "lines (coverage) is more than 80."
    [version] = (await service.http.get(f"{CHECKS}/covered/versions")).json()["versions"]
    assert (version["version"], version["publishedBy"]) == ("1.0.0", "user:default/tester")


async def test_a_publication_tells_how_far_it_is_until_it_is_in_effect(service: Service) -> None:
    answer = await put(service, check(), publish=True)
    assert answer.json()["publication"] == {"version": "1.0.0", "evaluated": 0, "total": 0}


async def test_what_replaces_a_published_check_is_a_draft_beside_it(service: Service) -> None:
    await put(service, check(), publish=True)
    answer = await put(service, check(title="Another"))
    assert answer.json()["title"] == "Tests cover enough"
    assert answer.json()["unpublished"]["title"] == "Another"
    again = await put(service, check())
    assert "unpublished" not in again.json()


async def test_a_tag_guards_against_the_changes_of_others(service: Service) -> None:
    first = (await put(service, check())).headers["etag"]
    second = (await put(service, check(title="Another"), if_match=first)).headers["etag"]
    assert second != first
    late = await put(service, check(title="Late"), if_match=first)
    assert "changed since" in refusal(late, 412)
    gone = await service.http.delete(f"{CHECKS}/covered", headers={"if-match": first})
    assert gone.status_code == 412
    assert (await put(service, check("new"), if_match="*")).status_code == 412
    assert (await put(service, check(), if_match=f'"other", {second}')).status_code == 200


@pytest.mark.both_databases
async def test_of_two_who_build_on_one_tag_one_is_refused(service: Service) -> None:
    tag = (await put(service, check())).headers["etag"]
    answers = await asyncio.gather(
        *(put(service, check(title=title), if_match=tag) for title in ("A", "B", "C"))
    )
    assert sorted(one.status_code for one in answers) == [200, 412, 412]


async def test_what_says_the_same_changes_nothing(service: Service) -> None:
    tag = (await put(service, check(), publish=True)).headers["etag"]
    service.time.advance(1000)
    again = await put(service, check(), publish=True)
    assert again.headers["etag"] == tag
    versions = (await service.http.get(f"{CHECKS}/covered/versions")).json()["versions"]
    assert len(versions) == 1


async def test_every_mistake_is_told_with_its_path(service: Service) -> None:
    rule = {
        "all": [
            {**COVERED, "source": "covrage"},
            {**COVERED, "fact": "line"},
            {**COVERED, "operator": "contains"},
        ]
    }
    document = check(rule=rule, version="1.0.0", colour="red")
    answer = await service.http.post(CHECKS, json=document)
    assert answer.status_code == 400
    assert problems(answer).keys() >= {"version", "colour"}
    answer = await service.http.post(CHECKS, json=check(rule=rule))
    assert answer.status_code == 400
    assert set(problems(answer)) == {
        "rule.all[0].source",
        "rule.all[1].fact",
        "rule.all[2].operator",
    }
    other = await service.http.put(f"{CHECKS}/other", json=check())
    assert problems(other) == {"id": "has to be other, as in the address"}


async def test_checks_that_would_read_themselves_are_refused(service: Service) -> None:
    def reading(id_: str, other: str) -> dict[str, object]:
        rule = {"source": "checks", "fact": other, "operator": "equal", "value": "pass"}
        return check(id_, rule=rule)

    await put(service, check("a", rule=OWNED))
    assert (await put(service, reading("b", "a"))).status_code == 200
    answer = await put(service, reading("a", "b"))
    assert answer.status_code == 400
    assert any(path.startswith("rule") for path in problems(answer))
    refused = await service.http.delete(f"{CHECKS}/a")
    assert "b read the check a" in refusal(refused, 409)
    assert (await service.http.delete(f"{CHECKS}/b")).status_code == 204
    assert (await service.http.delete(f"{CHECKS}/a")).status_code == 204


async def test_ten_thousand_conditions_are_refused_and_lose_nothing(service: Service) -> None:
    await put(service, check())
    many = check(rule={"all": [OWNED] * 10_000})
    answer = await put(service, many)
    assert answer.status_code in (400, 413)
    assert (await shown(service))["rule"] == COVERED


async def test_who_only_writes_is_not_told_what_is_stored(service: Service) -> None:
    await put(service, check(title="Secret"))
    token = await service.token("tech-insights.check.write", "catalog.entity.read")
    async with service.client(token) as http:
        other = check(title="Other", rule=OWNED)
        answer = await http.put(f"{CHECKS}/covered", json=other)
        assert answer.json() == {
            "id": "covered",
            "title": None,
            "version": "0.0.0",
            "draft": True,
            "tag": answer.headers["etag"].strip('"'),
        }


async def test_who_reads_data_sources_reads_checks(service: Service) -> None:
    await put(service, check())
    async with service.client(await service.token("tech-insights.data-source.read")) as http:
        assert (await http.get(f"{CHECKS}/covered")).status_code == 200
        assert (await http.put(f"{CHECKS}/covered", json=check())).status_code == 403


async def test_lists_go_by_id_and_on_after_a_cursor_that_is_gone(service: Service) -> None:
    for id_ in ("a", "b", "c"):
        await put(service, check(id_))
    first = (await service.http.get(CHECKS, params={"limit": "2"})).json()
    assert [one["id"] for one in first["checks"]] == ["a", "b"]
    assert (first["totalCount"], first["nextCursor"]) == (3, "b")
    await service.http.delete(f"{CHECKS}/b")
    rest = (await service.http.get(CHECKS, params={"cursor": "b"})).json()
    assert [one["id"] for one in rest["checks"]] == ["c"]
    assert "nextCursor" not in rest
    assert (await service.http.get(f"{CHECKS}/none")).status_code == 404
    assert (await service.http.get(f"{CHECKS}/no%20id")).status_code == 404


async def test_clients_that_ask_to_expand_get_the_same(service: Service) -> None:
    await put(service, check())
    for path in (CHECKS, f"{CHECKS}/covered", SCORECARDS):
        whole = await service.http.get(path)
        expanded = await service.http.get(path, params={"expand": "rule"})
        assert (expanded.status_code, expanded.json()) == (200, whole.json())
