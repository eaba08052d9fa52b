"""Git: the files of a repository on any host, from a clone without file contents."""

import re
import zlib
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import Annotated, Any, Final, NamedTuple
from urllib.parse import unquote

import msgspec

from factbook.integrations import code_host
from factbook.integrations.code_host import Paths
from factbook.integrations.integration import (
    SOURCE_LOCATION,
    Collected,
    Instance,
    InstanceOptions,
    Integration,
    find_location,
    make_vendor,
    report_bad_annotation,
    report_no_annotation,
    split_targets,
)
from factbook.outbound.cache import Memory, exceeds_noted_limit, note_exceeded_limit
from factbook.outbound.client import HttpClient, build_path
from factbook.outbound.git import (
    CHANGED,
    NOT_GIT,
    Git,
    Limits,
    explain_failed_clone,
    find_git,
    list_clone_paths,
    make_basic_auth,
    make_git_folder,
    report_too_large,
)
from factbook.outbound.outcomes import Answer, Missing, Outcome
from factbook.settings.option_tables import HOST_PATTERN, about

LONGEST: Final = 500

# Segments that follow a repository in URLs of hosts, with the minimum number of segments before
# them: a group may be called `src`.
_AFTER: Final = {"-": 1, "tree": 1, "blob": 1, "src": 2}

_SECRET: Final = re.compile(r"[\x21-\x7e]*")
# A batch of the collector, which is one repository, ends after five minutes.
_MOST_SECONDS: Final = 240
_MOST: Final = {"seconds": _MOST_SECONDS, "megabytes": 10_000, "most_files": 1_000_000}


class GitOptions(InstanceOptions, frozen=True, kw_only=True):
    """Host of Git repositories, with one credential or none."""

    host: Annotated[
        str, about("Needed. Host that annotations name, with its port: `git.example.com`.")
    ]
    base_url: Annotated[
        str, about("Address that paths of repositories are put behind. Empty: `https://<host>`.")
    ] = ""
    username: Annotated[
        str, about("Name that goes with the token. Empty: `git`, which most hosts accept.")
    ] = ""
    token: Annotated[
        str, about("Secret. A token or password. Empty: only public repositories are read.")
    ] = ""
    paths: Annotated[
        list[str],
        about("Beginnings of paths to read, in whole parts: `acme`, `acme/apps`. Empty: all."),
    ] = msgspec.field(default_factory=list)
    seconds: Annotated[int, about("Longest time for one repository, at most 240.")] = 120
    megabytes: Annotated[int, about("Largest download of one repository, in MiB.")] = 100
    most_files: Annotated[int, about("Most files of one repository.")] = 200_000

    @property
    def url(self) -> str:
        """The base URL of the host, without a trailing slash."""
        return (self.base_url or f"https://{self.host}").rstrip("/")

    @property
    def limits(self) -> Limits:
        """The limits beyond which a repository is not read."""
        return Limits(self.seconds, self.megabytes, self.most_files)

    @property
    def prefixes(self) -> list[str]:
        """The path prefixes to read, without outer slashes."""
        return [path.strip("/") for path in self.paths]

    def problems(self) -> Iterator[str]:
        """The mistakes in the table."""
        if not HOST_PATTERN.fullmatch(self.host):
            yield "host has to be a host name in lower case, such as git.example.com"
        if not self.url.startswith(("https://", "http://")):
            yield "base_url has to begin with https://"
        if self.username and not self.token:
            yield "a username needs a token"
        if not _SECRET.fullmatch(self.username) or ":" in self.username:
            yield "username has a character that cannot be sent"
        if not _SECRET.fullmatch(self.token):
            yield "token has a character that cannot be sent"
        if not all(self.prefixes):
            yield "paths has an empty one"
        for name, most in _MOST.items():
            if not 1 <= getattr(self, name) <= most:
                yield f"{name} has to be from 1 to {most}"


def find_git_target(options: GitOptions, entity: Mapping[str, Any]) -> str | Missing:
    """The path of the repository, decoded and without outer slashes, or the reason for no path."""
    place = find_location(entity)
    if place is None or place.host != options.host:
        return report_no_annotation(f"no repository on {options.host}")
    parts = cut_repository_path([unquote(part) for part in place.path.split("/")])
    path = "/".join(parts)
    are_names = all(
        part not in {"", ".", "..", "-"} and part.isprintable() and not {"/", "\\"} & set(part)
        for part in parts
    )
    if len(path) > LONGEST or not are_names:
        return report_bad_annotation("what it names is not a path of a repository")
    if options.prefixes and not any(f"{path}/".startswith(f"{base}/") for base in options.prefixes):
        return report_no_annotation("a path that is not configured")
    return path


def cut_repository_path(parts: Sequence[str]) -> Sequence[str]:
    """The repository's segments in the path of a web page, up to a marker such as `tree`.

    All segments if the path ends with `.git`, unless one is `-`, which cannot be a name.
    """
    if parts[-1].endswith(".git") and "-" not in parts:
        return parts
    for i, part in enumerate(parts):
        if part.endswith(".git"):
            return parts[: i + 1]
        if i >= _AFTER.get(part, len(parts)):
            return parts[:i]
    return parts


_HEAD: Final = re.compile(rb"^([0-9a-f]{40,64})\tHEAD$", re.MULTILINE)
_FILE: Final = re.compile(rb"100(?:644|755) blob ([0-9a-f]{40,64})")
_BRANCH: Final = re.compile(rb"[0-9a-f]{40,64} refs/heads/")
_ADVERTISEMENT: Final = "application/x-git-upload-pack-advertisement"

_REDIRECTS: Final = frozenset({301, 302, 303, 307, 308})
_NO_BRANCH: Final = Missing(Outcome.NOT_APPLICABLE, "its HEAD is a branch that does not exist")
_NOT_GIT: Final = Missing(Outcome.TRANSIENT, NOT_GIT)
_NO_FILE: Final = Missing(Outcome.NOT_FOUND, "it has no such file")
# Larger files are fetched again.
_LARGEST_KEPT: Final = 1024 * 1024
_DAYS_KEPT: Final = 30


class HeadCommit(NamedTuple):
    """Commit at HEAD, and the path under which the host answers."""

    id: str
    name: str


class _Note(msgspec.Struct, array_like=True):
    """Stored data about a repository: the path that its host accepts."""

    name: str = ""


async def collect_git(
    program: str,
    options: GitOptions,
    targets: Sequence[str],
    client: HttpClient,
    memory: Memory,
    now: int,
) -> dict[str, Collected]:
    """Facts about each target (a repository's path), or the reason that they are missing."""
    found = {}
    for target in targets:
        with make_git_folder() as place:
            git = Git(program, options.limits, client, place)
            reading = Reading(git, client, memory, target)
            found[target] = make_git_facts(await reading.paths(now))
    return found


def make_git_facts(paths: Paths | Missing) -> Collected:
    """The facts of the repository shape, or the reason for their absence."""
    if isinstance(paths, Missing):
        return Collected(missing={"": paths})
    return Collected(
        {f"repository.{name}": value for name, value in code_host.make_file_facts(paths).items()}
    )


class Reading:
    """Reader of one repository."""

    def __init__(self, git: Git, client: HttpClient, memory: Memory, target: str) -> None:
        self._git = git
        self._client = client
        self._memory = memory
        self._target = target

    async def paths(self, now: int) -> Paths | Missing:
        """The paths of all files at HEAD, unordered.

        A repository that was too large is not cloned again for days, even if its HEAD moves.
        """
        note = await self._note()
        name, answer = await self._heads(note.name)
        if not answer.ok:
            return self._why(answer)
        found = _HEAD.search(answer.body)
        if not found:
            return await self._without_head(name)
        commit = found[1].decode()
        known = await code_host.recall_paths(self._memory, self._target, commit)
        if known is not None:
            return known
        limits = self._git.limits
        if await exceeds_noted_limit(self._memory, self._what, limits, now):
            return report_too_large(limits)
        read = await list_clone_paths(self._git, self._url(name), commit)
        if isinstance(read, list):
            await code_host.keep_paths(self._memory, self._target, commit, read)
        elif read.outcome is Outcome.TOO_LARGE:
            await note_exceeded_limit(self._memory, self._what, limits, now)
        if note != _Note(name):
            await self._memory.put(self._key, msgspec.msgpack.encode(_Note(name)))
        return read

    async def commit(self) -> HeadCommit | Missing:
        """The commit at HEAD, or the reason for its absence."""
        name, answer = await self._heads((await self._note()).name)
        if not answer.ok:
            return self._why(answer)
        found = _HEAD.search(answer.body)
        if found:
            return HeadCommit(found[1].decode(), name)
        none = await self._without_head(name)
        return none if isinstance(none, Missing) else _NO_FILE

    async def contents(self, commit: HeadCommit, file: str) -> bytes | Missing:
        """The contents of a file; links and submodules are not files."""
        answer = await self._git.clone(self._url(commit.name))
        if not answer.ok:
            return self._why(answer)
        found = await self._git.entry(commit.id, file)
        if found.status != 200:
            return CHANGED
        entry = _FILE.fullmatch(found.body.partition(b"\t")[0])
        if not entry:
            return _NO_FILE
        answer = await self._git.blob(entry[1].decode())
        return answer.body if answer.ok else self._why(answer)

    async def _heads(self, known: str) -> tuple[str, Answer]:
        """The path that the host accepts, as some hosts need `.git`, and its answer for HEAD."""
        names = [self._target]
        if not self._target.endswith(".git"):
            names.append(f"{self._target}.git")
        names.sort(key=lambda name: name != known)
        for name in names:
            answer = await self._git.heads(self._url(name))
            if answer.outcome is not Outcome.NOT_FOUND and answer.status not in _REDIRECTS:
                break
        return name, answer

    async def _without_head(self, name: str) -> Paths | Missing:
        """No paths if the repository is empty; Git reports a plain web page the same way."""
        answer = await self._client.get(
            build_path(*name.split("/")) + "/info/refs",
            query={"service": "git-upload-pack"},
            headers={"accept": "*/*"},
            decode=False,
        )
        if not answer.ok:
            return self._why(answer)
        if answer.headers.get("content-type") != _ADVERTISEMENT:
            return _NOT_GIT
        return _NO_BRANCH if _BRANCH.search(answer.body) else []

    def _url(self, name: str) -> str:
        return self._client.base_url + build_path(*name.split("/"))

    def _why(self, answer: Answer) -> Missing:
        return explain_failed_clone(answer, self._git.limits)

    async def _note(self) -> _Note:
        stored = await self._memory.get(self._key)
        try:
            return msgspec.msgpack.decode(stored or b"", type=_Note)
        except (msgspec.DecodeError, UnicodeDecodeError):
            return _Note()

    @property
    def _key(self) -> str:
        return f"note:{self._target}"

    @property
    def _what(self) -> str:
        return f"tree:{self._target}"


class _StoredFile(msgspec.Struct, array_like=True):
    """Contents of a file at a commit, compressed."""

    commit: str = ""
    body: bytes = b""


async def read_git_file(
    program: str, options: GitOptions, target: str, file: str, client: HttpClient, memory: Memory
) -> Answer:
    """Read a file of the default branch into the body; fetched again only if HEAD moved."""
    with make_git_folder() as place:
        reading = Reading(Git(program, options.limits, client, place), client, memory, target)
        commit = await reading.commit()
        if isinstance(commit, Missing):
            return _make_missing_answer(commit)
        key = f"file:{target}:{file}"
        stored = await memory.get(key)
        try:
            earlier = msgspec.msgpack.decode(stored or b"", type=_StoredFile)
        except (msgspec.DecodeError, UnicodeDecodeError):
            earlier = _StoredFile()
        if earlier.commit == commit.id:
            return Answer(Outcome.OK, 200, body=zlib.decompress(earlier.body), remembered=True)
        body = await reading.contents(commit, file)
        if isinstance(body, Missing):
            return _make_missing_answer(body)
        if len(body) <= _LARGEST_KEPT:
            stored = msgspec.msgpack.encode(_StoredFile(commit.id, zlib.compress(body)))
            await memory.put(key, stored, days=_DAYS_KEPT)
        return Answer(Outcome.OK, 200, body=body)


def _make_missing_answer(missing: Missing) -> Answer:
    return Answer(missing.outcome, detail=missing.detail)


def _make_git_integration(instance: Instance[GitOptions]) -> Integration:
    options = instance.options
    git = find_git()
    proof = make_basic_auth(options.username or "git", options.token)
    return Integration(
        source=instance.source(
            f"Files of the repositories on {options.host}.", (SOURCE_LOCATION,), minutes=60
        ),
        authorize=instance.credential(proof if options.token else {}),
        base_url=options.url,
        at_once=4,
        target=partial(find_git_target, options),
        # A slow repository doesn't delay others.
        batches=partial(split_targets, size=1),
        collect=partial(collect_git, git, options),
        read=partial(read_git_file, git, options),
    )


INTEGRATION: Final = make_vendor("git", "Git", GitOptions, _make_git_integration, ("repository",))
