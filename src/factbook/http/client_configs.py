"""MCP client configurations, rendered from the server address.

The formats follow each client's documentation. A client is listed only if its documentation
describes how to keep the token out of the configuration file.
"""

import base64
import json
import re
import shlex
from collections.abc import Callable, Sequence
from typing import Any, Final, NamedTuple
from urllib.parse import quote, urlencode

PATH: Final = "/mcp"
TOOLSETS: Final = ("facts", "checks", "checks-manage")
READING: Final = TOOLSETS[:2]
VARIABLE: Final = "FACTBOOK_TOKEN"
_NAME = "factbook"
# Agents expand `$...` and `{...}`, so an address can contain neither. An `@` would follow a
# password, which doesn't belong in a file.
_ADDRESS = re.compile(r"https?://[A-Za-z0-9\-._~:/\[\]!&'()*+,;=%]+")


class Agent(NamedTuple):
    """An MCP client and its configuration file.

    `render` builds the configuration from the endpoint URL and the token; with None, the
    configuration reads the token from elsewhere, and `secret` says from where. `use` explains how
    to use the configuration. `link` builds an install link, if the client supports them.
    """

    title: str
    file: str
    render: Callable[[str, str | None], str]
    secret: str
    use: str = "Put the output into that file. If the file exists, add the entry to it."
    link: Callable[[str], str] | None = None


def is_address(text: str) -> bool:
    """True if the text is a server address that is safe in every configuration format."""
    return _ADDRESS.fullmatch(text) is not None


def endpoint(server: str, toolsets: Sequence[str] = (), *, is_compact: bool = False) -> str:
    """URL of the MCP endpoint, for all toolsets or some; `is_compact` asks for text answers."""
    query = {"toolsets": ",".join(toolsets)} if toolsets else {}
    query |= {"read": "compact"} if is_compact else {}
    return server.rstrip("/") + PATH + ("?" + urlencode(query, safe=",") if query else "")


def _header(token: str | None, reference: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {reference if token is None else token}"}


def _quoted(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)


def _json(value: dict[str, Any]) -> str:
    return json.dumps(value, ensure_ascii=False, indent=2)


# https://code.claude.com/docs/en/mcp: the scope `project` is .mcp.json, where variables are
# expanded; `user` is a file in the home directory.
def _claude_code(url: str, token: str | None) -> str:
    scope = "project" if token is None else "user"
    ((name, value),) = _header(token, f"${{{VARIABLE}}}").items()
    options = ["--transport", "http", "--scope", scope]
    return shlex.join(
        ["claude", "mcp", "add", *options, _NAME, url, "--header", f"{name}: {value}"]
    )


def _render_servers(key: str, url: str, headers: dict[str, str]) -> str:
    """The file of clients that list servers as `mcpServers`; `key` is the member for the URL."""
    return _json({"mcpServers": {_NAME: {key: url, "headers": headers}}})


# https://cursor.com/docs/mcp
def _cursor(url: str, token: str | None) -> str:
    return _render_servers("url", url, _header(token, f"${{env:{VARIABLE}}}"))


# https://cursor.com/docs/context/mcp/install-links
def _cursor_link(url: str) -> str:
    server = json.loads(_cursor(url, None))["mcpServers"][_NAME]
    config = base64.b64encode(json.dumps(server).encode()).decode()
    query = urlencode({"name": _NAME, "config": config})
    return f"cursor://anysphere.cursor-deeplink/mcp/install?{query}"


_VSCODE_INPUTS: Final = [
    {
        "type": "promptString",
        "id": "factbook-token",
        "description": "API token of Factbook",
        "password": True,
    }
]


# https://code.visualstudio.com/docs/copilot/reference/mcp-configuration
def _vscode(url: str, token: str | None) -> str:
    headers = _header(token, "${input:factbook-token}")
    inputs = {"inputs": _VSCODE_INPUTS} if token is None else {}
    return _json({**inputs, "servers": {_NAME: {"type": "http", "url": url, "headers": headers}}})


# https://code.visualstudio.com/api/extension-guides/ai/mcp
def _vscode_link(url: str) -> str:
    server = json.loads(_vscode(url, None))["servers"][_NAME]
    config = {"name": _NAME, **server, "inputs": _VSCODE_INPUTS}
    return f"vscode:mcp/install?{quote(json.dumps(config))}"


# https://developers.openai.com/codex/mcp
def _codex(url: str, token: str | None) -> str:
    lines = [f"[mcp_servers.{_NAME}]", f"url = {_quoted(url)}"]
    if token is None:
        lines.append(f"bearer_token_env_var = {_quoted(VARIABLE)}")
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
        return _PYTHON.format(url=repr(url), token=f"os.environ[{VARIABLE!r}]")
    return _PYTHON.replace("import os\n", "").format(url=repr(url), token=repr(token))


def _from_environment(title: str) -> str:
    return f"Start {title} with {VARIABLE} in its environment."


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
        link=_cursor_link,
    ),
    "vscode": Agent(
        "Visual Studio Code",
        ".vscode/mcp.json of a project",
        _vscode,
        "Visual Studio Code asks for the token when it first starts the server, and keeps it.",
        link=_vscode_link,
    ),
    "windsurf": Agent(
        "Windsurf",
        "~/.codeium/windsurf/mcp_config.json",
        # https://docs.windsurf.com/windsurf/cascade/mcp
        lambda url, token: _render_servers(
            "serverUrl", url, _header(token, f"${{env:{VARIABLE}}}")
        ),
        _from_environment("Windsurf"),
    ),
    "gemini-cli": Agent(
        "Gemini CLI",
        ".gemini/settings.json of a project, or ~/.gemini/settings.json",
        # https://geminicli.com/docs/tools/mcp-server
        # and https://geminicli.com/docs/reference/configuration
        lambda url, token: _render_servers("httpUrl", url, _header(token, f"${{{VARIABLE}}}")),
        _from_environment("Gemini CLI"),
    ),
    "codex": Agent("Codex", "~/.codex/config.toml", _codex, _from_environment("Codex")),
    "python": Agent(
        "Python",
        "a program of yours",
        _python,
        _from_environment("the program"),
        "It needs the package mcp, 2 or later.",
    ),
}
