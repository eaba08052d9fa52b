"""What anybody on the machine sees of processes: their arguments; and what they inherit."""

import threading
import time
from collections.abc import Iterator, Set
from contextlib import contextmanager
from pathlib import Path


class Processes:
    """The arguments of some processes and all that they start, and the variables of the latter."""

    def __init__(self) -> None:
        self.roots: set[int] = set()
        self.arguments: dict[int, bytes] = {}
        self.variables: dict[int, bytes] = {}

    def look(self) -> None:
        """Note what is there now."""
        parents = _parents()
        for pid in _below(parents, self.roots):
            arguments = _read(pid, "cmdline")
            if arguments:
                self.arguments[pid] = self.arguments.get(pid, b"") + arguments
            if pid in self.roots:
                continue
            variables = _read(pid, "environ")
            # Between its fork and its start a process is still the copy of its parent, and while it
            # starts it has no arguments.
            started = arguments and not arguments.startswith(_read(parents[pid], "cmdline"))
            if started and _read(pid, "cmdline") == arguments:
                self.variables[pid] = variables


@contextmanager
def watched() -> Iterator[Processes]:
    """Looks again and again until the end of the block."""
    found, over = Processes(), threading.Event()

    def work() -> None:
        while not over.is_set():
            found.look()
            time.sleep(0.005)  # processes may be short-lived

    thread = threading.Thread(target=work)
    thread.start()
    try:
        yield found
    finally:
        over.set()
        thread.join()


def _below(parents: dict[int, int], roots: Set[int]) -> set[int]:
    found = set(roots) & set(parents)
    while new := {pid for pid, parent in parents.items() if parent in found} - found:
        found |= new
    return found


def _parents() -> dict[int, int]:
    """The parent of every process."""
    found = {}
    for folder in Path("/proc").glob("[0-9]*"):
        stat = _read(int(folder.name), "stat")
        if stat:
            found[int(folder.name)] = int(stat.rpartition(b")")[2].split()[1])
    return found


def _read(pid: int, name: str) -> bytes:
    try:
        return Path(f"/proc/{pid}/{name}").read_bytes()
    except OSError:
        return b""
