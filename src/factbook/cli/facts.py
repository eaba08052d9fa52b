"""`factbook facts`: the facts about an entity, or one fact across the catalog."""

from collections.abc import Collection, Iterator, Mapping
from typing import TYPE_CHECKING, Annotated, Any

import typer

from factbook.catalog.ref import EntityRef, parse
from factbook.cli import across_catalog
from factbook.cli.across_catalog import By, Output
from factbook.cli.connection import DEFAULT_SERVER, Server, Token, connected
from factbook.cli.failures import USAGE, CommandError
from factbook.cli.output import Json, note, print_json, print_table, say

if TYPE_CHECKING:
    from factbook.client import Client


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
        wanted = across_catalog.part_of(where or [])
        with connected(context, server, token) as client:
            form: Output = "json" if as_json else output
            across_catalog.show(client, *across, by=by, part=wanted, output=form)
        return
    if ref is None or by or where or output != "table":
        raise CommandError("Name an entity, or a fact with --across SOURCE FACT.", USAGE)
    with connected(context, server, token) as client:
        _show_entity(client, parse(ref, kind="component"), source, as_json=as_json)


def _show_entity(client: "Client", entity: EntityRef, source: str | None, *, as_json: bool) -> None:
    ids = _source_ids(client) if source is None else [source]
    answers = [client.call("get-entity-facts", _arguments(id, entity)) for id in ids]
    if as_json:
        print_json(answers if source is None else answers[0])
        return
    if not answers:
        note("The server has no data source.")
    for answer in answers:
        _show_facts(answer)


def _source_ids(client: "Client") -> list[str]:
    return [source["id"] for source in client.call("get-data-source-discovery")["dataSources"]]


def _arguments(source: str, entity: EntityRef) -> dict[str, str]:
    return {
        "dataSourceId": source,
        "name": entity.name,
        "namespace": entity.namespace,
        "kind": entity.kind,
    }


def _show_facts(answer: Mapping[str, Any]) -> None:
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
    """Rows of facts with values, then without; reasons are for a fact, a group or `*`."""
    for name, value in facts.items():
        yield name, f"{_text(value)} (stale)" if name in stale else _text(value), None
    others = "all others" if facts or len(reasons) > 1 else "all"
    for place in sorted(reasons, key=lambda place: place == "*"):
        yield others if place == "*" else place, "", reasons[place]


def _text(value: object) -> str:
    if isinstance(value, str):
        return value
    if isinstance(value, list):
        return ", ".join(_text(element) for element in value)
    import msgspec

    return msgspec.json.encode(value).decode()
