"""What the doctor says of the disk and of clocks."""

import resource
from pathlib import Path

import pytest

from factbook.operations.doctor import database, examination
from factbook.settings import Settings


def test_little_room_is_told_before_there_is_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "factbook.db"
    file.write_bytes(bytes(300 * 2**20 // 100))
    states = []
    for free in (2**40, 70 * 2**20, 2**20):
        usage = type("Usage", (), {"free": free})
        # The one thing of the machine that a test cannot bring about.
        monkeypatch.setattr("shutil.disk_usage", lambda folder, usage=usage: usage)
        states += [one.state for one in database.check_disk(file) if "are free" in one.what]
    assert states == ["ok", "ok", "problem"]


def test_the_file_system_of_a_folder_is_that_of_the_nearest_mount(tmp_path: Path) -> None:
    mounts = tmp_path / "mounts"
    mounts.write_text(
        "/dev/sda / ext4 rw 0 0\nhost:/x /srv nfs4 rw 0 0\n/dev/sdb /srv/my\\040disk xfs rw 0 0\n"
    )
    kinds = {
        folder: database.find_file_system(Path(folder), mounts)
        for folder in ("/", "/srv/data", "/srv/my disk/data", "/srvx")
    }
    assert kinds == {"/": "ext4", "/srv/data": "nfs4", "/srv/my disk/data": "xfs", "/srvx": "ext4"}


def test_clocks_that_are_apart_are_told() -> None:
    [one, other] = examination.check_clocks({"near": 4_000, "fast": 9_000, "slow": -60_000})
    assert one.what == "The clock of fast is 9 s ahead of this one."
    assert other.what == "The clock of slow is 60 s behind this one."
    assert [found.state for found in examination.check_clocks({"near": 4_000})] == ["ok"]


@pytest.mark.parametrize(
    ("most", "state"), [(1_024, "warning"), (1_048_576, "ok"), (resource.RLIM_INFINITY, "ok")]
)
def test_few_open_files_are_told(monkeypatch: pytest.MonkeyPatch, most: int, state: str) -> None:
    # A process that lowers it cannot raise it again.
    monkeypatch.setattr("resource.getrlimit", lambda _: (most, most))
    found = next(examination.check_machine(Settings()))
    assert (found.state, "files open" in found.what) == (state, True)


def test_more_processes_than_there_is_memory_for_are_told() -> None:
    assert [one.state for one in examination.check_machine(Settings(workers=1))] == ["ok"]
    [_, found] = examination.check_machine(Settings(workers=1_000_000))
    assert (found.state, "MiB of memory are free" in found.what) == ("warning", True)
