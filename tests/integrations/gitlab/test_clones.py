"""Trees of more pages than are read: read from a clone."""

from pathlib import Path

import pytest

from factbook.clock import DAY
from tests.fakes.git import FakeGit, commit, hosted
from tests.fakes.gitlab.app import FakeGitLab
from tests.fakes.gitlab.state import Token
from tests.integrations.gitlab.asking import APP, TOKEN, Collector, full
from tests.outbound.asking import network
from tests.service import Time


@pytest.mark.slow
async def test_a_tree_of_too_many_pages_is_read_from_a_clone(tmp_path: Path) -> None:
    host = FakeGit(tmp_path, token=TOKEN, username="oauth2")
    commit(host.folder / f"{APP}.git", {"README.md": b"", "docs/CODEOWNERS": b""})
    project = full()
    project.files = [f"file-{number:05}.py" for number in range(20_050)]
    fake = FakeGitLab([project], [Token(TOKEN)], clock=Time())
    with hosted(host) as port:
        url = f"http://127.0.0.1:{port}"
        collector = Collector(fake, Time(), api_url=f"{url}/api/v4", others=network().sender(url))
        for fetched in (1, 2):
            collected = await collector.one()
            assert collected.values["repository.filePaths"] == ["README.md", "docs/CODEOWNERS"]
            assert collected.values["codehost.codeReview.usesCodeowners"] is True
            # The pages are read once.
            assert (fake.requests["tree"], host.requests["fetch"]) == (200, fetched)
            project.commits += 1
        collector.time.advance(7 * DAY)
        await collector.one()
        assert fake.requests["tree"] == 400
