"""The audit as tests read it."""

from typing import Any

import httpx2

from tests.service import Service

AUDIT = "/api/access/v1/audit"
TOKENS = "/api/access/v1/tokens"
ENTITIES = "/api/catalog/entities"
TESTER = "user:default/tester"

Record = dict[str, Any]


async def records(service: Service, **query: Any) -> list[Record]:
    """The records, oldest first."""
    answer = await service.http.get(AUDIT, params={"limit": 1000, **query})
    assert answer.status_code == 200, answer.text
    found: list[Record] = answer.json()["records"]
    return found[::-1]


class Watch:
    """Tells what is new in the audit since it was last asked."""

    def __init__(self, service: Service) -> None:
        self._service = service
        self._seen = 0

    async def new(self) -> list[Record]:
        found = (await records(self._service))[self._seen :]
        self._seen += len(found)
        return found

    async def written(self, answer: httpx2.Response) -> tuple[str, str, dict[str, Any]]:
        """What the one record of a write says."""
        assert answer.status_code < 300, answer.text
        [record] = await self.new()
        assert (record["actor"], record["outcome"]) == (TESTER, "done")
        assert (record["address"], record["status"]) == ("127.0.0.1", answer.status_code)
        assert record["at"] == "2026-11-21T12:00:00.000+00:00"
        assert record["token"] == await token_id(self._service)
        return record["action"], record["object"], record["detail"]

    async def refused(self, answer: httpx2.Response) -> Record:
        """The one record of a refusal."""
        assert answer.status_code >= 400, answer.text
        [record] = await self.new()
        assert (record["action"], record["outcome"]) == ("call.refused", "refused")
        assert record["status"] == answer.status_code
        return record


async def token_id(service: Service, name: str = "test") -> str:
    listed = (await service.http.get(TOKENS)).json()["tokens"]
    [id_] = [token["id"] for token in listed if token["name"] == name]
    return str(id_)
