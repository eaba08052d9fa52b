"""An identity provider, as tests let it push."""

from pathlib import Path
from typing import Any, Self

import httpx2
import msgspec

from factbook.auth.group_roles import GroupRules
from factbook.catalog.sets import PushRules
from factbook.catalog.store.stored_sets import Actor
from factbook.scim.directory import DirectoryTarget, ScimDirectory
from factbook.settings import Settings
from tests.service import NOON, Service

USERS = "/scim/v2/Users"
GROUPS = "/scim/v2/Groups"
OKTA = "user:default/okta"
MEDIA = "application/scim+json"

Json = dict[str, Any]


class Provider:
    """Calls of an identity provider with a token that can do nothing else."""

    def __init__(self, http: httpx2.AsyncClient) -> None:
        self.http = http

    @classmethod
    async def at(cls, service: Service) -> Self:
        token = await service.token("scim.write", owner=OKTA)
        http = service.client(token)
        http.headers["content-type"] = MEDIA
        return cls(http)

    async def make(self, place: str, **attributes: Any) -> Json:
        """A resource that is made."""
        answer = await self.http.post(place, json=attributes)
        assert answer.status_code == 201, answer.text
        made: Json = answer.json()
        return made

    async def user(self, user_name: str, /, **attributes: Any) -> Json:
        return await self.make(USERS, userName=user_name, **attributes)

    async def group(self, name: str, *members: Json) -> Json:
        return await self.make(GROUPS, displayName=name, members=values(*members))

    async def patch(self, resource: Json, *operations: Json, **headers: str) -> httpx2.Response:
        schemas = ["urn:ietf:params:scim:api:messages:2.0:PatchOp"]
        body = {"schemas": schemas, "Operations": list(operations)}
        return await self.http.patch(place_of(resource), json=body, headers=headers)

    async def patched(self, resource: Json, *operations: Json) -> Json:
        """A resource after a change that is taken."""
        answer = await self.patch(resource, *operations)
        assert answer.status_code == 200, answer.text
        found: Json = answer.json()
        return found

    async def delete(self, resource: Json) -> None:
        answer = await self.http.delete(place_of(resource))
        assert answer.status_code == 204, answer.text

    async def read(self, resource: Json) -> Json:
        answer = await self.http.get(place_of(resource))
        assert answer.status_code == 200, answer.text
        found: Json = answer.json()
        return found

    async def found(self, place: str, filter_: str) -> list[str]:
        """The ids of what a filter finds."""
        answer = await self.http.get(place, params={"filter": filter_})
        assert answer.status_code == 200, answer.text
        return [one["id"] for one in answer.json()["Resources"]]


def person(name: str) -> dict[str, object]:
    """A user as somebody else pushes it."""
    return {
        "apiVersion": "backstage.io/v1alpha1",
        "kind": "User",
        "metadata": {"name": name},
        "spec": {"memberOf": []},
    }


def crew(name: str) -> Json:
    """A group as somebody else pushes it."""
    spec = {"type": "team", "children": []}
    metadata = {"name": name}
    return {
        "apiVersion": "backstage.io/v1alpha1",
        "kind": "Group",
        "metadata": metadata,
        "spec": spec,
    }


def report(name: str) -> list[Json]:
    """The requests of a report in tests/data/reports."""
    file = Path(__file__).parents[1] / "data" / "reports" / name / "requests.jsonl"
    return [msgspec.json.decode(line) for line in file.read_text().splitlines()]


def place_of(resource: Json) -> str:
    return f"/scim/v2/{resource['meta']['resourceType']}s/{resource['id']}"


def values(*resources: Json) -> list[Json]:
    """Resources as members of a group."""
    return [{"value": one["id"]} for one in resources]


def ids(resource: Json, attribute: str = "members") -> set[str]:
    """The ids of the members of a group, or of the groups of a user."""
    return {one["value"] for one in resource.get(attribute, ())}


def problem(answer: httpx2.Response) -> tuple[int, str | None, str]:
    """Status, type and sentence of an error in SCIM's form."""
    body = answer.json()
    assert body["schemas"] == ["urn:ietf:params:scim:api:messages:2.0:Error"]
    assert body["status"] == str(answer.status_code)
    assert answer.headers["content-type"].startswith(MEDIA)
    return answer.status_code, body.get("scimType"), body["detail"]


async def members_of(service: Service, ref: str) -> set[str]:
    """The references of a group's members, as the catalog shows them."""
    entity = await service.catalog(ref)
    assert entity is not None
    return {one["targetRef"] for one in entity["relations"] if one["type"] == "hasMember"}


def directory(service: Service, issuer: str | None) -> ScimDirectory:
    """The directory of a service whose people sign in at this issuer."""
    rules, actor = PushRules.of(Settings()), Actor(OKTA, NOON)
    groups = GroupRules({}, issuer)
    return ScimDirectory(DirectoryTarget(service.state.database.write, rules, 50, groups, actor))
