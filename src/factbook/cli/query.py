"""Queries: `factbook entities`, `facets`, `facts` and `call`; `push-facts` writes facts."""

import sys
from collections.abc import Collection, Iterator, Mapping, Sequence
from itertools import islice
from typing import TYPE_CHECKING, Annotated, Any, Final, Literal

import typer

from factbook.catalog.ref import DEFAULT_NAMESPACE, EntityRef, parse_ref
from factbook.cli.command_parts import (
    DEFAULT_SERVER,
    USAGE,
    CommandError,
    Json,
    Server,
    Token,
    connect_server,
    format_count,
    print_answer,
    print_json,
    print_note,
    print_table,
    printable,
    say,
)
from factbook.errors import InputError, meant, suggestion

if TYPE_CHECKING:
    from factbook.client import Client, Entity, Tool
if TYPE_CHECKING:
    from factbook.client import Client, FactDistribution, FactType, PushedFacts


_SHOWN_FIELDS = ["kind", "metadata", "spec.type", "spec.owner"]
_SEARCHED_FIELDS = ["metadata.name", "metadata.title"]
_PAGE_SIZE = 500
# A server returns this plus one as the bounded total of any larger number.
_BOUND = 10_000
# This server has the tools that the tool-call endpoint lacks.
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
    """Find the tool's exact name, and convert arguments to the types in its schema.

    Raises InputError for an unknown tool or argument, listing the known ones, and for a value of
    another type.
    """
    tool_name = name.replace("_", "-")
    tool = next((tool for tool in tools if tool.name == tool_name), None)
    if tool is None:
        there = suggestion(name, (tool.name for tool in tools))
        raise InputError(f'There is no tool "{name}".{there}')
    properties = tool.input_schema.get("properties", {})
    return tool.name, dict(_parse_pair(tool.name, properties, pair) for pair in pairs)


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
    if total is None:
        print_note(f"{len(found):,} of more than {_BOUND:,} entities; --exact counts them")
    else:
        count = f"{len(found):,} of {total:,}" if total != len(found) else f"{total:,}"
        print_note(f"{count} {'entity' if total == 1 else 'entities'}")


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
    """Count all matching entities, including those beyond the limit; None above the bound."""
    if limit is None or shown < limit:
        return shown
    text = None if search is None else (search, _SEARCHED_FIELDS)
    exact = exact or limit >= _BOUND
    totals: Literal["include", "bounded"] = "include" if exact else "bounded"
    page = client.query(
        full_text=text, filters=filters, fields=["kind"], limit=1, total_items=totals
    )
    return None if not exact and page.total_items == _BOUND + 1 else page.total_items


def _search_entities(
    client: "Client",
    text: str,
    filters: Sequence[str],
    order: Sequence[str],
    fields: Sequence[str],
) -> Iterator["Entity"]:
    """Iterate over entities with this text in a searched field, page by page."""
    field_order = list[tuple[str, str]]()
    for each in order:
        direction, _, field = each.partition(":")
        if direction not in ("asc", "desc") or not field:
            raise InputError(f'"{each}" is not of the form asc:FIELD or desc:FIELD.')
        field_order.append((field, direction))
    page = client.query(
        full_text=(text, _SEARCHED_FIELDS),
        filters=filters,
        order=field_order or [("metadata.name", "asc")],
        fields=fields,
        limit=_PAGE_SIZE,
    )
    yield from page.items
    while page.page_info.next_cursor:
        cursor = page.page_info.next_cursor
        page = client.query(cursor=cursor, fields=fields, limit=_PAGE_SIZE)
        yield from page.items


def _entity_row(entity: "Entity") -> tuple[object, ...]:
    metadata, spec = entity["metadata"], entity.get("spec", {})
    namespace = metadata.get("namespace", DEFAULT_NAMESPACE)
    ref = EntityRef.of(entity["kind"], namespace, metadata["name"])
    annotations = metadata.get("annotations", {})
    # The part before the slash is a setting of the server.
    set_names = (annotations[key] for key in annotations if key.endswith("/entity-set"))
    return ref, spec.get("type"), spec.get("owner"), next(set_names, None)


def _note_unknown(client: "Client", fields: Sequence[str]) -> None:
    """Print on stderr the fields that no entity has, with suggestions."""
    for field in dict.fromkeys(fields):
        if client.query(filters=[field], fields=["kind"], limit=1).total_items == 0:
            print_note(f'No entity has the field "{field}"{meant(field, _known_fields())}.')


def _filter_fields(filters: Sequence[str]) -> list[str]:
    """List the fields in conditions such as `kind=component,spec.type=service`."""
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


By = Literal["owner", "system", "kind"]
Output = Literal["table", "json", "csv"]

_PART: Final = ("kind", "namespace", "owner", "system", "type", "lifecycle")
_BAR: Final = 30  # characters of the longest

Across = Annotated[
    tuple[str, str] | None,
    typer.Option(metavar="SOURCE FACT", help="Show one fact of all entities instead: id and name."),
]
Breakdown = Annotated[
    By | None, typer.Option(help="With --across: figures for each owner, system or kind.")
]
Where = Annotated[
    list[str] | None,
    typer.Option(
        metavar="KEY=VALUE",
        help="With --across: only a kind, namespace, owner, system, type or lifecycle.",
    ),
]

# JSON Schema types of fact types other than text; sets and objects are given as JSON.
_JSON: Final = {
    "integer": "integer",
    "float": "number",
    "boolean": "boolean",
    "set": "array",
    "object": "object",
}


def fact_part(pairs: Sequence[str]) -> dict[str, str]:
    """Parse `key=value` pairs that select a part of the catalog; raises CommandError."""
    found: dict[str, str] = {}
    for pair in pairs:
        key, sign, value = pair.partition("=")
        if key not in _PART or not sign or key in found:
            known = ", ".join(_PART)
            raise CommandError(f"--where takes KEY=VALUE once for each of {known}.", USAGE)
        found[key] = value
    return found


def print_distribution(
    client: "Client",
    source: str,
    fact: str,
    *,
    by: By | None,
    part: Mapping[str, str],
    output: Output,
) -> None:
    """Print the distribution of a fact in the requested format."""
    if output == "csv":
        text = client.fact_values_csv(source, fact, part=part)
        # Escaped and with plain line ends for a terminal; unchanged for a file or pipe.
        print(printable(text.replace("\r\n", "\n")) if sys.stdout.isatty() else text, end="")
        return
    found = client.fact_distribution(source, fact, by=by, part=part)
    if output == "json":
        print_json(found)
        return
    unit = f", {found.fact.unit}" if found.fact.unit else ""
    say(f"{found.data_source_id} {found.fact.name}{unit}")
    print_table(["Entities", "Number"], _count_rows(found))
    for title, rows in _print_tables(found):
        say("")
        print_table(title, rows)
    if found.as_of:
        print_note(f"As of {found.as_of}.")
    if found.truncated:
        print_note(
            "Too many entities to count: these figures cover only some of them. "
            "Narrow them with --where."
        )
    if found.more_groups:
        print_note(f"{found.more_groups:,} smaller groups are left out.")


def _count_rows(found: "FactDistribution") -> Iterator[tuple[object, object]]:
    yield "all", f"{found.entities:,}"
    yield "known", f"{found.known:,}"
    if found.kept:
        yield "  of these stale", f"{found.kept:,}"
    yield "unknown", f"{found.unknown:,}"
    for reason, count in found.unknown_reasons.items():
        yield f"  {reason}", f"{count:,}"


def _print_tables(
    found: "FactDistribution",
) -> Iterator[tuple[Sequence[str], list[Sequence[object]]]]:
    if found.booleans is not None:
        yield _bar_rows(list(found.booleans.items()))
    if found.spread is not None:
        spread = found.spread
        figures = [
            ("lowest", spread.min),
            ("lower quartile", spread.lower_quartile),
            ("median", spread.median),
            ("upper quartile", spread.upper_quartile),
            ("highest", spread.max),
            ("mean", spread.mean),
        ]
        yield (
            ("Figure", "Value"),
            [(name, _cell_text(value)) for name, value in figures if value is not None],
        )
        yield _bar_rows(
            [(_range_in_words(one.min, one.below), one.count) for one in found.histogram or ()]
        )
    if found.top:
        yield _bar_rows([(_cell_text(one.value), one.count) for one in found.top])
    for name, rows in (("Lowest", found.lowest), ("Highest", found.highest)):
        if rows:
            shown = [f"{_cell_text(row.value)}{' (stale)' if row.stale else ''}" for row in rows]
            refs = [row.entity_ref for row in rows]
            yield (name, "Value"), list(zip(refs, shown, strict=True))
    if found.groups is not None:
        yield _group_rows(found)


def _bar_rows(
    rows: Sequence[tuple[object, int]],
) -> tuple[Sequence[str], list[Sequence[object]]]:
    most = max((count for _, count in rows), default=0) or 1
    return ("Value", "Entities", ""), [
        (name, f"{count:,}", "█" * round(_BAR * count / most)) for name, count in rows
    ]


def _group_rows(found: "FactDistribution") -> tuple[Sequence[str], list[Sequence[object]]]:
    figure = "True" if found.booleans is not None else "Median"
    return ((found.by or "").capitalize(), "Entities", "Known", "Unknown", figure), [
        (
            group.name or "none",
            f"{group.entities:,}",
            f"{group.known:,}",
            f"{group.entities - group.known:,}",
            (f"{group.true:,} of {group.known:,}" if group.known else "")
            if group.true is not None
            else _cell_text(group.median),
        )
        for group in found.groups or ()
    ]


def _range_in_words(start: Any, end: Any) -> str:
    if end is None:
        return f"from {_cell_text(start)}"
    return (
        f"below {_cell_text(end)}"
        if start is None
        else f"{_cell_text(start)} to below {_cell_text(end)}"
    )


def _cell_text(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, bool):
        return "true" if value else "false"
    return printable(f"{value:,.6g}" if isinstance(value, float) else str(value))


def facts(
    context: typer.Context,
    ref: Annotated[
        str | None,
        typer.Argument(metavar="[REF]", help="Entity: name, kind:name or kind:namespace/name."),
    ] = None,
    *,
    source: Annotated[str | None, typer.Option(help="Id of one data source. Default: all.")] = None,
    across: Across = None,
    by: Breakdown = None,
    where: Where = None,
    output: Annotated[
        Output, typer.Option(help="With --across; csv has every entity with its value.")
    ] = "table",
    server: Server = DEFAULT_SERVER,
    token: Token = None,
    as_json: Json = False,
) -> None:
    """Show the facts about an entity, or one fact across the catalog.

    \b
    Examples:
      factbook facts payments
      factbook facts api:billing/invoices --source entity-metadata
      factbook facts payments --json
      factbook facts --across entity-metadata hasOwner --by system
      factbook facts --across github codehost.issues.open --where owner=web --output csv
    """
    if across is not None:
        if ref is not None or source is not None:
            raise CommandError("--across is of all entities: leave REF and --source out.", USAGE)
        wanted = fact_part(where or [])
        with connect_server(context, server, token) as client:
            form: Output = "json" if as_json else output
            print_distribution(client, *across, by=by, part=wanted, output=form)
        return
    if ref is None or by or where or output != "table":
        raise CommandError("Name an entity, or a fact with --across SOURCE FACT.", USAGE)
    with connect_server(context, server, token) as client:
        _print_entity_facts(client, parse_ref(ref, kind="component"), source, as_json=as_json)


def _print_entity_facts(
    client: "Client", entity: EntityRef, source: str | None, *, as_json: bool
) -> None:
    ids = (
        [source["id"] for source in client.call("get-data-source-discovery")["dataSources"]]
        if source is None
        else [source]
    )
    answers = [client.call("get-entity-facts", _tool_arguments(id, entity)) for id in ids]
    if as_json:
        print_json(answers if source is None else answers[0])
        return
    if not answers:
        print_note("The server has no data sources.")
    for answer in answers:
        _print_facts(answer)


def _tool_arguments(source: str, entity: EntityRef) -> dict[str, str]:
    return {
        "dataSourceId": source,
        "name": entity.name,
        "namespace": entity.namespace,
        "kind": entity.kind,
    }


def _print_facts(answer: Mapping[str, Any]) -> None:
    source = answer["dataSourceId"]
    title = answer.get("dataSourceTitle", source)
    when = answer.get("timestamp", "nothing is known")
    facts = answer["facts"]
    stale = answer.get("staleFacts", facts) if answer.get("stale") else ()
    rows = _fact_rows(facts, stale, answer.get("unknownReasons", {}))
    say(f"{title} ({source}), {when}")
    print_table(["Fact", "Value", "Why unknown"], rows)
    say("")


def _fact_rows(
    facts: Mapping[str, Any], stale: Collection[str], reasons: Mapping[str, str]
) -> Iterator[tuple[str, str, str | None]]:
    """Make rows of facts with values, then without; `reasons` is by fact, group or `*`."""
    for name, value in facts.items():
        yield name, f"{_value_text(value)} (stale)" if name in stale else _value_text(value), None
    others = "all others" if facts or len(reasons) > 1 else "all"
    for place in sorted(reasons, key=lambda place: place == "*"):
        yield others if place == "*" else place, "", reasons[place]


def _value_text(value: object) -> str:
    if isinstance(value, str):
        return value
    if isinstance(value, list):
        return ", ".join(_value_text(element) for element in value)
    import msgspec

    return msgspec.json.encode(value).decode()


def push_facts(
    context: typer.Context,
    source: Annotated[str, typer.Argument(metavar="SOURCE", help="Id of the source.")],
    values: Annotated[
        list[str] | None,
        typer.Argument(metavar="NAME=VALUE", help="Facts; sets and objects as JSON."),
    ] = None,
    *,
    entity: Annotated[
        str, typer.Option(metavar="REF", help="Entity: name, kind:name or kind:namespace/name.")
    ],
    timestamp: Annotated[
        str | None,
        typer.Option(
            metavar="TIME", help="Time of the facts, in ISO 8601 with a UTC offset. Default: now."
        ),
    ] = None,
    unknown: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME=REASON", help="A fact without a value, and why. Repeatable."),
    ] = None,
    replace: Annotated[
        bool,
        typer.Option("--replace", help="Drop the values of facts that this push leaves out."),
    ] = False,
    server: Server = DEFAULT_SERVER,
    token: Token = None,
    as_json: Json = False,
) -> None:
    """Push facts about an entity to a source of type push.

    Values are converted to the types that the source defines. Facts that a push leaves out keep
    their values unless --replace is given. The token needs the permissions
    tech-insights.fact.write and tech-insights.data-source.read.

    \b
    Examples:
      factbook push-facts coverage --entity payments coverage=81.5
      factbook push-facts builds --entity payments passed=true 'branches=["main"]'
      factbook push-facts coverage --entity payments --unknown 'coverage=no test ran'
    """
    from factbook.catalog.ref import parse_ref

    ref = str(parse_ref(entity, kind="component"))
    if not values and not unknown:
        raise InputError("Give at least one fact: NAME=VALUE, or --unknown NAME=REASON.")
    with connect_server(context, server, token) as client:
        schema = client.data_source(source).schema
        item = _fact_item(schema, values or (), unknown or ())
        item |= {"entity": ref, "merge": not replace}
        if timestamp is not None:
            item["timestamp"] = timestamp
        pushed = client.push_facts(source, [item])
    if as_json:
        print_json(pushed)
    _report_pushed(ref, pushed, quiet=as_json)


def _report_pushed(ref: str, pushed: "PushedFacts", *, quiet: bool) -> None:
    problems = [f"{each.path}: {each.message}" for one in pushed.items for each in one.problems]
    stored = [name for one in pushed.items for name in one.stored]
    if not quiet and stored:
        say(f"{ref}: {', '.join(stored)}")
    if problems:
        raise CommandError(f"{format_count(problems, 'problem')}:", lines=problems)


def _fact_item(
    schema: Mapping[str, "FactType"], values: Sequence[str], unknown: Sequence[str]
) -> dict[str, Any]:
    """Make the facts and reasons of an item; omits either if empty."""
    facts = {
        name: typed_value(name, text, _JSON.get(schema[name].type, "string"))
        for name, text in _fact_pairs(schema, values)
    }
    reasons = dict(_fact_pairs(schema, unknown))
    return {"facts": facts, **({"reasons": reasons} if reasons else {})}


def _fact_pairs(
    schema: Mapping[str, "FactType"], pairs: Sequence[str]
) -> Iterator[tuple[str, str]]:
    """Split pairs into fact names and texts; raises InputError for an unknown fact."""
    for pair in pairs:
        name, equals, text = pair.partition("=")
        if not equals:
            raise InputError(f'"{pair}" is not of the form name=value.')
        if name not in schema:
            raise InputError(f'There is no fact "{name}".{suggestion(name, schema)}')
        yield name, text
