"""Formats of texts, base classes that several subjects share, and the form of every refusal.

The formats are as JSON Schema writes them and only describe: the rooms below check. They are
ECMAScript's regular expressions with Unicode's classes, which Python's own lack. What Python calls
printable is a letter, mark, number, punctuation, symbol or the one space.
"""

from typing import Annotated, Any, Final

from msgspec import UNSET, Meta, Struct, UnsetType

_SIGN: Final = r"[\p{L}\p{M}\p{N}\p{P}\p{S}]"
_SIGN_OR_SPACE: Final = r"[\p{L}\p{M}\p{N}\p{P}\p{S} ]"
# What Python cuts off around a text.
_BLANK: Final = r"[\t-\r\x1c- \x85\xa0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000]"
# The same without the brackets, and NUL, which filters leave out.
_MATCHES_NONE: Final = r"\x00" + _BLANK[1:-1]
_SIGN_OF_KIND: Final = rf"(?![:/]){_SIGN}"
_SIGN_OF_NAMESPACE: Final = rf"(?!/){_SIGN}"


def _allow_outer_blanks(sign: str) -> str:
    """Printable text of these signs and inner spaces, with blanks around it."""
    return rf"\s*(?:{sign})(?:(?:{sign}| )*(?:{sign}))?\s*"


_CONDITION: Final = rf"(?:[{_MATCHES_NONE}]*|[^,=]*[^,={_MATCHES_NONE}][^,=]*(?:=[^,]*)?)"

# What importers write has such a name, and nobody else can give it to a set.
IMPORTED_SET: Final = "import/[^/]+/[^/]+"
SET_ID: Final = rf"(?![\s\S]*/){_SIGN_OR_SPACE}{{1,128}}"
NAME: Final = rf"(?![\s\S]*[/:]){_BLANK}*{_SIGN}(?:{_SIGN_OR_SPACE}{{0,251}}{_SIGN})?{_BLANK}*"
TOKEN_NAME: Final = rf"{_BLANK}*{_SIGN}(?:{_SIGN_OR_SPACE}{{0,198}}{_SIGN})?{_BLANK}*"
REFERENCE: Final = (
    f"{_allow_outer_blanks(_SIGN_OF_KIND)}:"
    f"(?:{_allow_outer_blanks(_SIGN_OF_NAMESPACE)}/{_allow_outer_blanks(_SIGN)}|{_allow_outer_blanks(_SIGN_OF_NAMESPACE)})"
)
_LABEL: Final = "[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?"
NAMESPACE: Final = _LABEL
API_VERSION: Final = rf"(?:(?=[^/]{{1,253}}/){_LABEL}(?:\.{_LABEL})*/)?[A-Za-z0-9]{{1,63}}"
KIND: Final = "[A-Za-z][A-Za-z0-9]{0,62}"
FILTER: Final = f"{_CONDITION}(?:,{_CONDITION})*"
FIELDS: Final = r"[^\[]*"
SOURCE_ID: Final = "[A-Za-z0-9][A-Za-z0-9._-]{0,99}"
# What a token is narrowed to: a name, or the beginning of names before a star.
REACHED_SET: Final = rf"{_SIGN_OR_SPACE}{{1,128}}"
REACHED_NAMESPACE: Final = r"[a-z0-9-]{0,63}\*|[a-z0-9-]{1,63}"
REACHED_SOURCE: Final = rf"[A-Za-z0-9._-]{{0,100}}\*|{SOURCE_ID}"
REACHED_TOOL: Final = r"[a-z0-9-]{0,100}\*|[a-z0-9-]{1,100}"
CONNECTION: Final = "[a-z0-9][a-z0-9._-]{0,79}"
HEADER: Final = r"[A-Za-z0-9!#$%&'*+.^_`|~-]{1,100}"
HEADER_VALUE: Final = r"[ -~]{0,8000}"
HISTORY_CURSOR: Final = f"[0-9]{{1,15}}/{SOURCE_ID}"
LIFETIME: Final = "never|(?=0*[1-9])[0-9]{1,5}[dhm]"
# Clients that take a header for JSON leave the quotes of a tag out.
_TAG: Final = r'(?:W/)?(?:"[!#-~]*"|[0-9]+)'
IF_MATCH: Final = rf"\*|{_TAG}(?:[ \t]*,[ \t]*{_TAG})*"
_READING: Final = "[0-9]{1,15}(?:-[0-9]{1,9})?"
PART_TAG: Final = f'(?:W/)?(?:"{_READING}"|{_READING})'


def describe_text(pattern: str | None, format: str | None = None, **more: Any) -> Meta:
    """Describe a text of some pattern and format."""
    return Meta(extra_json_schema=build_text_schema(pattern, format), **more)


def build_text_schema(pattern: str | None, format: str | None = None) -> dict[str, Any]:
    """The JSON Schema of a text that matches the whole pattern, of a format of some name."""
    schema = {"type": "string"}
    if pattern is not None:
        schema["pattern"] = f"^(?:{pattern})$"
    if format is not None:
        schema["format"] = format
    return schema


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
FieldPath = Annotated[str, describe_text(FIELDS)]
AnyRef = Annotated[
    str,
    describe_text(
        REFERENCE,
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
