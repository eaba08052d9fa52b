"""`factbook push-facts`: facts from a script, such as a step of a build."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from factbook.cli.arguments import value
from factbook.cli.connection import DEFAULT_SERVER, Server, Token, connected, count
from factbook.cli.failures import CommandError
from factbook.cli.output import Json, print_json, say
from factbook.errors import InputError

if TYPE_CHECKING:
    from factbook.client import FactType

# What is no text, by the types of facts; a set and an object are JSON.
_JSON: Final = {
    "integer": "integer",
    "float": "number",
    "boolean": "boolean",
    "set": "array",
    "object": "object",
}


def push_facts(
    context: typer.Context,
    source: Annotated[str, typer.Argument(metavar="SOURCE", help="Id of the source.")],
    values: Annotated[
        list[str], typer.Argument(metavar="NAME=VALUE", help="Facts; sets and objects as JSON.")
    ],
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
    server: Server = DEFAULT_SERVER,
    token: Token = None,
    as_json: Json = False,
) -> None:
    """Push facts about an entity to a source of type push.

    Values are converted to the types that the source defines. The token needs the permissions
    tech-insights.fact.write and tech-insights.data-source.read.

    \b
    Examples:
      factbook push-facts coverage --entity payments coverage=81.5
      factbook push-facts builds --entity payments passed=true 'branches=["main"]'
    """
    from factbook.catalog.ref import parse

    ref = str(parse(entity, kind="component"))
    with connected(context, server, token) as client:
        facts = _facts(client.data_source(source).schema, values)
        item: dict[str, Any] = {"entity": ref, "facts": facts}
        if timestamp is not None:
            item["timestamp"] = timestamp
        pushed = client.push_facts(source, [item])
    if as_json:
        print_json(pushed)
    problems = [f"{each.path}: {each.message}" for one in pushed.items for each in one.problems]
    stored = [name for one in pushed.items for name in one.stored]
    if not as_json and stored:
        say(f"{ref}: {', '.join(stored)}")
    if problems:
        raise CommandError(f"{count(problems, 'problem')}:", lines=problems)


def _facts(schema: Mapping[str, "FactType"], pairs: Sequence[str]) -> dict[str, Any]:
    """Facts as typed; raises InputError for an unknown one, or one of another type."""
    facts = {}
    for pair in pairs:
        name, equals, text = pair.partition("=")
        if not equals:
            raise InputError(f'"{pair}" is not of the form name=value.')
        if name not in schema:
            raise InputError(f'There is no fact "{name}". The facts are: {", ".join(schema)}.')
        facts[name] = value(name, text, _JSON.get(schema[name].type, "string"))
    return facts
