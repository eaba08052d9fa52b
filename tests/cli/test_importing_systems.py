"""`factbook import` of directories, clouds and clusters, and the push of what is in a cluster."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.cli.bridge import Run
from tests.cli.conftest import Command
from tests.fakes.aws.app import KEY_ID, Account, FakeAws
from tests.fakes.faults import saying
from tests.fakes.kubernetes.app import TOKEN, FakeKubernetes
from tests.fakes.kubernetes.objects import DEPLOYMENTS, STATEFUL_SETS
from tests.fakes.serving import served as serving
from tests.importers.directories import LdifFile, group, person
from tests.service import Service

FORBIDDEN = saying({"kind": "Status", "code": 403}, 403)


@pytest.fixture
def database(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setenv("FACTBOOK_OUTGOING_NETWORKS", "127.0.0.0/8")
    for name in ("AWS_ACCESS_KEY_ID", "AWS_WEB_IDENTITY_TOKEN_FILE", "KUBERNETES_SERVICE_HOST"):
        monkeypatch.delenv(name, raising=False)
    return f"--database-url=sqlite:///{tmp_path}/own.db"


def actions(factbook: Command, database: str) -> list[str]:
    """What the audit has."""
    lines = factbook("audit", "export", database).stdout.splitlines()
    return [json.loads(line)["action"] for line in lines]


def changes(stdout: str) -> dict[str, dict[str, int]]:
    """The changes of each part of a report."""
    return {part["part"]: part["changes"] for part in json.loads(stdout)["parts"]}


def test_a_file_is_planned_and_imported_and_what_was_cut_off_removes_nothing(
    factbook: Command, database: str, tmp_path: Path
) -> None:
    file = LdifFile(tmp_path, person("alice", 1), person("bob", 2), group("core", "alice"))
    arguments = ["import", "ldif", file.path.name, database, "--json"]
    planned = factbook(*arguments, "--plan")
    assert changes(planned.stdout)["ldif/people"]["added"] == 2
    assert actions(factbook, database) == []
    assert factbook(*arguments).exit_code == 0
    assert actions(factbook, database) == ["import.write", "import.write"]
    file.path.write_text(person("alice", 1)[:-9])
    answer = factbook(*arguments)
    assert (answer.exit_code, "cut off" in answer.stdout) == (1, True)
    assert changes(answer.stdout)["ldif/people"]["removed"] == 0


@pytest.mark.slow
def test_accounts_are_imported_with_the_table_of_the_settings(
    factbook: Command, database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    fake = FakeAws(*(Account(f"account {n}", n, tags={"owner": "core"}) for n in range(30)))
    with serving(fake) as url:
        table = {"ACCESS_KEY_ID": KEY_ID, "SECRET_ACCESS_KEY": "s", "URL": url, "STS_URL": url}
        for key, value in table.items():
            monkeypatch.setenv(f"FACTBOOK_IMPORTERS__AWS__DEFAULT__{key}", value)
        answer = factbook("import", "run", "aws", database, "--json")
    assert answer.exit_code == 0, answer.stderr
    [report] = json.loads(answer.stdout)
    assert (report["parts"][0]["part"], report["parts"][0]["entities"]) == ("aws/accounts", 30)
    assert actions(factbook, database) == ["import.write"]


def test_without_a_credential_of_aws_nothing_is_asked(factbook: Command, database: str) -> None:
    answer = factbook("import", "aws", "--units", database)
    assert answer.exit_code == 1
    assert "there is no credential" in answer.stderr


class PushedCluster:
    """A cluster on loopback, and the command that pushes it to a service."""

    def __init__(self, run: Run, folder: Path) -> None:
        self.run = run
        self.fake = FakeKubernetes()
        self.file = folder / "token"
        self.file.write_text(TOKEN)
        for number in range(30):
            self.fake.add(DEPLOYMENTS, f"web-{number}", "payments")

    async def push(self, *arguments: str, code: int = 0) -> dict[str, Any]:
        """The first set of the report."""
        with serving(self.fake) as url:
            answer = await self.run(
                *["import", "kubernetes", "--cluster=eu-1", "--namespace=*", "--json"],
                *[f"--url={url}", f"--token-file={self.file}", "--push=http://127.0.0.1:8000"],
                *arguments,
            )
        assert answer.exit_code == code, answer.output
        found: dict[str, Any] = json.loads(answer.stdout)["sets"][0]
        return found


@pytest.fixture
def cluster(served: Run, tmp_path: Path, database: str) -> PushedCluster:
    return PushedCluster(served, tmp_path)


async def test_a_cluster_is_pushed_as_sets(cluster: PushedCluster, service: Service) -> None:
    planned = await cluster.push("--plan")
    assert planned["changes"]["added"] == 30
    assert await service.catalog("component:payments/web-7") is None
    found = await cluster.push()
    assert (found["set"], found["state"]) == ("kubernetes.eu-1.workloads", "complete")
    entity = await service.catalog("component:payments/web-7")
    assert entity is not None
    assert entity["spec"]["dependsOn"] == ["resource:default/eu-1"]
    assert await service.catalog("resource:default/eu-1") is not None


async def test_what_cannot_be_listed_is_not_removed_by_a_push(
    cluster: PushedCluster, service: Service
) -> None:
    await cluster.push()
    cluster.fake.objects[DEPLOYMENTS].clear()
    cluster.fake.fail(STATEFUL_SETS, FORBIDDEN)
    found = await cluster.push(code=1)
    assert (found["state"], found["changes"]["removed"]) == ("partial", 0)
    assert "statefulsets.apps" in found["problems"][0]["message"]
    assert await service.catalog("component:payments/web-7") is not None


async def test_a_pushed_workload_keeps_its_name_beside_a_namesake(
    cluster: PushedCluster, service: Service
) -> None:
    cluster.fake.add(STATEFUL_SETS, "shop", "web")
    await cluster.push()
    before = await service.catalog("component:web/shop")
    cluster.fake.add(DEPLOYMENTS, "shop", "web")
    found = await cluster.push()
    assert (found["changes"]["added"], found["problems"]) == (1, [])
    assert before is not None
    assert await service.catalog("component:web/shop") == before
    assert await service.catalog("component:web/shop-deployment") is not None


@pytest.mark.slow
async def test_held_removals_of_a_push_wait_for_an_option(
    cluster: PushedCluster, service: Service
) -> None:
    await cluster.push()
    cluster.fake.objects[DEPLOYMENTS].clear()
    found = await cluster.push(code=1)
    assert (found["state"], len(found["held"])) == ("held", 30)
    assert await service.catalog("component:payments/web-7") is not None
    found = await cluster.push("--remove")
    assert (found["state"], found["changes"]["removed"]) == ("complete", 30)
    assert await service.catalog("component:payments/web-7") is None


async def test_a_report_of_a_push_is_printed_with_what_is_kept(
    cluster: PushedCluster, database: str
) -> None:
    await cluster.push()
    cluster.fake.objects[DEPLOYMENTS].clear()
    with serving(cluster.fake) as url:
        answer = await cluster.run(
            *["import", "kubernetes", "--cluster=eu-1", "--namespace=*", f"--url={url}"],
            *[f"--token-file={cluster.file}", "--push=http://127.0.0.1:8000", "--plan"],
        )
    assert answer.exit_code == 1
    assert "sees less than before: apps/v1/deployments" in answer.stderr
    assert "7 calls (plan: nothing was written)" in answer.stdout


def test_a_cluster_is_imported_without_a_server_too(
    factbook: Command, database: str, tmp_path: Path
) -> None:
    fake, file = FakeKubernetes(), tmp_path / "token"
    file.write_text(TOKEN)
    fake.add(DEPLOYMENTS, "web", "payments", {"backstage.io/kubernetes-id": "web"})
    with serving(fake) as url:
        options = [f"--url={url}", f"--token-file={file}", database, "--json"]
        answer = factbook("import", "kubernetes", "--cluster=eu-1", *options)
    assert answer.exit_code == 0, answer.stderr
    assert changes(answer.stdout)["kubernetes/eu-1.workloads"]["added"] == 1
    assert actions(factbook, database) == ["import.write", "import.write"]
