"""One file of a repository, as it is."""

import os

import pytest

from factbook.outbound.outcomes import Answer, Outcome
from tests.fakes.git import FakeGit, commit
from tests.integrations.git.asking import APP, TOKEN, Collector, folders
from tests.integrations.git.conftest import Make

FILE = "deploy/värdén *1.yaml"
TEXT = b"replicas: 3\n\xff\0"


async def read(asking: Collector, file: str, target: str = APP) -> Answer:
    read = asking.integration.read
    assert read is not None
    return await read(target, file, asking.client, asking.memory)


@pytest.mark.slow
async def test_a_file_comes_alone_and_not_again_while_head_stays(
    guarded: FakeGit, make: Make
) -> None:
    others = {f"deploy/värdén {i}1.yaml": os.urandom(1024 * 1024) for i in range(3)}
    commit(guarded.folder / f"{APP}.git", {FILE: TEXT, **others})
    collector = make(guarded, token=TOKEN)
    answer = await read(collector, FILE)
    assert (answer.outcome, answer.body) == (Outcome.OK, TEXT)
    assert guarded.requests["fetch"] == 2  # the trees, and the file
    assert guarded.sent < 10 * 1024
    again = await read(collector, FILE)
    assert (again.body, guarded.requests["fetch"]) == (TEXT, 2)
    commit(guarded.folder / f"{APP}.git", {FILE: b"replicas: 4\n"})
    assert (await read(collector, FILE)).body == b"replicas: 4\n"
    assert folders() == []


@pytest.mark.slow
@pytest.mark.parametrize(
    ("file", "target"),
    [
        ("nowhere.txt", APP),
        ("deploy", APP),
        ("link", APP),
        ("module", APP),
        ("*", APP),
        (":(glob)deploy/*", APP),
        (FILE, "acme/no"),
    ],
)
async def test_a_file_that_is_not_there_is_told(
    fake: FakeGit, make: Make, file: str, target: str
) -> None:
    commit(fake.folder / f"{APP}.git", {FILE: TEXT}, link="link", module="submodule")
    assert (await read(make(fake), file, target)).outcome is Outcome.NOT_FOUND


async def test_a_file_that_may_not_be_read_is_denied(guarded: FakeGit, make: Make) -> None:
    commit(guarded.folder / f"{APP}.git", {FILE: TEXT})
    assert (await read(make(guarded), FILE)).outcome is Outcome.REFUSED
