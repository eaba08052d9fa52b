"""Runner for the program git, bounded in time and size, that leaves nothing behind."""

import asyncio
import os
import re
import shutil
import signal
import subprocess
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Final, NamedTuple

from factbook import shutdown
from factbook.errors import ConfigurationError

# The first that connects to addresses which it is given. An older one ignores that.
OLDEST: Final = (2, 37)
# A path takes 60 on average, and what stands before it 53.
BYTES_EACH: Final = 200

_KEPT_ERRORS: Final = 16 * 1024
_CHUNK: Final = 64 * 1024
_WATCH_SECONDS: Final = 0.1
_DRAIN_SECONDS: Final = 5.0

TIME: Final = "time"
SIZE: Final = "size"
START: Final = "start"


class Bounds(NamedTuple):
    """Limits of a command: seconds, bytes in its folder, and records ended by NUL."""

    seconds: float
    room: int
    records: int


class GitResult(NamedTuple):
    """End of a command: its exit code, or `stopped` by TIME or SIZE, or at its START.

    `errors` is the end of its standard error; it may repeat text from the host.
    """

    code: int = -1
    output: bytes = b""
    errors: str = ""
    stopped: str = ""


class _TooMuchError(Exception):
    """The output is larger than allowed."""


def find() -> str:
    """The path of the program. Raises ConfigurationError if there is none or it is too old."""
    path = shutil.which("git")
    done = path and subprocess.run(  # noqa: S603 - found on our PATH, without any input
        [path, "version"],
        env={"PATH": os.environ.get("PATH", os.defpath)},
        capture_output=True,
        text=True,
        timeout=30,
        check=False,
    )
    version = re.search(r"(\d+)\.(\d+)", done.stdout) if done else None
    if not path or not version or (int(version[1]), int(version[2])) < OLDEST:
        oldest = ".".join(map(str, OLDEST))
        raise ConfigurationError(f"An integration of git needs Git {oldest} or newer on the PATH.")
    return path


async def run(
    command: Sequence[str], environment: Mapping[str, str], folder: str, bounds: Bounds
) -> GitResult:
    """Run the command in a folder; no process of it remains, even if cancelled."""
    try:
        async with _started(command, environment, folder) as process:
            tasks = [
                asyncio.create_task(_whole(process, bounds)),
                asyncio.create_task(_watch(folder, bounds.room)),
            ]
            try:
                done, _ = await asyncio.wait(
                    tasks, timeout=bounds.seconds, return_when=asyncio.FIRST_COMPLETED
                )
            finally:
                await shutdown.cancel(tasks)
            ended = next((task.result() for task in tasks if task in done), GitResult(stopped=TIME))
            return GitResult(stopped=SIZE) if _size(folder) > bounds.room else ended
    except OSError:
        return GitResult(stopped=START)


@asynccontextmanager
async def _started(
    command: Sequence[str], environment: Mapping[str, str], folder: str
) -> AsyncIterator[asyncio.subprocess.Process]:
    """A process in its own group; the whole group is ended with the block."""
    starting = asyncio.create_task(
        asyncio.create_subprocess_exec(
            *command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=environment,
            cwd=folder,
            start_new_session=True,
        )
    )
    try:
        # Who is cancelled here has to know what was started.
        yield await asyncio.shield(starting)
    finally:
        await shutdown.uninterrupted(_end(starting))


async def _end(starting: "asyncio.Task[asyncio.subprocess.Process]") -> None:
    process = await starting
    assert process.stdout is not None
    assert process.stderr is not None
    pipes = (process.stdout, process.stderr)
    if process.returncode is not None and all(pipe.at_eof() for pipe in pipes):
        return
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    # Those that it started hold the pipes until they are gone, and till then write files.
    with suppress(TimeoutError):
        async with asyncio.timeout(_DRAIN_SECONDS):
            for pipe in pipes:
                while await pipe.read(_CHUNK):
                    pass
    await process.wait()


async def _whole(process: asyncio.subprocess.Process, bounds: Bounds) -> GitResult:
    assert process.stdout is not None
    assert process.stderr is not None
    too_much = False
    try:
        async with asyncio.TaskGroup() as tasks:
            output = tasks.create_task(_read(process.stdout, bounds.records))
            errors = tasks.create_task(_last(process.stderr))
            code = tasks.create_task(process.wait())
    except* _TooMuchError:
        too_much = True
    if too_much:
        return GitResult(stopped=SIZE)
    return GitResult(code.result(), output.result(), errors.result().decode("utf-8", "replace"))


async def _read(pipe: asyncio.StreamReader, records: int) -> bytes:
    found = bytearray()
    count = 0
    while chunk := await pipe.read(_CHUNK):
        found += chunk
        count += chunk.count(0)
        if count > records or len(found) > records * BYTES_EACH:
            raise _TooMuchError
    return bytes(found)


async def _last(pipe: asyncio.StreamReader) -> bytes:
    found = b""
    while chunk := await pipe.read(_CHUNK):
        found = (found + chunk)[-_KEPT_ERRORS:]
    return found


async def _watch(folder: str, room: int) -> GitResult:
    """Ends when the files in the folder exceed the room."""
    while True:
        if _size(folder) > room:
            return GitResult(stopped=SIZE)
        await asyncio.sleep(_WATCH_SECONDS)


def _size(folder: str) -> int:
    total = 0
    for parent, _, names in os.walk(folder):
        for name in names:
            # Git removes and renames files meanwhile.
            with suppress(OSError):
                total += Path(parent, name).lstat().st_size
    return total
