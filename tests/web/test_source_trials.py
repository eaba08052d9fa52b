"""Trying a definition of a data source on an entity without storing it."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

import pytest

from factbook.datasources.custom import definition
from tests.api.defining import define, of_entities
from tests.conftest import StartService
from tests.service import Service, component
from tests.web.editing import EDIT, TEXT, send
from tests.web.visiting import Browser, signed_in, words


@pytest.fixture
async def trying(service: Service) -> Browser:
    """A person who defines a source, and an entity to try it on."""
    await service.push("all", component("web", owner="<i>team</i>"))
    return await signed_in(service)


async def test_a_text_is_tried_without_being_stored(
    service: Service, trying: Browser, subtests: pytest.Subtests
) -> None:
    for entity in ["web", "component:web", "Component:default/WEB"]:
        with subtests.test(entity=entity):
            answer = await send(trying, TEXT, "try", "/data-sources/new", entity=entity)
            assert answer.status_code == 200
            told = words(answer.text)
            assert "component:web: 1 of 3 facts" in told
            assert 'owner string "<i>team</i>"' in told
            assert (
                "unknown bad-definition: schema.wrong.type: expected an integer, not this string"
                in told
            )
            assert "unknown not-applicable: the document has no such value" in told
            assert '"owner":"<i>team</i>"' in told
            assert "<i>team" not in answer.text
            assert "a comment" in told
            for table in ("facts_latest", "data_sources", "runs"):
                assert await service.state.database.all(f"SELECT * FROM {table}") == []  # noqa: S608 - ours


async def test_an_entity_that_cannot_be_tried_is_told(
    trying: Browser, subtests: pytest.Subtests
) -> None:
    for entity, status, message in [
        ("", 400, "Name an entity to try it on."),
        ("nobody", 404, "There is no entity component:default/nobody in the catalog."),
        ("<b>:", 400, "not of the form"),
    ]:
        with subtests.test(entity=entity):
            answer = await send(trying, TEXT, "try", "/data-sources/new", entity=entity)
            assert answer.status_code == status
            assert message in words(answer.text)
            assert "<b>" not in answer.text


async def test_a_trial_shows_problems_of_the_text_first(trying: Browser) -> None:
    answer = await send(trying, "id: owners", "try", "/data-sources/new", entity="web")
    assert answer.status_code == 400
    assert "title is required" in words(answer.text)


async def test_a_connection_that_there_is_not_is_told(service: Service, trying: Browser) -> None:
    text = definition.write_starter("builds", "http")
    answer = await send(trying, text, "try", "/data-sources/new", entity="web")
    assert answer.status_code == 400
    assert "no connection 'ci'" in words(answer.text)
    assert "There are none yet." in words(answer.text)


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
    text = definition.write_starter("builds", "http")
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
    assert "Result" in html
    assert "of-the-settings" not in html


@pytest.mark.parametrize("status", ["200 OK", "500 Oops"])
async def test_a_content_type_that_repeats_the_secret_is_not_shown(
    start: StartService, status: str
) -> None:
    async with answering(lambda _: answer_of(status, "text/of-the-settings", b"{}")) as url:
        html = await tried_on(start, url)
    assert "Result" in html
    assert "of-the-settings" not in html
