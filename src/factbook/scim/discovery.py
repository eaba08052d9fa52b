"""Descriptions of the service for identity providers (RFC 7643, 5 to 7)."""

from collections.abc import Iterable
from typing import Any, Final

from factbook.scim.attributes import ATTRIBUTES, URN, Attribute, TypeName

MOST: Final = 200
LIST: Final = "urn:ietf:params:scim:api:messages:2.0:ListResponse"
_CONFIG: Final = "urn:ietf:params:scim:schemas:core:2.0:ServiceProviderConfig"
_TYPE: Final = "urn:ietf:params:scim:schemas:core:2.0:ResourceType"
_SCHEMA: Final = "urn:ietf:params:scim:schemas:core:2.0:Schema"
_ABOUT: Final[dict[TypeName, str]] = {
    "User": "People, who are users of the catalog while they are active.",
    "Group": "Groups of people, which are groups of the catalog.",
}


def config(base: str) -> dict[str, Any]:
    """The configuration of the service."""
    return {
        "schemas": [_CONFIG],
        "patch": {"supported": True},
        "bulk": {"supported": False, "maxOperations": 0, "maxPayloadSize": 0},
        "filter": {"supported": True, "maxResults": MOST},
        "changePassword": {"supported": False},
        "sort": {"supported": False},
        "etag": {"supported": True},
        "authenticationSchemes": [
            {
                "type": "oauthbearertoken",
                "name": "Token",
                "description": "A token with the permission scim.write, as a bearer token.",
                "primary": True,
            }
        ],
        "meta": {
            "resourceType": "ServiceProviderConfig",
            "location": f"{base}/ServiceProviderConfig",
        },
    }


def resource_types(base: str) -> list[dict[str, Any]]:
    """The types of resources."""
    return [
        {
            "schemas": [_TYPE],
            "id": name,
            "name": name,
            "description": _ABOUT[name],
            "endpoint": f"/{name}s",
            "schema": f"{URN}{name}",
            "meta": {"resourceType": "ResourceType", "location": f"{base}/ResourceTypes/{name}"},
        }
        for name in ATTRIBUTES
    ]


def schemas(base: str) -> list[dict[str, Any]]:
    """The schemas of users and groups, and those of the documents here."""
    described: list[tuple[str, str, Iterable[Attribute]]] = [
        *((name, _ABOUT[name], parts) for name, parts in ATTRIBUTES.items()),
        ("ServiceProviderConfig", "What the service offers.", _CONFIG_PARTS),
        ("ResourceType", "A type of resources.", _TYPE_PARTS),
        ("Schema", "The attributes of a type of resources.", _SCHEMA_PARTS),
    ]
    return [
        {
            "schemas": [_SCHEMA],
            "id": f"{URN}{name}",
            "name": name,
            "description": about,
            "attributes": [_described(one) for one in parts],
            "meta": {"resourceType": "Schema", "location": f"{base}/Schemas/{URN}{name}"},
        }
        for name, about, parts in described
    ]


def listed(resources: list[dict[str, Any]]) -> dict[str, Any]:
    """A whole list in one answer."""
    count = len(resources)
    return {
        "schemas": [LIST],
        "totalResults": count,
        "startIndex": 1,
        "itemsPerPage": count,
        "Resources": resources,
    }


def _described(attribute: Attribute) -> dict[str, Any]:
    told: dict[str, Any] = {
        "name": attribute.name,
        "type": attribute.kind,
        "multiValued": attribute.many,
        "description": attribute.about,
        "required": attribute.required,
        "mutability": attribute.mutability,
        "returned": "default",
    }
    if attribute.kind in {"string", "reference"}:
        told["caseExact"] = attribute.exact or attribute.kind == "reference"
        told["uniqueness"] = "server" if attribute.unique else "none"
    if attribute.values:
        told["canonicalValues"] = list(attribute.values)
    if attribute.refers_to:
        told["referenceTypes"] = list(attribute.refers_to)
    if attribute.parts:
        told["subAttributes"] = [_described(one) for one in attribute.parts]
    return told


def _read_only(name: str, about: str, kind: Any = "string", *parts: Attribute) -> Attribute:
    return Attribute(name, about, kind, mutability="readOnly", parts=parts)


def _offer(name: str, about: str, *parts: Attribute) -> Attribute:
    supported = _read_only("supported", "True if it is offered.", "boolean")
    return _read_only(name, about, "complex", supported, *parts)


_CONFIG_PARTS: Final = (
    _offer("patch", "Changes by PATCH."),
    _offer("bulk", "Several changes in one call."),
    _offer("filter", "Filters of lists."),
    _offer("changePassword", "Changes of passwords."),
    _offer("sort", "Orders of lists."),
    _offer("etag", "Versions of resources."),
    _read_only(
        "authenticationSchemes",
        "How callers prove who they are.",
        "complex",
        _read_only("type", "Kind of the scheme."),
        _read_only("name", "Name of the scheme."),
        _read_only("description", "Description of the scheme."),
        _read_only("primary", "True for the preferred scheme.", "boolean"),
    )._replace(many=True),
)
_TYPE_PARTS: Final = (
    _read_only("name", "Name of the type."),
    _read_only("description", "Description of the type."),
    _read_only("endpoint", "Address of its resources, below that of the service."),
    _read_only("schema", "Schema of its resources."),
)
_SCHEMA_PARTS: Final = (
    _read_only("name", "Name of the schema."),
    _read_only("description", "Description of the schema."),
    _read_only(
        "attributes",
        "Attributes of the resources.",
        "complex",
        _read_only("name", "Name of the attribute."),
        _read_only("type", "Type of its values."),
        _read_only("multiValued", "True if it has several values.", "boolean"),
        _read_only("description", "Description of the attribute."),
        _read_only("required", "True if it has to be there.", "boolean"),
        _read_only("caseExact", "True if letters differ by case.", "boolean"),
        _read_only("mutability", "Who may change it."),
        _read_only("returned", "When it is in an answer."),
        _read_only("uniqueness", "Where a value may be used once only."),
    )._replace(many=True),
)
