"""A service that is configured by its environment, on loopback, with every vendor at once.

Each is a fake at an address of its own. Every leaf of every tool comes from the vendor that the
entity's annotations point to.
"""

import json
import sys
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import httpx2
import pytest
from starlette.types import ASGIApp

from tests.collection.tools import TOOLS as SHAPES
from tests.collection.tools import leaves
from tests.fakes.serving import served
from tests.integrations.datadog import asking as datadog
from tests.integrations.gitea import asking as gitea
from tests.integrations.github import asking as github
from tests.integrations.gitlab import asking as gitlab
from tests.integrations.pagerduty import asking as pagerduty
from tests.integrations.snyk import asking as snyk
from tests.processes import ServerProcess
from tests.service import PUSH, TOOLS, component
from tests.waiting import until

pytestmark = pytest.mark.system

ROOT = Path(__file__).parent.parent.parent
# Which have something about each entity.
SOURCES = {
    "app": ["github", "snyk", "pagerduty", "datadog"],
    "lab": ["gitlab"],
    "tea": ["gitea"],
}
ANNOTATIONS = {
    "app": {
        "github.com/project-slug": github.APP,
        "pagerduty.com/service-id": pagerduty.APP,
        "datadoghq.com/service-name": "app",
    },
    "lab": {"gitlab.com/project-slug": gitlab.APP},
    "tea": {f"{gitea.HOST}/project-slug": gitea.APP},
}
SECRETS = [github.TOKEN, gitlab.TOKEN, gitea.TOKEN, snyk.KEY, pagerduty.KEY, *datadog.KEYS.values()]


class Server(ServerProcess):
    """A service whose time is that of the fakes."""

    def program(self) -> list[str | Path]:
        """What is started: a port is put behind it."""
        return [sys.executable, "-m", "tests.system.noon"]


def fakes() -> dict[str, tuple[ASGIApp, dict[str, str]]]:
    """Every vendor with something in each leaf, and the options beside its address."""
    return {
        "GITHUB": (github.started(github.full())[0], {"TOKEN": github.TOKEN}),
        "GITLAB": (gitlab.started(gitlab.full())[0], {"TOKEN": gitlab.TOKEN}),
        "GITEA": (gitea.started(gitea.full())[0], {"TOKEN": gitea.TOKEN, "HOST": gitea.HOST}),
        "SNYK": (snyk.started()[0], {"TOKEN": snyk.KEY, "ORGANIZATIONS": snyk.ACME}),
        "PAGERDUTY": (pagerduty.started()[0], {"API_KEY": pagerduty.KEY}),
        "DATADOG": (
            datadog.started()[0],
            {name.upper(): key for name, key in datadog.KEYS.items()},
        ),
    }


# What the address of each is called, and what its own addresses end with.
ADDRESSES = {
    "GITHUB": ("API_URL", ""),
    "GITLAB": ("API_URL", "/api/v4"),
    "GITEA": ("API_URL", "/api/v1"),
    "SNYK": ("BASE_URL", "/rest"),
    "PAGERDUTY": ("BASE_URL", ""),
    "DATADOG": ("BASE_URL", ""),
}


@contextmanager
def collecting(database_url: str, folder: Path) -> Iterator[Server]:
    """A service that collects from all of them."""
    environment = {"PYTHONPATH": str(ROOT), "FACTBOOK_OUTGOING_NETWORKS": "127.0.0.0/8"}
    with ExitStack() as stack:
        for vendor, (fake, options) in fakes().items():
            name, end = ADDRESSES[vendor]
            options[name] = stack.enter_context(served(fake)) + end
            for option, value in options.items():
                environment[f"FACTBOOK_INTEGRATIONS__{vendor}__DEFAULT__{option}"] = value
        server = Server(database_url, folder, **environment)
        server.start()
        try:
            yield server
        finally:
            server.stop()


def asked(client: httpx2.Client, tool: str, **arguments: Any) -> Any:
    """The result of a tool call."""
    call = {"name": tool, "arguments": arguments}
    body = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": call}
    answer = client.post(TOOLS, json=body)
    assert answer.status_code == 200, answer.text
    result = answer.json()["result"]
    text = result["content"][0]["text"]
    return text if result.get("isError") else json.loads(text)


def told(client: httpx2.Client, shape: str, name: str) -> tuple[dict[str, Any], dict[str, str]]:
    """Every leaf of a shape's result by its path, and the reasons."""
    result = asked(client, SHAPES[shape], name=name)
    reasons = result.pop("unknownReasons")
    result.pop("collectedAt")
    return dict(leaves(result)), reasons


def of(shape: str, *everything: Mapping[str, Any]) -> dict[str, Any]:
    """The leaves of one shape in what vendors bring."""
    start = f"{shape}."
    return {
        name.removeprefix(start): value
        for one in everything
        for name, value in one.items()
        if name.startswith(start)
    }


def wait_for_all(server: Server, client: httpx2.Client) -> None:
    """Ask for all entities to be collected, and wait until every source has told of its own."""
    for name in ANNOTATIONS:
        ref = {"entityRef": f"component:default/{name}"}
        assert client.post("/api/catalog/refresh", json=ref).status_code == 200
    waiting = {(source, name) for name, sources in SOURCES.items() for source in sources}

    def have_told() -> bool:
        for source, name in list(waiting):
            if asked(client, "get-entity-facts", dataSourceId=source, name=name)["facts"]:
                waiting.remove((source, name))
        return not waiting

    until(have_told, told=lambda: (waiting, server.log.read_text()), pause=0.2)


def test_every_leaf_comes_from_the_vendor_that_the_entity_points_to(
    database_url: str, tmp_path: Path
) -> None:
    with (
        collecting(database_url, tmp_path) as server,
        server.client(server.token()) as client,
    ):
        entities = []
        for name, annotations in ANNOTATIONS.items():
            entity = component(name)
            entity["metadata"]["annotations"] = annotations
            entities.append(entity)
        assert client.put(f"{PUSH}/sets/all", json={"items": entities}).status_code == 200
        wait_for_all(server, client)

        assert told(client, "codehost", "app") == (of("codehost", github.EVERYTHING), {})
        assert told(client, "repository", "app") == (of("repository", github.EVERYTHING), {})
        scanner = {
            f"security.{snyk.GROUP.split('.')[1]}.{name}": value
            for name, value in snyk.EVERYTHING.items()
        }
        assert told(client, "security", "app") == (of("security", github.EVERYTHING, scanner), {})
        assert told(client, "incident", "app") == (of("incident", pagerduty.EVERYTHING), {})
        assert told(client, "observability", "app") == (of("observability", datadog.COUNTS), {})

        for name, vendor in (("lab", gitlab.EVERYTHING), ("tea", gitea.EVERYTHING)):
            leaves_, reasons = told(client, "codehost", name)
            known = {path: value for path, value in leaves_.items() if path not in reasons}
            assert known == of("codehost", vendor)
            assert told(client, "repository", name)[0] == of("repository", vendor)
            assert "no-annotation" in str(asked(client, SHAPES["observability"], name=name))

        shown = server.log.read_text() + client.get("/metrics").text
        assert not [secret for secret in SECRETS if secret in shown]
