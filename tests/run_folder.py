"""The one temporary folder of a run of tests: whatever the run writes elsewhere is below it."""

import fcntl
import os
import shutil
import tempfile
from contextlib import suppress
from pathlib import Path
from typing import Final

_PREFIX: Final = "factbook-tests-"


class RunFolder:
    """A new folder. It is locked while it is in use, so that no other run takes it for old."""

    def __init__(self, parent: Path) -> None:
        _remove_old(parent)
        self.path = _new(parent)
        self.is_kept = False
        if os.geteuid() == 0:
            # PostgreSQL runs as another user, who has to get to its own folder.
            self.path.chmod(0o711)

    def use(self) -> None:
        """Make it the place of temporary files, here and in the processes that are started."""
        os.environ["TMPDIR"] = os.environ["PYTEST_DEBUG_TEMPROOT"] = str(self.path)
        tempfile.tempdir = None

    def keep(self) -> None:
        """Leave it there until the next run."""
        self.is_kept = True

    def remove_unless_kept(self) -> None:
        if not self.is_kept:
            shutil.rmtree(self.path, ignore_errors=True)


def _new(parent: Path) -> Path:
    """A new folder with its lock; another run may have removed the first ones before that."""
    while True:
        path = Path(tempfile.mkdtemp(prefix=_PREFIX, dir=parent))
        with suppress(FileNotFoundError):
            if _locked(path) is not None and path.exists():
                return path


def _remove_old(parent: Path) -> None:
    """Remove what runs of this user left because tests failed, or because they were killed."""
    for path in parent.glob(f"{_PREFIX}*"):
        # Other runs remove them too.
        with suppress(FileNotFoundError):
            if path.lstat().st_uid == os.geteuid() and (lock := _locked(path)) is not None:
                shutil.rmtree(path, ignore_errors=True)
                os.close(lock)


def _locked(path: Path) -> int | None:
    """The lock of a folder, held until this process ends; None: another run has it."""
    folder = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    try:
        fcntl.flock(folder, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(folder)
        return None
    return folder
