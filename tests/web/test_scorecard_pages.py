"""The page of a scorecard, its matrices, and its publication."""

import csv
import io
import re
from typing import Any

import pytest

from factbook.clock import DAY, iso
from tests.api.checking import evaluated, put, shown
from tests.conftest import StartService
from tests.service import Service, component
from tests.web.markup import HOSTILE_NAME, hrefs, is_harmless
from tests.web.scoring import API, CARD, MUCH, WEB, group, published, scored
from tests.web.visiting import Browser, signed_in, words

PATH = "/scorecards/readiness"


@pytest.fixture
async def scoring(start: StartService) -> Service:
    return await scored(start)


@pytest.fixture
async def visitor(scoring: Service) -> Browser:
    return await signed_in(scoring, role="viewer")


async def test_it_tells_levels_target_and_checks_with_what_is_unknown(visitor: Browser) -> None:
    page = await visitor.text(PATH)
    assert is_harmless(page)
    text = words(page)
    assert "What has to be there before a service is on call." in text
    assert "owned by department" in text
    assert "33% have reached bronze. Target: all by 2027-06-30" in text
    assert "Tests cover enough bronze 50% 67% known" in text
    assert 'class="chart chart-line' in page
    assert "/checks/covered?state=unknown" in hrefs(page)


async def test_a_team_has_all_groups_below_it_and_leads_to_what_it_counts(
    visitor: Browser,
) -> None:
    page = await visitor.text(PATH)
    assert re.search(r"department 3 .*team-a 1 .*team-b 2", words(page))
    [below] = {path for path in hrefs(page) if path == f"{PATH}?team=group%3Adefault%2Fteam-b"}
    shown = await visitor.text(below)
    of_team = words(shown)
    assert "Tests cover enough bronze 0% 50% known" in of_team
    assert "/checks/covered?team=group%3Adefault%2Fteam-b&state=unknown" in hrefs(shown)
    assert "2 entities" in of_team
    assert "team: team-b" in of_team
    [counted, *_] = [path for path in hrefs(page) if "team=" in path and "level=none" in path]
    listed = await visitor.text(counted.replace("department", "team-b"))
    assert re.findall(r">component:(\w+)</a>", listed) == ["api", "old"]


async def test_the_matrix_has_a_glyph_and_a_word_for_each_result(visitor: Browser) -> None:
    page = await visitor.text(f"{PATH}/entities")
    assert is_harmless(page)
    text = words(page)
    assert "component:web team-a bronze 25% ✓ pass ✕ fail" in text
    assert "component:api team-b no level 0% ✕ fail ✕ fail" in text
    assert "component:old team-b no level ? unknown ? unknown" in text
    assert "/checks/much?entity=component%3Adefault%2Fweb" in hrefs(page)


async def test_the_matrix_shows_the_entities_that_are_asked_for(
    visitor: Browser, subtests: pytest.Subtests
) -> None:
    cases: list[tuple[dict[str, Any], list[str]]] = [
        ({"state": "unknown"}, ["old"]),
        ({"state": "pass"}, ["web"]),
        ({"level": "bronze"}, ["web"]),
        ({"level": "none"}, ["api", "old"]),
        ({"owner": "team-b", "state": "fail"}, ["api"]),
        ({"team": "department"}, ["web", "api", "old"]),
        ({"owner": "-"}, []),
    ]
    for query, names in cases:
        with subtests.test(query=query):
            page = await visitor.text(f"{PATH}/entities", **query)
            assert re.findall(r">component:(\w+)</a>", page) == names


async def test_the_matrix_goes_on_after_fifty_entities(scoring: Service, visitor: Browser) -> None:
    await scoring.push("many", *[component(f"n{number:03}") for number in range(60)])
    page = await visitor.text(f"{PATH}/entities", state="unknown")
    assert "50 entities" in words(page)
    [after] = [path for path in hrefs(page) if "after=" in path]
    assert "state=unknown" in after
    assert "11 entities" in words(await visitor.text(after))


@pytest.mark.slow
async def test_many_checks_are_shown_in_parts(scoring: Service, visitor: Browser) -> None:
    ids = [f"check-{number:02}" for number in range(60)]
    for id_ in ids:
        await put(scoring, {**MUCH, "id": id_, "title": f"Number {id_}"}, publish=True)
    await published(scoring, {**CARD, "entries": ids, "target": None})
    page = await visitor.text(f"{PATH}/entities")
    assert "Number check-49" in page
    assert "Number check-50" not in page
    [more] = {path for path in hrefs(page) if "columns=50" in path}
    assert "Number check-50" in await visitor.text(more)


async def test_a_team_is_shown_by_its_worst_results(visitor: Browser) -> None:
    page = await visitor.text(f"{PATH}/teams")
    assert is_harmless(page)
    text = words(page)
    assert "team-a ✓ pass 1 of 1 ✕ fail 1 of 1" in text
    assert "team-b ✕ fail 1 of 2 ✕ fail 1 of 2" in text
    fails = [path for path in hrefs(page) if path.startswith("/checks/covered?")]
    assert "/checks/covered?team=group%3Adefault%2Fteam-b&state=fail" in fails


async def test_a_team_is_shown_with_all_groups_below_it(scoring: Service, visitor: Browser) -> None:
    await scoring.push("units", group("unit", "department"))
    page = await visitor.text(f"{PATH}/teams")
    assert "unit ✕ fail 1 of 3 ✕ fail 2 of 3 department ✕ fail 1 of 3 ✕ fail 2 of 3" in words(page)
    below = {path for path in hrefs(page) if path.startswith(f"{PATH}/teams?team=")}
    [down] = [path for path in below if path.endswith("department")]
    page = await visitor.text(down)
    text = words(page)
    assert "department ✕ fail 1 of 3 ✕ fail 2 of 3 team-a ✓ pass 1 of 1" in text
    assert "Show again without team: group:default/department" in text
    fails = [path for path in hrefs(page) if path.endswith("department&state=fail")]
    [leads] = {path for path in fails if path.startswith("/checks/much")}
    assert "2 entities" in words(await visitor.text(leads))


async def test_levels_are_saved_as_csv(scoring: Service, visitor: Browser) -> None:
    page = await visitor.text(f"{PATH}/entities", level="bronze")
    [path] = [path for path in hrefs(page) if "/export" in path]
    answer = await visitor.open(path)
    assert answer.headers["content-type"].startswith("text/csv")
    rows = list(csv.reader(io.StringIO(answer.text)))
    assert rows[1:] == [[WEB, "bronze", "bronze", "25", "100", iso(scoring.time())]]


async def test_an_exempt_entity_is_told_apart(scoring: Service, visitor: Browser) -> None:
    wish = {"check": "covered", "entity": API, "reason": "Shut down soon", "until": "2027-03-31"}
    made = await scoring.http.post("/api/tech-insights/v1/exemptions", json=wish)
    token = await scoring.token(owner="user:default/somebody")
    async with scoring.client(token) as http:
        id_ = made.json()["id"]
        answer = await http.post(f"/api/tech-insights/v1/exemptions/{id_}/approve")
        assert answer.is_success, answer.text
    page = words(await visitor.text(f"{PATH}/entities", state="exempt"))
    assert "component:api" in page
    assert "◇ exempt" in page


async def test_trends_of_a_month_are_drawn(scoring: Service) -> None:
    scoring.time.advance(30 * DAY)
    visitor = await signed_in(scoring, "kim", "viewer")
    assert 'class="chart chart-line' in await visitor.text(PATH)


async def test_a_draft_is_published_with_its_checks(scoring: Service) -> None:
    ada = await signed_in(scoring)
    draft = {**CARD, "id": "other", "entries": ["fresh"], "target": None}
    await put(scoring, {**MUCH, "id": "fresh"})
    made = await scoring.http.put("/api/tech-insights/v1/scorecards/other", json=draft)
    assert made.is_success, made.text
    page = await ada.text("/scorecards/other")
    assert "Publish it with its checks" in page
    [seen] = re.findall(r'name="seen" value="(\w+)"', page)
    stale = await ada.send("/scorecards/other/publish", seen="0" * len(seen))
    assert stale.status_code == 412
    drafts = re.findall(r'name="draft" value="(fresh \w+)"', page)
    for others in ([], [*drafts, *drafts, "more 0"]):
        unseen = await ada.send("/scorecards/other/publish", seen=seen, draft=others)
        assert unseen.status_code == 412
    await put(scoring, {**MUCH, "id": "fresh", "title": "Another rule than was seen"})
    newer = await ada.send("/scorecards/other/publish", seen=seen, draft=drafts)
    assert newer.status_code == 412
    assert (await shown(scoring, "fresh"))["draft"] is True
    page = await ada.text("/scorecards/other")
    drafts = re.findall(r'name="draft" value="(fresh \w+)"', page)
    done = await ada.done("/scorecards/other/publish", seen=seen, draft=drafts)
    assert "is published" in done
    await evaluated(scoring)
    assert "Mean score" in await ada.text("/scorecards/other")


async def test_who_only_reads_cannot_publish(visitor: Browser) -> None:
    assert "/edit" not in await visitor.text(PATH)
    assert (await visitor.send(f"{PATH}/publish", seen="x")).status_code == 403


async def test_texts_of_scorecards_and_entities_do_no_harm(
    scoring: Service, visitor: Browser
) -> None:
    hostile = {**CARD, "title": HOSTILE_NAME, "description": "<script>alert(1)</script>"}
    await published(scoring, hostile)
    for page in ("", "/entities", "/teams"):
        assert is_harmless(await visitor.text(PATH + page))


@pytest.mark.parametrize("database_url", ["sqlite"], indirect=True)
async def test_addresses_that_make_no_sense_are_refused(
    visitor: Browser, subtests: pytest.Subtests
) -> None:
    for path, status in [
        ("none", 404),
        ("none/entities", 404),
        ("readiness/entities?level=gold", 400),
        ("readiness/entities?state=good", 400),
        ("readiness/entities?after=x", 400),
        ("readiness/entities?owner=group:", 400),
        ("readiness/teams?page=x", 400),
        ("readiness/teams?columns=x", 400),
        ("readiness?team=user:a/", 400),
    ]:
        with subtests.test(path=path):
            assert is_harmless(await visitor.text(f"/scorecards/{path}", status))
