"""A host of Git repositories: Git's own CGI program behind HTTP, which fails as it is told."""

import asyncio
import base64
import gzip
import os
import re
import socket
import subprocess
import threading
from collections import Counter
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import uvicorn
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from tests.fakes.fake import Fake, path_of
from tests.fakes.faults import Answer, Fault

GIT = ["git", "-c", "safe.directory=*"]
SUBMODULE = "1" * 40
RESULT = "application/x-git-upload-pack-result"


class FakeGit(Fake):
    """The bare repositories in a folder, each at its path; with a token for that token alone.

    Without `filters` it sends contents that nobody wants. Kinds of requests are `refs`, the
    beginning of each talk, then `ls-refs` and `fetch`. `sent` is how many bytes of bodies were
    sent, `proofs` what was sent to prove who asks.
    """

    def __init__(self, folder: Path, *, token: str = "", username: str = "git") -> None:
        super().__init__()
        self.folder = folder
        self.filters = True
        self.sent = 0
        self.proofs: Counter[str] = Counter()
        self.forbidden: set[str] = set()
        self._proof = ""
        if token:
            self.expect(token, username=username)

    def expect(self, token: str, *, username: str = "git") -> None:
        """Let nobody read without this token."""
        self._proof = base64.b64encode(f"{username}:{token}".encode()).decode()

    def kind(self, request: Request) -> str:
        if path_of(request).endswith("/info/refs"):
            return "refs"
        return "fetch" if b"command=fetch" in request.scope["body"] else "ls-refs"

    async def answer(self, request: Request) -> Response:
        proof = request.headers.get("authorization", "")
        if self._proof and proof != f"Basic {self._proof}":
            return Response(status_code=401, headers={"www-authenticate": 'Basic realm="git"'})
        if any(path_of(request).startswith(f"/{path}/") for path in self.forbidden):
            return Response("Forbidden", 403)
        return await self._backend(request)

    async def _backend(self, request: Request) -> Response:
        body: bytes = request.scope["body"]
        process = await asyncio.create_subprocess_exec(
            *GIT,
            *("-c", f"uploadpack.allowFilter={self.filters}", "http-backend"),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env=clean()
            | {
                "GIT_PROJECT_ROOT": str(self.folder),
                "GIT_HTTP_EXPORT_ALL": "1",
                "GIT_PROTOCOL": request.headers.get("git-protocol", ""),
                "PATH_INFO": request.url.path,
                "QUERY_STRING": request.url.query,
                "REQUEST_METHOD": request.method,
                "CONTENT_TYPE": request.headers.get("content-type", ""),
                "CONTENT_LENGTH": str(len(body)),
            },
        )
        output, _ = await process.communicate(body)
        head, _, content = output.partition(b"\r\n\r\n")
        headers = dict(line.split(": ", 1) for line in head.decode().split("\r\n"))
        status = int(headers.pop("Status", "200").split()[0])
        return Response(content, status, headers)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        request = Request(scope, receive)
        body = await request.body()
        if request.headers.get("content-encoding") == "gzip":
            body = gzip.decompress(body)
        self.proofs[request.headers.get("authorization", "")] += 1

        async def counted(message: Message) -> None:
            self.sent += len(message.get("body", b""))
            await send(message)

        await super().__call__({**scope, "body": body}, receive, counted)


def packet(content: bytes) -> bytes:
    """What Git's protocol sends it as."""
    return b"%04x%s" % (len(content) + 4, content)


async def without_trees(request: Request, answer: Answer) -> Response:
    """A good answer that lacks the trees, too."""
    wanted = re.compile(rb"....filter blob:none")
    assert wanted.search(request.scope["body"])
    request.scope["body"] = wanted.sub(packet(b"filter tree:0"), request.scope["body"])
    return await answer(request)


def endless(head: bytes, piece: bytes, pause: float = 0.0) -> Fault:
    """A good answer's head, then this piece of a packet for ever."""

    async def pieces() -> AsyncIterator[bytes]:
        yield head
        while True:
            yield packet(piece)
            await asyncio.sleep(pause)

    async def fault(_: Request, __: Answer) -> Response:
        return StreamingResponse(pieces(), media_type=RESULT)

    return fault


def stuck(reached: threading.Event) -> Fault:
    """No answer at all, once this is set."""

    async def fault(request: Request, answer: Answer) -> Response:
        reached.set()
        await asyncio.sleep(3600)
        return await answer(request)

    return fault


class Hosts:
    """Fakes behind one port, each below a path of its own."""

    def __init__(self) -> None:
        self._fakes: list[FakeGit] = []

    def add(self, fake: FakeGit) -> str:
        """The path of a fake: `/0`."""
        self._fakes.append(fake)
        return f"/{len(self._fakes) - 1}"

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        _, number, rest = scope["raw_path"].decode().split("/", 2)
        below = {"path": f"/{unquote(rest)}", "raw_path": f"/{rest}".encode()}
        await self._fakes[int(number)]({**scope, **below}, receive, send)


@contextmanager
def hosted(fake: ASGIApp, *, certificate: Path | None = None) -> Iterator[int]:
    """The port of loopback at which the fake answers, in a thread of its own.

    With a certificate, and its key in the same file, encrypted.
    """
    with socket.create_server(("127.0.0.1", 0)) as listener:
        config = uvicorn.Config(
            fake,
            loop="asyncio",
            lifespan="off",
            ws="none",
            log_config=None,
            access_log=False,
            ssl_certfile=certificate,
        )
        server = uvicorn.Server(config)
        server.force_exit = True
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]})
        thread.start()
        try:
            yield listener.getsockname()[1]
        finally:
            server.should_exit = True
            thread.join()


def commit(
    folder: Path, files: Mapping[Any, bytes], *, branch: str = "main", **special: str
) -> None:
    """Put a commit with these files on the branch of a bare repository, made if there is none.

    Paths are text or bytes. `special` gives those of symbolic links, `a="link"`, and of
    submodules, `b="submodule"`.
    """
    if not folder.exists():
        git("init", "--quiet", "--bare", "--initial-branch=main", str(folder))
    stream = bytearray(b"commit refs/heads/%s\n" % branch.encode())
    stream += b"committer T <t@example.com> 0 +0000\ndata 0\ndeleteall\n"
    for path, content in files.items():
        stream += b"M 100644 inline %s\ndata %d\n%s\n" % (_quoted(path), len(content), content)
    for path, kind in special.items():
        if kind == "link":
            stream += b"M 120000 inline %s\ndata 4\naway\n" % _quoted(path)
        else:
            stream += b"M 160000 %s %s\n" % (SUBMODULE.encode(), _quoted(path))
    git("--git-dir", str(folder), "fast-import", "--quiet", "--force", stdin=bytes(stream))


def bomb(folder: Path, levels: int = 10) -> None:
    """Make a repository of a few objects whose tree has ten times more files at each level."""
    git("init", "--quiet", "--bare", "--initial-branch=main", str(folder))
    at = ("--git-dir", str(folder))
    entry = b"100644 blob " + git(*at, "hash-object", "-w", "--stdin", stdin=b"x").strip()
    for _ in range(levels):
        tree = git(*at, "mktree", stdin=b"".join(b"%s\t%d\n" % (entry, i) for i in range(10)))
        entry = b"040000 tree " + tree.strip()
    author = ("-c", "user.name=T", "-c", "user.email=t@example.com")
    new = git(*author, *at, "commit-tree", "-m", "x", tree.decode().strip())
    git(*at, "update-ref", "refs/heads/main", new.decode().strip())


def git(*arguments: str, stdin: bytes = b"") -> bytes:
    """What a command of Git prints."""
    command = [*GIT, *arguments]
    return subprocess.run(command, env=clean(), input=stdin, capture_output=True, check=True).stdout


def clean() -> dict[str, str]:
    """An environment in which Git finds no configuration."""
    return {
        "PATH": os.environ["PATH"],
        "HOME": os.devnull,
        "GIT_CONFIG_NOSYSTEM": "1",
        "GIT_CONFIG_GLOBAL": os.devnull,
    }


def _quoted(path: str | bytes) -> bytes:
    raw = path if isinstance(path, bytes) else path.encode()
    return b'"%s"' % b"".join(b"\\%03o" % byte for byte in raw)
