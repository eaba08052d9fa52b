"""`factbook connect`: ready configurations for agents."""

import ast
import base64
import json
import re
import shlex
import tomllib
from collections.abc import Callable
from urllib.parse import parse_qsl, unquote, urlsplit

import pytest

from factbook.http import client_configs
from factbook.tools.toolsets import list_toolsets
from tests.cli.conftest import Command
from tests.cli.fake_server import ALL_TOOLS, FakeServer, result

CLIENTS = ["claude-code", "cursor", "vscode", "windsurf", "gemini-cli", "codex", "python"]
SECRET = "fbk_secret"
SERVER = "https://factbook.test"
URL = SERVER + ALL_TOOLS
Read = Callable[[str], tuple[str, str]]


def of_json(*path: str, url: str) -> Read:
    """Reads the URL and the header of a JSON file whose server is at this path."""

    def read(text: str) -> tuple[str, str]:
        found = json.loads(text)
        for key in path:
            found = found[key]
        return found[url], found["headers"]["Authorization"]

    return read


def of_command(text: str) -> tuple[str, str]:
    words = shlex.split(text)
    assert words[:7] == ["claude", "mcp", "add", "--transport", "http", "--scope", words[6]]
    assert (words[7], words[9]) == ("factbook", "--header")
    assert len(words) == 11
    return words[8], words[10].removeprefix("Authorization: ")


def of_toml(text: str) -> tuple[str, str]:
    found = tomllib.loads(text)["mcp_servers"]["factbook"]
    if "bearer_token_env_var" in found:
        return found["url"], "from " + found["bearer_token_env_var"]
    return found["url"], found["http_headers"]["Authorization"]


def of_program(text: str) -> tuple[str, str]:
    assignments = {
        ast.unparse(statement.targets[0]): statement.value
        for statement in ast.parse(text).body
        if isinstance(statement, ast.Assign)
    }
    url = ast.literal_eval(assignments["URL"])
    token = assignments["TOKEN"]
    if not isinstance(token, ast.Constant):
        return url, "from " + ast.unparse(token)
    return url, f"Bearer {ast.literal_eval(token)}"


READERS: dict[str, Read] = {
    "claude-code": of_command,
    "cursor": of_json("mcpServers", "factbook", url="url"),
    "vscode": of_json("servers", "factbook", url="url"),
    "windsurf": of_json("mcpServers", "factbook", url="serverUrl"),
    "gemini-cli": of_json("mcpServers", "factbook", url="httpUrl"),
    "codex": of_toml,
    "python": of_program,
}
REFERENCES = {
    "claude-code": "Bearer ${FACTBOOK_TOKEN}",
    "cursor": "Bearer ${env:FACTBOOK_TOKEN}",
    "vscode": "Bearer ${input:factbook-token}",
    "windsurf": "Bearer ${env:FACTBOOK_TOKEN}",
    "gemini-cli": "Bearer ${FACTBOOK_TOKEN}",
    "codex": "from FACTBOOK_TOKEN",
    "python": "from os.environ['FACTBOOK_TOKEN']",
}


def test_a_configuration_names_the_endpoint_and_where_the_token_comes_from(
    factbook: Command, server: FakeServer, subtests: pytest.Subtests
) -> None:
    for client in CLIENTS:
        with subtests.test(client=client):
            answer = factbook("connect", client, "--server", SERVER, "--token", SECRET)
            assert answer.exit_code == 0
            assert READERS[client](answer.stdout) == (URL, REFERENCES[client])
            assert SECRET not in answer.output
            assert server.requests == []


def test_a_configuration_holds_the_token_when_asked(
    factbook: Command, subtests: pytest.Subtests
) -> None:
    for client in CLIENTS:
        with subtests.test(client=client):
            answer = factbook(
                "connect", client, "--server", SERVER, "--token", SECRET, "--with-token"
            )
            assert READERS[client](answer.stdout) == (URL, f"Bearer {SECRET}")
            assert "do not share or commit it" in answer.stderr
            assert "FACTBOOK_TOKEN" not in answer.stdout
            assert SECRET not in answer.stderr


def test_an_agent_can_be_given_some_tools_and_short_answers(
    factbook: Command, subtests: pytest.Subtests
) -> None:
    cases = [
        (["--toolsets", "checks"], "?toolsets=checks"),
        (["--toolsets", "facts, checks", "--compact"], "?toolsets=facts,checks&read=compact"),
        (["--read-only"], "?toolsets=facts,checks"),
        (["--read-only", "--toolsets", "checks,checks-manage"], "?toolsets=checks"),
        (["--compact"], "?read=compact"),
    ]
    for options, query in cases:
        for client in CLIENTS:
            with subtests.test(client=client, options=options):
                answer = factbook("connect", client, "--server", SERVER, *options)
                assert READERS[client](answer.stdout)[0] == URL + query
    answer = factbook("connect", "cursor", "--toolsets", "fact")
    assert answer.exit_code == 2
    assert (
        'There is no toolset "fact". Did you mean facts? There are: facts, checks, checks-manage.'
        in answer.stderr
    )
    answer = factbook("connect", "cursor", "--toolsets", "checks-manage", "--read-only")
    assert (answer.exit_code, answer.stdout) == (2, "")


def test_the_toolsets_of_the_command_are_those_of_the_server() -> None:
    known = list_toolsets(with_writing=True)
    assert tuple(one.name for one in known) == client_configs.TOOLSETS
    reading = tuple(one.name for one in known if not any(tool.writes for tool in one.tools))
    assert reading == client_configs.READING


def test_cursor_and_visual_studio_code_have_an_address_that_installs(factbook: Command) -> None:
    def link(client: str) -> str:
        told = factbook("connect", client, "--server", SERVER, "--toolsets", "facts").stderr
        [address] = re.findall(r"Or open this address, which installs it: (\S+)", told)
        return str(address)

    url = f"{URL}?toolsets=facts"
    cursor = urlsplit(link("cursor"))
    assert cursor[:3] == ("cursor", "anysphere.cursor-deeplink", "/mcp/install")
    query = dict(parse_qsl(cursor.query))
    assert query["name"] == "factbook"
    assert json.loads(base64.b64decode(query["config"])) == {
        "url": url,
        "headers": {"Authorization": REFERENCES["cursor"]},
    }
    code, _, config = link("vscode").partition("?")
    assert code == "vscode:mcp/install"
    found = json.loads(unquote(config))
    assert (found["name"], found["type"], found["url"]) == ("factbook", "http", url)
    assert found["headers"] == {"Authorization": REFERENCES["vscode"]}
    assert [each["id"] for each in found["inputs"]] == ["factbook-token"]
    with_token = factbook("connect", "cursor", "--token", SECRET, "--with-token")
    assert "cursor://" not in with_token.stderr


def test_addresses_and_tokens_are_data_to_every_client(
    factbook: Command, subtests: pytest.Subtests
) -> None:
    server, token = "http://[::1]:8000/a'b&(c);d/", "a.b-c_d~e+f/g=="
    for client in CLIENTS:
        with subtests.test(client=client):
            answer = factbook(
                "connect", client, "--server", server, "--token", token, "--with-token"
            )
            assert READERS[client](answer.stdout) == (
                server.rstrip("/") + ALL_TOOLS,
                f"Bearer {token}",
            )


def test_a_command_line_keeps_a_token_out_of_the_file_of_the_project(factbook: Command) -> None:
    arguments = ["connect", "claude-code", "--token", SECRET]
    assert "--scope project" in factbook(*arguments).stdout
    assert "--scope user" in factbook(*arguments, "--with-token").stdout


def test_visual_studio_code_asks_for_the_token_it_refers_to(factbook: Command) -> None:
    (asked,) = json.loads(factbook("connect", "vscode").stdout)["inputs"]
    assert (asked["type"], asked["id"]) == ("promptString", "factbook-token")
    assert asked["password"] is True
    with_token = factbook("connect", "vscode", "--token", SECRET, "--with-token")
    assert "inputs" not in json.loads(with_token.stdout)


def test_what_to_do_is_said_beside_the_configuration(
    factbook: Command, subtests: pytest.Subtests
) -> None:
    for client, words in [
        ("claude-code", "Run this command in the folder of the project"),
        ("cursor", ".cursor/mcp.json of a project, or ~/.cursor/mcp.json."),
        ("vscode", "asks for the token when it first starts the server"),
        ("codex", "Start Codex with FACTBOOK_TOKEN in its environment."),
        ("python", "It needs the package mcp, 2 or later."),
    ]:
        with subtests.test(client=client):
            answer = factbook("connect", client)
            assert words in answer.stderr
            assert words not in answer.stdout


def test_without_a_client_all_of_them_are_listed_with_their_files(factbook: Command) -> None:
    answer = factbook("connect")
    assert answer.exit_code == 0
    lines = answer.stdout.splitlines()[1:]
    assert [line.split()[0] for line in lines] == CLIENTS
    assert "~/.codex/config.toml" in lines[CLIENTS.index("codex")]


def test_an_unknown_client_is_wrong_usage_and_lists_those_there_are(factbook: Command) -> None:
    answer = factbook("connect", "clippy")
    assert (answer.exit_code, answer.stdout) == (2, "")
    lines = answer.stderr.splitlines()
    assert lines[0] == 'Error: There is no client "clippy". The clients are:'
    assert [line.split(":")[0].strip() for line in lines[1:]] == CLIENTS
    assert "~/.codex/config.toml" in answer.stderr


def test_an_address_that_a_configuration_cannot_hold_is_wrong_usage(
    factbook: Command, subtests: pytest.Subtests
) -> None:
    for address in [
        "factbook.test",
        "https://",
        "https://a b",
        "https://$HOME",
        "https://a{b}",
        "https://me@a",
    ]:
        with subtests.test(address=address):
            answer = factbook("connect", "cursor", "--server", address)
            assert (answer.exit_code, answer.stdout) == (2, "")
            assert "is not a server address" in answer.stderr


def test_a_token_that_cannot_be_put_in_is_wrong_usage_and_not_shown(
    factbook: Command, subtests: pytest.Subtests
) -> None:
    for token in ["", " ", "fbk secret", 'fbk"secret', "fbk_secreté", "$secret"]:
        with subtests.test(token=token):
            answer = factbook("connect", "cursor", "--token", token, "--with-token")
            assert (answer.exit_code, answer.stdout) == (2, "")
            assert "secret" not in answer.output


def test_a_token_has_to_be_given_to_be_put_in(factbook: Command) -> None:
    answer = factbook("connect", "cursor", "--with-token")
    assert answer.exit_code == 2
    assert "Give one with --token or FACTBOOK_TOKEN" in answer.stderr


# --check


def test_a_check_says_how_many_tools_answer(factbook: Command, server: FakeServer) -> None:
    server.on_tool("get-things", result)
    server.on_tool("get-more", result)
    answer = factbook("connect", "cursor", "--check", "--server", SERVER, "--token", SECRET)
    assert answer.exit_code == 0
    assert answer.stderr.startswith("Factbook 1.2.3 answers at https://factbook.test: 2 tools.\n")
    assert json.loads(answer.stdout)
    assert [json.loads(each.content)["method"] for each in server.requests] == [
        "initialize",
        "tools/list",
    ]
    assert {each.headers["authorization"] for each in server.requests} == {f"Bearer {SECRET}"}


def test_a_check_fails_if_the_token_may_call_no_tool(factbook: Command, server: FakeServer) -> None:
    answer = factbook("connect", "cursor", "--check", "--token", SECRET)
    assert (answer.exit_code, answer.stdout) == (3, "")
    assert "this token may call none of these tools" in answer.stderr


@pytest.mark.parametrize(("status", "code"), [(401, 3), (403, 3), (500, 1)])
def test_a_check_that_fails_prints_no_configuration(
    factbook: Command, server: FakeServer, status: int, code: int
) -> None:
    server.on(
        "POST", ALL_TOOLS, {"error": "some_error", "error_description": "The reason."}, status
    )
    answer = factbook("connect", "cursor", "--check")
    assert (answer.exit_code, answer.stdout) == (code, "")
    assert answer.stderr.startswith("Error: The reason.\n")


def test_a_host_that_the_server_does_not_answer_for_is_told(
    factbook: Command, server: FakeServer
) -> None:
    error = {"code": -32600, "message": "The Host header names another host."}
    server.on("POST", ALL_TOOLS, {"jsonrpc": "2.0", "id": None, "error": error}, 421)
    answer = factbook("connect", "cursor", "--check")
    assert (answer.exit_code, answer.stdout) == (1, "")
    assert answer.stderr == "Error: The Host header names another host.\n"
