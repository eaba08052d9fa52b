"""Questions to by-query, and what of the answers is looked at."""

from typing import Any

from tests.service import Service

QUERY = "/api/catalog/entities/by-query"


async def page(service: Service, **query: Any) -> dict[str, Any]:
    """The answer to these parameters."""
    answer = await service.http.get(QUERY, params=query)
    assert answer.status_code == 200, answer.text
    found: dict[str, Any] = answer.json()
    return found


async def posted(service: Service, **body: Any) -> dict[str, Any]:
    """The answer to this body."""
    answer = await service.http.post(QUERY, json=body)
    assert answer.status_code == 200, answer.text
    found: dict[str, Any] = answer.json()
    return found


def names(page: dict[str, Any]) -> str:
    return "".join(item["metadata"]["name"] for item in page["items"])


async def refusal(service: Service, body: Any) -> str:
    """The message of a query that is refused with 400."""
    answer = await service.http.post(QUERY, json=body)
    assert answer.status_code == 400, answer.text
    message: str = answer.json()["error"]["message"]
    return message
