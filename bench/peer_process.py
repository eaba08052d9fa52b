"""Starting a peer: a server beside ours, that answers with what ours has answered."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from bench.processes import Server, free_port, serving
from bench.run import Run
from bench.service import environment

_ROOT = Path(__file__).parent.parent


@contextmanager
def peer(run: Run, name: str, answer: bytes, ready: bytes) -> Iterator[Server]:
    """A peer of `bench.peers` with this answer; `ready` is a request that it answers with 200."""
    file = run.folder / f"{name}.answer"
    file.write_bytes(answer)
    port = free_port()
    with serving(
        [sys.executable, "-m", "bench.peers", name, str(port), str(file)],
        port,
        core=run.cores.server,
        ready=ready,
        folder=run.folder,
        environment=environment() | {"PYTHONPATH": str(_ROOT)},
    ) as server:
        yield server
