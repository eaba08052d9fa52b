"""All commands of `factbook`, the command-line parser, and `factbook connect`.

Slow imports happen inside the commands that need them, to keep `--help` and shell completion fast.
"""

import re
from collections.abc import Sequence
from typing import Annotated

import typer

from factbook import __version__
from factbook.cli import access, checks, imports, sources
from factbook.cli import events as event_commands
from factbook.cli.command_parts import (
    DEFAULT_SERVER,
    EXIT_CODES,
    NOT_AUTHORISED,
    USAGE,
    CommandError,
    Commands,
    Server,
    Token,
    connect_server,
    print_note,
    print_table,
)
from factbook.cli.entity_push import push, sets, validate
from factbook.cli.events import events
from factbook.cli.query import call, entities, facets, facts, push_facts
from factbook.cli.service import (
    backup,
    confirm_clock,
    distribute,
    doctor,
    migrate,
    partition,
    restore,
    serve,
)
from factbook.cli.sources import collect, worker
from factbook.errors import InputError, meant, suggestion
from factbook.http import client_configs
from factbook.http.client_configs import AGENTS, VARIABLE, Agent

_TOKEN = re.compile(r"[A-Za-z0-9\-._~+/]+=*")  # RFC 6750, section 2.1


def connect(
    context: typer.Context,
    client: Annotated[
        str | None,
        typer.Argument(metavar="CLIENT", help="The agent. Without it, list all known ones."),
    ] = None,
    *,
    toolsets: Annotated[
        str | None,
        typer.Option(
            metavar="NAMES",
            help=f"Only these toolsets, separated by commas: {', '.join(client_configs.TOOLSETS)}.",
        ),
    ] = None,
    read_only: Annotated[bool, typer.Option("--read-only", help="Only tools that read.")] = False,
    compact: Annotated[
        bool,
        typer.Option("--compact", help="Answers as text alone, which cost a model half as much."),
    ] = False,
    with_token: Annotated[
        bool, typer.Option("--with-token", help="Put the token itself into the output.")
    ] = False,
    check: Annotated[
        bool, typer.Option("--check", help="First check that the server accepts this token.")
    ] = False,
    server: Server = DEFAULT_SERVER,
    token: Token = None,
) -> None:
    """Print the configuration with which an agent reaches the server's tools.

    Prints the whole file, or a command line. It says where the agent finds the token, and does
    not contain the token.

    \b
    Examples:
      factbook connect
      factbook connect cursor --server https://factbook.example.com > .cursor/mcp.json
      factbook connect vscode --check > .vscode/mcp.json
      eval "$(factbook connect claude-code)"
      factbook connect codex --with-token
      factbook connect gemini-cli --toolsets checks --compact
    """
    agent = None if client is None else _find_agent(client)
    url = _endpoint_address(
        server, _parse_toolsets(toolsets, read_only=read_only), is_compact=compact
    )
    secret = _check_token(token) if with_token else None
    if check:
        _check_connection(context, server, token, url)
    if agent is None:
        print_table(["Client", "Name", "File"], [(n, a.title, a.file) for n, a in AGENTS.items()])
        return
    print(agent.render(url, secret), flush=True)  # before what is said about it
    print_note(f"{agent.title} reads {agent.file}. {agent.use}")
    if agent.link is not None and secret is None:
        print_note(f"Or open this address, which installs it: {agent.link(url)}")
    print_note(agent.secret if secret is None else "It holds the token: do not share or commit it.")


def _find_agent(name: str) -> Agent:
    if name not in AGENTS:
        known = [f"{known}: {agent.file}" for known, agent in AGENTS.items()]
        raise CommandError(
            f'There is no client "{name}"{meant(name, AGENTS)}. The clients are:', USAGE, known
        )
    return AGENTS[name]


def _parse_toolsets(text: str | None, *, read_only: bool) -> list[str]:
    known = client_configs.TOOLSETS
    names = [] if text is None else [name.strip() for name in text.split(",")]
    if unknown := [name for name in names if name not in known]:
        raise InputError(f'There is no toolset "{unknown[0]}".{suggestion(unknown[0], known)}')
    if not read_only:
        return names
    reading = [name for name in names or known if name in client_configs.READING]
    if not reading:
        raise InputError(f"{names[0]} has no tool that only reads.")
    return reading


def _endpoint_address(server: str, toolsets: Sequence[str], *, is_compact: bool) -> str:
    if not client_configs.is_address(server):
        raise InputError(
            f"{server!r} is not a server address: it begins with http:// or https://, "
            "followed by a host and optionally a port and a path."
        )
    return client_configs.endpoint(server, toolsets, is_compact=is_compact)


def _check_token(token: str | None) -> str:
    token = (token or "").strip()
    if not token:
        raise InputError(f"There is no token to include. Give one with --token or {VARIABLE}.")
    if not _TOKEN.fullmatch(token):
        raise InputError("The token has characters that a token cannot have.")
    return token


def _check_connection(context: typer.Context, server: str, token: str | None, url: str) -> None:
    path = url.removeprefix(server.rstrip("/"))
    with connect_server(context, server, token) as client:
        answer = client.initialize(path)
        tools = client.tools(path)
    if not tools:
        raise CommandError(
            f"{server} answers, but this token may call none of these tools.",
            NOT_AUTHORISED,
            hint="`factbook token create NAME` makes a token that reads.",
        )
    asked = answer.server_info
    print_note(
        f"{asked.title or asked.name} {asked.version} answers at {server}: {len(tools)} tools."
    )


COMMANDS = (
    serve,
    worker,
    migrate,
    backup,
    restore,
    doctor,
    confirm_clock,
    partition,
    distribute,
    push,
    validate,
    sets,
    entities,
    facets,
    facts,
    call,
    events,
    push_facts,
    collect,
    connect,
)

app = typer.Typer(
    cls=Commands,
    no_args_is_help=True,
    epilog=EXIT_CODES,
    context_settings={"help_option_names": ["-h", "--help"]},
    # Plain help keeps examples as written, and starts three times as fast.
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
)
for command in COMMANDS:
    app.command(epilog=EXIT_CODES)(command)
app.add_typer(sources.app, name="sources", epilog=EXIT_CODES)
app.add_typer(checks.app, name="checks", epilog=EXIT_CODES)
app.add_typer(imports.app, name="import", epilog=EXIT_CODES)
app.add_typer(access.tokens_app, name="token")
app.add_typer(access.people_app, name="people")
app.add_typer(event_commands.webhooks_app, name="webhooks")
app.add_typer(event_commands.digests_app, name="digests")
app.add_typer(access.audit_app, name="audit")


def _version(asked: bool) -> None:
    if asked:
        print(f"factbook {__version__}")
        raise typer.Exit


@app.callback()
def factbook(
    version: Annotated[
        bool,
        typer.Option("--version", callback=_version, is_eager=True, help="Show the version."),
    ] = False,
) -> None:
    """A software catalog that agents and people can ask for facts.

    \b
    Examples:
      factbook serve
      export FACTBOOK_TOKEN=$(factbook token create laptop)
      factbook push services catalog.yaml
      factbook facts payments
    """
