"""`factbook connect`: configuration for an agent to reach a server's tools."""

import re
from typing import Annotated

import typer

from factbook.cli.connection import DEFAULT_SERVER, Server, Token, connected
from factbook.cli.failures import USAGE, CommandError
from factbook.cli.output import note, print_table
from factbook.errors import InputError
from factbook.http.client_configs import AGENTS, PATH, VARIABLE, Agent, is_address

_TOKEN = re.compile(r"[A-Za-z0-9\-._~+/]+=*")  # RFC 6750, section 2.1


def connect(
    context: typer.Context,
    client: Annotated[
        str | None,
        typer.Argument(metavar="CLIENT", help="The agent. Without it, list all known ones."),
    ] = None,
    *,
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
    """
    agent = None if client is None else _agent(client)
    url = _endpoint(server)
    secret = _secret(token) if with_token else None
    if check:
        _check(context, server, token)
    if agent is None:
        print_table(["Client", "Name", "File"], [(n, a.title, a.file) for n, a in AGENTS.items()])
        return
    print(agent.render(url, secret), flush=True)  # before what is said about it
    note(f"{agent.title} reads {agent.file}. {agent.use}")
    note(agent.secret if secret is None else "It holds the token: do not share or commit it.")


def _agent(name: str) -> Agent:
    if name not in AGENTS:
        known = [f"{known}: {agent.file}" for known, agent in AGENTS.items()]
        raise CommandError(f'There is no client "{name}". The clients are:', USAGE, known)
    return AGENTS[name]


def _endpoint(server: str) -> str:
    if not is_address(server):
        raise InputError(
            f"{server!r} is no server address: it begins with http:// or https://, "
            "then come a host and perhaps a port and a path."
        )
    return server.rstrip("/") + PATH


def _secret(token: str | None) -> str:
    token = (token or "").strip()
    if not token:
        raise InputError(f"There is no token to include. Give one with --token or {VARIABLE}.")
    if not _TOKEN.fullmatch(token):
        raise InputError("The token has characters that a token cannot have.")
    return token


def _check(context: typer.Context, server: str, token: str | None) -> None:
    with connected(context, server, token) as client:
        answer = client.initialize()
        tools = client.tools()
    asked = answer.server_info
    note(f"{asked.title or asked.name} {asked.version} answers at {server}: {len(tools)} tools.")
