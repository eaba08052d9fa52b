"""`factbook entities`, `facets` and `call`: queries of the catalog, and arguments of tools."""

from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from factbook.catalog.ref import DEFAULT_NAMESPACE, EntityRef
from factbook.cli.connection import DEFAULT_SERVER, Server, Token, connect_server
from factbook.cli.output import Json, print_answer, print_json, print_note, print_table
from factbook.errors import InputError, meant, suggestion

if TYPE_CHECKING:
    from factbook.client import Client, Entity, Tool


_SHOWN_FIELDS = ["kind", "metadata", "spec.type", "spec.owner"]
_SEARCHED_FIELDS = ["metadata.name", "metadata.title"]
_PAGE_SIZE = 500
# A server asked for a bounded total says one more for any larger number.
_BOUND = 10_000
# What the tool-call endpoint lacks is here.
_ALL_TOOLS = "/mcp"

Filter = Annotated[
    list[str] | None,
    typer.Option(
        help="Conditions that must all hold, e.g. kind=component,spec.type=service. "
        "If --filter is repeated, one of them has to hold."
    ),
]
_ENVELOPE = (
    *("kind", "apiVersion", "metadata.name", "metadata.namespace", "metadata.title"),
    *("metadata.description", "metadata.tags", "metadata.labels", "metadata.annotations"),
)


def typed_arguments(
    tools: Sequence["Tool"], name: str, pairs: Sequence[str]
) -> tuple[str, dict[str, Any]]:
    """The tool's own name and its arguments, each of the type in the tool's schema.

    Raises InputError for an unknown tool or argument, listing the known ones, and for a value of
    another type.
    """
    tool = _find_tool(tools, name)
    properties = tool.input_schema.get("properties", {})
    return tool.name, dict(_parse_pair(tool.name, properties, pair) for pair in pairs)


def _find_tool(tools: Sequence["Tool"], name: str) -> "Tool":
    for tool in tools:
        if tool.name == name.replace("_", "-"):
            return tool
    there = suggestion(name, (tool.name for tool in tools))
    raise InputError(f'There is no tool "{name}".{there}')


def _parse_pair(tool: str, properties: Mapping[str, Any], pair: str) -> tuple[str, Any]:
    key, equals, text = pair.partition("=")
    if not equals:
        raise InputError(f'"{pair}" is not of the form key=value.')
    if key not in properties:
        known = ", ".join(properties) or "none"
        raise InputError(f'{tool} has no argument "{key}". Its arguments are: {known}.')
    return key, typed_value(key, text, properties[key].get("type", "string"))


def typed_value(key: str, text: str, type_: str) -> Any:
    """Convert text to a type of JSON Schema; raises InputError if it is not a valid value."""
    import msgspec

    if type_ == "string":
        return text
    python = {
        "integer": int | float,
        "number": float,
        "boolean": bool,
        "array": list,
        "object": dict,
    }
    try:
        found: Any = msgspec.json.decode(text, type=python.get(type_, Any))
        if type_ != "integer":
            return found
        if int(found) != found:
            raise ValueError
        return int(found)
    except (msgspec.DecodeError, ValueError, RecursionError):
        example = {"array": ', for example ["a","b"]', "object": ', for example {"a":1}'}
        raise InputError(
            f'{key} has to be of type {type_}{example.get(type_, "")}, not "{text}".'
        ) from None


def entities(
    context: typer.Context,
    *,
    filter: Filter = None,
    search: Annotated[
        str | None,
        typer.Option(metavar="TEXT", help="Only those with this text in their name or title."),
    ] = None,
    order: Annotated[
        list[str] | None, typer.Option(help="asc: or desc: and a field, e.g. asc:metadata.name.")
    ] = None,
    limit: Annotated[int | None, typer.Option(min=1, help="Show at most this many.")] = None,
    exact: Annotated[
        bool, typer.Option("--exact", help="Count those that --limit leaves out above 10,000, too.")
    ] = False,
    server: Server = DEFAULT_SERVER,
    token: Token = None,
    as_json: Json = False,
) -> None:
    """List the entities of the catalog.

    \b
    Examples:
      factbook entities --filter kind=component --limit 20
      factbook entities --filter kind=api --filter kind=resource
      factbook entities --filter spec.owner=team-a --json
      factbook entities --search payment
    """
    fields = () if as_json else _SHOWN_FIELDS
    chosen, ordered = filter or [], order or []
    with connect_server(context, server, token) as client:
        if search is None:
            each = client.entities(filters=chosen, order=ordered, fields=fields, limit=limit)
        else:
            each = _search_entities(client, search, chosen, ordered, fields)
        found = list(islice(each, limit))
        total = (
            None
            if as_json
            else _count_total(client, len(found), limit, search, chosen, exact=exact)
        )
        if not found or len(chosen) > 1:  # else some entity has each field
            _note_unknown(client, _filter_fields(chosen))
    if as_json:
        print_json(found)
        return
    print_table(["Entity", "Type", "Owner", "Set"], map(_entity_row, found))
    print_note(_count_in_words(len(found), total))


def facets(
    context: typer.Context,
    fields: Annotated[
        list[str], typer.Argument(metavar="FIELD", help="Fields, e.g. kind or spec.type.")
    ],
    *,
    filter: Filter = None,
    server: Server = DEFAULT_SERVER,
    token: Token = None,
    as_json: Json = False,
) -> None:
    """Count the entities of the catalog by the values of fields.

    \b
    Examples:
      factbook facets kind
      factbook facets spec.type spec.lifecycle --filter kind=component
    """
    chosen = filter or []
    with connect_server(context, server, token) as client:
        found = client.facets(fields, filters=chosen)
        empty = [field for field in fields if not found.get(field)]
        _note_unknown(
            client, [*empty, *(_filter_fields(chosen) if empty or len(chosen) > 1 else ())]
        )
    rows = [(field, each.value, each.count) for field in found for each in found[field]]
    print_answer(found, ["Field", "Value", "Entities"], rows, as_json=as_json)


def call(
    context: typer.Context,
    tool: Annotated[str, typer.Argument(metavar="TOOL", help="Name of the tool.")],
    arguments: Annotated[
        list[str] | None,
        typer.Argument(metavar="KEY=VALUE", help="Arguments; lists and objects as JSON."),
    ] = None,
    *,
    server: Server = DEFAULT_SERVER,
    token: Token = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the JSON on one line.")] = False,
) -> None:
    """Call a tool and print its answer as JSON.

    \b
    Examples:
      factbook call get-data-source-discovery
      factbook call get-entity-compliance name=payments
      factbook call get-all-entities-facts dataSourceId=techdocs 'kind=*' limit=10
      factbook call get-all-entities-facts dataSourceId=techdocs 'facts=["hasTechdocsRef"]'
    """
    with connect_server(context, server, token) as client:
        where: tuple[str, ...] = ()
        tools = client.tools()
        if tool.replace("_", "-") not in {one.name for one in tools}:
            where = (_ALL_TOOLS,)
            tools = client.tools(*where)
        chosen, typed = typed_arguments(tools, tool, arguments or [])
        answer = client.call(chosen, typed, *where)
    print_json(answer, indent=0 if as_json else 2)


def _count_total(
    client: "Client",
    shown: int,
    limit: int | None,
    search: str | None,
    filters: Sequence[str],
    *,
    exact: bool,
) -> int | None:
    """Total number of entities, including those beyond the limit; None above the bound."""
    if limit is None or shown < limit:
        return shown
    text = None if search is None else (search, _SEARCHED_FIELDS)
    exact = exact or limit >= _BOUND
    totals: Literal["include", "bounded"] = "include" if exact else "bounded"
    page = client.query(
        full_text=text, filters=filters, fields=["kind"], limit=1, total_items=totals
    )
    return None if not exact and page.total_items == _BOUND + 1 else page.total_items


def _count_in_words(shown: int, total: int | None) -> str:
    """Number of entities shown, of how many."""
    if total is None:
        return f"{shown:,} of more than {_BOUND:,} entities; --exact counts them"
    count = f"{shown:,} of {total:,}" if total != shown else f"{total:,}"
    return f"{count} {'entity' if total == 1 else 'entities'}"


def _search_entities(
    client: "Client",
    text: str,
    filters: Sequence[str],
    order: Sequence[str],
    fields: Sequence[str],
) -> Iterator["Entity"]:
    """Entities with this text in their name or title, page by page."""
    page = client.query(
        full_text=(text, _SEARCHED_FIELDS),
        filters=filters,
        order=[_field_order(each) for each in order] or [("metadata.name", "asc")],
        fields=fields,
        limit=_PAGE_SIZE,
    )
    yield from page.items
    while page.page_info.next_cursor:
        cursor = page.page_info.next_cursor
        page = client.query(cursor=cursor, fields=fields, limit=_PAGE_SIZE)
        yield from page.items


def _field_order(order: str) -> tuple[str, str]:
    direction, _, field = order.partition(":")
    if direction not in ("asc", "desc") or not field:
        raise InputError(f'"{order}" is not of the form asc:FIELD or desc:FIELD.')
    return field, direction


def _entity_row(entity: "Entity") -> tuple[object, ...]:
    metadata, spec = entity["metadata"], entity.get("spec", {})
    namespace = metadata.get("namespace", DEFAULT_NAMESPACE)
    ref = EntityRef.of(entity["kind"], namespace, metadata["name"])
    return ref, spec.get("type"), spec.get("owner"), _set_name(metadata.get("annotations", {}))


def _set_name(annotations: Mapping[str, str]) -> str | None:
    # What stands before the slash is a setting of the server.
    return next((annotations[key] for key in annotations if key.endswith("/entity-set")), None)


def _note_unknown(client: "Client", fields: Sequence[str]) -> None:
    """Print on stderr the fields that no entity has, with suggestions."""
    for field in dict.fromkeys(fields):
        if client.query(filters=[field], fields=["kind"], limit=1).total_items == 0:
            print_note(f'No entity has the field "{field}"{meant(field, _known_fields())}.')


def _filter_fields(filters: Sequence[str]) -> list[str]:
    """Fields in conditions such as `kind=component,spec.type=service`."""
    parts = [part.partition("=")[0].strip() for text in filters for part in text.split(",")]
    return [field for field in parts if field]


def _known_fields() -> list[str]:
    from factbook.catalog import kinds

    tables = (*kinds.REQUIRED.values(), *kinds.OPTIONAL.values())
    related = sorted(kinds.REVERSE_RELATIONS)
    return [
        *_ENVELOPE,
        *sorted({f"spec.{field}" for fields in tables for field in fields}),
        *(f"relations.{type_}" for type_ in related),
    ]
