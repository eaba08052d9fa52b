"""Repositories of a Git host, collected by the real processes."""

import threading
from pathlib import Path

import pytest

from tests.fakes.git import FakeGit, hosted, stuck
from tests.integrations.git.asking import APP, EVERYTHING, HOST, TOKEN, full, processes
from tests.processes import serving
from tests.service import PUSH, TOOLS, call, component

pytestmark = [pytest.mark.system]


def test_a_server_that_is_stopped_leaves_nothing_of_git_and_a_command_goes_on(
    tmp_path: Path,
) -> None:
    fake = FakeGit(tmp_path / "repositories", token=TOKEN)
    full(fake)
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    database = f"sqlite:///{tmp_path / 'factbook.db'}"
    entity = component("app")
    location = {"backstage.io/source-location": f"url:https://{HOST}/{APP}/-/tree/main"}
    entity["metadata"]["annotations"] = location
    with hosted(fake) as port:
        base_url = f"http://127.0.0.1:{port}"
        environment = {
            "FACTBOOK_INTEGRATIONS__GIT__DEFAULT__HOST": HOST,
            "FACTBOOK_INTEGRATIONS__GIT__DEFAULT__BASE_URL": base_url,
            "FACTBOOK_INTEGRATIONS__GIT__DEFAULT__TOKEN": TOKEN,
            "FACTBOOK_OUTGOING_NETWORKS": "127.0.0.0/8",
            "TMPDIR": str(temporary),
        }
        with serving(database, tmp_path, **environment, FACTBOOK_COLLECT="false") as server:
            with server.client(server.token()) as client:
                pushed = client.put(f"{PUSH}/sets/all", json={"items": [entity]})
                assert pushed.status_code == 200
            server.stop()

        reached = threading.Event()
        fake.fail("fetch", stuck(reached), times=100)
        with serving(database, tmp_path, **environment) as server:
            assert reached.wait(30)
            assert processes(base_url)
            server.stop()
        assert processes(base_url) == {}
        assert list(temporary.glob("factbook-git-*")) == []

        fake.recover()
        with serving(database, tmp_path, **environment, FACTBOOK_COLLECT="false") as server:
            assert '"covered": 1' in server.command("collect", "git", "--json")
            with server.client(server.token()) as client:
                message = call("get-repository-info", {"name": "app"})
                result = client.post(TOOLS, json=message).json()["result"]["structuredContent"]
            assert result["filePaths"] == EVERYTHING["repository.filePaths"]
            assert result["totalFiles"] == EVERYTHING["repository.totalFiles"]
            assert '"git"' in server.command("sources", "--json")
        logs = "".join(path.read_text() for path in tmp_path.glob("serve-*.log"))
        assert TOKEN not in logs
        assert list(temporary.glob("factbook-git-*")) == []
