"""A database that the settings name by a link to it, which stays one."""

from pathlib import Path

import pytest

from tests.operations.backups.conftest import Installation, answers, rows
from tests.service import component


@pytest.fixture
def linked(tmp_path: Path) -> Installation:
    """Its file is a link to a file in another folder; its key is beside the link."""
    (tmp_path / "disk").mkdir()
    installation = Installation(tmp_path / "named")
    installation.file.symlink_to(tmp_path / "disk" / "real.db")
    return installation


async def test_a_restore_replaces_the_file_that_a_link_leads_to(
    linked: Installation, tmp_path: Path
) -> None:
    real = tmp_path / "disk" / "real.db"
    async with linked.running() as service:
        token = await service.token()
        await service.push("one", component("web"))
        before = await answers(service, token)
        made = await linked.backup()
        await service.push("two", component("new"))
    linked.key.write_text("k" * 64)
    done, fits = await linked.restored(made)
    assert (done.aside, done.key_restored, fits) == (
        real.with_name("real.db.before-20261121T130000Z"),
        True,
        True,
    )
    assert done.aside is not None
    assert linked.file.readlink() == real
    assert rows(real, "SELECT name FROM sets") == [("one",)]
    assert (linked.folder / f"{done.aside.name}.key").read_text() == "k" * 64
    async with linked.running() as service:
        assert await answers(service, token) == before
