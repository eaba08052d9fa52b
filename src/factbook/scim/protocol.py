"""The SCIM protocol: kept attributes (RFC 7643), filters, and the description of the service.

Filters of lists and change paths (RFC 7644, 3.4.2.2) support `eq`, `and`, `or` and brackets.
"""

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Final, Literal, NamedTuple

from factbook.errors import InputError

TypeName = Literal["User", "Group"]
AttributeKind = Literal["string", "boolean", "complex", "reference"]
Mutability = Literal["readWrite", "readOnly", "immutable"]

URN: Final = "urn:ietf:params:scim:schemas:core:2.0:"
_EXTENSION: Final = "urn:ietf:params:scim:schemas:extension:"
# Longest text that fits into an index, in characters.
_LONGEST_TEXT: Final = 400
_MOST_VALUES: Final = 100
# Most members of a group, which are people or groups.
_MOST_MEMBERS: Final = 100_000

Resource = dict[str, Any]
# Set by the server; input is ignored.
READ_ONLY: Final = frozenset({"id", "meta", "schemas"})
# Standard user attributes that the catalog does not use or keep.
_NOT_KEPT: Final = frozenset({
    "addresses", "entitlements", "ims", "locale", "nickname", "password", "phonenumbers", "photos",
    "preferredlanguage", "profileurl", "roles", "timezone", "usertype", "x509certificates",
})  # fmt: skip

LONGEST_FILTER: Final = 2_000
_DEEPEST_FILTER: Final = 10
_TOKEN: Final = re.compile(
    r"""\s*(?:(?P<mark>[()\[\]])|(?P<text>"(?:[^"\\]|\\["\\/bfnrtu])*")|(?P<word>[^\s()\[\]"]+))"""
)
_WORDS: Final[Mapping[str, Any]] = {"true": True, "false": False, "null": None}
_OTHER_OPERATORS: Final = frozenset({"ne", "co", "sw", "ew", "gt", "ge", "lt", "le", "pr"})

MOST_RESOURCES: Final = 200
LIST_SCHEMA: Final = "urn:ietf:params:scim:api:messages:2.0:ListResponse"
_CONFIG_SCHEMA: Final = "urn:ietf:params:scim:schemas:core:2.0:ServiceProviderConfig"
_TYPE_SCHEMA: Final = "urn:ietf:params:scim:schemas:core:2.0:ResourceType"
_SCHEMA: Final = "urn:ietf:params:scim:schemas:core:2.0:Schema"
_TYPE_DESCRIPTIONS: Final[dict[TypeName, str]] = {
    "User": "People, who are users of the catalog while they are active.",
    "Group": "Groups of people, which are groups of the catalog.",
}


class Attribute(NamedTuple):
    """An attribute; `parts` are those of a complex one, `many` if it has several values."""

    name: str
    about: str
    kind: AttributeKind = "string"
    many: bool = False
    required: bool = False
    exact: bool = False  # case-sensitive
    mutability: Mutability = "readWrite"
    unique: bool = False
    parts: tuple["Attribute", ...] = ()
    values: tuple[str, ...] = ()
    refers_to: tuple[str, ...] = ()

    def part(self, name: str) -> "Attribute | None":
        """The part with this case-insensitive name."""
        return _find_named(self.parts, name)


_COMMON: Final = (
    Attribute("externalId", "Id of the resource at the identity provider.", exact=True),
)


_ACTIVE: Final = Attribute(
    "active", "False: the person has no access, and is not in the catalog.", "boolean"
)


_USER: Final = (
    Attribute("userName", "Unique name to sign in with.", required=True, unique=True),
    Attribute(
        "name",
        "Parts of the person's name.",
        "complex",
        parts=(
            Attribute("formatted", "The whole name."),
            Attribute("familyName", "The family name."),
            Attribute("givenName", "The given name."),
        ),
    ),
    Attribute("displayName", "Name that is shown to others."),
    Attribute("title", "Title such as Vice President."),
    _ACTIVE,
    Attribute(
        "emails",
        "Addresses, of which the primary one is shown in the catalog.",
        "complex",
        many=True,
        parts=(
            Attribute("value", "The address."),
            Attribute("type", "Kind of the address.", values=("work", "home", "other")),
            Attribute("primary", "True for the preferred address.", "boolean"),
        ),
    ),
    Attribute(
        "groups",
        "Groups that the person is a member of.",
        "complex",
        many=True,
        mutability="readOnly",
        parts=(
            Attribute("value", "Id of the group.", mutability="readOnly"),
            Attribute(
                "$ref", "Address of the group.", "reference", mutability="readOnly",
                refers_to=("Group",),
            ),
            Attribute("display", "Name of the group.", mutability="readOnly"),
        ),
    ),
)  # fmt: skip


_GROUP: Final = (
    Attribute("displayName", "Name of the group.", required=True),
    Attribute(
        "members",
        "People and groups in the group.",
        "complex",
        many=True,
        parts=(
            Attribute("value", "Id of the member.", exact=True, mutability="immutable"),
            Attribute(
                "$ref", "Address of the member.", "reference", mutability="immutable",
                refers_to=("User", "Group"),
            ),
            Attribute("type", "User or Group.", mutability="immutable", values=("User", "Group")),
        ),
    ),
)  # fmt: skip


ATTRIBUTES: Final[Mapping[TypeName, tuple[Attribute, ...]]] = {"User": _USER, "Group": _GROUP}


def find_attribute(type_: TypeName, name: str) -> Attribute | None:
    """The attribute with this case-insensitive name, with or without the schema prefix."""
    return _find_named((*_COMMON, *ATTRIBUTES[type_]), strip_schema(type_, name))


def strip_schema(type_: TypeName, name: str) -> str:
    """The name without the schema prefix."""
    schema = f"{URN}{type_}:"
    return name[len(schema) :] if name.lower().startswith(schema.lower()) else name


def is_ignored_attribute(name: str) -> bool:
    """True for an attribute of the standard or an extension that is ignored here."""
    return name.lower().startswith(_EXTENSION) or name.lower() in _NOT_KEPT


def is_inactive_user(type_: TypeName, given: object) -> bool:
    """True if the input deactivates a user, even if the resource is otherwise invalid."""
    if type_ != "User" or not isinstance(given, dict):
        return False
    said = [value for name, value in given.items() if strip_schema(type_, name).lower() == "active"]
    try:
        return bool(said) and convert_value(_ACTIVE, said[-1]) is False
    except InputError:
        return False


def parse_resource(type_: TypeName, given: object) -> Resource:
    """The kept attributes of a resource, with the names and types of the standard.

    Raises InputError for a wrong type and for a missing required attribute.
    """
    if not isinstance(given, dict):
        raise InputError("A resource has to be a JSON object.", scimType="invalidSyntax")
    resource: Resource = {}
    for name, value in given.items():
        attribute = find_attribute(type_, name)
        if attribute is None or attribute.mutability == "readOnly":
            continue
        kept = convert_value(attribute, value)
        if kept is not None:
            resource[attribute.name] = kept
    return check_resource(type_, resource)


def check_resource(type_: TypeName, resource: Resource) -> Resource:
    """The resource; raises InputError without a required attribute, or with too many values."""
    for attribute in ATTRIBUTES[type_]:
        value = resource.get(attribute.name)
        if attribute.many and value:
            check_value_count(attribute, value)
        if attribute.required and (not isinstance(value, str) or not value.strip()):
            raise InputError(f"{attribute.name} is required.", scimType="invalidValue")
    if sum(one.get("primary") is True for one in resource.get("emails", ())) > 1:
        raise InputError("Only one of the emails can be primary.", scimType="invalidValue")
    return resource


def check_value_count(attribute: Attribute, values: Sequence[object]) -> None:
    """Raise InputError for more values than an attribute may have."""
    most = _MOST_MEMBERS if attribute.name == "members" else _MOST_VALUES
    if len(values) > most:
        raise InputError(f"{attribute.name} has more than {most} values.", scimType="invalidValue")


def convert_value(attribute: Attribute, value: object) -> Any:
    """A value in the form of the standard, None if empty; raises InputError for a wrong type."""
    if not attribute.many:
        return _convert_single(attribute, value)
    if value is None:
        return None
    values = value if isinstance(value, list) else [value]
    check_value_count(attribute, values)
    kept = [one for one in (_convert_single(attribute, each) for each in values) if one]
    return drop_same_values(attribute, kept) or None


def drop_same_values(attribute: Attribute, values: Iterable[Resource]) -> list[Resource]:
    """Values of an attribute without duplicates; the last of several equal values stays.

    Members are equal whatever their type; an address may have several types.
    """
    is_member = attribute.name == "members"
    return list({(one.get("value"), is_member or one.get("type")): one for one in values}.values())


def _convert_single(attribute: Attribute, value: object) -> Any:
    # One form of Entra's False is [{"value": "False"}].
    if isinstance(value, list) and len(value) <= 1:
        value = value[0] if value else None
    if attribute.kind == "complex":
        return _convert_complex(attribute, value)
    if isinstance(value, dict) and value.keys() == {"value"}:
        value = value["value"]
    if value is None:
        return None
    if attribute.kind == "boolean":
        # Entra writes "True" and "False".
        text = str(value).lower() if isinstance(value, bool | str) else ""
        if text not in {"true", "false"}:
            raise InputError(f"{attribute.name} has to be true or false.", scimType="invalidValue")
        return text == "true"
    if not isinstance(value, str) or len(value) > _LONGEST_TEXT:
        told = f"{attribute.name} has to be a text of at most {_LONGEST_TEXT} characters."
        raise InputError(told, scimType="invalidValue")
    return value.strip() or None


def _convert_complex(attribute: Attribute, value: object) -> Resource | None:
    if isinstance(value, str) and attribute.part("value"):
        value = {"value": value}
    if value is None:
        return None
    if not isinstance(value, dict):
        raise InputError(f"{attribute.name} has to be an object.", scimType="invalidValue")
    kept: Resource = {}
    for name, each in value.items():
        part = attribute.part(name)
        if part is None or part.mutability == "readOnly":
            continue
        one = _convert_single(part, each)
        if one is not None:
            kept[part.name] = one
    return kept or None


def _find_named(attributes: Iterable[Attribute], name: str) -> Attribute | None:
    wanted = name.lower()
    return next((one for one in attributes if one.name.lower() == wanted), None)


class Equals(NamedTuple):
    """The attribute has this value."""

    attribute: str
    value: Any


class Both(NamedTuple):
    """Each of the conditions holds."""

    conditions: tuple["ScimFilter", ...]


class Either(NamedTuple):
    """Any of the conditions holds."""

    conditions: tuple["ScimFilter", ...]


ScimFilter = Equals | Both | Either


def parse_filter(text: str) -> ScimFilter:
    """The filter; raises InputError with the type invalidFilter."""
    if len(text) > LONGEST_FILTER:
        raise make_filter_error(f"A filter has at most {LONGEST_FILTER} characters.")
    parser = _FilterParser(list(_split_tokens(text)))
    found = parser.either(0)
    if parser.peek():
        raise make_filter_error(f"The filter goes on after its end: {parser.peek()[:40]}")
    return found


def match_filter(condition: ScimFilter, equal: Callable[[str, Any], bool]) -> bool:
    """True if the filter holds, where `equal` compares an attribute with a value."""
    if isinstance(condition, Equals):
        return equal(condition.attribute, condition.value)
    found = (match_filter(each, equal) for each in condition.conditions)
    return all(found) if isinstance(condition, Both) else any(found)


def list_compared_values(condition: ScimFilter) -> Mapping[str, Any]:
    """The compared value of each attribute in a filter of only `eq` and `and`."""
    if isinstance(condition, Equals):
        return {condition.attribute: condition.value}
    if isinstance(condition, Either):
        return {}
    return {
        name: value
        for each in condition.conditions
        for name, value in list_compared_values(each).items()
    }


def count_comparisons(condition: ScimFilter) -> int:
    """The number of comparisons in a filter."""
    if isinstance(condition, Equals):
        return 1
    return sum(map(count_comparisons, condition.conditions))


def make_filter_error(message: str) -> InputError:
    """The error for an invalid or unsupported filter."""
    return InputError(message, scimType="invalidFilter")


def _split_tokens(text: str) -> Iterator[str]:
    text, position = text.strip(), 0
    while position < len(text):
        match = _TOKEN.match(text, position)
        if match is None:
            raise make_filter_error(
                f"The filter is not understood from here: {text[position:][:40]}"
            )
        yield match["mark"] or match["text"] or match["word"]
        position = match.end()


class _FilterParser:
    """Recursive-descent parser of filter tokens; `and` binds tighter than `or`."""

    def __init__(self, tokens: list[str]) -> None:
        self._tokens = tokens
        self._position = 0

    def peek(self) -> str:
        """The next token, empty at the end."""
        rest = self._tokens[self._position : self._position + 1]
        return rest[0] if rest else ""

    def take(self) -> str:
        """Take the next token."""
        token = self.peek()
        if not token:
            raise make_filter_error("The filter ends too early.")
        self._position += 1
        return token

    def either(self, depth: int) -> ScimFilter:
        """Conditions with `or` between them."""
        found = [self.both(depth)]
        while self.peek().lower() == "or":
            self.take()
            found.append(self.both(depth))
        return found[0] if len(found) == 1 else Either(tuple(found))

    def both(self, depth: int) -> ScimFilter:
        """Conditions with `and` between them."""
        found = [self.one(depth)]
        while self.peek().lower() == "and":
            self.take()
            found.append(self.one(depth))
        return found[0] if len(found) == 1 else Both(tuple(found))

    def one(self, depth: int) -> ScimFilter:
        """A comparison, or conditions in brackets."""
        if depth > _DEEPEST_FILTER:
            raise make_filter_error(f"A filter is nested {_DEEPEST_FILTER} deep at most.")
        if self.peek() == "(":
            self.take()
            found = self.either(depth + 1)
            self._expect(")")
            return found
        attribute = self.take()
        if self.peek() == "[":
            self.take()
            found = _prefix_conditions(attribute, self.either(depth + 1))
            self._expect("]")
            return found
        return self._comparison(attribute)

    def _comparison(self, attribute: str) -> Equals:
        if attribute[0] in '"()[]':
            raise make_filter_error("A comparison begins with an attribute.")
        operator = self.take().lower()
        if operator != "eq":
            known = operator in _OTHER_OPERATORS
            told = f"{operator[:40]} is not offered" if known else f"{operator[:40]} is no operator"
            raise make_filter_error(f"{told}: compare with eq.")
        token = self.take()
        if token.startswith('"'):
            return Equals(attribute, _unquote_text(token))
        if token.lower() not in _WORDS:
            raise make_filter_error(
                f"{token[:40]} is no value: write texts between quotes, true or false."
            )
        return Equals(attribute, _WORDS[token.lower()])

    def _expect(self, mark: str) -> None:
        if self.take() != mark:
            raise make_filter_error(f"A {mark} is missing in the filter.")


def _prefix_conditions(attribute: str, condition: ScimFilter) -> ScimFilter:
    """The conditions on the values of an attribute, such as `members[value eq "1"]`.

    Raises InputError for several conditions, which would all have to match the same value.
    """
    if not isinstance(condition, Equals):
        raise make_filter_error(f"{attribute[:40]}[…] takes one comparison.")
    return Equals(f"{attribute}.{condition.attribute}", condition.value)


def _unquote_text(token: str) -> str:
    """The text between quotes, with the escapes of JSON."""
    try:
        text: str = json.loads(token, strict=False)
        text.encode()
    except ValueError:
        raise make_filter_error(f"{token[:40]} is no text of JSON.") from None
    return text


def describe_service(base: str) -> dict[str, Any]:
    """The configuration of the service."""
    return {
        "schemas": [_CONFIG_SCHEMA],
        "patch": {"supported": True},
        "bulk": {"supported": False, "maxOperations": 0, "maxPayloadSize": 0},
        "filter": {"supported": True, "maxResults": MOST_RESOURCES},
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


def describe_resource_types(base: str) -> list[dict[str, Any]]:
    """The types of resources."""
    return [
        {
            "schemas": [_TYPE_SCHEMA],
            "id": name,
            "name": name,
            "description": _TYPE_DESCRIPTIONS[name],
            "endpoint": f"/{name}s",
            "schema": f"{URN}{name}",
            "meta": {"resourceType": "ResourceType", "location": f"{base}/ResourceTypes/{name}"},
        }
        for name in ATTRIBUTES
    ]


def describe_schemas(base: str) -> list[dict[str, Any]]:
    """The schemas of users, groups and the service's own documents."""
    described: list[tuple[str, str, Iterable[Attribute]]] = [
        *((name, _TYPE_DESCRIPTIONS[name], parts) for name, parts in ATTRIBUTES.items()),
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
            "attributes": [_describe_attribute(one) for one in parts],
            "meta": {"resourceType": "Schema", "location": f"{base}/Schemas/{URN}{name}"},
        }
        for name, about, parts in described
    ]


def wrap_list(resources: list[dict[str, Any]]) -> dict[str, Any]:
    """A whole list in one answer."""
    count = len(resources)
    return {
        "schemas": [LIST_SCHEMA],
        "totalResults": count,
        "startIndex": 1,
        "itemsPerPage": count,
        "Resources": resources,
    }


def _describe_attribute(attribute: Attribute) -> dict[str, Any]:
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
        told["subAttributes"] = [_describe_attribute(one) for one in attribute.parts]
    return told


def _make_read_only(name: str, about: str, kind: Any = "string", *parts: Attribute) -> Attribute:
    return Attribute(name, about, kind, mutability="readOnly", parts=parts)


def _make_feature(name: str, about: str, *parts: Attribute) -> Attribute:
    supported = _make_read_only("supported", "True if it is offered.", "boolean")
    return _make_read_only(name, about, "complex", supported, *parts)


_CONFIG_PARTS: Final = (
    _make_feature("patch", "Changes by PATCH."),
    _make_feature("bulk", "Several changes in one call."),
    _make_feature("filter", "Filters of lists."),
    _make_feature("changePassword", "Changes of passwords."),
    _make_feature("sort", "Orders of lists."),
    _make_feature("etag", "Versions of resources."),
    _make_read_only(
        "authenticationSchemes",
        "How callers prove who they are.",
        "complex",
        _make_read_only("type", "Kind of the scheme."),
        _make_read_only("name", "Name of the scheme."),
        _make_read_only("description", "Description of the scheme."),
        _make_read_only("primary", "True for the preferred scheme.", "boolean"),
    )._replace(many=True),
)


_TYPE_PARTS: Final = (
    _make_read_only("name", "Name of the type."),
    _make_read_only("description", "Description of the type."),
    _make_read_only("endpoint", "Address of its resources, below that of the service."),
    _make_read_only("schema", "Schema of its resources."),
)


_SCHEMA_PARTS: Final = (
    _make_read_only("name", "Name of the schema."),
    _make_read_only("description", "Description of the schema."),
    _make_read_only(
        "attributes",
        "Attributes of the resources.",
        "complex",
        _make_read_only("name", "Name of the attribute."),
        _make_read_only("type", "Type of its values."),
        _make_read_only("multiValued", "True if it has several values.", "boolean"),
        _make_read_only("description", "Description of the attribute."),
        _make_read_only("required", "True if it has to be there.", "boolean"),
        _make_read_only("caseExact", "True if letters differ by case.", "boolean"),
        _make_read_only("mutability", "Who may change it."),
        _make_read_only("returned", "When it is in an answer."),
        _make_read_only("uniqueness", "Where a value may be used once only."),
    )._replace(many=True),
)
