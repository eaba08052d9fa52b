"""The editor of custom data sources: beginning, saving, trying and publishing one."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import msgspec
import pytest

from factbook.clock import MINUTE
from factbook.sources.custom import skeletons, texts
from factbook.web import source_words
from tests.api.defining import SOURCES, define, of_entities, pushed, shown
from tests.conftest import StartService
from tests.service import Service, component
from tests.web.visiting import Browser, signed_in, words

ON_SQLITE = pytest.mark.parametrize("database_url", ["sqlite"], indirect=True)
TEXT = """\
id: owners
title: Owners
cadence: 0 * * * *  # a comment
handlerDefinition: {type: entity, config: {id: owners}}
schema:
  owner: {type: string, extract: {jmespath: spec.owner}}
  wrong: {type: integer, extract: {jmespath: metadata.name}}
  none: {type: string, extract: {jmespath: spec.none}}
"""
EDIT = "/data-sources/owners/edit"


async def send(browser: Browser, text: str, do: str = "save", path: str = EDIT, **more: str) -> Any:
    """Send the form of the editor as it was opened last."""
    return await browser.send(path, text=text, do=do, **more)


def seen(html: str) -> str:
    """Which draft the form was made of."""
    return html.partition('name="seen" value="')[2].partition('"')[0]


# Beginning


@pytest.mark.parametrize("type_", source_words.TYPES)
async def test_each_kind_begins_with_a_definition_that_can_be_saved(
    service: Service, type_: str
) -> None:
    visitor = await signed_in(service)
    page = await visitor.text("/data-sources/new")
    assert source_words.TYPES[type_][1].replace("'", "&#39;") in page
    html = await visitor.text("/data-sources/new", type=type_, id="last-build")
    text = skeletons.skeleton("last-build", type_)  # type: ignore[arg-type]
    assert words(text.replace("<", "&lt;")) in words(html)
    done = words(await visitor.done("/data-sources/new", text=text, do="save"))
    assert "The draft is saved." in done
    assert (await shown(service, "last-build"))["handlerDefinition"]["type"] == type_


@pytest.mark.parametrize(
    ("id_", "type_", "told"),
    [
        ("a b", "http", "is no id of a source"),
        ("<script>", "http", "is no id of a source"),
        ("techdocs", "http", "is a builtin data source"),
        ("github", "http", "is the id of a builtin data source"),
        ("owners", "http", "There is a data source owners already"),
        ("new", "push", "choose another id"),
        ("more", "other", "Choose where the facts come from."),
    ],
)
async def test_an_id_that_cannot_be_is_refused_before_anything_is_written(
    service: Service, id_: str, type_: str, told: str
) -> None:
    await define(service, of_entities())
    visitor = await signed_in(service)
    html = await visitor.text("/data-sources/new", 400, type=type_, id=id_)
    assert told in words(html)
    assert "<script>" not in html


# Saving


async def test_a_new_source_is_saved_changed_and_published(service: Service) -> None:
    visitor = await signed_in(service)
    html = await visitor.done("/data-sources/new", text=TEXT, do="save")
    assert "This is a draft" in html
    assert "a comment" not in html
    changed = TEXT.replace("title: Owners", "title: Who owns it")
    done = words(await visitor.done(EDIT, text=changed, do="publish", seen=seen(html)))
    assert "Version 1.0.0 is published." in done
    assert "Who owns it" in done
    assert (await shown(service, "owners"))["version"] == "1.0.0"
    rows = await service.state.database.all(
        "SELECT action, actor FROM audit WHERE action LIKE 'data-source%' ORDER BY at, id"
    )
    actions = ["data-source.create", "data-source.replace", "data-source.publish"]
    assert rows == [(action, "user:default/ada") for action in actions]


async def test_json_is_taken_as_well(service: Service) -> None:
    visitor = await signed_in(service)
    text = msgspec.json.format(msgspec.json.encode(of_entities()), indent=2).decode()
    assert "The draft is saved." in await visitor.done("/data-sources/new", text=text, do="save")


async def test_what_says_the_same_as_what_is_published_is_no_draft(service: Service) -> None:
    await define(service, of_entities())
    visitor = await signed_in(service)
    html = await visitor.text(EDIT)
    done = await visitor.done(EDIT, text=texts.written(of_entities()), do="save", seen=seen(html))
    assert "Nothing differs from what is published." in done


async def test_all_problems_are_shown_at_once_and_the_text_is_kept(service: Service) -> None:
    visitor = await signed_in(service)
    text = """\
id: owners
title: Owners </textarea><script>alert(1)</script>
handlerDefinition: {type: entity, config: {id: other, more: 1}}
schema:
  owner: {type: string, extract: {jmespath: "spec.["}, extra: 1}
  second: {type: string}
"""
    answer = await send(visitor, text, path="/data-sources/new")
    assert answer.status_code == 400
    told = words(answer.text)
    for path in (
        "handlerDefinition.config.id",
        "handlerDefinition.config.more",
        "schema.owner.extra",
        "schema.owner.extract",
        "schema.second.extract",
    ):
        assert path in told
    assert "<script>alert" not in answer.text
    assert words(text.replace("<", "&lt;")) in told
    assert await service.state.database.all("SELECT id FROM data_sources") == []


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("id: a: b", "line 1 mapping values are not allowed"),
        ("id: a\nid: b", 'line 2 the key "id" is there twice'),
        ("schema:\n  a: {}\n  a: {}", 'line 3 the key "a" is there twice'),
        ('{"id": "a",', "did not find expected"),
        ("- a", "has to be a mapping"),
        ("", "has to be a mapping"),
        ("id: !!python/object:os.system x", "could not determine a constructor"),
        ("a: &a [x, x]\nb: &b [*a, *a, *a]\nc: [*b, *b, *b]", "has an alias, which is not read"),
        ("[" * 5_000, "is nested more than 100 deep"),
        ("{" * 5_000, "is nested more than 100 deep"),
        ("a: " + "x" * 300_000, "has more than 256 KiB"),
        ("version: 1.0.0\nid: a", "title is required"),
        ("---\nid: a\n---\nid: b", "line"),
    ],
    ids=range(13),
)
async def test_a_text_that_is_no_definition_is_refused_with_where_it_is_wrong(
    service: Service, text: str, told: str
) -> None:
    visitor = await signed_in(service)
    answer = await send(visitor, text, path="/data-sources/new")
    assert answer.status_code == 400
    assert told in words(answer.text)


@ON_SQLITE
async def test_a_form_that_is_too_large_is_refused(service: Service) -> None:
    visitor = await signed_in(service)
    answer = await send(visitor, "x" * 600_000, path="/data-sources/new")
    assert answer.status_code == 413


async def test_another_id_than_that_of_the_source_is_refused(service: Service) -> None:
    await define(service, of_entities())
    visitor = await signed_in(service)
    html = await visitor.text(EDIT)
    answer = await send(visitor, TEXT.replace("owners", "others"), seen=seen(html))
    assert answer.status_code == 400
    assert "id has to be owners, as in the address" in words(answer.text)


async def test_an_id_that_is_taken_is_refused_and_the_text_kept(service: Service) -> None:
    await define(service, of_entities())
    visitor = await signed_in(service)
    answer = await send(visitor, TEXT, path="/data-sources/new")
    assert answer.status_code == 409
    assert "There is a data source owners already; choose another id." in words(answer.text)
    assert "a comment" in answer.text
    for id_, told in (("techdocs", "techdocs is a builtin data source"), ("new", "another id")):
        taken = await send(visitor, TEXT.replace("owners", id_), path="/data-sources/new")
        assert taken.status_code == 409
        assert told in words(taken.text)


async def test_builtin_sources_have_no_editor(service: Service) -> None:
    visitor = await signed_in(service)
    assert "builtin" in await visitor.text("/data-sources/techdocs/edit", 409)


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
    text = texts.written(pushed(schema={"tool": {"type": "boolean"}}))
    answer = await send(visitor, text, "publish", "/data-sources/coverage/edit", seen=seen(html))
    assert answer.status_code == 409
    told = words(answer.text)
    assert "whoever reads these facts would lose them" in told
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
    assert "There is a draft that is not published" in html
    done = await visitor.done("/data-sources/owners/publish", seen=seen(html))
    assert "Version 1.0.1 is published." in done


# Trying


@pytest.fixture
async def trying(service: Service) -> Browser:
    """A person who defines a source, and an entity to try it on."""
    await service.push("all", component("web", owner="<i>team</i>"))
    return await signed_in(service)


@pytest.mark.parametrize("entity", ["web", "component:web", "Component:default/WEB"])
async def test_a_text_is_tried_without_being_stored(
    service: Service, trying: Browser, entity: str
) -> None:
    answer = await send(trying, TEXT, "try", "/data-sources/new", entity=entity)
    assert answer.status_code == 200
    told = words(answer.text)
    assert "component:web: 1 of 3 facts" in told
    assert 'owner string "<i>team</i>"' in told
    assert "unknown upstream-error: expected an integer, not this string" in told
    assert "unknown not-applicable: the document has no such value" in told
    assert '"owner":"<i>team</i>"' in told
    assert "<i>team" not in answer.text
    assert "a comment" in told
    for table in ("facts_latest", "data_sources", "runs"):
        assert await service.state.database.all(f"SELECT * FROM {table}") == []  # noqa: S608 - ours


@pytest.mark.parametrize(
    ("entity", "status", "told"),
    [
        ("", 400, "Name an entity to try it on."),
        ("nobody", 404, "There is no entity component:default/nobody."),
        ("<b>:", 400, "not of the form"),
    ],
)
async def test_an_entity_that_cannot_be_tried_is_told(
    trying: Browser, entity: str, status: int, told: str
) -> None:
    answer = await send(trying, TEXT, "try", "/data-sources/new", entity=entity)
    assert answer.status_code == status
    assert told in words(answer.text)
    assert "<b>" not in answer.text


async def test_a_trial_shows_problems_of_the_text_first(trying: Browser) -> None:
    answer = await send(trying, "id: owners", "try", "/data-sources/new", entity="web")
    assert answer.status_code == 400
    assert "title is required" in words(answer.text)


async def test_a_connection_that_there_is_not_is_told(service: Service, trying: Browser) -> None:
    text = skeletons.skeleton("builds", "http")
    answer = await send(trying, text, "try", "/data-sources/new", entity="web")
    assert answer.status_code == 400
    assert "no connection 'ci'" in words(answer.text)
    assert "There is none yet." in words(answer.text)


async def test_entities_that_fit_the_filter_are_suggested(service: Service) -> None:
    await service.push("all", component("web"), component("db") | {"kind": "Resource"})
    await define(service, of_entities(entityFilter=[{"kind": "component"}]))
    html = await (await signed_in(service)).text(EDIT)
    assert '<option value="component:default/web">' in html
    assert "resource:default/db" not in html


@asynccontextmanager
async def answering(answer: Callable[[bytes], bytes]) -> AsyncIterator[str]:
    """The address of a host that answers each request with what is made of its head."""

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(answer(await reader.readuntil(b"\r\n\r\n")))
        await writer.drain()
        writer.close()

    async with await asyncio.start_server(serve, "127.0.0.1") as server:
        yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"


def answer_of(status: str, content_type: str, body: bytes) -> bytes:
    """What a host sends."""
    head = f"HTTP/1.1 {status}\r\ncontent-type: {content_type}\r\ncontent-length: {len(body)}"
    return f"{head}\r\n\r\n".encode() + body


async def tried_on(start: StartService, url: str) -> str:
    """What the page of a trial says whose connection leads to this address."""
    connection = {"base_url": url, "headers": {"authorization": "Bearer of-the-settings"}}
    service = await start(connections={"ci": connection}, outgoing_networks=["127.0.0.0/8"])
    await service.push("all", component("web"))
    visitor = await signed_in(service)
    text = skeletons.skeleton("builds", "http")
    answer = await send(visitor, text, "try", "/data-sources/new", entity="web")
    assert answer.status_code == 200, words(answer.text)
    html: str = answer.text
    return html


async def test_the_answer_of_another_system_stays_text(start: StartService) -> None:
    body = b"<script>alert(1)</script>\x00\xff" + b"x" * 100_000
    async with answering(lambda _: answer_of("500 Oops", "text/<b>", body)) as url:
        html = await tried_on(start, url)
    told = words(html)
    assert '"path": "/jobs/web/last"' in told
    assert "status 500, text/<b>, the first 64 KiB" in told
    assert "upstream-error: 127.0.0.1: answered 500" in told
    assert "<script>alert" not in html
    assert "text/<b>" not in html
    assert len(html) < 200_000


async def test_an_answer_that_repeats_the_secret_is_not_shown(start: StartService) -> None:
    async with answering(lambda head: answer_of("200 OK", "text/plain", head)) as url:
        html = await tried_on(start, url)
    assert "What came of it" in html
    assert "of-the-settings" not in html
