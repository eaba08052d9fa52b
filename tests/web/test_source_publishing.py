"""Drafts of data sources: two authors at once, and publishing."""

import asyncio

import pytest

from factbook.clock import MINUTE
from factbook.datasources.custom import yaml_text
from tests.api.defining import SOURCES, define, of_entities, pushed, shown
from tests.service import Service
from tests.web.editing import EDIT, TEXT, seen, send
from tests.web.visiting import signed_in, words

# Two at once


async def test_a_newer_draft_of_somebody_else_is_not_overwritten(service: Service) -> None:
    await define(service, of_entities())
    ada, bob = await signed_in(service), await signed_in(service, "bob")
    first, second = await ada.text(EDIT), await bob.text(EDIT)
    service.time.advance(MINUTE)
    assert "is saved" in await ada.done(EDIT, text=TEXT, do="save", seen=seen(first))
    service.time.advance(MINUTE)
    mine = TEXT.replace("title: Owners", "title: Of Bob")
    for do in ("save", "publish"):
        answer = await send(bob, mine, do, seen=seen(second))
        assert answer.status_code == 409
        told = words(answer.text)
        assert "user:ada changed this source 1 minute ago" in told
        assert "title: Of Bob" in told
        # What is sent again is refused again.
        assert seen(answer.text) == seen(second)
    assert (await shown(service, "owners"))["definition"]["draft"]["title"] == "Owners"
    newer = answer.text.partition('name="over" value="')[2].partition('"')[0]
    done = await bob.done(EDIT, text=mine, over=newer, seen=seen(second))
    assert "The draft is saved." in done
    assert (await shown(service, "owners"))["definition"]["draft"]["title"] == "Of Bob"


@pytest.mark.both_databases
async def test_of_two_who_save_at_the_same_moment_one_does(service: Service) -> None:
    await define(service, of_entities())
    ada, bob = await signed_in(service), await signed_in(service, "bob")
    first, second = await ada.text(EDIT), await bob.text(EDIT)
    service.time.advance(MINUTE)
    answers = await asyncio.gather(
        send(ada, TEXT, seen=seen(first)),
        send(bob, TEXT.replace("Owners", "Others"), seen=seen(second)),
    )
    assert sorted(answer.status_code for answer in answers) == [303, 409]


async def test_a_source_that_was_deleted_meanwhile_is_not_made_again(service: Service) -> None:
    await define(service, of_entities())
    visitor = await signed_in(service)
    html = await visitor.text(EDIT)
    assert (await service.http.delete(f"{SOURCES}/owners")).status_code == 204
    assert (await send(visitor, TEXT, seen=seen(html))).status_code == 404
    assert await service.state.database.all("SELECT id FROM data_sources") == []


async def test_a_draft_that_nobody_has_seen_is_not_published(service: Service) -> None:
    await define(service, of_entities(), publish=False)
    visitor = await signed_in(service)
    html = await visitor.text("/data-sources/owners")
    service.time.advance(MINUTE)
    await define(service, of_entities(title="Newer"), publish=False)
    answer = await visitor.send("/data-sources/owners/publish", seen=seen(html))
    assert answer.status_code == 409
    assert "user:tester changed this source now" in words(answer.text)
    assert (await shown(service, "owners"))["draft"] is True


# Publishing


async def test_a_fact_that_would_be_lost_is_published_only_on_purpose(service: Service) -> None:
    await define(service, pushed())
    visitor = await signed_in(service)
    html = await visitor.text("/data-sources/coverage/edit")
    service.time.advance(MINUTE)
    text = yaml_text.write_yaml(pushed(schema={"tool": {"type": "boolean"}}))
    answer = await send(visitor, text, "publish", "/data-sources/coverage/edit", seen=seen(html))
    assert answer.status_code == 409
    told = words(answer.text)
    assert "everything that reads these facts would lose them" in told
    assert "schema.lines is removed schema.tool was string, is boolean" in told
    assert (await shown(service))["version"] == "1.0.0"
    path = "/data-sources/coverage/publish"
    again = await visitor.send(path, seen=seen(answer.text))
    assert again.status_code == 409
    done = await visitor.done(path, seen=seen(answer.text), force="yes")
    assert "Version 2.0.0 is published." in done
    assert (await shown(service))["version"] == "2.0.0"


async def test_a_draft_is_published_from_the_page_of_its_source(service: Service) -> None:
    await define(service, of_entities())
    service.time.advance(MINUTE)
    await define(service, of_entities(title="Newer"), publish=False)
    visitor = await signed_in(service)
    html = await visitor.text("/data-sources/owners")
    assert "There is an unpublished draft" in html
    done = await visitor.done("/data-sources/owners/publish", seen=seen(html))
    assert "Version 1.0.1 is published." in done
