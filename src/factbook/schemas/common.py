"""Texts, numbers and base classes that several subjects share, and the form of every refusal."""

from typing import Annotated, Any

from msgspec import UNSET, Meta, Struct, UnsetType

from factbook.schemas import patterns

# The member of a JSON Schema that `describe_as` leaves for the description.
DESCRIBED_AS = "x-described-as"

Text = Annotated[str, Meta(min_length=1)]
Time = Annotated[
    str,
    Meta(
        description="ISO 8601, with milliseconds and the offset +00:00.",
        extra_json_schema={
            "pattern": r"^[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}\.[0-9]{3}\+00:00$"
        },
    ),
]
Uuid = Annotated[
    str, Meta(extra_json_schema={"format": "uuid"}, description="Stays the same through pushes.")
]
Count = Annotated[int, Meta(extra_json_schema={"minimum": 0})]
Predicate = Annotated[
    dict[str, Any], Meta(extra_json_schema={"$ref": "#/components/schemas/Predicate"})
]
FieldPath = Annotated[str, patterns.describe_text(patterns.FIELDS)]
AnyRef = Annotated[
    str,
    patterns.describe_text(
        patterns.REFERENCE,
        "entity-reference",
        description="`kind:[namespace/]name`.",
        examples=["component:default/payments"],
    ),
]
Ref = Annotated[str, Meta(description="`kind:namespace/name`, in lower case.")]


class Wire(Struct, rename="camel"):
    """A type of the interfaces."""


class WireAnswer(Wire, omit_defaults=True):
    """An answer, or a part of one; a member that has its default is left out.

    No body is of such a type: the default of a member of a body is described.
    """


AsOf = Annotated[Time, Meta(description="The figures are right as of this time.")] | None
StaleSources = Annotated[
    list[str],
    Meta(description="Data sources of the figures that are down or overdue since `asOf`."),
]


class AgedAnswer(WireAnswer, kw_only=True):
    """An answer with figures that sum up results of checks."""

    as_of: AsOf = None
    stale_sources: StaleSources = []


class Link(Wire):
    """A link to something about an entity."""

    url: Text
    title: Text | UnsetType = UNSET
    icon: Text | UnsetType = UNSET
    type: Text | UnsetType = UNSET


def describe_as(schema: dict[str, Any]) -> Meta:
    """Describe a member by this JSON Schema; clients read it as the wider type that it has."""
    return Meta(extra_json_schema={DESCRIBED_AS: schema})


def describe_known(*values: str) -> Meta:
    """Describe a text as one of these; clients take others too, which a newer server may send."""
    return describe_as({"enum": sorted(values)})


class Problem(WireAnswer):
    """A problem in a part of the body."""

    path: str
    message: str


class Conflict(WireAnswer):
    """An entity that another set holds."""

    entity_ref: Ref
    owner: Annotated[
        str,
        Meta(
            description="The set, or `no set`; `another owner` for a token that may not read the "
            "catalog."
        ),
    ]


class ErrorDetails(WireAnswer):
    """Name, message and details of an error."""

    name: Annotated[str, Meta(description="The kind of error, such as `InputError`.")]
    message: Annotated[str, Meta(description="What is wrong and what to do about it.")]
    problems: list[Problem] | None = None
    conflicts: list[Conflict] | None = None
    removals: Annotated[int, Meta(description="How many entities a push would remove.")] | None = (
        None
    )
    revision: Annotated[int, Meta(description="The set's present revision.")] | None = None


class ErrorRequest(WireAnswer):
    """The request that was refused."""

    method: str
    url: str


class ErrorStatus(WireAnswer):
    """The status of the refusal."""

    status_code: int


class ErrorAnswer(WireAnswer):
    """Any refusal."""

    error: ErrorDetails
    request: ErrorRequest
    response: ErrorStatus
