"""Trees of more pages than are read: read from a clone."""

from dataclasses import replace
from pathlib import Path

from tests.fakes.git import FakeGit, commit, hosted
from tests.fakes.gitea.app import FakeGitea
from tests.fakes.gitea.state import Token
from tests.integrations.gitea.asking import APP, TOKEN, Collector, full
from tests.outbound.asking import network
from tests.service import Time


async def test_a_tree_of_too_many_pages_is_read_from_a_clone(tmp_path: Path) -> None:
    host = FakeGit(tmp_path, token="x-oauth-basic", username=TOKEN)
    commit(host.folder / f"{APP}.git", {"README.md": b"", "CODEOWNERS": b""})
    repository = replace(full(), files=[f"file-{number:03}.py" for number in range(401)])
    fake = FakeGitea([repository], [Token(TOKEN)])
    fake.most_entries = 2
    with hosted(host) as port:
        url = f"http://127.0.0.1:{port}"
        collector = Collector(fake, Time(), api_url=f"{url}/api/v1", others=network().sender(url))
        for fetched in (1, 2):
            collected = await collector.one()
            assert collected.values["repository.filePaths"] == ["CODEOWNERS", "README.md"]
            assert collected.values["codehost.codeReview.usesCodeowners"] is True
            # The first page says that there are too many more.
            assert (fake.requests["tree"], host.requests["fetch"]) == (1, fetched)
            repository.commits += 1
