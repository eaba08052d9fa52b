"""Ending in time: tasks that swallow cancellations, clean-up, and ports that are taken."""

import asyncio
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psycopg
import pytest
from structlog.testing import capture_logs

from factbook import shutdown
from factbook.errors import OutdatedError, UnavailableError
from factbook.http.context import Tasks
from factbook.operations import server
from factbook.storage.migrations import get_migration_texts, migrate
from factbook.worker import Worker
from tests import commands
from tests.processes import FACTBOOK, TOKEN_KEY, clean_environment
from tests.service import NOON, Service, registry
from tests.stubborn import StubbornCourier

pytestmark = pytest.mark.both_databases

ROOT = Path(__file__).parent.parent
ORDERLY = (0, -signal.SIGTERM)


async def stubborn(swallows: int, released: asyncio.Event | None = None) -> None:
    """End when released, or cancelled once more than that."""
    released = released or asyncio.Event()
    while not released.is_set():
        try:
            await released.wait()
        except asyncio.CancelledError:
            if swallows == 0:
                raise
            swallows -= 1


async def test_a_task_that_swallows_cancellations_is_cancelled_until_it_has_ended() -> None:
    task = asyncio.create_task(stubborn(2))
    await asyncio.sleep(0)
    assert await shutdown.cancel([task]) == []
    assert task.cancelled()


async def test_a_task_that_ignores_every_cancellation_is_left_behind_and_logged() -> None:
    released = asyncio.Event()
    task = asyncio.create_task(stubborn(1_000_000, released))
    await asyncio.sleep(0)
    with capture_logs() as logs:
        assert await shutdown.cancel([task], seconds=0.01) == [task]
    assert logs == [{"event": "task.stuck", "task": "stubborn", "log_level": "error"}]
    released.set()
    await task


async def test_clean_up_is_finished_however_often_its_caller_is_cancelled() -> None:
    may_end, done = asyncio.Event(), []

    async def clean_up() -> None:
        await may_end.wait()
        done.append("clean")

    caller = asyncio.create_task(shutdown.uninterrupted(clean_up()))
    for _ in range(3):
        await asyncio.sleep(0)
        caller.cancel()
    may_end.set()
    with pytest.raises(asyncio.CancelledError):
        await caller
    assert done == ["clean"]


async def test_tasks_beside_requests_are_cancelled_until_they_have_ended() -> None:
    tasks = Tasks()
    tasks.spawn(stubborn(1))
    await asyncio.sleep(0)
    await tasks.finish()
    await asyncio.sleep(0)
    assert list(tasks) == []


async def at_work(service: Service) -> "asyncio.Task[None]":
    """A worker one of whose loops swallows the first cancellation, which has begun to work."""
    state = service.state
    courier = StubbornCourier(state.database, state.settings, 1)
    worker = Worker(
        state.database, state.settings, registry(service), state.clock, "a", courier=courier
    )
    task = asyncio.create_task(worker.run())
    await courier.working.wait()
    return task


async def test_a_worker_whose_loop_swallows_a_cancellation_ends(service: Service) -> None:
    working = await at_work(service)
    working.cancel()
    with pytest.raises(asyncio.CancelledError):
        await working


async def test_a_worker_that_a_schema_has_left_behind_ends_though_a_loop_swallows_that(
    service: Service,
) -> None:
    working = await at_work(service)
    later = {**get_migration_texts(), "9998_next.sql": "-- Works from: 9998\n"}
    await migrate(service.state.database, NOON, known=later)
    with pytest.raises(OutdatedError):
        await working


@contextmanager
def working(database_url: str, folder: Path, *arguments: str) -> Iterator[subprocess.Popen[str]]:
    """A process that swallows so many cancellations, from the moment at which it works."""
    path = [*filter(None, [os.environ.get("PYTHONPATH")]), str(ROOT)]
    with (folder / "log").open("w") as log:
        process = subprocess.Popen(
            [sys.executable, "-m", "tests.stubborn", *arguments],
            env=environment(database_url) | {"PYTHONPATH": os.pathsep.join(path)},
            cwd=folder,
            stdout=subprocess.PIPE,
            stderr=log,
            text=True,
        )
    try:
        assert process.stdout is not None
        assert process.stdout.readline() == "working\n", (folder / "log").read_text()
        yield process
    finally:
        process.kill()
        process.communicate()


def environment(database_url: str) -> dict[str, str]:
    given = {"FACTBOOK_DATABASE_URL": database_url, "FACTBOOK_TOKEN_KEY": TOKEN_KEY}
    return clean_environment() | given


@pytest.mark.slow
@pytest.mark.spec("shutdown.ends-in-time")
@pytest.mark.parametrize("arguments", [("--port", "0"), ()], ids=["serve", "worker"])
def test_a_process_told_to_stop_ends_though_its_work_swallows_a_cancellation(
    database_url: str, tmp_path: Path, arguments: tuple[str, ...]
) -> None:
    with working(database_url, tmp_path, "1", *arguments) as process:
        process.send_signal(signal.SIGTERM)
        process.send_signal(signal.SIGTERM)  # which neither hastens nor delays it
        out, _ = process.communicate(timeout=60)
        assert (out, process.returncode in ORDERLY) == ("ended\n", True)


@pytest.mark.slow
@pytest.mark.spec("shutdown.ends-in-time")
def test_a_process_whose_work_ignores_every_cancellation_is_ended_with_an_error(
    tmp_path: Path,
) -> None:
    url = f"sqlite:///{tmp_path}/facts.db"
    with working(url, tmp_path, "1000000", "--port", "0") as process:
        process.send_signal(signal.SIGTERM)
        process.communicate(timeout=60)
        assert process.returncode == 1
    assert '"process.stuck"' in (tmp_path / "log").read_text()


@contextmanager
def taken_port() -> Iterator[int]:
    """A port of loopback on which somebody else listens."""
    with socket.create_server(("127.0.0.1", 0)) as other:
        port: int = other.getsockname()[1]
        yield port


def refused(database_url: str, folder: Path, port: int, workers: int = 1) -> tuple[str, str]:
    """Output and errors of a `factbook serve` that ends with an error."""
    arguments = ("serve", "--port", str(port), "--workers", str(workers))
    done = commands.invoke(folder, environment(database_url), *arguments)
    assert done.exit_code == 1, done.stderr
    return done.stdout, done.stderr


def refused_process(database_url: str, folder: Path, port: int) -> tuple[str, str]:
    """The same of a process of its own."""
    done = subprocess.run(
        [FACTBOOK, "serve", "--port", str(port)],
        env=environment(database_url),
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 1, done.stderr
    return done.stdout, done.stderr


@pytest.mark.slow
@pytest.mark.spec("shutdown.port-in-use")
def test_starts_on_a_port_that_is_in_use_end_and_say_so(database_url: str, tmp_path: Path) -> None:
    with taken_port() as port:
        ends = {refused(database_url, tmp_path, port, workers) for workers in (1, 2)}
        ends.add(refused_process(database_url, tmp_path, port))
    assert ends == {
        (
            "",
            f"Error: Cannot listen: 127.0.0.1:{port} is in use.\n"
            "Another process listens there, perhaps another Factbook: stop it, or choose another "
            "port (--port, FACTBOOK_PORT). `ss -ltnp` names the process.\n",
        )
    }


@pytest.mark.spec("shutdown.port-in-use")
def test_a_start_on_a_port_that_is_in_use_changes_nothing(
    empty_database_url: str, tmp_path: Path
) -> None:
    with taken_port() as port:
        refused(empty_database_url, tmp_path, port)
    if empty_database_url.startswith("sqlite"):
        assert list(tmp_path.iterdir()) == []
    else:
        with psycopg.connect(empty_database_url) as connection:
            tables = "SELECT 1 FROM pg_tables WHERE schemaname = 'public'"
            assert connection.execute(tables).fetchall() == []


def test_of_two_that_bind_a_port_at_the_same_moment_the_second_is_refused() -> None:
    with server.bind_sockets("127.0.0.1", 0) as [first]:
        port = first.getsockname()[1]
        with server.bind_sockets("127.0.0.1", port) as second:
            server.start_listening([first])
            with pytest.raises(UnavailableError, match=f"127.0.0.1:{port} is in use"):
                server.start_listening(second)


@pytest.mark.parametrize(
    ("host", "told"),
    [
        ("192.0.2.1", r"Cannot listen: 192\.0\.2\.1:8000 is not an address of this machine\."),
        ("2001:db8::1", r"Cannot listen: \[2001:db8::1\]:8000 is not an address of this machine\."),
        ("no-such-host.invalid", "Cannot listen on no-such-host.invalid: "),
    ],
)
def test_a_host_that_is_not_of_this_machine_is_told(host: str, told: str) -> None:
    with pytest.raises(UnavailableError, match=told), server.bind_sockets(host, 8000):
        pass


def test_every_address_of_a_host_is_listened_on() -> None:
    with server.bind_sockets("localhost", 0) as sockets:
        server.start_listening(sockets)
        for each in sockets:
            address = each.getsockname()[:2]
            with socket.create_connection(address, timeout=60) as client:
                assert client.getpeername()[:2] == address
