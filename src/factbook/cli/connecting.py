"""`factbook connect`: the configuration with which an agent reaches a server's tools.

The forms are those of the agents' own documentation. An agent is here only when that documentation
says how its configuration takes a header's secret from elsewhere.
"""

import re
import shlex
from collections.abc import Callable
from typing import Annotated, Any, NamedTuple

import typer

from factbook.cli.connection import DEFAULT_SERVER, Server, Token, connected
from factbook.cli.failures import USAGE, Failure
from factbook.cli.output import note, print_table
from factbook.errors import InputError

_NAME = "factbook"
_VARIABLE = "FACTBOOK_TOKEN"
# Agents put variables into `$...` and `{...}`, so that an address has neither; `@` comes after a
# password, which does not belong into a file.
_ADDRESS = re.compile(r"https?://[A-Za-z0-9\-._~:/\[\]!&'()*+,;=%]+")
_TOKEN = re.compile(r"[A-Za-z0-9\-._~+/]+=*")  # RFC 6750, section 2.1


class Agent(NamedTuple):
    """A client of the tool-call endpoint, and the file that it reads.

    `render` makes the configuration from the endpoint's URL and the token, or None in place of the
    token where it is to come from elsewhere; `secret` says from where, and `use` what to do with
    what was made.
    """

    title: str
    file: str
    render: Callable[[str, str | None], str]
    secret: str
    use: str = "Put it into that file; where there is one, add the entry to it."


def connect(
    context: typer.Context,
    client: Annotated[
        str | None,
        typer.Argument(metavar="CLIENT", help="The agent; all that are known when not given."),
    ] = None,
    *,
    with_token: Annotated[
        bool, typer.Option("--with-token", help="Put the token itself into the output.")
    ] = False,
    check: Annotated[
        bool, typer.Option("--check", help="Ask the server first whether it answers this token.")
    ] = False,
    server: Server = DEFAULT_SERVER,
    token: Token = None,
) -> None:
    """Print the configuration with which an agent reaches the server's tools.

    What is printed is the whole file, or a command line. It says where the agent finds the token,
    and does not hold the token.

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
        raise Failure(f'There is no client "{name}". The clients are:', USAGE, known)
    return AGENTS[name]


def _endpoint(server: str) -> str:
    # Importing HTTP takes longer than all the rest of the command line.
    from factbook.client.tool_calls import PATH

    if not _ADDRESS.fullmatch(server):
        raise InputError(
            f"{server!r} is no address of a server: it begins with http:// or https://, "
            "then come a host and perhaps a port and a path."
        )
    return server.rstrip("/") + PATH


def _secret(token: str | None) -> str:
    token = (token or "").strip()
    if not token:
        raise InputError(f"There is no token to put in. Give one with --token or {_VARIABLE}.")
    if not _TOKEN.fullmatch(token):
        raise InputError("The token has characters that a token cannot have.")
    return token


def _check(context: typer.Context, server: str, token: str | None) -> None:
    with connected(context, server, token) as client:
        answer = client.initialize()
        tools = client.tools()
    asked = answer.server_info
    note(f"{asked.title or asked.name} {asked.version} answers at {server}: {len(tools)} tools.")


def _header(token: str | None, reference: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {reference if token is None else token}"}


def _quoted(text: str) -> str:
    """Text as JSON and TOML quote it."""
    import msgspec

    return msgspec.json.encode(text).decode()


def _json(value: dict[str, Any]) -> str:
    import msgspec

    return msgspec.json.format(msgspec.json.encode(value)).decode()


# https://code.claude.com/docs/en/mcp: the scope `project` is the file .mcp.json, in which
# variables are put in; `user` is a file in the home directory.
def _claude_code(url: str, token: str | None) -> str:
    scope = "project" if token is None else "user"
    ((name, value),) = _header(token, f"${{{_VARIABLE}}}").items()
    options = ["--transport", "http", "--scope", scope]
    return shlex.join(
        ["claude", "mcp", "add", *options, _NAME, url, "--header", f"{name}: {value}"]
    )


# https://cursor.com/docs/mcp
def _cursor(url: str, token: str | None) -> str:
    headers = _header(token, f"${{env:{_VARIABLE}}}")
    return _json({"mcpServers": {_NAME: {"url": url, "headers": headers}}})


# https://code.visualstudio.com/docs/copilot/reference/mcp-configuration
def _vscode(url: str, token: str | None) -> str:
    asked = {
        "type": "promptString",
        "id": "factbook-token",
        "description": "API token of Factbook",
        "password": True,
    }
    headers = _header(token, "${input:factbook-token}")
    inputs = {"inputs": [asked]} if token is None else {}
    return _json({**inputs, "servers": {_NAME: {"type": "http", "url": url, "headers": headers}}})


# https://docs.windsurf.com/windsurf/cascade/mcp
def _windsurf(url: str, token: str | None) -> str:
    headers = _header(token, f"${{env:{_VARIABLE}}}")
    return _json({"mcpServers": {_NAME: {"serverUrl": url, "headers": headers}}})


# https://geminicli.com/docs/tools/mcp-server and https://geminicli.com/docs/reference/configuration
def _gemini_cli(url: str, token: str | None) -> str:
    headers = _header(token, f"${{{_VARIABLE}}}")
    return _json({"mcpServers": {_NAME: {"httpUrl": url, "headers": headers}}})


# https://developers.openai.com/codex/mcp
def _codex(url: str, token: str | None) -> str:
    lines = [f"[mcp_servers.{_NAME}]", f"url = {_quoted(url)}"]
    if token is None:
        lines.append(f"bearer_token_env_var = {_quoted(_VARIABLE)}")
    else:
        ((name, value),) = _header(token, "").items()
        lines.append(f"http_headers = {{ {_quoted(name)} = {_quoted(value)} }}")
    return "\n".join(lines)


_PYTHON = '''\
"""Ask Factbook through the official client of the Model Context Protocol, `mcp` 2 or later."""

import asyncio
import os

import httpx2
from mcp import Client
from mcp.client.streamable_http import streamable_http_client

URL = {url}
TOKEN = {token}


async def main() -> None:
    headers = {{"Authorization": f"Bearer {{TOKEN}}"}}
    async with (
        httpx2.AsyncClient(headers=headers, timeout=60) as http,
        Client(streamable_http_client(URL, http_client=http)) as client,
    ):
        for tool in (await client.list_tools()).tools:
            print(tool.name)
        answer = await client.call_tool("get-data-source-discovery", {{}})
        for source in answer.structured_content["dataSources"]:
            print(source["id"], "-", source["title"])


asyncio.run(main())'''


def _python(url: str, token: str | None) -> str:
    if token is None:
        return _PYTHON.format(url=repr(url), token=f"os.environ[{_VARIABLE!r}]")
    return _PYTHON.replace("import os\n", "").format(url=repr(url), token=repr(token))


def _from_environment(title: str) -> str:
    return f"Start {title} with {_VARIABLE} in its environment."


AGENTS = {
    "claude-code": Agent(
        "Claude Code",
        ".mcp.json of a project, and ~/.claude.json",
        _claude_code,
        _from_environment("Claude Code"),
        "Run this command in the folder of the project; it writes the first, or with a token the "
        "second.",
    ),
    "cursor": Agent(
        "Cursor",
        ".cursor/mcp.json of a project, or ~/.cursor/mcp.json",
        _cursor,
        _from_environment("Cursor"),
    ),
    "vscode": Agent(
        "Visual Studio Code",
        ".vscode/mcp.json of a project",
        _vscode,
        "Visual Studio Code asks for the token when it first starts the server, and keeps it.",
    ),
    "windsurf": Agent(
        "Windsurf",
        "~/.codeium/windsurf/mcp_config.json",
        _windsurf,
        _from_environment("Windsurf"),
    ),
    "gemini-cli": Agent(
        "Gemini CLI",
        ".gemini/settings.json of a project, or ~/.gemini/settings.json",
        _gemini_cli,
        _from_environment("Gemini CLI"),
    ),
    "codex": Agent(
        "Codex",
        "~/.codex/config.toml",
        _codex,
        _from_environment("Codex"),
    ),
    "python": Agent(
        "Python",
        "a program of yours",
        _python,
        _from_environment("the program"),
        "It needs the package mcp, 2 or later.",
    ),
}
