"""The limits of everything that takes a body, against the table that the benchmarks measure by."""

import re
import tracemalloc
from typing import Any

import pytest
from typer.main import get_command

from bench import limits
from factbook import json_parts
from factbook.api.routes import list_routes
from factbook.cli.commands import app
from factbook.errors import PayloadTooLargeError
from factbook.http import requests
from factbook.importers.registry import KINDS
from factbook.settings import Settings
from tests.api.defining import define, pushed
from tests.conftest import StartService
from tests.importers.test_events import World
from tests.service import Service

_WRITING = {"POST", "PUT", "PATCH", "DELETE"}


def test_every_route_importer_and_command_is_in_the_table() -> None:
    routes = {
        f"{route.method} {route.path}"
        for route in list_routes(Settings())
        if route.method in _WRITING
    }
    assert routes == set(limits.ROUTES)
    assert {kind.id for kind in KINDS} == set(limits.IMPORTERS)
    reading = {name for name, command in commands(get_command(app)) if reads_files(command)}
    assert reading <= set(limits.COMMANDS), "commands that read files"
    assert set(limits.COMMANDS) <= {name for name, _ in commands(get_command(app))}


def commands(command: Any, name: str = "") -> list[tuple[str, Any]]:
    """Every command with its name."""
    below = vars(command).get("commands")
    if below is None:
        return [(name, command)]
    return [one for key, each in below.items() for one in commands(each, f"{name} {key}".strip())]


def reads_files(command: Any) -> bool:
    """True if a parameter names a file, or a place with files."""
    return bool({"file", "files", "places", "values", "report"} & {p.name for p in command.params})


@pytest.mark.slow
async def test_each_body_is_refused_just_beyond_its_limit(
    start: StartService, subtests: pytest.Subtests
) -> None:
    service = await start(oauth={"registration": True})
    await define(service, pushed("a"))
    World(service)
    # Those that delete come last.
    for route in sorted(limits.ROUTES, key=lambda route: route.startswith("DELETE")):
        most = limits.ROUTES[route]
        method, _, path = route.partition(" ")
        url = re.sub(r"\{[^}]*\}", "a", path.replace("{importer}", "github"))
        with subtests.test(route):
            refused = [await is_refused(service, method, url, size) for size in (most, most + 1)]
            assert refused == [False, most > 0]


async def is_refused(service: Service, method: str, url: str, size: int) -> bool:
    """True if a body that announces so many bytes is too large."""
    is_form = url.startswith("/oauth/") and url != "/oauth/register"
    type_ = "application/x-www-form-urlencoded" if is_form else "application/json"
    headers = {"content-type": type_, "content-length": str(size)}
    answer = await service.http.request(method, url, content=b"{}", headers=headers)
    return answer.status_code == 413


def test_a_body_of_too_many_values_is_refused_before_it_is_decoded(
    subtests: pytest.Subtests,
) -> None:
    with pytest.raises(PayloadTooLargeError, match="1,000,000 values"):
        requests.decode(b"[" + b"[]," * 1_000_000 + b"1]", Any)
    for part in (b"[]", b'"a"', b'{"a":"["}'):
        with subtests.test(part.decode()):
            body = b"[" + (part + b",") * 30_000 + b"1]"
            tracemalloc.start()
            try:
                assert json_parts.has_more(body, 10_000)
                assert tracemalloc.get_traced_memory()[1] < len(body)
            finally:
                tracemalloc.stop()


def test_signs_in_a_text_are_no_values() -> None:
    text = b'["' + b'[],\\"' * 500_000 + b'"]'
    assert len(requests.decode(text, Any)) == 1
