"""A fake Backstage catalog as an ASGI application: entities in pages, by cursor.

As its catalog backend 3.x answers `GET /api/catalog/entities/by-query`: in the order of the ids, a
cursor holds the filter and the last id, `totalItems` is counted for every page.
"""

import base64
import json
import uuid
from collections.abc import Iterable
from typing import Any

from starlette.requests import Request
from starlette.responses import Response

from tests.fakes.fake import Fake
from tests.fakes.faults import as_json

Entity = dict[str, Any]

TOKEN = "backstage-token-of-tests"
_PATH = "/api/catalog/entities/by-query"


class FakeBackstage(Fake):
    """The entities of a catalog; `requests` counts pages and others."""

    def __init__(self, entities: Iterable[Entity] = (), *, seconds: float = 0) -> None:
        super().__init__(seconds=seconds)
        self.entities: dict[str, Entity] = {}
        self.sizes: list[int] = []
        for entity in entities:
            self.add(entity)

    def add(self, entity: Entity) -> Entity:
        """Register an entity, which gets an id, an etag and what Backstage computes."""
        uid, annotations = str(uuid.uuid4()), entity["metadata"].get("annotations", {})
        place = "url:https://github.com/acme/shop/blob/main/catalog-info.yaml"
        metadata = {"namespace": "default", **entity["metadata"], "uid": uid, "etag": "0"}
        metadata["annotations"] = {
            "backstage.io/managed-by-location": place,
            "backstage.io/managed-by-origin-location": f"{place}#origin",
            **annotations,
        }
        self.entities[uid] = entity | {
            "metadata": metadata,
            "relations": [{"type": "ownedBy", "targetRef": "group:default/team-a"}],
            "status": {"items": []},
        }
        return self.entities[uid]

    def remove(self, uid: str) -> None:
        del self.entities[uid]

    def kind(self, request: Request) -> str:
        return "page" if request.url.path == _PATH else "other"

    async def answer(self, request: Request) -> Response:
        """The answer of Backstage."""
        if request.headers.get("authorization") != f"Bearer {TOKEN}":
            return as_json({"error": {"name": "AuthenticationError", "message": "no"}}, 401)
        if request.url.path != _PATH:
            return as_json({"error": {"name": "NotFoundError", "message": "no"}}, 404)
        query = request.query_params
        assert not ("cursor" in query and "filter" in query), "a cursor holds the filter"
        self.sizes.append(int(query["limit"]))
        if "cursor" in query:
            position = json.loads(base64.urlsafe_b64decode(query["cursor"]))
        else:
            position = {"filters": query.getlist("filter"), "after": ""}
        return as_json(self._page(position, int(query["limit"]), query["fields"].split(",")))

    def _page(self, position: dict[str, Any], limit: int, fields: list[str]) -> dict[str, Any]:
        found = [
            (uid, one)
            for uid, one in sorted(self.entities.items())
            if _fits(one, position["filters"])
        ]
        rest = [each for each in found if each[0] > position["after"]]
        page = rest[:limit]
        info = {}
        if len(rest) > limit:
            cursor = json.dumps(position | {"after": page[-1][0]}).encode()
            info["nextCursor"] = base64.urlsafe_b64encode(cursor).decode()
        items = [{key: one[key] for key in fields if key in one} for _, one in page]
        return {"items": items, "totalItems": len(found), "pageInfo": info}


def _fits(entity: Entity, filters: list[str]) -> bool:
    """True if the entity is of one of the kinds; other filters are the product's own to test."""
    kinds = [text.removeprefix("kind=") for text in filters]
    return not kinds or entity["kind"].lower() in kinds
