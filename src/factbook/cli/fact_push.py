"""`factbook push-facts`: facts from a script, such as a step of a build."""

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from factbook.cli.arguments import value
from factbook.cli.connection import DEFAULT_SERVER, Server, Token, connected, count
from factbook.cli.failures import CommandError
from factbook.cli.output import Json, print_json, say
from factbook.errors import InputError, suggestion

if TYPE_CHECKING:
    from factbook.client import FactType, PushedFacts

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
    from factbook.catalog.ref import parse

    ref = str(parse(entity, kind="component"))
    if not values and not unknown:
        raise InputError("Give at least one fact: NAME=VALUE, or --unknown NAME=REASON.")
    with connected(context, server, token) as client:
        schema = client.data_source(source).schema
        item = _item(schema, values or (), unknown or ())
        item |= {"entity": ref, "merge": not replace}
        if timestamp is not None:
            item["timestamp"] = timestamp
        pushed = client.push_facts(source, [item])
    if as_json:
        print_json(pushed)
    _report(ref, pushed, quiet=as_json)


def _report(ref: str, pushed: "PushedFacts", *, quiet: bool) -> None:
    problems = [f"{each.path}: {each.message}" for one in pushed.items for each in one.problems]
    stored = [name for one in pushed.items for name in one.stored]
    if not quiet and stored:
        say(f"{ref}: {', '.join(stored)}")
    if problems:
        raise CommandError(f"{count(problems, 'problem')}:", lines=problems)


def _item(
    schema: Mapping[str, "FactType"], values: Sequence[str], unknown: Sequence[str]
) -> dict[str, Any]:
    """The facts and the reasons of an item, as far as there are any."""
    facts = {
        name: value(name, text, _JSON.get(schema[name].type, "string"))
        for name, text in _pairs(schema, values)
    }
    reasons = dict(_pairs(schema, unknown))
    return {"facts": facts, **({"reasons": reasons} if reasons else {})}


def _pairs(schema: Mapping[str, "FactType"], pairs: Sequence[str]) -> Iterator[tuple[str, str]]:
    """Names of facts and the texts after them; raises InputError for an unknown fact."""
    for pair in pairs:
        name, equals, text = pair.partition("=")
        if not equals:
            raise InputError(f'"{pair}" is not of the form name=value.')
        if name not in schema:
            raise InputError(f'There is no fact "{name}".{suggestion(name, schema)}')
        yield name, text
