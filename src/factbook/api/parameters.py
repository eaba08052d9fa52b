"""Request parameters: their types, and the parameters that several interfaces share.

A route lists its parameters, its handler reads them with `of`, and OpenAPI documents them.
"""

import re
from abc import ABCMeta, abstractmethod
from typing import Any, ClassVar, Final, Generic, TypeVar

from msgspec import Struct, StructMeta

from factbook import invisible
from factbook.clock import milliseconds
from factbook.errors import InputError, NotFoundError, meant, one_of
from factbook.http.requests import Request
from factbook.schemas import common

Schema = dict[str, Any]
_READING: Final = ("GET", "HEAD")
_EMPTY: Final = "is empty. Give it a value, or leave it out."
T = TypeVar("T")


class _AbstractStructMeta(StructMeta, ABCMeta):
    """Metaclass for structs with abstract members."""


class Parameter(Struct, Generic[T], metaclass=_AbstractStructMeta, frozen=True, kw_only=True):
    """A query parameter with values of type T; `may_be_empty` accepts an empty value."""

    place: ClassVar[str] = "query"

    name: str
    description: str
    required: bool = False
    may_be_empty: bool = False
    example: Any = None

    @abstractmethod
    def of(self, request: Request) -> T:
        """Read the value from a request; raises InputError for an invalid value."""

    @property
    @abstractmethod
    def schema(self) -> Schema:
        """JSON Schema of the values."""

    def text(self, request: Request) -> str | None:
        """Read the value as sent; None if missing or, in a read, empty.

        Raises InputError for a repeated parameter, and in a write for an empty one.
        """
        found = request.all(self.name)
        if len(found) > 1:
            raise InputError(f"{self.name} can be given only once, not {len(found)} times.")
        if found == [""] and not self.may_be_empty:
            found = []
            if request.method not in _READING:
                # The caller may rely on the parameter as a guard for the write.
                raise InputError(f"{self.name} {_EMPTY}")
        if not found and self.required:
            raise InputError(f"{self.name} is required.")
        return found[0] if found else None


class Text(Parameter[str | None], frozen=True, kw_only=True):
    """A text parameter; `wrong` is the error for text that doesn't match `pattern`."""

    pattern: str | None = None
    wrong: str | None = None
    format: str | None = None
    longest: int | None = None

    def of(self, request: Request) -> str | None:
        value = self.text(request)
        if value is not None and self.longest is not None and len(value) > self.longest:
            raise InputError(f"{self.name} can have {self.longest} characters at most.")
        if value is not None and self.wrong and self.pattern:
            _require_match(self, value, self.pattern, self.wrong)
        return value

    @property
    def schema(self) -> Schema:
        schema = common.build_text_schema(self.pattern, self.format)
        return schema if self.longest is None else {**schema, "maxLength": self.longest}


class Texts(Parameter[list[str]], frozen=True, kw_only=True):
    """A text parameter that may repeat up to `most` times; `words` limits its values."""

    pattern: str | None = None
    wrong: str | None = None
    words: tuple[str, ...] = ()
    most: int | None = None

    def of(self, request: Request) -> list[str]:
        values = [value for value in request.all(self.name) if value]
        if self.most is not None and len(values) > self.most:
            raise InputError(f"{self.name} can be given {self.most} times at most.")
        if self.required and not values:
            raise InputError(f"{self.name} is required.")
        for value in values:
            if self.words and value not in self.words:
                raise InputError(f'{self.name} {one_of(value, self.words)}, not "{value}".')
            if self.wrong and self.pattern:
                _require_match(self, value, self.pattern, self.wrong)
        return values

    @property
    def schema(self) -> Schema:
        schema: Schema = {"type": "array", "items": common.build_text_schema(self.pattern)}
        if self.most is not None:
            schema["maxItems"] = self.most
        if self.required:
            schema["minItems"] = 1
        return schema


class Integer(Parameter[int | None], frozen=True, kw_only=True):
    """An integer parameter with a range."""

    least: int = 0
    most: int = 2**31 - 1

    def of(self, request: Request) -> int | None:
        text = self.text(request)
        if text is None:
            return None
        if not (
            text.isascii()
            and text.isdigit()
            and len(text) <= 16
            and self.least <= int(text) <= self.most
        ):
            raise InputError(
                f"{self.name} has to be a whole number from {self.least} to {self.most}, "
                f'not "{text}".'
            )
        return int(text)

    @property
    def schema(self) -> Schema:
        return {"type": "integer", "minimum": self.least, "maximum": self.most}


class Flag(Parameter[bool], frozen=True, kw_only=True):
    """A boolean parameter, false if missing."""

    def of(self, request: Request) -> bool:
        text = self.text(request)
        if text not in (None, "true", "false"):
            raise InputError(f'{self.name} has to be true or false, not "{text}".')
        return text == "true"

    @property
    def schema(self) -> Schema:
        return {"type": "boolean", "default": False}


class Choice(Parameter[str | None], frozen=True, kw_only=True):
    """A parameter with a fixed list of values."""

    words: tuple[str, ...]

    def of(self, request: Request) -> str | None:
        text = self.text(request)
        if text is not None and text not in self.words:
            named = " or ".join(f'"{word}"' for word in self.words)
            raise InputError(
                f"{self.name} has to be {named} when it is given{meant(text, self.words)}, "
                f'not "{text}".'
            )
        return text

    @property
    def schema(self) -> Schema:
        return {"type": "string", "enum": list(self.words)}


class Moment(Parameter[int | None], frozen=True, kw_only=True):
    """A date and time with a UTC offset, in milliseconds since the epoch."""

    def of(self, request: Request) -> int | None:
        text = self.text(request)
        if text is None:
            return None
        # A + that wasn't encoded arrives as a blank.
        moment = milliseconds(text.replace(" ", "+"))
        if moment is None:
            raise InputError(
                f"{self.name} has to be an ISO 8601 date and time with a UTC offset, from 1970 on, "
                f'not "{text}".'
            )
        return moment

    @property
    def schema(self) -> Schema:
        return common.build_text_schema(None, "moment")


class Header(Text, frozen=True, kw_only=True):
    """A header of the request."""

    place: ClassVar[str] = "header"

    def text(self, request: Request) -> str | None:
        value = request.header(self.name.lower().encode())
        if value is not None and not value.strip():
            raise InputError(f"{self.name} {_EMPTY}")
        return value


class PathPart(Parameter[str], frozen=True, kw_only=True):
    """A parameter in the path."""

    place: ClassVar[str] = "path"

    required: bool = True
    pattern: str | None = None
    format: str | None = None

    def of(self, request: Request) -> str:
        return request.parameter(self.name)

    @property
    def schema(self) -> Schema:
        return {"minLength": 1, **common.build_text_schema(self.pattern, self.format)}


class SetId(PathPart, frozen=True, kw_only=True):
    """A set's id."""

    pattern: str | None = common.SET_ID
    format: str | None = "set-id"
    wrong: str = "A set id is 1 to 128 printable characters without a slash."

    def of(self, request: Request) -> str:
        text = request.parameter(self.name)
        plain = "/" not in text or re.fullmatch(common.IMPORTED_SET, text)
        if 0 < len(text) <= 128 and text.isprintable() and plain:
            return text
        raise InputError(self.wrong)

    def new(self, request: Request) -> str:
        """Read the id for a write that may create a set; stricter than `of`."""
        if "/" in (text := self.of(request)):
            raise InputError(f"{self.wrong} Importers alone write the set {text}.")
        if invisible.has(text):
            raise InputError(self.wrong)
        return text


class SourceId(PathPart, frozen=True, kw_only=True):
    """A data source's id."""

    pattern: str | None = common.SOURCE_ID
    format: str | None = "data-source-id"

    def of(self, request: Request) -> str:
        text = request.parameter(self.name)
        if not re.fullmatch(common.SOURCE_ID, text):
            raise NotFoundError(f'There is no data source "{text}".')
        return text


class Number(Parameter[int], frozen=True, kw_only=True):
    """A whole number in the path."""

    place = "path"
    required: bool = True

    def of(self, request: Request) -> int:
        text = request.parameter(self.name)
        if not (text.isascii() and text.isdigit() and len(text) < 12):
            raise InputError(f'{self.description[:-1]} is a whole number, not "{text}".')
        return int(text)

    @property
    def schema(self) -> Schema:
        return {"type": "integer", "minimum": 1, "maximum": 10**11 - 1}


class AnswerHeader(Struct, frozen=True, kw_only=True):
    """A response header; `always` if every answer has it."""

    name: str
    description: str
    always: bool = False


def _require_match(parameter: Parameter[Any], value: str, pattern: str, wrong: str) -> None:
    if not re.fullmatch(pattern, value):
        raise InputError(f'{parameter.name} {wrong}, not "{value}".')


# Shared by several interfaces

LIMIT: Final = Integer(
    name="limit", description="Most items on a page.", least=1, most=10_000, example=20
)
FIELDS: Final = Texts(
    name="fields",
    description="Dotted paths, separated by commas. Only these parts are returned.",
    pattern=common.FIELDS,
    example=["metadata.name", "spec.owner"],
)
FILTER: Final = Texts(
    name="filter",
    description="Conditions `key=value` or `key`, separated by commas, that all have to hold. "
    "Given more than once, one of them has to hold.",
    pattern=common.FILTER,
    example=["kind=component,spec.type=service"],
)

# Of /entities

ORDER: Final = Texts(
    name="order",
    description="`asc:<path>` or `desc:<path>`. Given more than once, the first counts most.",
    pattern=r"(?:asc|desc):[\s\S]+",
    wrong="has to be asc:<field> or desc:<field>",
    most=10,
    example=["asc:metadata.name"],
)
OFFSET: Final = Integer(name="offset", description="Entities to skip.")
AFTER: Final = Text(
    name="after",
    description="The place of the next page, taken from the `Link` header.",
    format="after-cursor",
)

# Of /entities/by-query

QUERY_LIMIT: Final = Integer(
    name="limit",
    description="Most items on a page, 200 by default; 0 only counts.",
    most=10_000,
    example=20,
)
ORDER_FIELD: Final = Texts(
    name="orderField",
    description="`<path>`, `<path>,asc` or `<path>,desc`. Given more than once, the first counts "
    "most.",
    pattern=r"[^,]+(?:,(?:asc|desc))?",
    wrong="has to be <field>, <field>,asc or <field>,desc",
    most=10,
    example=["metadata.name,desc"],
)
CURSOR_TEXT: Final = Text(
    name="cursor",
    description="The `nextCursor` or `prevCursor` of a page. It holds the whole question: only "
    "`limit` and `fields` count beside it.",
    format="query-cursor",
)
TOTAL_ITEMS: Final = Choice(
    name="totalItems",
    description="`exclude` does not count; `totalItems` is then 0. `bounded` may stop counting "
    "above 10,000; `totalItems` is then 10,001.",
    words=("include", "exclude", "bounded"),
)
TEXT_TERM: Final = Text(
    name="fullTextFilterTerm",
    description="A text that has to occur, in any case.",
    longest=200,
    example="pay",
)
TEXT_FIELDS: Final = Texts(
    name="fullTextFilterFields",
    description="Dotted paths, separated by commas, of which one has to contain the text. By "
    "default the first order field, else `metadata.name` and `metadata.title`. At most 20.",
    example=["metadata.title"],
)

# Of /entity-facets

FACET: Final = Texts(
    name="facet",
    description="A dotted path whose values are counted.",
    required=True,
    most=100,
    example=["spec.type"],
)

# Of the push interface

DRY_RUN: Final = Flag(
    name="dryRun", description="Makes every check and answers with the difference. Writes nothing."
)
CHECKS: Final = Flag(
    name="checks",
    description="With `dryRun`, also what would change in the results of checks. It takes as long "
    "as the push itself, and needs the permissions to read entities and checks.",
)
ON_CONFLICT: Final = Choice(
    name="onConflict",
    description="`take` takes entities that another set holds, instead of refusing.",
    words=("take",),
)
MAX_REMOVALS: Final = Text(
    name="maxRemovals",
    description="A number, or a percentage of the set as it is, such as `10%`, rounded down. "
    "Refuses with 409 when more entities would be removed.",
    pattern=r"[0-9]{1,11}|(?:100(?:\.0+)?|0?[0-9]{1,2}(?:\.[0-9]+)?)%",
    wrong="has to be a number or a percentage such as 10%",
    example="10%",
)
CURSOR: Final = Integer(
    name="cursor", description="The `nextCursor` of the page before.", most=2**53
)
SET: Final = Text(name="set", description="Only the entities of this set.", example="payments")
IF_MATCH: Final = Header(
    name="If-Match",
    description='The revision to build on, such as `"3"`; `*` means any. Refuses with 412 when the '
    "set is at another one.",
    pattern=common.IF_MATCH,
    wrong='has to be a revision between quotes, such as "3", or *',
)

# Of data sources and facts

SOURCE_LIMIT: Final = Integer(
    name="limit",
    description="Most data sources on a page, 100 by default.",
    least=1,
    most=200,
    example=20,
)
SOURCE_CURSOR: Final = Text(
    name="cursor", description="The `nextCursor` of the page before.", longest=100
)
FACTS_LIMIT: Final = Integer(
    name="limit",
    description="Most entries on a page, 100 by default.",
    least=1,
    most=1_000,
    example=20,
)
ENTITY: Final = Text(
    name="entity",
    description="The facts of this entity alone: `kind:[namespace/]name`.",
    pattern=common.REFERENCE,
    format="entity-reference",
    example="component:default/payments",
)
FACTS_CURSOR: Final = Text(
    name="cursor", description="The `nextCursor` of the page before.", longest=640
)
HISTORY_SOURCES: Final = Texts(
    name="dataSourceIds",
    description="Ids of data sources, separated by commas, 100 at most. Every data source when it "
    "is left out.",
    most=100,
    example=["entity-metadata"],
)
ENTITY_WANTED: Final = Text(
    name="entity",
    description="The entity: `kind:[namespace/]name`.",
    required=True,
    pattern=common.REFERENCE,
    format="entity-reference",
    example="component:default/payments",
)
HISTORY_START: Final = Moment(
    name="startDateTime",
    description="Only what was written at this time or later: ISO 8601 with a UTC offset.",
    example="2026-01-01T00:00:00Z",
)
HISTORY_END: Final = Moment(
    name="endDateTime",
    description="Only what was written at this time or earlier.",
    example="2030-01-01T00:00:00Z",
)
HISTORY_CURSOR: Final = Text(
    name="cursor",
    description="The `nextCursor` of the page before.",
    pattern=common.HISTORY_CURSOR,
    wrong="has to be the nextCursor of a page",
)

# In paths

SOURCE_ID: Final = SourceId(name="id", description="The data source's id.", example="coverage")
CONNECTION: Final = PathPart(
    name="name",
    description="The connection's name.",
    example="ci",
    pattern=common.CONNECTION,
    format="connection-name",
)
SET_ID: Final = SetId(name="set_id", description="The set's id.", example="payments")
NUMBER: Final = Number(name="number", description="The number of a revision or run.", example=1)
PATH: Final[dict[str, Parameter[Any]]] = {
    part.name: part
    for part in (
        PathPart(name="kind", example="component", description="The entity's kind, in any case."),
        PathPart(
            name="namespace", example="default", description="The entity's namespace, in any case."
        ),
        PathPart(name="name", example="payments", description="The entity's name, in any case."),
        PathPart(name="uid", description="The entity's `metadata.uid`.", format="entity-uid"),
        PathPart(
            name="ref",
            example="component:default/payments",
            description="An entity reference, percent-encoded or plain.",
            pattern=common.REFERENCE,
            format="entity-reference",
        ),
        PathPart(name="id", description="The id of what is meant."),
        SET_ID,
        NUMBER,
    )
}

# Of answers

ETAG: Final = AnswerHeader(name="ETag", description="The set's revision, between quotes.")
LINK: Final = AnswerHeader(
    name="Link", description='The address of the next page, with `rel="next"`, if there is one.'
)
