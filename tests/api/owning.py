"""Two groups, an editor in one of them, and sources of both."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import httpx2

from factbook.auth import permissions
from factbook.auth.tokens import Narrowing
from tests.api.defining import CONNECTIONS, SOURCES
from tests.service import Service, component
from tests.web.scoring import group, person

KIM = "user:default/kim"
OURS, THEIRS = "group:default/team-a", "group:default/team-b"
OUR_WEB, THEIR_API = "component:default/web", "component:default/api"
SECRET = "Bearer a-secret-of-a-connection"


async def populated(service: Service) -> None:
    """Push the groups, the editor, and an entity of each group."""
    await service.push("people", group("team-a"), group("team-b"), person("kim", "team-a"))
    answer = await service.push(
        "all", component("web", owner="team-a"), component("api", owner="team-b")
    )
    assert answer.status_code == 200, answer.text


@asynccontextmanager
async def editing(
    service: Service, narrowing: Narrowing | None = None
) -> AsyncIterator[httpx2.AsyncClient]:
    """A client with a token of the editor, who is in one of the groups."""
    token = await service.token(*permissions.ROLES["editor"], owner=KIM, narrowing=narrowing)
    async with service.client(token) as http:
        yield http


def asking(id_: str = "ours", connection: str = "ci", **more: Any) -> dict[str, Any]:
    """A source that asks a connection about entities of the group."""
    handler = {"type": "http", "config": {"id": id_, "connection": connection, "path": "/x"}}
    schema = {"ok": {"type": "boolean", "extract": {"jmespath": "ok"}}}
    return {
        "id": id_,
        "title": "Ours",
        "owner": OURS,
        "cadence": "*/10 * * * *",
        "handlerDefinition": handler,
        "schema": schema,
        **more,
    }


async def connect(service: Service, *owners: str, name: str = "ci", **options: Any) -> None:
    """Make a connection that is shared with these owners alone."""
    given = {"baseUrl": "https://ci.test/api", "headers": {"authorization": SECRET}, **options}
    body = {**given, "sharedWith": owners}
    answer = await service.http.put(f"{CONNECTIONS}/{name}", json=body)
    assert answer.status_code == 200, answer.text


async def made(http: httpx2.AsyncClient, document: dict[str, Any], *, publish: bool = True) -> None:
    """Define a source, and publish it."""
    answer = await http.post(SOURCES, json=document)
    assert answer.status_code == 201, answer.text
    if publish:
        answer = await http.post(f"{SOURCES}/{document['id']}/publish")
        assert answer.status_code == 200, answer.text


def is_of_others(answer: httpx2.Response) -> bool:
    """Whether the answer is 403 and says that a group of theirs has to own it."""
    assert answer.status_code == 403, answer.text
    return "A group of yours has to own this data source" in answer.text
