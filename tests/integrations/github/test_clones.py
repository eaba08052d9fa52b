"""Trees that take too many calls of the interface: read from a clone, which is bounded too."""

import base64
from collections.abc import Iterator
from pathlib import Path

import pytest

from factbook.clock import DAY, HOUR
from factbook.outbound.git import Limits
from tests.fakes.git import FakeGit, commit, hosted
from tests.fakes.github.app import FakeGitHub
from tests.fakes.github.state import Token
from tests.integrations.github.asking import APP, EVERYTHING, TOKEN, Collector, full
from tests.integrations.github.test_credentials import TABLE, installed
from tests.outbound.asking import network
from tests.service import Time

FILES = [f"file-{number:02}.py" for number in range(30)]


@pytest.fixture
def host(tmp_path: Path) -> FakeGit:
    """A host of the same repository, which wants the token as Git shows it."""
    found = FakeGit(tmp_path / "repositories", token=TOKEN, username="x-access-token")
    commit(found.folder / f"{APP}.git", dict.fromkeys(FILES, b""))
    return found


@pytest.fixture
def url(host: FakeGit) -> Iterator[str]:
    """Where the host is."""
    with hosted(host) as port:
        yield f"http://127.0.0.1:{port}"


def large(url: str) -> tuple[FakeGitHub, Collector]:
    """A GitHub that cuts trees off, and the integration that asks it."""
    time, repository = Time(), full()
    repository.files = FILES
    fake = FakeGitHub([repository], [Token(TOKEN)], clock=time)
    fake.most_tree_entries = 20
    return fake, Collector(fake, time, clone_url=url, others=network().sender(url))


async def test_a_tree_of_too_many_calls_is_read_from_a_clone(host: FakeGit, url: str) -> None:
    fake, collector = large(url)
    collected = await collector.one()
    assert collected.values["repository.filePaths"] == FILES
    assert collected.missing == {}
    assert (fake.requests["tree"], host.requests["fetch"]) == (2, 1)
    await collector.one()
    assert (fake.requests["tree"], host.requests["fetch"]) == (2, 1)


async def test_after_a_commit_the_clone_is_made_without_the_calls(host: FakeGit, url: str) -> None:
    fake, collector = large(url)
    await collector.one()
    fake.repositories[0].commits += 1
    commit(host.folder / f"{APP}.git", {"README.md": b""})
    assert (await collector.one()).values["repository.filePaths"] == ["README.md"]
    assert (fake.requests["tree"], host.requests["fetch"]) == (2, 2)


async def test_an_app_clones_with_its_token(host: FakeGit, url: str) -> None:
    fake, _ = installed()
    fake.repositories[0].files, fake.most_tree_entries = FILES, 20
    token = f"ghs_{1:036}"
    host.expect(token, username="x-access-token")
    collector = Collector(fake, Time(), clone_url=url, others=network().sender(url), **TABLE)
    assert (await collector.one()).values["repository.filePaths"] == FILES
    proof = base64.b64encode(f"x-access-token:{token}".encode()).decode()
    assert set(host.proofs) == {f"Basic {proof}"}


async def test_a_clone_that_is_too_large_is_left_alone_for_days(
    host: FakeGit, url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("factbook.outbound.git.LIMITS", Limits(files=10))
    fake, collector = large(url)
    reason = "too-large: the repository is larger than 100 MiB or 10 files"
    for _ in range(3):
        collected = await collector.one()
        assert collected.reasons["repository"] == reason
        assert collected.passing == frozenset()
        fake.repositories[0].commits += 1
        collector.time.advance(6 * HOUR)
    assert (fake.requests["tree"], host.requests["fetch"]) == (2, 1)
    collector.time.advance(7 * DAY)
    commit(host.folder / f"{APP}.git", {"README.md": b""})
    fake.most_tree_entries = 100
    assert (await collector.one()).values["repository.totalFiles"] == 30


async def test_a_clone_that_is_refused_says_why_the_files_are_unknown(
    host: FakeGit, url: str
) -> None:
    host.forbidden.add(f"{APP}.git")
    _, collector = large(url)
    assert (await collector.one()).reasons["repository"] == (
        "too-large: the tree takes too many calls, and a clone failed: 127.0.0.1: answered 403"
    )


@pytest.mark.usefixtures("host")
async def test_without_git_a_large_tree_is_unknown(
    url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", "")
    _, collector = large(url)
    assert (await collector.one()).reasons["repository"] == (
        "too-large: the tree takes too many calls, and a clone failed: "
        "this server lacks the program git"
    )


async def test_a_tree_within_the_calls_is_not_cloned(host: FakeGit, url: str) -> None:
    fake, collector = large(url)
    fake.most_tree_entries = 1_000
    fake.repositories[0].files = full().files
    assert (await collector.one()).values == EVERYTHING
    assert host.requests.total() == 0
