"""Uses of a new token: commands and files that contain it, shown with its value."""

import shlex
from typing import NamedTuple

from factbook.auth.permissions import CATALOG_READ, FACT_WRITE, SET_WRITE, SOURCE_READ
from factbook.http import client_configs


class Use(NamedTuple):
    """A text to copy, and its instructions."""

    title: str
    about: str
    text: str


def uses(server: str, word: str, value: str, permissions: frozenset[str]) -> list[Use]:
    """Uses for these permissions; `word` is the path word of the push interface."""
    if not client_configs.is_address(server):  # a host that no line for a shell should hold
        server = "http://localhost:8000"
    found = [_environment(server, value)]
    if CATALOG_READ in permissions:
        found.append(_entities(server, value))
    if {CATALOG_READ, SOURCE_READ} <= permissions:
        url = server + client_configs.PATH
        found += [_question(url, value), *_agents(url, value)]
    if SET_WRITE in permissions:
        found.append(_set(f"{server}/api/catalog/{word}-entities/sets/services", value))
    if FACT_WRITE in permissions:
        found.append(_facts(f"{server}/api/tech-insights/v1/facts/load-test", value))
    return found


def _agents(url: str, value: str) -> list[Use]:
    return [
        Use(one.title, f"{one.title} reads {one.file}. {one.use}", one.render(url, value))
        for one in client_configs.AGENTS.values()
    ]


def _environment(server: str, value: str) -> Use:
    lines = (
        f"export FACTBOOK_SERVER={shlex.quote(server)}",
        f"export {client_configs.VARIABLE}={shlex.quote(value)}",
    )
    about = "For the command factbook, and for anything that uses these variables."
    return Use("Environment variables", about, "\n".join(lines))


def _question(url: str, value: str) -> Use:
    body = (
        '{"jsonrpc": "2.0", "method": "tools/call", "id": 1,\n'
        '       "params": {"name": "get-data-source-discovery", "arguments": {}}}'
    )
    accept = '  -H "Accept: application/json, text/event-stream" \\\n'
    about = "Asks which data sources there are."
    return Use("Ask with curl", about, _curl(url, value, body, more=accept))


def _entities(server: str, value: str) -> Use:
    about = "Asks for one entity, to see whether the token works."
    return Use("Try the token", about, _curl(f"{server}/api/catalog/entities?limit=1", value))


def _set(url: str, value: str) -> Use:
    body = (
        '{"items": [{"apiVersion": "backstage.io/v1alpha1", "kind": "Component",\n'
        '                  "metadata": {"name": "shop"},\n'
        '                  "spec": {"type": "service", "lifecycle": "production",\n'
        '                           "owner": "team-shop"}}]}'
    )
    about = "A push replaces the whole set: send everything that belongs in it."
    return Use("Push a set with curl", about, _curl(url, value, body, method="PUT"))


def _facts(url: str, value: str) -> Use:
    body = '{"items": [{"entity": "component:shop", "facts": {"p95": 79.0, "passed": true}}]}'
    about = "The data source load-test has to be defined first, with these facts."
    return Use("Push facts with curl", about, _curl(url, value, body))


def _curl(
    url: str, value: str, body: str | None = None, *, method: str | None = None, more: str = ""
) -> str:
    verb = f"-X {method} " if method else ""
    lines = (
        f"curl -sS {verb}{shlex.quote(url)} \\\n"
        f"  -H {shlex.quote(f'Authorization: Bearer {value}')}"
    )
    if body is None:
        return lines
    return f"{lines} \\\n  -H 'Content-Type: application/json' \\\n{more}  -d '{body}'"
