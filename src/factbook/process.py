"""The process of a server or a worker: its memory settings and its name."""

import gc
import os
import secrets


def collect_rarely() -> None:
    """Run the cycle collector rarely: imports, requests and batches leave almost no cycles."""
    gc.set_threshold(50_000, 20, 20)


def settle_memory() -> None:
    """The same, without ever looking again at what the process has been started with."""
    gc.freeze()
    collect_rarely()


def holder() -> str:
    """Unique name under which this process holds leases and batches."""
    return f"{os.getpid()}-{secrets.token_hex(4)}"
