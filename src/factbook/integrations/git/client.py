"""Collection from a Git host: a repository, from its HEAD to its facts, and single files."""

import os
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from tempfile import TemporaryDirectory
from typing import Final, NamedTuple

import msgspec

from factbook.integrations import file_tree
from factbook.integrations.file_tree import Paths
from factbook.integrations.git import facts
from factbook.integrations.git.options import Options
from factbook.integrations.integration import Collected
from factbook.outbound import Answer, HttpClient, Memory, path
from factbook.outbound.git.commands import Git
from factbook.outbound.git.replies import NOT_GIT, TOO_LARGE
from factbook.outbound.outcomes import Missing, Outcome

_HEAD: Final = re.compile(rb"^([0-9a-f]{40,64})\tHEAD$", re.MULTILINE)
_FILE: Final = re.compile(rb"100(?:644|755) blob ([0-9a-f]{40,64})")
_BRANCH: Final = re.compile(rb"[0-9a-f]{40,64} refs/heads/")
_ADVERTISEMENT: Final = "application/x-git-upload-pack-advertisement"

_REDIRECTS: Final = frozenset({301, 302, 303, 307, 308})
_MOVED_FOR_GOOD: Final = frozenset({301, 308})

_TOO_LARGE: Final = Missing(Outcome.TRANSIENT, "it is larger than the settings allow")
_MOVED: Final = Missing(Outcome.NOT_FOUND, "it has moved; the annotation names its old place")
_NO_BRANCH: Final = Missing(Outcome.NOT_APPLICABLE, "its HEAD is a branch that does not exist")
_NOT_GIT: Final = Missing(Outcome.TRANSIENT, NOT_GIT)
_NO_FILE: Final = Missing(Outcome.NOT_FOUND, "it has no such file")
_CHANGED: Final = Missing(Outcome.TRANSIENT, "it changed while it was read, or did not come whole")


class HeadCommit(NamedTuple):
    """Commit at HEAD, and the path under which the host answers."""

    id: str
    name: str


class _Note(msgspec.Struct, array_like=True):
    """Facts kept about a repository: its path in the host's spelling."""

    name: str = ""
    too_large: str = ""


async def collect(
    program: str,
    options: Options,
    targets: Sequence[str],
    client: HttpClient,
    memory: Memory,
    _now: int,
) -> dict[str, Collected]:
    """The facts about each target, the path of a repository, or why there are none."""
    found = {}
    for target in targets:
        with folder() as place:
            git = Git(program, options, client, place)
            reading = Reading(git, options, client, memory, target)
            found[target] = facts.collected(await reading.paths())
    return found


@contextmanager
def folder() -> Iterator[str]:
    """An empty folder, gone at the end of the block."""
    with TemporaryDirectory(prefix="factbook-git-", ignore_cleanup_errors=True) as path:
        yield os.path.realpath(path)


class Reading:
    """Reader of one repository."""

    def __init__(
        self, git: Git, options: Options, client: HttpClient, memory: Memory, target: str
    ) -> None:
        self._git = git
        self._client = client
        self._memory = memory
        self._target = target
        self._limits = f"{options.megabytes} {options.most_files}"

    async def paths(self) -> Paths | Missing:
        """The paths of all files at HEAD, in no order."""
        note = await self._note()
        name, answer = await self._heads(note.name)
        if not answer.ok:
            return _why(answer)
        found = _HEAD.search(answer.body)
        if not found:
            return await self._without_head(name)
        commit = found[1].decode()
        known = await file_tree.kept(self._memory, self._target, commit)
        if known is not None:
            return known
        mark = f"{commit} {self._limits}"
        read = _TOO_LARGE if note.too_large == mark else await self._read(name, commit)
        if isinstance(read, list):
            await file_tree.keep(self._memory, self._target, commit, read)
        await self._keep(note, _Note(name, mark if read is _TOO_LARGE else ""))
        return read

    async def commit(self) -> HeadCommit | Missing:
        """The commit that is HEAD, or why there is none."""
        name, answer = await self._heads((await self._note()).name)
        if not answer.ok:
            return _why(answer)
        found = _HEAD.search(answer.body)
        if found:
            return HeadCommit(found[1].decode(), name)
        why = await self._without_head(name)
        return why if isinstance(why, Missing) else _NO_FILE

    async def contents(self, commit: HeadCommit, file: str) -> bytes | Missing:
        """What a file holds; links and submodules are no files."""
        url = self._client.base_url + path(*commit.name.split("/"))
        answer = await self._git.clone(url)
        if not answer.ok:
            return _why(answer)
        listed = await self._git.entry(commit.id, file)
        if listed.status != 200:
            return _CHANGED
        entry = _FILE.fullmatch(listed.body.partition(b"\t")[0])
        if not entry:
            return _NO_FILE
        answer = await self._git.blob(entry[1].decode())
        return answer.body if answer.ok else _why(answer)

    async def _heads(self, known: str) -> tuple[str, Answer]:
        """The answer for HEAD, and the path under which the host answers; some need `.git`."""
        names = [self._target]
        if not self._target.endswith(".git"):
            names.append(f"{self._target}.git")
        names.sort(key=lambda name: name != known)
        for name in names:
            answer = await self._git.heads(self._client.base_url + path(*name.split("/")))
            if answer.outcome is not Outcome.NOT_FOUND and answer.status not in _REDIRECTS:
                break
        return name, answer

    async def _without_head(self, name: str) -> Paths | Missing:
        """No paths if it is empty; Git reports the same of a web page that is not a repository."""
        answer = await self._client.get(
            path(*name.split("/")) + "/info/refs",
            query={"service": "git-upload-pack"},
            headers={"accept": "*/*"},
            decode=False,
        )
        if not answer.ok:
            return _why(answer)
        if answer.headers.get("content-type") != _ADVERTISEMENT:
            return _NOT_GIT
        return _NO_BRANCH if _BRANCH.search(answer.body) else []

    async def _read(self, name: str, commit: str) -> Paths | Missing:
        answer = await self._git.clone(self._client.base_url + path(*name.split("/")))
        if not answer.ok:
            return _why(answer)
        listed = await self._git.tree(commit)
        if listed.status == TOO_LARGE:
            return _TOO_LARGE
        if listed.status != 200:
            return _CHANGED
        entries = (entry.partition(b"\t") for entry in listed.body.split(b"\0"))
        return [name.decode("utf-8", "replace") for kind, _, name in entries if b" blob " in kind]

    async def _note(self) -> _Note:
        stored = await self._memory.get(self._key)
        try:
            return msgspec.msgpack.decode(stored or b"", type=_Note)
        except (msgspec.DecodeError, UnicodeDecodeError):
            return _Note()

    async def _keep(self, old: _Note, new: _Note) -> None:
        if new != old:
            await self._memory.put(self._key, msgspec.msgpack.encode(new))

    @property
    def _key(self) -> str:
        return f"note:{self._target}"


def _why(answer: Answer) -> Missing:
    if answer.status == TOO_LARGE:
        return _TOO_LARGE
    return _MOVED if answer.status in _MOVED_FOR_GOOD else answer.missing
