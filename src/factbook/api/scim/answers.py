"""Answers in SCIM's form: resources, lists of them, and errors."""

from collections.abc import Mapping, Sequence
from http import HTTPStatus
from typing import Any, Final

import msgspec

from factbook.clock import iso
from factbook.errors import FactbookError, InputError
from factbook.http import error_responses
from factbook.http.context import HandlerContext
from factbook.http.requests import Reply, Request
from factbook.scim.protocol import URN, Resource
from factbook.scim.store import GroupLink, ScimRow

PATH: Final = "/scim/v2"
JSON: Final = b"application/scim+json; charset=utf-8"
_ERROR: Final = "urn:ietf:params:scim:api:messages:2.0:Error"
# They are in every answer, whatever is asked for.
_ALWAYS: Final = frozenset({"schemas", "id", "meta"})


def reply(value: Any, status: int = 200, **headers: str) -> Reply:
    """A reply in JSON."""
    return Reply(msgspec.json.encode(value), status, headers, JSON)


def error(error: FactbookError, request: Request) -> Reply:
    """An error in SCIM's form (RFC 7644, 3.12); no header values."""
    message = error_responses.told(error, request)
    body = {"schemas": [_ERROR], "status": str(error.status), "detail": message}
    kind = error.details.get("scimType")
    if kind is None and isinstance(error, InputError):
        kind = "invalidSyntax"
    if kind is not None:
        body["scimType"] = kind
    # It quotes what was sent: no browser is to take it for anything but JSON.
    headers = {**error.headers(), "x-content-type-options": "nosniff"}
    return Reply(msgspec.json.encode(body), error.status, headers, JSON)


def base(request: Request, state: HandlerContext) -> str:
    """The address of the service, as the caller writes it."""
    server = state.settings.public_url
    if not server:
        host = request.header(b"host") or "localhost"
        server = f"{request.scope.get('scheme', 'http')}://{host}"
    return f"{server.rstrip('/')}{PATH}"


def tag(row: ScimRow) -> str:
    """The version of a resource, as an entity tag."""
    return f'W/"{row.version}"'


def resource(base: str, row: ScimRow, links: Sequence[GroupLink]) -> Resource:
    """A resource with its members, or the groups that it is in."""
    location = f"{base}/{row.type}s/{row.id}"
    shown = {
        "schemas": [f"{URN}{row.type}"],
        "id": row.id,
        **row.resource,
        "meta": {
            "resourceType": row.type,
            "created": iso(row.created_at),
            "lastModified": iso(row.changed_at),
            "location": location,
            "version": tag(row),
        },
    }
    if links and row.type == "Group":
        shown["members"] = [{**_link(base, link), "type": link.type} for link in links]
    elif links:
        shown["groups"] = [{**_link(base, link), "display": link.display} for link in links]
    return shown


def _link(base: str, link: GroupLink) -> Resource:
    return {"value": link.id, "$ref": f"{base}/{link.type}s/{link.id}"}


class AttributeSelection:
    """The attributes that a caller wants of each resource, by the parameters of the query."""

    def __init__(self, query: Mapping[str, str]) -> None:
        self._wanted = _names(query.get("attributes", ""))
        self._unwanted = _names(query.get("excludedAttributes", ""))
        if self._wanted and self._unwanted:
            raise InputError(
                "attributes and excludedAttributes exclude each other.", scimType="invalidValue"
            )

    def has(self, name: str) -> bool:
        """True if the attribute is wanted."""
        if self._wanted:
            return name.lower() in self._wanted
        return name.lower() not in self._unwanted

    def of(self, resource: Resource) -> Resource:
        """The wanted attributes of a resource."""
        return {
            name: value for name, value in resource.items() if name in _ALWAYS or self.has(name)
        }


def _names(text: str) -> frozenset[str]:
    """Names of attributes, without their schemas and parts."""
    names = (one.strip().rpartition(":")[2].partition(".")[0] for one in text.split(","))
    return frozenset(name.lower() for name in names if name)


def created(shown: Resource, row: ScimRow, location: str) -> Reply:
    """The answer to the creation of a resource."""
    return reply(shown, HTTPStatus.CREATED, location=location, etag=tag(row))
