"""The editors of checks and scorecards: preview, save, publish, and what stands in the way."""

import re
from typing import Any

import pytest

from factbook.auth import permissions
from factbook.datasources.custom import yaml_text
from tests.api.checking import CHECKS, evaluated, put, shown
from tests.conftest import StartService
from tests.service import Service
from tests.web.markup import HOSTILE, is_harmless
from tests.web.scoring import CARD, COVERS, scored
from tests.web.visiting import Browser, signed_in, words

NEW = "/checks/-/new"
EDIT = "/checks/covered/edit"
NEW_CARD = "/scorecards/-/new"
EDIT_CARD = "/scorecards/readiness/edit"


@pytest.fixture
async def scoring(start: StartService) -> Service:
    return await scored(start)


@pytest.fixture
async def ada(scoring: Service) -> Browser:
    return await signed_in(scoring)


def seen(html: str) -> str:
    """The tag of what the form was made of."""
    [found] = re.findall(r'name="seen" value="(\w*)"', html)
    return str(found)


def text(document: dict[str, Any], **changes: Any) -> str:
    return yaml_text.write_yaml({**document, **changes})


@pytest.mark.parametrize("path", [NEW, NEW_CARD])
async def test_a_new_one_begins_with_an_example_that_can_be_saved(ada: Browser, path: str) -> None:
    answers = [await save_the_example(ada, NEW)]
    if path == NEW_CARD:
        answers.append(await save_the_example(ada, NEW_CARD, ("readiness", "another")))
    saved = "The draft is saved. It has no effect until it is published."
    assert [saved in answer for answer in answers] == [True] * len(answers)


async def save_the_example(ada: Browser, path: str, renamed: tuple[str, str] = ("", "")) -> str:
    """Save the example that the form begins with; returns the words of the answer."""
    page = await ada.text(path)
    assert is_harmless(page)
    found = re.search(r"<textarea id=\"text\".*?>\n(.*?)</textarea>", page, re.S)
    assert found
    example = words(found[1]) and found[1].replace("&#34;", '"').replace("&#39;", "'")
    example = example.replace(*renamed) if renamed[0] else example
    return words(await ada.done(path, text=example, do="save"))


async def test_a_check_is_previewed_before_anything_is_stored(
    scoring: Service, ada: Browser
) -> None:
    await ada.open(EDIT)
    rule = {**COVERS["rule"], "value": 5}
    answer = await ada.send(EDIT, text=text(COVERS, rule=rule), do="preview", seen="")
    page = words(answer.text)
    assert "lines (coverage) is more than 5." in page
    assert re.search(r"✓ pass 2 ✕ fail 0 \? unknown 1", page)
    assert "1 entity would change." in page
    assert "component:api ✕ fail ✓ pass" in page
    assert (await shown(scoring))["rule"] == COVERS["rule"]


async def test_a_preview_tries_the_tests_of_a_check(ada: Browser) -> None:
    await ada.open(EDIT)
    tests = [
        {"title": "enough", "facts": {"coverage": {"lines": 90}}, "expect": "pass"},
        {"title": "wrong", "facts": {"coverage": {"lines": 90}}, "expect": "fail"},
    ]
    answer = await ada.send(EDIT, text=text(COVERS, tests=tests), do="preview", seen="")
    page = words(answer.text)
    assert "1 of 2 as expected" in page
    assert "not as expected wrong: ✓ pass , expected ✕ fail" in page
    assert "have none that expects unknown" in page


async def test_a_draft_is_saved_and_then_published(scoring: Service, ada: Browser) -> None:
    tag = seen(await ada.text(EDIT))
    changed = text(COVERS, title="Covered well")
    page = await ada.done(EDIT, text=changed, do="save", seen=tag)
    assert "Version 1.0.0 is published, and there is a newer draft." in words(page)
    assert "has a draft" in words(await ada.text("/checks"))
    page = await ada.done(EDIT, text=changed, do="publish", seen=seen(page))
    assert "Version 1.0.1 is published." in words(page)
    assert (await shown(scoring))["title"] == "Covered well"


async def test_a_rule_that_changes_is_evaluated_once_it_is_published(
    scoring: Service, ada: Browser
) -> None:
    tag = seen(await ada.text(EDIT))
    rule = {**COVERS["rule"], "value": 5}
    await ada.done(EDIT, text=text(COVERS, rule=rule), do="publish", seen=tag)
    await evaluated(scoring)
    assert "component:api" in await ada.text("/checks/covered", state="pass")


async def test_every_mistake_is_told_with_its_path(ada: Browser) -> None:
    await ada.open(EDIT)
    for wrong, path in (
        ("id: [", "line 2"),
        (text(COVERS, rule={**COVERS["rule"], "fact": "none"}), "rule.fact"),
        (text(COVERS, id="other"), "id"),
        (text(COVERS, more=1), "more"),
        (HOSTILE, ""),
    ):
        for do in ("preview", "save", "publish"):
            answer = await ada.send(EDIT, text=wrong, do=do, seen="")
            assert answer.status_code == 400, answer.text
            assert is_harmless(answer.text)
            assert "Nothing was saved: fix these problems" in answer.text
            assert f"<code>{path}</code>" in answer.text or not path


async def test_a_newer_draft_of_somebody_else_is_not_overwritten(
    scoring: Service, ada: Browser
) -> None:
    tag = seen(await ada.text(EDIT))
    await put(scoring, {**COVERS, "title": "Theirs"})
    answer = await ada.send(EDIT, text=text(COVERS, title="Mine"), do="save", seen=tag)
    assert answer.status_code == 412
    page = words(answer.text)
    assert "Someone else has saved in the meantime" in page
    assert "Mine" in page
    [newer] = re.findall(r'name="over" value="(\w+)"', answer.text)
    await ada.done(EDIT, text=text(COVERS, title="Mine"), over=newer, seen=tag)
    assert (await shown(scoring))["unpublished"]["title"] == "Mine"


async def test_one_that_is_deleted_meanwhile_is_told(scoring: Service, ada: Browser) -> None:
    await put(scoring, {**COVERS, "id": "gone"})
    tag = seen(await ada.text("/checks/gone/edit"))
    assert (await scoring.http.delete(f"{CHECKS}/gone")).status_code == 204
    answer = await ada.send("/checks/gone/edit", text=text(COVERS, id="gone"), do="save", seen=tag)
    assert answer.status_code == 404


async def test_an_id_that_is_taken_is_refused(ada: Browser) -> None:
    await ada.open(NEW)
    answer = await ada.send(NEW, text=text(COVERS), do="save")
    assert answer.status_code == 409
    assert "There is already a check covered" in words(answer.text)


async def test_a_new_check_is_published_at_once(scoring: Service, ada: Browser) -> None:
    await ada.open(NEW)
    page = await ada.done(NEW, text=text(COVERS, id="another"), do="publish")
    assert "Version 1.0.0 is published." in words(page)
    await evaluated(scoring)
    assert "component:api" in await ada.text("/checks/another")


async def test_a_scorecard_is_previewed_by_level(ada: Browser) -> None:
    tag = seen(await ada.text(EDIT_CARD))
    entries = [{"check": "covered", "level": "silver"}]
    changed = text(CARD, entries=entries)
    answer = await ada.send(EDIT_CARD, text=changed, do="preview", seen=tag)
    page = words(answer.text)
    assert "It applies to 3 entities." in page
    assert "silver 1 bronze 0 no level 2" in page
    assert "1 entity would change." in page
    assert "component:web bronze silver" in page
    other = text(CARD, id="other", appliesTo={"kind": "group"}, target=None)
    answer = await ada.send(NEW_CARD, text=other.replace("target: null\n", ""), do="preview")
    assert "group:team-a not in it no level" in words(answer.text)


async def test_a_scorecard_is_saved_and_published(scoring: Service, ada: Browser) -> None:
    tag = seen(await ada.text(EDIT_CARD))
    page = await ada.done(EDIT_CARD, text=text(CARD, title="Ready"), do="publish", seen=tag)
    assert "Version 1.0.1 is published." in words(page)
    assert "Ready" in await ada.text("/scorecards")


async def test_who_only_reads_edits_nothing(scoring: Service) -> None:
    vic = await signed_in(scoring, "vic", "viewer")
    for path in (NEW, EDIT, NEW_CARD, EDIT_CARD):
        assert (await vic.open(path)).status_code == 403
        assert (await vic.send(path, text="", do="save")).status_code == 403


async def test_an_author_needs_the_permissions_to_read_what_a_check_reads(
    scoring: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    some = frozenset({permissions.CHECK_READ, permissions.CHECK_WRITE, permissions.CATALOG_READ})
    monkeypatch.setattr(permissions, "ROLES", {**permissions.ROLES, "author": some})
    author = await signed_in(scoring, "kim", "author")
    tag = seen(await author.text(EDIT))
    for do in ("save", "publish"):
        answer = await author.send(EDIT, text=text(COVERS, title="Mine"), do=do, seen=tag)
        assert answer.status_code == 403
        assert "Your account does not have the permission" in words(answer.text)
    assert (await shown(scoring))["title"] != "Mine"
