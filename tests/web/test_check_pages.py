"""The page of all checks, and that of one: who fails, what was seen, and how to fix it."""

import csv
import io
import re
from typing import Any

import pytest

from tests.api.checking import COVERED, check, put
from tests.api.defining import item, push
from tests.conftest import StartService
from tests.service import Service, component
from tests.web.markup import HOSTILE, HOSTILE_NAME, hrefs, is_harmless
from tests.web.scoring import API, COVERS, MUCH, WEB, published, scored
from tests.web.visiting import Browser, signed_in, words

PATH = "/checks/covered"


@pytest.fixture
async def scoring(start: StartService) -> Service:
    return await scored(start)


@pytest.fixture
async def visitor(scoring: Service) -> Browser:
    return await signed_in(scoring, role="viewer")


async def test_the_list_has_each_rule_as_a_sentence_and_the_worst_first(visitor: Browser) -> None:
    page = await visitor.text("/checks")
    assert is_harmless(page)
    text = words(page)
    assert re.search(
        r"Tests cover nearly all lines \(coverage\) is more than 95\. 0% 67% known 2 1 nobody "
        r"Tests cover enough lines \(coverage\) is more than 80\. 50% 67% known 1 1 team-a",
        text,
    )
    assert "/checks/much?state=fail" in hrefs(page)


async def test_checks_are_found(visitor: Browser, subtests: pytest.Subtests) -> None:
    cases: list[tuple[dict[str, Any], list[str]]] = [
        ({"q": "nearly"}, ["much"]),
        ({"q": "TEAM-A"}, ["covered"]),
        ({"show": "failing"}, ["much", "covered"]),
        ({"show": "draft"}, []),
        ({"q": "none like it"}, []),
    ]
    for query, ids in cases:
        with subtests.test(query=query):
            page = await visitor.text("/checks", **query)
            assert re.findall(r'<th scope="row" class="wrap"><a href="/checks/(\w+)"', page) == ids


@pytest.mark.slow
async def test_many_checks_are_paged(scoring: Service, visitor: Browser) -> None:
    for number in range(55):
        await put(scoring, {**MUCH, "id": f"extra-{number:02}"})
    page = await visitor.text("/checks", q="extra")
    assert "extra-49" in page
    assert "extra-50" not in page
    [after] = [path for path in hrefs(page) if "page=2" in path]
    assert "extra-50" in await visitor.text(after)


async def test_a_new_service_leads_to_the_starter(service: Service) -> None:
    vic = await signed_in(service, "vic", "viewer")
    page = await vic.text("/checks")
    assert "A check is a rule over facts" in page
    assert "/scorecards" in hrefs(page)


async def test_who_fails_is_shown_first_with_what_was_seen_and_the_fix(visitor: Browser) -> None:
    page = await visitor.text(PATH)
    assert is_harmless(page)
    text = words(page)
    assert "lines (coverage) is more than 80." in text
    assert "Entities that fail" in text
    assert "Only 10 % of api is covered." in text
    assert re.search(r"10 \S.*? expected: lines \(coverage\) is more than 80", text)
    assert "component:web" not in text
    found = hrefs(page)
    assert "https://ci.example.com/api/coverage" in found
    assert "/catalog/component/default/api/facts/coverage/lines" in found
    assert "/scorecards/readiness" in found
    assert "for bronze" in text


async def test_each_state_is_a_bar_that_leads_to_its_entities(visitor: Browser) -> None:
    page = await visitor.text(PATH)
    for word, names in (("pass", ["web"]), ("unknown", ["old"]), ("not-applicable", [])):
        [path] = {one for one in hrefs(page) if one.startswith(f"{PATH}?state={word}")}
        shown = await visitor.text(path)
        assert re.findall(r'row" class="wrap"><a href="[^"]+">component:(\w+)<', shown) == names
    unknown = words(await visitor.text(PATH, state="unknown"))
    assert "unknown not collected yet" in unknown


async def test_entities_that_a_check_is_not_about_are_found(visitor: Browser) -> None:
    page = words(await visitor.text(PATH, state="not-applicable"))
    assert "group:team-a" in page
    assert "user:kim" in page


async def test_one_entity_owners_and_teams_are_asked_for(visitor: Browser) -> None:
    one = words(await visitor.text(PATH, entity=WEB))
    assert "The result" in one
    assert "90" in one
    for state, sentence in {
        "": "No entity here fails.",
        "pass": "No entity here passes.",
        "unknown": "No entity here is unknown.",
        "exempt": "No entity here is exempt.",
        "not-applicable": "The check applies to every entity here.",
    }.items():
        page = words(await visitor.text(PATH, entity="component:none", state=state))
        assert sentence in page
    assert "Tests cover enough" in words(await visitor.text(PATH, owner="team-b"))
    of_team = await visitor.text(PATH, team="department", state="pass")
    assert "component:web" in of_team
    of_owner = await visitor.text(PATH, owner="team-b")
    assert "/checks/covered?owner=team-b&amp;state=unknown" in of_owner
    assert 'class="rate" href="/checks/covered?state=pass"' not in of_owner
    assert 'class="rate" href="/checks/covered?state=pass"' not in of_team
    assert 'class="rate" href="/checks/covered?team=department&amp;state=pass"' in of_team


async def test_many_entities_are_paged(scoring: Service, visitor: Browser) -> None:
    await scoring.push("many", *[component(f"n{number:03}") for number in range(30)])
    page = await visitor.text(PATH, state="unknown")
    assert "25 entities" in words(page)
    [after] = [path for path in hrefs(page) if "cursor=" in path]
    assert "6 entities" in words(await visitor.text(after))


async def test_changes_and_versions_are_told(scoring: Service, visitor: Browser) -> None:
    scoring.time.advance(60_000)
    await push(scoring, item(API, lines=99))
    await published(scoring, {**COVERS, "title": "Covered"})
    text = words(await visitor.text(PATH))
    assert "component:api : ✕ fail → ✓ pass" in text
    assert re.search(r"Versions.* 1\.0\.1 .* 1\.0\.0 ", text)


async def test_a_check_that_reads_another_leads_to_it(scoring: Service, visitor: Browser) -> None:
    rule = {"source": "checks", "fact": "covered", "operator": "equal", "value": "pass"}
    await published(scoring, check("both", rule=rule, appliesTo={"kind": "component"}))
    page = await visitor.text("/checks/both")
    assert "/checks/covered?entity=component%3Adefault%2Fapi" in hrefs(page)


async def test_a_draft_has_no_results_yet(scoring: Service, visitor: Browser) -> None:
    await put(scoring, check("later"))
    text = words(await visitor.text("/checks/later"))
    assert "It has no results until it is published." in text


async def test_results_are_saved_as_csv(visitor: Browser) -> None:
    page = await visitor.text(PATH, state="fail")
    [path] = [path for path in hrefs(page) if "/export" in path]
    rows = list(csv.reader(io.StringIO((await visitor.open(path)).text)))
    assert rows == [
        ["entity", "owner", "state", "stale"],
        [API, "group:default/team-b", "fail", "false"],
    ]


async def test_links_to_fix_are_of_the_web_or_of_a_mail(scoring: Service, visitor: Browser) -> None:
    mail = {"link": "mailto:help@example.com"}
    await published(scoring, {**COVERS, "fix": mail})
    assert 'href="mailto:help@example.com"' in await visitor.text(PATH)


async def test_texts_of_checks_facts_and_entities_do_no_harm(
    scoring: Service, visitor: Browser
) -> None:
    harmful = component("harm", description=HOSTILE)
    harmful["metadata"] |= {"title": HOSTILE_NAME, "annotations": {"x": "javascript:alert(1)"}}
    await scoring.push("harm", harmful)
    rule = {"source": "entity", "fact": "metadata.title", "operator": "equal", "value": HOSTILE}
    fix = {"link": "https://x.example/{{ metadata.title }}", "instructions": HOSTILE}
    messages = {"fail": "{{ metadata.title }}" + HOSTILE}
    await published(
        scoring,
        check(
            "harm", title=HOSTILE_NAME, description=HOSTILE, rule=rule, fix=fix, messages=messages
        ),
    )
    for path in ("/checks", "/checks/harm", "/checks/harm?entity=component:harm"):
        assert is_harmless(await visitor.text(path))


async def test_one_comparison_of_many_is_told_where_it_does_not_hold(
    scoring: Service, visitor: Browser
) -> None:
    leaves = [{**COVERED, "value": value} for value in range(80, 95)]
    await published(scoring, check("many", rule={"all": leaves}, appliesTo={"kind": "component"}))
    text = words(await visitor.text("/checks/many", entity=WEB))
    assert "expected: lines (coverage) is more than 90" in text
    assert "more than 89 " not in text.partition("The result")[2]


@pytest.mark.parametrize("database_url", ["sqlite"], indirect=True)
async def test_addresses_that_make_no_sense_are_refused(
    visitor: Browser, subtests: pytest.Subtests
) -> None:
    for path, status in [
        ("none", 404),
        ("covered?state=good", 400),
        ("covered?entity=a:", 400),
        ("a%00b", 404),
    ]:
        with subtests.test(path=path):
            assert is_harmless(await visitor.text(f"/checks/{path}", status))
