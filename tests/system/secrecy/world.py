"""A service on loopback that holds secrets of every kind, and hosts that repeat all of them."""

import json
import os
import subprocess
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlsplit, urlunsplit

from tests.fakes.serving import served
from tests.processes import FACTBOOK, ServerProcess
from tests.service import component
from tests.system.secrecy.echo import Echo, EchoProvider
from tests.system.secrecy.leaks import Vault
from tests.system.secrecy.processes import Processes, watched
from tests.webhooks.receiver import Receiver, receiving

_VENDORS = {
    # Vendor: the option with its address, what the address ends with, secrets, other options.
    "GITHUB": ("API_URL", "", ["TOKEN"], {}),
    "GITLAB": ("API_URL", "/api/v4", ["TOKEN"], {}),
    "GITEA": ("API_URL", "/api/v1", ["TOKEN"], {"HOST": "tea.example.com"}),
    "SNYK": ("BASE_URL", "/rest", ["TOKEN"], {}),
    "PAGERDUTY": ("BASE_URL", "", ["API_KEY"], {}),
    "DATADOG": ("BASE_URL", "", ["API_KEY", "APPLICATION_KEY"], {}),
    "PROMETHEUS": ("BASE_URL", "", ["TOKEN"], {}),
    "GIT": ("BASE_URL", "", ["TOKEN"], {"HOST": "git.example.com"}),
}
_ORGANIZATION = "0d1a2b3c-0000-4000-8000-000000000000"
SOURCES = [vendor.lower() for vendor in _VENDORS]


_ANNOTATIONS = {
    "app": {
        "github.com/project-slug": "acme/app",
        "pagerduty.com/service-id": "PAPP",
        "datadoghq.com/service-name": "app",
        "snyk.io/org-id": _ORGANIZATION,
        "prometheus.io/service": "app",
    },
    "lab": {"gitlab.com/project-slug": "acme/lab"},
    "tea": {"tea.example.com/project-slug": "acme/tea"},
    "own": {"backstage.io/source-location": "url:https://git.example.com/acme/own"},
}


def entities() -> list[dict[str, Any]]:
    """Components, each about which some of the hosts are asked."""
    found = [component(name) for name in _ANNOTATIONS]
    for one in found:
        one["metadata"]["annotations"] = _ANNOTATIONS[one["metadata"]["name"]]
    return found


class World:
    """The service, its worker, and what they talk to."""

    def __init__(self, vault: Vault, server: ServerProcess, worker: Path) -> None:
        self.vault = vault
        self.server = server
        self.worker_log = worker
        self.echo = Echo()
        self.provider = EchoProvider()
        self.receiver: Receiver
        self.processes: Processes

    def command(self, *arguments: str) -> str:
        """What a command prints, however it ends; it is remembered as shown."""
        done = subprocess.run(
            [FACTBOOK, *arguments],
            env=self.server.environment,
            cwd=self.server.folder,
            capture_output=True,
            text=True,
            timeout=100,
            check=False,
        )
        self.vault.saw(f"factbook {' '.join(arguments[:2])}", done.stdout, done.stderr)
        return done.stdout


@contextmanager
def running(database_url: str, folder: Path) -> Iterator[World]:
    """A world whose service serves and whose worker collects."""
    vault = Vault()
    server = ServerProcess(_with_password(database_url, vault), folder)
    world = World(vault, server, folder / "worker.log")
    with ExitStack() as stack:
        echo = stack.enter_context(served(world.echo))
        world.provider.issuer = stack.enter_context(served(world.provider))
        world.receiver = stack.enter_context(receiving())
        server.environment |= _environment(vault, echo, world.provider.issuer, server.url)
        server.start()
        stack.callback(lambda: server.is_running and server.stop())
        worker = stack.enter_context(_working(world))
        world.processes = stack.enter_context(watched())
        world.processes.roots = {server.pid, worker.pid}
        yield world


@contextmanager
def _working(world: World) -> Iterator["subprocess.Popen[bytes]"]:
    with world.worker_log.open("wb") as log:
        worker = subprocess.Popen(
            [FACTBOOK, "worker"],
            env=world.server.environment,
            cwd=world.server.folder,
            stdout=log,
            stderr=log,
        )
    try:
        yield worker
    finally:
        worker.terminate()
        worker.wait(timeout=60)


def _environment(vault: Vault, echo: str, issuer: str, url: str) -> dict[str, str]:
    headers = {"authorization": f"Bearer {vault.new('header of a connection')}"}
    found = {
        "PYTHONPATH": os.environ.get("PYTHONPATH", ""),
        "FACTBOOK_TOKEN_KEY": vault.new("token_key", odd=True),
        "FACTBOOK_OUTGOING_NETWORKS": "127.0.0.0/8",
        "FACTBOOK_LOG_LEVEL": "debug",
        "FACTBOOK_PUBLIC_URL": url,
        "FACTBOOK_FAILED_LOGINS": "1000",
        "FACTBOOK_CONNECTIONS__CI__BASE_URL": echo,
        "FACTBOOK_CONNECTIONS__CI__HEADERS": json.dumps(headers),
        "FACTBOOK_OPENID__ISSUER": issuer,
        "FACTBOOK_OPENID__CLIENT_ID": "factbook",
        "FACTBOOK_OPENID__CLIENT_SECRET": vault.new("client_secret", odd=True),
        "FACTBOOK_INTEGRATIONS__SNYK__DEFAULT__ORGANIZATIONS": _ORGANIZATION,
    }
    for vendor, (address, end, secrets, more) in _VENDORS.items():
        given = {address: echo + end, **more}
        given |= {secret: vault.new(f"{vendor} {secret}") for secret in secrets}
        for option, value in given.items():
            found[f"FACTBOOK_INTEGRATIONS__{vendor}__DEFAULT__{option}"] = value
    return found


def _with_password(url: str, vault: Vault) -> str:
    """The same address with a password, which a server that trusts everybody does not look at."""
    if url.startswith("sqlite"):
        return url
    parts = urlsplit(url)
    user, _, host = parts.netloc.rpartition("@")
    name = user.partition(":")[0] or "postgres"
    password = quote(vault.new("password of the database", odd=True), safe="")
    return urlunsplit(parts._replace(netloc=f"{name}:{password}@{host}"))
