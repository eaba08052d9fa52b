"""Servers that are pinned to one core, and what they cost: CPU time and memory, from /proc.

The CPU time of a server is that of its whole tree of processes, those that have exited included,
and of its database's tree. The load and everything else runs on the other core.
"""

import os
import signal
import socket
import subprocess
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

import msgspec

MIB = 1024 * 1024
_TICKS = os.sysconf("SC_CLK_TCK")
_READY_SECONDS = 60
_STOP_SECONDS = 40


class Cores(msgspec.Struct, frozen=True):
    """The core of what is measured, and the one of what measures."""

    server: int
    load: int

    @classmethod
    def available(cls) -> "Cores":
        """The first and the last core that this process may use."""
        cores = sorted(os.sched_getaffinity(0))
        return cls(cores[0], cores[-1])


@contextmanager
def on_core(*cores: int) -> Iterator[None]:
    """Run on this core, or on one of these; a process that is started meanwhile stays there."""
    before = os.sched_getaffinity(0)
    os.sched_setaffinity(0, cores)
    try:
        yield
    finally:
        os.sched_setaffinity(0, before)


class Server:
    """A process that answers on a port of the loopback address."""

    def __init__(
        self, process: "subprocess.Popen[bytes]", port: int, others: Sequence[int]
    ) -> None:
        self.port = port
        self.pid = process.pid
        self._process = process
        self._others = others

    def cpu_seconds(self) -> float:
        """What it and its database have spent so far; precise to a tick, 10 ms."""
        return cpu_seconds((self.pid, *self._others))

    def own_cpu_seconds(self) -> float:
        """What it has spent without its database."""
        return cpu_seconds((self.pid,))

    def memory(self) -> int:
        """Bytes of its resident memory."""
        return _status(self.pid, "VmRSS")

    def mapped(self) -> int:
        """Bytes of that which are pages of files, a database's among them."""
        return _status(self.pid, "RssFile")

    def forget_peak(self) -> int:
        """Begin to watch for a peak of memory; the bytes that are resident now."""
        Path(f"/proc/{self.pid}/clear_refs").write_text("5", "ascii")
        return self.memory()

    def peak(self) -> int:
        """Most bytes that were resident since `forget_peak`."""
        return _status(self.pid, "VmHWM")

    def await_answer(self, request: bytes) -> None:
        """Return once the request is answered with 200."""
        deadline = time.monotonic() + _READY_SECONDS
        while not _answers(self.port, request):
            if self._process.poll() is not None:
                raise RuntimeError(f"The server ended with {self._process.returncode}.")
            if time.monotonic() > deadline:
                raise TimeoutError(f"No answer with 200 within {_READY_SECONDS} s.")
            time.sleep(0.002)

    def stop(self) -> None:
        """Ask it to end, and make it end when it does not."""
        self._process.send_signal(signal.SIGTERM)
        try:
            self._process.wait(_STOP_SECONDS)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()


@contextmanager
def serving(
    command: Sequence[str],
    port: int,
    *,
    core: int,
    ready: bytes,
    folder: Path,
    environment: Mapping[str, str],
    others: Sequence[int] = (),
) -> Iterator[Server]:
    """A server until the end of the block; `ready` is a request that it answers with 200.

    It runs in `folder`, and logs to a file there. `others` are the processes whose CPU time counts
    as its own, with their children.
    """
    log = folder / f"{port}.log"
    with log.open("wb") as output, on_core(core):
        process = subprocess.Popen(
            command, cwd=folder, env=environment, stdout=output, stderr=output
        )
    server = Server(process, port, others)
    try:
        try:
            server.await_answer(ready)
        except Exception as error:
            error.add_note(log.read_text("utf-8", "replace")[-2000:])
            raise
        yield server
    finally:
        server.stop()


def free_port() -> int:
    """A port that nothing listens on."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        port: int = listener.getsockname()[1]
        return port


def _answers(port: int, request: bytes) -> bool:
    try:
        with socket.create_connection(("127.0.0.1", port), timeout=5) as connection:
            connection.sendall(request)
            return connection.recv(64).startswith(b"HTTP/1.1 200")
    except OSError:
        return False


def cpu_seconds(roots: Sequence[int]) -> float:
    """What these processes and their descendants have spent so far; precise to a tick, 10 ms."""
    while True:
        family = _family(roots)
        try:
            ticks = sum(_ticks(pid) for pid in family)
        except OSError:
            continue
        # What a child has spent moves to its parent when it ends: count again if one did.
        if _family(roots) == family:
            return ticks / _TICKS


def _family(roots: Sequence[int]) -> set[int]:
    """The processes and all their descendants."""
    children: dict[int, list[int]] = {}
    for folder in Path("/proc").glob("[0-9]*"):
        pid = int(folder.name)
        try:
            children.setdefault(int(_stat(pid)[1]), []).append(pid)
        except OSError:
            continue  # it has just ended
    found: set[int] = set()
    open_ = list(roots)
    while open_:
        found.add(pid := open_.pop())
        open_ += children.get(pid, [])
    return found


def _ticks(pid: int) -> int:
    """User and system time of a process and of its children that ended."""
    return sum(map(int, _stat(pid)[11:15]))


def _stat(pid: int) -> list[str]:
    """The fields from the state on; the name before them may hold spaces."""
    text = Path(f"/proc/{pid}/stat").read_text("ascii", "replace")
    return text.rpartition(")")[2].split()


def _status(pid: int, field: str) -> int:
    for line in Path(f"/proc/{pid}/status").read_text("utf-8", "replace").splitlines():
        if line.startswith(f"{field}:"):
            return int(line.split()[1]) * 1024
    raise LookupError(field)
