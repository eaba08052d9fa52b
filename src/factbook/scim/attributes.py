"""The attributes of users and groups that are kept (RFC 7643), and values of them as they came."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final, Literal, NamedTuple

from factbook.errors import InputError

TypeName = Literal["User", "Group"]
Kind = Literal["string", "boolean", "complex", "reference"]
Mutability = Literal["readWrite", "readOnly", "immutable"]

URN: Final = "urn:ietf:params:scim:schemas:core:2.0:"
_EXTENSION: Final = "urn:ietf:params:scim:schemas:extension:"
# Texts of so many characters fit into an index.
_LONGEST: Final = 400
_MOST_VALUES: Final = 100
# Of a group, each a person or a group.
_MOST_MEMBERS: Final = 100_000

Resource = dict[str, Any]


class Attribute(NamedTuple):
    """An attribute; `parts` are those of a complex one, `many` if it has several values."""

    name: str
    about: str
    kind: Kind = "string"
    many: bool = False
    required: bool = False
    exact: bool = False  # letters differ by case
    mutability: Mutability = "readWrite"
    unique: bool = False
    parts: tuple["Attribute", ...] = ()
    values: tuple[str, ...] = ()
    refers_to: tuple[str, ...] = ()

    def part(self, name: str) -> "Attribute | None":
        """The part with this name in any case."""
        return _named(self.parts, name)


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
# The service writes them, whatever comes.
READ_ONLY: Final = frozenset({"id", "meta", "schemas"})
# Standard attributes of users that the catalog has no use for: they are not kept.
_NOT_KEPT: Final = frozenset({
    "addresses", "entitlements", "ims", "locale", "nickname", "password", "phonenumbers", "photos",
    "preferredlanguage", "profileurl", "roles", "timezone", "usertype", "x509certificates",
})  # fmt: skip


def found(type_: TypeName, name: str) -> Attribute | None:
    """The attribute with this name in any case, with or without the schema in front of it."""
    return _named((*_COMMON, *ATTRIBUTES[type_]), plain(type_, name))


def plain(type_: TypeName, name: str) -> str:
    """The name without the schema in front of it."""
    schema = f"{URN}{type_}:"
    return name[len(schema) :] if name.lower().startswith(schema.lower()) else name


def is_not_kept(name: str) -> bool:
    """True if the standard or an extension has such an attribute, which is ignored here."""
    return name.lower().startswith(_EXTENSION) or name.lower() in _NOT_KEPT


def is_inactive(type_: TypeName, given: object) -> bool:
    """True if a user is said to have no access, whatever else is wrong with the resource."""
    if type_ != "User" or not isinstance(given, dict):
        return False
    said = [value for name, value in given.items() if plain(type_, name).lower() == "active"]
    try:
        return bool(said) and converted(_ACTIVE, said[-1]) is False
    except InputError:
        return False


def read(type_: TypeName, given: object) -> Resource:
    """The attributes of a resource that are kept, with the names and types of the standard.

    Raises InputError for a wrong type and for a required attribute that is not there.
    """
    if not isinstance(given, dict):
        raise InputError("A resource has to be a JSON object.", scimType="invalidSyntax")
    resource: Resource = {}
    for name, value in given.items():
        attribute = found(type_, name)
        if attribute is None or attribute.mutability == "readOnly":
            continue
        kept = converted(attribute, value)
        if kept is not None:
            resource[attribute.name] = kept
    return checked(type_, resource)


def checked(type_: TypeName, resource: Resource) -> Resource:
    """The resource; raises InputError without a required attribute, or with too many values."""
    for attribute in ATTRIBUTES[type_]:
        value = resource.get(attribute.name)
        if attribute.many and value:
            few_enough(attribute, value)
        if attribute.required and (not isinstance(value, str) or not value.strip()):
            raise InputError(f"{attribute.name} is required.", scimType="invalidValue")
    if sum(one.get("primary") is True for one in resource.get("emails", ())) > 1:
        raise InputError("Only one of the emails can be primary.", scimType="invalidValue")
    return resource


def few_enough(attribute: Attribute, values: Sequence[object]) -> None:
    """Raise InputError for more values than an attribute may have."""
    most = _MOST_MEMBERS if attribute.name == "members" else _MOST_VALUES
    if len(values) > most:
        raise InputError(f"{attribute.name} has more than {most} values.", scimType="invalidValue")


def converted(attribute: Attribute, value: object) -> Any:
    """A value in the form of the standard, None for none; raises InputError for a wrong type."""
    if not attribute.many:
        return _single(attribute, value)
    if value is None:
        return None
    values = value if isinstance(value, list) else [value]
    few_enough(attribute, values)
    kept = [one for one in (_single(attribute, each) for each in values) if one]
    return distinct(attribute, kept) or None


def distinct(attribute: Attribute, values: Iterable[Resource]) -> list[Resource]:
    """Values of an attribute, of several that are the same the last one.

    A member is the same whatever it is said to be; an address may have several types.
    """
    is_member = attribute.name == "members"
    return list({(one.get("value"), is_member or one.get("type")): one for one in values}.values())


def _single(attribute: Attribute, value: object) -> Any:
    # Entra writes [{"value": "False"}] for False in one of its forms.
    if isinstance(value, list) and len(value) <= 1:
        value = value[0] if value else None
    if attribute.kind == "complex":
        return _complex(attribute, value)
    if isinstance(value, dict) and value.keys() == {"value"}:
        value = value["value"]
    if value is None:
        return None
    if attribute.kind == "boolean":
        return _boolean(attribute, value)
    if not isinstance(value, str) or len(value) > _LONGEST:
        told = f"{attribute.name} has to be a text of at most {_LONGEST} characters."
        raise InputError(told, scimType="invalidValue")
    return value.strip() or None


def _complex(attribute: Attribute, value: object) -> Resource | None:
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
        one = _single(part, each)
        if one is not None:
            kept[part.name] = one
    return kept or None


def _boolean(attribute: Attribute, value: object) -> bool:
    """The value; Entra writes "True" and "False"."""
    text = str(value).lower() if isinstance(value, bool | str) else ""
    if text not in {"true", "false"}:
        raise InputError(f"{attribute.name} has to be true or false.", scimType="invalidValue")
    return text == "true"


def _named(attributes: Iterable[Attribute], name: str) -> Attribute | None:
    wanted = name.lower()
    return next((one for one in attributes if one.name.lower() == wanted), None)
