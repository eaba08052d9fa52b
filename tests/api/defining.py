"""Data sources that tests define, and facts that they push."""

from typing import Any

import httpx2

from tests.service import Service

_PATH = "/api/tech-insights/v1"
SOURCES = f"{_PATH}/data-sources"
CONNECTIONS = f"{_PATH}/connections"
FACTS = f"{_PATH}/facts"
WEB = "component:default/web"
API = "component:default/api"

LINES = {"type": "integer", "description": "Covered lines."}
TOOL = {"type": "string"}


def pushed(id_: str = "coverage", **more: Any) -> dict[str, Any]:
    """A source whose facts are pushed."""
    return {
        "id": id_,
        "title": "Coverage",
        "handlerDefinition": {"type": "push", "config": {"id": id_}},
        "schema": {"lines": LINES, "tool": TOOL},
        **more,
    }


def of_entities(id_: str = "owners", **more: Any) -> dict[str, Any]:
    """A source that is collected, from the entities themselves."""
    return {
        "id": id_,
        "title": "Owners",
        "cadence": "0 * * * *",
        "handlerDefinition": {"type": "entity", "config": {"id": id_}},
        "schema": {"owner": {"type": "string", "extract": {"jmespath": "spec.owner"}}},
        **more,
    }


async def define(service: Service, document: dict[str, Any], *, publish: bool = True) -> None:
    """Define a source, and publish it."""
    answer = await service.http.put(f"{SOURCES}/{document['id']}", json=document)
    assert answer.status_code == 200, answer.text
    if publish:
        answer = await service.http.post(f"{SOURCES}/{document['id']}/publish")
        assert answer.status_code == 200, answer.text


async def shown(service: Service, id_: str = "coverage") -> dict[str, Any]:
    """The source as the interface shows it."""
    answer = await service.http.get(f"{SOURCES}/{id_}")
    assert answer.status_code == 200, answer.text
    found: dict[str, Any] = answer.json()
    return found


def item(entity: str = WEB, timestamp: str | None = None, **facts: Any) -> dict[str, Any]:
    """An item to push."""
    time = {} if timestamp is None else {"timestamp": timestamp}
    return {"entity": entity, "facts": facts, **time}


async def push(service: Service, *items: dict[str, Any], to: str = "coverage") -> dict[str, Any]:
    """What the answer to a push says."""
    answer = await service.http.post(f"{FACTS}/{to}", json={"items": items})
    assert answer.status_code == 200, answer.text
    found: dict[str, Any] = answer.json()
    return found


async def latest(service: Service, id_: str = "coverage", **query: Any) -> dict[str, Any]:
    """The latest facts by the references of the entities."""
    answer = await service.http.get(f"{FACTS}/{id_}", params=query)
    assert answer.status_code == 200, answer.text
    return {one["entityRef"]: one["facts"] for one in answer.json()["entities"]}


async def history(service: Service, entity: str = WEB, **query: Any) -> list[dict[str, Any]]:
    """The history of an entity."""
    answer = await service.http.get(FACTS, params={"entity": entity, **query})
    assert answer.status_code == 200, answer.text
    items: list[dict[str, Any]] = answer.json()["items"]
    return items


def refusal(answer: httpx2.Response, status: int) -> str:
    """The message of a refusal with this status."""
    assert answer.status_code == status, answer.text
    message: str = answer.json()["error"]["message"]
    return message


def problems(answer: httpx2.Response) -> dict[str, str]:
    """The problems that a refusal lists, by path."""
    return {one["path"]: one["message"] for one in answer.json()["error"]["problems"]}
