"""One file of a project, as it is."""

import pytest

from factbook.outbound.outcomes import Answer, Outcome
from tests.fakes.gitlab.state import Token
from tests.integrations.gitlab.asking import APP, TOKEN, Collector, full, started

FILE = "deploy/värdén #1.yaml"


async def read(asking: Collector, file: str, target: str = APP) -> Answer:
    read = asking.integration.read
    assert read is not None
    return await read(target, file, asking.client, asking.memory)


@pytest.mark.parametrize("target", [APP, "acme/former"])
async def test_a_file_comes_as_its_bytes_by_every_name_of_the_project(target: str) -> None:
    project = full()
    project.old_names.append("acme/former")
    project.files.append(FILE)
    project.texts[FILE] = b"replicas: 3\n\xff"
    fake, asking = started(project)
    answer = await read(asking, FILE, target)
    assert (answer.outcome, answer.body) == (Outcome.OK, b"replicas: 3\n\xff")
    assert set(fake.requests) == {"file"}


@pytest.mark.parametrize(
    ("file", "target"), [("nowhere.txt", APP), ("docs", APP), ("catalog-info.yaml", "acme/no")]
)
async def test_a_file_that_is_not_there_is_told(file: str, target: str) -> None:
    _, asking = started(full())
    assert (await read(asking, file, target)).outcome is Outcome.NOT_FOUND


async def test_a_file_that_the_token_may_not_read_is_denied() -> None:
    _, asking = started(full(), token=Token(TOKEN, reads_repository=False))
    assert (await read(asking, "catalog-info.yaml")).outcome is Outcome.DENIED
