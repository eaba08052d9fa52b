"""Every parameter of the REST interfaces, declared once.

A route names those that it takes, its handler reads them with `of`, OpenAPI shows them.
"""

from typing import Any, Final

from factbook.api.openapi.parameter_types import (
    AnswerHeader,
    Choice,
    Flag,
    Header,
    Integer,
    Moment,
    Number,
    Parameter,
    PathPart,
    SetId,
    SourceId,
    Text,
    Texts,
)
from factbook.schemas import patterns

# What several interfaces take

LIMIT: Final = Integer(
    name="limit", description="Most items on a page.", least=1, most=10_000, example=20
)
FIELDS: Final = Texts(
    name="fields",
    description="Dotted paths, separated by commas. Only these parts are returned.",
    pattern=patterns.FIELDS,
    example=["metadata.name", "spec.owner"],
)
FILTER: Final = Texts(
    name="filter",
    description="Conditions `key=value` or `key`, separated by commas, that all have to hold. "
    "Given more than once, one of them has to hold.",
    pattern=patterns.FILTER,
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
    pattern=patterns.IF_MATCH,
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
    pattern=patterns.REFERENCE,
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
    pattern=patterns.REFERENCE,
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
    pattern=patterns.HISTORY_CURSOR,
    wrong="has to be the nextCursor of a page",
)

# In paths

SOURCE_ID: Final = SourceId(name="id", description="The data source's id.", example="coverage")
CONNECTION: Final = PathPart(
    name="name",
    description="The connection's name.",
    example="ci",
    pattern=patterns.CONNECTION,
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
            pattern=patterns.REFERENCE,
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
