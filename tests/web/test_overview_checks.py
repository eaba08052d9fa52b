"""The overview: scorecards by level and team, checks that need attention, and the viewer's own."""

import re
from functools import partial
from urllib.parse import quote

import pytest

from factbook.checks import digests, scorecard_figures
from factbook.clock import DAY
from tests.api.defining import item, push
from tests.conftest import StartService
from tests.service import Service, component
from tests.web.markup import HOSTILE, hrefs, is_harmless
from tests.web.scoring import API, CARD, MUCH, OLD, WEB, group, person, published, scored
from tests.web.visiting import signed_in, words

TEAM_A, TEAM_B = (quote(f"group:default/{name}", safe="") for name in ("team-a", "team-b"))


@pytest.fixture
async def scoring(start: StartService) -> Service:
    return await scored(start)


def section(text: str, name: str, end: str) -> str:
    """The words of a page between two headings."""
    return text.partition(name)[2].partition(end)[0]


async def test_scorecards_are_shown_by_level_and_team_and_lead_to_each_count(
    scoring: Service,
) -> None:
    page = await (await signed_in(scoring, role="viewer")).text("/")
    assert is_harmless(page)
    text = words(page)
    assert "25% pass · 67% known" in text
    assert "silver 0 entities: silver bronze 1 entities: bronze no level 2" in text
    # One group holds all others, so those below it are the teams; the lowest score first.
    assert re.search(r"Team, including subteams \S+ team-b 0% of 1 team-a 25% of 1", text), text
    found = set(hrefs(page))
    assert f"/scorecards/readiness?team={TEAM_A}" in found
    assert {
        "/scorecards/readiness/entities?level=bronze",
        "/scorecards/readiness/entities?level=none",
        "/scorecards/readiness#checks",
        "/catalog/group/default/team-b",
    } <= found


async def test_a_scorecard_without_levels_shows_scores_and_nothing_else(scoring: Service) -> None:
    entries = [{"check": "covered"}]
    plain = {**CARD, "id": "plain", "title": "Plain", "levels": [], "entries": entries}
    del plain["target"]
    await published(scoring, plain)
    now = scoring.time()
    for day in (8, 0):
        await scoring.state.database.write(
            partial(scorecard_figures.record_trends, now=now - day * DAY)
        )
    visitor = await signed_in(scoring)
    overview = words(await visitor.text("/"))
    shown = section(overview, "Plain", "Readiness")
    assert "50% pass" in shown
    assert "no level" not in shown
    owned = words(await visitor.text("/catalog/group/default/team-b/contents"))
    assert re.search(r"api 0% ", owned), owned
    matrix = words(await visitor.text("/scorecards/plain/entities"))
    assert "Entity Score" in matrix
    assert "no level" not in matrix
    await visitor.text("/scorecards/plain")
    await visitor.text("/scorecards")


async def test_owners_beside_groups_are_told_apart(scoring: Service) -> None:
    alone = component("alone", owner="user:default/kim")
    nobody = component("nobody")
    del nobody["spec"]["owner"]
    await scoring.push("more", alone, nobody)
    await push(scoring, item("component:default/alone", lines=10),
               item("component:default/nobody", lines=99))  # fmt: skip
    page = await (await signed_in(scoring)).text("/")
    found = set(hrefs(page))
    assert "user:kim 0%" in words(page)
    assert "without an owner 100%" in words(page)
    assert "department" in words(page)
    assert f"/scorecards/readiness/entities?owner={quote('user:default/kim', safe='')}" in found
    assert "/scorecards/readiness/entities?owner=-" in found


async def test_the_trend_of_a_scorecard_and_its_levels_of_a_week_are_told(
    scoring: Service,
) -> None:
    database = scoring.state.database
    await database.write(
        lambda transaction: scorecard_figures.record_trends(transaction, scoring.time())
    )
    scoring.time.advance(8 * DAY)
    await push(scoring, item(API, lines=99))
    page = await (await signed_in(scoring)).text("/")
    text = words(page)
    assert re.search(r"mean score of \d+ of \d+ entities, \+\d+ points in 30 days", text), text
    assert "/scorecards/readiness#trend" in hrefs(page)
    week = section(text, "Changed this week", "Compliance")
    assert "silver 0 → 1 , no level 2 → 1" in week
    assert "2 results of checks pass now that did not before." in week


async def test_checks_that_fail_most_and_newly_fail_lead_to_who_fails(scoring: Service) -> None:
    scoring.time.advance(8 * DAY)
    page = await (await signed_in(scoring)).text("/")
    needs = section(words(page), "Needs attention", "Sources")
    assert "Fails most Tests cover nearly all 2 entities: Tests cover nearly all" in needs
    assert "Nothing started to fail. Became unknown this week Nothing became unknown." in needs
    await push(scoring, item(WEB, lines=20))
    page = await (await signed_in(scoring, "bob")).text("/")
    needs = section(words(page), "Newly failing this week", "Sources")
    assert needs.index(" 1 entities: ") < needs.index("Became unknown")
    assert "/checks/covered?state=fail" in hrefs(page)
    # It was failing before, and still is.
    assert "Tests cover nearly all" not in needs


async def test_what_went_unknown_is_told_apart_from_what_fails(scoring: Service) -> None:
    scoring.time.advance(8 * DAY)
    await push(scoring, {"entity": WEB, "facts": {"lines": None}})
    page = await (await signed_in(scoring)).text("/")
    needs = section(words(page), "Newly failing this week", "Sources")
    assert needs.startswith(" Nothing started to fail. Became unknown this week ")
    assert "1 entities" in needs
    assert {"/checks/covered?state=unknown", "/checks/much?state=unknown"} <= set(hrefs(page))


async def test_what_is_again_as_it_was_needs_no_attention(scoring: Service) -> None:
    scoring.time.advance(8 * DAY)
    await push(scoring, item(WEB, lines=20))
    scoring.time.advance(DAY)
    await push(scoring, item(WEB, lines=90))
    text = words(await (await signed_in(scoring)).text("/"))
    assert "Nothing started to fail." in text
    assert "pass now that did not" not in text


async def test_entities_that_left_are_not_counted_as_newly_failing(scoring: Service) -> None:
    await scoring.push("more", component("brief"))
    await push(scoring, item("component:default/brief", lines=1))
    scoring.time.advance(DAY)
    there = await digests.count_recent_changes(scoring.state.database, 0, scoring.time())
    assert there.to("fail") == {"covered": 1, "much": 1}
    await scoring.push("more")
    gone = await digests.count_recent_changes(scoring.state.database, 0, scoring.time())
    assert gone.to("fail") == {}


async def test_of_very_many_changes_the_last_ones_are_looked_at(
    scoring: Service,
) -> None:
    scoring.time.advance(8 * DAY)
    await push(scoring, item(WEB, lines=20))
    scoring.time.advance(DAY)
    await push(scoring, item(API, lines=99))
    found = await digests.count_recent_changes(
        scoring.state.database, scoring.time() - 7 * DAY, scoring.time(), most=2
    )
    assert found.is_cut
    assert (found.to("fail"), found.to("pass")) == ({}, {"covered": 1, "much": 1})


async def test_without_scorecards_one_line_leads_to_them(service: Service) -> None:
    await service.push("all", component("web"))
    page = await (await signed_in(service)).text("/")
    assert "No scorecard has been published yet" in words(page)
    assert "/scorecards" in hrefs(page)
    for heading in ("Needs attention", "Fails most", "Team, including subteams"):
        assert heading not in page


async def test_a_viewer_sees_first_what_their_groups_own_the_worst_on_top(
    scoring: Service,
) -> None:
    await scoring.push("people", person("ada", "team-b"), person("eve", "department"))
    ada = await (await signed_in(scoring, role="viewer")).text("/")
    text = words(ada)
    assert is_harmless(ada)
    assert text.index("Mine: team-b") < text.index("Scorecards All scorecards")
    mine = section(text, "Mine: team-b", "Scorecards All scorecards")
    assert " 0% " in mine
    assert mine.index("api no level 2 0") < mine.index("old no level 0 2")
    assert "web" not in mine
    assert {
        f"/scorecards/readiness?team={TEAM_B}",
        "/catalog/group/default/team-b",
        "/catalog/group/default/team-b/contents",
        "/catalog/component/default/api#checks",
    } <= set(hrefs(ada))
    eve = words(await (await signed_in(scoring, "eve")).text("/"))
    mine = section(eve, "Mine: department", "Scorecards All scorecards")
    # What the groups below own is there, too.
    assert mine.index(" api ") < mine.index(" web ") < mine.index(" old ")


async def test_a_group_that_names_its_members_counts_as_theirs(scoring: Service) -> None:
    named = group("crew")
    named["spec"]["members"] = ["ada"]
    await scoring.push("crew", named, component("boat", owner="crew"))
    text = words(await (await signed_in(scoring)).text("/"))
    assert "Mine: crew" in text
    assert "boat" in section(text, "Mine: crew", "Scorecards")


async def test_of_many_groups_the_first_are_shown_and_the_others_linked(
    scoring: Service,
) -> None:
    names = [f"g{number}" for number in range(5)]
    await scoring.push("people", *map(group, names), person("ada", *names))
    page = await (await signed_in(scoring)).text("/")
    text = words(page)
    assert text.count("Mine: ") == 3
    assert "This group does not own anything yet." in text
    assert "You are also in g3 , g4" in text
    assert "/catalog/group/default/g4" in hrefs(page)


async def test_a_person_without_a_group_is_told_how_to_get_one(scoring: Service) -> None:
    page = await (await signed_in(scoring, "eve")).text("/")
    assert "once a group in the catalog lists you, user:default/eve , as a member" in words(page)
    assert "/help/pages#overview" in hrefs(page)
    assert "Mine: " not in page


async def test_titles_of_scorecards_checks_and_entities_stay_text(scoring: Service) -> None:
    titled = component("hostile", owner="team-b")
    titled["metadata"]["title"] = HOSTILE
    await scoring.push("people", person("ada", "team-b"), titled)
    await push(scoring, item("component:default/hostile", lines=1))
    await published(scoring, {**MUCH, "title": HOSTILE.replace("\u202e", "").replace("\u2028", "")})
    await published(scoring, {**CARD, "title": "<b>Ready</b>"})
    page = await (await signed_in(scoring)).text("/")
    assert is_harmless(page)
    assert "<b>Ready" not in page


async def test_it_needs_no_entity_of_the_person_who_looks(scoring: Service) -> None:
    await push(scoring, item(OLD, lines=90))
    assert "Overview" in await (await signed_in(scoring, "nobody")).text("/")
