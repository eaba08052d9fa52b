"""A small disk of a test's own, which can be filled, and freed again."""

import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

_PIECE = 4096


@contextmanager
def disk(folder: Path, size: int) -> Iterator[Path]:
    """A file system of so many bytes, in memory, until the end of the block; needs root."""
    folder.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", folder], check=True)
    try:
        yield folder
    finally:
        subprocess.run(["umount", "--lazy", folder], check=True)


@contextmanager
def filled(folder: Path, *, left: int = 0) -> Iterator[None]:
    """Within the block nothing but so many bytes is left on the disk."""
    spare, filler = folder / "spare", folder / "filler"
    spare.write_bytes(b"\0" * left)
    with filler.open("wb", buffering=0) as opened:
        try:
            while True:
                opened.write(b"\0" * _PIECE)
        except OSError:  # it is full
            spare.unlink()
    try:
        yield
    finally:
        filler.unlink()
