"""A conformance tester of SCIM 2.0, scim2-tester, finds the service to be one."""

import json
import subprocess
from pathlib import Path

import pytest

from tests.processes import UV, clean_environment, serving

pytestmark = [
    pytest.mark.system,
    pytest.mark.parametrize("database_url", ["sqlite", "postgresql"], indirect=True),
]

PACKAGES = ("scim2-tester==0.5.2", "scim2-client[httpx2]==0.13.2", "scim2-models==0.12.3")
PROGRAM = Path(__file__).with_name("scim_tester.py")
# The search over all types of resources in one call, which the service answers with 501.
NOT_OFFERED = {("search_with_attributes", "User"), ("search_with_attributes", "Group")}


@pytest.fixture(scope="module")
def tester(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A Python that has the packages."""
    home = tmp_path_factory.mktemp("environment")
    python = home / "bin" / "python"
    environment = clean_environment()
    install: list[str | Path] = ["pip", "install", "--python", python, *PACKAGES]
    for arguments in (["venv", home], install):
        subprocess.run([UV, "--quiet", *arguments], env=environment, cwd=home, check=True)
    return python


def test_every_check_of_the_tester_succeeds(
    tester: Path, database_url: str, tmp_path: Path
) -> None:
    with serving(database_url, tmp_path, FACTBOOK_TOKEN_RATE="10000") as server:
        token = server.token("--permission", "scim.write")
        done = subprocess.run(
            [tester, PROGRAM, server.url, token],
            env=clean_environment(),
            capture_output=True,
            text=True,
            timeout=100,
            check=False,
        )
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    others = [one for one in found if one["status"] != "SUCCESS"]
    assert {(one["check"], one["resource"]) for one in others} == NOT_OFFERED, others
    assert {one["status"] for one in others} == {"SKIPPED"}
    assert len(found) > 60
