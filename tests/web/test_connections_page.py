"""The pages of connections: what sources may ask, and secrets that nobody sees again."""

from typing import Any

import pytest

from factbook.clock import DAY
from tests.api.defining import define, of_entities
from tests.conftest import StartService
from tests.service import Service
from tests.web.visiting import Browser, signed_in, words

PATH = "/administration/connections"
SECRET = "Bearer s3cr3t-value-of-the-header"
OTHER = "another-s3cr3t-value"


def fields(**more: str) -> dict[str, str]:
    """The form of a sound connection."""
    return {
        "name": "ci",
        "base_url": "https://ci.example.com/api",
        "methods": "GET",
        "at_once": "4",
        "header-0": "Authorization",
        "value-0": SECRET,
        **more,
    }


async def made(service: Service) -> Browser:
    """A person who has made a connection."""
    visitor = await signed_in(service)
    assert "The connection ci was made." in await visitor.done(f"{PATH}/new", **fields())
    return visitor


async def headers_of(service: Service, name: str = "ci") -> dict[str, str]:
    """What is sent with each request."""
    await service.state.registry.latest()
    found: Any = service.state.registry.connections[name]
    headers: dict[str, str] = found.headers
    return headers


def asking(connection: str = "ci") -> dict[str, Any]:
    """A source that asks a connection."""
    config = {"id": "builds", "connection": connection, "path": "/"}
    return of_entities("builds", handlerDefinition={"type": "http", "config": config})


async def test_without_a_connection_it_says_what_one_is_for(service: Service) -> None:
    shown = words(await (await signed_in(service)).text(PATH))
    assert "No connection yet" in shown
    assert "Create the first" in shown


async def test_a_connection_is_made_and_listed_without_its_secret(service: Service) -> None:
    visitor = await made(service)
    service.time.advance(2 * DAY)
    await define(service, asking())
    html = await visitor.text(PATH)
    shown = words(html)
    assert "ci https://ci.example.com/api GET, 4 requests at once" in shown
    assert "authorization set 2 days ago" in shown
    assert "2 days ago by user:ada" in shown
    assert 'href="/data-sources/builds"' in html
    assert await headers_of(service) == {"authorization": SECRET}


async def test_a_value_that_is_left_empty_is_kept(service: Service) -> None:
    visitor = await made(service)
    html = await visitor.text(f"{PATH}/ci/edit")
    assert "Set now; empty keeps it" in html
    changed = fields(**{"value-0": "", "header-1": "X-Team", "value-1": OTHER, "methods": "POST"})
    del changed["name"]
    done = await visitor.done(f"{PATH}/ci/edit", **changed)
    assert "The connection ci was changed." in done
    assert "POST, 4 requests" in words(done)
    assert await headers_of(service) == {"authorization": SECRET, "x-team": OTHER}


async def test_a_header_is_removed_by_its_box(service: Service) -> None:
    visitor = await made(service)
    changed = {"value-0": "", "remove-0": "yes", "header-1": "x-team", "value-1": OTHER}
    await visitor.done(f"{PATH}/ci/edit", **fields(**changed))
    assert await headers_of(service) == {"x-team": OTHER}


async def test_another_host_needs_the_values_again(service: Service) -> None:
    visitor = await made(service)
    moved = fields(base_url="https://evil.example.com", **{"value-0": ""})
    answer = await visitor.send(f"{PATH}/ci/edit", **moved)
    assert answer.status_code == 400
    told = "Header authorization has to be given again, because the host is another one"
    assert told in words(answer.text).replace("Authorization", "authorization")
    assert await headers_of(service) == {"authorization": SECRET}


async def test_what_is_wrong_is_told_and_no_value_comes_back(
    service: Service, subtests: pytest.Subtests
) -> None:
    visitor = await signed_in(service)
    cases: list[tuple[dict[str, str], str]] = [
        ({"name": "Not A Name"}, "Name has to be of lower-case letters"),
        ({"base_url": "ftp://ci.example.com"}, "Address has to begin with https://"),
        ({"base_url": f"https://me:{OTHER}@ci.example.com"}, "Address has to be like"),
        ({"base_url": f"https://ci.example.com?token={OTHER}"}, "Address has to be like"),
        ({"at_once": "0"}, "1"),
        ({"at_once": "many"}, "Requests at once has to be a whole number"),
        ({"at_once": "٣"}, "Requests at once has to be a whole number"),
        ({"methods": "DELETE"}, "Methods can be GET and POST"),
        ({"methods": ""}, "Methods"),
        ({"header-0": "", "value-0": OTHER}, "Header has a value without a name"),
        ({"header-0": f"{OTHER}: x y"}, "Header has an invalid name"),
        ({"header-0": "host"}, "is not a connection's to set"),
        ({"header-1": "AUTHORIZATION", "value-1": OTHER}, "is given twice"),
        ({"header-1": "x-new", "value-1": ""}, "has no value yet; give one"),
        ({"value-0": "Bearer ünsendbar"}, "has a character that cannot be sent"),
        ({"value-0": OTHER * 1000}, "is longer than"),
    ]
    for wrong, message in cases:
        with subtests.test(wrong=wrong):
            answer = await visitor.send(f"{PATH}/new", **fields(**wrong))
            assert answer.status_code == 400, words(answer.text)
            assert message in words(answer.text)
            for secret in (SECRET, OTHER, "s3cr3t", "ünsendbar"):
                assert secret not in answer.text
            assert await service.state.database.all("SELECT name FROM connections") == []


async def test_a_secret_is_in_no_page_and_in_no_record(service: Service) -> None:
    visitor = await made(service)
    await define(service, asking())
    await visitor.send(f"{PATH}/ci/edit", **fields(base_url="nothing"))
    paths = (
        PATH,
        f"{PATH}/new",
        f"{PATH}/ci/edit",
        "/data-sources",
        "/data-sources/builds",
        "/data-sources/builds/edit",
        "/data-sources/new?type=http&id=more",
    )
    for path in paths:
        assert "s3cr3t" not in await visitor.text(path), path
    rows = await service.state.database.all("SELECT object, detail FROM audit")
    assert "s3cr3t" not in str(rows)
    stored = await service.state.database.all("SELECT options, secrets FROM connections")
    assert "s3cr3t" not in str(stored)


async def test_a_name_is_not_taken_twice(service: Service) -> None:
    visitor = await made(service)
    answer = await visitor.send(f"{PATH}/new", **fields(**{"value-0": OTHER}))
    assert answer.status_code == 409
    assert "Name is already the name of a connection" in words(answer.text)
    assert await headers_of(service) == {"authorization": SECRET}


async def test_a_connection_that_is_used_is_not_deleted(service: Service) -> None:
    visitor = await made(service)
    await define(service, asking())
    answer = await visitor.send(f"{PATH}/ci/delete")
    assert answer.status_code == 409
    assert "The connection ci is used by builds." in words(answer.text)
    assert await headers_of(service) == {"authorization": SECRET}
    await visitor.done("/data-sources/builds/delete")
    assert "The connection ci was deleted." in await visitor.done(f"{PATH}/ci/delete")
    assert "No connection yet" in await visitor.text(PATH)


async def test_connections_of_the_settings_are_shown_and_cannot_be_changed(
    start: StartService,
) -> None:
    table = {"base_url": "https://ci.example.com", "headers": {"Authorization": SECRET}}
    service = await start(connections={"ci": table})
    await define(service, asking())
    visitor = await signed_in(service)
    html = await visitor.text(PATH)
    shown = words(html)
    assert "ci of the settings https://ci.example.com GET, 4 requests at once" in shown
    assert "authorization set no owner builds" in shown
    assert f"{PATH}/ci/edit" not in html
    assert "s3cr3t" not in html
    for path in (f"{PATH}/ci/edit", f"{PATH}/ci/delete"):
        answer = await visitor.send(path, **fields())
        assert answer.status_code == 409
        assert "comes from the settings: change it there." in words(answer.text)
    taken = await visitor.send(f"{PATH}/new", **fields())
    assert taken.status_code == 409


async def test_a_viewer_sees_no_connections(service: Service) -> None:
    await made(service)
    viewer = await signed_in(service, "vic", "viewer")
    for path in (PATH, f"{PATH}/new", f"{PATH}/ci/edit"):
        await viewer.text(path, 403)
    assert "Connections" not in words(await viewer.text("/data-sources"))
    for path in (f"{PATH}/new", f"{PATH}/ci/edit", f"{PATH}/ci/delete"):
        assert (await viewer.send(path, **fields())).status_code == 403
    assert await headers_of(service) == {"authorization": SECRET}


async def test_a_connection_that_there_is_not_is_told(service: Service) -> None:
    visitor = await signed_in(service)
    assert "There is no connection" in await visitor.text(f"{PATH}/none/edit", 404)
    for path in (f"{PATH}/none/edit", f"{PATH}/none/delete"):
        assert (await visitor.send(path, **fields())).status_code == 404


async def test_what_is_done_is_in_the_audit(service: Service) -> None:
    visitor = await made(service)
    service.time.advance(DAY)
    await visitor.done(f"{PATH}/ci/edit", **fields(**{"value-0": OTHER}))
    await visitor.done(f"{PATH}/ci/delete")
    rows = await service.state.database.all(
        "SELECT action, object, actor FROM audit WHERE action LIKE 'connection%' ORDER BY at, id"
    )
    actions = ["connection.create", "connection.replace", "connection.delete"]
    assert rows == [(action, "ci", "user:default/ada") for action in actions]
