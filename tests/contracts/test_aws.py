"""The importer of AWS reads an organization that moto holds.

moto runs in an environment of its own: it needs another version of a package than the workers do.
"""

import socket
import subprocess
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from factbook import clock
from factbook.importers import aws
from factbook.importers.aws import AwsImportOptions, AwsKeys, OrganizationsApi
from factbook.outbound.client import HttpClient
from factbook.outbound.network import Network
from factbook.settings import Settings
from tests.integrations.asking import Memory
from tests.processes import UV, clean_environment, free_port
from tests.waiting import until

pytestmark = pytest.mark.system

PACKAGE = "moto[server]==5.2.5"


@pytest.fixture(scope="module")
def moto(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of an AWS."""
    home, port = tmp_path_factory.mktemp("moto"), free_port()
    install: list[str | Path] = ["pip", "install", "--python", home / "bin" / "python", PACKAGE]
    for arguments in (["venv", home], install):
        subprocess.run([UV, "--quiet", *arguments], env=clean_environment(), cwd=home, check=True)
    program: list[str | Path] = [
        home / "bin" / "moto_server",
        "--host",
        "127.0.0.1",
        "--port",
        str(port),
    ]
    with (home / "log").open("wb") as log:
        server = subprocess.Popen(program, env=clean_environment(), stdout=log, stderr=log)
    try:
        until(lambda: _listens(port))
        yield f"http://127.0.0.1:{port}"
    finally:
        server.kill()
        server.wait()


def _listens(port: int) -> bool:
    try:
        socket.create_connection(("127.0.0.1", port)).close()
    except OSError:
        return False
    return True


@pytest.fixture
async def api(moto: str) -> AsyncIterator[OrganizationsApi]:
    network = Network(Settings(outgoing_networks=["127.0.0.0/8"]))
    client = HttpClient(moto, network.sender(moto))
    yield OrganizationsApi(client, AwsKeys("AKID", "a secret"), "us-east-1", clock.now)
    await client.aclose()


async def made(api: OrganizationsApi, action: str, **arguments: object) -> dict[str, str]:
    """What was made, in the only field of the answer."""
    answer = await api.call(action, arguments)
    assert isinstance(answer, dict), answer
    [found] = answer.values()
    assert isinstance(found, dict)
    return found


async def test_every_account_is_read_with_its_owner_and_state(api: OrganizationsApi) -> None:
    await made(api, "CreateOrganization", FeatureSet="ALL")
    root = (await made_list(api, "ListRoots", "Roots"))[0]["Id"]
    unit = await made(api, "CreateOrganizationalUnit", ParentId=root, Name="Payments")
    for number in range(45):
        given = {"AccountName": f"Account {number}", "Email": f"{number}@example.com"}
        tags = [{"Key": "owner", "Value": "core"}]
        await made(api, "CreateAccount", **given, Tags=tags)
    options = AwsImportOptions(units=True)
    snapshot = await aws.read_aws(api, options, Memory(), lambda text: None)
    accounts, units = snapshot.parts
    assert (accounts.complete, units.complete, accounts.problems) == (True, True, ())
    entities = {item.entity["metadata"]["name"]: item.entity for item in accounts.items}
    assert len(entities) == 46  # with that of the organization itself
    entity = entities["Account 7"]
    assert entity["spec"] == {"type": "cloud-account", "owner": "group:default/core"}
    assert entity["metadata"]["labels"] == {"amazonaws.com/state": "ACTIVE"}
    [system] = units.items
    assert system.external_id.endswith(unit["Id"])


async def made_list(api: OrganizationsApi, action: str, member: str) -> list[dict[str, str]]:
    answer = await api.call(action, {})
    assert isinstance(answer, dict), answer
    found: list[dict[str, str]] = answer[member]
    return found
