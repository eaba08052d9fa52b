"""The temporary folder of a test run, for everything that it writes outside the checkout."""

import fcntl
import os
import shutil
import tempfile
from contextlib import suppress
from pathlib import Path
from typing import Final

_PREFIX: Final = "factbook-tests-"


class RunFolder:
    """A new folder, locked while it is in use so that no other run removes it."""

    def __init__(self, parent: Path) -> None:
        _remove_old(parent)
        self.path = _new(parent)
        self.is_kept = False
        if os.geteuid() == 0:
            # PostgreSQL runs as another user, who has to reach its files below.
            self.path.chmod(0o711)

    def use(self) -> None:
        """Put temporary files there, of this process and of those that it starts."""
        os.environ["TMPDIR"] = os.environ["PYTEST_DEBUG_TEMPROOT"] = str(self.path)
        tempfile.tempdir = None

    def keep(self) -> None:
        """Keep it until the next run."""
        self.is_kept = True

    def remove_unless_kept(self) -> None:
        if not self.is_kept:
            shutil.rmtree(self.path, ignore_errors=True)


def _new(parent: Path) -> Path:
    """A new, locked folder. Another run may remove one before it is locked."""
    while True:
        path = Path(tempfile.mkdtemp(prefix=_PREFIX, dir=parent))
        with suppress(FileNotFoundError):
            if _locked(path) is not None and path.exists():
                return path


def _remove_old(parent: Path) -> None:
    """Remove the folders of this user's runs that failed or were killed."""
    for path in parent.glob(f"{_PREFIX}*"):
        # Another run may remove it first, and it may be a file or a link of the user's.
        with suppress(FileNotFoundError, NotADirectoryError):
            if path.lstat().st_uid == os.geteuid() and (lock := _locked(path)) is not None:
                shutil.rmtree(path, ignore_errors=True)
                os.close(lock)


def _locked(path: Path) -> int | None:
    """Lock a folder until this process ends; None if another run has the lock."""
    folder = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    try:
        fcntl.flock(folder, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(folder)
        return None
    return folder
