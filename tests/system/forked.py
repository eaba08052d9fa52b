"""Processes that are forked from one that has loaded all modules.

To load them takes 2.4 seconds of a processor, which tests that kill many processes do not have. A
fork shares nothing with others but what is only read.
"""

import multiprocessing
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any

from tests.processes import Process, ServerProcess
from tests.system import busy

_PRELOADED = [__name__, "tests.collection.process"]


class ForkedProcess:
    """A forked process in the words of `subprocess`."""

    def __init__(self, process: BaseProcess) -> None:
        self._process = process

    @property
    def pid(self) -> int:
        assert self._process.pid is not None
        return self._process.pid

    def poll(self) -> int | None:
        return self._process.exitcode

    def wait(self, timeout: float | None = None) -> int:
        """Kill what has not ended in time, which Python would wait for at its own end, and fail."""
        self._process.join(timeout)
        if self._process.exitcode is None:
            self._process.kill()
            self._process.join()
            raise subprocess.TimeoutExpired(str(self._process.name), timeout or 0)
        return self._process.exitcode

    def send_signal(self, number: signal.Signals) -> None:
        # The fork server reaps at once, so no zombie keeps the pid.
        with suppress(ProcessLookupError):
            os.kill(self.pid, number)


def fork(
    main: Callable[..., None], *arguments: Any, environment: Mapping[str, str], log: Path
) -> ForkedProcess:
    """Begin a process that runs `main` in the folder of its log, a file that exists from now on."""
    log.touch()
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(_PRELOADED)
    process = context.Process(target=_run, args=(main, arguments, environment, log))
    process.start()
    return ForkedProcess(process)


def _run(
    main: Callable[..., None], arguments: tuple[Any, ...], environment: Mapping[str, str], log: Path
) -> None:
    os.setsid()
    os.chdir(log.parent)
    os.environ.clear()
    os.environ.update(environment)
    with log.open("ab") as file:
        for stream in (sys.stdout, sys.stderr):
            os.dup2(file.fileno(), stream.fileno())
    main(*arguments)


class BusyServer(ServerProcess):
    """A service with a made-up vendor, whose facts it may collect (busy.py)."""

    @property
    def asked(self) -> Path:
        """The file that tells what the vendor was asked for."""
        return self.folder / "asked"

    def _begun(self, *arguments: str) -> Process:
        assert not arguments
        arguments = str(self.asked), str(self.port)
        return fork(busy.main, *arguments, environment=self.environment, log=self.log)


@contextmanager
def two_busy_servers(
    database_url: str, folder: Path, **environment: str
) -> Iterator[list[BusyServer]]:
    """Two of them, each of which collects when the other does not; killed at the end."""
    found = [BusyServer(database_url, folder, **environment) for _ in range(2)]
    try:
        for one in found:
            one.start()
        yield found
    finally:
        for one in found:
            if one.is_running:
                one.stop(signal.SIGKILL)
