"""A copy of the repository in a temporary folder, in which faults are planted and tests run."""

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from tests.planted import recorder
from tests.planted.faults import ROOT, Fault

# Exit codes of pytest: all tests passed, some failed, none was there.
_PASSED: Final = 0
_FAILED: Final = 1
_NO_TESTS: Final = 5
_TIMEOUT_SECONDS: Final = 600
PLANTED: Final = "tests/planted"
# In place of a test, where a fault keeps pytest itself from starting.
NO_START: Final = "pytest could not start"


class WorkingCopy:
    """The copy. It is a git repository of its own, because some tests ask git for the files."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    @classmethod
    @contextmanager
    def create(cls) -> Iterator["WorkingCopy"]:
        """Copy every file that git tracks or would track; the copy is removed at the end."""
        with tempfile.TemporaryDirectory(prefix="factbook-planted-") as name:
            folder = Path(name).resolve()
            listed = _git(ROOT, "ls-files", "-z", "--cached", "--others", "--exclude-standard")
            for path in filter(None, listed.split("\0")):
                _copy(ROOT / path, folder / path)
            _git(folder, "init", "--quiet")
            _git(folder, "add", "--all")
            author = ("-c", "user.name=Planted", "-c", "user.email=planted@example.com")
            _git(folder, *author, "commit", "--quiet", "--no-verify", "--message", "Copy")
            copy = cls(folder)
            copy.require_own_imports()
            yield copy

    @contextmanager
    def planted(self, faults: Iterable[Fault]) -> Iterator[None]:
        """Plant faults, and restore the files at the end."""
        originals: dict[Path, str] = {}
        try:
            for fault in faults:
                path = self.folder / fault.path
                text = path.read_text("utf-8")
                originals.setdefault(path, text)
                self._write(path, fault.apply(text))
            yield
        finally:
            for path, text in originals.items():
                self._write(path, text)

    def failures(
        self,
        files: Sequence[str],
        *,
        first: str = "",
        listed: Iterable[str] | None = None,
        without: Iterable[str] = (),
        stop: bool = True,
        workers: int = 0,
    ) -> list[str]:
        """Run tests of these files; the ids of those that failed, only the first with `stop`.

        The test `first` runs first. Only tests in `listed` run, and none in `without`.
        """
        with tempfile.TemporaryDirectory(prefix="factbook-planted-run-") as name:
            report = Path(name, "failures")
            report.touch()
            command = [sys.executable, "-m", "pytest", "-p", recorder.__name__, "--quiet"]
            command += ["-p", "no:cacheprovider", "--tb=no", f"--failures={report}"]
            command += ["-m", "not system"]
            # On a loaded machine a test that takes long is not one that catches the fault.
            command.append(f"--timeout={_TIMEOUT_SECONDS}")
            # Its tests compare the source with the faults, and so would catch every one.
            command += [f"--ignore={PLANTED}"]
            command += [f"--first={first}"] if first else []
            command += [f"--deselect={each}" for each in without]
            command += ["--exitfirst" if stop else "--continue-on-collection-errors"]
            command += ["-n", str(workers)] if workers else []
            if listed is not None:
                ids = Path(name, "listed")
                ids.write_text("".join(f"{each}\n" for each in listed), "utf-8")
                command.append(f"--listed={ids}")
            done = self._run([*command, *files])
            failed = list(dict.fromkeys(report.read_text("utf-8").splitlines()))
        if failed or done.returncode in (_PASSED, _NO_TESTS):
            return failed
        if done.returncode == _FAILED:
            raise RuntimeError(f"pytest failed without a failed test:\n{done.stdout[-4_000:]}")
        return [NO_START]

    def require_own_imports(self) -> None:
        """Raise RuntimeError unless processes of tests import Factbook from the copy."""
        program = "import factbook, tests.service as s; print(factbook.__file__, s.__file__)"
        done = self._run([sys.executable, "-c", program])
        if done.returncode or not all(
            Path(path).is_relative_to(self.folder) for path in done.stdout.split()
        ):
            raise RuntimeError(f"Tests would import another Factbook: {done.stdout}{done.stderr}")

    def _run(self, command: Sequence[str]) -> subprocess.CompletedProcess[str]:
        """Run a command in the copy, so that it and what it starts import Factbook from there."""
        data = os.environ.get("FACTBOOK_TEST_DATA", "../shared/data")
        environment = {
            **os.environ,
            "PYTHONPATH": str(self.folder / "src"),
            "FACTBOOK_TEST_DATA": str((ROOT / data).resolve()),
        }
        # Each process would compile every module again.
        environment.pop("PYTHONDONTWRITEBYTECODE", None)
        return subprocess.run(
            command,
            cwd=self.folder,
            env=environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            check=False,
        )

    @staticmethod
    def _write(path: Path, text: str) -> None:
        """Write a module; compiled code of the same size and second would still count as its."""
        path.write_text(text, "utf-8")
        for compiled in path.parent.glob(f"__pycache__/{path.stem}.*.pyc"):
            compiled.unlink(missing_ok=True)


def _copy(source: Path, target: Path) -> None:
    if not source.is_symlink() and not source.is_file():
        return  # deleted, but not in git yet
    target.parent.mkdir(parents=True, exist_ok=True)
    shutil.copy2(source, target, follow_symlinks=False)


def _git(folder: Path, *arguments: str) -> str:
    done = subprocess.run(
        ["git", *arguments], cwd=folder, check=True, capture_output=True, encoding="utf-8"
    )
    return done.stdout
