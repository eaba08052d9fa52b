"""One file of a repository, as it is."""

import pytest

from factbook.outbound.outcomes import Answer, Outcome
from tests.fakes.gitea.state import Token
from tests.integrations.gitea.asking import APP, TOKEN, Collector, full, started

FILE = "deploy/värdén #1.yaml"


async def read(asking: Collector, file: str, target: str = APP) -> Answer:
    read = asking.integration.read
    assert read is not None
    return await read(target, file, asking.client, asking.memory)


@pytest.mark.parametrize("target", [APP, "acme/former"])
async def test_a_file_comes_as_its_bytes_and_is_not_sent_twice(target: str) -> None:
    repository = full()
    repository.old_names.append("acme/former")
    repository.files.append(FILE)
    repository.texts[FILE] = b"replicas: 3\n\xff"
    fake, asking = started(repository)
    for _ in range(2):
        answer = await read(asking, FILE, target)
        assert (answer.outcome, answer.body) == (Outcome.OK, b"replicas: 3\n\xff")
    assert [one.status for one in fake.exchanges if one.status != 307] == [200, 304]


@pytest.mark.parametrize(
    ("file", "target"), [("nowhere.txt", APP), ("docs", APP), ("catalog-info.yaml", "acme/no")]
)
async def test_a_file_that_is_not_there_is_told(file: str, target: str) -> None:
    _, asking = started(full())
    assert (await read(asking, file, target)).outcome is Outcome.NOT_FOUND


async def test_a_file_that_the_token_may_not_read_is_denied() -> None:
    _, asking = started(full(), token=Token(TOKEN, scopes=frozenset({"issue"})))
    assert (await read(asking, "catalog-info.yaml")).outcome is Outcome.DENIED
