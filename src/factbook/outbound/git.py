"""Git as a transport: clones without file contents, bounded in time and size.

Failures are classified by Git's messages in the C locale. Source: http.c, remote-curl.c and
connect.c of Git 2.37 to 2.51. The host's own text is in lines that begin with `remote:`, or after
`remote error:`.
"""

import asyncio
import base64
import os
import re
import shutil
import signal
import subprocess
import time
from collections.abc import AsyncIterator, Iterable, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager, contextmanager, suppress
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final, NamedTuple

from factbook import shutdown
from factbook.errors import ConfigurationError
from factbook.outbound.client import HostRoute, HttpClient, build_path
from factbook.outbound.outcomes import Answer, HostReply, Missing, Outcome

# The first version with http.curloptResolve; older ones ignore it.
OLDEST_GIT: Final = (2, 37)
# Average: 60 for the path, and 53 for the fields before it.
BYTES_PER_PATH: Final = 200

_KEPT_ERRORS: Final = 16 * 1024
_CHUNK: Final = 64 * 1024
_WATCH_SECONDS: Final = 0.1
_DRAIN_SECONDS: Final = 5.0

OUT_OF_TIME: Final = "time"
OUT_OF_ROOM: Final = "size"
NOT_STARTED: Final = "start"


class Bounds(NamedTuple):
    """Limits of a command: seconds, bytes in its folder, and NUL-terminated records of output."""

    seconds: float
    room: int
    records: int


class GitResult(NamedTuple):
    """Result of a command: its exit code, or in `stopped` the reason that it has none.

    `stopped` is OUT_OF_TIME, OUT_OF_ROOM, NOT_STARTED or empty. `errors` is the end of standard
    error, which may repeat text from the host.
    """

    code: int = -1
    output: bytes = b""
    errors: str = ""
    stopped: str = ""


class _TooMuchError(Exception):
    """The output is larger than allowed."""


def find_git() -> str:
    """The path of Git. Raises ConfigurationError if Git is missing or too old."""
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
    if not path or not version or (int(version[1]), int(version[2])) < OLDEST_GIT:
        oldest = ".".join(map(str, OLDEST_GIT))
        raise ConfigurationError(f"A git integration needs Git {oldest} or newer on the PATH.")
    return path


async def run_git(
    command: Sequence[str], environment: Mapping[str, str], folder: str, bounds: Bounds
) -> GitResult:
    """Run a command in a folder, and leave no process behind, even if cancelled."""
    try:
        async with _start_process(command, environment, folder) as process:
            tasks = [
                asyncio.create_task(_collect_output(process, bounds)),
                asyncio.create_task(_watch_size(folder, bounds.room)),
            ]
            try:
                done, _ = await asyncio.wait(
                    tasks, timeout=bounds.seconds, return_when=asyncio.FIRST_COMPLETED
                )
            finally:
                await shutdown.cancel(tasks)
            ended = next(
                (task.result() for task in tasks if task in done), GitResult(stopped=OUT_OF_TIME)
            )
            return (
                GitResult(stopped=OUT_OF_ROOM) if _measure_folder(folder) > bounds.room else ended
            )
    except OSError:
        return GitResult(stopped=NOT_STARTED)


@asynccontextmanager
async def _start_process(
    command: Sequence[str], environment: Mapping[str, str], folder: str
) -> AsyncIterator[asyncio.subprocess.Process]:
    """Start a process in its own group, and kill the group at the end of the block."""
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
        # Even if cancelled here, the cleanup needs the process.
        yield await asyncio.shield(starting)
    finally:
        await shutdown.uninterrupted(_end_process(starting))


async def _end_process(starting: "asyncio.Task[asyncio.subprocess.Process]") -> None:
    process = await starting
    assert process.stdout is not None
    assert process.stderr is not None
    pipes = (process.stdout, process.stderr)
    if process.returncode is not None and all(pipe.at_eof() for pipe in pipes):
        return
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    # Child processes keep the pipes open, and write files, until they exit.
    with suppress(TimeoutError):
        async with asyncio.timeout(_DRAIN_SECONDS):
            for pipe in pipes:
                while await pipe.read(_CHUNK):
                    pass
    await process.wait()


async def _collect_output(process: asyncio.subprocess.Process, bounds: Bounds) -> GitResult:
    assert process.stdout is not None
    assert process.stderr is not None
    too_much = False
    try:
        async with asyncio.TaskGroup() as tasks:
            output = tasks.create_task(_read_records(process.stdout, bounds.records))
            errors = tasks.create_task(_read_last_errors(process.stderr))
            code = tasks.create_task(process.wait())
    except* _TooMuchError:
        too_much = True
    if too_much:
        return GitResult(stopped=OUT_OF_ROOM)
    return GitResult(code.result(), output.result(), errors.result().decode("utf-8", "replace"))


async def _read_records(pipe: asyncio.StreamReader, records: int) -> bytes:
    found = bytearray()
    count = 0
    while chunk := await pipe.read(_CHUNK):
        found += chunk
        count += chunk.count(0)
        if count > records or len(found) > records * BYTES_PER_PATH:
            raise _TooMuchError
    return bytes(found)


async def _read_last_errors(pipe: asyncio.StreamReader) -> bytes:
    found = b""
    while chunk := await pipe.read(_CHUNK):
        found = (found + chunk)[-_KEPT_ERRORS:]
    return found


async def _watch_size(folder: str, room: int) -> GitResult:
    """Return when the files in the folder exceed the room."""
    while True:
        if _measure_folder(folder) > room:
            return GitResult(stopped=OUT_OF_ROOM)
        await asyncio.sleep(_WATCH_SECONDS)


def _measure_folder(folder: str) -> int:
    total = 0
    for parent, _, names in os.walk(folder):
        for name in names:
            # Git removes and renames files meanwhile.
            with suppress(OSError):
                total += Path(parent, name).lstat().st_size
    return total


TOO_LARGE: Final = 413
NOT_GIT: Final = "it does not answer as Git's smart HTTP does"

_OURS: Final = re.compile(r"^(?:fatal|error): .*$", re.MULTILINE)
_QUOTED: Final = re.compile(r" '[^']*'")
_STATUS: Final = re.compile(r"The requested URL returned error: ([1-5][0-9]{2})")
# The first match decides.
_STATUSES: Final = tuple(
    (re.compile(pattern, re.IGNORECASE), status)
    for pattern, status in (
        (r"could not read (?:username|password) for|authentication failed for", 401),
        (r"repository not found", 404),
        (r"remote error: .*(?:not found|does not exist)", 404),
        (r"remote error: .*(?:denied|forbidden|not allowed|unauthori[sz]ed|permission)", 403),
    )
)
_UNTRUSTED: Final = "its certificate is not trusted; outgoing_ca_file can name a private authority"
_FAILURES: Final = tuple(
    (re.compile(pattern, re.IGNORECASE), failure, repeatable)
    for pattern, failure, repeatable in (
        (r"proxy|CONNECT tunnel", "the proxy did not let the call through", True),
        (r"certificate", _UNTRUSTED, False),
        (r"dumb http|is this a git repository|invalid server response|not a git", NOT_GIT, False),
        (r"failed to connect|couldn't connect|could not resolve", "no connection", True),
        (r"gnutls|SSL|TLS", "no connection with encryption", True),
    )
)
_BROKEN: Final = "the response is incomplete"


def make_git_reply(ended: GitResult, *, limits: str, seconds: float) -> HostReply:
    """The reply for a finished command: its output, or a status or failure with the reason."""
    if ended.stopped == OUT_OF_TIME:
        return HostReply(0, failure=f"no answer within {seconds:.0f} seconds")
    if ended.stopped == OUT_OF_ROOM:
        return HostReply(TOO_LARGE, failure=f"the repository is larger than {limits}")
    if ended.stopped == NOT_STARTED:
        return HostReply(0, failure="the program git could not be started")
    if ended.code == 0:
        return HostReply(200, body=ended.output)
    # Quoted URLs contain names that users chose.
    return _classify_errors(_QUOTED.sub("", "\n".join(_OURS.findall(ended.errors))))


def _classify_errors(text: str) -> HostReply:
    if found := _STATUS.search(text):
        return HostReply(int(found[1]))
    for pattern, status in _STATUSES:
        if pattern.search(text):
            return HostReply(status)
    for pattern, failure, repeatable in _FAILURES:
        if pattern.search(text):
            return HostReply(0, failure=failure, repeatable=repeatable)
    return HostReply(0, failure=_BROKEN, repeatable=True)


MIB: Final = 1024 * 1024
HEAD_SECONDS: Final = 30.0
_MOST_MEMORY: Final = str(256 * MIB)

# No hooks, no redirects, no loose objects, and no fetches after the clone.
_CONFIG: Final = (
    ("protocol.allow", "never"),
    ("protocol.version", "2"),
    ("http.followRedirects", "false"),
    ("http.sslVerify", "true"),
    ("http.proxyAuthMethod", "basic"),
    # Ends a stalled transfer even if the parent process was killed.
    ("http.lowSpeedLimit", "1"),
    ("http.lowSpeedTime", "240"),
    ("credential.helper", ""),
    ("core.askPass", ""),
    ("core.hooksPath", os.devnull),
    ("core.fsmonitor", "false"),
    ("core.bigFileThreshold", "1m"),
    ("fetch.unpackLimit", "1"),
    # Only names are read from objects, as data, so old malformed objects do no harm.
    ("fetch.fsckObjects", "false"),
    ("fetch.recurseSubmodules", "false"),
    ("submodule.recurse", "false"),
    ("transfer.bundleURI", "false"),
    ("pack.threads", "1"),
    ("gc.auto", "0"),
    ("maintenance.auto", "false"),
)


class Limits(NamedTuple):
    """Limits of a repository: total seconds, MiB to download, and number of files."""

    seconds: int = 120
    megabytes: int = 100
    files: int = 200_000

    def __str__(self) -> str:
        """The size limits for messages; timeouts are reported separately."""
        return f"{self.megabytes} MiB or {self.files} files"


class Git:
    """Git commands for one repository, in one folder and under one time limit."""

    def __init__(self, program: str, limits: Limits, client: HttpClient, folder: str) -> None:
        self._program = program
        self.limits = limits
        self._client = client
        self._folder = folder
        self._deadline = asyncio.get_running_loop().time() + limits.seconds

    async def heads(self, url: str) -> Answer:
        """Ask the host for the commit at HEAD; the body has the lines of `git ls-remote`."""
        call = partial(self._call, ["ls-remote", "--quiet", "--", url, "HEAD"], HEAD_SECONDS)
        return await self._client.delegate(call)

    async def clone(self, url: str) -> Answer:
        """Clone the newest commit and its trees, without file contents; the answer has no body."""
        arguments = (
            *("clone", "--quiet", "--bare", "--depth=1", "--filter=blob:none", "--no-tags"),
            *("--single-branch", "--template=", "--", url, "repository"),
        )
        call = partial(self._call, arguments, float(self.limits.seconds))
        return await self._client.delegate(call, attempts=1)

    async def tree(self, commit: str) -> HostReply:
        """All entries of the commit's tree, each NUL-terminated; makes no call.

        An entry is `<mode> <type> <id>`, a tab and the path. A custom format would make Git quote
        paths.
        """
        arguments = ("--git-dir=repository", "ls-tree", "-r", "-z", "--full-tree", commit)
        return await self._run(arguments, (), float(self.limits.seconds))

    async def entry(self, commit: str, file: str) -> HostReply:
        """The entry at a path, in the same format as `tree`; empty if there is none."""
        arguments = (
            *("--literal-pathspecs", "--git-dir=repository", "ls-tree", "-z", "--full-tree"),
            *(commit, "--", file),
        )
        return await self._run(arguments, (), float(self.limits.seconds))

    async def blob(self, id_: str) -> Answer:
        """The contents of one file, which Git fetches on demand."""
        arguments = ("--git-dir=repository", "cat-file", "blob", id_)
        call = partial(self._call, arguments, float(self.limits.seconds), fetches=True)
        return await self._client.delegate(call, attempts=1)

    async def _call(
        self, arguments: Sequence[str], seconds: float, route: HostRoute, *, fetches: bool = False
    ) -> HostReply:
        config = make_route_config(route, self._folder)
        return await self._run(arguments, config, seconds, fetches=fetches)

    async def _run(
        self,
        arguments: Sequence[str],
        config: Iterable[tuple[str, str]],
        seconds: float,
        *,
        fetches: bool = False,
    ) -> HostReply:
        limits = self.limits
        left = self._deadline - asyncio.get_running_loop().time()
        bounds = Bounds(max(0.0, min(seconds, left)), limits.megabytes * MIB, limits.files)
        ended = await run_git(
            [self._program, *arguments],
            make_git_environment(self._folder, [*_CONFIG, *config], fetches=fetches),
            self._folder,
            bounds,
        )
        return make_git_reply(ended, limits=str(limits), seconds=min(seconds, limits.seconds))


def make_route_config(route: HostRoute, folder: str) -> list[tuple[str, str]]:
    """Git options that allow only the route's addresses; writes its authorities to a file."""
    scheme = route.url.partition(":")[0]
    addresses = ",".join(f"[{one}]" if ":" in one else one for one in route.addresses)
    config = [(f"protocol.{scheme}.allow", "always"), ("http.proxy", route.proxy)]
    if ":" not in route.name:
        config.append(("http.curloptResolve", f"{route.name}:{route.port}:{addresses}"))
    if route.authorities:
        file = Path(folder, "authorities.pem")
        file.write_text(route.authorities)
        config += [("http.sslCAInfo", str(file)), ("http.proxySSLCAInfo", str(file))]
    config += [
        (f"http.{route.url}.extraHeader", f"{name}: {value}")
        for name, value in route.headers.items()
    ]
    return config


def make_git_environment(
    folder: str, config: Sequence[tuple[str, str]], *, fetches: bool = False
) -> dict[str, str]:
    """Git's whole environment, with its secrets, which other processes can't read there.

    HOME is the folder, as Git would otherwise read a `.netrc`. `fetches`: Git may fetch missing
    objects.
    """
    pairs: dict[str, str] = {}
    for i, (key, value) in enumerate(config):
        pairs |= {f"GIT_CONFIG_KEY_{i}": key, f"GIT_CONFIG_VALUE_{i}": value}
    return {
        "PATH": os.environ.get("PATH", os.defpath),
        "HOME": folder,
        "LC_ALL": "C",
        "GIT_TERMINAL_PROMPT": "0",
        "GIT_CONFIG_NOSYSTEM": "1",
        "GIT_CONFIG_GLOBAL": os.devnull,
        "GIT_ATTR_NOSYSTEM": "1",
        # Ignore any repository around the folder.
        "GIT_CEILING_DIRECTORIES": str(Path(folder).parent),
        "GIT_NO_LAZY_FETCH": "0" if fetches else "1",
        # A small pack may hold a huge object: cap the memory for one.
        "GIT_ALLOC_LIMIT": _MOST_MEMORY,
        "GIT_CONFIG_COUNT": str(len(config)),
        **pairs,
    }


LIMITS: Final = Limits()
CHANGED: Final = Missing(Outcome.TRANSIENT, "it changed while it was read, or arrived incomplete")

_MOVED: Final = Missing(Outcome.NOT_FOUND, "it has moved; the annotation names its old location")
# A batch has five minutes, and a clone may take two.
_BEGIN_WITHIN: Final = 120.0
_LATER: Final = Missing(Outcome.TRANSIENT, "other clones came first")
_NO_PROGRAM: Final = Missing(Outcome.NOT_APPLICABLE, "this server lacks the program git")
_MOVED_FOR_GOOD: Final = frozenset({301, 308})


@contextmanager
def make_git_folder() -> Iterator[str]:
    """An empty folder, deleted at the end of the block."""
    with TemporaryDirectory(prefix="factbook-git-", ignore_cleanup_errors=True) as place:
        yield os.path.realpath(place)


def make_basic_auth(user: str, password: str) -> dict[str, str]:
    """Headers of HTTP Basic authentication, as Git hosts accept them for tokens."""
    pair = base64.b64encode(f"{user}:{password}".encode()).decode()
    return {"authorization": f"Basic {pair}"}


class Clones:
    """Clones that one collection makes from one host, one at a time."""

    def __init__(self, host: HttpClient) -> None:
        self.limits = LIMITS
        self._host = host
        self._turn = asyncio.Lock()
        self._begun = time.monotonic()

    async def paths(self, name: str) -> list[str] | Missing:
        """The paths of all files at HEAD; `name` is the repository's path at the host.

        Not applicable if Git is not installed.
        """
        async with self._turn:
            if time.monotonic() - self._begun > _BEGIN_WITHIN:
                return _LATER
            try:
                program = await asyncio.to_thread(find_git)
            except ConfigurationError:
                return _NO_PROGRAM
            url = f"{self._host.base_url}{build_path(*name.split('/'))}.git"
            with make_git_folder() as place:
                return await list_clone_paths(
                    Git(program, self.limits, self._host, place), url, "HEAD"
                )


async def list_clone_paths(git: Git, url: str, commit: str) -> list[str] | Missing:
    """The paths of all files of a commit, unordered, from a new clone."""
    answer = await git.clone(url)
    if not answer.ok:
        return explain_failed_clone(answer, git.limits)
    tree = await git.tree(commit)
    if tree.status == TOO_LARGE:
        return report_too_large(git.limits)
    if tree.status != 200:
        return CHANGED
    entries = (entry.partition(b"\t") for entry in tree.body.split(b"\0"))
    return [name.decode("utf-8", "replace") for kind, _, name in entries if b" blob " in kind]


def explain_failed_clone(answer: Answer, limits: Limits) -> Missing:
    """The reason that a clone failed."""
    if answer.status == TOO_LARGE:
        return report_too_large(limits)
    return _MOVED if answer.status in _MOVED_FOR_GOOD else answer.missing


def report_too_large(limits: Limits) -> Missing:
    """The reason for a repository that exceeds the limits."""
    return Missing(Outcome.TOO_LARGE, f"the repository is larger than {limits}")
