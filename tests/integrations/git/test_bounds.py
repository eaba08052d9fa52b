"""Limits of time and size, and that nothing is left behind; where the secret is meanwhile."""

import asyncio
import base64
import os
import threading
from pathlib import Path

import pytest

from factbook.clock import DAY
from factbook.outbound.outcomes import Missing, Outcome
from tests.fakes.faults import Fault
from tests.fakes.git import FakeGit, bomb, commit, endless, packet, stuck, without_trees
from tests.integrations.git.asking import (
    APP,
    EVERYTHING,
    TOKEN,
    Collector,
    folders,
    full,
    processes,
)
from tests.integrations.git.conftest import Make

PACKFILE = b"000dpackfile\n"
# A pack of one object that says of itself to have 2^45 bytes, and is stored in blocks.
HUGE = b"\x01PACK\0\0\0\2\0\0\0\1" + b"\xb0\x80\x80\x80\x80\x80\x04" + b"\x78\x01"
BLOCK = b"\0" + (60_000).to_bytes(2, "little") + (5_535).to_bytes(2, "little") + bytes(60_000)


def too_large(megabytes: int = 100, files: int = 200_000) -> dict[str, Missing]:
    detail = f"the repository is larger than {megabytes} MiB or {files} files"
    return {"": Missing(Outcome.TOO_LARGE, detail)}


def assert_nothing_left(collector: Collector) -> None:
    assert processes(collector.integration.base_url) == {}
    assert folders() == []


@pytest.mark.slow
@pytest.mark.parametrize(
    ("kind", "fault", "seconds"),
    [
        ("refs", stuck(threading.Event()), 1),
        ("fetch", stuck(threading.Event()), 2),
        ("fetch", endless(PACKFILE, b"\x02still counting\n", 0.02), 2),
        ("fetch", endless(PACKFILE + packet(HUGE), b"\x01\0\0\0\xff\xff", 0.02), 2),
    ],
    ids=["silence", "silence later", "messages", "drops"],
)
async def test_a_host_that_takes_its_time_is_not_waited_for(
    fake: FakeGit, make: Make, kind: str, fault: Fault, seconds: int
) -> None:
    full(fake)
    fake.fail(kind, fault)
    collector = make(fake, seconds=seconds)
    found = await collector.one(APP)
    assert found.missing[""] == Missing(
        Outcome.TRANSIENT, f"127.0.0.1: no answer within {seconds} seconds"
    )
    assert fake.requests[kind] == 1
    assert_nothing_left(collector)


@pytest.mark.slow
async def test_a_pack_without_end_is_cut_off_and_not_fetched_again(
    fake: FakeGit, make: Make
) -> None:
    full(fake)
    fake.fail("fetch", endless(PACKFILE + packet(HUGE), b"\x01" + BLOCK))
    collector = make(fake, megabytes=3)
    assert (await collector.one(APP)).missing == too_large(3)
    assert fake.sent < 300 * 1024 * 1024
    assert_nothing_left(collector)
    # Not even when HEAD has moved, for some days.
    commit(fake.folder / f"{APP}.git", {"README.md": b""})
    collector.time.advance(6 * DAY)
    assert (await collector.one(APP)).missing == too_large(3)
    assert fake.requests["fetch"] == 1
    collector.time.advance(DAY)
    assert (await collector.one(APP)).values["repository.totalFiles"] == 1


async def test_what_was_too_large_is_read_at_once_when_the_settings_allow_more(
    fake: FakeGit, make: Make
) -> None:
    full(fake)
    before, after = make(fake, most_files=1), make(fake)
    assert (await before.one(APP)).missing == too_large(files=1)
    after.memory = before.memory
    assert (await after.one(APP)).values == EVERYTHING


@pytest.mark.slow
async def test_a_host_that_sends_contents_all_the_same_is_bounded(
    fake: FakeGit, make: Make
) -> None:
    commit(fake.folder / f"{APP}.git", {"large": os.urandom(2 * 1024 * 1024)})
    fake.filters = False
    collector = make(fake, megabytes=1)
    assert (await collector.one(APP)).missing == too_large(1)
    assert (await make(fake, megabytes=5).one(APP)).values["repository.totalFiles"] == 1
    assert_nothing_left(collector)


async def test_a_few_objects_that_stand_for_billions_of_files_are_too_large(
    fake: FakeGit, make: Make
) -> None:
    bomb(fake.folder / APP)
    collector = make(fake, most_files=5_000)
    assert (await collector.one(APP)).missing == too_large(files=5_000)
    assert fake.sent < 10_000
    assert_nothing_left(collector)
    assert (await collector.one(APP)).missing == too_large(files=5_000)
    assert fake.requests["fetch"] == 1


async def test_what_the_host_leaves_out_is_not_fetched_later(fake: FakeGit, make: Make) -> None:
    full(fake)
    fake.fail("fetch", without_trees, times=100)
    collector = make(fake)
    found = await collector.one(APP)
    assert found.missing[""].outcome is Outcome.TRANSIENT
    assert fake.requests == {"refs": 2, "ls-refs": 2, "fetch": 1}
    assert_nothing_left(collector)


async def test_as_many_files_as_allowed_are_read(fake: FakeGit, make: Make) -> None:
    full(fake)
    entries = EVERYTHING["repository.totalFiles"] + 1  # a submodule is an entry too
    assert (await make(fake, most_files=entries).one(APP)).values == EVERYTHING
    missing = (await make(fake, most_files=entries - 1).one(APP)).missing
    assert missing == too_large(files=entries - 1)


@pytest.mark.spec("sources.credential-stays-with-its-host")
@pytest.mark.parametrize("kind", ["refs", "ls-refs", "fetch"])
async def test_who_is_cancelled_leaves_nothing_and_the_secret_was_in_no_argument_and_file(
    guarded: FakeGit, make: Make, kind: str, capfd: pytest.CaptureFixture[str]
) -> None:
    full(guarded)
    reached = threading.Event()
    guarded.fail(kind, stuck(reached))
    collector = make(guarded, token=TOKEN)
    task = asyncio.create_task(collector.one(APP))
    assert await asyncio.to_thread(reached.wait, 30)
    proof = base64.b64encode(f"git:{TOKEN}".encode()).decode()
    running = processes(collector.integration.base_url)
    assert len(running) >= 2  # git and what speaks HTTP for it
    assert [line for line in running.values() if TOKEN in line or proof in line] == []
    assert secret_files(proof) == secret_files(TOKEN) == []
    assert all(proof in environment(pid) for pid in running)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert_nothing_left(collector)
    assert proof not in (shown := "".join(capfd.readouterr()))
    assert TOKEN not in shown


def environment(pid: int) -> str:
    return Path(f"/proc/{pid}/environ").read_text()


def secret_files(secret: str) -> list[Path]:
    """Files of the readings that hold the secret."""
    [folder] = folders()
    files = [path for path in folder.rglob("*") if path.is_file()]
    return [path for path in files if secret.encode() in path.read_bytes()]
