"""Checks and scorecards on the page of an entity."""

import pytest

from tests.api.checking import check, evaluated, put, with_source
from tests.conftest import StartService
from tests.service import Service, component, resource
from tests.web.entities import WEB
from tests.web.graded import with_checks
from tests.web.markup import HOSTILE, elements, hrefs, is_harmless, links
from tests.web.visiting import signed_in, words


async def test_what_fails_comes_first_with_its_message_and_its_fix(service: Service) -> None:
    await with_checks(service, lines=40)
    visitor = await signed_in(service)
    page = await visitor.text(WEB)
    text = words(page)
    assert "Checks 2 failing · 1 unknown · 1 passing" in text
    assert "fail: Tests cover enough since now Only 40 % of web is tested. Write tests." in text
    assert "Fix it : Tests cover enough" in text
    [fix] = [link for link in links(page) if link["href"].startswith("https://ci.example.com")]
    assert (fix["href"], fix["rel"]) == ("https://ci.example.com/web", "noopener noreferrer")
    order = ("fail: Tests cover enough", "fail: Tests cover nearly all", "unknown: Names its tool",
             "pass: Has an owner")  # fmt: skip
    places = [text.index(each, text.index("Checks 2 failing")) for each in order]
    assert places == sorted(places)
    assert {"/checks/covered", "/checks/tooled", "/checks/owned"} <= set(hrefs(page))
    assert is_harmless(page)


async def test_what_is_unknown_says_why(service: Service) -> None:
    await with_checks(service)
    text = words(await (await signed_in(service)).text(WEB))
    assert "0 failing · 3 unknown · 1 passing" in text
    assert "unknown: Names its tool since now unknown not collected yet Nothing has" in text


async def test_a_scorecard_shows_the_level_and_what_the_next_one_lacks(service: Service) -> None:
    await with_checks(service, lines=40)
    page = await (await signed_in(service)).text(WEB)
    text = words(page)
    assert "Scorecards as of now Readiness Bronze score 33%, of the 75% that is known" in text
    assert "Missing for Silver fail: Tests cover enough unknown: Names its tool" in text
    assert "/scorecards/readiness" in hrefs(page)


async def test_the_highest_level_says_what_the_score_lacks(service: Service) -> None:
    await with_checks(service, lines=90, tool="cov")
    text = words(await (await signed_in(service)).text(WEB))
    assert "Readiness Silver score 75%" in text
    assert "Highest level reached. Missing for a full score fail: Tests cover nearly all" in text


async def test_without_checks_the_page_has_no_word_about_them(service: Service) -> None:
    await service.push("all", component("web"))
    _, _, content = (await (await signed_in(service)).text(WEB)).partition("<main")
    assert not {"Checks", "Scorecards"} & set(words(content).split())


async def test_an_entity_outside_of_all_checks_is_told_so(service: Service) -> None:
    group = {"apiVersion": "backstage.io/v1alpha1", "kind": "Group", "metadata": {"name": "team"},
             "spec": {"type": "team", "children": []}}  # fmt: skip
    await service.push("all", group, resource("db"))
    await with_source(service)
    answer = await put(service, check(appliesTo={"kind": "component"}), publish=True)
    assert answer.is_success
    await evaluated(service)
    visitor = await signed_in(service)
    text = words(await visitor.text("/catalog/resource/default/db"))
    assert "Checks No check is about this entity." in text
    # What a team owns fails below: a zero of its own above it would say that nothing does.
    assert "0 failing" not in words(await visitor.text("/catalog/group/default/team"))


async def test_checks_of_a_team_are_told_from_those_of_what_it_owns(service: Service) -> None:
    group = {"apiVersion": "backstage.io/v1alpha1", "kind": "Group", "metadata": {"name": "team"},
             "spec": {"type": "team", "children": []}}  # fmt: skip
    await service.push("all", group)
    await with_source(service)
    rule = {"source": "entity", "fact": "metadata.description", "operator": "isKnown"}
    assert (await put(service, check(rule=rule), publish=True)).is_success
    await evaluated(service)
    text = words(await (await signed_in(service)).text("/catalog/group/default/team"))
    assert "Checks of the group itself 1 failing · 0 unknown" in text


async def test_texts_of_checks_are_text(service: Service) -> None:
    rule = {"source": "entity", "fact": "spec.nothing", "operator": "equal", "value": "x"}
    hostile = HOSTILE.translate({0x202E: None, 0x2028: None})
    document = check(
        "bad",
        title=hostile,
        rule=rule,
        onUnknown="fail",
        messages={"fail": "It is {{ metadata.title }}"},
        fix={"instructions": hostile, "link": "mailto:team@example.com"},
    )
    item = component("web")
    item["metadata"]["title"] = HOSTILE
    await service.push("all", item)
    answer = await put(service, document, publish=True)
    assert answer.is_success, answer.text
    await evaluated(service)
    page = await (await signed_in(service)).text(WEB)
    assert is_harmless(page)
    assert "1 failing" in words(page)
    assert [tag for tag, _ in elements(page)].count("script") == 1


@pytest.mark.slow
@pytest.mark.parametrize("database_url", ["sqlite"], indirect=True)
async def test_checks_beyond_those_that_are_listed_are_counted(start: StartService) -> None:
    service = await start()
    assert (await service.push("shop", component("web"))).is_success
    named = {"source": "entity", "fact": "metadata.name", "operator": "isKnown"}
    for number in range(201):
        await put(service, check(f"named-{number}", rule=named), publish=True)
    await evaluated(service)
    page = words(await (await signed_in(service)).text(WEB))
    assert "0 failing · 0 unknown · 201 passing" in page
    assert "and 1 more" in page
