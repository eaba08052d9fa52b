"""A folder in memory for what a run of tests writes and removes again; no test ends the machine."""

import os
import shutil
from pathlib import Path
from typing import Final

_MEMORY: Final = Path("/dev/shm")  # noqa: S108 - folders of random or own names are made in it
_LEAST: Final = 2 * 2**30


def folder() -> Path | None:
    """Return the folder, or None where there is none with 2 GiB free that runs programs."""
    if not _MEMORY.is_dir() or shutil.disk_usage(_MEMORY).free < _LEAST:
        return None
    return None if os.statvfs(_MEMORY).f_flag & os.ST_NOEXEC else _MEMORY
