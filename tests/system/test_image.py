"""The image of the Dockerfile: built, started without a writable file system, pushed to and asked.

Every `factbook` of these tests runs in a container.
"""

import json
import logging
import re
import subprocess
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import httpx2
import pytest
import yaml
from cyclonedx.schema import SchemaVersion
from cyclonedx.validation.json import JsonStrictValidator
from packaging.requirements import Requirement

from scripts import sbom
from tests import processes
from tests.fakes.github.app import FakeGitHub
from tests.fakes.github.state import Issue, Repository, Token
from tests.fakes.serving import served
from tests.importers.organization import repository
from tests.integrations.github.asking import TOKEN
from tests.processes import ServerProcess
from tests.service import PUSH, component
from tests.system.composition import Composition
from tests.system.containers import ROOT, USER, Image
from tests.system.load import SETS, Load, Pusher
from tests.system.postgresql_server import Cluster
from tests.system.systemd_machine import SystemdMachine
from tests.system.test_collecting_server import asked
from tests.system.test_random_kills import check_log, check_set, wait_for_pushes
from tests.waiting import until

pytestmark = [pytest.mark.system, pytest.mark.timeout(2500)]

log = logging.getLogger(__name__)

# Debian with Python, Git and the service take 368 MB; another framework in it would be noticed.
MOST_BYTES = 395_000_000
ENTITIES = "/api/catalog/entities"
NAMES = [f"r{n}" for n in range(60)]
ENDS = 2  # of both pods
DYNAMIC_USERS = range(61184, 65520)  # of systemd
WORKER_LOG = "worker.log"


@pytest.fixture(scope="module")
def image() -> Iterator[Image]:
    """The image, which takes two minutes to build."""
    with Image.built() as built:
        yield built


@pytest.fixture
def folder(image: Image, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of a test, every `factbook` of which runs in a container."""
    monkeypatch.setattr(processes, "FACTBOOK", image.program(tmp_path))
    return tmp_path


@pytest.mark.spec("deploy.image-is-restrained")
def test_it_runs_as_a_user_of_its_own_who_can_write_nothing(image: Image) -> None:
    told = image.shell(
        "id -u; for place in / /opt/factbook /tmp /data /home; do touch $place/x 2>/dev/null "
        "&& echo wrote $place; done; true"
    )
    assert told.split() == [str(USER)]
    found = image.configuration()
    assert found["User"] == "factbook"
    assert found["Cmd"][:2] == ["factbook", "serve"]
    assert [*found["Volumes"]] == ["/data"]


@pytest.mark.spec("deploy.image-is-restrained")
def test_it_has_what_the_service_needs_and_nothing_to_install_or_compile_with(
    image: Image,
) -> None:
    with image.mounted() as files:
        programs = {one.name for one in files.glob("opt/factbook/bin/*")}
        packages = {one.name for one in sbom.python_packages(files)}
    assert {"factbook", "python"} <= programs
    assert not {"pip", "pip3", "uv"} & programs
    assert packages == {"factbook", *locked("workers")}
    assert image.shell("command -v gcc make cc || echo none").split() == ["none"]
    size = image.configuration()["Size"]
    # Shown with --log-cli-level=INFO.
    log.info("the image has %d MB and %d packages of Python", size // 1_000_000, len(packages))
    assert size < MOST_BYTES


@pytest.mark.spec("deploy.image-lists-its-packages")
def test_its_bill_of_materials_names_every_package_and_is_valid(image: Image) -> None:
    with image.mounted() as files:
        bill = sbom.bill(files)
    assert JsonStrictValidator(SchemaVersion.V1_6).validate_str(bill) is None
    read = json.loads(bill)
    names = {one["purl"].partition("@")[0] for one in read["components"]}
    assert {f"pkg:pypi/{name}" for name in locked("workers")} <= names
    assert {"pkg:deb/debian/git", "pkg:deb/debian/libc6"} <= names
    assert read["metadata"]["component"]["name"] == "factbook"


def test_a_server_with_a_volume_is_pushed_to_asked_and_backed_up(folder: Path) -> None:
    with processes.serving(f"sqlite:///{folder}/factbook.db", folder) as server:
        with server.client(server.token()) as client:
            pushed = client.put(f"{PUSH}/sets/all", json={"items": [component("shop")]})
            assert pushed.status_code == 200, pushed.text
            found = asked(client, "get-entity-facts", dataSourceId="entity-metadata", name="shop")
            assert found["facts"]["hasOwner"] is not None, found
        copy = folder / "backups"
        copy.mkdir(mode=0o777)
        copy.chmod(0o777)
        assert server.command("backup", str(copy)).strip().startswith(str(copy))
        assert server.stop() == 0
    [made] = copy.glob("*.db")
    assert made.stat().st_uid == USER


def test_migration_and_import_run_from_it_on_postgresql(folder: Path) -> None:
    fake = FakeGitHub([repository(f"r{n}", n + 1) for n in range(3)], [Token(TOKEN)])
    with Cluster.running() as cluster, served(fake) as url:
        server = of_organization(cluster, folder, url, FACTBOOK_COLLECT="false")
        server.command("migrate")
        server.start()
        try:
            server.command("import", "github", "--org", "acme")
            with server.client(server.token()) as client:
                names = {one["metadata"]["name"] for one in client.get(ENTITIES).json()}
            assert {f"r{n}" for n in range(3)} <= names
        finally:
            assert server.stop() == 0


@pytest.mark.spec("deploy.pods-end-in-order")
def test_pods_that_are_ended_while_they_are_pushed_to_and_collect_lose_nothing(
    folder: Path,
) -> None:
    fake = FakeGitHub(map(with_an_issue, NAMES), [Token(TOKEN)], seconds=1)
    fake.most_repositories = 5
    pushers = [Pusher(set_id) for set_id in SETS]
    ids: dict[str, str] = {}
    with Cluster.running() as cluster, served(fake) as url:
        server = of_organization(cluster, folder, url, FACTBOOK_COLLECT="false").start()
        token = server.token()
        with server.client(token) as client:
            body = {"items": [annotated(name) for name in NAMES]}
            assert client.put(f"{PUSH}/sets/repositories", json=body).status_code == 200
        for _ in range(ENDS):
            asked_before, load = fake.requests["graphql"], Load()
            load.begin(server, token, [one.step for one in pushers])
            worker = begun_worker(server)
            wait_for_pushes(pushers, 3)
            until(partial(has_asked, fake, asked_before), told=server.log.read_text)
            worker.terminate()
            assert server.stop(within=grace("server")) == 0
            assert worker.wait(grace("worker")) == 0
            load.end()
            assert load.wrong == []
            server.start()
        worker = begun_worker(server)
        with server.client(token) as client:
            for name in NAMES:
                until(partial(is_known, client, name), pause=0.5)
            for one in pushers:
                check_set(client, one, ids)
        worker.terminate()
        assert server.stop(within=grace("server")) == 0
        assert worker.wait(grace("worker")) == 0
    check_log(server.log.read_text() + (folder / WORKER_LOG).read_text())


def grace(pod: str) -> float:
    """Seconds that the chart gives a pod to end."""
    values = yaml.safe_load((ROOT / "deploy/chart/factbook/values.yaml").read_text())
    return float(values[pod]["terminationGracePeriodSeconds"])


def begun_worker(server: ServerProcess) -> "subprocess.Popen[bytes]":
    """A `factbook worker` of the same settings."""
    with (server.folder / WORKER_LOG).open("ab") as log:
        return subprocess.Popen(
            [processes.FACTBOOK, "worker"], env=server.environment, stdout=log, stderr=log
        )


@pytest.mark.spec("deploy.files-are-started")
def test_the_compose_file_of_sqlite_serves_and_makes_backups(image: Image, tmp_path: Path) -> None:
    with Composition.started(image, "compose.sqlite.yml", tmp_path) as composition:
        composition.wait_until_healthy("server")
        check_answers(composition)
        composition.factbook("backup", "/backups", "--keep", "14")
        [made] = (composition.folder / "backups").glob("*.db")
        assert made.stat().st_uid == USER


@pytest.mark.spec("deploy.files-are-started")
def test_the_compose_file_of_postgresql_runs_a_server_and_a_worker(
    image: Image, tmp_path: Path
) -> None:
    with Composition.started(image, "compose.yml", tmp_path) as composition:
        composition.wait_until_healthy("database")
        composition.wait_until_healthy("server")
        check_answers(composition)
        told = composition.factbook("doctor", "--quick", service="worker")
        assert "postgresql" in told.lower()


@pytest.mark.spec("deploy.files-are-started")
def test_the_units_of_systemd_run_confined_make_backups_and_end_in_order(image: Image) -> None:
    with SystemdMachine.booted(image) as machine:
        machine.wait_until_ready()
        token = machine.factbook("token", "create", "test", "--preset", "pipeline")
        entity = json.dumps(component("shop"))
        machine.run("sh", "-c", f"echo '{entity}' > /root/shop.json")
        machine.factbook("push", "all", "/root/shop.json", token=token)
        assert "shop" in machine.factbook("entities", token=token)

        machine.run("systemctl", "start", "factbook-backup", "factbook-worker")
        assert machine.run("ls", "/var/lib/factbook-backups").endswith(".db")
        assert all(map(machine.is_active, ("factbook", "factbook-worker", "factbook-backup.timer")))
        for unit in ("factbook", "factbook-worker"):
            found = machine.confinement(unit)
            assert int(found["Uid"].split()[0]) in DYNAMIC_USERS
            assert (found["CapEff"], found["NoNewPrivs"], found["Seccomp"]) == ("0" * 16, "1", "2")

        machine.run("systemctl", "stop", "factbook", "factbook-worker")
        results = machine.run("systemctl", "show", "-P", "Result", "factbook", "factbook-worker")
        assert results.split() == ["success", "success"]
        assert machine.run("systemctl", "--failed", "--no-legend") == ""


def check_answers(composition: Composition) -> None:
    """What is pushed to the server can be read."""
    token = composition.factbook("token", "create", "test", "--preset", "pipeline").strip()
    headers = {"authorization": f"Bearer {token}"}
    with httpx2.Client(base_url=composition.url, headers=headers, timeout=60) as client:
        pushed = client.put(f"{PUSH}/sets/all", json={"items": [component("shop")]})
        assert pushed.status_code == 200, pushed.text
        assert [one["metadata"]["name"] for one in client.get(ENTITIES).json()] == ["shop"]


def of_organization(cluster: Cluster, folder: Path, url: str, **more: str) -> ServerProcess:
    """A server that knows a GitHub."""
    return ServerProcess(
        cluster.url(),
        folder,
        FACTBOOK_OUTGOING_NETWORKS="127.0.0.0/8",
        FACTBOOK_INTEGRATIONS__GITHUB__DEFAULT__API_URL=url,
        FACTBOOK_INTEGRATIONS__GITHUB__DEFAULT__TOKEN=TOKEN,
        **more,
    )


def with_an_issue(name: str) -> Repository:
    return Repository(f"acme/{name}", number=NAMES.index(name) + 1, issues=[Issue(1)])


def annotated(name: str) -> dict[str, Any]:
    """A component of a repository."""
    entity = component(name)
    entity["metadata"]["annotations"] = {"github.com/project-slug": f"acme/{name}"}
    return entity


def has_asked(fake: FakeGitHub, before: int) -> bool:
    return fake.requests["graphql"] > before


def is_known(client: httpx2.Client, name: str) -> bool:
    found = asked(client, "get-codehost-metrics", name=name)
    return bool(found["issues"]["open"] == 1)


def locked(name: str) -> set[str]:
    """The packages of a lock that this Python installs."""
    lines = (ROOT / f"requirements/{name}.lock").read_text().splitlines()
    found = (Requirement(line.rstrip(" \\")) for line in lines if re.match(r"[a-z]", line))
    return {one.name for one in found if one.marker is None or one.marker.evaluate()}
