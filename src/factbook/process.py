"""The process of a server or a worker: its memory settings and its name."""

import gc
import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager


def start_quickly() -> None:
    """Turn the cycle collector off until `settle_memory`: imports leave no cycles to collect."""
    gc.disable()


def settle_memory() -> None:
    """Run the cycle collector rarely: requests and batches leave almost no cycles behind."""
    gc.freeze()
    gc.set_threshold(50_000, 20, 20)
    gc.enable()


def holder() -> str:
    """Unique name under which this process holds leases and batches."""
    return f"{os.getpid()}-{secrets.token_hex(4)}"


@contextmanager
def without_variables() -> Iterator[None]:
    """Hide environment variables, except PATH, from programs started inside the block.

    Some libraries start a program when imported, and variables may contain secrets.
    """
    kept = dict(os.environ)
    os.environ.clear()
    os.environ["PATH"] = kept.get("PATH", os.defpath)
    try:
        yield
    finally:
        os.environ.clear()
        os.environ.update(kept)
