"""A small disk of a test's own, which can be filled, and freed again."""

import subprocess
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from shutil import disk_usage

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
    """Within the block nothing but so many bytes is left on the disk, and at no time less.

    A service that writes on its own while the disk is filled finds as much.
    """
    filler = folder / "filler"
    with filler.open("wb", buffering=0) as opened, suppress(OSError):  # others may fill it, too
        while disk_usage(folder).free >= left + _PIECE:
            opened.write(b"\0" * _PIECE)
    try:
        yield
    finally:
        filler.unlink()
