"""The importer of Kubernetes calls what is published, and the fake answers as is published.

The published interface is the OpenAPI document of Kubernetes, as the package `kubernetes` from PyPI
is generated from it. It runs in an environment of its own: it brings many other packages.
"""

import json
import subprocess
from pathlib import Path
from typing import Any

import msgspec
import pytest
from starlette.requests import Request
from starlette.responses import Response

from factbook.importers.kubernetes import make_resource_path
from tests.fakes.kubernetes.app import TOKEN, FakeKubernetes
from tests.fakes.kubernetes.objects import DAEMON_SETS, DEPLOYMENTS, NAMESPACES, STATEFUL_SETS
from tests.fakes.serving import served
from tests.importers.clusters import ImportedCluster
from tests.processes import UV, clean_environment

pytestmark = pytest.mark.system

PACKAGE = "kubernetes==37.0.2"
PROGRAM = Path(__file__).with_name("kubernetes_client.py")
ROLLOUTS = "argoproj.io/v1alpha1/rollouts"

Exchange = dict[str, Any]


class RecordedKubernetes(FakeKubernetes):
    """The fake, with a record of what it was asked and said in JSON."""

    def __init__(self) -> None:
        super().__init__()
        self.exchanges: list[Exchange] = []

    async def answer(self, request: Request) -> Response:
        """What the API server says."""
        response = await super().answer(request)
        self.exchanges.append(
            {
                "method": request.method,
                "path": request.url.path,
                "query": dict(request.query_params),
                "status": response.status_code,
                "body": msgspec.json.decode(response.body),
            }
        )
        return response


class GeneratedClient:
    """The client of the package, in an environment that has it."""

    def __init__(self, python: Path) -> None:
        self._python = python

    def ask(self, fake: FakeKubernetes, exchanges: list[Exchange]) -> dict[str, Any]:
        """Lists of a fake by path, and what is not published of exchanges."""
        with served(fake) as url:
            done = subprocess.run(
                [self._python, PROGRAM, url, TOKEN],
                input=json.dumps(exchanges),
                env=clean_environment(),
                capture_output=True,
                text=True,
                timeout=100,
                check=False,
            )
        assert done.returncode == 0, done.stderr
        found: dict[str, Any] = json.loads(done.stdout)
        return found


@pytest.fixture(scope="module")
def generated(tmp_path_factory: pytest.TempPathFactory) -> GeneratedClient:
    """The generated client."""
    home = tmp_path_factory.mktemp("environment")
    python = home / "bin" / "python"
    install: list[str | Path] = ["pip", "install", "--python", python, PACKAGE]
    for arguments in (["venv", home], install):
        subprocess.run([UV, "--quiet", *arguments], env=clean_environment(), cwd=home, check=True)
    return GeneratedClient(python)


@pytest.fixture
def fake() -> RecordedKubernetes:
    """A cluster with two pages of deployments."""
    fake = RecordedKubernetes()
    fake.add(NAMESPACES, "payments", annotations={"backstage.io/owner": "core"})
    for number in range(600):
        fake.add(DEPLOYMENTS, f"web-{number}", "payments", {"app": "web"}, {"note": "é"})
    for number in range(15):
        fake.add(STATEFUL_SETS, f"db-{number}", "stock")
    fake.add(DAEMON_SETS, "logs", "kube-system")
    return fake


async def read(fake: FakeKubernetes, **options: Any) -> ImportedCluster:
    """An importer that has read the fake once."""
    cluster = ImportedCluster(**options)
    cluster.fake = fake
    await cluster.read()
    return cluster


async def test_every_call_of_the_importer_and_every_answer_of_the_fake_is_published(
    generated: GeneratedClient, fake: RecordedKubernetes
) -> None:
    await read(fake)
    fake.objects[make_resource_path(ROLLOUTS)] = []
    fake.add(make_resource_path(ROLLOUTS), "till", "payments")
    await read(fake, resources=(ROLLOUTS, "apps/v1/deployments"))
    await read(fake, token="another")
    fake.forbidden = {STATEFUL_SETS}
    await read(fake)
    fake.forbidden, fake.shown = set(), {"payments"}
    await read(fake)
    await _forgetting(fake)
    exchanges = list(fake.exchanges)
    assert {one["status"] for one in exchanges} == {200, 201, 401, 403, 410}
    assert {key for one in exchanges for key in one["query"]} == {"limit", "continue"}
    assert not any(generated.ask(fake, exchanges)["problems"])


async def _forgetting(fake: RecordedKubernetes) -> None:
    """A reading of a list that is forgotten while it is read."""

    async def fault(request: Request, answer: Any) -> Response:
        response: Response = await answer(request)
        fake.forget()
        return response

    fake.fail(DEPLOYMENTS, fault)
    await read(fake)


async def test_the_generated_client_and_the_importer_list_the_same(
    generated: GeneratedClient, fake: RecordedKubernetes
) -> None:
    snapshot = await (await read(fake)).read()
    found = {
        (one["resource"], one["metadata"].uid): one["metadata"]
        for item in snapshot.parts[0].items
        for one in item.raw["workloads"]
    }
    fake.exchanges.clear()
    told = generated.ask(fake, [])
    assert max(len(one["body"]["items"]) for one in fake.exchanges) == 7
    lists = told["lists"]
    assert len(lists.pop(NAMESPACES)) == 3
    expected = {
        (path.removeprefix("/apis/"), one["uid"]): one
        for path, several in lists.items()
        for one in several
    }
    assert found.keys() == expected.keys()
    assert len(found) == 616
    for key, metadata in found.items():
        # The client leaves out a time that isn't set.
        assert msgspec.to_builtins(metadata) == {"deletionTimestamp": None} | expected[key]
    assert not any(generated.ask(fake, list(fake.exchanges))["problems"])


def test_what_is_not_published_is_found(generated: GeneratedClient) -> None:
    partial = {"kind": "PartialObjectMetadata", "apiVersion": "meta.k8s.io/v1"}

    def page(**more: Any) -> Exchange:
        list_ = {"kind": "PartialObjectMetadataList", "apiVersion": "meta.k8s.io/v1"}
        return {"body": list_ | {"metadata": {}, "items": [partial | {"metadata": {}}]} | more}

    good = {"method": "GET", "path": DEPLOYMENTS, "query": {"limit": "1"}, "status": 200, **page()}
    wrong: list[Exchange] = [
        {"path": "/apis/apps/v1/deploymentz"},
        {"method": "PUT"},
        {"query": {"limits": "1"}},
        page(items=[partial | {"metadata": {"uuid": "a"}}]),
        page(items=[partial | {"metadata": {"uid": 7}}]),
        page(items=[{"metadata": {}, "kind": "Deployment", "apiVersion": "v1"}]),
        page(metadata={"next": "a"}),
        page(total=1),
        {"body": {"kind": "DeploymentList", "items": [{"metadata": {}, "spec": {}}]}},
        {"status": 403, "body": {"kind": "Status", "error": "no", "code": 403}},
        {"status": 403, "body": {"kind": "Status", "code": 404}},
    ]
    exchanges = [good | one for one in wrong]
    found = generated.ask(FakeKubernetes(), [good, *exchanges])["problems"]
    assert found[0] == []
    assert [one for one, problems in zip(wrong, found[1:], strict=True) if not problems] == []
