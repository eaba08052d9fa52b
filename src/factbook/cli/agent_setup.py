"""`factbook connect`: configuration for an agent to reach a server's tools."""

import re
from collections.abc import Sequence
from typing import Annotated

import typer

from factbook.cli.connection import DEFAULT_SERVER, Server, Token, connect_server
from factbook.cli.output import NOT_AUTHORISED, USAGE, CommandError, print_note, print_table
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
            f"{server!r} is no server address: it begins with http:// or https://, "
            "then come a host and perhaps a port and a path."
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
